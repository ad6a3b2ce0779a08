//! A proxy to a service that injects faults.
//!
//! It is between an SDK and an emulator, forwards bytes and injects the planned faults into
//! the next requests. It expects one request at a time on a connection, as the SDK sends
//! them.

use std::collections::VecDeque;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    Pass,
    /// The request does not reach the service.
    Refuse,
    /// The service executes the request; the response never arrives.
    DropReply,
    /// The service executes the request; the response ends in its body.
    CutReply,
    /// The sender dies before the request reaches the service; the connection closes.
    Die,
    /// The service executes the request; the sender dies before the response.
    DieAfter,
    /// The request does not reach the service; this text is the response, without a length.
    Answer(&'static str),
}

/// The proxy; dropping it closes all connections.
#[derive(Debug)]
pub struct FaultyLine {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Plan {
    next: VecDeque<Fault>,
    /// The fault of every later request.
    rest: Option<Fault>,
    /// Requests since the plan was set.
    seen: usize,
    /// Whether the sender has died.
    dead: watch::Sender<bool>,
}

impl FaultyLine {
    /// A proxy to `upstream`, without faults at first.
    ///
    /// # Errors
    /// When it cannot listen on a loopback port.
    pub async fn to(upstream: SocketAddr) -> Result<Self, std::io::Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Self::serve(listener, address, upstream, Arc::default())
    }

    /// A proxy to another service with the same plan, so that the requests of one sender
    /// are counted together.
    ///
    /// # Errors
    /// When it cannot listen on a loopback port.
    pub async fn beside(&self, upstream: SocketAddr) -> Result<Self, std::io::Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Self::serve(listener, address, upstream, Arc::clone(&self.plan))
    }

    fn serve(
        listener: TcpListener,
        address: SocketAddr,
        upstream: SocketAddr,
        plan: Arc<Mutex<Plan>>,
    ) -> Result<Self, std::io::Error> {
        let task = tokio::spawn(serve(listener, upstream, Arc::clone(&plan)));
        Ok(Self {
            address,
            plan,
            task,
        })
    }

    /// The URL of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the faults of the next requests, one each; later requests pass.
    pub fn spoil(&self, faults: &[Fault]) {
        let mut plan = lock(&self.plan);
        plan.next = faults.iter().copied().collect();
        plan.rest = None;
        plan.seen = 0;
        plan.dead.send_replace(false);
    }

    /// Lets `passing` requests pass; at the next one the sender dies, before or after the
    /// service executes it.
    pub fn kill_after(&self, passing: usize, how: Fault) {
        let mut faults = vec![Fault::Pass; passing];
        faults.push(how);
        self.spoil(&faults);
        lock(&self.plan).rest = Some(Fault::Refuse);
    }

    /// Runs `job` to its end; `None` if the sender dies first.
    pub async fn run<T>(&self, job: impl Future<Output = T>) -> Option<T> {
        let mut dead = lock(&self.plan).dead.subscribe();
        tokio::select! {
            biased;
            // The channel's sender lives as long as the proxy.
            _ = dead.wait_for(|dead| *dead) => None,
            done = job => Some(done),
        }
    }

    /// Requests since the last plan was set.
    #[must_use]
    pub fn seen(&self) -> usize {
        lock(&self.plan).seen
    }

    /// Sets the fault of every request from now on.
    pub fn spoil_all(&self, fault: Fault) {
        let mut plan = lock(&self.plan);
        plan.next.clear();
        plan.rest = Some(fault);
    }

    /// Whether every planned fault has been used.
    #[must_use]
    pub fn spent(&self) -> bool {
        lock(&self.plan).next.is_empty()
    }
}

impl Drop for FaultyLine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(plan: &Mutex<Plan>) -> std::sync::MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next(plan: &Mutex<Plan>) -> Fault {
    let mut plan = lock(plan);
    plan.seen += 1;
    let rest = plan.rest.unwrap_or(Fault::Pass);
    let fault = plan.next.pop_front().unwrap_or(rest);
    if fault == Fault::Die {
        plan.dead.send_replace(true);
    }
    fault
}

async fn serve(listener: TcpListener, upstream: SocketAddr, plan: Arc<Mutex<Plan>>) {
    let mut lines = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let plan = Arc::clone(&plan);
        lines.spawn(async move {
            // A broken connection is intended; the client sees it as its own error.
            let _ = Box::pin(carry(client, upstream, &plan)).await;
        });
    }
}

/// Forwards requests until an end closes or a fault breaks the connection.
async fn carry(
    mut client: TcpStream,
    upstream: SocketAddr,
    plan: &Mutex<Plan>,
) -> Result<(), std::io::Error> {
    let mut service = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    service.set_nodelay(true)?;
    let (mut request, mut reply) = ([0; 65536], [0; 65536]);
    // The fault of the current request.
    let mut current = None;
    let mut answered = true;
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let bytes = request.get(..read?).unwrap_or_default();
                if bytes.is_empty() {
                    return Ok(());
                }
                if answered {
                    answered = false;
                    current = Some(next(plan));
                }
                match current {
                    Some(Fault::Refuse | Fault::Die) => return Ok(()),
                    Some(Fault::Answer(text)) => return Box::pin(answer(client, text)).await,
                    _ => {}
                }
                service.write_all(bytes).await?;
            }
            read = service.read(&mut reply) => {
                let bytes = reply.get(..read?).unwrap_or_default();
                answered = true;
                let kept = match current {
                    Some(Fault::DropReply) => return Ok(()),
                    Some(Fault::DieAfter) => {
                        lock(plan).dead.send_replace(true);
                        return Ok(());
                    }
                    Some(Fault::CutReply) => bytes.len().saturating_sub(1),
                    _ => bytes.len(),
                };
                client.write_all(bytes.get(..kept).unwrap_or_default()).await?;
                if bytes.is_empty() || kept < bytes.len() {
                    return Ok(());
                }
            }
        }
    }
}

/// Sends a response in place of the service, and waits for the client to close.
async fn answer(mut client: TcpStream, text: &str) -> Result<(), std::io::Error> {
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await?;
    let mut rest = [0; 65536];
    while client.read(&mut rest).await? > 0 {}
    Ok(())
}
