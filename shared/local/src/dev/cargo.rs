//! What cargo says of the workspace, and its builds.

use super::files::{Folders, real};
use super::output::{Output, OutputHead};
use crate::config::Dev;
use crate::process::RunError;
use serde::Deserialize;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncRead;
use tokio::process::{Child, Command};

/// The cargo that started this program, with the arguments of a build.
pub(super) struct Cargo {
    program: OsString,
    arguments: Vec<OsString>,
    /// The file name of this program. After the next build the system no longer knows it.
    name: Option<OsString>,
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
        let this = std::env::current_exe().ok();
        Self {
            program: variable("CARGO").unwrap_or_else(|| "cargo".into()),
            arguments,
            name: this.and_then(|path| path.file_name().map(OsString::from)),
            is_coloured: io::stderr().is_terminal()
                && variable("NO_COLOR").is_none()
                && variable("CARGO_TERM_COLOR").is_none_or(|color| color != "never"),
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
        let folder = |package: Package| package.manifest_path.parent().map(real);
        Ok(Folders {
            packages: packages.filter_map(folder).collect(),
            workspace: real(&workspace.workspace_root),
            target: real(&workspace.target_directory),
        })
    }

    /// Builds the program, and passes on what cargo and the compiler say.
    ///
    /// # Errors
    /// What they say, when there is no program.
    pub(super) async fn build(&self) -> Result<PathBuf, String> {
        let (format, color) = match self.is_coloured {
            true => ("json-diagnostic-rendered-ansi", "always"),
            false => ("json", "never"),
        };
        let mut command = self.command(&["build", "--color", color, "--message-format", format]);
        // Cargo ends alone when it is killed; what it has started has its group.
        #[cfg(unix)]
        command.process_group(0);
        let cargo = command
            .args(&self.arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut cargo =
            BuildProcess(cargo.map_err(|error| format!("failed to run cargo: {error}\n"))?);
        let mut errors = Output::of(cargo.0.stderr.take());
        let messages = messages_of(Output::of(cargo.0.stdout.take()));
        let ((diagnostics, programs), ()) = tokio::join!(messages, errors.pass_on(io::stderr()));
        if !cargo.0.wait().await.is_ok_and(|status| status.success()) {
            return Err(diagnostics + &errors.beginning.0);
        }
        self.choose(programs)
            .ok_or_else(|| "the package has no program; name another with -p\n".to_owned())
    }

    /// The program to serve: the one with the name of this program, or the only one.
    fn choose(&self, mut programs: Vec<PathBuf>) -> Option<PathBuf> {
        let name = self.name.as_deref();
        let same = programs.iter().position(|path| path.file_name() == name);
        match same {
            Some(index) => Some(programs.swap_remove(index)),
            None if programs.len() == 1 => programs.pop(),
            None => None,
        }
    }
}

/// Cargo, with the compilers and build scripts that it has started. Dropping it ends them.
struct BuildProcess(Child);

#[cfg(unix)]
impl Drop for BuildProcess {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // There is no id after cargo has ended.
        let id = self.0.id().and_then(|id| id.try_into().ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            let _ended = kill_process_group(id, Signal::KILL);
        }
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

/// Reads the messages of cargo: the diagnostics, which it passes on, and the programs.
async fn messages_of(mut output: Output<impl AsyncRead + Unpin>) -> (String, Vec<PathBuf>) {
    let (mut diagnostics, mut programs) = (OutputHead::default(), Vec::new());
    while let Some(line) = output.line().await {
        let Ok(message) = serde_json::from_str::<CargoLine>(&line) else {
            continue;
        };
        if let Some(Diagnostic { text }) = message.message {
            let _told = io::stderr().write_all(text.as_bytes());
            diagnostics.push(&text);
        }
        programs.extend(message.executable);
    }
    (diagnostics.0, programs)
}
