//! Hostile names, through the whole agent with a table and a bucket. Every key sent to both
//! keeps its grammar and its tenant, every response is a success or a proper error, and every
//! file is served as a download.
//!
//! A seed determines the names, so they are the same in every run. Unit tests send ten
//! thousand of them through each function that makes keys and headers.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::task::{Part, PartContent};
use a2a_lambda_rows::each_row;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_lambda_tests::recorder::{Recorder, Sent};
use a2a_lambda_tests::remote;
use a2a_lambda_tests::world::{Reply, Request, send};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The number of names.
const NAMES: usize = 200;

/// The bytes of an upload, and their SHA-256.
const FILE: &[u8] = &[b'a'; 20_000];
const SHA: &str = "cc17faaad36649c4603dda4d8ff97cb149722af0bcac0746305a2134ad2d0b97";

/// Makes an artifact with the requested name from the files of the message.
#[skill(id = "back", tags = ["test"])]
async fn back(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    let name = input.first_text().unwrap_or("-").to_owned();
    let files: Vec<Part> = input.parts().iter().skip(1).cloned().collect();
    if !files.is_empty() {
        cx.send_partial_artifact(Artifact::from_parts(name.clone(), files))
            .await?;
    }
    let file = Artifact::from_file(format!("{name}.html"), "text/html", vec![7; 20_000]);
    cx.send_partial_artifact(file).await?;
    Ok("done".to_owned())
}

