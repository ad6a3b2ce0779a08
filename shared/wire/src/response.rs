//! Writes the response to a call from the engine's reply.

use super::card::EXTENSIONS;
use super::legacy::Legacy;
use super::method::GenerationRule;
use super::payload::{Members, Payload, text};
use super::v1::View;
use super::{
    Binding, Call, Dialect, Operation, Rejected, RpcId, error, jsonrpc, media, push, send, sse,
    upload,
};
use a2a_lambda_model::task::{
    A2aError, ContextPage, Generation, Page, PushConfig, PushPage, SendResponse, Task, TaskId,
    UploadGrant,
};
use serde_json::Value;

/// The engine's reply to a unary call.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodResult {
    /// The result of a send.
    Sent(SendResponse),
    /// A task that was read or canceled.
    Task(Box<Task>),
    /// A page of tasks.
    Page(Page),
    /// A page of contexts.
    Contexts(ContextPage),
    /// A context or a task was deleted.
    Deleted,
    /// A URL to upload a file to.
    Upload(Box<UploadGrant>),
    /// A push config.
    Push(PushConfig),
    /// A page of the push configs of a task.
    Pushes(PushPage),
    /// A push config was deleted.
    PushDeleted,
    /// A document that is the same in every dialect: a card or the catalogue.
    Document(Value),
}

/// A whole response, without the types of an HTTP library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers; names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Writes the response to a call.
#[must_use]
pub fn answer(call: &Call, reply: &MethodResult) -> WireResponse {
    let result = match reply {
        MethodResult::Sent(result) => call.send_payload(result),
        MethodResult::Task(task) => call.task(task),
        MethodResult::Contexts(page) => Payload::Contexts(page),
        MethodResult::Deleted => Members::new().into(),
        MethodResult::Upload(grant) => upload::encode(grant).into(),
        MethodResult::Document(document) => document.clone().into(),
        MethodResult::Page(page) => match call.dialect.generation {
            Generation::V10 => Payload::View(View::Page(page)),
            // Unreachable for 0.1, which cannot list tasks.
            Generation::V03 | Generation::V01 => {
                Legacy(Dialect::rest(Generation::V03)).page(page).into()
            }
        },
        MethodResult::Push(config) => push::write(config, call.dialect).into(),
        MethodResult::Pushes(page) => push::write_page(page, call.dialect).into(),
        // A2A 0.3 §7.8: the JSON-RPC result of a delete is `null`. Elsewhere it is an
        // empty object.
        MethodResult::PushDeleted => match (call.dialect.generation, call.dialect.binding) {
            (Generation::V03 | Generation::V01, Binding::JsonRpc) => Value::Null.into(),
            (Generation::V10, _) | (_, Binding::Rest) => Members::new().into(),
        },
    };
    let body = match call.dialect.binding {
        Binding::JsonRpc => text(&jsonrpc::result(&call.rpc_id, result)),
        Binding::Rest => text(&result),
    };
    let mut headers = vec![("content-type", call.media.to_owned())];
    headers.extend(call.extensions_header());
    WireResponse {
        status: 200,
        headers,
        body,
    }
}

/// Writes the error of a call.
#[must_use]
pub fn refuse(call: &Call, error: &A2aError) -> WireResponse {
    let error = call.own_field(error);
    let response = error_response(&error, call.dialect, &call.rpc_id, call.media);
    if call.reads_only_a_stream(&error) {
        return as_event(response);
    }
    response
}

/// An error of JSON-RPC as the only event of a stream, unless it has an HTTP status of its own.
fn as_event(response: WireResponse) -> WireResponse {
    if response.status != 200 {
        return response;
    }
    let error: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    WireResponse {
        headers: vec![("content-type", media::EVENT_STREAM.to_owned())],
        body: sse::event(None, &error),
        ..response
    }
}

impl Rejected {
    /// Writes the error of a request of a batch.
    #[must_use]
    pub fn answer(&self) -> WireResponse {
        error_response(&self.error, self.dialect, &self.rpc_id, self.media)
    }

    /// Writes the error of a request that is not a batch. A client that names events and no JSON
    /// calls a streaming method over JSON-RPC, and reads only events there.
    #[must_use]
    pub fn response(&self) -> WireResponse {
        let is_rpc = self.dialect.binding == Binding::JsonRpc;
        match is_rpc && self.events_alone {
            true => as_event(self.answer()),
            false => self.answer(),
        }
    }
}

