//! Replaces the process by a new one of the same program.
//!
//! No destructor runs and nothing is written: for the tasks it is as if the process was
//! killed. The id of the process, its arguments and its environment stay the same.

use a2a_lambda::settings::{Environment, Source as _};
use std::ffi::OsString;
use std::io;
use std::process::Command;

/// The variable that hands the token to the next process. It is no setting.
const KEPT: &str = "_A2A_LOCAL_PAGE_TOKEN";

/// The token of the process before, if a kill started this one.
pub(super) fn kept_token() -> Option<String> {
    let is_hex = |token: &String| token.bytes().all(|byte| byte.is_ascii_hexdigit());
    Environment
        .get(KEPT)
        .filter(|token| token.len() == 64 && is_hex(token))
}

/// Replaces the process. It listens on `port` again, also if that was a free one. It
/// returns only if it fails.
pub(super) fn replace(port: u16, token: &str) -> io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut command = Command::new(program);
    command
        .args(with_port(std::env::args_os().skip(1), port))
        .env(KEPT, token);
    exec(&mut command)
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
    let mut kept = Vec::new();
    let mut is_port = false;
    for argument in arguments {
        let text = argument.to_string_lossy();
        if is_port {
            is_port = false;
        } else if text == "--port" {
            is_port = true;
        } else if !text.starts_with("--port=") {
            kept.push(argument);
        }
    }
    kept.push(format!("--port={port}").into());
    kept
}

#[cfg(test)]
mod tests {
    use super::with_port;

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
}
