//! Converts records to items and items to records.
//!
//! The content of a record is `body`: JSON, compressed unless it is short. The other attributes
//! are those that conditions, indexes, stream filters and DynamoDB's TTL read; the body does not
//! repeat them. A task's item has `expires_at` and `ttl` only while the task is at rest, so that
//! a condition on the expiry does not need the state.

use super::key;
use a2a_lambda_model::store::{Expiring, StoreError, ThreadRecord, ThreadStatus};
use a2a_lambda_model::stored::{self, Encoded, TaskFacts};
use a2a_lambda_model::task::{
    ContextId, Owner, PushId, Subject, TaskRecord, TaskState, Timestamp, WriteId,
};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::time::Duration;

/// An item in the form of the SDK.
pub(super) type Item = HashMap<String, AttributeValue>;

/// Attributes by name, in a fixed order.
pub(super) type Attributes = BTreeMap<&'static str, AttributeValue>;

pub(super) const VERSION: &str = "version";
pub(super) const EPOCH: &str = "epoch";
pub(super) const STATE: &str = "state";
pub(super) const CONTEXT: &str = "context";
pub(super) const SUBJECT: &str = "subject";
pub(super) const EXPIRES_AT: &str = "expires_at";
pub(super) const TTL: &str = "ttl";
pub(super) const LEASE_UNTIL: &str = "lease_until";
pub(super) const DISPATCH: &str = "dispatch";
/// Before which no worker begins the turn.
pub(super) const NOT_BEFORE: &str = "not_before";
/// The subject itself, for the relay and the sweep, which have an item and no caller.
pub(super) const OWNER_SUBJECT: &str = "owner_subject";
pub(super) const TURN: &str = "turn";
/// The number of the last event, in the commit that logged it, if the task has push configs.
pub(super) const NOTIFY: &str = "notify";
/// The ids of those push configs.
pub(super) const LISTENERS: &str = "listeners";
pub(super) const INCARNATION: &str = "incarnation";
pub(super) const SCHEMA: &str = "schema";
pub(super) const BODY: &str = "body";
const STATE_VERSION: &str = "state_version";

/// The write ids of a thread's last four writes, newest first.
pub(super) const WRITES: [&str; 4] = ["w0", "w1", "w2", "w3"];

/// Attributes of a task that a commit removes unless it sets them.
pub(super) const OPTIONAL: [&str; 9] = [
    LEASE_UNTIL,
    DISPATCH,
    NOT_BEFORE,
    NOTIFY,
    LISTENERS,
    EXPIRES_AT,
    TTL,
    key::SWEEP_PK,
    key::SWEEP_SK,
];

pub(super) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(super) fn number<N: ToString + Copy>(value: N) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Content as an attribute: a string or a binary. Its type says how the content is encoded.
pub(super) fn content(encoded: Encoded<'static>) -> AttributeValue {
    match encoded {
        Encoded::Text(text) => AttributeValue::S(text.into_owned()),
        Encoded::Deflated(bytes) => AttributeValue::B(Blob::new(bytes.into_owned())),
    }
}

/// The content in the attribute [`BODY`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn body(item: &Item) -> Result<Encoded<'_>, StoreError> {
    match item.get(BODY) {
        Some(AttributeValue::S(text)) => Ok(Encoded::Text(Cow::Borrowed(text))),
        Some(AttributeValue::B(bytes)) => Ok(Encoded::Deflated(Cow::Borrowed(bytes.as_ref()))),
        _ => Err(corrupt("expected a string or a binary in attribute `body`")),
    }
}

/// The same, moved out of the item, since a copy of a large one costs memory.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn take_body(item: &mut Item) -> Result<Encoded<'static>, StoreError> {
    match item.remove(BODY) {
        Some(AttributeValue::S(text)) => Ok(Encoded::Text(text.into())),
        Some(AttributeValue::B(bytes)) => Ok(Encoded::Deflated(bytes.into_inner().into())),
        _ => Err(corrupt("expected a string or a binary in attribute `body`")),
    }
}

/// The key of an item.
pub(super) fn key_of(partition: &str, sort: &str) -> Item {
    [
        (key::PK.to_owned(), text(partition)),
        (key::SK.to_owned(), text(sort)),
    ]
    .into()
}

