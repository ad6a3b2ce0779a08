//! Translates values, conditions and changes to the expressions of DynamoDB.

use a2a_lambda_store::table::{Comparison, Condition, Item, ItemChange, Path, Query, Range, Value};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::HashMap;

/// An item in the form of the SDK.
pub(super) type SdkItem = HashMap<String, AttributeValue>;

/// A value in the form of the SDK. A table checks before that none is foreign.
fn attribute(value: Value) -> AttributeValue {
    match value {
        Value::Bool(truth) => AttributeValue::Bool(truth),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::Text(text) => AttributeValue::S(text),
        Value::Bytes(bytes) => AttributeValue::B(Blob::new(bytes)),
        Value::Map(members) => AttributeValue::M(attributes(members)),
        Value::Foreign => AttributeValue::Null(true),
    }
}

/// An item in the form of the SDK.
pub(super) fn attributes(item: Item) -> SdkItem {
    let members = item.into_iter();
    members
        .map(|(name, value)| (name, attribute(value)))
        .collect()
}

/// A value that DynamoDB returned. Only this item is unreadable if it is foreign.
fn value(attribute: AttributeValue) -> Value {
    match attribute {
        AttributeValue::Bool(truth) => Value::Bool(truth),
        AttributeValue::N(digits) => digits.parse().map_or(Value::Foreign, Value::Number),
        AttributeValue::S(text) => Value::Text(text),
        AttributeValue::B(bytes) => Value::Bytes(bytes.into_inner()),
        AttributeValue::M(members) => Value::Map(item(members)),
        _ => Value::Foreign,
    }
}

/// An item that DynamoDB returned.
pub(super) fn item(attributes: SdkItem) -> Item {
    let members = attributes.into_iter();
    members
        .map(|(name, attribute)| (name, value(attribute)))
        .collect()
}

/// The names and values of the expressions of one request.
#[derive(Default)]
pub(super) struct Expressions {
    names: Vec<String>,
    values: Vec<AttributeValue>,
}

impl Expressions {
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        let names = self.names.iter().enumerate();
        let pairs = names.map(|(at, name)| (format!("#n{at}"), name.clone()));
        (!self.names.is_empty()).then(|| pairs.collect())
    }

    pub(super) fn values(self) -> Option<HashMap<String, AttributeValue>> {
        let some = !self.values.is_empty();
        let values = self.values.into_iter().enumerate();
        some.then(|| {
            values
                .map(|(at, value)| (format!(":v{at}"), value))
                .collect()
        })
    }

    pub(super) fn name(&mut self, name: &str) -> String {
        let index = self.names.iter().position(|other| other == name);
        let at = index.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("#n{at}")
    }

    fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(attribute(value.into()));
        format!(":v{}", self.values.len() - 1)
    }

    fn path(&mut self, path: &Path) -> String {
        let name = self.name(&path.name);
        match &path.member {
            Some(member) => format!("{name}.{}", self.name(member)),
            None => name,
        }
    }

    /// The key condition of a query.
    pub(super) fn key(&mut self, query: &Query) -> String {
        let (partition, sort) = query.partition.source().keys();
        let (name, value) = (self.name(partition), self.value(query.partition.key()));
        let base = format!("{name} = {value}");
        let (name, range) = match &query.range {
            Range::All => return base,
            range => (self.name(sort), range.clone()),
        };
        match range {
            Range::All => base,
            Range::Prefix(prefix) => {
                format!("{base} AND begins_with({name}, {})", self.value(prefix))
            }
            Range::Below(end) => format!("{base} AND {name} < {}", self.value(end)),
            Range::Between(first, last) => {
                let (first, last) = (self.value(first), self.value(last));
                format!("{base} AND {name} BETWEEN {first} AND {last}")
            }
        }
    }

    pub(super) fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Exists(path) => format!("attribute_exists({})", self.path(path)),
            Condition::Absent(path) => format!("attribute_not_exists({})", self.path(path)),
            Condition::Is(path, comparison, value) => {
                let (path, value) = (self.path(path), self.value(value.clone()));
                format!("{path} {} {value}", operator(*comparison))
            }
            Condition::Between(path, first, last) => {
                let (first, last) = (self.value(first.clone()), self.value(last.clone()));
                format!("{} BETWEEN {first} AND {last}", self.path(path))
            }
            Condition::SizeBelow(path, size) => {
                format!("size({}) < {}", self.path(path), self.value(*size))
            }
            Condition::All(parts) => self.join(parts, " AND "),
            Condition::Any(parts) => self.join(parts, " OR "),
        }
    }

    fn join(&mut self, parts: &[Condition], word: &str) -> String {
        let texts = parts.iter().map(|part| {
            let text = self.condition(part);
            // DynamoDB refuses brackets that change nothing.
            let joins = match part {
                Condition::All(inner) | Condition::Any(inner) => inner.len() > 1,
                _ => false,
            };
            if joins && parts.len() > 1 {
                format!("({text})")
            } else {
                text
            }
        });
        texts.collect::<Vec<_>>().join(word)
    }

    pub(super) fn changes(&mut self, changes: Vec<ItemChange>) -> String {
        let [mut sets, mut removes, mut adds] = [const { Vec::new() }; 3];
        for change in changes {
            match change {
                ItemChange::Set(path, value) => {
                    let (path, value) = (self.path(&path), self.value(value));
                    sets.push(format!("{path} = {value}"));
                }
                ItemChange::Remove(path) => removes.push(self.path(&path)),
                ItemChange::Add(name, amount) => {
                    let (name, amount) = (self.name(&name), self.value(amount));
                    adds.push(format!("{name} {amount}"));
                }
                ItemChange::Copy { to, from, or } => {
                    let (to, from, or) = (self.name(&to), self.name(&from), self.value(or));
                    sets.push(format!("{to} = if_not_exists({from}, {or})"));
                }
                ItemChange::Plus { at, start, amount } => {
                    let (at, amount) = (self.name(&at), self.value(amount));
                    let from =
                        start.map(|start| format!("if_not_exists({at}, {})", self.value(start)));
                    let from = from.unwrap_or_else(|| at.clone());
                    sets.push(format!("{at} = {from} + {amount}"));
                }
            }
        }
        let clauses = [("SET", sets), ("REMOVE", removes), ("ADD", adds)].into_iter();
        let clauses = clauses.filter(|(_, parts)| !parts.is_empty());
        let clauses = clauses.map(|(word, parts)| format!("{word} {}", parts.join(", ")));
        clauses.collect::<Vec<_>>().join(" ")
    }
}

const fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::Differs => "<>",
        Comparison::Below => "<",
        Comparison::AtMost => "<=",
        Comparison::Above => ">",
    }
}
