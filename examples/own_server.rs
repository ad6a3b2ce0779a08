//! Serves the agent with a plain hyper server instead of Lambda functions.
//!
//! `cargo run -p examples --example own_server` serves until it is stopped. With
//! `--once` it sends itself one request for the Agent Card and exits.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::{Body, Function};
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The largest request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// The time a client may take to send its headers, and then its body.
const PATIENCE: Duration = Duration::from_secs(30);

/// Settings for a local machine; the agent is reached at this URL.
struct Development(String);

impl Source for Development {
    fn get(&self, name: &str) -> Option<String> {
        match name {
            "A2A_AUTH" => Some("dev".to_owned()),
            "A2A_PUBLIC_URL" => Some(self.0.clone()),
            _ => None,
        }
    }
}

/// Handles a request like the function that API Gateway would route it to.
///
/// With `A2A_AUTH=dev` the edge rejects hosts other than loopback and the host of the
/// public URL. It also rejects writes from web pages of other sites.
async fn answer(runtime: Runtime, request: Request<Incoming>) -> Response<Body> {
    let edge = runtime.edge(Function::of(
        request.method().as_str(),
        request.uri().path(),
    ));
    let identity = Identity::of(request.headers());
    let (head, body) = request.into_parts();
    match timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => {
            let request = Request::from_parts(head, body.to_bytes());
            edge.handle(request, identity, None).await
        }
        // A partial body is never used.
        Ok(Err(error)) if error.is::<LengthLimitError>() => refused(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => refused(StatusCode::BAD_REQUEST),
        Err(_) => refused(StatusCode::REQUEST_TIMEOUT),
    }
}

fn refused(status: StatusCode) -> Response<Body> {
    let mut refused = Response::new(Empty::new().boxed_unsync());
    *refused.status_mut() = status;
    refused
}

async fn connection(runtime: Runtime, stream: TcpStream) {
    let service = service_fn(move |request| {
        let runtime = runtime.clone();
        async move { Ok::<_, Infallible>(answer(runtime, request).await) }
    });
    // A closed connection is normal, so its error is ignored.
    let _gone = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Says it louder.
#[skill(id = "shout", tags = ["text"], examples = ["shout hello"])]
async fn shout(input: Content) -> AgentResult<Content> {
    Ok(input.text()?.to_uppercase().into())
}

fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("shouter")
        .name("Shouter")
        .skill(shout)
        .build()
}

async fn listen() -> Result<(TcpListener, Runtime, String), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let settings = Settings::read(&Development(url.clone()))?;
    let runtime = Runtime::builder(agent()?, settings).build()?;
    Ok((listener, runtime, url))
}

/// Sends the server one request and returns the response.
async fn once() -> Result<String, Box<dyn Error>> {
    let (listener, runtime, _) = listen().await?;
    let address = listener.local_addr()?;
    let serving = async {
        let (stream, _) = listener.accept().await?;
        connection(runtime, stream).await;
        Ok::<_, io::Error>(())
    };
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = "GET /.well-known/agent-card.json HTTP/1.1\r\n\
                       Host: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let ((), answer) = tokio::try_join!(serving, asking)?;
    Ok(answer)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--once") {
        writeln!(io::stdout(), "{}", once().await?)?;
        return Ok(());
    }
    let (listener, runtime, url) = listen().await?;
    writeln!(io::stdout(), "listening on {url}")?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(connection(runtime.clone(), stream));
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_program_answers_itself() {
        let answer = super::once().await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("\"Shouter\""), "{answer}");
    }
}
