//! The format of the vector files.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A promise of the protocol, and the steps that test it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    /// The promise, as a sentence.
    pub(crate) name: String,
    /// The source: generation and section; `ours` for a decision that docs/conformance.md
    /// names.
    pub(crate) section: String,
    /// The test of ACTS whose promise this is.
    pub(crate) acts: Option<String>,
    /// The dialects: `all`, a generation, a binding, or both (`1.0 jsonrpc`).
    pub(crate) over: Vec<String>,
    /// The state of the agent. Vectors that need a special state do not run against a URL.
    #[serde(default)]
    pub(crate) given: Given,
    pub(crate) steps: Vec<Step>,
}

/// The environment of the agent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Given {
    /// The default.
    #[default]
    Nothing,
    /// The store accepts no writes.
    StoreAway,
    /// A gateway provides identities, and this request has none.
    NoIdentity,
    /// Push notifications are switched off.
    PushOff,
    /// Streams are switched off.
    StreamingOff,
    /// The agent has an extended card.
    Extended,
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
    List,
    /// A request that the step spells out.
    Raw,
    /// The next events of the stream that an earlier step left open.
    Read,
}

/// A request and its expected response.
///
/// Placeholders in texts: `$task` and `$context` are the ids of the last task seen. `$new`
/// and `$own` are unused ids, `$unknown` is the id of no task, `$cut` is the last event
/// before a stream was left open. Other names come from `save`. `${name}` is the form
/// inside a text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) ask: Asked,
    /// The dialects this step is for; absent means all of the vector's.
    #[serde(default, rename = "for")]
    pub(crate) dialects: Vec<String>,
    /// The text of the message.
    pub(crate) say: Option<String>,
    /// The parts of the message in the form of 1.0; replaces `say`.
    pub(crate) parts: Option<Value>,
    /// The task of the message, or of the request.
    pub(crate) task: Option<String>,
    pub(crate) context: Option<String>,
    /// The id of a new task, in generations whose clients choose it.
    pub(crate) new: Option<String>,
    /// Whether to wait until the task is at rest.
    pub(crate) wait: Option<bool>,
    /// `historyLength`.
    pub(crate) history: Option<Value>,
    /// Members of the message; `$none` removes one.
    #[serde(default)]
    pub(crate) message: Map<String, Value>,
    /// Members of the parameters.
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    /// Members of the JSON-RPC envelope.
    #[serde(default)]
    pub(crate) envelope: Map<String, Value>,
    /// Headers; `null` removes one.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    /// A prefix of the path.
    pub(crate) prefix: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    /// The whole body: a string is sent unchanged, other values as JSON.
    pub(crate) body: Option<Value>,
    /// Texts to replace in the body; each must occur exactly once.
    #[serde(default)]
    pub(crate) replace: Vec<(String, String)>,
    /// Milliseconds to wait before the request.
    #[serde(default)]
    pub(crate) after_ms: u64,
    /// The number of events to read before the stream is left open.
    pub(crate) leave_open_after: Option<usize>,
    #[serde(default)]
    pub(crate) expect: Expect,
    /// Differences of the expectation in some dialects.
    #[serde(default, rename = "in")]
    pub(crate) otherwise: BTreeMap<String, Expect>,
}

/// The expected response. Values are patterns: an object has at least the given members.
/// `$absent`, `$any`, `$string`, `$time` and `$starts:…` match what their names say.
/// `{"$exact": …}` allows no other member.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// The HTTP status; the default is 200, or the status in the error's row.
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Value>,
    /// The row of the error table.
    pub(crate) error: Option<String>,
    /// A field that the error names. The list of parts has its 1.0 name here.
    pub(crate) field: Option<String>,
    /// The id of the JSON-RPC response.
    #[serde(default, deserialize_with = "present")]
    pub(crate) rpc_id: Option<Value>,
    /// The state of the task, as 0.3 spells it.
    pub(crate) state: Option<String>,
    /// The task.
    #[serde(default, deserialize_with = "present")]
    pub(crate) task: Option<Value>,
    /// The JSON-RPC result, or the body.
    #[serde(default, deserialize_with = "present")]
    pub(crate) result: Option<Value>,
    /// The whole body.
    #[serde(default, deserialize_with = "present")]
    pub(crate) body: Option<Value>,
    /// The text of the first artifact.
    pub(crate) artifact: Option<String>,
    /// The texts of the history, oldest first.
    pub(crate) said: Option<Vec<String>>,
    /// All events of a stream, as `Dialect::described` describes them.
    pub(crate) events: Option<Vec<String>>,
    /// Events that occur in this order, possibly with others between them.
    #[serde(default)]
    pub(crate) among: Vec<String>,
    /// The payload of the first event.
    pub(crate) first: Option<Value>,
    /// The payload of the last event.
    pub(crate) last: Option<Value>,
    /// Pointers into the result; their values are stored under these names.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
}

/// Keeps a member that is `null` apart from an absent one.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Expect {
    /// This expectation with the differences in `other`.
    pub(crate) fn but(mut self, other: &Self) -> Self {
        macro_rules! take {
            ($($member:ident)*) => {
                $(if other.$member.is_some() { self.$member.clone_from(&other.$member); })*
            };
        }
        take!(status error field rpc_id state task result body artifact said events first last);
        self.headers.extend(other.headers.clone());
        self.save.extend(other.save.clone());
        if !other.among.is_empty() {
            self.among.clone_from(&other.among);
        }
        self
    }
}
