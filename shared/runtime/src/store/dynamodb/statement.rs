//! A conditional write as data: alone it becomes one call, beside others a
//! transaction.

use super::item::{self, Attributes, Item};
use super::{key, object, push};
use crate::store::{
    Expect, Expiring, ExpiringThread, StoreError, TaskWrite, ThreadRecord, ThreadStatus,
    ThreadWrite,
};
use crate::task::{ContextId, Owner, PushRecord, TaskRecord, TaskState, Timestamp, WriteId};
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// One item to write under a condition.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) kind: Kind,
    pub(super) condition: Option<String>,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

/// How the item is written.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// It replaces whatever stood there.
    Put(Item),
    /// It changes what stands there; attributes of other versions of this
    /// program stay.
    Update {
        /// The item's key.
        key: Item,
        /// The update expression.
        expression: String,
    },
    /// It goes.
    Delete(Item),
}

/// Not expired: only an item at rest has an expiry at all.
const LIVE: &str = "(attribute_not_exists(#expires_at) OR #expires_at > :now)";

/// The task of one owner: ids which the server makes are the tenant's alone.
const OWNED: &str = "#owner_subject = :owner";

/// The very task, and not another one that had its id before or has it since.
const SAME: &str = "#incarnation = :same";

impl Statement {
    /// The write of a task's own item, which holds `head`; its owner's list has
    /// `shards` shards. `objects` says whether anything of it is an object.
    pub(super) fn task(write: &TaskWrite, shards: NonZeroU32, head: String, objects: bool) -> Self {
        let mut attributes = item::task(&write.record, shards, head);
        let partition = key::task(&write.record.key());
        let mut statement = match &write.expect {
            Expect::Absent => {
                // Below an id of a client's may lie what the task before has left.
                if !objects && write.record.id().is_server_made() {
                    attributes.insert(item::BARE, item::number(1));
                }
                Self::put(&partition, attributes)
                    .when("attribute_not_exists(PK) OR #expires_at <= :now")
            }
            Expect::Version {
                version,
                incarnation,
            } => {
                let gone = item::OPTIONAL.into_iter();
                let gone = gone.filter(|name| !attributes.contains_key(name));
                let gone: Vec<_> = gone.chain(objects.then_some(item::BARE)).collect();
                let mut update = Self::update(&partition, attributes, &gone);
                update.name(item::VERSION);
                update.owned_by(write.record.owner());
                update.value(":was", item::number(*version));
                update.same_task(incarnation);
                update.when(&format!(
                    "#version = :was AND {SAME} AND {OWNED} AND {LIVE}"
                ))
            }
        };
        statement.now(write.now);
        statement
    }

    /// Whether it writes an item whose content is an object.
    pub(super) fn names_object(&self) -> bool {
        matches!(&self.kind, Kind::Put(item) if item.contains_key(object::KEY))
    }

    /// The write of a child that replaces what stood there.
    pub(super) fn child(item: Item) -> Self {
        Self::new(Kind::Put(item))
    }

    /// The write of a child that never replaces one of the same task; what an
    /// earlier task of this id has left may stand there.
    pub(super) fn new_child(item: Item, incarnation: &str) -> Self {
        let mut put = Self::new(Kind::Put(item));
        put.name(item::INCARNATION);
        put.value(":mine", item::text(incarnation));
        put.when("attribute_not_exists(PK) OR #incarnation <> :mine")
    }

    /// A later time at which native TTL may remove a child.
    pub(super) fn keep(partition: &str, sort: &str, until: i64) -> Self {
        let mut update = Self::new(Kind::Update {
            key: item::key_of(partition, sort),
            expression: "SET #ttl = :ttl".to_owned(),
        });
        update.name(item::TTL);
        update.value(":ttl", item::number(until));
        update.when("#ttl < :ttl")
    }

    /// A longer lease for the turn that runs in `record`. Nothing else
    /// changes, so no commit on its way loses to it.
    pub(super) fn heartbeat(record: &TaskRecord, until: Timestamp) -> Self {
        let partition = key::task(&record.key());
        let lease = Attributes::from([(item::LEASE_UNTIL, item::number(until.as_millis()))]);
        // A heartbeat has nothing new to push.
        let mut update = Self::update(&partition, lease, &[item::NOTIFY]);
        update.name(item::EPOCH);
        update.name(item::STATE);
        update.owned_by(record.owner());
        update.same_task(&record.incarnation);
        update.value(":mine", item::number(record.epoch()));
        update.value(":working", item::text(TaskState::Working.as_str()));
        update.when(&format!(
            "#epoch = :mine AND {SAME} AND #state = :working AND {OWNED} \
             AND attribute_exists(#lease_until)"
        ))
    }

    /// A task at rest off the sweep's index: its webhooks know. Nothing else
    /// changes.
    pub(super) fn confirmed(record: &TaskRecord) -> Self {
        let meta = item::key_of(&key::task(&record.key()), key::META);
        let gone = [key::SWEEP_PK, key::SWEEP_SK, item::NOTIFY];
        let mut update = Self::update_at(meta, Attributes::new(), &gone);
        update.name(item::VERSION);
        update.value(":was", item::number(record.version()));
        update.same_task(&record.incarnation);
        update.when(&format!("#version = :was AND {SAME}"))
    }