/// Replies with a file of the requested name, without a task.
#[skill(id = "says", tags = ["test"])]
async fn says(input: Content) -> AgentResult<Content> {
    let file = Part {
        filename: input.first_text().map(str::to_owned),
        media_type: Some("image/svg+xml".to_owned()),
        ..Part::new(PartContent::Raw(vec![7; 20_000].into()))
    };
    Ok(Content::from_parts(vec![file]))
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// The agent with table and bucket, for one caller.
struct Stack {
    runtime: Runtime,
    recorder: Recorder,
    tenant: String,
    /// The tenant folders of all objects.
    folders: BTreeSet<String>,
    /// Counts of successes and errors, to show that both occur.
    taken: usize,
    refused: usize,
}

impl Stack {
    fn new(emulator: &Emulator) -> Self {
        let recorder = Recorder::default();
        let clients = recorder.on(&emulator.clients).unwrap();
        let mut settings = Settings::read(&Local).unwrap();
        // Every value becomes an object, and no response can contain one.
        settings.policy.inline_max = 100;
        settings.policy.response_max = 24_000;
        let agent = Agent::builder("hostile")
            .description("Gives back.")
            .version("1");
        let agent = agent.skill(back).skill(says).build().unwrap();
        let runtime = Runtime::builder(agent, settings).aws(&clients).build();
        Self {
            runtime: runtime.unwrap(),
            recorder,
            tenant: format!("h{:x}", run()),
            folders: BTreeSet::new(),
            taken: 0,
            refused: 0,
        }
    }

    async fn call(&mut self, request: &Request) -> Reply {
        let edge = self
            .runtime
            .edge(Function::of(request.method, request.path()));
        let identity = Identity {
            authorizer: None,
            authorization: Some(format!("Bearer dev:{}:ann", self.tenant)),
        };
        send(&edge, request, identity).await.finish().await
    }

    /// Sends a request, and checks the response and every request to the services.
    async fn tried(&mut self, dialect: Dialect, request: &Request) -> Reply {
        let reply = self.call(request).await;
        let shown = format!("{} {:?} {}", request.target, request.headers, reply.text());
        let reason = reason(dialect, &reply);
        match reason.as_deref() {
            // No HTTP server would pass such a request on.
            _ if reply.status == 0 => {}
            None => {
                assert_eq!(reply.status, 200, "{shown}");
                self.taken += 1;
            }
            Some("INVALID_PARAMS") => {
                assert!(
                    reply.text().contains("\"field\":"),
                    "no field is named: {shown}"
                );
                self.refused += 1;
            }
            Some(
                "TASK_NOT_FOUND"
                | "TASK_NOT_CANCELABLE"
                | "CONTEXT_EXPIRED"
                | "METHOD_NOT_FOUND"
                | "UNSUPPORTED_OPERATION"
                | "IDEMPOTENCY_KEY_REUSED",
            ) => self.refused += 1,
            Some(other) => panic!("{other}: {shown}"),
        }
        for sent in self.recorder.taken() {
            self.look_at(&sent);
        }
        reply
    }

    /// Checks a list of the objects below a task, or their removal.
    fn look_below(&mut self, sent: &Sent) {
        let body = String::from_utf8_lossy(&sent.body);
        let removed = body.split("<Key>").skip(1);
        let mut keys: Vec<String> = removed
            .map(|rest| rest.split("</Key>").next().unwrap().to_owned())
            .collect();
        let query = sent.url.split_once('?').unwrap().1;
        let listed = query.split('&').find_map(|it| it.strip_prefix("prefix="));
        // Only the slashes of a prefix need encoding.
        keys.extend(listed.map(|below| format!("{}x", below.replace("%2F", "/"))));
        assert!(!keys.is_empty(), "{} {}", sent.method, sent.url);
        for key in keys {
            let folder = object_folder(&key);
            let folder = folder.unwrap_or_else(|| panic!("{} {key:?}", sent.method));
            self.folders.insert(folder);
        }
    }

    fn look_at(&mut self, sent: &Sent) {
        let body = String::from_utf8_lossy(&sent.body);
        assert!(!body.contains("X-Amz-Signature"), "a URL is kept: {body}");
        if !sent.operation.is_empty() {
            let body: Value = serde_json::from_slice(&sent.body).unwrap();
            return keys(&body, &mut |name, key| {
                assert!(is_table_key(name, key, &self.tenant), "{name} {key:?}");
            });
        }
        let (_, path) = sent.url.split_once("://").unwrap();
        let (_, path) = path.split_once('/').unwrap();
        let path = path.split('?').next().unwrap();
        let (_, key) = path.split_once('/').unwrap_or((path, ""));
        if key.is_empty() {
            return self.look_below(sent);
        }
        let copied = sent
            .copied
            .as_deref()
            .map(|from| from.split_once('/').unwrap().1);
        for key in [Some(key), copied].into_iter().flatten() {
            let folder = object_folder(key);
            let folder = folder.unwrap_or_else(|| panic!("{} {key:?}", sent.method));
            self.folders.insert(folder);
        }
    }
}

/// The reason of an error; `None` for a success.
fn reason(dialect: Dialect, reply: &Reply) -> Option<String> {
    let body = reply.json();
    let error = match dialect {
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => body.get("error")?,
        Dialect::Rest10 => body.get("error")?,
        Dialect::Rest03 | Dialect::Path01 => body.get("code").map(|_| &body)?,
    };
    let details = error.get("details").or_else(|| error.get("data"))?;
    let reasons = details.as_array()?.iter();
    let mut reasons = reasons.filter_map(|one| one["reason"].as_str());
    reasons.next().map(str::to_owned)
}

/// Calls `look` for every key that a request to the table names.
fn keys(value: &Value, look: &mut impl FnMut(&str, &str)) {
    const NAMES: [&str; 6] = ["PK", "SK", "GSI1PK", "GSI1SK", "open", "open_at"];
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let text = value.get("S").and_then(Value::as_str);
                match text {
                    Some(text) if NAMES.contains(&name.as_str()) => look(name, text),
                    // A value of an expression is a key if it has the form of one.
                    Some(text) if name.starts_with(':') && text.starts_with("T#") => {
                        look("PK", text);
                    }
                    _ => keys(value, look),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, look)),
        _ => {}
    }
}

