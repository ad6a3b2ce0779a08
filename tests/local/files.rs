//! Files too large for a response, and uploads. Their URLs lead to the object
//! store of the running program.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;

/// Sends a request to the object store.
async fn ask(method: Method, url: &str, headers: &Value, body: Bytes) -> (u16, HeaderMap, Bytes) {
    let uri: Uri = url.parse().unwrap();
    let authority = uri.authority().unwrap().as_str();
    let socket = TokioIo::new(TcpStream::connect(authority).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let path = uri.path_and_query().unwrap().as_str();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", authority);
    for (name, value) in headers.as_object().into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap());
    }
    let answer = sender.send_request(request.body(Full::new(body)).unwrap());
    let (head, body) = answer.await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), head.headers, bytes)
}

async fn fetch(url: &str) -> (u16, HeaderMap, Bytes) {
    ask(Method::GET, url, &Value::Null, Bytes::new()).await
}

fn bytes(size: usize) -> Bytes {
    (0..=250).cycle().take(size).collect()
}

/// SHA-256, computed by another program than the one under test.
fn sha256(folder: &Folder, bytes: &Bytes) -> String {
    let file = folder.path().join("digested");
    std::fs::write(&file, bytes).unwrap();
    let output = std::process::Command::new("sha256sum").arg(&file).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

/// Orders an upload of a file with this size and digest, as `caller`.
async fn order(base: &str, caller: &str, size: usize, sha256: &str) -> Value {
    let body = json!({
        "filename": "../page.html", "mediaType": "text/html", "size": size, "sha256": sha256,
    });
    Call::get(&format!("{base}/a2a-lambda/uploads"))
        .header("Content-Type", "application/json")
        .header("Authorization", caller)
        .body(&body)
        .json()
        .await
}

/// Sends bytes that do not match the order, and asserts that they are refused.
async fn spoil(order: &Value, bytes: &Bytes) {
    let mut other = bytes.to_vec();
    other[7] ^= 1;
    let url = order["url"].as_str().unwrap();
    let (status, _, said) = ask(Method::PUT, url, &order["headers"], other.into()).await;
    assert_eq!(status, 400, "other bytes were accepted");
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("BadDigest"), "{said}");
}

/// Sends a message with this part, and returns the response.
async fn say(base: &str, caller: &str, text: &str, part: &Value) -> Value {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}, part]});
    let call = Call::say(base, text).body(&json!({"message": message}));
    let (_, answer) = call.header("Authorization", caller).send().await;
    serde_json::from_str(&answer).unwrap()
}

/// The description of the fault in the second part of a message.
fn fault(answer: &Value) -> String {
    let details = answer.pointer("/error/details").and_then(Value::as_array);
    let violations = details.into_iter().flatten();
    let mut violations = violations.flat_map(|detail| detail["fieldViolations"].as_array());
    let violation = violations.next().and_then(|all| all.first());
    let violation = violation.unwrap_or_else(|| panic!("no field is named: {answer}"));
    assert_eq!(violation["field"], "message.parts[1]", "{answer}");
    violation["description"].as_str().unwrap().to_owned()
}

/// Whether any file below `folder` contains `word`.
fn finds(folder: &Path, word: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return finds(&path, word);
        }
        let content = std::fs::read(&path).unwrap();
        content.windows(word.len()).any(|found| found == word)
    })
}

const ANN: &str = "Bearer dev:acme:ann";
const BOB: &str = "Bearer dev:acme:bob";

#[tokio::test]
async fn a_file_too_large_for_a_response_is_fetched_by_its_url() {
    let folder = Folder::new();
    let agent = Running::logging(&folder).await;
    let answer = Call::say(agent.base(), "file 5000000").json().await;
    let part = &answer["task"]["artifacts"][0]["parts"][0];
    assert_eq!(part["filename"], "file.bin", "{answer}");
    let url = part["url"].as_str().unwrap();
    let (status, headers, body) = fetch(url).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    assert!(
        body == bytes(5_000_000),
        "the {} bytes of the body differ",
        body.len()
    );
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(
        headers["content-disposition"],
        "attachment; filename=\"file.bin\""
    );
    assert_eq!(headers["cache-control"], "private, no-store");
    for bent in [
        url.replace("file.bin", "page.html"),
        url.replace("X-Amz-Expires=300", "X-Amz-Expires=3000"),
        url.split('?').next().unwrap().to_owned(),
    ] {
        let (status, ..) = fetch(&bent).await;
        assert_eq!(status, 403, "{bent}");
    }
    // Each read makes a new URL, and no URL is stored or logged.
    let id = answer["task"]["id"].as_str().unwrap();
    let again = Call::get(&format!("{}/tasks/{id}", agent.base()))
        .json()
        .await;
    assert!(
        again["artifacts"][0]["parts"][0]["url"].is_string(),
        "{again}"
    );
    agent.interrupt().await;
    // The body of a task is compressed, its key is not.
    assert!(finds(folder.path(), id.as_bytes()), "the search is broken");
    assert!(
        !finds(folder.path(), b"X-Amz-Signature"),
        "a URL was stored or logged"
    );
}