/// The hash of a subject, as the items of a push config hold it.
pub(super) fn subject(owner: &Owner) -> AttributeValue {
    text(owner.subject.hash())
}

/// The attributes of a task's `META` item, without its key. `head` is its content without
/// the children.
pub(super) fn task(record: &TaskRecord, head: Encoded<'static>) -> Attributes {
    let mut item = Attributes::from([
        (SCHEMA, number(stored::SCHEMA)),
        (VERSION, number(record.version())),
        (EPOCH, number(record.epoch())),
        (STATE, text(record.state().as_str())),
        (CONTEXT, text(record.context_id().as_str())),
        (OWNER_SUBJECT, text(record.owner().subject.as_str())),
        (TURN, number(record.turn())),
        (INCARNATION, text(record.incarnation().as_str())),
        (BODY, content(head)),
    ]);
    let place = key::place(record.status().timestamp, record.id());
    item.insert(key::LISTS_PK, text(key::list(record.owner())));
    item.insert(key::LISTS_SK, text(place));
    if let Some(until) = record.lease_until() {
        item.insert(LEASE_UNTIL, number(until.as_millis()));
    }
    if let Some(version) = record.dispatch() {
        item.insert(DISPATCH, number(version));
    }
    if let Some(at) = record.not_before() {
        item.insert(NOT_BEFORE, number(at.as_millis()));
    }
    if record.state().is_at_rest() {
        item.insert(EXPIRES_AT, number(record.expires_at().as_millis()));
        item.insert(TTL, number(record.expires_at().ttl_seconds()));
    }
    if let Some(seq) = record.notify() {
        item.insert(NOTIFY, number(seq));
    }
    if !record.listeners().is_empty() {
        item.insert(LISTENERS, text(listeners(record)));
    }
    // A task at rest stays in the sweep index until its push deliveries are confirmed.
    if !record.state().is_at_rest() || !record.listeners().is_empty() {
        let partition = key::task(&record.key());
        item.insert(key::SWEEP_PK, text(key::open_of(&partition)));
        // The creation time never changes, so later commits and heartbeats do not write
        // to the index.
        item.insert(key::SWEEP_SK, number(record.created_at().as_millis()));
    }
    item
}

/// The attributes of a child that the commit of `record` writes, without its key.
pub(super) fn child(record: &TaskRecord, encoded: Encoded<'static>) -> Attributes {
    let write = record.write_ids().last().map(WriteId::as_str);
    Attributes::from([
        (VERSION, number(record.version())),
        (INCARNATION, text(record.incarnation().as_str())),
        (WRITES[0], text(write.unwrap_or_default())),
        (TTL, number(stored::child_expiry(record).ttl_seconds())),
        (BODY, content(encoded)),
    ])
}

/// The ids of a task's push configs as one text. No id contains a space.
fn listeners(record: &TaskRecord) -> String {
    let ids: Vec<&str> = record.listeners().iter().map(PushId::as_str).collect();
    ids.join(" ")
}

/// The head of a task from its `META` item. The lease comes from the attribute, since
/// a heartbeat does not write the body.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn to_task(item: &Item) -> Result<TaskRecord, StoreError> {
    stored::head_of(&body(item)?, facts(item)?)
}

/// Whether the item of a task in `owner`'s tenant can belong to `owner`: it names no other
/// subject.
pub(super) fn may_belong_to(item: &Item, owner: &Owner) -> bool {
    string(item, OWNER_SUBJECT).map_or(true, |subject| subject == owner.subject.as_str())
}

/// The facts of a task, from the key and the attributes of its item.
fn facts(item: &Item) -> Result<TaskFacts, StoreError> {
    let partition = string(item, key::PK)?;
    let task = key::task_of(partition);
    let (tenant, id) = task.ok_or_else(|| corrupt("the partition is not one of a task"))?;
    let state = string(item, STATE)?;
    let state = TaskState::parse(state);
    Ok(TaskFacts {
        schema: integer(item, SCHEMA)?,
        id,
        tenant,
        subject: subject_of(item)?,
        context_id: ContextId::parse(string(item, CONTEXT)?).map_err(corrupt)?,
        incarnation: WriteId::stored(string(item, INCARNATION)?),
        state: state.ok_or_else(|| corrupt("unknown state"))?,
        version: integer(item, VERSION)?,
        epoch: integer(item, EPOCH)?,
        turn: integer(item, TURN)?,
        lease_until: optional_time(item, LEASE_UNTIL)?,
        not_before: optional_time(item, NOT_BEFORE)?,
        expires_at: optional_time(item, EXPIRES_AT)?,
        push_configs: match item.get(LISTENERS) {
            None => Vec::new(),
            Some(_) => string(item, LISTENERS)?
                .split_ascii_whitespace()
                .map(|id| PushId::parse(id).map_err(corrupt))
                .collect::<Result<_, _>>()?,
        },
    })
}

