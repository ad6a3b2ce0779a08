use super::*;
use crate::keys::META;
use crate::table::{QuerySource, Value};
use a2a_lambda_model::stored::ITEM_MAX;
use a2a_lambda_model::task::distinct::Values;
use a2a_lambda_model::task::{
    Change, Generation, Layout, Metadata, Subject, TaskId, TenantId, Timestamp,
};
use std::collections::BTreeMap;

fn item(record: &TaskRecord, head: Encoded<'static>) -> Item {
    let mut item = keys::task(&record.key()).item();
    item.extend(item::of(attributes(record, head)));
    item
}

#[test]
fn a_task_reads_back_from_its_item_unchanged() {
    let mut values = Values::default();
    let mut states = BTreeMap::new();
    for _ in 0..64 {
        let mut task: TaskRecord = values.make();
        task.fields().layout = Layout::default();
        let head = stored::pieces(&task).unwrap().head;
        let item = item(&task, head);
        assert_eq!(to_task(&item).unwrap(), task);
        let expiry = task.state().is_at_rest().then(|| task.expires_at);
        let ttl = expiry.map(item::seconds);
        assert_eq!(item.get(TTL), ttl.as_ref());
        let created_at = item::millis(task.created_at);
        assert_eq!(item.get(SWEEP_SK), Some(&created_at));
        let place = keys::list_sort(task.status.timestamp, &task.id);
        assert_eq!(item.get(LISTS_SK), Some(&place.into()));
        states.insert(task.state().as_str(), task);
    }
    assert_eq!(states.len(), 8, "{:?}", states.keys());
}

/// The size of an item as DynamoDB counts it, or slightly more.
fn size(item: &Item) -> usize {
    let value = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Number(_) => 21,
        other => panic!("{other:?}"),
    };
    item.iter().map(|(name, it)| name.len() + value(it)).sum()
}

fn with_the_longest_names(at: Timestamp) -> TaskRecord {
    TaskRecord::create(
        TaskId::parse("x".repeat(128)).unwrap(),
        Owner {
            tenant: TenantId::parse("t".repeat(64)).unwrap(),
            subject: Subject::parse("s".repeat(256)).unwrap(),
        },
        ContextId::parse("c".repeat(128)).unwrap(),
        WriteId::made_of(1),
        Generation::V10,
        Metadata::new(),
        at,
    )
}

#[test]
fn an_index_entry_with_the_longest_names_costs_one_write_unit() {
    let at = Timestamp::from_millis(4_102_444_800_000);
    let changes = [
        Change::Start { lease_until: at },
        Change::Complete { message: None },
    ];
    let task = with_the_longest_names(at);
    let mut task = task.next(changes, WriteId::made_of(2), at, at).unwrap();
    task.fields().push_ids = vec![PushId::only()];
    let item = item(&task, Encoded::Text("".into()));
    assert_eq!(item.get(keys::SK), Some(&META.into()));
    for source in [QuerySource::Lists, QuerySource::Sweep] {
        let (partition, sort) = source.keys();
        let mut held = vec![PK, keys::SK, partition, sort];
        held.extend(source.projection());
        let mut entry = item.clone();
        entry.retain(|name, _| held.contains(&name.as_str()));
        assert_eq!(entry.len(), held.len());
        assert!(size(&entry) <= 1024, "{}", size(&entry));
    }
}

#[test]
fn the_longest_names_and_the_largest_content_fit_in_one_item() {
    let at = Timestamp::from_millis(4_102_444_800_000);
    let task = with_the_longest_names(at);
    let start = Change::Start { lease_until: at };
    let mut working = task.next([start], WriteId::made_of(2), at, at).unwrap();
    working.fields().last_dispatch = u64::MAX;
    let canceled = working.next([Change::Cancel], WriteId::made_of(3), at, at);
    for record in [working, canceled.unwrap()] {
        let item = item(&record, Encoded::Deflated(vec![0; ITEM_MAX].into()));
        assert!(size(&item) <= 400 * 1024, "{}", size(&item));
    }
}
