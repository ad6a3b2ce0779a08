//! One process of a program under measurement.

use crate::Failure;
use crate::runtime_api::{Heard, Posted, RuntimeApi};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running process.
#[derive(Debug)]
pub(crate) struct Program {
    api: RuntimeApi,
    process: Child,
    pub(crate) log: PathBuf,
    began: Instant,
    /// From the start of the process to its first question for an event.
    pub(crate) init: Duration,
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
        log: PathBuf,
    ) -> Result<Self, Failure> {
        let api = RuntimeApi::start().await?;
        let output = std::fs::File::create(&log)?;
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
            began,
            init: Duration::ZERO,
        };
        program.init = program.next().await? - began;
        Ok(program)
    }

    async fn heard(&mut self) -> Result<(Instant, Heard), Failure> {
        let heard = tokio::time::timeout(PATIENCE, self.api.heard.recv()).await;
        heard.ok().flatten().ok_or_else(|| {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
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
