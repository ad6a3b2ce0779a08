//! Writes the records of the table's stream and the messages of queues as AWS Lambda
//! delivers them.

use crate::queue::{Delivery, TextMessage};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A record as the event source mapping of `relay` delivers it; `None` if its filter in
/// `template.yaml` drops the record.
pub(super) fn stream_record(record: &Record) -> Option<Value> {
    let change = record.dynamodb()?;
    let image = change.new_image()?;
    if !["dispatch", "notify"]
        .iter()
        .any(|it| image.contains_key(*it))
    {
        return None;
    }
    Some(json!({
        "eventID": record.event_id(),
        "eventName": record.event_name().map(|name| name.as_str()),
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:000000000000:table/local/stream/local",
        "dynamodb": {
            "ApproximateCreationDateTime": change.approximate_creation_date_time().map(|at| at.secs()),
            "Keys": change.keys().map(attributes),
            "NewImage": attributes(image),
            "SequenceNumber": change.sequence_number(),
            "SizeBytes": change.size_bytes().unwrap_or_default(),
            "StreamViewType": "NEW_IMAGE",
        },
    }))
}

fn attributes(all: &HashMap<String, AttributeValue>) -> Value {
    let members = all
        .iter()
        .map(|(name, value)| (name.clone(), attribute(value)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// A value in the JSON of DynamoDB.
fn attribute(value: &AttributeValue) -> Value {
    let encoded = |bytes: &[u8]| STANDARD.encode(bytes);
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(digits) => json!({"N": digits}),
        AttributeValue::Bool(is) => json!({"BOOL": is}),
        AttributeValue::B(bytes) => json!({"B": encoded(bytes.as_ref())}),
        AttributeValue::Ss(all) => json!({"SS": all}),
        AttributeValue::Ns(all) => json!({"NS": all}),
        AttributeValue::Bs(all) => {
            let all: Vec<_> = all.iter().map(|it| encoded(it.as_ref())).collect();
            json!({"BS": all})
        }
        AttributeValue::L(all) => json!({"L": all.iter().map(attribute).collect::<Vec<_>>()}),
        AttributeValue::M(all) => json!({"M": attributes(all)}),
        // `Null`, and kinds that DynamoDB may add.
        _ => json!({"NULL": true}),
    }
}

/// A message as the event source mapping of a queue delivers it, in a batch of one.
pub(super) fn queue_event(delivery: &Delivery<TextMessage>, queue: &str) -> Value {
    let handle = delivery.receipt.handle();
    json!({"Records": [{
        "messageId": handle,
        "receiptHandle": handle,
        "body": delivery.item.body,
        "attributes": {
            "ApproximateReceiveCount": delivery.receives.to_string(),
            "MessageGroupId": delivery.item.group,
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
        "awsRegion": "us-east-1",
    }]})
}

/// The event of the schedule.
pub(super) fn tick() -> Value {
    json!({
        "version": "0",
        "id": "local",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "000000000000",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {},
    })
}

/// Whether a function reports that a record of its batch failed
/// (`ReportBatchItemFailures`).
pub(super) fn has_failures(result: &Value) -> bool {
    let failures = result.get("batchItemFailures").and_then(Value::as_array);
    failures.is_some_and(|failures| !failures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodbstreams::types::{OperationType, StreamRecord};

    fn text(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn record(image: &[(&str, AttributeValue)]) -> Record {
        let image = image
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let change = StreamRecord::builder()
            .set_keys(Some(HashMap::from([("PK".to_owned(), text("T#a#K#b"))])))
            .set_new_image(Some(image.collect()))
            .sequence_number("7")
            .build();
        Record::builder()
            .event_id("e")
            .event_name(OperationType::Insert)
            .dynamodb(change)
            .build()
    }

    #[test]
    fn only_records_that_pass_the_filter_of_the_relay_are_delivered() {
        assert_eq!(stream_record(&record(&[("version", text("1"))])), None);
        assert_eq!(stream_record(&Record::builder().build()), None);
        for name in ["dispatch", "notify"] {
            let event =
                stream_record(&record(&[(name, AttributeValue::N("3".to_owned()))])).unwrap();
            assert_eq!(event["dynamodb"]["NewImage"][name]["N"], "3");
            assert_eq!(event["dynamodb"]["SequenceNumber"], "7");
            assert_eq!(event["eventName"], "INSERT");
        }
    }

    #[test]
    fn a_value_keeps_its_type() {
        let map = HashMap::from([("a".to_owned(), AttributeValue::L(vec![text("x")]))]);
        let value = attribute(&AttributeValue::M(map));
        assert_eq!(value, json!({"M": {"a": {"L": [{"S": "x"}]}}}));
        let bytes = AttributeValue::B(vec![1, 2, 3].into());
        assert_eq!(attribute(&bytes), json!({"B": "AQID"}));
        assert_eq!(
            attribute(&AttributeValue::Null(true)),
            json!({"NULL": true})
        );
    }
}