fn error_response(
    error: &A2aError,
    dialect: Dialect,
    id: &RpcId,
    media: &'static str,
) -> WireResponse {
    let row = super::ErrorRow::of(error, dialect.generation);
    let body = error::body(error, dialect);
    let body = match dialect.binding {
        Binding::JsonRpc => jsonrpc::error(id, &body),
        Binding::Rest => body,
    };
    let mut headers = vec![("content-type", media.to_owned())];
    headers.extend(error::header(error));
    WireResponse {
        status: row.http_status(dialect.binding),
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// Joins the responses of a batch, in their order. The HTTP status is 200, as each entry has
/// its own result or error; 204 without a response, if all are notifications.
#[must_use]
pub fn batch(responses: &[WireResponse]) -> WireResponse {
    // JSON-RPC 2.0 §6: the response to a batch is an array of responses, and never an empty one.
    if responses.is_empty() {
        return WireResponse {
            status: 204,
            headers: Vec::new(),
            body: Vec::new(),
        };
    }
    let bodies: Vec<&[u8]> = responses
        .iter()
        .map(|response| response.body.as_slice())
        .collect();
    let mut body = vec![b'['];
    body.extend(bodies.join(&b','));
    body.push(b']');
    WireResponse {
        status: 200,
        headers: vec![("content-type", super::media::JSON.to_owned())],
        body,
    }
}

impl Call {
    /// Whether the client of this call can read the error only as an event (A2A 1.0 §9.4.2), as
    /// the official SDKs of 0.3 and those of 1.0 for Go and .NET. A subscription of 1.0 to an
    /// ended task is plain, since the official kit counts any stream there as success.
    fn reads_only_a_stream(&self, error: &A2aError) -> bool {
        let is_unsupported = matches!(error, A2aError::UnsupportedOperation { .. });
        let is_plain = match self.dialect.generation {
            Generation::V10 => self.operation == Operation::Subscribe && is_unsupported,
            Generation::V03 => false,
            Generation::V01 => true,
        };
        let is_rpc = self.dialect.binding == Binding::JsonRpc;
        self.streams() && self.events_alone && is_rpc && !is_plain
    }

    /// The error with its field named as in the client's request. The engine names
    /// the fields as in 1.0.
    fn own_field(&self, error: &A2aError) -> A2aError {
        let mut error = error.clone();
        if let A2aError::InvalidParams { field, .. } = &mut error
            && let Some(name) = self.own_name(field)
        {
            *field = name;
        }
        error
    }

    fn own_name(&self, field: &str) -> Option<String> {
        let params = self.object();
        // The context is that of the message, but that of the request in 0.1.
        if self.dialect.generation == Generation::V01 && field == "message.contextId" {
            return Some(params.at("contextId"));
        }
        let inside = field.strip_prefix("message.parts")?;
        let message = params.object("message").ok()??;
        let inside_data = || {
            let (index, inner) = inside.strip_prefix('[')?.split_once("].data")?;
            let part = message.part(index.parse().ok()?)?;
            let (path, _) = send::data_of(&part, self.dialect).ok()?;
            Some(format!("{}{path}{inner}", part.at("data")))
        };
        let data_path = || format!("{}{inside}", message.at("parts"));
        Some(inside_data().unwrap_or_else(data_path))
    }

    /// Writes the result of a send.
    fn send_payload<'a>(&self, response: &'a SendResponse) -> Payload<'a> {
        let legacy = Legacy(self.dialect);
        match (self.dialect.generation, response, self.client_task_id()) {
            (Generation::V10, ..) => Payload::View(View::Sent(response)),
            (Generation::V01, SendResponse::Message(message), Some(id)) => {
                legacy.message_as_task(message, &id).into()
            }
            // A message of 0.1 without an id is unreachable: the decoder refuses such a send.
            (Generation::V03 | Generation::V01, ..) => legacy.send_response(response).into(),
        }
    }

    fn task<'a>(&self, task: &'a Task) -> Payload<'a> {
        let generation = self.generation_of(task);
        if generation == Generation::V10 {
            return Payload::View(View::Task(task));
        }
        let dialect = Dialect {
            generation,
            ..self.dialect
        };
        let mut task = Legacy(dialect).task(task);
        let is_v01 = generation == Generation::V01;
        if is_v01 && self.rule == GenerationRule::OfTask && !self.asks_for_history() {
            task.remove("history");
        }
        task.into()
    }

    /// The generation in which `task` is written: that of the call, or that of the
    /// task where 0.1 and 0.3 share the method.
    pub(super) fn generation_of(&self, task: &Task) -> Generation {
        match (self.rule, task.generation) {
            (GenerationRule::Named(generation), _) => generation,
            (GenerationRule::OfTask, Generation::V01) => Generation::V01,
            (GenerationRule::OfTask, Generation::V03 | Generation::V10) => Generation::V03,
        }
    }

    /// Whether a client of 0.1 gets the history: not unless it names a number. Shared methods are
    /// decoded as 0.3, whose default is 100 messages.
    fn asks_for_history(&self) -> bool {
        // A2A 0.1 §7.3.1: history is included if `historyLength` is positive.
        let length = self.params.get("historyLength");
        length.is_some_and(|length| !length.is_null() && length.as_u64() != Some(0))
    }

    /// The task id that a client of 0.1 made.
    pub(super) fn client_task_id(&self) -> Option<TaskId> {
        let id = self.params.get("id").and_then(Value::as_str)?;
        TaskId::parse(id).ok()
    }

    /// The header that names the extensions which the client asked for and this
    /// server offers.
    pub(super) fn extensions_header(&self) -> Option<(&'static str, String)> {
        let name = match self.dialect.generation {
            // A2A 1.0 §3.2.6, §4.6.1; in 0.3 the header has the prefix `X-`.
            Generation::V10 => "a2a-extensions",
            Generation::V03 => "x-a2a-extensions",
            Generation::V01 => return None,
        };
        let is_active = |uri: &&str| self.extensions.iter().any(|other| other == uri);
        let uris = EXTENSIONS.into_iter().map(|extension| extension.uri);
        let on: Vec<&str> = uris.filter(is_active).collect();
        (!on.is_empty()).then(|| (name, on.join(", ")))
    }
}

#[cfg(test)]
mod tests;