fn hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// Whether a table key has the expected form and the tenant.
fn is_table_key(name: &str, key: &str, tenant: &str) -> bool {
    let fields: Vec<&str> = key.split('#').collect();
    match (name, fields.as_slice()) {
        ("SK", ["META" | "STATE" | "IDEM" | "BRAKE"]) | ("PK", ["B", "brake"]) => true,
        ("PK", ["U", day]) => number(day),
        ("SK", [whose]) if *whose == tenant => true,
        ("SK", ["DOC", doc]) => doc.bytes().all(|b| b.is_ascii_lowercase()),
        ("SK", ["ART" | "EVT" | "MSG", n]) => n.len() == 12 && number(n),
        ("SK", ["PUSH", push] | ["PUSH", push, "SENT"]) => id(push),
        ("SK", ["TASK", at, task, incarnation]) => {
            at.len() == 13 && number(at) && id(task) && hex(incarnation, 32)
        }
        ("GSI1SK", [at, named]) => at.len() == 13 && number(at) && id(named),
        ("open", ["open" | "expiry", n]) => number(n),
        ("open_at", [at, ..]) => number(at),
        ("PK" | "GSI1PK", ["T", whose, kind, rest @ ..]) if *whose == tenant => {
            match (*kind, rest) {
                ("K", [task]) => match task.split_once('~') {
                    Some((subject, task)) => hex(subject, 32) && id(task),
                    None => task.strip_prefix("task-").is_some_and(|hash| hex(hash, 32)),
                },
                ("C", [subject, context]) => hex(subject, 32) && id(context),
                ("I", [key]) => hex(key, 64),
                ("L" | "X", [subject]) => hex(subject, 32),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The tenant folder of an object key; `None` for a key of another form.
fn object_folder(key: &str) -> Option<String> {
    let fields: Vec<&str> = key.split('/').collect();
    let plain = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase() || b"-.".contains(&b);
    let good = match fields.as_slice() {
        ["v1", tenant, task, name] => {
            let conversation = task.strip_prefix("C.").and_then(|ids| ids.split_once('.'));
            let owned = match conversation {
                Some((subject, context)) => hex(subject, 32) && hex(context, 32),
                None => hex(task.strip_prefix("task-").unwrap_or(task), 32),
            };
            hex(tenant, 32) && owned && !name.is_empty() && name.bytes().all(plain)
        }
        ["up", tenant, subject, upload] => {
            let crockford = |b: u8| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&b);
            hex(tenant, 32)
                && hex(subject, 32)
                && upload.len() == 26
                && upload.bytes().all(crockford)
        }
        _ => false,
    };
    good.then(|| fields[1].to_owned())
}

/// Checks that a file is served as a download, under a harmless name (RFC 6266, RFC 8187)
/// and without a type that a browser runs.
fn is_saved(headers: &http::HeaderMap) -> Result<(), String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = header("content-disposition").unwrap_or_default().to_owned();
    let wrong = || Err(format!("content-disposition is {said:?}"));
    let Some(rest) = said.strip_prefix("attachment; filename=\"") else {
        return wrong();
    };
    let Some((plain, rest)) = rest.split_once('"') else {
        return wrong();
    };
    let harmless = |b: u8| b.is_ascii_alphanumeric() || b"._- ".contains(&b);
    if plain.is_empty() || plain.starts_with('.') || !plain.bytes().all(harmless) {
        return wrong();
    }
    if !rest.is_empty() {
        let Some(coded) = rest.strip_prefix("; filename*=UTF-8''") else {
            return wrong();
        };
        let Some(name) = decoded(coded) else {
            return wrong();
        };
        // Bidirectional controls can disguise the extension of a file name.
        let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let bad = |c: char| c.is_control() || c == '/' || c == '\\' || turns(c);
        if name.is_empty() || name.contains(bad) || name.starts_with('.') {
            return wrong();
        }
    }
    match header("content-type") {
        Some("application/octet-stream" | "text/plain" | "application/json" | "image/png") => {
            Ok(())
        }
        other => Err(format!("content-type is {other:?}")),
    }
}

/// Decodes percent-encoded text of the alphabet of RFC 8187; `None` for any other text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?
            }
            b if b.is_ascii_alphanumeric() || b"._-".contains(&b) => b,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Hostile names; the seed replays them.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or_default() % below
    }

    fn name(&mut self) -> String {
        const BITS: [&str; 40] = [
            "..",
            "/",
            "\\",
            "\0",
            "%2e",
            "%2e%2e%2f",
            "%5c",
            "%00",
            "\r\n",
            "X-Evil: 1",
            "\"",
            "'",
            ";",
            "filename=evil",
            "\u{202e}",
            "\u{2066}",
            "\u{200f}",
            "\u{e9}",
            "\u{65e5}",
            "\u{1f600}",
            "\u{fffd}",
            "\u{ffff}",
            " ",
            ".",
            "a",
            "META",
            "CON",
            "nul.txt",
            "~",
            "#",
            "T#",
            "K#x",
            "order:1",
            "-",
            "_",
            "v1",
            "up",
            "\u{7f}",
            "\u{feff}",
            "*=UTF-8''",
        ];
        // About every third name has only characters that an id may have.
        let plain = self.next(3) == 0;
        let count = 1 + self.next(12);
        let mut name = String::new();
        while name.is_empty() || name.len() < count {
            let bit = BITS[self.next(BITS.len())];
            if !plain || id(bit) {
                name.push_str(bit);
            }
        }
        if self.next(20) == 0 {
            name.push_str(&"x".repeat(2_000));
        }
        name
    }
}

