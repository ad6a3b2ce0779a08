//! A bucket with versions: deleted objects can be restored with a table, erased ones cannot.

use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::contract::World;
use a2a_lambda::store::dynamodb::DynamoStore;
use a2a_lambda::store::s3::{S3Blobs, create_bucket};
use a2a_lambda::store::{Blobs as _, ReadTasks as _, WriteTasks as _};
use a2a_lambda::task::{Message, Owner, Part, TaskId, TaskRecord};
use a2a_lambda_tests::emulator::{Emulator, outside, run};
use a2a_local::deployment::Deployment;
use a2a_local::embedded::TABLE;
use a2a_local::erase::{self, EraseTenant};
use a2a_local::restore::{self, RestoreObjects};
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use std::sync::Arc;
use std::time::Duration;

/// A table beside a bucket that keeps versions, and the endpoint of both.
struct Versioned {
    emulator: Emulator,
    records: DynamoStore,
    blobs: S3Blobs,
    deployment: Deployment,
    world: World,
}

impl Versioned {
    async fn at(url: String) -> Self {
        let emulator = Emulator::start().await.unwrap();
        let bucket = format!("a2a-lambda-versions-{:x}", run() >> 32);
        let s3 = emulator.clients.s3.clone();
        create_bucket(&s3, &bucket).await.unwrap();
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled);
        let put = s3.put_bucket_versioning().bucket(&bucket);
        put.versioning_configuration(enabled.build())
            .send()
            .await
            .unwrap();
        let blobs = S3Blobs::new(s3, &bucket);
        let records = DynamoStore::new(emulator.clients.dynamodb.clone(), TABLE);
        Self {
            records: records.with_blobs(Arc::new(blobs.clone())),
            blobs,
            deployment: Deployment {
                table: Some(TABLE.to_owned()),
                bucket: Some(bucket),
                endpoint: Some(url),
                s3_endpoint: None,
            },
            world: World::new(run(), "versions").unwrap(),
            emulator,
        }
    }

    /// A task of `owner` with an S3 object for its message.
    async fn large(&self, owner: &Owner) -> TaskRecord {
        let said = Message::from_user("m-1", vec![Part::text("x".repeat(300 * 1024))]);
        let id = TaskId::made_of(self.world.number());
        let task = self.world.task_saying(owner, id, said).unwrap();
        let write = self.world.create(&task);
        self.records.commit(&write).await.unwrap();
        write.record
    }

    async fn names(&self, owner: &Owner) -> usize {
        let below = format!("v1/{}/", owner.tenant.folder());
        self.blobs.keys(&below, None, 1000).await.unwrap().len()
    }

    /// The number of versions and delete markers of an owner's tenant.
    async fn versions(&self, owner: &Owner) -> usize {
        let bucket = self.deployment.bucket.clone().unwrap();
        let list = self.emulator.clients.s3.list_object_versions();
        let below = format!("v1/{}/", owner.tenant.folder());
        let found = list.bucket(bucket).prefix(below).send().await.unwrap();
        found.versions().len() + found.delete_markers().len()
    }

    async fn erase(&self, owner: &Owner) {
        let options = EraseTenant {
            tenant: owner.tenant.to_string(),
            yes: true,
            dry_run: false,
            data: None,
            deployment: self.deployment.clone(),
        };
        erase::run(&options).await.unwrap();
    }
}

#[tokio::test]
async fn a_restored_table_has_its_objects_and_no_erased_tenant() {
    let Some(url) = outside() else {
        println!("SKIPPED: the embedded S3 keeps no versions");
        return;
    };
    let case = Versioned::at(url).await;
    let [mine, other] = [&case.world.owner, &case.world.stranger];
    let (kept, erased) = (case.large(mine).await, case.large(other).await);
    // S3 records times in whole seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let since = SystemClock.now();
    let removed = case.blobs.keys("v1/", None, 1000).await.unwrap();
    let removed: Vec<String> = removed
        .into_iter()
        .filter(|key| key.contains(&mine.tenant.folder()))
        .collect();
    case.blobs.remove(&removed).await.unwrap();
    case.erase(other).await;
    assert_eq!((case.names(mine).await, case.names(other).await), (0, 0));
    assert_eq!(case.versions(other).await, 0, "an erasure keeps no version");
    // The restored table contains the erased tenant's task again, but not its object.
    let back = case.world.create(&erased);
    case.records.commit(&back).await.unwrap();
    restore::run(&RestoreObjects {
        since,
        deployment: case.deployment.clone(),
    })
    .await
    .unwrap();
    let now = case.world.now;
    let found = case.records.load(mine, kept.id(), now).await.unwrap();
    let words = |task: &TaskRecord| task.view(10, true).history;
    assert_eq!(words(&found.unwrap()), words(&kept));
    let found = case.records.load(other, erased.id(), now).await.unwrap();
    assert!(found.is_none(), "the erasure is repeated");
    assert_eq!(case.versions(other).await, 0);
}
