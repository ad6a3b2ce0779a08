//! Refuses what no table is asked for.
//!
//! DynamoDB refuses some of it; the rest no operation needs. Every table checks its calls here,
//! so that none of them accepts what another refuses.

use crate::keys::{Key, LISTS_PK, LISTS_SK, PK, SK, SWEEP_PK, SWEEP_SK};
use crate::table::{
    Action, Comparison, Condition, ItemChange, Path, Position, Query, QuerySource, Range,
    Statement, Value, Write,
};
use a2a_lambda_model::store::StoreError;
use std::collections::BTreeSet;

/// The most statements of a transaction.
const STATEMENTS: usize = 100;

type Allowed = Result<(), StoreError>;

fn demand(holds: bool, why: &str) -> Allowed {
    match holds {
        true => Ok(()),
        false => Err(StoreError::Refused(why.to_owned())),
    }
}

/// Refuses a read that names a key twice.
///
/// # Errors
/// [`StoreError::Refused`].
pub(crate) fn check_keys(keys: &[Key]) -> Allowed {
    let distinct: BTreeSet<&Key> = keys.iter().collect();
    demand(distinct.len() == keys.len(), "a read names a key twice")
}

impl Write {
    /// Refuses a write that a table does not do.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn check(&self) -> Allowed {
        let count = self.statements.len();
        demand(
            (1..=STATEMENTS).contains(&count),
            "a write has 1 to 100 statements",
        )?;
        let keys: BTreeSet<&Key> = self.statements.iter().map(|it| &it.key).collect();
        demand(
            keys.len() == count,
            "a write has two statements for an item",
        )?;
        demand(count == 1 || self.repeats, "a transaction is repeated")?;
        let adds = count == 1 && self.statements.iter().any(Statement::adds);
        demand(!(adds && self.repeats), "a sum is never repeated")?;
        let only = self.statements.iter().map(|it| &it.action);
        let is_delete = only.eq([&Action::Delete]);
        let why = "only a deletion returns the old item";
        demand(is_delete || !self.wants_old, why)?;
        self.statements.iter().try_for_each(Statement::check)
    }
}

impl Statement {
    fn check(&self) -> Allowed {
        match &self.action {
            Action::Put(item) => {
                demand(!item.keys().any(|name| is_key(name)), "a put names its key")?;
                item.iter()
                    .try_for_each(|(name, value)| attribute(name, value))?;
            }
            Action::Update(changes) => self::changes(changes)?,
            Action::Delete => {}
        }
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }
}

fn changes(changes: &[ItemChange]) -> Allowed {
    demand(!changes.is_empty(), "an update changes nothing")?;
    let mut paths: Vec<Path> = Vec::new();
    for change in changes {
        let path = change.check()?;
        let overlaps = |other: &Path| {
            let is_whole = other.member.is_none() || path.member.is_none();
            other.name == path.name && (is_whole || other.member == path.member)
        };
        demand(!paths.iter().any(overlaps), "two changes of one path")?;
        paths.push(path);
    }
    Ok(())
}

impl ItemChange {
    /// What it changes, if it may.
    fn check(&self) -> Result<Path, StoreError> {
        let path: Path = match self {
            Self::Set(path, _) | Self::Remove(path) => path.clone(),
            Self::Add(name, _) | Self::Copy { to: name, .. } | Self::Plus { at: name, .. } => {
                demand(!is_indexed(name), "a key of an index is computed")?;
                name.as_str().into()
            }
        };
        let is_content = |name: &str| !is_key(name) && !name.is_empty();
        demand(is_content(&path.name), "an update changes a key")?;
        let plain = path.member.is_none() || !is_indexed(&path.name);
        demand(plain, "a key of an index has no members")?;
        match self {
            Self::Set(path, value) if path.member.is_none() => attribute(&path.name, value)?,
            Self::Set(_, value) => self::value(value)?,
            Self::Copy { from, or, .. } => {
                demand(is_content(from), "an update copies a key")?;
                value(or)?;
            }
            _ => {}
        }
        Ok(path)
    }
}

impl Condition {
    fn check(&self) -> Allowed {
        match self {
            Self::Exists(_) | Self::Absent(_) | Self::SizeBelow(..) => Ok(()),
            Self::Is(_, Comparison::Equal | Comparison::Differs, with) => value(with),
            Self::Is(_, _, with) => demand_order(with),
            Self::Between(_, first, last) => {
                let why = "the bounds are not two numbers or two texts in order";
                demand(bounds(first, last)? == Some(true), why)
            }
            Self::All(conditions) | Self::Any(conditions) => {
                demand(!conditions.is_empty(), "a condition has no parts")?;
                conditions.iter().try_for_each(Self::check)
            }
        }
    }

    /// The attributes that it names.
    fn attributes(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Exists(path)
            | Self::Absent(path)
            | Self::SizeBelow(path, _)
            | Self::Is(path, ..)
            | Self::Between(path, ..) => Box::new(std::iter::once(path.name.as_str())),
            Self::All(parts) | Self::Any(parts) => {
                Box::new(parts.iter().flat_map(Self::attributes))
            }
        }
    }
}