/// A text for a path or query, with every byte escaped.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

const TYPES: [&str; 8] = [
    "text/html",
    "image/svg+xml",
    "text/javascript",
    "application/xhtml+xml; charset=utf-8",
    "text/plain",
    "image/png",
    "text/xml",
    "application/pdf\r\nX: y",
];

/// Collects the URLs of files in a response.
fn urls(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains("X-Amz-Signature=") => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| urls(item, found)),
        Value::Object(members) => members.values().for_each(|value| urls(value, found)),
        _ => {}
    }
}

/// Downloads every URL of a response. Returns their number.
async fn followed(reply: &Reply) -> usize {
    let mut found = Vec::new();
    urls(&reply.json(), &mut found);
    for url in &found {
        let (base, path) = url.split_at(url.find('/').unwrap() + 2);
        let (host, path) = path.split_once('/').unwrap();
        let request = Request::new("GET", format!("/{path}"));
        let got = remote::open(&format!("{base}{host}"), &request)
            .await
            .unwrap();
        let got = got.finish().await;
        assert_eq!(got.status, 200, "{url} {}", got.text());
        assert_eq!(is_saved(&got.headers), Ok(()), "{url}");
    }
    found.len()
}

/// Uploads a file with this name and type. Returns the part that names it.
async fn uploaded(stack: &mut Stack, name: &str, media_type: &str) -> Option<Value> {
    let order = json!({
        "filename": name, "mediaType": media_type, "size": FILE.len(), "sha256": SHA,
    });
    let request = Request::post("/a2a-lambda/uploads", &order);
    let grant = stack.tried(Dialect::Rest10, &request).await;
    let grant = grant.json();
    let url = grant["url"].as_str()?;
    let (base, path) = url.split_at(url.find("://").unwrap() + 3);
    let (host, path) = path.split_once('/').unwrap();
    let key = path.split('?').next().unwrap().split_once('/').unwrap().1;
    stack.folders.insert(object_folder(key).unwrap());
    let mut put = Request::new("PUT", format!("/{path}")).body(FILE);
    for (name, value) in grant["headers"].as_object().unwrap() {
        put = put.header(name, value.as_str().unwrap());
    }
    let put = remote::open(&format!("{base}{host}"), &put).await.unwrap();
    assert_eq!(put.status, 200);
    Some(grant["part"].clone())
}

