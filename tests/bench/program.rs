//! One process of a program under measurement.

use crate::Failure;
use crate::runtime_api::{Heard, Posted, RuntimeApi};
use bytes::Bytes;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running process.
#[derive(Debug)]
pub(crate) struct Program {
    api: RuntimeApi,
    process: Child,
    log: Arc<ProgramLog>,
    /// Reads the log until the program is dropped.
    _reading: JoinSet<()>,
    began: Instant,
    /// From the start of the process to its first question for an event.
    pub(crate) init: Duration,
}

/// What a program writes, through a pipe: Lambda too reads the output of a process, and a
/// write to a file takes several times the CPU.
#[derive(Debug)]
struct ProgramLog {
    pipe: pipe::Receiver,
    read: Mutex<Vec<u8>>,
}

impl ProgramLog {
    /// A log, and where a process writes to it.
    fn open() -> io::Result<(OwnedFd, Arc<Self>)> {
        let (output, pipe) = pipe::pipe()?;
        let read = Mutex::new(Vec::new());
        Ok((output.into_blocking_fd()?, Arc::new(Self { pipe, read })))
    }

    /// Reads until the process is gone.
    async fn read(self: Arc<Self>) {
        while self.pipe.readable().await.is_ok() && self.read_now() {}
    }

    /// Reads what is there. Returns whether more can come.
    fn read_now(&self) -> bool {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match self.pipe.try_read_buf(&mut *read) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    fn text(&self) -> String {
        self.read_now();
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&read).into_owned()
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
        let (output, log) = ProgramLog::open()?;
        let mut reading = JoinSet::new();
        reading.spawn(Arc::clone(&log).read());
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

    /// Everything that the program has written until now.
    pub(crate) fn log(&self) -> String {
        self.log.text()
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
