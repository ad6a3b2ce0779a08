//! Makes the keys of tasks and threads, and of what is stored beside them.

use super::{Key, PK, Partition, SK};
use crate::table::{Item, QuerySource, Range, Value};
use a2a_lambda_model::store::{ListPosition, StoreError, ThreadPosition};
use a2a_lambda_model::stored::ChildName;
use a2a_lambda_model::task::{
    ContextId, KeyHash, Owner, PushId, SubjectKey, TaskId, TaskKey, TaskRecord, TenantId,
    ThreadKey, Timestamp, WriteId,
};
use sha2::{Digest as _, Sha256};

/// Sort key of the main item of a task or a thread, which holds the version.
pub const META: &str = "META";
/// Sort key of a task's large values, and of a thread's state.
pub(crate) const STATE: &str = "STATE";
/// Lower bound of the sort keys of a task's children; the upper bound is [`STATE`].
const FIRST_CHILD: &str = "EVT#";
/// Prefix of the sort key of a push config.
const PUSH: &str = "PUSH#";
/// Suffix of the sort key of a push config's delivery item.
const DELIVERY: &str = "#SENT";
/// Prefix of the sort key of a task pointer in the partition of a context. Pointers sort
/// after [`STATE`].
const TASKS: &str = "TASK#";
/// Shards of the index of open tasks. An index partition takes 1,000 writes a second over
/// all tenants, and a task that is stored open costs two. A sweep queries each shard. The
/// number may grow once every reader knows the new one.
pub(crate) const OPEN_SHARDS: u32 = 16;
/// Shards of the index of expiring threads. An index partition takes 1,000 writes a second,
/// and a thread with state costs one or two an hour.
pub(crate) const EXPIRY_SHARDS: u32 = 64;
/// The last time that fits into a sort key, in milliseconds; it is in the year 2286.
const LAST: i64 = 9_999_999_999_999;
/// The largest number in the sort key of a child.
const LARGEST: u64 = 999_999_999_999;

impl Key {
    /// The key of an item that was read.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], never for an item of a table.
    pub fn of(item: &Item) -> Result<Self, StoreError> {
        match (item.get(PK), item.get(SK)) {
            (Some(Value::Text(partition)), Some(Value::Text(sort))) => {
                Ok(Self::new(partition, sort))
            }
            _ => Err(StoreError::Corrupt("an item has no key".to_owned())),
        }
    }

    fn partition_of_table(&self) -> Partition {
        Partition::new(QuerySource::Table, &*self.partition)
    }
}

/// The prefix of all partition keys of a tenant.
#[must_use]
pub fn tenant(tenant: &TenantId) -> String {
    format!("T#{tenant}#")
}

fn in_task(task: &TaskKey, sort: impl Into<String>) -> Key {
    Key::new(format!("T#{}#K#{}", task.tenant(), task.local()), sort)
}

/// The main item of a task.
#[must_use]
pub fn task(task: &TaskKey) -> Key {
    in_task(task, META)
}

/// All items of a task.
#[must_use]
pub fn task_items(task: &TaskKey) -> Partition {
    in_task(task, META).partition_of_table()
}

/// A child of a task. What commits have moved is in order and directly before the `META` item,
/// so that one query returns both. The version makes the key unique where a commit moves no
/// event.
pub(crate) fn child(task: &TaskKey, name: ChildName) -> Key {
    in_task(task, child_sort(name))
}

fn child_sort(name: ChildName) -> String {
    match name {
        ChildName::Moved {
            last_event,
            version,
        } => format!("{}{}", events_from(last_event), digits(version)),
        ChildName::State => STATE.to_owned(),
    }
}

/// A sort key before the children that have events from number `first` on. Those with this last
/// event begin with it.
fn events_from(first: u64) -> String {
    format!("{FIRST_CHILD}{}#", digits(first))
}

/// 12 digits, so that text order is numeric order.
fn digits(number: u64) -> String {
    format!("{:012}", number.min(LARGEST))
}

fn between(first: impl Into<Value>, last: impl Into<Value>) -> Range {
    Range::Between(first.into(), last.into())
}

/// All children of a task. Other items have no child name.
pub(crate) fn children() -> Range {
    between(FIRST_CHILD, STATE)
}