fn say(dialect: Dialect, skill: &str, name: &str, parts: &[Value]) -> Value {
    let mut params = dialect.say(&Say::to(skill, name));
    let all = params["message"]["parts"].as_array_mut().unwrap();
    all.extend(parts.iter().cloned());
    params
}

async fn files(stack: &mut Stack, noise: &mut Noise, name: &str) -> usize {
    let dialect = Dialect::Rest10;
    let media_type = TYPES[noise.next(TYPES.len())];
    let bytes = "QUJD".repeat(6_000);
    let mut parts = vec![json!({"raw": bytes, "filename": name, "mediaType": media_type})];
    parts.extend(uploaded(stack, name, media_type).await);
    // A file with the hostile name as its media type.
    parts.push(json!({"raw": bytes, "filename": "a", "mediaType": name}));
    // One response has space for few files or links.
    let mut count = 0;
    for (place, part) in parts.into_iter().enumerate() {
        let params = say(dialect, "back", name, &[part]);
        let request = dialect.request(Op::Send, "", &params);
        let reply = stack.tried(dialect, &request).await;
        count += followed(&reply).await;
        let id = at(&reply.json(), "/task/id").as_str().map(str::to_owned);
        if let Some(id) = id.filter(|_| place == 0) {
            let read = stack.tried(dialect, &dialect.get(&id, 5)).await;
            count += followed(&read).await;
        }
    }
    let params = say(dialect, "says", name, &[]);
    let reply = stack
        .tried(dialect, &dialect.request(Op::Send, "", &params))
        .await;
    count + followed(&reply).await
}

async fn ids(stack: &mut Stack, name: &str) {
    let old = Dialect::Rpc01;
    let send = old.request(Op::Send, "", &old.say(&Say::to("back", "hi").under(name)));
    stack.tried(old, &send).await;
    stack.tried(old, &old.of_task(Op::Get, name)).await;
    let own = format!("own:{}", stack.taken);
    let session = old.say(&Say::to("back", "hi").under(&own).in_context(name));
    stack.tried(old, &old.request(Op::Send, "", &session)).await;
    let dialect = Dialect::Rpc10;
    let there = dialect.say(&Say::to("back", "hi").in_context(name));
    stack
        .tried(dialect, &dialect.request(Op::Send, "", &there))
        .await;
    let mut named = dialect.say(&Say::to("back", "hi"));
    named["message"]["messageId"] = json!(name);
    named["message"]["referenceTaskIds"] = json!([name]);
    named["message"]["metadata"]["a2a-lambda/idempotencyKey"] = json!(name);
    stack
        .tried(dialect, &dialect.request(Op::Send, "", &named))
        .await;
    let keyed = dialect
        .send(&Say::to("back", "hi"))
        .header("idempotency-key", name);
    stack.tried(dialect, &keyed).await;
    let list = json!({"contextId": name, "pageToken": name});
    stack
        .tried(dialect, &dialect.request(Op::List, "", &list))
        .await;
}

async fn paths(stack: &mut Stack, task: &str, name: &str, round: usize) {
    let dialect = Dialect::Rest10;
    let hooks = format!("/tasks/{task}/pushNotificationConfigs");
    let hook = json!({"id": name, "url": "https://hook.example/", "token": name});
    let mut requests = vec![Request::post(hooks.clone(), &hook)];
    let coded = if round % 8 == 3 {
        escaped(name)
    } else {
        name.replace(['#', '?', ' '], "")
    };
    requests.push(Request::new("GET", format!("/tasks/{coded}")));
    requests.push(Request::new("POST", format!("/tasks/{coded}:cancel")));
    requests.push(Request::new("GET", format!("/tasks?pageToken={coded}")));
    requests.push(Request::new("GET", format!("{hooks}/{coded}")));
    requests.push(Request::new("DELETE", format!("{hooks}/{coded}")));
    requests.push(Request::new("DELETE", format!("/a2a-lambda/tasks/{coded}")));
    requests.push(Request::new(
        "DELETE",
        format!("/a2a-lambda/contexts/{coded}"),
    ));
    requests.push(Request::new(
        "GET",
        format!("/a2a-lambda/contexts?pageToken={coded}"),
    ));

    let reference = format!("urn:a2a-lambda:upload:{name}:20000:{SHA}");
    let params = say(dialect, "back", "hi", &[json!({ "url": reference })]);
    requests.push(dialect.request(Op::Send, "", &params));
    for request in requests {
        stack.tried(dialect, &dialect.versioned(request)).await;
    }
}

