//! The interface of a table: consistent reads by key, queries, and conditional writes.
//!
//! It has the parts of DynamoDB that the runtime uses, with the same meaning. A reader holds
//! [`ReadTable`], so its type shows that it writes nothing. A table never decides about a lost
//! reply: what is stored recognises its own writes.

use crate::keys::{Key, Partition};
use a2a_lambda_model::store::StoreError;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The attributes of an item by name. An item that was read includes its keys.
pub type Item = BTreeMap<String, Value>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Values by name.
    Map(BTreeMap<String, Self>),
    /// A value that no program of this project writes. A table only reads it.
    Foreign,
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Where a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuerySource {
    /// The table itself. The read is consistent, unless the query says that it may lag.
    Table,
    /// The index of lists, which lags.
    Lists,
    /// The index of what a sweep looks at, which lags. Its sort key is a number.
    Sweep,
}

/// An attribute, or one member of an attribute that is a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The name of the attribute.
    pub name: String,
    /// The name of the member.
    pub member: Option<String>,
}

impl Path {
    /// The member `member` of the map `name`.
    #[must_use]
    pub fn member(name: &str, member: &str) -> Self {
        Self {
            name: name.to_owned(),
            member: Some(member.to_owned()),
        }
    }
}

impl From<&str> for Path {
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            member: None,
        }
    }
}

/// A comparison with a value. Only numbers and texts have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is the value.
    Equal,
    /// It is another value, or absent.
    Differs,
    /// It is of the same type and below.
    Below,
    /// It is of the same type, and below or equal.
    AtMost,
    /// It is of the same type and above.
    Above,
}

/// The condition of a write, and the filter of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The path has a value.
    Exists(Path),
    /// The path has no value.
    Absent(Path),
    /// The path compares so with the value.
    Is(Path, Comparison, Value),
    /// The path is a number, or a text, between these two, or one of them.
    Between(Path, Value, Value),
    /// The path is a text, bytes or a map, with fewer bytes or members than this.
    SizeBelow(Path, i64),
    /// All of them hold.
    All(Vec<Self>),
    /// At least one of them holds.
    Any(Vec<Self>),
}

impl Condition {
    /// The attribute `name` exists.
    #[must_use]
    pub fn exists(name: &str) -> Self {
        Self::Exists(name.into())
    }

    /// The attribute `name` does not exist.
    #[must_use]
    pub fn absent(name: &str) -> Self {
        Self::Absent(name.into())
    }

    /// The attribute `name` compares so with `value`.
    #[must_use]
    pub fn is(name: &str, comparison: Comparison, value: impl Into<Value>) -> Self {
        Self::Is(name.into(), comparison, value.into())
    }
}

/// One change of an item. Each reads the item as it was before all changes of the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemChange {
    /// The path gets the value.
    Set(Path, Value),
    /// The path has no value any more.
    Remove(Path),
    /// The attribute grows by the amount, from 0 if it is absent.
    Add(String, i64),
    /// The attribute `to` gets the value of `from`, or `or` if that is absent.
    Copy {
        /// What changes.
        to: String,
        /// What is read.
        from: String,
        /// The value without it.
        or: Value,
    },
    /// The attribute grows by the amount. If it is absent it begins at `start`; without a
    /// `start` the write is impossible.
    Plus {
        /// What changes.
        at: String,
        /// The number if it is absent.
        start: Option<i64>,
        /// What is added.
        amount: i64,
    },
}

impl ItemChange {
    /// The attribute `name` gets `value`.
    #[must_use]
    pub fn set(name: &str, value: impl Into<Value>) -> Self {
        Self::Set(name.into(), value.into())
    }

    /// The attribute `name` grows by `amount`, from `start` if it is absent.
    pub(crate) fn plus(name: &str, start: Option<i64>, amount: i64) -> Self {
        let at = name.to_owned();
        Self::Plus { at, start, amount }
    }
}

/// What a statement does. Each needs a right of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replaces the whole item. The key is not among its attributes.
    Put(Item),
    /// Changes attributes; an item that is absent begins with its key alone.
    Update(Vec<ItemChange>),
    /// Removes the item, if it is there.
    Delete,
}

/// A write of one item under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The item.
    pub key: Key,
    /// What is done.
    pub action: Action,
    /// When it is done; `None` is always.
    pub condition: Option<Condition>,
}

impl Statement {
    /// Replaces the item at `key`.
    #[must_use]
    pub const fn put(key: Key, item: Item) -> Self {
        Self::of(key, Action::Put(item))
    }

    /// Changes the item at `key`.
    #[must_use]
    pub fn update(key: Key, changes: impl Into<Vec<ItemChange>>) -> Self {
        Self::of(key, Action::Update(changes.into()))
    }

    /// Removes the item at `key`.
    #[must_use]
    pub const fn delete(key: Key) -> Self {
        Self::of(key, Action::Delete)
    }

    const fn of(key: Key, action: Action) -> Self {
        Self {
            key,
            action,
            condition: None,
        }
    }

    /// Whether it adds to what is stored, so that it counts twice if it is sent twice.
    pub(crate) fn adds(&self) -> bool {
        let adds =
            |change: &ItemChange| matches!(change, ItemChange::Add(..) | ItemChange::Plus { .. });
        matches!(&self.action, Action::Update(changes) if changes.iter().any(adds))
    }

