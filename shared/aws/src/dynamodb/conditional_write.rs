//! Represents a conditional write as data. A single statement becomes one request, several
//! become a transaction.

use super::item::{self, Attributes, Item};
use super::{key, push_item};
use a2a_lambda_model::store::{Expect, Expiring, StoreError, TaskWrite, ThreadRecord, ThreadWrite};
use a2a_lambda_model::stored::Encoded;
use a2a_lambda_model::task::{
    ContextId, Owner, PushRecord, TaskRecord, TaskState, Timestamp, WriteId,
};
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use std::collections::HashMap;
use std::time::Duration;

/// A write of one item under a condition.
#[derive(Debug, Clone)]
pub(super) struct ConditionalWrite {
    pub(super) kind: WriteKind,
    pub(super) condition: Option<String>,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

/// How the item is written.
#[derive(Debug, Clone)]
pub(super) enum WriteKind {
    /// Replaces the whole item, if there is one.
    Put(Item),
    /// Changes attributes of the item. Attributes that other versions of this program wrote
    /// are kept.
    Update {
        /// The item's key.
        key: Item,
        /// The update expression.
        expression: String,
    },
    /// Deletes the item with this key.
    Delete(Item),
}

/// The task has not expired: only a task at rest has an expiry.
const LIVE: &str = "(attribute_not_exists(#expires_at) OR #expires_at > :now)";

/// The task belongs to this owner. The key of a server-made task id holds the tenant but not
/// the subject.
const OWNED: &str = "#owner_subject = :owner";

/// The same task, not an earlier or later one with its id.
const SAME: &str = "#incarnation = :same";

impl ConditionalWrite {
    /// Writes the `META` item of a task with the content `head`.
    pub(super) fn task(write: &TaskWrite, head: Encoded<'static>) -> Self {
        let attributes = item::task(&write.record, head);
        let partition = key::task(&write.record.key());
        let mut statement = match &write.expect {
            Expect::Absent => Self::put(&partition, attributes)
                .when("attribute_not_exists(PK) OR #expires_at <= :now"),
            Expect::Version {
                version,
                incarnation,
            } => {
                let gone = item::OPTIONAL.into_iter();
                let gone = gone.filter(|name| !attributes.contains_key(name));
                let gone: Vec<_> = gone.collect();
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

    /// Writes a child that replaces the one stored before.
    pub(super) fn child(item: Item) -> Self {
        Self::new(WriteKind::Put(item))
    }

    /// Writes a child that never replaces one of the same task. It may replace one that an
    /// earlier task with this id has left.
    pub(super) fn new_child(item: Item, incarnation: &str) -> Self {
        let mut put = Self::new(WriteKind::Put(item));
        put.name(item::INCARNATION);
        put.value(":mine", item::text(incarnation));
        put.when("attribute_not_exists(PK) OR #incarnation <> :mine")
    }

    /// Sets a later time for DynamoDB's TTL on an item.
    pub(super) fn keep(partition: &str, sort: &str, until: i64) -> Self {
        let mut update = Self::new(WriteKind::Update {
            key: item::key_of(partition, sort),
            expression: "SET #ttl = :ttl".to_owned(),
        });
        update.name(item::TTL);
        update.value(":ttl", item::number(until));
        update.when("#ttl < :ttl")
    }

    /// Extends the lease of the turn that runs in `record`. It does not change the version,
    /// so a commit in progress does not conflict with it.
    pub(super) fn heartbeat(record: &TaskRecord, until: Timestamp) -> Self {
        let partition = key::task(&record.key());
        let lease = Attributes::from([(item::LEASE_UNTIL, item::number(until.as_millis()))]);
        // A heartbeat has no new event to push. The stream filter must not see an old one.
        let mut update = Self::update(&partition, lease, &[item::NOTIFY]);
        update.name(item::EPOCH);
        update.name(item::STATE);
        update.owned_by(record.owner());
        update.same_task(record.incarnation());
        update.value(":mine", item::number(record.epoch()));
        update.value(":working", item::text(TaskState::Working.as_str()));
        update.when(&format!(
            "#epoch = :mine AND {SAME} AND #state = :working AND {OWNED} \
             AND attribute_exists(#lease_until)"
        ))
    }

    /// Takes a task at rest off the sweep index after its push deliveries are confirmed. It
    /// changes nothing else.
    pub(super) fn confirmed(record: &TaskRecord) -> Self {
        let meta = item::key_of(&key::task(&record.key()), key::META);
        let gone = [key::SWEEP_PK, key::SWEEP_SK, item::NOTIFY];
        let mut update = Self::update_at(meta, Attributes::new(), &gone);
        update.name(item::VERSION);
        update.value(":was", item::number(record.version()));
        update.same_task(record.incarnation());
        update.when(&format!("#version = :was AND {SAME}"))
    }

    /// Writes a push config without any delivery, over one with the same id.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn push(push: &PushRecord) -> Result<[Self; 2], StoreError> {
        Ok(push_item::items_of(push)?.map(|item| Self::new(WriteKind::Put(item))))
    }

    /// Writes a thread without its state.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn thread(write: &ThreadWrite, tombstone: Duration) -> Result<Self, StoreError> {
        let record = &write.record;
        let mut attributes = item::thread(record, tombstone)?;
        let partition = key::thread(&record.owner, &record.context_id);
        let [newest, older @ ..] = item::WRITES;
        attributes.insert(newest, item::text(write.write.as_str()));
        attributes.extend(item::swept(record, Expiring::Deleted));
        if write.expect == 0 {
            return Ok(Self::put(&partition, attributes).when("attribute_not_exists(PK)"));
        }
        let mut gone = vec![key::LISTS_PK, key::LISTS_SK];
        gone.retain(|name| !attributes.contains_key(name));
        let mut update = Self::update(&partition, attributes, &gone);
        // Each older write id moves down one attribute. DynamoDB reads all right-hand
        // sides before it sets any of them.
        for (place, before) in older.into_iter().zip(item::WRITES) {
            update.name(place);
            update.also_set(&format!("#{place} = if_not_exists(#{before}, :{newest})"));
        }
        update.value(":was", item::number(write.expect));
        Ok(update.when("#version = :was"))
    }

    /// Writes a thread's state; `None` if there is none to keep. It needs no condition,
    /// since the thread's own statement is in the same transaction.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub(super) fn thread_state(write: &ThreadWrite) -> Result<Option<Self>, StoreError> {
        let item = item::thread_state(&write.record)?;
        Ok(item.map(|item| Self::new(WriteKind::Put(item))))
    }

