//! Another subject of the same tenant learns nothing of a task: the store does not even
//! decode its item.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::contract::World;
use a2a_lambda::task::{Owner, Subject, TaskId};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;

#[tokio::test]
async fn the_subject_is_compared_before_an_item_is_decoded() {
    let emulator = Emulator::start().await.unwrap();
    let world = World::new(run(), "strangers").unwrap();
    let stranger = Owner {
        subject: Subject::parse("somebody-else").unwrap(),
        ..world.owner.clone()
    };
    let task = world.new_task(&world.owner, TaskId::made_of(world.number()));
    let task = task.unwrap();
    let records = &emulator.records;
    records.commit(&world.create(&task)).await.unwrap();
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
    let (id, now) = (task.id(), world.now);
    let mine = records.load(&world.owner, id, now).await;
    assert!(matches!(mine, Err(StoreError::Corrupt(_))), "{mine:?}");
    let mine = records.head(&world.owner, id, now).await;
    assert!(matches!(mine, Err(StoreError::Corrupt(_))), "{mine:?}");
    assert!(records.load(&stranger, id, now).await.unwrap().is_none());
    assert!(records.head(&stranger, id, now).await.unwrap().is_none());
    let tail = records.tail(&stranger, id, 0, now).await;
    assert!(tail.unwrap().is_none());
}