fn subject_of(item: &Item) -> Result<Subject, StoreError> {
    Subject::parse(string(item, OWNER_SUBJECT)?).map_err(corrupt)
}

fn time(item: &Item, name: &str) -> Result<Timestamp, StoreError> {
    integer(item, name).map(Timestamp::from_millis)
}

fn optional_time(item: &Item, name: &str) -> Result<Option<Timestamp>, StoreError> {
    let is_there = item.contains_key(name);
    is_there.then(|| time(item, name)).transpose()
}

/// The attributes of a thread, without its key, its state and its write ids. A thread is
/// kept for a while after its expiry, under a client-made id for `tombstone`.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn thread(record: &ThreadRecord, tombstone: Duration) -> Result<Attributes, StoreError> {
    let mut item = Attributes::from([
        (SCHEMA, number(stored::SCHEMA)),
        (VERSION, number(record.version)),
        (OWNER_SUBJECT, text(record.owner.subject.as_str())),
        (STATE_VERSION, number(record.state_version)),
        ("thread_id", text(record.context_id.as_str())),
        ("tenant_id", text(record.owner.tenant.as_str())),
        ("created_at", text(record.created_at.to_rfc3339())),
        ("updated_at", text(record.updated_at.to_rfc3339())),
        ("status", text(record.status.as_str())),
        (EXPIRES_AT, number(record.expires_at.as_millis())),
        (TTL, number(record.kept_until(tombstone).ttl_seconds())),
        (BODY, content(stored::thread_body(record)?)),
    ]);
    if !record.is_cleared() {
        let place = key::context_place(record.updated_at, &record.context_id);
        item.insert(key::LISTS_PK, text(key::contexts(&record.owner)));
        item.insert(key::LISTS_SK, text(place));
    }
    Ok(item)
}

/// The attributes of the sweep index, if the sweep has to look at the thread.
pub(super) fn swept(record: &ThreadRecord, what: Expiring) -> Attributes {
    let Some(at) = record.swept_at(what) else {
        return Attributes::new();
    };
    let partition = key::thread(&record.owner, &record.context_id);
    Attributes::from([
        (key::SWEEP_PK, text(key::expiry_of(&partition))),
        (key::SWEEP_SK, number(at.as_millis())),
    ])
}

/// The `STATE` item of a thread; `None` if the write does not change the state. Readers
/// check the expiry and the sweep removes the item; DynamoDB's TTL comes later.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn thread_state(record: &ThreadRecord) -> Result<Option<Item>, StoreError> {
    if !record.replaces_state() {
        return Ok(None);
    }
    let partition = key::thread(&record.owner, &record.context_id);
    let mut item = key_of(&partition, key::STATE);
    let expiry: Timestamp = record.state_expires_at;
    for (name, value) in swept(record, Expiring::State) {
        item.insert(name.to_owned(), value);
    }
    for (name, value) in [
        (OWNER_SUBJECT, text(record.owner.subject.as_str())),
        (VERSION, number(record.version)),
        (EXPIRES_AT, number(expiry.as_millis())),
        (TTL, number(record.state_kept_until().ttl_seconds())),
        (BODY, content(stored::encode_state(&record.state)?)),
    ] {
        item.insert(name.to_owned(), value);
    }
    Ok(Some(item))
}

/// The result of joining a thread's two items.
pub(super) enum JoinedThread {
    /// The thread.
    Thread(Box<ThreadRecord>),
    /// The items are from two different writes, so the reader reads again. Holds the
    /// version of the `META` item.
    Torn(u64),
    /// The thread names a state that does not exist. It was removed after its expiry, or
    /// the read ran during a transaction.
    Stateless(Box<ThreadRecord>),
}