    /// Writes the current expiry of a thread's state into the sweep index.
    pub(super) fn state_expiry(thread: &ThreadRecord) -> Self {
        let partition = key::thread(&thread.owner, &thread.context_id);
        let (at, last) = (thread.state_expires_at, thread.state_kept_until());
        let mut attributes = item::swept(thread, Expiring::State);
        attributes.insert(item::EXPIRES_AT, item::number(at.as_millis()));
        attributes.insert(item::TTL, item::number(last.ttl_seconds()));
        let key = item::key_of(&partition, key::STATE);
        let mut update = Self::update_at(key, attributes, &[]);
        update.name(item::VERSION);
        update.value(":was", item::number(thread.state_version));
        update.when("#version = :was")
    }

    /// Removes the `META` item of a task that is stored as in `record`.
    pub(super) fn no_task(record: &TaskRecord) -> Self {
        let partition = key::task(&record.key());
        let mut statement = Self::gone(item::key_of(&partition, key::META));
        statement.name(item::VERSION);
        statement.value(":was", item::number(record.version()));
        statement.owned_by(record.owner());
        statement.same_task(record.incarnation());
        statement.when(&format!("#version = :was AND {SAME} AND {OWNED}"))
    }

    /// Removes the `META` item of a thread that is stored as in `record`.
    pub(super) fn no_thread(record: &ThreadRecord) -> Self {
        let partition = key::thread(&record.owner, &record.context_id);
        let mut statement = Self::gone(item::key_of(&partition, key::META));
        statement.name(item::VERSION);
        statement.value(":was", item::number(record.version));
        statement.when("#version = :was")
    }