    /// The writes of a webhook of which nothing is delivered, over one of the
    /// same id.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn push(push: &PushRecord) -> Result<[Self; 2], StoreError> {
        Ok(push::items_of(push)?.map(|item| Self::new(Kind::Put(item))))
    }

    /// The write of a thread without its state; its owner's list has `shards`
    /// shards.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn thread(
        write: &ThreadWrite,
        tombstone: Duration,
        shards: NonZeroU32,
    ) -> Result<Self, StoreError> {
        let record = &write.record;
        let mut attributes = item::thread(record, tombstone, shards)?;
        let partition = key::thread(&record.owner, &record.context_id);
        let [newest, older @ ..] = item::WRITES;
        attributes.insert(newest, item::text(write.write.as_str()));
        let active = record.status == ThreadStatus::Active;
        let cleared = record.settles_at();
        let cleared = cleared.filter(|_| record.status == ThreadStatus::Cleared);
        if let Some(at) = cleared {
            // Whatever was noted before: the sweep finishes the deletion.
            attributes.extend(item::noted(&partition, at));
        }
        // Only a client-made id leaves something to be swept, its tombstone.
        let swept = active && !record.context_id.is_server_made();
        let noted = item::noted(&partition, record.expires_at);
        if write.expect == 0 {
            attributes.extend(noted.into_iter().filter(|_| swept));
            return Ok(Self::put(&partition, attributes).when("attribute_not_exists(PK)"));
        }
        let optional = [key::LISTS_PK, key::LISTS_SK, key::SWEEP_PK, key::SWEEP_SK];
        let mut gone = optional.to_vec();
        gone.retain(|name| !active && !attributes.contains_key(name));
        let mut update = Self::update(&partition, attributes, &gone);
        // What is noted stays: a sweep that comes by then notes the new expiry.
        for (name, value) in noted.into_iter().filter(|_| swept) {
            update.name(name);
            update.value(&format!(":{name}"), value);
            update.also_set(&format!("#{name} = if_not_exists(#{name}, :{name})"));
        }
        // Every older write moves one place down; all right-hand sides are
        // read before any is set.
        for (place, before) in older.into_iter().zip(item::WRITES) {
            update.name(place);
            update.also_set(&format!("#{place} = if_not_exists(#{before}, :{newest})"));
        }
        update.value(":was", item::number(write.expect));
        Ok(update.when("#version = :was"))
    }

    /// The write of a thread's state; `None` if there is none to keep. The
    /// thread's condition stands for it.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn thread_state(write: &ThreadWrite) -> Result<Option<Self>, StoreError> {
        let item = item::thread_state(&write.record)?;
        Ok(item.map(|item| Self::new(Kind::Put(item))))
    }

    /// Notes the expiry of a thread, or of its state, for the sweep.
    pub(super) fn expiry(hint: &ExpiringThread, thread: &ThreadRecord) -> Self {
        let partition = key::thread(&hint.owner, &hint.context_id);
        let (sort, at) = match hint.what {
            Expiring::Thread => (key::META, thread.expires_at),
            Expiring::State => (key::STATE, thread.state_expires_at),
        };
        let mut attributes = Attributes::from(item::noted(&partition, at));
        if hint.what == Expiring::State {
            let last = thread.state_kept_until().ttl_seconds();
            attributes.insert(item::EXPIRES_AT, item::number(at.as_millis()));
            attributes.insert(item::TTL, item::number(last));
        }
        let mut update = Self::update(&partition, attributes, &[]);
        if let Kind::Update { key, .. } = &mut update.kind {
            *key = item::key_of(&partition, sort);
        }
        if hint.what == Expiring::Thread {
            // Whoever has written it since, a deletion say, has noted more.
            update.name(item::VERSION);
            update.value(":was", item::number(thread.version));
            return update.when("#version = :was");
        }
        update.when("attribute_exists(PK)")
    }

    /// Removes the deciding item of a task that is stored as in `record`.
    pub(super) fn no_task(record: &TaskRecord) -> Self {
        let partition = key::task(&record.key());
        let mut statement = Self::gone(item::key_of(&partition, key::META));
        statement.name(item::VERSION);
        statement.value(":was", item::number(record.version()));
        statement.owned_by(record.owner());
        statement.same_task(&record.incarnation);
        statement.when(&format!("#version = :was AND {SAME} AND {OWNED}"))
    }

    /// Removes a thread's deciding item that is stored as in `record`.
    pub(super) fn no_thread(record: &ThreadRecord) -> Self {
        let partition = key::thread(&record.owner, &record.context_id);
        let mut statement = Self::gone(item::key_of(&partition, key::META));
        statement.name(item::VERSION);
        statement.value(":was", item::number(record.version));
        statement.when("#version = :was")
    }

    /// Removes a thread's state, unless a write after `version` has put it there.
    pub(super) fn no_state_up_to(record: &ThreadRecord) -> Self {
        let partition = key::thread(&record.owner, &record.context_id);
        let mut statement = Self::gone(item::key_of(&partition, key::STATE));
        statement.name(item::VERSION);
        statement.value(":last", item::number(record.version));
        statement.when("#version <= :last")
    }

    /// Removes an item in which the attribute `name` is still as it was `seen`.
    pub(super) fn gone_as_seen(seen: &Item, name: &str) -> Self {
        let at = [key::PK, key::SK].into_iter();
        let at = at.filter_map(|name| Some((name.to_owned(), seen.get(name)?.clone())));
        let mut statement = Self::gone(at.collect());
        if let Some(value) = seen.get(name) {
            statement.name(name);
            statement.value(":seen", value.clone());
            let condition = format!("#{name} = :seen");
            return statement.when(&condition);
        }
        statement
    }

    /// Removes an item, if it is there.
    pub(super) fn gone(key: Item) -> Self {
        Self::new(Kind::Delete(key))
    }

    /// Removes a thread's state that has expired by `now`.
    pub(super) fn no_state(owner: &Owner, id: &ContextId, now: Timestamp) -> Self {
        let partition = key::thread(owner, id);
        let mut statement = Self::new(Kind::Delete(item::key_of(&partition, key::STATE)));
        statement.now(now);
        statement.when("#expires_at <= :now")
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            condition: None,
            names: HashMap::new(),
            values: HashMap::new(),
        }
    }

    fn put(partition: &str, attributes: Attributes) -> Self {
        Self::put_at(partition, key::META, attributes)
    }

    pub(super) fn put_at(partition: &str, sort: &str, attributes: Attributes) -> Self {
        let mut item = item::key_of(partition, sort);
        for (name, value) in attributes {
            item.insert(name.to_owned(), value);
        }
        Self::new(Kind::Put(item))
    }

    fn update(partition: &str, attributes: Attributes, gone: &[&str]) -> Self {
        Self::update_at(item::key_of(partition, key::META), attributes, gone)
    }

    pub(super) fn update_at(key: Item, attributes: Attributes, gone: &[&str]) -> Self {
        let mut statement = Self::new(Kind::Update {
            key,
            expression: String::new(),
        });
        let mut parts = Vec::new();
        if !gone.is_empty() {
            for name in gone {
                statement.name(name);
            }
            parts.push(format!("REMOVE #{}", gone.join(", #")));
        }
        let mut sets = Vec::new();
        for (name, value) in attributes {
            statement.name(name);
            statement.value(&format!(":{name}"), value);
            sets.push(format!("#{name} = :{name}"));
        }
        // SET stands last, so that more can be added to it.
        if !sets.is_empty() {
            parts.push(format!("SET {}", sets.join(", ")));
        }
        if let Kind::Update { expression, .. } = &mut statement.kind {
            *expression = parts.join(" ");
        }
        statement
    }

    fn also_set(&mut self, assignment: &str) {
        if let Kind::Update { expression, .. } = &mut self.kind {
            expression.push_str(", ");
            expression.push_str(assignment);
        }
    }

    pub(super) fn when(mut self, condition: &str) -> Self {
        self.condition = Some(condition.to_owned());
        self
    }

    /// Only where nothing stands, or what the write named in `attribute` left.
    pub(super) fn when_written_by(mut self, attribute: &str, write: &str) -> Self {
        self.name(attribute);
        self.value(":dead", item::text(write));
        self.when(&format!("attribute_not_exists(PK) OR #{attribute} = :dead"))
    }

    /// What [`OWNED`] asks for.
    fn owned_by(&mut self, owner: &Owner) {
        self.name(item::OWNER_SUBJECT);
        self.value(":owner", item::text(owner.subject.as_str()));
    }

    /// What [`SAME`] asks for.
    fn same_task(&mut self, incarnation: &WriteId) {
        self.name(item::INCARNATION);
        self.value(":same", item::text(incarnation.as_str()));
    }

    fn now(&mut self, now: Timestamp) {
        self.name(item::EXPIRES_AT);
        self.value(":now", item::number(now.as_millis()));
    }

    pub(super) fn name(&mut self, name: &str) {
        self.names.insert(format!("#{name}"), name.to_owned());
    }

    pub(super) fn value(&mut self, name: &str, value: AttributeValue) {
        self.values.insert(name.to_owned(), value);
    }

    /// The statement as a part of a transaction.
    ///
    /// # Errors
    /// The SDK's, when a member is missing; none is.
    pub(super) fn into_action(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let names = (!self.names.is_empty()).then_some(self.names);
        let values = (!self.values.is_empty()).then_some(self.values);
        let old = Some(ReturnValuesOnConditionCheckFailure::AllOld);
        let action = TransactWriteItem::builder();
        Ok(match self.kind {
            Kind::Put(item) => action.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            Kind::Delete(key) => action.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            Kind::Update { key, expression } => action.update(
                Update::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .update_expression(expression)
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
        }
        .build())
    }
}
