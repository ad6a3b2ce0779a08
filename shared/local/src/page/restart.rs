//! Replaces the process by a new one of the same program.
//!
//! No destructor runs and nothing is written to the data: for the tasks it is as if the
//! process was killed. The id of the process, its arguments and its environment stay the
//! same. The page's token and the notes of the log go to the next process in a file, not in
//! a variable: a variable would go on to every program that a skill starts.

use crate::embedded::passing_folder;
use crate::folder::{make_new, private_file};
use crate::page::log_notes::{LogNotes, TaskNote};
use a2a_lambda::settings::{Environment, Source as _};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the path of the file. It is no setting.
const PATH: &str = "_A2A_LOCAL_HANDED_ON";
/// The name of the file, in a new folder.
const FILE: &str = "handed-on.json";

/// What the page has from the process before; empty unless a kill started this one.
#[derive(Debug, Default)]
pub(crate) struct HandedOn {
    /// The token of the page.
    pub(super) token: Option<String>,
    /// The notes of the log.
    pub(crate) notes: LogNotes,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct HandedOnFile {
    token: String,
    notes: Vec<TaskNote>,
}

impl HandedOn {
    /// Reads the file of the process before, and removes it. Call this before any code of
    /// a skill runs.
    #[must_use]
    pub(crate) fn take() -> Self {
        let path = Environment.get(PATH).map(PathBuf::from);
        path.and_then(|path| Self::from(&path)).unwrap_or_default()
    }

    fn from(path: &Path) -> Option<Self> {
        // The variable stays, so a file can be gone, and is not read twice.
        let bytes = fs::read(path).ok()?;
        remove(path);
        let HandedOnFile { token, notes } = serde_json::from_slice(&bytes).ok()?;
        let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self {
            token: (token.len() == 64 && is_hex).then_some(token),
            notes: LogNotes::starting_with(notes),
        })
    }
}

/// Replaces the process. It listens on `port` again, also if that was a free one. It
/// returns only if it fails.
pub(super) fn replace(port: u16, token: &str, notes: &LogNotes) -> io::Error {
    let path = passing_folder().join(FILE);
    let result = write(&path, token, notes).and_then(|()| -> io::Result<Infallible> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(with_port(std::env::args_os().skip(1), port))
            .env(PATH, &path);
        Err(exec(&mut command))
    });
    remove(&path);
    let Err(error) = result;
    error
}

/// Writes the file into a new folder, readable for this user alone.
fn write(path: &Path, token: &str, notes: &LogNotes) -> io::Result<()> {
    let content = HandedOnFile {
        token: token.to_owned(),
        notes: notes.newest(),
    };
    if let Some(folder) = path.parent() {
        make_new(folder)?;
    }
    private_file(path)?.write_all(&serde_json::to_vec(&content)?)
}

/// Removes the file and its folder. The path comes from a variable, so nothing else is
/// removed with them.
fn remove(path: &Path) {
    // If this fails, the operating system cleans its folder for temporary files.
    let _ = fs::remove_file(path);
    let _ = path.parent().map(fs::remove_dir);
}

#[cfg(unix)]
fn exec(command: &mut Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

#[cfg(not(unix))]
fn exec(_: &mut Command) -> io::Error {
    io::Error::from(io::ErrorKind::Unsupported)
}

/// The arguments with this port instead of the one they name. The other processes of this
/// machine must not get the port between the two listeners, so it is not asked for anew.
fn with_port(arguments: impl Iterator<Item = OsString>, port: u16) -> Vec<OsString> {
    let mut others = Vec::new();
    let mut is_port = false;
    for argument in arguments {
        let text = argument.to_string_lossy();
        if is_port {
            is_port = false;
        } else if text == "--port" {
            is_port = true;
        } else if !text.starts_with("--port=") {
            others.push(argument);
        }
    }
    others.push(format!("--port={port}").into());
    others
}

#[cfg(test)]
mod tests {
    use super::{FILE, HandedOn, passing_folder, with_port, write};
    use crate::page::log_notes::{LogNotes, TaskNote};

    #[test]
    fn the_next_process_listens_on_the_same_port() {
        for given in [
            &["--port", "0", "--data", "x"][..],
            &["--data", "x", "--port=0"],
            &["--data", "x"],
        ] {
            let arguments = with_port(given.iter().map(Into::into), 4711);
            assert_eq!(arguments, ["--data", "x", "--port=4711"], "{given:?}");
        }
    }

    #[test]
    fn what_is_handed_on_is_read_once_and_leaves_nothing() {
        let path = passing_folder().join(FILE);
        let note = TaskNote::failed("t", "why");
        let token = "a".repeat(64);
        write(&path, &token, &LogNotes::starting_with(vec![note])).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode();
            assert_eq!(mode(&path) & 0o777, 0o600);
            assert_eq!(mode(path.parent().unwrap()) & 0o777, 0o700);
        }
        let read = HandedOn::from(&path).unwrap();
        assert_eq!(read.token, Some(token));
        assert_eq!(read.notes.of("t")[0]["error.cause"], "why");
        assert!(!path.parent().unwrap().exists());
        assert!(HandedOn::from(&path).is_none());
    }

    #[test]
    fn only_the_file_itself_is_removed() {
        let folder = passing_folder();
        std::fs::create_dir(&folder).unwrap();
        let (file, other) = (folder.join(FILE), folder.join("other"));
        std::fs::write(&other, "x").unwrap();
        std::fs::write(&file, "no JSON").unwrap();
        assert!(HandedOn::from(&file).is_none());
        assert!(!file.exists() && other.exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
