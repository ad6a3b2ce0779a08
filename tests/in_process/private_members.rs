//! Members that only the store reads and writes: no client can send it, and none sees it.

use crate::text_clients::record;
use a2a_lambda::store::ThreadRecord;
use a2a_lambda::store::keys::{self, Key};
use a2a_lambda::store::stored::{Encoded, encode, encode_thread, push_text};
use a2a_lambda::store::table::{
    Item, ItemChange, ReadTable as _, Statement, Table as _, Value as Attribute,
};
use a2a_lambda::task::distinct::Values;
use a2a_lambda::task::{A2aError, PushRecord, TaskRecord, ThreadKey};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use a2a_lambda_wire::{MethodCall, OpenedRequest, RawRequest};
use serde_json::{Value, json};
use std::collections::BTreeSet;

per_dialect! {
    paused ALL:
    a_private_member_in_a_request_changes_nothing
    a_private_member_in_a_request_is_not_stored
    a_member_of_another_release_is_in_no_answer
}

const CANARY: &str = "canary-7f3a";

/// The names that a client may write in some dialect.
const PUBLIC: [&str; 31] = [
    "accepted_output_modes",
    "authentication",
    "configuration",
    "context_id",
    "credentials",
    "data",
    "description",
    "extensions",
    "filename",
    "history",
    "history_length",
    "id",
    "kind",
    "media_type",
    "message",
    "message_id",
    "metadata",
    "name",
    "parts",
    "raw",
    "reference_task_ids",
    "role",
    "schemes",
    "status",
    "task_id",
    "tenant",
    "text",
    "token",
    "type",
    "uri",
    "url",
];

/// Members whose content is the client's own, or the skill's.
fn is_free(name: &str) -> bool {
    matches!(name, "metadata" | "data")
}

fn add_names(names: &mut BTreeSet<String>, value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                names.insert(name.clone());
                names.insert(snake(name));
                if !is_free(name) {
                    add_names(names, value);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| add_names(names, value)),
        _ => {}
    }
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Every name of a member that only the store writes, of tasks, threads and push configs, in
/// both spellings of protobuf.
fn private_names() -> BTreeSet<String> {
    let (mut values, mut names) = (Values::default(), BTreeSet::new());
    // So many that every choice of a content, an event or an outcome is among them.
    for _ in 0..16 {
        add_names(&mut names, &encode(&values.make::<TaskRecord>()));
        add_names(&mut names, &encode_thread(&values.make::<ThreadRecord>()));
        let push = push_text(&values.make::<PushRecord>()).unwrap();
        add_names(&mut names, &serde_json::from_str(&push).unwrap());
    }
    names.retain(|name| !PUBLIC.contains(&snake(name).as_str()));
    for known in [
        "chunksOf",
        "chunks_of",
        "object",
        "sha256",
        "secret",
        "signs",
    ] {
        assert!(names.contains(known), "{known} in {names:?}");
    }
    names
}

/// The parameters of a send with every object that a client can write.
fn full(dialect: Dialect) -> Value {
    let mut params = dialect.say(&Say::to("echo", "hi").in_context("mine:c"));
    let (bytes, name) = ("aGk=", "a.txt");
    let file = |member: &str| json!({member: bytes, "name": name});
    let parts = match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => {
            json!([{"text": "hi"}, {"raw": bytes, "filename": name}, {"data": {"a": 1}}])
        }
        Dialect::Rest03 => {
            json!([{"text": "hi"}, {"file": file("fileWithBytes")}, {"data": {"data": {"a": 1}}}])
        }
        Dialect::Rpc03 => json!([
            {"kind": "text", "text": "hi"}, {"kind": "file", "file": file("bytes")},
            {"kind": "data", "data": {"a": 1}},
        ]),
        Dialect::Rpc01 | Dialect::Path01 => json!([
            {"type": "text", "text": "hi"}, {"type": "file", "file": file("bytes")},
            {"type": "data", "data": {"a": 1}},
        ]),
    };
    params["message"][dialect.parts()] = parts;
    add_push(dialect, &mut params);
    params
}

