//! Reads and writes `POST /a2a-lambda/uploads`, an extension of this project that is
//! the same for all generations.

use super::params::{Object, ReadResult};
use super::v1::View;
use a2a_lambda_model::task::{Part, PartContent, UploadGrant, UploadOrder};
use serde_json::{Map, Value, json};

/// The most characters of a file name or media type.
const TEXT: usize = 1024;

/// Reads `{filename?, mediaType?, size, sha256}`.
pub(super) fn read(order: &Object<'_>) -> ReadResult<UploadOrder> {
    let text = |name| {
        let rule = format_args!("must have at most {TEXT} characters");
        let read = |text: &str| (text.chars().count() <= TEXT).then(|| text.to_owned());
        order.text_as(name, rule, read)
    };
    let (filename, media_type) = (text("filename")?, text("mediaType")?);
    let size = order.integer("size", 1..=i64::MAX as u64)?;
    let size = order.require("size", size)?;
    let hex = |text: &str| {
        let is_hex = text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
        is_hex.then(|| text.to_ascii_lowercase())
    };
    let sha256 = order.text_as("sha256", "must be 64 hexadecimal digits", hex)?;
    Ok(UploadOrder {
        filename,
        media_type,
        size,
        sha256: order.require("sha256", sha256)?,
    })
}

/// Writes how to upload the file, and the part that refers to it afterwards. The
/// part has the format of 1.0; older generations put the reference in `file.uri`.
pub(super) fn encode(grant: &UploadGrant) -> Value {
    let headers = grant.headers.iter();
    let headers = headers.map(|(name, value)| (name.clone(), json!(value)));
    let part = Part {
        filename: grant.filename.clone(),
        media_type: grant.media_type.clone(),
        ..Part::new(PartContent::Url(grant.reference.clone()))
    };
    json!({
        "method": "PUT",
        "url": grant.url,
        "headers": headers.collect::<Map<String, Value>>(),
        "expiresAt": grant.expires_at.to_rfc3339(),
        "reference": grant.reference,
        "part": View::<true>::Part(&part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{command, field_of, rest};
    use a2a_lambda_model::task::A2aError;

    fn decode(order: &Value) -> Result<UploadOrder, A2aError> {
        command!(
            rest("POST", "/a2a-lambda/uploads", &[], order),
            CreateUpload
        )
    }

    #[test]
    fn an_upload_order_has_a_size_and_a_digest() {
        let sha = "AB".repeat(32);
        let order = decode(&json!({"size": 5, "sha256": sha, "filename": "a", "x": 1})).unwrap();
        assert_eq!(order.sha256, "ab".repeat(32));
        assert_eq!((order.size, order.filename.as_deref()), (5, Some("a")));
    }

    #[test]
    fn a_faulty_upload_order_is_refused_by_field() {
        let sha = "0".repeat(64);
        for (order, name) in [
            (json!([]), "params"),
            (json!({}), "size"),
            (json!({"size": 0, "sha256": sha}), "size"),
            (json!({"size": "1", "sha256": sha}), "size"),
            (json!({"size": 1}), "sha256"),
            (json!({"size": 1, "sha256": "zz"}), "sha256"),
            (
                json!({"size": 1, "sha256": sha, "mediaType": ""}),
                "mediaType",
            ),
            (json!({"size": 1, "sha256": sha, "filename": 3}), "filename"),
            (
                json!({"size": 1, "sha256": sha, "filename": "x".repeat(1025)}),
                "filename",
            ),
        ] {
            assert_eq!(field_of(decode(&order)), name, "{order}");
        }
    }
}
