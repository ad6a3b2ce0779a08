//! What stands in a file of vectors.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A promise of the protocol, tried in each dialect it is made in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    /// What is promised, as a sentence.
    pub(crate) name: String,
    /// Where it is written: generation and section; `ours` for a decision that
    /// docs/conformance.md names.
    pub(crate) section: String,
    /// The dialects: `all`, a generation, a binding, or both (`1.0 jsonrpc`).
    pub(crate) over: Vec<String>,
    /// What the agent is like; vectors that need something are not for a URL.
    #[serde(default)]
    pub(crate) given: Given,
    pub(crate) steps: Vec<Step>,
}

/// The state of the world around the agent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Given {
    /// As it is.
    #[default]
    Nothing,
    /// The store takes no writes.
    StoreAway,
    /// Identities come from a gateway, and none comes.
    NoIdentity,
    /// Nobody may register webhooks.
    PushOff,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
    List,
    /// A request that stands there as it is.
    Raw,
    /// The next events of the stream that a step before left open.
    Read,
}

/// A request, and what has to come of it. In texts `$task` and `$context` are
/// those of the last task seen, `$new` and `$own` are ids that nobody used, `$unknown`
/// is one that nobody has, `$cut` the last event before a stream was left open, and
/// other names are what `save` kept; `${name}` stands inside a text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) ask: Asked,
    /// The dialects this step is for; all of the vector's if absent.
    #[serde(default, rename = "for")]
    pub(crate) dialects: Vec<String>,
    /// The text of the message.
    pub(crate) say: Option<String>,
    /// Its parts instead, in the words of 1.0.
    pub(crate) parts: Option<Value>,
    /// The task of the message, or the one that is asked for.
    pub(crate) task: Option<String>,
    pub(crate) context: Option<String>,
    /// The id of a new task, where clients make it.
    pub(crate) new: Option<String>,
    /// Whether to wait for the end.
    pub(crate) wait: Option<bool>,
    /// `historyLength`.
    pub(crate) history: Option<Value>,
    /// Members of the message; `$none` takes one away.
    #[serde(default)]
    pub(crate) message: Map<String, Value>,
    /// Members of the parameters.
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    /// Members of the JSON-RPC envelope.
    #[serde(default)]
    pub(crate) envelope: Map<String, Value>,
    /// Headers; `null` takes one away.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    /// Put before the path.
    pub(crate) prefix: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    /// The whole body: a text as it is, anything else as JSON.
    pub(crate) body: Option<Value>,
    /// Texts to be replaced in the body, each exactly once.
    #[serde(default)]
    pub(crate) replace: Vec<(String, String)>,
    /// Milliseconds to wait before.
    #[serde(default)]
    pub(crate) after_ms: u64,
    /// Events to be read of a stream that is then left open.
    pub(crate) leave_open_after: Option<usize>,
    #[serde(default)]
    pub(crate) expect: Expect,
    /// What is otherwise in some dialects.
    #[serde(default, rename = "in")]
    pub(crate) otherwise: BTreeMap<String, Expect>,
}

/// What has to be seen. Values are patterns: an object has at least these
/// members; `$absent`, `$any`, `$string`, `$time` and `$starts:…` stand for what
/// they say, `{"$exact": …}` allows no other member.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// The HTTP status; 200, or what the row of the error says.
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Value>,
    /// The row of the table of errors.
    pub(crate) error: Option<String>,
    /// A field that is named, in the words of 1.0 for the list of parts.
    pub(crate) field: Option<String>,
    /// The id of the JSON-RPC answer.
    #[serde(default, deserialize_with = "present")]
    pub(crate) rpc_id: Option<Value>,
    /// The state of the task, in the words of 0.3.
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
    /// All events of a stream, in neutral words.
    pub(crate) events: Option<Vec<String>>,
    /// Events that come in this order, others among them.
    #[serde(default)]
    pub(crate) among: Vec<String>,
    /// The payload of the first event.
    pub(crate) first: Option<Value>,
    /// The payload of the last event.
    pub(crate) last: Option<Value>,
    /// Pointers into the result whose values are kept under these names.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
}

/// A member that is there, also as `null`.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Expect {
    /// This, with what `other` says instead.
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

/// A row of the table of errors, which every binding shows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorRow {
    /// The name of the refusal.
    pub(crate) refusal: String,
    pub(crate) section: String,
    pub(crate) code: i64,
    /// The code in 0.1, if it is another.
    #[serde(rename = "code in 0.1")]
    pub(crate) code_01: Option<i64>,
    /// The HTTP status of REST.
    pub(crate) http: u16,
    /// The HTTP status of JSON-RPC; 200 if absent.
    #[serde(rename = "http of jsonrpc")]
    pub(crate) http_rpc: Option<u16>,
    pub(crate) status: String,
    pub(crate) reason: String,
    /// `a2a` or `ours`.
    pub(crate) domain: String,
    /// Facts of the error.
    #[serde(default)]
    pub(crate) metadata: Map<String, Value>,
    /// A header that comes with it.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Value>,
}
