//! What the fuzz targets in `fuzz/` run: any bytes in, and what they must never
//! lead to as an error. Not a part of the interface.
//!
//! The same runs, over changed examples, are a test of this crate.

use crate::auth::Caller;
use crate::engine::fuzz::{List, Place, TaskPlace, content_type, disposition};
use crate::protocol::{Answer, Ask, Call, Opened, RawRequest, open, refuse};
use crate::store::{StoreError, ThreadPosition, stored};
use crate::task::{
    EventId, ListQuery, Message, Owner, Part, PartContent, Refusal, Subject, TenantId, Timestamp,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// A promise that some bytes have broken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

/// Paths with a reader of their own, JSON-RPC first.
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

/// Takes the first byte as a choice among `many`.
fn chosen<'b, T: Copy>(bytes: &'b [u8], many: &[T]) -> Option<(T, &'b [u8])> {
    let (first, rest) = bytes.split_first()?;
    let place = usize::from(*first).checked_rem(many.len())?;
    Some((*many.get(place)?, rest))
}

fn kept(promise: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if promise { Ok(()) } else { Err(Broken(what())) }
}

/// Bytes to a call, in every generation: the first chooses the path, the second
/// the version, the rest is the body.
///
/// # Errors
/// [`Broken`] if a refusal is no answer of the protocol, or names no field.
pub fn rpc_decode(bytes: &[u8]) -> Result<(), Broken> {
    let Some(((method, path), bytes)) = chosen(bytes, &PATHS) else {
        return Ok(());
    };
    let Some((version, body)) = chosen(bytes, &[None, Some("1.0"), Some("0.3"), Some("9.9")])
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

/// The calls of a request whose parameters can be read.
fn request(request: &RawRequest<'_>) -> Result<Vec<Ask>, Broken> {
    let entries = match open(request) {
        Err(rejected) => vec![Err(rejected)],
        Ok(Opened::One(call)) => vec![Ok(*call)],
        Ok(Opened::Batch(entries)) => entries,
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

fn read(call: &Call) -> Result<Option<Ask>, Broken> {
    let refusal = match call.check_version().and_then(|()| call.decode()) {
        Ok(ask) => return Ok(Some(ask)),
        Err(refusal) => refusal,
    };
    if let Refusal::InvalidParams { violations } = &refusal {
        let named = violations.iter().all(|fault| !fault.field.is_empty());
        kept(named && (1..=100).contains(&violations.len()), || {
            format!("refused without a field: {violations:?}")
        })?;
    }
    in_order(&refuse(call, &refusal)).map(|()| None)
}

fn in_order(answer: &Answer) -> Result<(), Broken> {
    kept([200, 400, 404, 413, 415].contains(&answer.status), || {
        format!("answered with {}", answer.status)
    })?;
    let body: Result<Value, _> = serde_json::from_slice(&answer.body);
    kept(body.is_ok_and(|body| body.is_object()), || {
        format!("answered {:?}", String::from_utf8_lossy(&answer.body))
    })
}

/// Parts of a message: the first byte chooses the generation and the member in
/// which the rest stands as text.
///
/// # Errors
/// [`Broken`] if a file that is taken could break out of the headers under
/// which it is handed on.
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
    let Some((way, rest)) = chosen(bytes, &WAYS) else {
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
        if let Ask::Send(command) = ask {
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
        kept(safe && disposition.is_ascii() && value.is_ok(), || {
            format!("{filename:?} is handed on as {disposition:?}")
        })?;
        let kind = content_type(media_type.as_deref().unwrap_or_default());
        let active = ["html", "svg", "xml", "script", "css"];
        kept(!active.iter().any(|word| kind.contains(word)), || {
            format!("{media_type:?} is handed on as {kind:?}")
        })?;
        if let PartContent::Stored(blob) = content {
            return Err(Broken(format!("a client has named the object {blob:?}")));
        }
    }
    Ok(())
}

/// Places a client says it was at: the id of an event, page tokens of both
/// lists, the query of a list.
///
/// # Errors
/// [`Broken`] if a token that we did not make opens, or an id or a place is read
/// that is not written like this.
pub fn cursors(bytes: &[u8]) -> Result<(), Broken> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.as_ref();
    if let Ok(id) = text.parse::<EventId>() {
        kept(id.to_string().parse() == Ok(id), || {
            format!("the id of an event {text:?} is read as {id}")
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
    let tasks = List::tasks(b"a secret", &caller, &query);
    let contexts = List::contexts(b"a secret", &caller);
    let opened = tasks.place::<TaskPlace>(text, now).is_ok()
        || contexts.place::<ThreadPosition>(text, now).is_ok();
    kept(!opened, || format!("the page token {text:?} opens"))?;
    same_place::<TaskPlace>(text)?;
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

fn same_place<P: Place>(text: &str) -> Result<(), Broken> {
    let Some(place) = P::read(text) else {
        return Ok(());
    };
    let written = place.write();
    let again = P::read(&written).map(|place| place.write());
    kept(again.as_ref() == Some(&written), || {
        format!("the place {text:?} is written as {written:?}")
    })
}

/// A stored text of each kind: it is read, or it is corrupt.
///
/// # Errors
/// [`Broken`] if it is anything else, or what was read is not read again from
/// what is written of it.
pub fn item_decode(bytes: &[u8]) -> Result<(), Broken> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    if let Some(task) = read_or_corrupt(stored::task_of_text(text))? {
        written_again(&task, stored::task_text(&task), stored::task_of_text)?;
    }
    if let Some(state) = read_or_corrupt(stored::state_of_text(text))? {
        written_again(&state, stored::state_text(&state), stored::state_of_text)?;
    }
    if let Some(push) = read_or_corrupt(stored::push_of_text(text))? {
        written_again(&push, stored::push_text(&push), stored::push_of_text)?;
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(());
    };
    if let Some(thread) = read_or_corrupt(stored::decode_thread(value))? {
        let again = stored::decode_thread(stored::encode_thread(&thread)).ok();
        kept(again.as_ref() == Some(&thread), || {
            format!("a thread changes as it is written: {thread:?}")
        })?;
    }
    Ok(())
}

fn read_or_corrupt<T>(read: Result<T, StoreError>) -> Result<Option<T>, Broken> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(StoreError::Corrupt(_)) => Ok(None),
        Err(other) => Err(Broken(format!("a stored text is {other}"))),
    }
}

fn written_again<T: PartialEq + std::fmt::Debug>(
    record: &T,
    text: Result<String, StoreError>,
    read: fn(&str) -> Result<T, StoreError>,
) -> Result<(), Broken> {
    let again = match text {
        Ok(text) => read(&text).ok(),
        // Read from a text that nobody has written: longer than one may be.
        Err(StoreError::TooLarge(_)) => return Ok(()),
        Err(other) => return Err(Broken(format!("a record is not written: {other}"))),
    };
    kept(again.as_ref() == Some(record), || {
        format!("{record:?} changes as it is written, to {again:?}")
    })
}
