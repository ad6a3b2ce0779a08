//! Reads tasks from the records of the table's stream.
//!
//! The stream has a record for every item of the table. The relay needs only the `META`
//! items of tasks, and of those only the attributes that identify a turn.

use super::{item, key};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::TaskImage;
use a2a_lambda_model::task::{Owner, PushId, Subject, Timestamp, WriteId};
use std::str::FromStr;

/// The task in the new image of a stream record; `None` for an item of another kind.
/// `attribute` returns the string or the digits of an attribute by its name,
/// independent of the types in which the record was received.
///
/// # Errors
/// [`StoreError::Corrupt`] when an attribute that identifies the turn is missing.
pub fn task_image(
    attribute: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<TaskImage>, StoreError> {
    if attribute(key::SK).as_deref() != Some(key::META) {
        return Ok(None);
    }
    let partition = attribute(key::PK).unwrap_or_default();
    let Some((tenant, task)) = key::task_of(&partition) else {
        return Ok(None);
    };
    let subject = attribute(item::OWNER_SUBJECT).ok_or_else(|| missing(item::OWNER_SUBJECT))?;
    let subject = Subject::parse(subject).map_err(|_| missing(item::OWNER_SUBJECT))?;
    let dispatch = attribute(item::DISPATCH)
        .map(|digits| parsed(&digits, item::DISPATCH))
        .transpose()?;
    let not_before = attribute(item::NOT_BEFORE)
        .map(|digits| parsed(&digits, item::NOT_BEFORE))
        .transpose()?;
    let notify = attribute(item::NOTIFY)
        .map(|digits| parsed(&digits, item::NOTIFY))
        .transpose()?;
    let incarnation = attribute(item::INCARNATION).filter(|text| !text.is_empty());
    let incarnation = incarnation.ok_or_else(|| missing(item::INCARNATION))?;
    Ok(Some(TaskImage {
        owner: Owner { tenant, subject },
        task,
        incarnation: WriteId::stored(incarnation),
        turn: number(attribute, item::TURN)?,
        version: number(attribute, item::VERSION)?,
        dispatch,
        not_before: not_before.map(Timestamp::from_millis),
        notify,
        listeners: listeners(attribute)?,
    }))
}

/// The task in a record of a stream event, in the type that Lambda delivers; `None` for
/// a removal and for an item of another kind.
///
/// # Errors
/// As [`task_image`].
#[cfg(feature = "lambda")]
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

/// The ids of the task's push configs.
fn listeners(attribute: &dyn Fn(&str) -> Option<String>) -> Result<Vec<PushId>, StoreError> {
    let ids = attribute(item::LISTENERS).unwrap_or_default();
    ids.split_ascii_whitespace()
        .map(|id| PushId::parse(id).map_err(|_| missing(item::LISTENERS)))
        .collect()
}

fn number<N: FromStr>(
    attribute: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<N, StoreError> {
    parsed(&attribute(name).ok_or_else(|| missing(name))?, name)
}

fn parsed<N: FromStr>(digits: &str, name: &'static str) -> Result<N, StoreError> {
    digits.parse().map_err(|_| missing(name))
}

fn missing(name: &'static str) -> StoreError {
    StoreError::Corrupt(format!("no valid `{name}` in the stream image of a task"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::store::contract::World;
    use a2a_lambda_model::stored::Encoded;
    use a2a_lambda_model::task::distinct::Values;
    use a2a_lambda_model::task::{Change, ContextId, TaskId, TaskRecord};
    use aws_sdk_dynamodb::types::AttributeValue;
    use std::time::Duration;

    fn plain(value: &AttributeValue) -> Option<String> {
        match value {
            AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn stored(record: &TaskRecord) -> item::Item {
        let mut item = item::key_of(&key::task(&record.key()), key::META);
        for (name, value) in item::task(record, Encoded::Text("{}".into())) {
            item.insert(name.to_owned(), value);
        }
        item
    }

    fn image(item: &item::Item) -> Result<Option<TaskImage>, StoreError> {
        task_image(&|name| item.get(name).and_then(plain))
    }

    #[test]
    fn an_image_names_the_turn_and_the_version_of_its_dispatch() {
        let world = World::new(1, "image").unwrap();
        for id in [TaskId::made_of(5), TaskId::parse("mine").unwrap()] {
            let task = world.new_task(&world.owner, id).unwrap();
            let asked = world.next(&task, [Change::Dispatch]).unwrap();
            for (record, dispatch) in [(&task, None), (&asked, Some(2))] {
                let expected = TaskImage {
                    owner: world.owner.clone(),
                    task: task.id().clone(),
                    incarnation: task.incarnation().clone(),
                    turn: 1,
                    version: record.version(),
                    dispatch,
                    not_before: None,
                    notify: None,
                    listeners: Vec::new(),
                };
                assert_eq!(image(&stored(record)).unwrap(), Some(expected));
            }
        }
    }

    #[test]
    fn an_image_is_that_of_the_stored_record() {
        let task: TaskRecord = Values::first();
        assert_eq!(image(&stored(&task)).unwrap(), Some(TaskImage::of(&task)));
    }

    #[test]
    fn an_item_of_another_kind_has_no_task_image() {
        let world = World::new(1, "image").unwrap();
        let thread = world.thread(&world.owner, &ContextId::made_of(9), 0).record;
        let partition = key::thread(&world.owner, &thread.context_id);
        let mut item = item::key_of(&partition, key::META);
        for (name, value) in item::thread(&thread, Duration::ZERO).unwrap() {
            item.insert(name.to_owned(), value);
        }
        assert_eq!(image(&item).unwrap(), None);
        assert_eq!(image(&item::Item::new()).unwrap(), None);
        let mut child = stored(&world.task().unwrap());
        child.insert(key::SK.to_owned(), item::text("EVT#1"));
        assert_eq!(image(&child).unwrap(), None);
    }

    #[test]
    fn an_image_without_its_turn_is_corrupt() {
        let world = World::new(1, "image").unwrap();
        let whole = stored(
            &world
                .next(&world.task().unwrap(), [Change::Dispatch])
                .unwrap(),
        );
        let needed = [
            item::OWNER_SUBJECT,
            item::INCARNATION,
            item::TURN,
            item::VERSION,
        ];
        for name in needed {
            let mut lacking = whole.clone();
            lacking.remove(name);
            let read = image(&lacking);
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{name}");
        }
        for bad in ["x", "-1", "1.5", ""] {
            let mut broken = whole.clone();
            broken.insert(item::DISPATCH.to_owned(), item::text(bad));
            let read = image(&broken);
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{bad}");
        }
    }

    #[cfg(feature = "lambda")]
    #[test]
    fn a_lambda_event_gives_the_same_image() {
        let world = World::new(1, "image").unwrap();
        let item = stored(
            &world
                .next(&world.task().unwrap(), [Change::Dispatch])
                .unwrap(),
        );
        let json: serde_json::Map<_, _> = item
            .iter()
            .map(|(name, value)| {
                let kind = if value.is_n() { "N" } else { "S" };
                (name.clone(), serde_json::json!({kind: plain(value)}))
            })
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
        assert_eq!(
            task_image_of_event(&changed).unwrap(),
            image(&item).unwrap()
        );
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