#[tokio::test]
async fn an_uploaded_file_is_served_as_an_attachment() {
    let folder = Folder::new();
    let agent = Running::logging(&folder).await;
    let sent = bytes(6_000_000);
    let sha = sha256(&folder, &sent);
    let order = order(agent.base(), ANN, sent.len(), &sha).await;
    let (url, headers) = (order["url"].as_str().unwrap(), &order["headers"]);
    let put = |body: Bytes| ask(Method::PUT, url, headers, body);
    assert_eq!(order["method"], "PUT");
    // Refused bytes leave nothing behind; then the right ones are accepted.
    spoil(&order, &sent).await;
    let early = say(agent.base(), ANN, "back", &order["part"]).await;
    assert!(early.to_string().contains("was never received"), "{early}");
    let (status, _, said) = put(sent.clone()).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&said));
    // This header is signed too, so a client cannot omit it and replace the file.
    assert_eq!(order["headers"]["if-none-match"], "*");
    let foreign = say(agent.base(), BOB, "back", &order["part"]).await;
    assert_eq!(fault(&foreign), "names an upload that was never received");
    let task = say(agent.base(), ANN, "back", &order["part"]).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let given = &task["artifacts"][0]["parts"][0];
    assert_eq!(given["mediaType"], "text/html", "{task}");
    let (status, headers, body) = fetch(given["url"].as_str().unwrap()).await;
    assert_eq!((status, body == sent), (200, true));
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(
        headers["content-disposition"],
        "attachment; filename=\"page.html\""
    );
    // The task has its own copy of the file.
    let url = task["history"][0]["parts"][1]["url"].as_str().unwrap();
    assert!(fetch(url).await.2 == sent, "{task}");
    agent.interrupt().await;
    assert!(
        !finds(folder.path(), b"X-Amz-Signature"),
        "a URL was stored or logged"
    );
}

/// Sends `text` without waiting, and returns the task once it is at rest, with
/// no time limit.
async fn rested(base: &str, text: &str) -> Value {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]});
    let body = json!({"message": message, "configuration": {"returnImmediately": true}});
    let begun = Call::say(base, text).body(&body).json().await;
    let id = begun["task"]["id"].as_str().unwrap();
    loop {
        let task = Call::get(&format!("{base}/tasks/{id}")).json().await;
        let state = task["status"]["state"].as_str().unwrap();
        if !["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&state) {
            return task;
        }
        // Calls without a pause would take the CPU that the upload needs.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A value of `/proc/<id>/status`, in bytes.
fn memory(id: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let found = status.lines().find_map(|text| text.strip_prefix(line));
    let kilobytes = found.unwrap().trim_start_matches(':').trim();
    let (number, _) = kilobytes.split_once(' ').unwrap();
    number.parse::<u64>().unwrap() * 1024
}

/// The process contains the agent and the object store: the limit covers both.
#[tokio::test]
async fn a_hundred_megabytes_are_delivered_in_bounded_memory() {
    const SIZE: usize = 100_000_000;
    const MOST: u64 = 32 * 1024 * 1024;
    let folder = Folder::new();
    // Otherwise glibc keeps freed parts for later, up to one for each thread.
    let settings = [("MALLOC_MMAP_THRESHOLD_", "131072")];
    let arguments = ["--port", "0", "--agent", "conformance"];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    // The first large file loads code and buffers of the object store.
    Call::say(agent.base(), "file 1000000").json().await;
    let idle = memory(agent.id(), "VmRSS");
    let task = rested(agent.base(), &format!("file {SIZE}")).await;
    let peak = memory(agent.id(), "VmHWM");
    let above = peak.saturating_sub(idle);
    println!("{SIZE} bytes delivered: {idle} bytes idle, {above} bytes more at the peak");
    assert!(above <= MOST, "{above} bytes above idle");
    let part = &task["artifacts"][0]["parts"][0];
    let (status, headers, _) = ask(
        Method::GET,
        part["url"].as_str().unwrap(),
        &json!({"range": "bytes=99999990-99999999"}),
        Bytes::new(),
    )
    .await;
    assert_eq!(status, 206, "{task}");
    assert_eq!(
        headers["content-range"],
        "bytes 99999990-99999999/100000000"
    );
}
