//! Says why the settings cannot be used.

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting has a value that is not allowed. The text does not contain the value: it may be a
    /// secret in the wrong setting, and the text ends in logs.
    #[error("setting `{name}` has a value that is not allowed; expected: {rule}")]
    Bad {
        /// The name of the setting.
        name: &'static str,
        /// The allowed values.
        rule: String,
    },
    /// A required setting is not set.
    #[error("setting `{name}` is missing: {rule}")]
    Missing {
        /// The name of the setting.
        name: &'static str,
        /// The allowed values.
        rule: &'static str,
    },
    /// A deployed function leaves the decision about callers to the authorizer.
    #[error("setting `A2A_AUTH` is `{0}`: a deployed function accepts `gateway` only")]
    AuthDeployed(&'static str),
    /// A deployed function connects to public addresses only.
    #[error("setting `A2A_PUSH_ALLOW_PRIVATE` is `on`: a deployed function accepts `off` only")]
    PrivateDeployed,
    /// Development identities need no secret, so a web page could do what it likes.
    #[error("setting `A2A_CORS_ORIGIN` is `*`: with `A2A_AUTH` = `dev` only one origin is allowed")]
    EveryPageInDevelopment,
    /// It is not clear which keys count.
    #[error("settings `A2A_SECRET_KEY` and `A2A_SECRET_KEY_ID` are both set: only one is allowed")]
    TwoSecretKeys,
    /// The configuration file cannot be used.
    #[error("configuration file `{path}`: {why}")]
    File {
        /// The path of the file.
        path: String,
        /// Why it cannot be used.
        why: FileError,
    },
    /// `A2A_SETTINGS` cannot be used.
    #[error("setting `A2A_SETTINGS`: {0}")]
    Object(FileError),
    /// The thread's state would live longer than the thread.
    #[error("setting `A2A_STATE_TTL` is `{state}`: at most `A2A_THREAD_TTL`, which is `{thread}`")]
    StateOutlivesThread {
        /// The value of `A2A_STATE_TTL`.
        state: String,
        /// The value of `A2A_THREAD_TTL`.
        thread: String,
    },
}

/// Why a configuration file, or the object of `A2A_SETTINGS`, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is not an object of texts, whole numbers and switches.
    #[error("{0}")]
    Content(String),
    /// A member is not a setting.
    #[error("`{0}` is not a setting; `docs/operations.md` lists them")]
    Unknown(String),
    /// A member does not belong there.
    #[error("`{name}` does not belong there: it is {why}")]
    Misplaced {
        /// The member.
        name: &'static str,
        /// Why it does not belong there.
        why: &'static str,
    },
}
