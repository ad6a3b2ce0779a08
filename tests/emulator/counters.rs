//! Counters in the table, and whether table, bucket and queue answer.

use a2a_lambda::store::aws::{AwsClients, Endpoints, sqs_client};
use a2a_lambda::store::counters::{Counter, Counters as _};
use a2a_lambda::store::dynamodb::DynamoStore;
use a2a_lambda::store::health::HealthCheck;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::sqs::SqsQueue;
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use futures::future::join_all;
use std::collections::BTreeMap;

fn counter(series: &str, amounts: &[(&str, u64)]) -> Counter {
    let amounts = amounts
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), *amount));
    Counter {
        series: series.to_owned(),
        amounts: amounts.collect(),
    }
}

#[tokio::test]
async fn counters_of_many_processes_add_up() {
    let embedded = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(embedded.endpoints()).await;
    let store = DynamoStore::new(clients.dynamodb, TABLE);
    let (one, two) = (r#"["a2a_turns_total","a \"b\"","failed"]"#, r#"["x"]"#);
    let adds = (0..24).map(|process| {
        let store = store.clone();
        async move {
            let counters = [
                counter(one, &[("n", 1), ("b14", process)]),
                counter(two, &[("s", 2)]),
                counter("nothing", &[]),
            ];
            store
                .add_counters(u32::try_from(process).unwrap() % 8, &counters)
                .await
        }
    });
    for added in join_all(adds).await {
        added.unwrap();
    }
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    for counter in store.read_counters().await.unwrap() {
        for (name, amount) in counter.amounts {
            *sums.entry((counter.series.clone(), name)).or_default() += amount;
        }
    }
    let expected = [((one, "b14"), 276), ((one, "n"), 24), ((two, "s"), 48)];
    let expected =
        expected.map(|((series, name), sum)| ((series.to_owned(), name.to_owned()), sum));
    assert_eq!(sums, expected.into());
    embedded.stop().await;
}

#[tokio::test]
async fn a_missing_table_bucket_or_queue_does_not_work() {
    let embedded = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(embedded.endpoints()).await;
    let table = |name: &str| DynamoStore::new(clients.dynamodb.clone(), name);
    let bucket = |name: &str| S3Blobs::new(clients.s3.clone(), name);
    table(TABLE).check_health().await.unwrap();
    bucket(BUCKET).check_health().await.unwrap();
    assert!(table("no-such-table").check_health().await.is_err());
    assert!(bucket("no-such-bucket").check_health().await.is_err());
    embedded.stop().await;
    assert!(table(TABLE).check_health().await.is_err(), "it has stopped");
    let nowhere = Endpoints::at("http://127.0.0.1:9");
    let client = sqs_client(nowhere.dynamodb.as_deref()).await;
    let queue = SqsQueue::new(client, "http://127.0.0.1:9/1/work");
    assert!(queue.check_health().await.is_err());
}
