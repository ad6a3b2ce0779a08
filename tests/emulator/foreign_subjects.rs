//! Another subject of the same tenant learns nothing of a task: the store does not even
//! decode its item.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::task::{Owner, Subject, TaskId};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;

#[tokio::test]
async fn the_subject_is_compared_before_an_item_is_decoded() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "strangers").unwrap();
    let stranger = Owner {
        subject: Subject::parse("somebody-else").unwrap(),
        ..sample.owner.clone()
    };
    let task = sample.new_task(&sample.owner, TaskId::made_of(sample.number()));
    let task = task.unwrap();
    let records = &emulator.records;
    records.commit(&sample.create(&task)).await.unwrap();
    // Decoding this item fails.
    let key = task.key();
    let text = |text: String| AttributeValue::S(text);
    let update = emulator.clients.dynamodb.update_item().table_name(TABLE);
    update
        .key("PK", text(format!("T#{}#K#{}", key.tenant(), key.local())))
        .key("SK", text("META".to_owned()))
        .update_expression("SET body = :broken")
        .expression_attribute_values(":broken", text("{".to_owned()))
        .send()
        .await
        .unwrap();
    let (id, now) = (&task.id, sample.now);
    let mine = records.load(&sample.owner, id, now).await;
    assert!(matches!(mine, Err(StoreError::Corrupt(_))), "{mine:?}");
    let mine = records.head(&sample.owner, id, now).await;
    assert!(matches!(mine, Err(StoreError::Corrupt(_))), "{mine:?}");
    assert!(records.load(&stranger, id, now).await.unwrap().is_none());
    assert!(records.head(&stranger, id, now).await.unwrap().is_none());
    let tail = records.tail(&stranger, id, 0, now).await;
    assert!(tail.unwrap().is_none());
}
