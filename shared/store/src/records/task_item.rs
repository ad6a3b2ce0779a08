//! Converts a task to its items and back.
//!
//! A task's item has `expires_at` and `ttl` only while the task is at rest, so that a condition
//! on the expiry does not need the state.

use crate::item::{
    self, Attributes, CONTEXT, EXPIRES_AT, INCARNATION, LEASE_UNTIL, OWNER_SUBJECT, SCHEMA, STATE,
    TTL, VERSION, corrupt, count,
};
use crate::keys::{self, LISTS_PK, LISTS_SK, PK, SWEEP_PK, SWEEP_SK};
use crate::table::{Comparison, Condition, Item, ItemChange, Statement};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored::{self, Encoded, TaskFacts};
use a2a_lambda_model::task::{
    ContextId, IdError, Owner, PushId, TaskKey, TaskRecord, TaskState, WriteId,
};

pub(super) const EPOCH: &str = "epoch";
pub(super) const TURN: &str = "turn";
pub(super) const DISPATCH: &str = "dispatch";
/// Before which no worker begins the turn.
pub(super) const NOT_BEFORE: &str = "not_before";
/// The number of the last event, in the commit that logged it, if the task has push configs.
pub(super) const NOTIFY: &str = "notify";
/// The ids of those push configs.
pub(super) const PUSH_IDS: &str = "push_ids";

/// The attributes of a task's `META` item, without its key. `head` is its content without
/// the children.
pub(super) fn attributes(record: &TaskRecord, head: Encoded<'static>) -> Attributes {
    let at_rest = record.state().is_at_rest();
    let ends = at_rest.then(|| record.expires_at);
    // A task at rest stays in the sweep index until its push deliveries are confirmed.
    let is_swept = !at_rest || !record.push_ids.is_empty();
    let open = is_swept.then(|| keys::open_of(&record.key()));
    // The creation time never changes, so later commits and heartbeats do not write to the index.
    let since = is_swept.then(|| item::millis(record.created_at));
    let list_key = keys::list_sort(record.status.timestamp, &record.id);
    let incarnation = record.incarnation.as_str();
    vec![
        (SCHEMA, Some(i64::from(stored::SCHEMA).into())),
        (VERSION, Some(count(record.version))),
        (EPOCH, Some(count(record.epoch))),
        (STATE, Some(record.state().as_str().into())),
        (CONTEXT, Some(record.context_id.as_str().into())),
        (OWNER_SUBJECT, Some(record.owner.subject.as_str().into())),
        (TURN, Some(i64::from(record.turn).into())),
        (INCARNATION, Some(incarnation.into())),
        (item::BODY, Some(item::content(head))),
        (LISTS_PK, Some(keys::list(&record.owner).key().into())),
        (LISTS_SK, Some(list_key.into())),
        (LEASE_UNTIL, record.lease_until.map(item::millis)),
        (DISPATCH, record.dispatch().map(count)),
        (NOT_BEFORE, record.not_before.map(item::millis)),
        (EXPIRES_AT, ends.map(item::millis)),
        (TTL, ends.map(item::seconds)),
        (NOTIFY, record.notify().map(count)),
        (PUSH_IDS, join_push_ids(record).map(Into::into)),
        (SWEEP_PK, open.map(|open| open.key().into())),
        (SWEEP_SK, since),
    ]
}

/// The ids of a task's push configs as one text. No id contains a space.
fn join_push_ids(record: &TaskRecord) -> Option<String> {
    let ids: Vec<&str> = record.push_ids.iter().map(PushId::as_str).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// The ids in such a text.
pub(super) fn push_ids(text: &str) -> Result<Vec<PushId>, IdError> {
    text.split_ascii_whitespace().map(PushId::parse).collect()
}

/// The head of a task from its `META` item. The lease comes from the attribute, since
/// a heartbeat does not write the body.
///
/// # Errors
/// [`StoreError::Form`] for a form that this program does not read, else
/// [`StoreError::Corrupt`].
pub fn to_task(item: &Item) -> Result<TaskRecord, StoreError> {
    let facts = facts(item)?;
    stored::head_of(&item::body(item)?, facts)
}

/// Whether the item of a task in `owner`'s tenant can belong to `owner`: it names no other
/// subject.
pub(super) fn may_belong_to(item: &Item, owner: &Owner) -> bool {
    item::text(item, OWNER_SUBJECT).map_or(true, |subject| subject == owner.subject.as_str())
}

/// The facts of a task, from the key and the attributes of its item.
fn facts(item: &Item) -> Result<TaskFacts, StoreError> {
    let schema = item::form(item)?;
    let task = keys::task_of(item::text(item, PK)?);
    let (tenant, id) = task.ok_or_else(|| corrupt("the partition is not one of a task"))?;
    let state = TaskState::parse(item::text(item, STATE)?);
    Ok(TaskFacts {
        schema,
        id,
        tenant,
        subject: item::subject(item)?,
        context_id: ContextId::parse(item::text(item, CONTEXT)?).map_err(corrupt)?,
        incarnation: WriteId::from_stored(item::text(item, INCARNATION)?),
        state: state.ok_or_else(|| corrupt("unknown state"))?,
        version: item::number(item, VERSION)?,
        epoch: item::number(item, EPOCH)?,
        turn: item::number(item, TURN)?,
        lease_until: item::optional_time(item, LEASE_UNTIL)?,
        not_before: item::optional_time(item, NOT_BEFORE)?,
        expires_at: item::optional_time(item, EXPIRES_AT)?,
        push_configs: match item.get(PUSH_IDS) {
            None => Vec::new(),
            Some(_) => push_ids(item::text(item, PUSH_IDS)?).map_err(corrupt)?,
        },
    })
}

/// The end of a task's life, whatever its state is, and the removal of the ended task's item. After
/// the first no reader finds the task and no commit of its turn is stored, so what is stored for
/// it can be removed. A task that a client begins under the same id meanwhile stays.
#[must_use]
pub fn end_of_life(task: &TaskKey) -> [Statement; 2] {
    let is_ended = Condition::is(EXPIRES_AT, Comparison::Equal, 0);
    let end = [
        ItemChange::set(STATE, TaskState::Canceled.as_str()),
        ItemChange::set(EXPIRES_AT, 0),
    ];
    let end = Statement::update(keys::task(task), end).when(Condition::exists(PK));
    [end, Statement::delete(keys::task(task)).when(is_ended)]
}

/// The item has this version.
pub(super) fn has_version(version: u64) -> Condition {
    Condition::is(VERSION, Comparison::Equal, count(version))
}

/// The same task, not an earlier or later one with its id.
pub(super) fn is_same(incarnation: &WriteId) -> Condition {
    Condition::is(INCARNATION, Comparison::Equal, incarnation.as_str())
}

/// An earlier or later task with this id.
pub(super) fn is_another(incarnation: &WriteId) -> Condition {
    Condition::is(INCARNATION, Comparison::Differs, incarnation.as_str())
}

/// The task belongs to this owner. The key of a server-made task id holds the tenant but not
/// the subject.
pub(super) fn is_owned_by(owner: &Owner) -> Condition {
    Condition::is(OWNER_SUBJECT, Comparison::Equal, owner.subject.as_str())
}

#[cfg(test)]
mod tests;
