//! Runs every function under `cargo lambda watch`, with DynamoDB, S3 and the queues in
//! this process.
//!
//! `cargo lambda watch` runs each function in a process of its own, behind the Runtime
//! API, and builds it again when its code changes. This program takes the place of what
//! AWS has around them: the stream starts `relay`, the queues start `worker` and `push`,
//! the schedule starts `sweep`.
//!
//! - here: the command, and its child process
//! - `sources`: what starts the functions that have no route
//! - `invoke`: calls a function
//! - `event`: the records of the stream as AWS Lambda delivers them

mod event;
mod invoke;
mod sources;

use crate::accept::accept;
use crate::embedded::{DATA, Embedded, EmbeddedError, LIMITS, listen};
use crate::queue::LocalQueue;
use crate::sqs::QueueDoor;
use a2a_lambda::engine::SystemClock;
use a2a_lambda::settings::{Environment, Source as _};
use sources::Sources;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long a received message of the work queue stays hidden, unless the worker changes
/// it: `VisibilityTimeout` in `template.yaml`.
const WORK_HIDDEN: Duration = Duration::from_secs(900);
/// The same for the push queue.
const PUSH_HIDDEN: Duration = Duration::from_secs(90);
/// How long the child may take to end after it was asked to.
const ENDING: Duration = Duration::from_secs(10);
/// The pause between two looks at the child's port.
const LOOK: Duration = Duration::from_millis(100);
/// How to get the tool.
const INSTALL: &str = "install it with `pip install cargo-lambda`, `brew install cargo-lambda` or `cargo install --locked cargo-lambda`";

/// How to watch.
#[derive(Debug, Clone, clap::Args)]
pub struct Watch {
    /// The port of all functions; 0 takes a free one, which is printed.
    #[arg(long, default_value_t = 9000)]
    pub port: u16,
    /// How many processes a function may have. An open stream occupies one.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: u16,
    /// Where tables and objects are kept.
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// Keep nothing after the end.
    #[arg(long, conflicts_with = "data")]
    pub memory: bool,
    /// Do not build a function again when its code changes.
    #[arg(long)]
    pub ignore_changes: bool,
}

