//! The six dialects of the protocol: builds requests and reads responses. It follows the
//! specifications and does not use the code under test.

use crate::frames::Frame;
use crate::world::{Reply, Request};
use serde_json::{Map, Value, json};

/// The id of every JSON-RPC request made here.
pub const RPC_ID: u64 = 7;
/// The metadata key for the skill of a message, in every generation.
pub const SKILL: &str = "a2a-lambda/skillId";

/// A generation and a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// JSON-RPC of 1.0.
    Rpc10,
    /// HTTP+JSON of 1.0.
    Rest10,
    /// JSON-RPC of 0.3.
    Rpc03,
    /// HTTP+JSON of 0.3.
    Rest03,
    /// JSON-RPC of 0.1.
    Rpc01,
    /// 0.1 with one path per method and parameters without an envelope.
    Path01,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Send and wait for the response.
    Send,
    /// Send and stream the events.
    Stream,
    /// Read a task.
    Get,
    /// Cancel a task.
    Cancel,
    /// Stream the events of an existing task.
    Subscribe,
    /// List tasks.
    List,
}

/// A message, independent of the dialect.
#[derive(Debug, Clone)]
pub struct Say<'a> {
    /// The text.
    pub text: &'a str,
    /// The skill it is for.
    pub skill: Option<&'a str>,
    /// The task it is for.
    pub task: Option<&'a str>,
    /// The id of the new task in 0.1; other generations ignore it.
    pub new_task: &'a str,
    /// The context id.
    pub context: Option<&'a str>,
    /// The message id, which 0.1 does not have.
    pub id: &'a str,
}

impl<'a> Say<'a> {
    /// A first message for `skill`.
    #[must_use]
    pub const fn to(skill: &'a str, text: &'a str) -> Self {
        Self {
            text,
            skill: Some(skill),
            task: None,
            new_task: "order:1",
            context: None,
            id: "m-1",
        }
    }

    /// An answer in `task`.
    #[must_use]
    pub const fn in_task(task: &'a str, text: &'a str) -> Self {
        Self {
            text,
            skill: None,
            task: Some(task),
            new_task: "",
            context: None,
            id: "m-1",
        }
    }

    /// Sets the context.
    #[must_use]
    pub const fn in_context(mut self, context: &'a str) -> Self {
        self.context = Some(context);
        self
    }

    /// Sets the message id.
    #[must_use]
    pub const fn with_id(mut self, id: &'a str) -> Self {
        self.id = id;
        self
    }

