//! Reads tasks from the records of the table's stream, as Lambda delivers them.

use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::TaskImage;
use a2a_lambda_store::records::task_image;

/// The task in a record of a stream event, in the type that Lambda delivers; `None` for
/// a removal and for an item of another kind.
///
/// # Errors
/// As [`task_image`].
pub fn task_image_of_event(
    record: &aws_lambda_events::event::dynamodb::EventRecord,
) -> Result<Option<TaskImage>, StoreError> {
    use serde_dynamo::AttributeValue;
    // A removal has no new image.
    let image = record.change.new_image.inner();
    task_image(&|name| match image.get(name)? {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::Change;
    use a2a_lambda_store::contract::SampleData;
    use a2a_lambda_store::keys;
    use a2a_lambda_store::memory::MemoryTable;
    use a2a_lambda_store::records::Records;
    use a2a_lambda_store::table::{ReadTable as _, Value};
    use std::sync::Arc;

    #[tokio::test]
    async fn the_task_of_a_lambda_event_is_the_stored_one() {
        let sample = SampleData::new(1, "image").unwrap();
        let task = sample.task().unwrap();
        let task = sample.next(&task, [Change::Dispatch]).unwrap();
        let table = Arc::new(MemoryTable::default());
        let records = Records::new(table.clone());
        records.commit(&sample.create(&task)).await.unwrap();
        let item = table.get(&[keys::task(&task.key())]).await.unwrap();
        let json: serde_json::Map<_, _> = item[0]
            .iter()
            .filter_map(|(name, value)| match value {
                Value::Number(number) => Some((name, "N", number.to_string())),
                Value::Text(text) => Some((name, "S", text.clone())),
                _ => None,
            })
            .map(|(name, kind, text)| (name.clone(), serde_json::json!({kind: text})))
            .collect();
        let event = |change: serde_json::Value| {
            let event = serde_json::json!({
                "awsRegion": "eu-central-1",
                "eventID": "e",
                "eventName": "MODIFY",
                "dynamodb": change,
            });
            serde_json::from_value(event).unwrap()
        };
        let changed = event(serde_json::json!({
            "ApproximateCreationDateTime": 4_102_444_800_u64,
            "Keys": {"PK": json["PK"], "SK": json["SK"]},
            "NewImage": json,
            "SequenceNumber": "1",
            "SizeBytes": 1,
            "StreamViewType": "NEW_IMAGE",
        }));
        let image = task_image_of_event(&changed).unwrap();
        assert_eq!(image, Some(TaskImage::of(&task)));
        let removed = event(serde_json::json!({
            "ApproximateCreationDateTime": 4_102_444_800_u64,
            "Keys": {"PK": json["PK"], "SK": json["SK"]},
            "SequenceNumber": "1",
            "SizeBytes": 1,
            "StreamViewType": "NEW_IMAGE",
        }));
        assert_eq!(task_image_of_event(&removed).unwrap(), None);
    }
}