/// Joins the two items of a thread.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn to_thread(meta: &Item, state: Option<&Item>) -> Result<JoinedThread, StoreError> {
    let mut record = Box::new(thread_head(meta)?);
    let wanted = record.state_version;
    if wanted == 0 {
        return Ok(JoinedThread::Thread(record));
    }
    let Some(state) = state else {
        return Ok(JoinedThread::Stateless(record));
    };
    if integer::<u64>(state, VERSION)? != wanted {
        return Ok(JoinedThread::Torn(record.version));
    }
    record.state = stored::decode_state(&body(state)?)?;
    Ok(JoinedThread::Thread(record))
}

/// Whether the `META` item of a thread names this version of the state.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn names_state(meta: &Item, state: &Item) -> Result<bool, StoreError> {
    let wanted: u64 = integer(meta, STATE_VERSION)?;
    Ok(wanted > 0 && integer::<u64>(state, VERSION)? == wanted)
}

/// The thread from its `META` item, without its state.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn thread_head(meta: &Item) -> Result<ThreadRecord, StoreError> {
    stored::known(integer(meta, SCHEMA)?)?;
    let thread = key::thread_of(string(meta, key::PK)?);
    let (tenant, context_id) = thread.ok_or_else(|| corrupt("the partition is not a thread's"))?;
    let statuses = [ThreadStatus::Active, ThreadStatus::Cleared];
    let status = string(meta, "status")?;
    let status = statuses.into_iter().find(|it| it.as_str() == status);
    let read = |name| {
        let time = Timestamp::parse_rfc3339(string(meta, name)?);
        time.ok_or_else(|| corrupt(format_args!("expected a time in attribute `{name}`")))
    };
    let owner = Owner {
        tenant,
        subject: subject_of(meta)?,
    };
    let (created_at, updated_at) = (read("created_at")?, read("updated_at")?);
    let mut record = ThreadRecord {
        version: integer(meta, VERSION)?,
        status: status.ok_or_else(|| corrupt("unknown status"))?,
        expires_at: time(meta, EXPIRES_AT)?,
        state_version: integer(meta, STATE_VERSION)?,
        ..ThreadRecord::begun(owner, context_id, created_at, updated_at)
    };
    stored::restore_thread(&mut record, &body(meta)?)?;
    Ok(record)
}

/// Whether `write` is one of the last writes of a thread.
pub(super) fn thread_written_by(meta: &Item, write: &WriteId) -> bool {
    WRITES
        .iter()
        .filter_map(|name| meta.get(*name)?.as_s().ok())
        .any(|stored| stored == write.as_str())
}

/// A string attribute.
pub(super) fn string<'a>(item: &'a Item, name: &str) -> Result<&'a str, StoreError> {
    item.get(name)
        .and_then(|value| value.as_s().ok())
        .map(String::as_str)
        .ok_or_else(|| corrupt(format_args!("expected a string in attribute `{name}`")))
}