fn add_push(dialect: Dialect, params: &mut Value) {
    let scheme = match dialect.is_v10() {
        true => json!({"scheme": "Bearer", "credentials": "c"}),
        false => json!({"schemes": ["Bearer"], "credentials": "c"}),
    };
    let push = json!({"url": "https://hook.example/", "token": "t", "authentication": scheme});
    match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => {
            params["configuration"] = json!({"taskPushNotificationConfig": push});
        }
        Dialect::Rpc03 => params["configuration"] = json!({"pushNotificationConfig": push}),
        Dialect::Rest03 => {
            params["configuration"] = json!({"blocking": true, "pushNotification": push});
        }
        Dialect::Rpc01 | Dialect::Path01 => params["pushNotification"] = push,
    }
}

/// The pointers of all objects in `value` but those of free content.
fn objects(value: &Value, pointer: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            all.push(pointer.to_owned());
            for (name, value) in members.iter().filter(|(name, _)| !is_free(name)) {
                objects(value, &format!("{pointer}/{name}"), all);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                objects(value, &format!("{pointer}/{index}"), all);
            }
        }
        _ => {}
    }
}

fn with_members<'n>(
    params: &Value,
    pointer: &str,
    names: impl IntoIterator<Item = &'n String>,
    value: &Value,
) -> Value {
    let mut params = params.clone();
    let object = params.pointer_mut(pointer).and_then(Value::as_object_mut);
    let members = names.into_iter().map(|name| (name.clone(), value.clone()));
    object.unwrap().extend(members);
    params
}

fn read(request: &Request) -> Result<MethodCall, A2aError> {
    let raw = RawRequest {
        method: request.method,
        path: request.path(),
        content_type: Some("application/json"),
        body: &request.body,
        ..RawRequest::default()
    };
    match a2a_lambda_wire::open(&raw) {
        Ok(OpenedRequest::One(call)) => call.decode(),
        other => panic!("{other:?}"),
    }
}

/// Values of the types that stored members have.
fn values() -> [Value; 4] {
    let blob = json!({"key": CANARY, "size": 2, "sha256": CANARY, "upload": CANARY});
    [json!(CANARY), json!(7), blob, json!([{"id": CANARY}])]
}

async fn a_private_member_in_a_request_changes_nothing(dialect: Dialect) {
    let (names, params) = (private_names(), full(dialect));
    let mut places = Vec::new();
    objects(&params, "", &mut places);
    assert!(places.len() >= 8, "{places:?}");
    let read = |params: &Value| read(&dialect.request(Op::Send, "", params));
    let plain = read(&params).unwrap();
    for place in &places {
        for value in values() {
            let with = |name| with_members(&params, place, [name], &value);
            if read(&with_members(&params, place, &names, &value)).as_ref() == Ok(&plain) {
                continue;
            }
            // Together they hide each other, if one is refused.
            for name in &names {
                match read(&with(name)) {
                    Ok(call) => assert_eq!(call, plain, "{name} in `{place}`"),
                    Err(A2aError::InvalidParams { .. }) => {}
                    Err(error) => panic!("{name} in `{place}`: {error:?}"),
                }
            }
        }
    }
}

async fn a_private_member_in_a_request_is_not_stored(dialect: Dialect) {
    let (names, params) = (private_names(), full(dialect));
    let mut places = Vec::new();
    objects(&params, "", &mut places);
    each_row_async(places, async |place| {
        for value in values() {
            let world = World::new().unwrap();
            let params = with_members(&params, &place, &names, &value);
            let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
            let is_refused = reply.text().contains("INVALID_PARAMS");
            assert!(
                is_refused || reply.status == 200,
                "{place}: {}",
                reply.text()
            );
            if !is_refused {
                assert!(!reply.text().contains(CANARY), "{place}: {}", reply.text());
                let stored = record(&world).await;
                assert!(!encode(&stored).to_string().contains(CANARY), "{place}");
                assert!(stored.artifacts.iter().all(|it| it.chunks_of.is_none()));
            }
        }
    })
    .await;
}

