//! The stored form of what a task keeps of its turns: the request of the running one, and
//! what all of them have used.

use crate::task::{Timestamp, TurnRequest, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

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
    /// The running time of the ended attempts, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    r: Option<u64>,
    /// Hand-overs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    h: Option<u32>,
    /// Since when the current attempt runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    s: Option<i64>,
}

impl StoredUsed {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&Used> for StoredUsed {
    fn from(used: &Used) -> Self {
        let run_time = u64::try_from(used.run_time.as_millis()).unwrap_or(u64::MAX);
        Self {
            r: Some(run_time).filter(|it| *it > 0),
            h: Some(used.hand_overs).filter(|it| *it > 0),
            s: used.running_since.map(Timestamp::as_millis),
        }
    }
}

impl From<StoredUsed> for Used {
    fn from(used: StoredUsed) -> Self {
        Self {
            run_time: Duration::from_millis(used.r.unwrap_or_default()),
            hand_overs: used.h.unwrap_or_default(),
            running_since: used.s.map(Timestamp::from_millis),
        }
    }
}