/// The children of a task from one to another.
pub(crate) fn children_between(first: ChildName, last: ChildName) -> Range {
    between(child_sort(first), child_sort(last))
}

/// The children with events after number `after`, and the main item of the task behind them.
pub(crate) fn log_after(after: u64) -> Range {
    between(events_from(after.saturating_add(1)), META)
}

/// The child that an item is; `None` if it is another item.
pub(crate) fn child_of(sort: &str) -> Option<ChildName> {
    if sort == STATE {
        return Some(ChildName::State);
    }
    let (last_event, version) = sort.strip_prefix(FIRST_CHILD)?.split_once('#')?;
    Some(ChildName::Moved {
        last_event: last_event.parse().ok()?,
        version: version.parse().ok()?,
    })
}

/// A push config of a task.
pub(crate) fn push(task: &TaskKey, id: &PushId) -> Key {
    in_task(task, format!("{PUSH}{id}"))
}

/// The progress of the deliveries of a push config. No id contains a `#`.
pub(crate) fn delivery(task: &TaskKey, id: &PushId) -> Key {
    in_task(task, delivery_beside(&format!("{PUSH}{id}")))
}

/// The sort key of a delivery item, from that of its push config.
pub(crate) fn delivery_beside(push: &str) -> String {
    format!("{push}{DELIVERY}")
}

/// Whether this is the sort key of a delivery item.
pub(crate) fn is_delivery(sort: &str) -> bool {
    sort.ends_with(DELIVERY)
}

/// The push configs of a task, and their delivery items.
pub(crate) fn pushes() -> Range {
    Range::Prefix(PUSH.to_owned())
}

/// The address of the task of a partition; `None` for another kind.
#[must_use]
pub fn task_key_of(partition: &str) -> Option<TaskKey> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    TaskKey::from_stored(tenant, local)
}

/// The tenant and the id in the partition key of a task; `None` for another kind.
pub(crate) fn task_of(partition: &str) -> Option<(TenantId, TaskId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    // A client-made id follows the hash of its subject and a `~`; no id contains a `~`.
    let id = local.split_once('~').map_or(local, |(_, id)| id);
    Some((TenantId::parse(tenant).ok()?, TaskId::parse(id).ok()?))
}

/// The open tasks of all tenants, in one shard.
pub(crate) fn open(shard: u32) -> Partition {
    Partition::new(QuerySource::Sweep, format!("open#{shard}"))
}

/// The shard of a task.
pub(crate) fn open_of(task: &TaskKey) -> Partition {
    open(hash(&in_task(task, META).partition) % OPEN_SHARDS)
}

fn in_thread(thread: &ThreadKey, sort: impl Into<String>) -> Key {
    let (tenant, subject, context) = (thread.tenant(), thread.subject(), thread.context());
    Key::new(format!("T#{tenant}#C#{subject}#{context}"), sort)
}

/// The main item of a thread.
#[must_use]
pub fn thread(thread: &ThreadKey) -> Key {
    in_thread(thread, META)
}

/// The state of a thread.
pub(crate) fn thread_state(thread: &ThreadKey) -> Key {
    in_thread(thread, STATE)
}

/// All items of a thread, and the pointers to the tasks of its context.
pub(crate) fn thread_items(thread: &ThreadKey) -> Partition {
    in_thread(thread, META).partition_of_table()
}

/// The main item of a thread and its state.
pub(crate) fn thread_and_state() -> Range {
    between(META, STATE)
}

/// The tenant and the context in the partition key of a thread; `None` for another
/// kind.
pub(crate) fn thread_of(partition: &str) -> Option<(TenantId, ContextId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#C#")?;
    let (_, context) = local.split_once('#')?;
    let context = ContextId::parse(context).ok()?;
    Some((TenantId::parse(tenant).ok()?, context))
}

/// One shard of the expiring threads of all tenants.
#[must_use]
pub fn expiring(shard: u32) -> Partition {
    Partition::new(QuerySource::Sweep, format!("expiry#{shard}"))
}

/// The shard of a thread.
pub(crate) fn expiring_of(thread: &ThreadKey) -> Partition {
    expiring(hash(&in_thread(thread, META).partition) % EXPIRY_SHARDS)
}

fn hash(name: &str) -> u32 {
    let hash = Sha256::digest(name);
    let first = hash.iter().take(4);
    first.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte))
}

