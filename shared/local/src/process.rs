//! The end of this process, and the one that takes its place.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::Command;

/// Why the program ended: a text for its user.
pub(crate) type RunError = Box<dyn Error + Send + Sync>;

/// Prints a text for the user at once.
pub(crate) fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()
}

/// Ready when the user presses Ctrl-C or the process gets SIGTERM.
pub(crate) async fn wait_for_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // An error means that there is no handler: then Ctrl-C kills the process.
    let _pressed = tokio::signal::ctrl_c().await;
}

/// Replaces the process by a new one of the same program. It listens on `port` again, also if
/// that was a free one. It returns only if it fails.
///
/// No destructor runs and nothing is written to the data: for the tasks it is as if the
/// process was killed. The id of the process, its arguments and its environment stay the
/// same.
pub(crate) fn replace(port: u16) -> io::Error {
    let arguments = with_port(std::env::args_os().skip(1), port);
    match std::env::current_exe() {
        Ok(program) => exec(Command::new(program).args(arguments)),
        Err(error) => error,
    }
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
pub(crate) fn with_port(arguments: impl Iterator<Item = OsString>, port: u16) -> Vec<OsString> {
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
