//! A build that runs as a process of its own.

use super::files::{SETTINGS, Stamp, stamp};
use super::output::Output;
use super::report::BuildReport;
use std::ffi::OsString;
use std::fs;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a program may take until it serves. A skill's state may load much.
const START: Duration = Duration::from_secs(60);
/// How long a program may take to end. What it loses then, the next one takes over.
const END: Duration = Duration::from_secs(5);
/// How long what a program has said is read after its end.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the newest report is written.
const AGAIN: Duration = Duration::from_secs(1);

/// The program of a build, under a name that cargo does not replace. Dropping it removes the file.
pub(super) struct KeptBuild {
    path: PathBuf,
    /// Of the program, and of the configuration file that it reads.
    stamps: [Option<Stamp>; 2],
}

/// Keeps the program of build `number` beside the one that cargo replaces.
///
/// # Errors
/// When the file cannot be linked or copied.
pub(super) fn keep(program: &Path, number: u32) -> io::Result<KeptBuild> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("dev-{}-{number}-{name}", std::process::id());
    let path = program.with_file_name(name);
    // One of an earlier run may be left.
    let _absent = fs::remove_file(&path);
    if fs::hard_link(program, &path).is_err() {
        fs::copy(program, &path)?;
    }
    let stamps = [stamp(program), stamp(Path::new(SETTINGS))];
    Ok(KeptBuild { path, stamps })
}

impl Drop for KeptBuild {
    fn drop(&mut self) {
        let _left = fs::remove_file(&self.path);
    }
}

/// A program that serves.
pub(super) struct Service {
    build: KeptBuild,
    process: Child,
    /// Dropping it ends the reports, and so the program.
    pub(super) reports: watch::Sender<BuildReport>,
    pub(super) port: u16,
}

impl Service {
    /// Starts a program with the options of serving, and waits until it serves.
    ///
    /// # Errors
    /// What the program said, when it does not serve.
    pub(super) async fn start(
        build: KeptBuild,
        serve: &[OsString],
        report: &BuildReport,
    ) -> Result<Self, String> {
        let mut process = Command::new(&build.path)
            .arg("--under-dev")
            // The page and the calls of the first start are those of the next ones too.
            .args((!report.is_first()).then_some("--no-banner"))
            .args(serve)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("failed to run the program: {error}\n"))?;
        let mut output = Output::of(process.stdout.take());
        let mut errors = Output::of(process.stderr.take());
        // The program knows its number before a page asks.
        let (reports, newest) = watch::channel(report.clone());
        tokio::spawn(report_to(process.stdin.take(), newest));
        let port = tokio::select! {
            port = port_of(&mut output, report.is_first()) => port,
            () = async { errors.pass_on(io::stderr()).await; pending().await } => None,
            _ = process.wait() => None,
            () = sleep(START) => None,
        };
        let Some(port) = port else {
            let _ended = process.kill().await;
            let rest =
                async { tokio::join!(output.pass_on(io::stdout()), errors.pass_on(io::stderr())) };
            // A process that the program has started can keep the pipes open.
            let _open = timeout(PAUSE, rest).await;
            return Err(output.beginning.0 + &errors.beginning.0);
        };
        tokio::spawn(async move { output.pass_on(io::stdout()).await });
        tokio::spawn(async move { errors.pass_on(io::stderr()).await });
        Ok(Self {
            build,
            process,
            reports,
            port,
        })
    }

    /// Whether `build` is the program that runs, with the same settings.
    pub(super) fn is(&self, build: &KeptBuild) -> bool {
        self.build.stamps == build.stamps
    }

    /// Ready when the program has ended by itself.
    pub(super) async fn wait(&mut self) -> String {
        let status = self.process.wait().await;
        status.map_or_else(
            |error| error.to_string(),
            |status: ExitStatus| status.to_string(),
        )
    }

    /// Ends the program; then nobody has the data folder.
    pub(super) async fn stop(self) -> KeptBuild {
        let Self {
            build,
            mut process,
            reports,
            ..
        } = self;
        drop(reports);
        if timeout(END, process.wait()).await.is_err() {
            let _ended = process.kill().await;
        }
        build
    }
}

/// Reads until the program serves: the port of its last line. The user does not see that line
/// again.
async fn port_of(output: &mut Output<ChildStdout>, is_first: bool) -> Option<u16> {
    while let Some(line) = output.line().await {
        let base = line.strip_prefix("listening on ");
        if is_first || base.is_none() {
            output.beginning.push(&line);
            let _told = io::stdout().write_all(line.as_bytes());
        }
        if let Some((_, port)) = base.and_then(|base| base.rsplit_once(':')) {
            return port.trim_end().parse().ok();
        }
    }
    None
}

/// Writes the newest report as a line to the program, and again in each second: the page may
/// have replaced the process by a new one.
async fn report_to(input: Option<ChildStdin>, mut reports: watch::Receiver<BuildReport>) {
    let Some(mut input) = input else { return };
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
