//! One process of a program under measurement.

use crate::Failure;
use crate::runtime_api::{Heard, Posted, RuntimeApi};
use bytes::Bytes;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running process.
#[derive(Debug)]
pub(crate) struct Program {
    api: RuntimeApi,
    process: Child,
    log: Log,
    /// Calls until now.
    calls: usize,
    /// Reads the log until the program is dropped.
    _reading: JoinSet<()>,
    began: Instant,
    /// From the start of the process to its first question for an event.
    pub(crate) init: Duration,
}

/// What a program has written, as far as it has been read.
type Log = Arc<Mutex<Vec<u8>>>;

/// Reads what a program writes, until it is gone. It writes to a pipe: Lambda too reads the
/// output of a process, and a write to a file takes several times the CPU.
async fn read(mut pipe: pipe::Receiver, log: Log) {
    let mut part = Vec::with_capacity(8192);
    while pipe.read_buf(&mut part).await.is_ok_and(|n| n > 0) {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append(&mut part);
    }
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    /// From the start of the process to the whole response.
    pub(crate) since_start: Duration,
    /// From the event to the first byte of the body.
    pub(crate) first: Duration,
    /// From the event to the whole response.
    pub(crate) whole: Duration,
    /// When each piece arrived, since the event, and its length.
    pub(crate) pieces: Vec<(Duration, usize)>,
    pub(crate) body: Vec<u8>,
}

impl Program {
    /// Starts a bootstrap, and waits until it asks for an event.
    pub(crate) async fn start(
        bootstrap: &Path,
        variables: &[(String, String)],
    ) -> Result<Self, Failure> {
        let api = RuntimeApi::start().await?;
        let (output, pipe) = pipe::pipe()?;
        let output = output.into_blocking_fd()?;
        let log = Log::default();
        let mut reading = JoinSet::new();
        reading.spawn(read(pipe, Arc::clone(&log)));
        let mut command = Command::new(bootstrap);
        command
            .env_clear()
            .envs(variables.iter().cloned())
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        let began = Instant::now();
        let process = command.spawn()?;
        let mut program = Self {
            api,
            process,
            log,
            calls: 0,
            _reading: reading,
            began,
            init: Duration::ZERO,
        };
        program.init = program.next().await? - began;
        Ok(program)
    }

    async fn heard(&mut self) -> Result<(Instant, Heard), Failure> {
        let heard = tokio::time::timeout(PATIENCE, self.api.heard.recv()).await;
        heard.ok().flatten().ok_or_else(|| {
            let log = self.log();
            Failure::Program(format!("the program did not answer; its log: {log}"))
        })
    }

    /// Waits until the program asks for the next event.
    async fn next(&mut self) -> Result<Instant, Failure> {
        match self.heard().await? {
            (at, Heard::Next) => Ok(at),
            (_, other) => Err(Failure::Program(format!(
                "expected a question, not {other:?}"
            ))),
        }
    }

    /// Gives the program an event. Returns when it asks for the next one.
    pub(crate) async fn call(&mut self, event: Bytes) -> Result<Call, Failure> {
        let given = Instant::now();
        let gone = |_| Failure::Program("the program is gone".to_owned());
        self.api.events.send(event).map_err(gone)?;
        self.calls += 1;
        let (at, Posted { pieces, body }) = match self.heard().await? {
            (at, Heard::Response(posted)) => (at, posted),
            (_, Heard::Failed(error)) => return Err(Failure::Program(error)),
            (_, Heard::Next) => {
                let why = "the program asked for an event before it responded";
                return Err(Failure::Program(why.to_owned()));
            }
        };
        self.next().await?;
        let pieces: Vec<(Duration, usize)> =
            pieces.into_iter().map(|(at, n)| (at - given, n)).collect();
        Ok(Call {
            since_start: at - self.began,
            first: pieces.first().map_or(Duration::ZERO, |(at, _)| *at),
            whole: at - given,
            pieces,
            body,
        })
    }

    fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The log lines of all calls until now. Waits until they have been read.
    pub(crate) async fn lines_of_calls(&self) -> Result<Vec<Value>, Failure> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let log = self.log();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let calls: Vec<Value> = lines.filter(|it: &Value| it["message"] == "call").collect();
            if calls.len() >= self.calls {
                return Ok(calls);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let log = self.log();
        Err(Failure::Program(format!("a call has no log line: {log}")))
    }

    fn proc(&self, name: &str) -> PathBuf {
        let id = self.process.id().unwrap_or_default();
        PathBuf::from(format!("/proc/{id}/{name}"))
    }

    /// The time that all threads have run.
    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        let mut sum = 0;
        for thread in std::fs::read_dir(self.proc("task"))? {
            // A thread may have ended.
            let text = std::fs::read_to_string(thread?.path().join("schedstat"));
            let text = text.unwrap_or_default();
            let ran: Option<u64> = text.split(' ').next().and_then(|ran| ran.parse().ok());
            sum += ran.unwrap_or(0);
        }
        Ok(Duration::from_nanos(sum))
    }

    /// The most memory that it had, in bytes.
    pub(crate) fn peak(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(self.proc("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kilobytes.unwrap_or(0) * 1024)
    }
}