    /// Sets the id of the new task, for 0.1.
    #[must_use]
    pub const fn under(mut self, task: &'a str) -> Self {
        self.new_task = task;
        self
    }
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 6] = [
        Self::Rpc10,
        Self::Rest10,
        Self::Rpc03,
        Self::Rest03,
        Self::Rpc01,
        Self::Path01,
    ];

    /// Whether it is JSON-RPC.
    #[must_use]
    pub const fn is_rpc(self) -> bool {
        matches!(self, Self::Rpc10 | Self::Rpc03 | Self::Rpc01)
    }

    /// Whether it is 1.0.
    #[must_use]
    pub const fn is_v10(self) -> bool {
        matches!(self, Self::Rpc10 | Self::Rest10)
    }

    /// Whether it is 0.1.
    #[must_use]
    pub const fn is_v01(self) -> bool {
        matches!(self, Self::Rpc01 | Self::Path01)
    }

    /// The member of a message that holds its parts.
    #[must_use]
    pub const fn parts(self) -> &'static str {
        match self {
            // In REST, the 0.3 SDKs use ProtoJSON of the 0.3 proto: `content`, `ROLE_USER`,
            // `TASK_STATE_*`.
            Self::Rest03 => "content",
            _ => "parts",
        }
    }

    /// The JSON-RPC method. For the paths of 0.1 it is the method that an envelope would
    /// name.
    #[must_use]
    pub const fn method(self, op: Op) -> &'static str {
        match (self, op) {
            (Self::Rpc10 | Self::Rest10, Op::Send) => "SendMessage",
            (Self::Rpc10 | Self::Rest10, Op::Stream) => "SendStreamingMessage",
            (Self::Rpc10 | Self::Rest10, Op::Get) => "GetTask",
            (Self::Rpc10 | Self::Rest10, Op::Cancel) => "CancelTask",
            (Self::Rpc10 | Self::Rest10, Op::Subscribe) => "SubscribeToTask",
            (_, Op::List) => "ListTasks",
            (Self::Rpc03 | Self::Rest03, Op::Send) => "message/send",
            (Self::Rpc03 | Self::Rest03, Op::Stream) => "message/stream",
            (Self::Rpc01 | Self::Path01, Op::Send) => "tasks/send",
            (Self::Rpc01 | Self::Path01, Op::Stream) => "tasks/sendSubscribe",
            (_, Op::Get) => "tasks/get",
            (_, Op::Cancel) => "tasks/cancel",
            (_, Op::Subscribe) => "tasks/resubscribe",
        }
    }

    /// HTTP method and path of an operation on `id`.
    #[must_use]
    pub fn route(self, op: Op, id: &str) -> (&'static str, String) {
        let base = match self {
            Self::Rpc10 | Self::Rpc03 | Self::Rpc01 => return ("POST", "/".to_owned()),
            Self::Path01 => return ("POST", format!("/{}", self.method(op))),
            Self::Rest10 => "",
            Self::Rest03 => "/v1",
        };
        match op {
            Op::Send => ("POST", format!("{base}/message:send")),
            Op::Stream => ("POST", format!("{base}/message:stream")),
            Op::Get => ("GET", format!("{base}/tasks/{id}")),
            Op::List => ("GET", format!("{base}/tasks")),
            Op::Cancel => ("POST", format!("{base}/tasks/{id}:cancel")),
            Op::Subscribe => ("POST", format!("{base}/tasks/{id}:subscribe")),
        }
    }

    /// The parameters of a send.
    #[must_use]
    pub fn say(self, say: &Say<'_>) -> Value {
        let part = match self {
            Self::Rpc10 | Self::Rest10 | Self::Rest03 => json!({"text": say.text}),
            Self::Rpc03 => json!({"kind": "text", "text": say.text}),
            Self::Rpc01 | Self::Path01 => json!({"type": "text", "text": say.text}),
        };
        let mut message = Map::new();
        message.insert(self.parts().to_owned(), json!([part]));
        let role = match self {
            Self::Rpc10 | Self::Rest10 | Self::Rest03 => "ROLE_USER",
            _ => "user",
        };
        message.insert("role".to_owned(), role.into());
        if let Some(skill) = say.skill {
            message.insert("metadata".to_owned(), json!({ SKILL: skill }));
        }
        if self.is_v01() {
            let id = say.task.unwrap_or(say.new_task);
            let mut params = json!({"id": id, "message": message});
            if let (Some(context), Some(params)) = (say.context, params.as_object_mut()) {
                params.insert("sessionId".to_owned(), context.into());
            }
            return params;
        }
        message.insert("messageId".to_owned(), say.id.into());
        if self == Self::Rpc03 {
            message.insert("kind".to_owned(), "message".into());
        }
        for (name, value) in [("taskId", say.task), ("contextId", say.context)] {
            if let Some(value) = value {
                message.insert(name.to_owned(), value.into());
            }
        }
        json!({ "message": message })
    }

    /// The JSON-RPC envelope around parameters.
    #[must_use]
    pub fn envelope(self, op: Op, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": RPC_ID, "method": self.method(op), "params": params})
    }

    /// A request with these parameters; `id` is used where the path contains it.
    #[must_use]
    pub fn request(self, op: Op, id: &str, params: &Value) -> Request {
        let (method, path) = self.route(op, id);
        let request = if self.is_rpc() {
            Request::post(path, &self.envelope(op, params))
        } else if method == "GET" {
            let query: Vec<String> = params
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "id")
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                })
                .collect();
            let mark = if query.is_empty() { "" } else { "?" };
            Request::new(method, format!("{path}{mark}{}", query.join("&")))
        } else {
            Request::post(path, params)
        };
        self.versioned(request)
    }

    /// Adds the version header that 1.0 requires.
    #[must_use]
    pub fn versioned(self, request: Request) -> Request {
        if self.is_v10() {
            request.header("a2a-version", "1.0")
        } else {
            request
        }
    }

    /// A send.
    #[must_use]
    pub fn send(self, say: &Say<'_>) -> Request {
        self.request(Op::Send, "", &self.say(say))
    }

    /// A send that streams.
    #[must_use]
    pub fn stream(self, say: &Say<'_>) -> Request {
        self.request(Op::Stream, "", &self.say(say))
    }

    /// An operation on a task, with only its id as parameter.
    #[must_use]
    pub fn of_task(self, op: Op, id: &str) -> Request {
        self.request(op, id, &self.id_only(id))
    }

    /// The parameters that name a task; REST has the id in the path.
    #[must_use]
    pub fn id_only(self, id: &str) -> Value {
        match self {
            Self::Rest10 | Self::Rest03 => json!({}),
            _ => json!({ "id": id }),
        }
    }

    /// A read with `historyLength`.
    #[must_use]
    pub fn get(self, id: &str, history_length: impl Into<Value>) -> Request {
        let mut params = self.id_only(id);
        if let Some(params) = params.as_object_mut() {
            params.insert("historyLength".to_owned(), history_length.into());
        }
        self.request(Op::Get, id, &params)
    }

    /// The result of a successful response: the JSON-RPC result, or the body.
    #[must_use]
    pub fn result(self, reply: &Reply) -> Value {
        let body = reply.json();
        if self.is_rpc() {
            body.get("result").cloned().unwrap_or_default()
        } else {
            body
        }
    }

    /// The task in the response to a send, get or cancel.
    #[must_use]
    pub fn task(self, reply: &Reply) -> Value {
        let result = self.result(reply);
        result.get("task").cloned().unwrap_or(result)
    }

    /// The state of a task or status event, as 0.3 spells it.
    #[must_use]
    pub fn state(self, holder: &Value) -> String {
        let state = at(holder, "/status/state").as_str().unwrap_or("?");
        match state.strip_prefix("TASK_STATE_") {
            // The 0.3 proto spells this state with two L.
            Some("CANCELLED") if self == Self::Rest03 => "canceled".to_owned(),
            Some(word) if self.is_v10() || self == Self::Rest03 => {
                word.to_ascii_lowercase().replace('_', "-")
            }
            None if !self.is_v10() && self != Self::Rest03 => state.to_owned(),
            _ => format!("{state} in {self:?}"),
        }
    }

    /// The context id of a task.
    #[must_use]
    pub fn context(self, task: &Value) -> String {
        let member = if self.is_v01() {
            "/sessionId"
        } else {
            "/contextId"
        };
        at(task, member).as_str().unwrap_or_default().to_owned()
    }

    /// The text of the parts of a message or artifact.
    #[must_use]
    pub fn words(self, holder: &Value) -> String {
        let parts = holder.get("parts").or_else(|| holder.get("content"));
        let parts = parts.and_then(Value::as_array);
        let texts = parts.into_iter().flatten().map(|part| at(part, "/text"));
        texts.filter_map(Value::as_str).collect()
    }

    /// The text of the message in a task's status.
    #[must_use]
    pub fn status_words(self, task: &Value) -> String {
        self.words(at(task, "/status/message"))
    }

    /// Describes a stream event in the same form for all dialects: `task working`, `status
    /// working on it`, `artifact letters +b`.
    #[must_use]
    pub fn described(self, frame: &Frame) -> String {
        if frame.name.as_deref() == Some("error") {
            return format!("error {}", frame.data);
        }
        let payload = if self.is_rpc() {
            frame.data.get("result").unwrap_or(&frame.data)
        } else {
            &frame.data
        };
        let (kind, body) = self.kind(payload);
        match kind {
            "task" => format!("task {}", self.state(body)),
            "message" => format!("message {}", self.words(body)),
            "status" => {
                let said = format!("status {} {}", self.state(body), self.status_words(body));
                said.trim_end().to_owned()
            }
            "artifact" => self.artifact(body),
            _ => format!("unknown {payload}"),
        }
    }

    fn kind(self, payload: &Value) -> (&'static str, &Value) {
        const WRAPPED: [(&str, &str); 4] = [
            ("task", "task"),
            ("message", "message"),
            ("statusUpdate", "status"),
            ("artifactUpdate", "artifact"),
        ];
        match self {
            Self::Rpc10 | Self::Rest10 | Self::Rest03 => {
                let members = payload.as_object();
                let only = members.filter(|members| members.len() == 1);
                let found = only.and_then(|members| {
                    let (name, body) = members.iter().next()?;
                    let (_, kind) = WRAPPED.iter().find(|(known, _)| known == name)?;
                    Some((*kind, body))
                });
                found.unwrap_or(("?", payload))
            }
            Self::Rpc03 => match at(payload, "/kind").as_str() {
                Some("task") => ("task", payload),
                Some("message") => ("message", payload),
                Some("status-update") => ("status", payload),
                Some("artifact-update") => ("artifact", payload),
                _ => ("?", payload),
            },
            Self::Rpc01 | Self::Path01 if payload.get("artifact").is_some() => {
                ("artifact", payload)
            }
            Self::Rpc01 | Self::Path01 => ("status", payload),
        }
    }

    /// Describes an artifact event: `artifact <name or index> [+]<text>[.]`, with `+` for
    /// an appended chunk and `.` for the last one.
    fn artifact(self, update: &Value) -> String {
        let artifact = at(update, "/artifact");
        // In 0.1 `append` and `lastChunk` are members of the artifact.
        let flags = if self.is_v01() { artifact } else { update };
        let sign = |name: &str, sign: &'static str| {
            if flags.get(name) == Some(&Value::Bool(true)) {
                sign
            } else {
                ""
            }
        };
        let name = at(artifact, "/name").as_str().unwrap_or("?");
        let index = match at(artifact, "/index").as_u64() {
            Some(index) => format!("#{index} "),
            None => String::new(),
        };
        format!(
            "artifact {index}{name} {}{}{}",
            sign("append", "+"),
            self.words(artifact),
            sign("lastChunk", ".")
        )
    }

    /// Whether an event says that it is the last of the stream; `None` where the generation
    /// has no such member.
    #[must_use]
    pub fn is_final(self, frame: &Frame) -> Option<bool> {
        let payload = if self.is_rpc() {
            frame.data.get("result")?
        } else {
            &frame.data
        };
        self.kind(payload).1.get("final")?.as_bool()
    }
}

