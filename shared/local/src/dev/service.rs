//! A build that runs as a process of its own.

use super::cargo::passed_on;
use super::report::BuildReport;
use crate::process::with_port;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a program may take until it serves. A skill's state may load much.
const START: Duration = Duration::from_secs(60);
/// How long a program may take to end. What it loses then, the next one takes over.
const END: Duration = Duration::from_secs(5);
/// How often the newest report is written.
const AGAIN: Duration = Duration::from_secs(1);

/// The program of a build, under a name that cargo does not replace.
pub(super) struct KeptBuild {
    path: PathBuf,
    /// When it was linked, and its size in bytes.
    stamp: (Option<SystemTime>, u64),
}

/// Keeps the program of build `number` beside the one that cargo replaces.
///
/// # Errors
/// When the file cannot be linked or copied.
pub(super) fn keep(program: &Path, number: u32) -> io::Result<KeptBuild> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let path = program.with_file_name(format!("dev-{number}-{name}"));
    // One of an earlier run may be left.
    let _absent = fs::remove_file(&path);
    if fs::hard_link(program, &path).is_err() {
        fs::copy(program, &path)?;
    }
    let metadata = fs::metadata(program)?;
    let stamp = (metadata.modified().ok(), metadata.len());
    Ok(KeptBuild { path, stamp })
}

impl KeptBuild {
    /// Removes the file.
    pub(super) fn remove(self) {
        let _left = fs::remove_file(self.path);
    }
}

/// How a start ended.
pub(super) enum Launch {
    Serves(Box<Service>),
    /// What the program said.
    Failed(String),
}

/// A program that serves.
pub(super) struct Service {
    build: KeptBuild,
    process: Child,
    /// Dropping it ends the reports, and so the program.
    reports: watch::Sender<BuildReport>,
    port: u16,
}

impl Service {
    /// Starts a program with the options of serving, and waits until it serves.
    ///
    /// # Errors
    /// When the process cannot be made.
    pub(super) async fn start(
        build: KeptBuild,
        serve: &[OsString],
        report: &BuildReport,
    ) -> io::Result<Launch> {
        let mut process = Command::new(&build.path)
            .arg("--under-dev")
            .args(serve)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let errors = tokio::spawn(passed_on(process.stderr.take()));
        let Some((input, output)) = input.zip(output) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        // The program knows its number before a page asks.
        let (reports, newest) = watch::channel(report.clone());
        tokio::spawn(report_to(input, newest));
        let mut lines = BufReader::new(output).lines();
        let port = timeout(START, async {
            while let Ok(Some(line)) = lines.next_line().await {
                // The page and the calls of the first start are those of the next ones too.
                if report.is_first() {
                    let _told = writeln!(io::stdout(), "{line}");
                }
                if let Some((_, port)) = line
                    .strip_prefix("listening on ")
                    .and_then(|base| base.rsplit_once(':'))
                {
                    return port.parse().ok();
                }
            }
            None
        });
        let Ok(Some(port)) = port.await else {
            process.kill().await?;
            build.remove();
            let output = errors.await.unwrap_or_default();
            return Ok(Launch::Failed(output));
        };
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _told = writeln!(io::stdout(), "{line}");
            }
        });
        Ok(Launch::Serves(Box::new(Self {
            build,
            process,
            reports,
            port,
        })))
    }

    /// The options with which the next program listens on the same port.
    pub(super) fn arguments(&self, serve: &[OsString]) -> Vec<OsString> {
        with_port(serve.iter().cloned(), self.port)
    }

    /// Whether `build` is the program that runs.
    pub(super) fn is(&self, build: &KeptBuild) -> bool {
        self.build.stamp == build.stamp
    }

    /// Tells the program how the builds are.
    pub(super) fn tell(&mut self, report: &BuildReport) {
        self.reports.send_replace(report.clone());
    }

    /// Ready when the program has ended by itself.
    pub(super) async fn ended(&mut self) -> String {
        let status = self.process.wait().await;
        status.map_or_else(
            |error| error.to_string(),
            |status: ExitStatus| status.to_string(),
        )
    }

    /// Ends the program; then nobody has the data folder.
    ///
    /// # Errors
    /// When the operating system does not end it.
    pub(super) async fn stop(self) -> io::Result<KeptBuild> {
        let Self {
            build,
            mut process,
            reports,
            ..
        } = self;
        drop(reports);
        if timeout(END, process.wait()).await.is_err() {
            process.kill().await?;
        }
        Ok(build)
    }
}

/// Writes the newest report as a line to the program, and again in each second: the page may
/// have replaced the process by a new one.
async fn report_to(mut input: ChildStdin, mut reports: watch::Receiver<BuildReport>) {
    while reports.has_changed().is_ok() {
        let Ok(line) = serde_json::to_string(&*reports.borrow_and_update()) else {
            return;
        };
        if input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
        let _again = timeout(AGAIN, reports.changed()).await;
    }
}
