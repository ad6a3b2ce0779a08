use super::skill_test;
use crate::examples::fingerprint::Rows;
use a2a_lambda::skill::Content;
use a2a_lambda::task::PartContent;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

/// Sends a PDF; returns the address of the picture, which names its digest.
async fn drawn(content: &'static [u8]) -> String {
    let file = Content::from_file("a.pdf", "application/pdf", content);
    let reply = skill_test("fingerprint").send(file).await.unwrap();
    let artifact = reply.artifact("fingerprint.bmp").unwrap();
    match &artifact.parts[0].content {
        PartContent::Url(url) => url.clone(),
        other => panic!("a stored file is expected: {other:?}"),
    }
}

#[tokio::test]
async fn a_file_has_a_fingerprint_of_12_mb_that_is_stored_as_an_object() {
    let mut picture = Vec::new();
    let digest = Sha256::digest(b"%PDF-1");
    let mut rows = Rows::of(digest.into());
    rows.read_to_end(&mut picture).await.unwrap();
    assert_eq!(picture.len(), 54 + 2048 * 2048 * 3);
    assert!(picture.starts_with(b"BM"));
    let expected = format!("urn:sha256:{}", hex::encode(Sha256::digest(&picture)));
    assert_eq!(drawn(b"%PDF-1").await, expected);
    assert_ne!(drawn(b"%PDF-2").await, expected);
}

#[tokio::test]
async fn a_message_without_a_pdf_or_an_image_is_refused() {
    let error = skill_test("fingerprint").send("no file").await.unwrap_err();
    assert!(error.to_string().contains("application/pdf"), "{error}");
}