/// The position that the check of all objects has reached. It holds no data of a tenant.
pub(crate) fn objects_place() -> Key {
    Key::new("S#sweep", "OBJECTS")
}

/// An idempotency key. The hash covers the subject.
#[must_use]
pub fn idempotency(tenant: &TenantId, key: &KeyHash) -> Key {
    Key::new(format!("T#{tenant}#I#{key}"), "IDEM")
}

/// Whether this is the partition of a context or of documents of a subject. A
/// task's partition may not show its subject: the `META` item in it does.
#[must_use]
pub fn is_of_subject(partition: &str, subject: &SubjectKey) -> bool {
    let (tenant, hash) = (tenant(subject.tenant()), subject.hash());
    let is_of = |kind| partition.starts_with(&format!("{tenant}{kind}#{hash}#"));
    is_of("C") || is_of("O")
}

/// Whether this is a partition of documents that the subjects of a tenant share.
#[must_use]
pub fn is_of_shared_documents(partition: &str) -> bool {
    let of_tenant = partition.strip_prefix("T#");
    let local = of_tenant.and_then(|rest| rest.split_once('#'));
    local.is_some_and(|(_, local)| local.starts_with("D#"))
}

/// The pointer to a task in the partition of its context. Text order is the order in which
/// the tasks were created.
pub(crate) fn pointer(task: &TaskRecord) -> Key {
    let thread = ThreadKey::new(&task.owner, &task.context_id);
    let (created_at, id, incarnation) = (millis(task.created_at), &task.id, &task.incarnation);
    in_thread(&thread, format!("{TASKS}{created_at}#{id}#{incarnation}"))
}

/// All pointers of a context.
pub(crate) fn pointers() -> Range {
    between(TASKS, format!("{TASKS}~"))
}

/// The pointers to the tasks created by `at`.
pub(crate) fn pointers_by(at: Timestamp) -> Range {
    between(TASKS, format!("{TASKS}{}#~", millis(at)))
}

/// The task and the incarnation in the sort key of a pointer.
pub(crate) fn parse_pointer(sort: &str) -> Option<(TaskId, WriteId)> {
    let (_, task) = sort.strip_prefix(TASKS)?.split_once('#')?;
    let (task, incarnation) = task.split_once('#')?;
    Some((TaskId::parse(task).ok()?, WriteId::from_stored(incarnation)))
}

fn list_of(owner: &Owner, kind: &str) -> Partition {
    let (tenant, subject) = (&owner.tenant, owner.subject.hash());
    Partition::new(QuerySource::Lists, format!("T#{tenant}#{kind}#{subject}"))
}

/// The list of an owner's contexts.
#[must_use]
pub fn contexts(owner: &Owner) -> Partition {
    list_of(owner, "X")
}

/// The list of an owner's tasks.
pub(crate) fn list(owner: &Owner) -> Partition {
    list_of(owner, "L")
}

/// The sort key of a task or a context in its list; text order is list order.
pub(crate) fn list_sort(at: Timestamp, id: impl std::fmt::Display) -> String {
    format!("{}#{id}", millis(at))
}

/// The position of a context that [`list_sort`] encoded as `text`.
pub(crate) fn context_position(text: &str) -> Option<ThreadPosition> {
    let (at, context) = text.split_once('#')?;
    Some(ThreadPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        context: ContextId::parse(context).ok()?,
    })
}

/// The places from this status time on, up to the place `last` or the end of the list.
pub(crate) fn places(first: Option<Timestamp>, last: Option<&ListPosition>) -> Range {
    // DynamoDB refuses an empty string in a key condition.
    let first = first.map_or_else(|| "0".to_owned(), |at| list_sort(at, ""));
    let last = last.map_or_else(after_all, |last| list_sort(last.at, &last.task));
    between(first, last)
}

/// The places up to all of this time, or to the end of the list.
pub(crate) fn places_until(last: Option<Timestamp>) -> Range {
    Range::Below(last.map_or_else(after_all, |at| list_sort(at, "~")).into())
}

/// A sort key after every place.
fn after_all() -> String {
    format!("{LAST}~")
}

fn millis(at: Timestamp) -> String {
    // 13 digits, so that text order is time order.
    format!("{:013}", at.as_millis().clamp(0, LAST))
}

#[cfg(test)]
mod tests;
