//! Whether table, bucket and queue answer.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints, sqs_client};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::health::HealthCheck;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::sqs::SqsQueue;
use a2a_local::embedded::{BUCKET, Embedded, TABLE};

fn is_refused(health: &Result<(), StoreError>) {
    assert!(matches!(health, Err(StoreError::Refused(_))), "{health:?}");
}

fn is_away(health: &Result<(), StoreError>) {
    assert!(
        matches!(health, Err(StoreError::Unavailable(_))),
        "{health:?}"
    );
}

#[tokio::test]
async fn a_missing_table_bucket_or_queue_does_not_work() {
    let embedded = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(embedded.endpoints()).await;
    let table = |name: &str| DynamoTable::new(clients.dynamodb.clone(), name);
    let bucket = |name: &str| S3Blobs::new(clients.s3.clone(), name);
    table(TABLE).check_health().await.unwrap();
    bucket(BUCKET).check_health().await.unwrap();
    let warning = Some("the table has no deletion protection");
    assert_eq!(table(TABLE).warning().await, warning);
    assert_eq!(table("no-such-table").warning().await, None);
    is_refused(&table("no-such-table").check_health().await);
    is_refused(&bucket("no-such-bucket").check_health().await);
    embedded.stop().await;
    is_away(&table(TABLE).check_health().await);
    let nowhere = Endpoints::at("http://127.0.0.1:9");
    let client = sqs_client(nowhere.dynamodb.as_deref()).await;
    let queue = SqsQueue::new(client, "http://127.0.0.1:9/1/work");
    is_away(&queue.check_health().await);
}
