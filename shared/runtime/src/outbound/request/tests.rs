//! The requests of skills, on the real engine, with a test in place of the other service.

use crate::outbound::{AddressPolicy, FetchError, Fetched, Fetcher, OutboundUrl};
use crate::testing::SkillTest;
use a2a_lambda_rows::each_row;
use a2a_lambda_skill::prelude::*;
use a2a_lambda_skill::{Agent, AgentDefinition};
use http::Method;
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Ledger {
    fetcher: Fetcher,
    url: OutboundUrl,
}

impl Ledger {
    async fn load() -> Result<Self, crate::outbound::UrlError> {
        let fetcher = Fetcher::new(AddressPolicy::Anything, Duration::from_secs(1));
        let url = OutboundUrl::parse("http://ledger.local/book", AddressPolicy::Anything)?;
        Ok(Self { fetcher, url })
    }
}

/// Books with the method of its message, three tries long.
#[skill(id = "book", tags = ["money"], effect = "write")]
async fn book(cx: &mut TaskContext<'_>, ledger: State<Ledger>, method: String) -> AgentResult<u64> {
    let url = &ledger.url;
    let work = async || match method.as_str() {
        "get" => ledger.fetcher.get(url).json::<u64>().await,
        "put" => ledger.fetcher.put(url).body(&7).json().await,
        "delete" => ledger.fetcher.delete(url).json().await,
        "post" => ledger.fetcher.post(url).body(&7).json().await,
        "idempotent post" => ledger.fetcher.post(url).body(&7).idempotent().json().await,
        "post, then get" => {
            ledger.fetcher.post(url).send().await.ok();
            ledger.fetcher.get(url).json().await
        }
        _ => {
            ledger.fetcher.put(url).body(&1).send().await?;
            ledger.fetcher.put(url).body(&2).json().await
        }
    };
    cx.retry("book").tries(3).run(work).await
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("ledger").description("Books.");
    agent.state(Ledger::load).skill(book).build().unwrap()
}

type Outcome = fn(&Method) -> Result<Fetched, FetchError>;
type Requests = Arc<Mutex<Vec<(Method, Option<String>)>>>;

/// A client, and the method and the key of each request, of which each gets `outcome`.
fn client(outcome: Outcome) -> (SkillTest, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let mut client = SkillTest::new(&agent(), "book");
    client.on_request(move |request| {
        let key = request.headers().get("idempotency-key");
        let key = key.map(|key| key.to_str().unwrap().to_owned());
        seen.lock().unwrap().push((request.method().clone(), key));
        Some(outcome(request.method()))
    });
    (client, requests)
}

