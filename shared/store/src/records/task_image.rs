//! Reads tasks from the records of the table's stream.
//!
//! The stream has a record for every item of the table. The relay needs only the `META`
//! items of tasks, and of those only the attributes that identify a turn.

use super::task_item::{DISPATCH, NOT_BEFORE, NOTIFY, PUSH_IDS, TURN, push_ids};
use crate::item::{INCARNATION, OWNER_SUBJECT, VERSION};
use crate::keys;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::TaskImage;
use a2a_lambda_model::task::{Owner, Subject, Timestamp, WriteId};
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
    if attribute(keys::SK).as_deref() != Some(keys::META) {
        return Ok(None);
    }
    let partition = attribute(keys::PK).unwrap_or_default();
    let Some((tenant, task)) = keys::task_of(&partition) else {
        return Ok(None);
    };
    let text = |name| attribute(name).ok_or_else(|| missing(name));
    let incarnation = text(INCARNATION)?;
    if incarnation.is_empty() {
        return Err(missing(INCARNATION));
    }
    let subject = Subject::parse(text(OWNER_SUBJECT)?).map_err(|_| missing(OWNER_SUBJECT))?;
    let ids = attribute(PUSH_IDS).unwrap_or_default();
    Ok(Some(TaskImage {
        owner: Owner { tenant, subject },
        task,
        incarnation: WriteId::from_stored(incarnation),
        turn: parse_number(&text(TURN)?, TURN)?,
        version: parse_number(&text(VERSION)?, VERSION)?,
        dispatch: optional(attribute, DISPATCH)?,
        not_before: optional(attribute, NOT_BEFORE)?.map(Timestamp::from_millis),
        notify: optional(attribute, NOTIFY)?,
        push_ids: push_ids(&ids).map_err(|_| missing(PUSH_IDS))?,
    }))
}

fn optional<N: FromStr>(
    attribute: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<N>, StoreError> {
    let digits = attribute(name);
    digits.map(|digits| parse_number(&digits, name)).transpose()
}

fn parse_number<N: FromStr>(digits: &str, name: &'static str) -> Result<N, StoreError> {
    digits.parse().map_err(|_| missing(name))
}

fn missing(name: &'static str) -> StoreError {
    StoreError::Corrupt(format!("no valid `{name}` in the stream image of a task"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SampleData;
    use crate::item;
    use crate::records::{task_item, threads};
    use crate::table::{Item, Value};
    use a2a_lambda_model::stored::Encoded;
    use a2a_lambda_model::task::distinct::Values;
    use a2a_lambda_model::task::{Change, ContextId, TaskId, TaskRecord};
    use a2a_lambda_rows::each_row;

    fn plain(value: &Value) -> Option<String> {
        match value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn stored(record: &TaskRecord) -> Item {
        let head = Encoded::Text("{}".into());
        let mut item = keys::task(&record.key()).item();
        item.extend(item::of(task_item::attributes(record, head)));
        item
    }

    fn image(item: &Item) -> Result<Option<TaskImage>, StoreError> {
        task_image(&|name| item.get(name).and_then(plain))
    }

    #[test]
    fn an_image_names_the_turn_and_the_version_of_its_dispatch() {
        let sample = SampleData::new(1, "image").unwrap();
        for id in [TaskId::made_of(5), TaskId::parse("mine").unwrap()] {
            let task = sample.new_task(&sample.owner, id).unwrap();
            let asked = sample.next(&task, [Change::Dispatch]).unwrap();
            for (record, dispatch) in [(&task, None), (&asked, Some(2))] {
                let expected = TaskImage {
                    owner: sample.owner.clone(),
                    task: task.id.clone(),
                    incarnation: task.incarnation.clone(),
                    turn: 1,
                    version: record.version,
                    dispatch,
                    not_before: None,
                    notify: None,
                    push_ids: Vec::new(),
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
        let sample = SampleData::new(1, "image").unwrap();
        let thread = sample.thread(&sample.owner, &ContextId::made_of(9), 0);
        let mut item = keys::thread(&threads::key(&thread.record)).item();
        let attributes = threads::attributes(&thread).unwrap();
        item.extend(item::of(attributes));
        assert_eq!(image(&item).unwrap(), None);
        assert_eq!(image(&Item::new()).unwrap(), None);
        let mut child = stored(&sample.task().unwrap());
        child.insert(keys::SK.to_owned(), "EVT#1".into());
        assert_eq!(image(&child).unwrap(), None);
    }

    #[test]
    fn an_image_without_its_turn_is_corrupt() {
        let sample = SampleData::new(1, "image").unwrap();
        let whole = stored(
            &sample
                .next(&sample.task().unwrap(), [Change::Dispatch])
                .unwrap(),
        );
        let needed = [OWNER_SUBJECT, INCARNATION, TURN, VERSION];
        each_row(needed, |name| {
            let mut lacking = whole.clone();
            lacking.remove(name);
            let read = image(&lacking);
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{name}");
        });
        each_row(["x", "-1", "1.5", ""], |bad| {
            let mut broken = whole.clone();
            broken.insert(DISPATCH.to_owned(), bad.into());
            let read = image(&broken);
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{bad}");
        });
    }
}
