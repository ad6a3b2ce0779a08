//! The functions that the fuzz targets in `fuzz/` run. Each takes any bytes, and
//! returns an error when the code breaks a promise. Not part of the public API.
//!
//! The tests of this crate run the same functions over mutated examples.

use crate::auth::Caller;
use crate::engine::fuzz::{
    PagePosition, PagedList, SecretKeySet, TaskPosition, content_type, disposition,
};
use crate::store::stored::{self, Encoded};
use crate::store::{StoreError, ThreadPosition, ThreadState};
use crate::task::{
    A2aError, EventId, ListQuery, Message, Owner, Part, PartContent, Subject, TenantId, Timestamp,
};
use a2a_lambda_wire::{
    Call, MethodCall, OpenedRequest, RawRequest, UnaryCall, WireResponse, open, refuse,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

mod edges;
#[cfg(test)]
mod tests;

#[cfg(feature = "aws")]
pub use edges::queue;
pub use edges::{HttpTarget, url};

/// A promise that some bytes have broken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

/// One path for each decoder of requests, JSON-RPC first.
const PATHS: [(&str, &str); 16] = [
    ("POST", "/"),
    ("POST", "/message:send"),
    ("POST", "/message:stream"),
    ("POST", "/v1/message:send"),
    ("POST", "/tasks/send"),
    ("POST", "/tasks/get"),
    ("POST", "/tasks/pushNotification/set"),
    ("POST", "/tasks/t/pushNotificationConfigs"),
    ("POST", "/v1/tasks/t/pushNotificationConfigs"),
    ("POST", "/tasks/t:cancel"),
    ("POST", "/a2a-lambda/uploads"),
    ("GET", "/tasks"),
    ("GET", "/tasks/t"),
    ("GET", "/v1/tasks"),
    ("GET", "/a2a-lambda/contexts"),
    ("DELETE", "/a2a-lambda/contexts/c"),
];

/// Uses the first byte to choose one of `many`; returns it and the other bytes.
fn choose<'b, T: Copy>(bytes: &'b [u8], many: &[T]) -> Option<(T, &'b [u8])> {
    let (first, rest) = bytes.split_first()?;
    let place = usize::from(*first).checked_rem(many.len())?;
    Some((*many.get(place)?, rest))
}

fn ensure(promise: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if promise { Ok(()) } else { Err(Broken(what())) }
}

/// Decodes a request, in every protocol generation. The first byte chooses the
/// path, the second the version, the rest is the body.
///
/// # Errors
/// [`Broken`] if an error response does not fit the protocol, or an error about
/// parameters names no field.
pub fn rpc_decode(bytes: &[u8]) -> Result<(), Broken> {
    let Some(((method, path), bytes)) = choose(bytes, &PATHS) else {
        return Ok(());
    };
    let Some((version, body)) = choose(bytes, &[None, Some("1.0"), Some("0.3"), Some("9.9")])
    else {
        return Ok(());
    };
    request(&RawRequest {
        method,
        path,
        version,
        content_type: Some("application/json"),
        body,
        ..RawRequest::default()
    })
    .map(drop)
}

/// The decoded operations of a request; those with an error are left out.
fn request(request: &RawRequest<'_>) -> Result<Vec<MethodCall>, Broken> {
    let entries = match open(request) {
        Err(rejected) => vec![Err(rejected)],
        Ok(OpenedRequest::One(call)) => vec![Ok(*call)],
        Ok(OpenedRequest::Batch(entries)) => entries,
    };
    let mut asks = Vec::new();
    for entry in entries {
        match entry {
            Err(rejected) => in_order(&rejected.answer())?,
            Ok(call) => asks.extend(read(&call)?),
        }
    }
    Ok(asks)
}

fn read(call: &Call) -> Result<Option<MethodCall>, Broken> {
    let refusal = match call.check_version().and_then(|()| call.decode()) {
        Ok(ask) => return Ok(Some(ask)),
        Err(refusal) => refusal,
    };
    if let A2aError::InvalidParams { field, description } = &refusal {
        ensure(!field.is_empty(), || {
            format!("error names no field: {description}")
        })?;
    }
    in_order(&refuse(call, &refusal)).map(|()| None)
}

