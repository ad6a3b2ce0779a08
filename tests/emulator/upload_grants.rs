//! Misuse of an upload grant, against a real bucket: only the announced file can be stored,
//! and only once.

use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::emulator::outside;
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::fixture::{Fixture, Place};
use a2a_lambda_tests::remote;
use a2a_lambda_tests::tester::{self, Gate};
use a2a_lambda_tests::world::{Reply, Request};
use serde_json::{Value, json};

const DIALECT: Dialect = Dialect::Rest10;
const ANN: &str = "acme:ann";
/// SHA-256 of the bytes: `printf 0123456789 | sha256sum`.
const BYTES: &[u8] = b"0123456789";
const DIGEST: &str = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";

/// Uploads this body with the grant, without the named headers. Returns the HTTP status.
async fn put(grant: &Value, body: &[u8], without: &[&str]) -> u16 {
    let url = grant["url"].as_str().unwrap();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut put = Request::new("PUT", format!("/{path}")).body(body);
    for (name, value) in grant["headers"].as_object().unwrap() {
        // The HTTP client sends the actual length.
        if name != "content-length" && !without.contains(&name.as_str()) {
            put = put.header(name, value.as_str().unwrap());
        }
    }
    let live = remote::open(&format!("{scheme}://{host}"), &put).await;
    live.unwrap().finish().await.status
}

/// A new grant for the bytes.
async fn granted(fixture: &Fixture) -> Value {
    let order = json!({"size": BYTES.len(), "sha256": DIGEST});
    let order = Request::post("/a2a-lambda/uploads", &order);
    fixture.call(&order, ANN).await.json()
}

/// Sends a message that names the file of a grant.
async fn named(fixture: &Fixture, grant: &Value) -> Reply {
    let mut params = DIALECT.say(&Say::to("echo", "look"));
    let parts = params["message"]["parts"].as_array_mut().unwrap();
    parts.push(grant["part"].clone());
    let send = DIALECT.request(Op::Send, "", &params);
    fixture.call(&send, ANN).await
}

#[tokio::test]
async fn an_upload_grant_allows_only_its_bytes_and_only_once() {
    if outside().is_some() {
        println!("SKIPPED: not every emulator checks what a URL is signed for");
        return;
    }
    let agent = tester::agent(Gate::default()).unwrap();
    let fixture = Fixture::at(Place::Emulator, agent, |_| ()).await.unwrap();
    let rows = [
        (b"0123456788".as_slice(), [].as_slice()),
        (b"012345678", &[]),
        (b"01234567890", &[]),
        (b"", &[]),
        (BYTES, &["if-none-match"]),
        (BYTES, &["content-type"]),
    ];
    each_row_async(rows, async |(body, without)| {
        let grant = granted(&fixture).await;
        let status = put(&grant, body, without).await;
        assert!(
            (400..500).contains(&status),
            "{body:?} {without:?} {status}"
        );
        // Even if the bucket has stored something, no task can use it.
        let reply = named(&fixture, &grant).await;
        let fault = Fault::new(DIALECT, PARAMS).at("message.parts[1]");
        assert_eq!(fault.check(&reply), Ok(()), "{body:?} {}", reply.text());
    })
    .await;
    let grant = granted(&fixture).await;
    assert_eq!(put(&grant, BYTES, &[]).await, 200);
    assert_eq!(
        put(&grant, BYTES, &[]).await,
        412,
        "the file is already stored"
    );
    let task = DIALECT.task(&named(&fixture, &grant).await);
    assert_eq!(DIALECT.state(&task), "completed", "{task}");
}
