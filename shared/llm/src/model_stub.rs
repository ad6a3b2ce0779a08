//! A model service on loopback. It gives prepared answers and keeps the requests.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A prepared answer: raw bytes, and what follows them.
pub(crate) struct StubAnswer {
    bytes: Vec<u8>,
    hangs: bool,
}

/// A request that the stub received.
#[derive(Debug, Clone)]
pub(crate) struct StubRequest {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The stub. It takes one connection for each answer.
pub(crate) struct ModelStub {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<StubRequest>>>,
}

impl StubAnswer {
    /// A whole answer.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self::raw(&(head + body))
    }

    /// A stream with a chunk for each piece, and its regular end.
    pub(crate) fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut answer = Self::cut_stream(pieces);
        answer.bytes.extend_from_slice(b"0\r\n\r\n");
        answer
    }

    /// A stream whose connection breaks after these pieces.
    pub(crate) fn cut_stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let mut bytes = head.as_bytes().to_vec();
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        Self {
            bytes,
            hangs: false,
        }
    }

    /// These bytes.
    pub(crate) fn raw(text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        Self {
            bytes,
            hangs: false,
        }
    }

    /// Silence.
    pub(crate) fn silence() -> Self {
        Self::raw("").then_silence()
    }

    /// The answer, then silence until the client hangs up.
    pub(crate) fn then_silence(mut self) -> Self {
        self.hangs = true;
        self
    }
}

impl ModelStub {
    pub(crate) async fn start(answers: impl IntoIterator<Item = StubAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (Arc::clone(&requests), Vec::from_iter(answers));
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read(&mut socket).await;
                seen.lock().unwrap().push(request);
                // The client may hang up early.
                let _ = socket.write_all(&answer.bytes).await;
                if answer.hangs {
                    let _ = socket.read_to_end(&mut Vec::new()).await;
                }
            }
        });
        Self { url, requests }
    }

    /// The requests until now.
    pub(crate) fn requests(&self) -> Vec<StubRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The body of the request at `place`.
    pub(crate) fn body(&self, place: usize) -> Value {
        self.requests()[place].body.clone()
    }
}

async fn read(socket: &mut TcpStream) -> StubRequest {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = socket.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_lowercase();
        let declared = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= declared.unwrap().parse().unwrap() {
            let body = serde_json::from_str(body).unwrap();
            return StubRequest { head, body };
        }
    }
}
