//! The stored form of the results of steps.

use super::message::{StoredMessage, all};
use crate::store::StoreError;
use crate::task::{StepResult, ThreadOperation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
pub(super) struct StoredStep<'a> {
    /// The value.
    x: Cow<'a, Value>,
    /// The ordinal.
    n: u32,
    /// The hash of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    h: Option<Cow<'a, str>>,
    /// The hash of the circumstances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    c: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    o: Vec<StoredOperation<'a>>,
}

#[derive(Serialize, Deserialize)]
enum StoredOperation<'a> {
    #[serde(rename = "e")]
    Append(StoredMessage<'a>),
    #[serde(rename = "s")]
    Set(Cow<'a, str>, Cow<'a, str>, Cow<'a, Value>),
    #[serde(rename = "a")]
    Applied(Cow<'a, str>, Cow<'a, [String]>),
}

impl<'a> From<&'a StepResult> for StoredStep<'a> {
    fn from(result: &'a StepResult) -> Self {
        let text = |hash: &'a Option<String>| hash.as_deref().map(Cow::Borrowed);
        Self {
            x: Cow::Borrowed(&result.value),
            n: result.ordinal,
            h: text(&result.input_hash),
            c: text(&result.circumstances_hash),
            o: result
                .operations
                .iter()
                .map(StoredOperation::from)
                .collect(),
        }
    }
}

impl StoredStep<'_> {
    pub(super) fn into_result(self) -> Result<StepResult, StoreError> {
        Ok(StepResult {
            value: self.x.into_owned(),
            ordinal: self.n,
            input_hash: self.h.map(Cow::into_owned),
            circumstances_hash: self.c.map(Cow::into_owned),
            operations: all(self.o, StoredOperation::into_operation)?,
        })
    }
}

impl<'a> From<&'a ThreadOperation> for StoredOperation<'a> {
    fn from(operation: &'a ThreadOperation) -> Self {
        match operation {
            ThreadOperation::Append(event) => Self::Append(StoredMessage::from(event)),
            ThreadOperation::Set { id, key, value } => {
                Self::Set(Cow::Borrowed(id), Cow::Borrowed(key), Cow::Borrowed(value))
            }
            ThreadOperation::Applied { key, outside } => {
                Self::Applied(Cow::Borrowed(key), Cow::Borrowed(outside))
            }
        }
    }
}

impl StoredOperation<'_> {
    fn into_operation(self) -> Result<ThreadOperation, StoreError> {
        Ok(match self {
            Self::Append(event) => ThreadOperation::Append(event.into_message()?),
            Self::Set(id, key, value) => ThreadOperation::Set {
                id: id.into_owned(),
                key: key.into_owned(),
                value: value.into_owned(),
            },
            Self::Applied(key, outside) => ThreadOperation::Applied {
                key: key.into_owned(),
                outside: outside.into_owned(),
            },
        })
    }
}
