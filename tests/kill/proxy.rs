//! A line between the program and its store that counts calls and, at one of
//! them, kills the program.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

/// When the program dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The call does not reach the store.
    Before,
    /// The store has done it, and nobody hears.
    After,
}

/// What the lines of one program share.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counting: bool,
    calls: Vec<String>,
    kill: Option<(usize, Side, u32)>,
    killed: bool,
}

impl Watch {
    /// Counts from here on, and kills process `kill.2` at call `kill.0`.
    pub(crate) fn count(&self, kill: Option<(usize, Side, u32)>) {
        *self.0.lock().unwrap() = State {
            counting: true,
            kill,
            ..State::default()
        };
    }

    /// Kills nothing any more; the calls since, and whether it came to a kill.
    pub(crate) fn stop(&self) -> (Vec<String>, bool) {
        let state = std::mem::take(&mut *self.0.lock().unwrap());
        (state.calls, state.killed)
    }

    fn next(&self, operation: &str) -> Option<(Side, u32)> {
        let mut state = self.0.lock().unwrap();
        if !state.counting {
            return None;
        }
        let n = state.calls.len();
        state.calls.push(operation.to_owned());
        let (_, side, process) = state.kill.filter(|(at, ..)| *at == n)?;
        state.killed = true;
        Some((side, process))
    }
}

/// A line to `upstream`; its URL.
pub(crate) async fn line(upstream: &str, watch: &Arc<Watch>) -> String {
    let upstream = upstream.strip_prefix("http://").unwrap();
    let upstream: SocketAddr = upstream.trim_end_matches('/').parse().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let watch = Arc::clone(watch);
    tokio::spawn(async move {
        let mut lines = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let watch = Arc::clone(&watch);
            // A line that breaks is what the program has to bear.
            lines.spawn(async move { carry(client, upstream, &watch).await.ok() });
        }
    });
    url
}

async fn carry(
    mut client: TcpStream,
    upstream: SocketAddr,
    watch: &Watch,
) -> Result<(), std::io::Error> {
    let mut store = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    store.set_nodelay(true)?;
    let (mut request, mut reply) = (vec![0; 65536], vec![0; 65536]);
    let mut answered = true;
    let mut doomed = None;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let bytes = &request[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                if std::mem::replace(&mut answered, false)
                    && let Some(operation) = operation(bytes)
                {
                    doomed = watch.next(&operation);
                }
                if let Some((Side::Before, process)) = doomed {
                    kill(process).await;
                    return Ok(());
                }
                store.write_all(bytes).await?;
            }
            read = store.read(&mut reply) => {
                let bytes = &reply[..read?];
                if let Some((Side::After, process)) = doomed {
                    kill(process).await;
                    return Ok(());
                }
                if bytes.is_empty() {
                    return Ok(());
                }
                answered = true;
                client.write_all(bytes).await?;
            }
        }
    }
}

/// The store call a request makes; none for the stream, which is asked all the
/// time.
fn operation(request: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(request);
    let head = text.split("\r\n\r\n").next()?;
    let target = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("x-amz-target"));
    match target {
        Some((_, target)) if target.contains("Streams") => None,
        Some((_, target)) => target.rsplit('.').next().map(str::to_owned),
        None => head
            .split(' ')
            .next()
            .map(|method| format!("{method} object")),
    }
}

async fn kill(process: u32) {
    let kill = format!("kill -KILL {process}");
    let sent = Command::new("sh").args(["-c", &kill]).status().await;
    assert!(sent.unwrap().success());
}