/// Adds a member to a stored body and to the objects of the protocol inside it: messages,
/// artifacts, parts, a status and an event.
fn mark(body: &mut Value) {
    match body {
        Value::Object(members) => {
            let inside = members.iter_mut().filter(|(name, _)| !is_free(name));
            inside.for_each(|(_, value)| mark_inside(value));
            members.insert("ofAnotherRelease".to_owned(), CANARY.into());
        }
        other => panic!("{other}"),
    }
}

fn mark_inside(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_known = |name: &&str| members.contains_key(*name);
            if ["parts", "text", "timestamp", "seq"].iter().any(is_known) {
                mark(value);
            } else {
                members.values_mut().for_each(mark_inside);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(mark_inside),
        _ => {}
    }
}

/// Puts members of another release into all that is stored of the newest task and its context.
async fn store_members(world: &World) {
    let (table, task) = (&world.store.memory().table, record(world).await);
    let partition = keys::task_items(&task.key());
    let mut items = table.query(&partition.into()).await.unwrap().items;
    let thread = ThreadKey::new(&task.owner, &task.context_id);
    items.extend(table.get(&[keys::thread(&thread)]).await.unwrap());
    let mut bodies = 0;
    for item in items {
        let mut changes = vec![ItemChange::set("ofAnotherRelease", CANARY)];
        if let Some(mut body) = body_of(&item) {
            mark(&mut body);
            changes.push(ItemChange::set("body", body.to_string()));
            bodies += 1;
        }
        let update = Statement::update(Key::of(&item).unwrap(), changes);
        let outcome = table.write(update.into()).await;
        assert!(outcome.unwrap().is_done().unwrap());
    }
    assert!(bodies >= 2, "a task and a context have a body each");
    assert!(is_marked(&record(world).await));
}

fn body_of(item: &Item) -> Option<Value> {
    let body = match item.get("body")? {
        Attribute::Text(text) => Encoded::Text(text.into()),
        Attribute::Bytes(bytes) => Encoded::Deflated(bytes.into()),
        other => panic!("{other:?}"),
    };
    serde_json::from_str(&body.json().unwrap()).ok()
}

/// Whether the store keeps a member of another release.
fn is_marked(task: &TaskRecord) -> bool {
    encode(task).to_string().contains(CANARY)
}

async fn a_member_of_another_release_is_in_no_answer(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = Say::to("ask", "hi").in_context("mine:c");
    let reply = world.call(&dialect.send(&say)).await;
    let id = dialect.task(&reply)["id"].as_str().unwrap().to_owned();
    store_members(&world).await;
    let mut chunks = dialect.say(&Say::in_task(&id, "chunks"));
    add_push(dialect, &mut chunks);
    let requests = [
        dialect.get(&id, 10),
        dialect.request(Op::Stream, "", &chunks),
        dialect.get(&id, 10),
        dialect.request(Op::List, "", &json!({"includeArtifacts": true})),
        dialect.of_task(Op::Cancel, &id),
        dialect.of_task(Op::Subscribe, &id),
        Dialect::Rest10.versioned(Request::new("GET", "/a2a-lambda/contexts")),
    ];
    for (index, request) in requests.iter().enumerate() {
        let answer = world.call(request).await.text();
        assert!(!answer.contains(CANARY), "{} {answer}", request.target);
        // The reads and the stream answer; of the others some are errors for an ended task.
        if index < 3 {
            assert!(answer.contains(&id), "{answer}");
            assert!(is_marked(&record(&world).await), "{}", request.target);
        }
        store_members(&world).await;
    }
}