#[tokio::test]
async fn hostile_names_stay_in_their_tenant_and_files_are_only_downloaded() {
    let emulator = Emulator::start().await.unwrap();
    let mut stack = Stack::new(&emulator);
    let dialect = Dialect::Rest10;
    let first = stack
        .tried(dialect, &dialect.send(&Say::to("back", "hi")))
        .await;
    let task = at(&first.json(), "/task/id").as_str().unwrap().to_owned();
    let mut noise = Noise(0x0bad_5eed);
    let mut files_followed = 0;
    for round in 0..NAMES {
        let name = noise.name();
        match round % 4 {
            0 => files_followed += files(&mut stack, &mut noise, &name).await,
            1 | 2 => ids(&mut stack, &name).await,
            _ => paths(&mut stack, &task, &name, round).await,
        }
    }
    let Stack {
        taken,
        refused,
        folders,
        ..
    } = stack;
    println!("{NAMES} names: {taken} accepted, {refused} refused, {files_followed} files fetched");
    assert_eq!(folders.len(), 1, "objects of one tenant are in {folders:?}");
    assert!(taken > 200 && refused > 200 && files_followed > 200);
}

#[test]
fn the_checks_reject_malformed_keys_and_headers() {
    let hash = "0123456789abcdef0123456789abcdef";
    let rows = [
        "T#acme#K#../x".to_owned(),
        "T#evil#K#task-0123456789abcdef0123456789abcdef".to_owned(),
        format!("T#acme#C#{hash}#a#b"),
        format!("T#acme#K#{hash}~a b"),
        "T#acme#I#x".to_owned(),
    ];
    each_row(rows, |key| {
        assert!(!is_table_key("PK", &key, "acme"), "{key}");
    });
    assert!(!is_table_key("SK", "PUSH#a/b", "acme"));
    assert!(!is_table_key("SK", "PUSH#a#b", "acme"));
    assert!(is_table_key(
        "PK",
        &format!("T#acme#K#{hash}~order:1"),
        "acme"
    ));
    let rows = [
        format!("v1/{hash}/../x/y"),
        format!("v1/{hash}/order:1/x"),
        format!("v1/{hash}/{hash}/a%2fb"),
        format!("up/{hash}/{hash}/x"),
        format!("x/{hash}"),
    ];
    each_row(rows, |key| {
        assert_eq!(object_folder(&key), None, "{key}");
    });
    let cases = [
        ("inline; filename=\"a\"", "text/plain"),
        ("attachment; filename=\"a\"", "text/html"),
        ("attachment; filename=\"..\"", "text/plain"),
        (
            "attachment; filename=\"a\"; filename*=UTF-8''%2Fetc",
            "text/plain",
        ),
        (
            "attachment; filename=\"a\"; filename*=UTF-8''%E2%80%AE",
            "text/plain",
        ),
        (
            "attachment; filename=\"a\"; filename*=UTF-8''a\"b",
            "text/plain",
        ),
    ];
    each_row(cases, |(value, kind)| {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-disposition", value.parse().unwrap());
        headers.insert("content-type", kind.parse().unwrap());
        assert!(is_saved(&headers).is_err(), "{value} {kind}");
    });
}
