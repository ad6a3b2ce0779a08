//! Says where settings come from: the process environment, a file, or a test.

use super::SettingsError;
use crate::task::Timestamp;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// 2020-01-01T00:00:00Z: an executable with an earlier file time has a false one.
const OLDEST_BUILD: Timestamp = Timestamp::from_millis(1_577_836_800_000);

/// Where settings come from.
pub trait Source {
    /// The value of the setting `name`, if it is set.
    fn get(&self, name: &str) -> Option<String>;

    /// The file time of the executable, if it is known and credible.
    fn built_at(&self) -> Option<Timestamp> {
        None
    }
}

/// The process environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment;

impl Environment {
    /// The names of all variables that are set.
    pub(super) fn names() -> impl Iterator<Item = String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
    }

    /// The endpoint in the variable `name`, else in `AWS_ENDPOINT_URL`; `None` means
    /// AWS itself.
    #[cfg(feature = "aws")]
    pub(crate) fn aws_endpoint(name: &str) -> Option<String> {
        Self.get(name).or_else(|| Self.get("AWS_ENDPOINT_URL"))
    }
}

impl Source for Environment {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one reader of the environment"
    )]
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn built_at(&self) -> Option<Timestamp> {
        let modified_at = std::env::current_exe()
            .ok()?
            .metadata()
            .ok()?
            .modified()
            .ok()?;
        let age = modified_at.duration_since(std::time::UNIX_EPOCH).ok()?;
        // A zip archive without file times unpacks to 1980.
        let at = Timestamp::default().plus(age);
        Some(at).filter(|at| *at > OLDEST_BUILD)
    }
}

/// A variable that the skills of an agent need, for the factory of a
/// [`State`](a2a_lambda_skill::State). A key is a [secret](crate::secrets::SkillSecrets).
#[derive(Debug, Clone, Copy)]
pub struct Setting;

impl Setting {
    /// The value of the variable `name`.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] names the variable that is not set, or empty.
    pub fn read(name: &'static str) -> Result<String, SettingsError> {
        let value = Environment.get(name).filter(|value| !value.is_empty());
        let rule = "set the variable; tests and `eval` need none if the agent has a double of the \
                    state: `Agent::builder(…).double(…)`";
        value.ok_or(SettingsError::Missing { name, rule })
    }
}

/// The text of a file of at most `max` bytes; `None` if there is no such file.
///
/// # Errors
/// When the file cannot be read, is larger, or is not UTF-8.
pub(super) fn read_file(path: &Path, max: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        return Err(io::Error::other(format!("larger than {max} bytes")));
    }
    Ok(Some(text))
}