fn in_order(answer: &WireResponse) -> Result<(), Broken> {
    ensure([200, 400, 404, 413, 415].contains(&answer.status), || {
        format!("response has the unexpected status {}", answer.status)
    })?;
    let body: Result<Value, _> = serde_json::from_slice(&answer.body);
    ensure(body.is_ok_and(|body| body.is_object()), || {
        format!(
            "response is not a JSON object: {:?}",
            String::from_utf8_lossy(&answer.body)
        )
    })
}

/// Decodes a part of a message. The first byte chooses a member of the part, and
/// with it the generation; the rest is the member's text.
///
/// # Errors
/// [`Broken`] if the name or the media type of an accepted file could break out of
/// the headers under which the file is served.
pub fn parts(bytes: &[u8]) -> Result<(), Broken> {
    const WAYS: [&str; 8] = [
        "raw",
        "filename",
        "mediaType",
        "url",
        "text",
        "bytes",
        "name",
        "mimeType",
    ];
    let Some((way, rest)) = choose(bytes, &WAYS) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(rest);
    let text = text.as_ref();
    let mut part = match way {
        "bytes" | "name" | "mimeType" => json!({"kind": "file", "file": {"bytes": "AAAA"}}),
        "text" | "url" => json!({}),
        _ => json!({"raw": "AAAA"}),
    };
    let legacy = part.get("kind").is_some();
    let target = if legacy {
        part.get_mut("file")
    } else {
        Some(&mut part)
    };
    if let Some(members) = target.and_then(Value::as_object_mut) {
        members.insert(way.to_owned(), Value::from(text));
    }
    let message = json!({"messageId": "m", "role": if legacy { "user" } else { "ROLE_USER" },
        "kind": "message", "parts": [part]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "params": {"message": message},
        "method": if legacy { "message/send" } else { "SendMessage" }});
    let body = body.to_string();
    let asks = request(&RawRequest {
        method: "POST",
        path: "/",
        version: (!legacy).then_some("1.0"),
        content_type: Some("application/json"),
        body: body.as_bytes(),
        ..RawRequest::default()
    })?;
    for ask in &asks {
        if let MethodCall::Unary(UnaryCall::Send(command)) = ask {
            handed_on(&command.message)?;
        }
    }
    Ok(())
}

fn handed_on(message: &Message) -> Result<(), Broken> {
    for Part {
        content,
        filename,
        media_type,
        ..
    } in &message.parts
    {
        let disposition = disposition(filename.as_deref());
        let name = disposition.strip_prefix("attachment; filename=\"");
        let closed = name.and_then(|name| name.split_once('"'));
        let safe = closed.is_some_and(|(name, rest)| {
            !name.contains(['/', '\\'])
                && name != ".."
                && (rest.is_empty() || rest.starts_with("; filename*=UTF-8''"))
                && !rest.contains(['"', ','])
                && rest.matches(';').count() <= 1
        });
        let value = http::HeaderValue::from_str(&disposition);
        ensure(safe && disposition.is_ascii() && value.is_ok(), || {
            format!("file name {filename:?} is served as {disposition:?}")
        })?;
        let kind = content_type(media_type.as_deref().unwrap_or_default());
        let active = ["html", "svg", "xml", "script", "css"];
        ensure(!active.iter().any(|word| kind.contains(word)), || {
            format!("media type {media_type:?} is served as {kind:?}")
        })?;
        if let PartContent::Stored(blob) = content {
            return Err(Broken(format!("a client named the stored object {blob:?}")));
        }
    }
    Ok(())
}

