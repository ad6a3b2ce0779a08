//! From what the engine says to the answer of a call.

use super::card::EXTENSIONS;
use super::method::GenerationRule;
use super::write::Members;
use super::{
    Binding, Call, Dialect, Rejected, RpcId, StreamEncoder, context, error, jsonrpc, legacy,
    upload, v01, v1, v03,
};
use crate::task::{
    ContextPage, Frame, Generation, Page, PushConfig, PushPage, Refusal, Sent, Task, TaskId,
    UploadGrant,
};
use serde_json::Value;

/// What the engine answers a unary call with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The answer to a send.
    Sent(Sent),
    /// A task that was read or ended.
    Task(Box<Task>),
    /// A page of tasks.
    Page(Page),
    /// A page of conversations.
    Contexts(ContextPage),
    /// Something was deleted.
    Deleted,
    /// The right to send a file.
    Upload(Box<UploadGrant>),
    /// A webhook.
    Push(PushConfig),
    /// Webhooks of a task.
    Pushes(PushPage),
    /// A webhook is gone.
    PushDeleted,
    /// A document that is the same in every dialect: a card, the catalogue.
    Document(Value),
}

/// A whole answer, in no HTTP library's types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers; names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Answers a call.
#[must_use]
pub fn answer(call: &Call, reply: &Reply) -> Answer {
    let result = match reply {
        Reply::Sent(sent) => call.sent(sent),
        Reply::Task(task) => call.task(task),
        Reply::Contexts(page) => context::encode_page(page),
        Reply::Deleted => Value::Object(serde_json::Map::new()),
        Reply::Upload(grant) => upload::encode(grant),
        Reply::Document(document) => document.clone(),
        Reply::Page(page) => match call.dialect.generation {
            Generation::V10 => v1::encode_page(page),
            // 0.1 has no list; it is never asked for one.
            Generation::V03 | Generation::V01 => v03::rest::encode_page(page),
        },
        Reply::Push(config) => call.push(config),
        Reply::Pushes(page) => call.pushes(page),
        // 0.3 says `null` in an envelope, an empty object everywhere else.
        Reply::PushDeleted => match (call.dialect.generation, call.dialect.binding) {
            (Generation::V03 | Generation::V01, Binding::JsonRpc) => Value::Null,
            (Generation::V10, _) | (_, Binding::Rest) => Members::new().build(),
        },
    };
    let body = match call.dialect.binding {
        Binding::JsonRpc => jsonrpc::result(&call.rpc_id, result),
        Binding::Rest => result,
    };
    let mut headers = vec![("content-type", call.media.to_owned())];
    headers.extend(call.extensions_header());
    Answer {
        status: 200,
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// Refuses a call.
#[must_use]
pub fn refuse(call: &Call, refusal: &Refusal) -> Answer {
    let refusal = call.own_fields(refusal);
    let answer = refused(&refusal, call.dialect, &call.rpc_id, call.media);
    if answer.status == 200 && call.reads_only_a_stream() {
        return refused_in_a_stream(call, refusal);
    }
    answer
}

/// The refusal as the one event of a stream.
fn refused_in_a_stream(call: &Call, refusal: Refusal) -> Answer {
    let mut encoder = StreamEncoder::new(call);
    Answer {
        status: 200,
        headers: encoder.headers(),
        body: encoder.frame(&Frame::Refused(refusal)).unwrap_or_default(),
    }
}

impl Rejected {
    /// Its answer.
    #[must_use]
    pub fn answer(&self) -> Answer {
        refused(&self.refusal, self.dialect, &self.rpc_id, self.media)
    }
}

fn refused(refusal: &Refusal, dialect: Dialect, id: &RpcId, media: &'static str) -> Answer {
    let row = super::ErrorRow::of(refusal, dialect.generation);
    let body = error::body(refusal, dialect);
    let body = match dialect.binding {
        Binding::JsonRpc => jsonrpc::error(id, body),
        Binding::Rest => body,
    };
    let mut headers = vec![("content-type", media.to_owned())];
    headers.extend(error::header(refusal));
    Answer {
        status: row.http_status(dialect.binding),
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// Joins the answers of a batch, in their order. Its HTTP status is always
/// 200: what became of each entry stands in its slot.
#[must_use]
pub fn batch(answers: &[Answer]) -> Answer {
    let bodies: Vec<&[u8]> = answers
        .iter()
        .map(|answer| answer.body.as_slice())
        .collect();
    let mut body = vec![b'['];
    body.extend(bodies.join(&b','));
    body.push(b']');
    Answer {
        status: 200,
        headers: vec![("content-type", super::media::JSON.to_owned())],
        body,
    }
}

impl Call {
    /// Whether nothing but events is read here. The clients of 0.3 over JSON-RPC
    /// that ask for a stream, the official ones too, cannot read an error that
    /// comes as a plain answer; a client of 1.0 can.
    fn reads_only_a_stream(&self) -> bool {
        self.streams() && self.only_events && self.dialect == Dialect::json_rpc(Generation::V03)
    }

    /// The refusal with the fields as the client spelled them: what is found
    /// behind the decoders is named in the words of 1.0.
    fn own_fields(&self, refusal: &Refusal) -> Refusal {
        let mut refusal = refusal.clone();
        let Refusal::InvalidParams { violations } = &mut refusal else {
            return refusal;
        };
        for violation in violations {
            if self.dialect.generation == Generation::V01 && violation.field == "message.contextId"
            {
                violation.field = "sessionId".to_owned();
            } else if let Some(field) = self.own_part(&violation.field) {
                violation.field = field;
            }
        }
        refusal
    }

    /// A field inside a part, where the client calls the list of parts otherwise
    /// or wraps the part's data.
    fn own_part(&self, field: &str) -> Option<String> {
        let inside = field.strip_prefix("message.parts")?;
        let rest_03 = self.dialect == Dialect::rest(Generation::V03);
        let message = self.params.value.get("message")?;
        let list = match message.get("content") {
            Some(_) if rest_03 => "content",
            _ => "parts",
        };
        let whole = format!("message.{list}{inside}");
        let Some((index, place)) = inside
            .strip_prefix('[')
            .and_then(|inside| inside.split_once("].data"))
        else {
            return Some(whole);
        };
        let part = index
            .parse::<usize>()
            .ok()
            .and_then(|index| message.get(list)?.get(index));
        let wrapping = match part.and_then(|part| Some((part, part.get("data")?))) {
            Some((part, data)) if rest_03 => v03::rest::wrapping(part, data),
            Some((part, data)) if self.dialect.generation != Generation::V10 => {
                legacy::wrapping(part, data).to_owned()
            }
            _ => String::new(),
        };
        Some(format!("message.{list}[{index}].data{wrapping}{place}"))
    }

    /// The answer to a send.
    fn sent(&self, sent: &Sent) -> Value {
        match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, _) => v1::encode_sent(sent),
            (Generation::V03, Binding::JsonRpc) => v03::encode_sent(sent),
            (Generation::V03, Binding::Rest) => v03::rest::encode_sent(sent),
            (Generation::V01, _) => match (sent, self.client_task_id()) {
                (Sent::Task(task), _) => v01::encode_task(task),
                (Sent::Message(_), Some(id)) => v01::encode_sent(sent, &id),
                // A send of 0.1 without its id was refused long ago.
                (Sent::Message(message), None) => v03::encode_message(message),
            },
        }
    }

    fn push(&self, config: &PushConfig) -> Value {
        match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, _) => v1::encode_push(config),
            (Generation::V03, Binding::JsonRpc) => v03::encode_push(config),
            (Generation::V03, Binding::Rest) => v03::rest::encode_push(config),
            (Generation::V01, _) => v01::encode_push(config),
        }
    }

    fn pushes(&self, page: &PushPage) -> Value {
        match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, _) => v1::encode_pushes(page),
            (Generation::V03, Binding::Rest) => v03::rest::encode_pushes(page),
            // 0.1 has no list; it is never asked for one.
            (Generation::V03 | Generation::V01, _) => v03::encode_pushes(page),
        }
    }

    fn task(&self, task: &Task) -> Value {
        match (self.generation_of(task), self.dialect.binding) {
            (Generation::V10, _) => v1::encode_task(task),
            (Generation::V03, Binding::JsonRpc) => v03::encode_task(task),
            (Generation::V03, Binding::Rest) => v03::rest::encode_task(task),
            (Generation::V01, _) if self.rule == GenerationRule::OfTask => {
                v01::encode_task(&self.with_history_of_v01(task))
            }
            (Generation::V01, _) => v01::encode_task(task),
        }
    }

    /// The generation that answers with `task`: that of the call, or of the
    /// task where the method is shared by 0.1 and 0.3.
    pub(super) fn generation_of(&self, task: &Task) -> Generation {
        match (self.rule, task.generation) {
            (GenerationRule::Named(generation), _) => generation,
            (GenerationRule::OfTask, Generation::V01) => Generation::V01,
            (GenerationRule::OfTask, Generation::V03 | Generation::V10) => Generation::V03,
        }
    }

    /// In 0.1 no history is given unless a number is asked for; the shared
    /// methods are read in the words of 0.3, which gives it.
    fn with_history_of_v01(&self, task: &Task) -> Task {
        let asked = match self.params.value.get("historyLength") {
            None | Some(Value::Null) => false,
            Some(length) => length.as_u64() != Some(0),
        };
        Task {
            history: task.history.clone().filter(|_| asked),
            ..task.clone()
        }
    }

    /// The task id a client of 0.1 made.
    pub(super) fn client_task_id(&self) -> Option<TaskId> {
        let id = self.params.value.get("id").and_then(Value::as_str)?;
        TaskId::parse(id).ok()
    }

    /// Names the extensions which the client asked for and which are on.
    pub(super) fn extensions_header(&self) -> Option<(&'static str, String)> {
        let name = match self.dialect.generation {
            Generation::V10 => "a2a-extensions",
            Generation::V03 => "x-a2a-extensions",
            Generation::V01 => return None,
        };
        let asked = |uri: &&str| self.extensions.iter().any(|asked| asked == uri);
        let offered = EXTENSIONS.into_iter().map(|extension| extension.uri);
        let on: Vec<&str> = offered.filter(asked).collect();
        (!on.is_empty()).then(|| (name, on.join(", ")))
    }
}

#[cfg(test)]
mod tests;
