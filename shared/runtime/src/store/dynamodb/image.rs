//! What the table's stream says of a task.
//!
//! The stream carries every item of the table; only the deciding item of a
//! task is of interest, and of that only what names a turn.

use super::{item, key};
use crate::store::StoreError;
use crate::store::queue::TaskImage;
use crate::task::{Owner, PushId, Subject, TaskKey, ThreadKey, WriteId};
use std::str::FromStr;

/// Who removes the items whose time is up.
const EXPIRY: &str = "dynamodb.amazonaws.com";

/// The task in the new image of a stream record; `None` for an item that is no
/// task. `attribute` gives the text or the digits of an attribute by its name,
/// for whichever types the record came in.
///
/// # Errors
/// [`StoreError::Corrupt`] when a task lacks what names its turn.
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
        notify,
        listeners: listeners(attribute)?,
    }))
}

/// The task in a record of a stream event as Lambda hands it over; `None` for
/// a removal and for an item that is no task.
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

/// What the table has let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// A task.
    Task(TaskKey),
    /// A conversation.
    Thread(ThreadKey),
}

/// The task or the conversation of which a stream record says that the table let
/// its item go, and which may have left objects; `None` for a record of something
/// else. `text` gives a key by its name, `was` an attribute of the item as it was,
/// `principal` who removed the item: only native expiry counts, since whoever
/// deletes something sees to its objects as well.
///
/// A task that never had an object says so. One that says nothing, or of which
/// the stream does not show what it was, may have some.
#[must_use]
pub fn removed(
    text: &dyn Fn(&str) -> Option<String>,
    was: &dyn Fn(&str) -> Option<String>,
    principal: Option<&str>,
) -> Option<Removed> {
    if principal != Some(EXPIRY) || text(key::SK).as_deref() != Some(key::META) {
        return None;
    }
    if was(item::BARE).is_some() {
        return None;
    }
    let partition = text(key::PK)?;
    let task = key::task_key(&partition).map(Removed::Task);
    task.or_else(|| key::thread_key(&partition).map(Removed::Thread))
}

/// What was let go, in a record of a stream event as Lambda hands it over.
#[cfg(feature = "lambda")]
#[must_use]
pub fn removed_of_event(
    record: &aws_lambda_events::event::dynamodb::EventRecord,
) -> Option<Removed> {
    use serde_dynamo::AttributeValue;
    if record.event_name != "REMOVE" {
        return None;
    }
    let principal = record.user_identity.as_ref();
    let principal = principal.map(|user| user.principal_id.as_str());
    let plain = |value: &AttributeValue| match value {
        AttributeValue::S(text) | AttributeValue::N(text) => Some(text.clone()),
        _ => None,
    };
    let (keys, was) = (record.change.keys.inner(), record.change.old_image.inner());
    let text = |name: &str| plain(keys.get(name)?);
    let was = |name: &str| plain(was.get(name)?);
    removed(&text, &was, principal)
}

/// The webhooks of the task.
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
    StoreError::Corrupt(format!("no `{name}` in the image of a task"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contract::World;
    use crate::task::{Change, ContextId, TaskId, TaskRecord};
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
        for (name, value) in item::task(record, std::num::NonZeroU32::MIN, "{}".to_owned()) {
            item.insert(name.to_owned(), value);
        }
        item
    }

    fn image(item: &item::Item) -> Result<Option<TaskImage>, StoreError> {
        task_image(&|name| item.get(name).and_then(plain))
    }

    #[test]
    fn an_image_names_the_turn_and_who_asked_for_a_worker() {
        let world = World::new(1, "image").unwrap();
        for id in [TaskId::made_of(5), TaskId::parse("mine").unwrap()] {
            let task = world.new_task(&world.owner, id).unwrap();
            let asked = world.next(&task, [Change::Dispatch]).unwrap();
            for (record, dispatch) in [(&task, None), (&asked, Some(2))] {
                let expected = TaskImage {
                    owner: world.owner.clone(),
                    task: task.id().clone(),
                    incarnation: task.incarnation.clone(),
                    turn: 1,
                    version: record.version(),
                    dispatch,
                    notify: None,
                    listeners: Vec::new(),
                };
                assert_eq!(image(&stored(record)).unwrap(), Some(expected));
            }
        }
    }

    #[test]
    fn an_item_that_is_no_task_has_no_image() {
        let world = World::new(1, "image").unwrap();
        let thread = world.thread(&world.owner, &ContextId::made_of(9), 0).record;
        let partition = key::thread(&world.owner, &thread.context_id);
        let mut item = item::key_of(&partition, key::META);
        for (name, value) in
            item::thread(&thread, Duration::ZERO, std::num::NonZeroU32::MIN).unwrap()
        {
            item.insert(name.to_owned(), value);
        }
        assert_eq!(image(&item).unwrap(), None);
        assert_eq!(image(&item::Item::new()).unwrap(), None);
        let mut child = stored(&world.task().unwrap());
        child.insert(key::SK.to_owned(), item::text("EVT#1"));
        assert_eq!(image(&child).unwrap(), None);
    }

    #[test]
    fn an_image_that_names_no_turn_is_corrupt() {
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

    #[test]
    fn a_task_that_never_had_an_object_leaves_nothing_to_look_for() {
        let world = World::new(1, "image").unwrap();
        let task = world.task().unwrap();
        let key = item::key_of(&key::task(&task.key()), key::META);
        let text = |name: &str| key.get(name).and_then(plain);
        let gone = |was: &item::Item| {
            let was = |name: &str| was.get(name).and_then(plain);
            removed(&text, &was, Some(EXPIRY))
        };
        let item = stored(&task);
        assert_eq!(gone(&item), Some(Removed::Task(task.key())));
        // The stream of a table that an earlier release has made.
        let nothing = item::Item::new();
        assert_eq!(gone(&nothing), Some(Removed::Task(task.key())));
        let bare = [(item::BARE.to_owned(), item::number(1))].into_iter();
        assert_eq!(gone(&item.into_iter().chain(bare).collect()), None);
    }

    #[cfg(feature = "lambda")]
    #[test]
    fn an_event_of_lambda_has_the_same_image() {
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
            "StreamViewType": "NEW_AND_OLD_IMAGES",
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
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }));
        assert_eq!(task_image_of_event(&removed).unwrap(), None);
    }
}
