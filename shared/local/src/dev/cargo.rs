//! What cargo says of the workspace, and its builds.

use super::files::Folders;
use crate::config::Dev;
use crate::process::RunError;
use serde::Deserialize;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;

/// How a build ended.
pub(super) enum Build {
    /// The program.
    Done(PathBuf),
    /// What cargo and the compiler said.
    Failed(String),
}

/// The cargo that started this program, with the arguments of a build.
pub(super) struct Cargo {
    program: OsString,
    arguments: Vec<OsString>,
    is_coloured: bool,
}

impl Cargo {
    /// `cargo run` names itself and the package to the program that it starts.
    pub(super) fn new(options: &Dev) -> Self {
        let package = options.package.clone().map(OsString::from);
        let package = package.or_else(|| variable("CARGO_PKG_NAME"));
        let mut arguments = Vec::new();
        if let Some(package) = package {
            arguments.extend(["--package".into(), package]);
        }
        for features in &options.features {
            arguments.extend(["--features".into(), features.into()]);
        }
        Self {
            program: variable("CARGO").unwrap_or_else(|| "cargo".into()),
            arguments,
            is_coloured: io::stderr().is_terminal(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        // `cargo run` describes a package in the environment of its program. Build scripts that
        // look there would run again, and after them all that is above.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// The folders of all packages that are no dependency from elsewhere.
    ///
    /// # Errors
    /// [`RunError`] with what cargo says.
    pub(super) async fn folders(&self) -> Result<Folders, RunError> {
        let mut command = self.command(&["metadata", "--format-version", "1"]);
        let output = command
            .output()
            .await
            .map_err(|error| format!("failed to run cargo: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().into());
        }
        let workspace: Workspace = serde_json::from_slice(&output.stdout)?;
        let packages = workspace.packages.into_iter();
        let packages = packages.filter(|package| package.source.is_none());
        let folder = |package: Package| package.manifest_path.parent().map(Path::to_owned);
        Ok(Folders {
            packages: packages.filter_map(folder).collect(),
            workspace: workspace.workspace_root,
            target: workspace.target_directory,
        })
    }

    /// Builds the program, and passes on what cargo and the compiler say.
    ///
    /// # Errors
    /// When cargo does not run.
    pub(super) async fn build(&self) -> io::Result<Build> {
        let (format, color) = match self.is_coloured {
            true => ("json-diagnostic-rendered-ansi", "always"),
            false => ("json", "never"),
        };
        let mut cargo = self
            .command(&["build", "--color", color, "--message-format", format])
            .args(&self.arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (output, errors) = (cargo.stdout.take(), cargo.stderr.take());
        let (messages, errors) = tokio::join!(messages_of(output), passed_on(errors));
        let status = cargo.wait().await?;
        let (diagnostics, programs) = messages;
        if !status.success() {
            return Ok(Build::Failed(diagnostics + &errors));
        }
        let none =
            || Build::Failed("the package has no program; name another with -p\n".to_owned());
        Ok(wanted(programs).map_or_else(none, Build::Done))
    }
}

/// What `cargo metadata` prints, as far as it is read here.
#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

/// A package; one of the workspace, or of a path, has no source.
#[derive(Deserialize)]
struct Package {
    source: Option<String>,
    manifest_path: PathBuf,
}

/// A line of `cargo build --message-format json`: a diagnostic, or what was built.
#[derive(Deserialize)]
struct CargoLine {
    message: Option<Diagnostic>,
    executable: Option<PathBuf>,
}

/// What the compiler says.
#[derive(Deserialize)]
struct Diagnostic {
    #[serde(rename = "rendered")]
    text: String,
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo describes itself there; it is no setting of an agent"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The program to serve: the one with the name of this program, or the only one.
fn wanted(mut programs: Vec<PathBuf>) -> Option<PathBuf> {
    let this = std::env::current_exe().ok();
    let name = this.as_deref().and_then(Path::file_name);
    let same = programs.iter().position(|path| path.file_name() == name);
    match same {
        Some(index) => Some(programs.swap_remove(index)),
        None if programs.len() == 1 => programs.pop(),
        None => None,
    }
}

/// Reads the messages of cargo: the diagnostics, which it passes on, and the programs.
async fn messages_of(output: Option<impl AsyncRead + Unpin>) -> (String, Vec<PathBuf>) {
    let (mut diagnostics, mut programs) = (String::new(), Vec::new());
    let Some(output) = output else {
        return (diagnostics, programs);
    };
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<CargoLine>(&line) else {
            continue;
        };
        if let Some(Diagnostic { text }) = message.message {
            let _told = io::stderr().write_all(text.as_bytes());
            diagnostics.push_str(&text);
        }
        programs.extend(message.executable);
    }
    (diagnostics, programs)
}

/// Passes each line on to standard error, and returns all.
pub(super) async fn passed_on(output: Option<impl AsyncRead + Unpin>) -> String {
    let mut text = String::new();
    let Some(output) = output else { return text };
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _told = writeln!(io::stderr(), "{line}");
        text.push_str(&line);
        text.push('\n');
    }
    text
}