    /// Removes a thread's state, unless a write after the version of `record` has stored it.
    pub(super) fn no_state_up_to(record: &ThreadRecord) -> Self {
        let partition = key::thread(&record.owner, &record.context_id);
        let mut statement = Self::gone(item::key_of(&partition, key::STATE));
        statement.name(item::VERSION);
        statement.value(":last", item::number(record.version));
        statement.when("#version <= :last")
    }

    /// Removes an item if its attribute `name` still has the value in `seen`.
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
        Self::new(WriteKind::Delete(key))
    }

    /// Removes a thread's state that has expired by `now`.
    pub(super) fn no_state(owner: &Owner, id: &ContextId, now: Timestamp) -> Self {
        let partition = key::thread(owner, id);
        let mut statement = Self::new(WriteKind::Delete(item::key_of(&partition, key::STATE)));
        statement.now(now);
        statement.when("#expires_at <= :now")
    }

    fn new(kind: WriteKind) -> Self {
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
        item.reserve(attributes.len());
        for (name, value) in attributes {
            item.insert(name.to_owned(), value);
        }
        Self::new(WriteKind::Put(item))
    }

    fn update(partition: &str, attributes: Attributes, gone: &[&str]) -> Self {
        Self::update_at(item::key_of(partition, key::META), attributes, gone)
    }

    pub(super) fn update_at(key: Item, attributes: Attributes, gone: &[&str]) -> Self {
        let mut statement = Self::new(WriteKind::Update {
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
        // SET is the last clause, so that `also_set` can append to it.
        if !sets.is_empty() {
            parts.push(format!("SET {}", sets.join(", ")));
        }
        if let WriteKind::Update { expression, .. } = &mut statement.kind {
            *expression = parts.join(" ");
        }
        statement
    }

    fn also_set(&mut self, assignment: &str) {
        if let WriteKind::Update { expression, .. } = &mut self.kind {
            expression.push_str(", ");
            expression.push_str(assignment);
        }
    }

    pub(super) fn when(mut self, condition: &str) -> Self {
        self.condition = Some(condition.to_owned());
        self
    }

    /// Adds a condition: the item does not exist, or its `attribute` holds the id `write`.
    pub(super) fn when_written_by(mut self, attribute: &str, write: &str) -> Self {
        self.name(attribute);
        self.value(":dead", item::text(write));
        self.when(&format!("attribute_not_exists(PK) OR #{attribute} = :dead"))
    }

    /// Adds the name and value for [`OWNED`].
    fn owned_by(&mut self, owner: &Owner) {
        self.name(item::OWNER_SUBJECT);
        self.value(":owner", item::text(owner.subject.as_str()));
    }

    /// Adds the name and value for [`SAME`].
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

    /// Converts the statement to an action of a transaction.
    ///
    /// # Errors
    /// [`BuildError`] if the SDK finds that a member is missing, which does not happen here.
    pub(super) fn into_action(self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let names = (!self.names.is_empty()).then_some(self.names);
        let values = (!self.values.is_empty()).then_some(self.values);
        let old = Some(ReturnValuesOnConditionCheckFailure::AllOld);
        let action = TransactWriteItem::builder();
        Ok(match self.kind {
            WriteKind::Put(item) => action.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(item))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            WriteKind::Delete(key) => action.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .set_condition_expression(self.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(old)
                    .build()?,
            ),
            WriteKind::Update { key, expression } => action.update(
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
