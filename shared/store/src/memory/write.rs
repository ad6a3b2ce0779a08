//! Conditions and changes of items in memory.

use crate::item::check_size;
use crate::table::{Action, Comparison, Condition, Item, ItemChange, Path, Statement, Value};
use a2a_lambda_model::store::StoreError;
use std::cmp::Ordering;

impl Statement {
    /// Whether its condition holds for the stored item.
    pub(super) fn holds(&self, old: Option<&Item>) -> bool {
        let none = Item::new();
        let item = old.unwrap_or(&none);
        self.condition.as_ref().is_none_or(|it| it.holds(item))
    }

    /// The item after the statement; `None` if there is none any more.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a change that is impossible, [`StoreError::TooLarge`].
    pub(super) fn apply(&self, old: Option<&Item>) -> Result<Option<Item>, StoreError> {
        let key = self.key.item();
        Ok(match &self.action {
            Action::Delete => None,
            Action::Put(item) => Some(key.into_iter().chain(item.clone()).collect()),
            Action::Update(changes) => {
                let old = old.cloned().unwrap_or(key);
                let mut next = old.clone();
                for change in changes {
                    change.apply(&old, &mut next)?;
                }
                check_size(&next, 0)?;
                Some(next)
            }
        })
    }
}

impl Condition {
    /// Whether it holds for an item.
    pub(super) fn holds(&self, item: &Item) -> bool {
        match self {
            Self::Exists(path) => path.of(item).is_some(),
            Self::Absent(path) => path.of(item).is_none(),
            Self::Is(path, comparison, value) => comparison.holds(path.of(item), value),
            Self::Between(path, first, last) => path.of(item).is_some_and(|value| {
                value.order(first).is_some_and(Ordering::is_ge)
                    && value.order(last).is_some_and(Ordering::is_le)
            }),
            Self::SizeBelow(path, size) => {
                let length = path.of(item).and_then(Value::length);
                length.is_some_and(|length| i64::try_from(length).unwrap_or(i64::MAX) < *size)
            }
            Self::All(parts) => parts.iter().all(|it| it.holds(item)),
            Self::Any(parts) => parts.iter().any(|it| it.holds(item)),
        }
    }
}

impl Comparison {
    fn holds(self, current: Option<&Value>, value: &Value) -> bool {
        let order = current.and_then(|current| current.order(value));
        match self {
            Self::Equal => current == Some(value),
            Self::Differs => current != Some(value),
            Self::Below => order.is_some_and(Ordering::is_lt),
            Self::AtMost => order.is_some_and(Ordering::is_le),
            Self::Above => order.is_some_and(Ordering::is_gt),
        }
    }
}

impl Path {
    fn of<'i>(&self, item: &'i Item) -> Option<&'i Value> {
        let value = item.get(&self.name)?;
        match (&self.member, value) {
            (None, value) => Some(value),
            (Some(member), Value::Map(members)) => members.get(member),
            (Some(_), _) => None,
        }
    }

    /// The map that holds what the path names, and its name in it.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if a member has no map.
    fn locate<'i>(&'i self, item: &'i mut Item) -> Result<(&'i mut Item, &'i str), StoreError> {
        let Some(member) = &self.member else {
            return Ok((item, &self.name));
        };
        match item.get_mut(&self.name) {
            Some(Value::Map(members)) => Ok((members, member)),
            _ => Err(impossible("a member of what is no map", &self.name)),
        }
    }
}

impl Value {
    /// Its bytes or members, if it has such.
    fn length(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.len()),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::Map(members) => Some(members.len()),
            Self::Bool(_) | Self::Number(_) | Self::Foreign => None,
        }
    }
}

impl ItemChange {
    fn apply(&self, old: &Item, next: &mut Item) -> Result<(), StoreError> {
        match self {
            Self::Set(path, value) => {
                let (map, name) = path.locate(next)?;
                map.insert(name.to_owned(), value.clone());
            }
            Self::Remove(path) => {
                let (map, name) = path.locate(next)?;
                map.remove(name);
            }
            Self::Add(name, amount) => plus(old, next, name, Some(0), *amount)?,
            Self::Plus { at, start, amount } => plus(old, next, at, *start, *amount)?,
            Self::Copy { to, from, or } => {
                next.insert(to.clone(), old.get(from).unwrap_or(or).clone());
            }
        }
        Ok(())
    }
}

fn plus(
    old: &Item,
    next: &mut Item,
    name: &str,
    start: Option<i64>,
    amount: i64,
) -> Result<(), StoreError> {
    let number = match old.get(name) {
        Some(Value::Number(number)) => Some(*number),
        Some(_) => None,
        None => start,
    };
    let sum = number.and_then(|number| number.checked_add(amount));
    let sum = sum.ok_or_else(|| impossible("a sum of what is no number", name))?;
    next.insert(name.to_owned(), sum.into());
    Ok(())
}

fn impossible(what: &str, name: &str) -> StoreError {
    StoreError::Refused(format!("{what}: `{name}`"))
}
