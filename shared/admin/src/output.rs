//! What a command prints.

use std::error::Error;
use std::io::{self, Write as _};

/// Why a command failed: a text for its user.
pub type CommandError = Box<dyn Error + Send + Sync>;

/// Prints what a command returns.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let result = io::stdout().write_all(text.as_bytes());
    Ok(result.map_err(|error| format!("failed to print: {error}"))?)
}