/// Why the functions do not run.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The tool is missing.
    #[error("failed to run `cargo lambda`: {INSTALL}")]
    NoTool,
    /// The functions do not compile.
    #[error("failed to build the functions: {0}")]
    Build(ExitStatus),
    /// A process cannot be started.
    #[error("failed to start `{command}`: {source}")]
    Start {
        /// The command.
        command: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The tool has ended.
    #[error("`cargo lambda watch` has ended: {0}")]
    Ended(ExitStatus),
    /// The embedded services do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// There is no free loopback port.
    #[error("failed to listen on a loopback port: {0}")]
    Listen(#[from] io::Error),
}

/// The embedded services and their queues.
struct WatchServices {
    embedded: Embedded,
    queues: String,
    serving: JoinHandle<()>,
    sources: Sources,
}

/// Runs the functions until `interrupted` is ready or the tool ends. `ready` gets a text
/// for the user when the functions can be called.
///
/// # Errors
/// [`WatchError`] when they do not run.
pub async fn run(
    options: &Watch,
    interrupted: impl Future<Output = ()>,
    ready: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), WatchError> {
    tool().await?;
    build().await?;
    let port = free(options.port).await?;
    let base = format!("http://127.0.0.1:{port}");
    let services = WatchServices::start(options, &base).await?;
    let mut child = watch(options, port, &services)?;
    tokio::pin!(interrupted);
    let ended = tokio::select! {
        () = &mut interrupted => Ok(()),
        ended = serve(&mut child, port, &services, options, ready) => ended,
    };
    end(&mut child).await;
    services.stop().await;
    ended
}

/// Checks that the tool is installed.
async fn tool() -> Result<(), WatchError> {
    let asked = Command::new("cargo")
        .args(["lambda", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    match asked {
        Ok(status) if status.success() => Ok(()),
        _ => Err(WatchError::NoTool),
    }
}

/// Builds all functions, so that no first call waits for its build.
async fn build() -> Result<(), WatchError> {
    let built = Command::new("cargo").arg("build").status().await;
    let status = built.map_err(|source| WatchError::Start {
        command: "cargo build",
        source,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(WatchError::Build(status))
    }
}

/// The port, or a free one for 0. The tool itself cannot report which port it took.
async fn free(port: u16) -> Result<u16, WatchError> {
    let probe = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    Ok(probe.local_addr()?.port())
}

impl WatchServices {
    async fn start(options: &Watch, base: &str) -> Result<Self, WatchError> {
        let folder = (!options.memory).then_some(options.data.as_path());
        let embedded = Embedded::start(folder).await?;
        let clock = Arc::new(SystemClock);
        let work = LocalQueue::new(clock.clone(), WORK_HIDDEN);
        let push = LocalQueue::new(clock, PUSH_HIDDEN);
        let named = [("work", work.clone()), ("push", push.clone())];
        let queues: BTreeMap<_, _> = named.map(|(name, it)| (name.to_owned(), it)).into();
        let door = QueueDoor::new(queues, embedded.keys());
        let listener = listen()?;
        let address = listener.local_addr()?;
        let serving = accept(
            listener,
            LIMITS,
            move |request| door.clone().answer(request),
            std::future::pending(),
        );
        Ok(Self {
            sources: Sources::new(base, embedded.endpoints(), embedded.expiry(), work, push),
            embedded,
            queues: format!("http://{address}"),
            serving: tokio::spawn(serving),
        })
    }

    /// The settings of the functions.
    fn settings(&self, base: &str) -> Vec<(&'static str, String)> {
        let mut settings = self.embedded.settings();
        settings.extend([
            ("A2A_AUTH", "dev".to_owned()),
            ("A2A_PUBLIC_URL", base.to_owned()),
            ("A2A_WORK_QUEUE_URL", format!("{}/work", self.queues)),
            ("A2A_PUSH_QUEUE_URL", format!("{}/push", self.queues)),
            ("AWS_ENDPOINT_URL_SQS", self.queues.clone()),
        ]);
        settings
    }

    async fn stop(self) {
        self.serving.abort();
        self.embedded.stop().await;
    }
}

/// Starts the tool in a process group of its own, so that its functions end with it.
fn watch(options: &Watch, port: u16, services: &WatchServices) -> Result<Child, WatchError> {
    let base = format!("http://127.0.0.1:{port}");
    let mut command = Command::new("cargo");
    // By default the tool listens on all addresses, and every web page may read.
    command
        .args(["lambda", "watch", "-A", "127.0.0.1", "--disable-cors"])
        .args(["-P", &port.to_string()])
        .args(["--concurrency", &options.concurrency.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if options.ignore_changes {
        command.arg("--ignore-changes");
    }
    for (name, value) in services.settings(&base) {
        // What the user sets wins, except for the places of this run.
        if name != "A2A_PUBLIC_URL" || Environment.get(name).is_none() {
            command.env(name, value);
        }
    }
    #[cfg(unix)]
    command.process_group(0);
    command.spawn().map_err(|source| WatchError::Start {
        command: "cargo lambda watch",
        source,
    })
}

/// Waits until the tool listens, then starts functions until the tool ends.
async fn serve(
    child: &mut Child,
    port: u16,
    services: &WatchServices,
    options: &Watch,
    ready: impl FnOnce(&str) -> io::Result<()>,
) -> Result<(), WatchError> {
    loop {
        tokio::select! {
            ended = child.wait() => return Err(WatchError::Ended(ended?)),
            () = sleep(LOOK) => {}
        }
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
    }
    ready(&banner(port, options))?;
    let running = services.sources.run(options.concurrency.into());
    tokio::select! {
        ended = child.wait() => Err(WatchError::Ended(ended?)),
        () = running => Ok(()),
    }
}

/// Ends the tool and its functions.
async fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = group.and_then(Pid::from_raw) {
            for signal in [Signal::INT, Signal::KILL] {
                // An error means that the group has ended.
                let _gone = kill_process_group(group, signal);
                if timeout(ENDING, child.wait()).await.is_ok() && signal == Signal::KILL {
                    return;
                }
            }
        }
    }
    if let Err(error) = child.kill().await {
        tracing::debug!("failed to end `cargo lambda watch`: {error}");
    }
}

fn banner(port: u16, options: &Watch) -> String {
    let base = format!("http://127.0.0.1:{port}");
    let kept = if options.memory {
        "memory: nothing is kept".to_owned()
    } else {
        format!("{}/", options.data.display())
    };
    let mut text = String::new();
    // Writing to a `String` does not fail.
    let _ = write!(
        text,
        "\n  all functions, each in processes of its own, under `cargo lambda watch`\n  \
         card   {base}/.well-known/agent-card.json\n  \
         data   {kept} (DynamoDB, S3 and SQS in this process)\n  \
         behind the calls: the stream starts relay, the queues start worker and push, \
         a schedule starts sweep\n\n\
         listening on {base}\n"
    );
    text
}
