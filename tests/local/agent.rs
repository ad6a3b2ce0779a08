//! The program as a process, and its output.

use a2a_lambda_tests::emulator::run;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Builds the program once per test process. Cargo does nothing if it is up to date.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let output = std::process::Command::new(env!("CARGO"))
            .args(["build", "--locked", "-p", "local-agent"])
            .arg("--message-format=json-render-diagnostics")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "a2a-local does not build");
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let built = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let mut executables = built.filter_map(|message| {
            let executable = message["executable"].as_str().map(PathBuf::from);
            executable.filter(|_| message["target"]["name"] == "a2a-local")
        });
        executables.next().expect("cargo names the program")
    })
}

/// A folder that is removed after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("a2a-local-test-{:x}-{n}", run()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program in `folder`, with only the given settings.
fn command(folder: &Folder, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(folder.path())
        .env_clear()
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs the program to its end.
pub(crate) async fn ended(arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let folder = Folder::new();
    ended_in(&folder, arguments, settings).await
}

/// Runs the program in `folder` to its end.
pub(crate) async fn ended_in(
    folder: &Folder,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Output {
    let output = command(folder, arguments, settings).output().await;
    output.unwrap()
}

/// The standard error of a program that does not start.
pub(crate) async fn refusal(arguments: &[&str], settings: &[(&str, &str)]) -> String {
    refusal_in(&Folder::new(), arguments, settings).await
}

/// The standard error of a program that does not start in `folder`.
pub(crate) async fn refusal_in(
    folder: &Folder,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> String {
    let output = ended_in(folder, arguments, settings).await;
    assert!(!output.status.success(), "{arguments:?} {settings:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A service of models on loopback: `tests/models/README.md` has its scripts.
pub(crate) struct ModelService {
    pub(crate) url: String,
    _process: Child,
}

impl ModelService {
    pub(crate) async fn start(folder: &Folder, script: &Value) -> Self {
        let path = folder.path().join("script.json");
        std::fs::write(&path, script.to_string()).unwrap();
        let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/stub.py");
        let mut child = Command::new("python3")
            .arg(stub)
            .arg("--script")
            .arg(path)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let url = line.strip_prefix("listening on ").unwrap().to_owned();
        Self {
            url,
            _process: child,
        }
    }
}

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    /// Its output until it was ready.
    pub(crate) said: String,
    /// Its output from then on.
    rest: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts it and reads until a line begins with `ready`.
    pub(crate) async fn start(
        folder: &Folder,
        arguments: &[&str],
        settings: &[(&str, &str)],
        ready: &str,
    ) -> Self {
        Self::ready(command(folder, arguments, settings), ready).await
    }

    async fn ready(mut command: Command, ready: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        loop {
            let line = lines.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("{command:?} ended after:\n{said}"));
            said.push_str(&line);
            said.push('\n');
            if line.starts_with(ready) {
                break;
            }
        }
        let rest = lines;
        Self { child, said, rest }
    }

    /// The next line of its output that begins with `start` and has `text`.
    pub(crate) async fn next_line(&mut self, start: &str, text: &str) -> String {
        loop {
            let line = self.rest.next_line().await.unwrap().unwrap();
            if line.starts_with(start) && line.contains(text) {
                return line;
            }
        }
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The agent on a free port.
    pub(crate) async fn agent(folder: &Folder, arguments: &[&str]) -> Self {
        let arguments = [&["--port", "0"], arguments].concat();
        Self::start(folder, &arguments, &[], "listening on ").await
    }

    /// The conformance agent on a free port; its log goes to the file `log` of the
    /// folder.
    pub(crate) async fn logging(folder: &Folder) -> Self {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let arguments = ["--port", "0", "--agent", "conformance"];
        Self::logging_to(log, folder, &arguments).await
    }

    /// The program; its log goes to `log`.
    pub(crate) async fn logging_to(
        log: std::fs::File,
        folder: &Folder,
        arguments: &[&str],
    ) -> Self {
        let settings = [("A2A_LOG", "info,a2a_lambda=trace,a2a_local=trace")];
        let mut command = command(folder, arguments, &settings);
        command.stderr(log);
        Self::ready(command, "listening on ").await
    }

    /// A setting that it printed.
    pub(crate) fn setting(&self, name: &str) -> &str {
        let lines = self.said.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.next().unwrap()
    }

    /// The base URL it printed.
    pub(crate) fn base(&self) -> &str {
        let (_, base) = self.said.rsplit_once("listening on ").unwrap();
        base.trim_end()
    }

    /// Ends it as Ctrl-C does in a shell, and waits for its end.
    pub(crate) async fn interrupt(self) {
        self.end("INT").await;
    }

    /// Ends it as a service manager does (SIGTERM), and waits for its end.
    pub(crate) async fn terminate(self) {
        self.end("TERM").await;
    }

    async fn end(mut self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().await;
        assert!(sent.unwrap().success());
        assert!(self.child.wait().await.unwrap().success());
    }

    /// Kills it (SIGKILL).
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