/// Decodes the positions that a client sends back: an event id, page tokens of
/// both lists, and the query of a list.
///
/// # Errors
/// [`Broken`] if a forged page token opens, or if an event id or a position changes
/// when it is written and read again.
pub fn cursors(bytes: &[u8]) -> Result<(), Broken> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.as_ref();
    if let Ok(id) = text.parse::<EventId>() {
        ensure(id.to_string().parse() == Ok(id), || {
            format!("event id {text:?} is read as {id}")
        })?;
    }
    let now = Timestamp::from_millis(0);
    let Some(caller) = caller() else {
        return Ok(());
    };
    let query = ListQuery {
        context_id: None,
        status: None,
        status_after: None,
        page_size: 1,
        page_token: None,
        history_length: 0,
        include_artifacts: false,
    };
    let keys = SecretKeySet::of([b"a secret".to_vec()]);
    let tasks = PagedList::tasks(&keys, &caller, &query);
    let contexts = PagedList::contexts(&keys, &caller);
    let opened = tasks.position::<TaskPosition>(text, now).is_ok()
        || contexts.position::<ThreadPosition>(text, now).is_ok();
    ensure(!opened, || format!("page token {text:?} opens"))?;
    same_place::<TaskPosition>(text)?;
    same_place::<ThreadPosition>(text)?;
    for path in ["/tasks", "/v1/tasks", "/a2a-lambda/contexts", "/tasks/t"] {
        let _asks = request(&RawRequest {
            method: "GET",
            path,
            query: Some(text),
            version: Some("1.0"),
            last_event_id: Some(text),
            ..RawRequest::default()
        })?;
    }
    Ok(())
}

fn caller() -> Option<Caller> {
    let owner = Owner {
        tenant: TenantId::parse("tenant").ok()?,
        subject: Subject::parse("subject").ok()?,
    };
    Some(Caller {
        owner,
        tier: String::new(),
        scopes: BTreeSet::new(),
    })
}

fn same_place<P: PagePosition>(text: &str) -> Result<(), Broken> {
    let Some(place) = P::read(text) else {
        return Ok(());
    };
    let written = place.write();
    let again = P::read(&written).map(|place| place.write());
    ensure(again.as_ref() == Some(&written), || {
        format!("position {text:?} is written as {written:?}")
    })
}

/// Decodes a stored text of each kind: task, state, push config, thread.
///
/// # Errors
/// [`Broken`] if decoding fails with another error than [`StoreError::Corrupt`] or
/// [`StoreError::Form`], or if a record changes when it is written and read again.
pub fn item_decode(bytes: &[u8]) -> Result<(), Broken> {
    let deflated = Encoded::Deflated(bytes.into());
    if let Some(state) = read_or_corrupt(stored::decode_state(&deflated))? {
        state_again(&state)?;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    if let Some(state) = read_or_corrupt(stored::decode_state(&Encoded::Text(text.into())))? {
        state_again(&state)?;
    }
    if let Some(push) = read_or_corrupt(stored::push_of_text(text))? {
        let again = stored::push_text(&push).and_then(|text| stored::push_of_text(&text));
        same_again(&push, again)?;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(());
    };
    if let Some(task) = read_or_corrupt(stored::decode(value.clone()))? {
        same_again(&task, stored::decode(stored::encode(&task)))?;
    }
    if let Some(thread) = read_or_corrupt(stored::decode_thread(value))? {
        same_again(
            &thread,
            stored::decode_thread(stored::encode_thread(&thread)),
        )?;
    }
    Ok(())
}

fn state_again(state: &ThreadState) -> Result<(), Broken> {
    let again = stored::encode_state(state).and_then(|state| stored::decode_state(&state));
    same_again(state, again)
}

fn read_or_corrupt<T>(read: Result<T, StoreError>) -> Result<Option<T>, Broken> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(StoreError::Corrupt(_) | StoreError::Form(_)) => Ok(None),
        Err(other) => Err(Broken(format!(
            "decoding fails other than as corrupt: {other}"
        ))),
    }
}

fn same_again<T: PartialEq + std::fmt::Debug>(
    record: &T,
    again: Result<T, StoreError>,
) -> Result<(), Broken> {
    match again {
        // The fuzzed text may be longer than any that the store writes.
        Err(StoreError::TooLarge(_)) => Ok(()),
        Ok(again) if again == *record => Ok(()),
        again => Err(Broken(format!(
            "{record:?} changes when it is written, to {again:?}"
        ))),
    }
}