fn status(status: u16) -> Result<Fetched, FetchError> {
    Ok(Fetched {
        status,
        body: "5".into(),
        ..Fetched::default()
    })
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_sent_again_unless_it_might_be_done_twice() {
    let no_connection: Outcome = |_| Err(FetchError::Unconnected("refused".to_owned()));
    let time_out: Outcome = |_| Err(FetchError::Timeout(Duration::from_secs(1)));
    let broken: Outcome = |_| Err(FetchError::Connection("reset".to_owned()));
    let invalid: Outcome = |_| Err(FetchError::Request("no URL".to_owned()));
    let away: Outcome = |_| {
        let retry_after = Some(1);
        status(503).map(|it| Fetched { retry_after, ..it })
    };
    let (busy, failed, missing): (Outcome, Outcome, Outcome) =
        (|_| status(429), |_| status(500), |_| status(404));
    let unexplained: Outcome = |_| status(503);
    // Outcome, requests of GET, PUT, DELETE and an idempotent POST, requests of a POST.
    let rows = [
        ("no connection", no_connection, 3, 3),
        ("429", busy, 3, 3),
        ("503 with Retry-After", away, 3, 3),
        ("no answer in time", time_out, 3, 1),
        ("a broken connection", broken, 3, 1),
        ("500", failed, 3, 1),
        ("503 without Retry-After", unexplained, 3, 1),
        ("404", missing, 1, 1),
        ("an invalid request", invalid, 1, 1),
    ];
    for (name, outcome, repeatable, post) in rows {
        for method in ["get", "put", "delete", "idempotent post", "post"] {
            let (mut client, requests) = client(outcome);
            let reply = client.send(method).await.unwrap();
            assert_eq!(reply.error_code(), Some("NETWORK"), "{name} {method}");
            let times = if method == "post" { post } else { repeatable };
            assert_eq!(requests.lock().unwrap().len(), times, "{name}: {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_sent_a_post_does_not_send_it_again_for_a_later_failure() {
    let rows: [(&str, Outcome); 2] = [
        ("an answered POST", |method| match *method {
            Method::POST => status(201),
            _ => status(500),
        }),
        ("a POST without an answer", |method| match *method {
            Method::POST => Err(FetchError::Timeout(Duration::from_secs(1))),
            _ => status(500),
        }),
    ];
    for (name, outcome) in rows {
        let (mut client, requests) = client(outcome);
        let reply = client.send("post, then get").await.unwrap();
        assert_eq!(reply.error_code(), Some("NETWORK"), "{name}");
        let methods: Vec<_> = requests
            .lock()
            .unwrap()
            .iter()
            .map(|it| it.0.clone())
            .collect();
        assert_eq!(methods, [Method::POST, Method::GET], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_write_of_a_step_has_one_key_in_all_tries() {
    let (mut client, requests) = client(|_| status(429));
    client.send("put").await.unwrap();
    let keys: Vec<_> = requests
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.1.clone().unwrap())
        .collect();
    assert_eq!(keys, vec![keys[0].clone(); 3]);

    let (mut client, requests) = self::client(|_| status(200));
    let reply = client.send("two puts").await.unwrap();
    assert_eq!(reply.artifact_data("book"), Some(5.into()));
    let keys: Vec<_> = requests
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.1.clone().unwrap())
        .collect();
    assert_eq!(keys[1], format!("{}-2", keys[0]));
}

#[tokio::test(start_paused = true)]
async fn a_test_gives_the_response_of_a_get_and_a_request_without_one_fails() {
    let mut client = SkillTest::new(&agent(), "book");
    client.on_get("http://ledger.local/book", 12);
    let reply = client.send("get").await.unwrap();
    assert_eq!(reply.artifact_data("book"), Some(12.into()));
    let reply = client.send("put").await.unwrap();
    assert_eq!(reply.error_code(), Some("NETWORK"));
    let cause = client.cause().unwrap();
    assert!(
        cause.contains("no response to PUT http://ledger.local/book"),
        "{cause}"
    );
}

#[tokio::test]
async fn a_url_of_a_client_is_not_sent_by_a_client_that_reaches_private_hosts() {
    let fetcher = Fetcher::new(AddressPolicy::Anything, Duration::from_secs(1));
    let url = OutboundUrl::parse("https://example.com/", AddressPolicy::Public).unwrap();
    let error = fetcher.get(&url).send().await.unwrap_err();
    assert!(!error.is_transient());
    assert!(
        error.cause().unwrap().contains("the URL is one for Public"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_wrong_header_or_body_is_an_error_and_no_request() {
    let fetcher = Fetcher::new(AddressPolicy::Anything, Duration::from_secs(1));
    let url = OutboundUrl::parse("http://127.0.0.1:9/", AddressPolicy::Anything).unwrap();
    each_row([("a b", "x"), ("x-a", "\n")], |(name, value)| {
        let sent = fetcher.get(&url).header(name, value).send();
        let error = futures::executor::block_on(sent).unwrap_err();
        assert_eq!(error.code().as_str(), "NETWORK", "{name}");
    });
    let map = std::collections::HashMap::from([(vec![1], 2)]);
    let error = fetcher.put(&url).body(&map).send().await.unwrap_err();
    assert_eq!(error.code().as_str(), "SERIALIZATION");
}