impl Query {
    /// Refuses a query that a table does not do. Returns whether it can find anything.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn check(&self) -> Result<bool, StoreError> {
        let source = self.partition.source();
        let why = "a bound is not of the type of the sort key";
        let fits = |value: &Value| demand(is_sort_key(source, value), why);
        let finds = match &self.range {
            Range::All => true,
            Range::Prefix(prefix) => fits(&prefix.as_str().into()).map(|()| true)?,
            Range::Below(end) => fits(end).map(|()| true)?,
            Range::Between(first, last) => {
                fits(first)?;
                fits(last)?;
                bounds(first, last)? == Some(true)
            }
        };
        demand(self.limit != Some(0), "a query reads at least one item")?;
        let why_not = "an attribute that the index does not have";
        if let Some(filter) = &self.filter {
            filter.check()?;
            let of_key = filter
                .attributes()
                .any(|name| is_key(name) || is_indexed(name));
            demand(!of_key, "a filter names a key")?;
            demand(filter.attributes().all(|name| source.has(name)), why_not)?;
        }
        demand(self.only.iter().all(|name| source.has(name)), why_not)?;
        let only: BTreeSet<&String> = self.only.iter().collect();
        demand(
            only.len() == self.only.len(),
            "an attribute is wanted twice",
        )?;
        demand(only.is_empty() || !self.count, "a count has attributes")?;
        if let Some(start) = &self.start {
            demand(self.contains(start), "a position outside of its query")?;
        }
        Ok(finds)
    }

    fn contains(&self, position: &Position) -> bool {
        let (partition, sort) = self.partition.source().keys();
        let is_in_partition = position.0.get(partition) == Some(&self.partition.key().into());
        let has_keys = [PK, SK].iter().all(|name| position.0.contains_key(*name));
        let inside = |sort| self.range.contains(sort);
        is_in_partition && has_keys && position.0.get(sort).is_some_and(inside)
    }
}

impl Range {
    /// Whether a sort key is in the range.
    pub(crate) fn contains(&self, sort: &Value) -> bool {
        match (self, sort) {
            (Self::All, _) => true,
            (Self::Prefix(prefix), Value::Text(text)) => text.starts_with(prefix.as_str()),
            (Self::Prefix(_), _) => false,
            (Self::Between(first, last), sort) => {
                let order = |end| sort.order(end);
                order(first).is_some_and(std::cmp::Ordering::is_ge)
                    && order(last).is_some_and(std::cmp::Ordering::is_le)
            }
            (Self::Below(end), sort) => sort.order(end).is_some_and(std::cmp::Ordering::is_lt),
        }
    }
}

impl QuerySource {
    /// Whether a query reads this attribute here.
    fn has(self, name: &str) -> bool {
        let (partition, sort) = self.keys();
        let is_key = [PK, SK, partition, sort].contains(&name);
        self == Self::Table || is_key || self.projection().contains(&name)
    }
}

impl Value {
    /// The order of two numbers, or of two texts by their bytes.
    pub(crate) fn order(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => Some(one.cmp(other)),
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }
}

/// An attribute that is written. Those of an index have the type of the index.
fn attribute(name: &str, value: &Value) -> Allowed {
    demand(!name.is_empty(), "an attribute has no name")?;
    let fits = match name {
        LISTS_PK | SWEEP_PK => matches!(value, Value::Text(text) if !text.is_empty()),
        LISTS_SK => is_sort_key(QuerySource::Lists, value),
        SWEEP_SK => is_sort_key(QuerySource::Sweep, value),
        _ => true,
    };
    demand(fits, "a key of an index has another type")?;
    self::value(value)
}

fn value(value: &Value) -> Allowed {
    match value {
        Value::Foreign => demand(false, "a foreign value is only read"),
        Value::Map(members) => members.values().try_for_each(self::value),
        _ => Ok(()),
    }
}

fn demand_order(value: &Value) -> Allowed {
    let has_order = matches!(value, Value::Number(_) | Value::Text(_));
    demand(has_order, "only numbers and texts have an order")
}

/// Whether two bounds are in order; `None` if they are of two types.
fn bounds(first: &Value, last: &Value) -> Result<Option<bool>, StoreError> {
    demand_order(first)?;
    demand_order(last)?;
    Ok(first.order(last).map(std::cmp::Ordering::is_le))
}

fn is_sort_key(source: QuerySource, value: &Value) -> bool {
    match value {
        Value::Number(_) => source == QuerySource::Sweep,
        Value::Text(text) => source != QuerySource::Sweep && !text.is_empty(),
        _ => false,
    }
}

fn is_key(name: &str) -> bool {
    [PK, SK].contains(&name)
}

fn is_indexed(name: &str) -> bool {
    [LISTS_PK, LISTS_SK, SWEEP_PK, SWEEP_SK].contains(&name)
}
