//! Says where settings come from: the process environment, or a test.

use crate::task::Timestamp;

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
        let made = std::env::current_exe()
            .ok()?
            .metadata()
            .ok()?
            .modified()
            .ok()?;
        let age = made.duration_since(std::time::UNIX_EPOCH).ok()?;
        // A zip archive without file times unpacks to 1980.
        let at = Timestamp::default().plus(age);
        Some(at).filter(|at| *at > OLDEST_BUILD)
    }
}
