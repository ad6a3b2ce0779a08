//! The emulated services inside the process.

use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{Blobs as _, CommitResult};
use a2a_lambda_tests::emulator::run;
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use std::path::PathBuf;

/// A temporary folder, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("a2a-lambda-test-{:x}", run())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn stores(embedded: &Embedded) -> (Records, S3Blobs) {
    let clients = AwsClients::connect(embedded.endpoints()).await;
    (
        dynamodb::records(clients.dynamodb, TABLE),
        S3Blobs::new(clients.s3, BUCKET),
    )
}

#[tokio::test]
async fn tasks_and_bytes_of_a_data_folder_survive_a_restart() {
    let folder = Folder::new();
    let sample = SampleData::new(run(), "restart").unwrap();
    let task = sample.task().unwrap();
    let write = sample.create(&task);

    let embedded = Embedded::start(Some(&folder.0)).await.unwrap();
    let (records, blobs) = stores(&embedded).await;
    assert_eq!(records.commit(&write).await.unwrap(), CommitResult::Done);
    blobs.put("v1/x", "kept".into()).await.unwrap();
    embedded.stop().await;

    let embedded = Embedded::start(Some(&folder.0)).await.unwrap();
    let (records, blobs) = stores(&embedded).await;
    let found = records.load(&sample.owner, &task.id, sample.now).await;
    assert_eq!(found.unwrap(), Some(task));
    assert_eq!(blobs.get("v1/x").await.unwrap(), Some("kept".into()));
    embedded.stop().await;
}

#[tokio::test]
async fn two_embedded_emulators_share_nothing() {
    let (one, two) = (
        Embedded::start(None).await.unwrap(),
        Embedded::start(None).await.unwrap(),
    );
    let sample = SampleData::new(run(), "two").unwrap();
    let task = sample.task().unwrap();
    let (records, blobs) = stores(&one).await;
    records.commit(&sample.create(&task)).await.unwrap();
    blobs.put("v1/x", "one".into()).await.unwrap();
    let (records, blobs) = stores(&two).await;
    let found = records.load(&sample.owner, &task.id, sample.now).await;
    assert_eq!(found.unwrap(), None);
    assert_eq!(blobs.get("v1/x").await.unwrap(), None);
}