    /// The same under this condition.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }
}

/// A write of one item, or of several together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// 1 to 100 statements, none of them for the same item. One is one request, several are a
    /// transaction, which costs twice the units.
    pub statements: Vec<Statement>,
    /// Whether the same request may be sent again if no reply came. One that adds, with
    /// [`ItemChange::Add`] or [`ItemChange::Plus`], may not: the sum would count twice. A
    /// transaction always may.
    pub repeats: bool,
    /// Whether the outcome has the item as it was before. Only for one deletion.
    pub wants_old: bool,
}

impl From<Statement> for Write {
    fn from(statement: Statement) -> Self {
        vec![statement].into()
    }
}

impl From<Vec<Statement>> for Write {
    fn from(statements: Vec<Statement>) -> Self {
        let adds = statements.iter().any(Statement::adds);
        Self {
            repeats: statements.len() > 1 || !adds,
            statements,
            wants_old: false,
        }
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteResult {
    /// It is stored. Has the old item if the write wants it and there was one.
    Done(Option<Item>),
    /// A condition did not hold, and nothing is stored. Has one check for each statement.
    Refused(Vec<ConditionCheck>),
    /// It may or may not be stored; the reason why that is unknown.
    Unknown(String),
}

impl WriteResult {
    /// Whether the write is stored.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when that is unknown.
    pub fn is_done(self) -> Result<bool, StoreError> {
        match self {
            Self::Done(_) => Ok(true),
            Self::Refused(_) => Ok(false),
            Self::Unknown(why) => Err(StoreError::Unavailable(why)),
        }
    }
}

/// The result of the condition of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionCheck {
    /// It held, or there was none.
    Held,
    /// It did not hold. Has the stored item, if there is one.
    Failed(Option<Item>),
}

/// Which sort keys a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    /// All.
    All,
    /// The texts that begin so.
    Prefix(String),
    /// From the first to the last. If the first is above the last there is none.
    Between(Value, Value),
    /// Below this one.
    Below(Value),
}

/// A read of one partition in the order of the sort keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The partition.
    pub partition: Partition,
    /// Its sort keys.
    pub range: Range,
    /// Whether the highest sort key comes first.
    pub newest_first: bool,
    /// The most items that are read, before the filter.
    pub limit: Option<usize>,
    /// After which item the read begins.
    pub start: Option<Position>,
    /// Which of the read items are returned. It names no key.
    pub filter: Option<Condition>,
    /// The only attributes that are returned; all if empty.
    pub only: Vec<String>,
    /// Whether items are counted and not returned.
    pub count: bool,
    /// Whether a read of the table may lag, which costs half. An index always lags.
    pub lags: bool,
}

impl From<Partition> for Query {
    /// A query of the whole partition.
    fn from(partition: Partition) -> Self {
        Self {
            partition,
            range: Range::All,
            newest_first: false,
            limit: None,
            start: None,
            filter: None,
            only: Vec::new(),
            count: false,
            lags: false,
        }
    }
}

/// A page of a query. A table ends a page at the limit, and after 1 MB.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryPage {
    /// The items; none if the query counts.
    pub items: Vec<Item>,
    /// How many items passed the filter.
    pub count: usize,
    /// How many items were read.
    pub read: usize,
    /// Where the next page begins. There may be nothing behind it.
    pub next: Option<Position>,
}

/// A position in a query: the keys of the last item that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(pub Item);

/// Reads a table.
#[async_trait]
pub trait ReadTable: Debug + Send + Sync {
    /// The items of `keys`, read consistently, in no order; an item that is absent is left
    /// out. No key may be there twice. One key is the request `GetItem`, more are
    /// `BatchGetItem` by hundreds until no key is left.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError>;

    /// One item, which may lack a change of the last second: this costs half as much.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    async fn glance(&self, key: Key) -> Result<Option<Item>, StoreError> {
        Ok(self.get(&[key]).await?.pop())
    }

    /// One page of a query.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer, [`StoreError::Refused`] for a position
    /// outside of the query.
    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError>;
}

/// Reads and writes a table.
#[async_trait]
pub trait Table: ReadTable {
    /// Writes all statements or none of them.
    ///
    /// # Errors
    /// [`StoreError::Contended`] and [`StoreError::Unavailable`] when nothing is decided and
    /// nothing is stored, [`StoreError::TooLarge`] and [`StoreError::Refused`] when it can
    /// never be stored.
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError>;
}

impl dyn Table {
    /// Writes all or nothing; `false` if a condition does not hold.
    pub(crate) async fn try_write(&self, write: impl Into<Write>) -> Result<bool, StoreError> {
        self.write(write.into()).await?.is_done()
    }
}

/// One item, read consistently.
pub(crate) async fn item(table: &dyn ReadTable, key: Key) -> Result<Option<Item>, StoreError> {
    Ok(table.get(&[key]).await?.pop())
}

/// All items of a partition.
pub(crate) async fn query_all(
    table: &dyn ReadTable,
    mut query: Query,
) -> Result<Vec<Item>, StoreError> {
    let mut items = Vec::new();
    loop {
        let page = table.query(&query).await?;
        items.extend(page.items);
        query.start = page.next;
        if query.start.is_none() {
            return Ok(items);
        }
    }
}