/// The value at a JSON pointer; `null` if there is none.
#[must_use]
pub fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    const NOTHING: &Value = &Value::Null;
    value.pointer(pointer).unwrap_or(NOTHING)
}

/// Makes a test for each dialect from functions that take a [`Dialect`], so that one
/// dialect that fails does not hide the others. A `paused` test has a clock that only
/// advances when every task waits.
///
/// ```text
/// per_dialect! {
///     paused ALL:
///     a_task_is_listed
/// }
/// ```
#[macro_export]
macro_rules! per_dialect {
    ($clock:ident ALL: $($case:ident)*) => {
        $crate::per_dialect! { $clock [Rpc10, Rest10, Rpc03, Rest03, Rpc01, Path01]: $($case)* }
    };
    ($clock:ident $dialects:tt: $($case:ident)*) => {
        $($crate::per_dialect! { @case $clock $case $dialects })*
    };
    (@case $clock:ident $case:ident [$($dialect:ident),*]) => {
        mod $case {
            $($crate::per_dialect! { @test $clock $case $dialect })*
        }
    };
    (@test $clock:ident $case:ident Rpc10) => { $crate::per_dialect! { @fn $clock $case json_rpc_1_0 Rpc10 } };
    (@test $clock:ident $case:ident Rest10) => { $crate::per_dialect! { @fn $clock $case rest_1_0 Rest10 } };
    (@test $clock:ident $case:ident Rpc03) => { $crate::per_dialect! { @fn $clock $case json_rpc_0_3 Rpc03 } };
    (@test $clock:ident $case:ident Rest03) => { $crate::per_dialect! { @fn $clock $case rest_0_3 Rest03 } };
    (@test $clock:ident $case:ident Rpc01) => { $crate::per_dialect! { @fn $clock $case json_rpc_0_1 Rpc01 } };
    (@test $clock:ident $case:ident Path01) => { $crate::per_dialect! { @fn $clock $case paths_0_1 Path01 } };
    (@fn paused $case:ident $name:ident $dialect:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $name() {
            super::$case($crate::dialect::Dialect::$dialect).await;
        }
    };
    (@fn running $case:ident $name:ident $dialect:ident) => {
        #[tokio::test]
        async fn $name() {
            super::$case($crate::dialect::Dialect::$dialect).await;
        }
    };
}