/// A number attribute.
pub(super) fn integer<N: FromStr>(item: &Item, name: &str) -> Result<N, StoreError> {
    item.get(name)
        .and_then(|value| value.as_n().ok())
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| corrupt(format_args!("expected a number in attribute `{name}`")))
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::stored::ITEM_MAX;
    use a2a_lambda_model::task::distinct::Values;
    use a2a_lambda_model::task::{Change, Generation, Layout, Metadata, NewTask, TaskId, TenantId};

    fn item(partition: &str, attributes: Attributes) -> Item {
        let mut item = key_of(partition, key::META);
        let named = attributes.into_iter();
        item.extend(named.map(|(name, value)| (name.to_owned(), value)));
        item
    }

    #[test]
    fn a_task_reads_back_from_its_item_unchanged() {
        let mut values = Values::default();
        let mut states = BTreeMap::new();
        for _ in 0..64 {
            let mut task: TaskRecord = values.make();
            *task.fields().layout = Layout::default();
            let head = stored::pieces(&task).unwrap().head;
            let attributes = super::task(&task, head);
            let item = item(&key::task(&task.key()), attributes);
            assert_eq!(to_task(&item).unwrap(), task);
            let expiry = task.state().is_at_rest().then(|| task.expires_at());
            let ttl = expiry.map(|at| number(at.ttl_seconds()));
            assert_eq!(item.get(TTL), ttl.as_ref());
            let created_at = number(task.created_at().as_millis());
            assert_eq!(item.get(key::SWEEP_SK), Some(&created_at));
            let place = text(key::place(task.status().timestamp, task.id()));
            assert_eq!(item.get(key::LISTS_SK), Some(&place));
            states.insert(task.state().as_str(), task);
        }
        assert_eq!(states.len(), 8, "{:?}", states.keys());
    }

    #[test]
    fn a_thread_reads_back_from_its_items_unchanged() {
        let mut values = Values::default();
        for _ in 0..2 {
            let thread: ThreadRecord = values.make();
            let tombstone = Duration::from_secs(values.make());
            let partition = key::thread(&thread.owner, &thread.context_id);
            let meta = super::thread(&thread, tombstone).unwrap();
            let meta = item(&partition, meta);
            let of_state = ThreadRecord {
                version: thread.state_version,
                ..thread.clone()
            };
            let state = thread_state(&of_state).unwrap();
            let JoinedThread::Thread(read) = to_thread(&meta, state.as_ref()).unwrap() else {
                panic!("{meta:?}");
            };
            assert_eq!(*read, thread);
            let kept = number(thread.kept_until(tombstone).ttl_seconds());
            assert_eq!(meta.get(TTL), Some(&kept));
            for (name, at) in [
                ("created_at", thread.created_at),
                ("updated_at", thread.updated_at),
            ] {
                assert_eq!(meta.get(name), Some(&text(at.to_rfc3339())));
            }
            let end = number(thread.state_expires_at.as_millis());
            assert_eq!(state.unwrap().get(EXPIRES_AT), Some(&end));
        }
    }

    /// The size of an item as DynamoDB counts it, or slightly more.
    fn size(item: &Attributes) -> usize {
        let value = |value: &AttributeValue| match value {
            AttributeValue::S(text) => text.len(),
            AttributeValue::B(bytes) => bytes.as_ref().len(),
            AttributeValue::N(_) => 21,
            other => panic!("{other:?}"),
        };
        item.iter().map(|(name, it)| name.len() + value(it)).sum()
    }

    fn with_the_longest_names(at: Timestamp) -> TaskRecord {
        TaskRecord::create(NewTask {
            id: TaskId::parse("x".repeat(128)).unwrap(),
            owner: Owner {
                tenant: TenantId::parse("t".repeat(64)).unwrap(),
                subject: Subject::parse("s".repeat(256)).unwrap(),
            },
            context_id: ContextId::parse("c".repeat(128)).unwrap(),
            generation: Generation::V10,
            incarnation: WriteId::made_of(1),
            metadata: Metadata::new(),
            created_at: at,
        })
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
        *task.fields().listeners = vec![PushId::only()];
        let mut item = super::task(&task, Encoded::Text("".into()));
        let partition = key::task(&task.key());
        item.extend([(key::PK, text(partition)), (key::SK, text(key::META))]);
        // The attributes that `table.rs` projects into each index.
        let lists = [key::LISTS_PK, key::LISTS_SK, STATE, CONTEXT, EXPIRES_AT];
        let sweep = [key::SWEEP_PK, key::SWEEP_SK, OWNER_SUBJECT];
        for held in [lists.as_slice(), sweep.as_slice()] {
            let mut entry = item.clone();
            entry.retain(|name, _| held.contains(name) || [key::PK, key::SK].contains(name));
            assert_eq!(entry.len(), held.len() + 2);
            assert!(size(&entry) <= 1024, "{}", size(&entry));
        }
    }

    #[test]
    fn the_longest_names_and_the_largest_content_fit_in_one_item() {
        let at = Timestamp::from_millis(4_102_444_800_000);
        let task = with_the_longest_names(at);
        let start = Change::Start { lease_until: at };
        let mut working = task.next([start], WriteId::made_of(2), at, at).unwrap();
        *working.fields().last_dispatch = u64::MAX;
        let canceled = working.next([Change::Cancel], WriteId::made_of(3), at, at);
        for record in [working, canceled.unwrap()] {
            let mut item = super::task(&record, Encoded::Deflated(vec![0; ITEM_MAX].into()));
            let partition = key::task(&record.key());
            item.extend([(key::PK, text(partition)), (key::SK, text(key::META))]);
            assert!(size(&item) <= 400 * 1024, "{}", size(&item));
        }
    }
}
