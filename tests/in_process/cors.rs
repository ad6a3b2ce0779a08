//! Pages of the allowed origin call the agent from a browser; other pages cannot.

use a2a_lambda::origin::CorsOrigin;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::world::{Reply, Request, World};

const PAGE: &str = "https://app.example.com";
const DIALECT: Dialect = Dialect::Rest10;

fn world() -> World {
    World::with(|settings| settings.cors = CorsOrigin::parse(PAGE)).unwrap()
}

fn send() -> Request {
    DIALECT.send(&Say::to("echo", "hello"))
}

/// A request as a browser sends it for a page of `origin`.
fn from(origin: &str, request: Request) -> Request {
    request
        .header("origin", origin)
        .header("sec-fetch-site", "cross-site")
}

fn allowed(reply: &Reply) -> &str {
    reply.header("access-control-allow-origin")
}

#[tokio::test(start_paused = true)]
async fn a_page_of_the_allowed_origin_sends_and_reads_the_answer() {
    let reply = world().call(&from(PAGE, send())).await;
    assert_eq!((reply.status, allowed(&reply)), (200, PAGE));
    let shown = reply.header("access-control-expose-headers");
    assert!(shown.contains("retry-after"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_a_stream_and_a_refusal_too() {
    let world = world();
    let stream = DIALECT.stream(&Say::to("echo", "hello"));
    let streamed = world.call(&from(PAGE, stream)).await;
    assert_eq!((streamed.status, allowed(&streamed)), (200, PAGE));
    let absent = DIALECT.versioned(Request::new("GET", "/tasks/task-absent"));
    let refused = world.call(&from(PAGE, absent)).await;
    assert_eq!((refused.status, allowed(&refused)), (404, PAGE));
    let unknown = from(PAGE, send().header("authorization", "Bearer nonsense"));
    let refused = world.call(&unknown).await;
    assert_eq!((refused.status, allowed(&refused)), (401, PAGE));
}

#[tokio::test(start_paused = true)]
async fn a_preflight_needs_no_caller_and_names_the_headers_of_a_call() {
    let asked = Request::new("OPTIONS", "/message:send")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "a2a-version,authorization",
        );
    let reply = world().call(&from(PAGE, asked)).await;
    assert_eq!((reply.status, allowed(&reply)), (204, PAGE));
    assert_eq!(
        reply.header("access-control-allow-methods"),
        "DELETE, GET, POST"
    );
    let named = reply.header("access-control-allow-headers");
    for header in ["a2a-version", "authorization", "idempotency-key"] {
        assert!(named.contains(header), "{named}");
    }
    assert_eq!(reply.header("access-control-allow-credentials"), "");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_another_origin_changes_nothing() {
    let world = world();
    let rows = [
        "https://app.example.com.evil.example",
        "https://app.example.com:8443",
        "http://app.example.com",
        "null",
    ];
    each_row_async(rows, async |origin| {
        let reply = world.call(&from(origin, send())).await;
        assert_eq!(reply.status, 403, "{origin}");
        // A browser compares this with the page's origin.
        assert_eq!(allowed(&reply), PAGE);
    })
    .await;
    let list = world
        .call(&DIALECT.versioned(Request::new("GET", "/tasks")))
        .await;
    assert_eq!(list.json()["totalSize"], 0, "{}", list.text());
}

#[tokio::test(start_paused = true)]
async fn without_an_origin_no_answer_has_a_header_for_pages() {
    let world = World::new().unwrap();
    let preflight =
        Request::new("OPTIONS", "/message:send").header("access-control-request-method", "POST");
    for request in [send(), from(PAGE, send()), from(PAGE, preflight)] {
        let reply = world.call(&request).await;
        let named = reply.headers.keys().map(|name| name.as_str());
        assert_eq!(
            named
                .filter(|name| name.starts_with("access-control"))
                .count(),
            0
        );
    }
}
