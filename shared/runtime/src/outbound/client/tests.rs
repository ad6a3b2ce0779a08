use super::{CheckedResolver, NotPublicError};
use crate::outbound::{AddressPolicy, FetchError, Fetched, Fetcher, OutboundUrl};
use a2a_lambda_rows::each_row;
use std::net::IpAddr;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(5);

async fn get(fetcher: &Fetcher, url: &OutboundUrl) -> Result<Fetched, FetchError> {
    let (headers, body) = (http::HeaderMap::new(), bytes::Bytes::new());
    fetcher
        .send(url, http::Method::GET, headers, body, 10)
        .await
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn one_private_address_of_a_name_is_enough_to_refuse_it() {
    let checked = CheckedResolver {
        reach: AddressPolicy::Public,
        is_encrypted: true,
    };
    let public = addresses(&["8.8.8.8", "2606:4700::1111"]);
    assert_eq!(checked.check(public.clone()).unwrap(), public);
    let rows = ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1"];
    each_row(rows, |bad| {
        let mixed = [public.clone(), addresses(&[bad])].concat();
        assert!(matches!(checked.check(mixed), Err(NotPublicError)), "{bad}");
    });
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_refused() {
    // `OutboundUrl` refuses `localhost`, so the test calls the resolver itself.
    use aws_smithy_runtime_api::client::dns::ResolveDns as _;
    let public = CheckedResolver {
        reach: AddressPolicy::Public,
        is_encrypted: true,
    };
    assert!(public.resolve_dns("localhost").await.is_err());
    let here = CheckedResolver {
        reach: AddressPolicy::Loopback,
        is_encrypted: false,
    };
    assert!(!here.resolve_dns("localhost").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_url_beyond_the_reach_is_refused_again_when_it_is_used() {
    let url = OutboundUrl::parse("http://127.0.0.1:9/", AddressPolicy::Loopback).unwrap();
    let fetcher = Fetcher::new(AddressPolicy::Public, SECOND);
    let refused = get(&fetcher, &url).await;
    assert!(
        matches!(refused, Err(FetchError::Request(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_refused_connection_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/");
    let url = OutboundUrl::parse(&url, AddressPolicy::Loopback).unwrap();
    let refused = get(&Fetcher::new(AddressPolicy::Loopback, SECOND), &url).await;
    assert!(
        matches!(refused, Err(FetchError::Unconnected(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_broken_off_body_fails_a_get_but_not_a_post() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let url = OutboundUrl::parse(&url, AddressPolicy::Loopback).unwrap();
    let fetcher = Fetcher::new(AddressPolicy::Loopback, SECOND);
    let hangs_up = async {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = [0; 1024];
            assert_ne!(socket.read(&mut asked).await.unwrap(), 0);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc";
            socket.write_all(answer).await.unwrap();
        }
    };
    let asks = async {
        let posted = fetcher.send(
            &url,
            http::Method::POST,
            http::HeaderMap::new(),
            bytes::Bytes::new(),
            10,
        );
        let posted = posted.await.unwrap();
        assert_eq!((posted.status, posted.cut), (200, true));
        let read = get(&fetcher, &url).await;
        assert!(matches!(read, Err(FetchError::Connection(_))), "{read:?}");
    };
    tokio::join!(hangs_up, asks);
}

#[tokio::test]
async fn a_request_of_a_skill_carries_the_trace_of_its_turn() {
    use crate::telemetry::TraceContext;
    use crate::telemetry::scope::{CallFacts, CallScope};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let url = OutboundUrl::parse(&url, AddressPolicy::Loopback).unwrap();
    let fetcher = Fetcher::new(AddressPolicy::Loopback, SECOND);
    let scope = CallScope::of_call(TraceContext::new(7, 8), CallFacts::default());
    let answers = async {
        let mut asked = [0; 1024];
        let (mut socket, _) = listener.accept().await.unwrap();
        let length = socket.read(&mut asked).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        socket.write_all(answer).await.unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    };
    let (sent, asked) = tokio::join!(scope.run(get(&fetcher, &url)), answers);
    assert!(sent.is_ok(), "{sent:?}");
    let header = format!("traceparent: 00-{:032x}-{:016x}-00\r\n", 7, 8);
    assert!(asked.contains(&header), "{asked}");
}
