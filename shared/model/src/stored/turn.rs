//! The stored form of what a task keeps of its turns: the request of the running one, and
//! what all of them have used.

use crate::task::{Timestamp, TurnRequest, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a running turn keeps of its request.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    t: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    s: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    m: Vec<String>,
    /// The `traceparent` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tp: Option<String>,
}

impl From<&TurnRequest> for Request {
    fn from(request: &TurnRequest) -> Self {
        Self {
            t: request.tier.clone(),
            s: request.scopes.clone(),
            m: request.accepted_output_modes.clone(),
            tp: request.trace_parent.clone(),
        }
    }
}

impl From<Request> for TurnRequest {
    fn from(request: Request) -> Self {
        Self {
            tier: request.t,
            scopes: request.s,
            accepted_output_modes: request.m,
            trace_parent: request.tp,
        }
    }
}

/// What the turns of a task have used; left out if that is nothing.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredUsed {
    /// Hand-overs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    h: Option<u32>,
    /// When the current turn last stored progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p: Option<i64>,
}

impl StoredUsed {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Used> for StoredUsed {
    fn from(used: &Used) -> Self {
        Self {
            h: Some(used.hand_overs).filter(|it| *it > 0),
            p: used.progress_at.map(Timestamp::as_millis),
        }
    }
}

impl From<StoredUsed> for Used {
    fn from(used: StoredUsed) -> Self {
        Self {
            hand_overs: used.h.unwrap_or_default(),
            progress_at: used.p.map(Timestamp::from_millis),
        }
    }
}
