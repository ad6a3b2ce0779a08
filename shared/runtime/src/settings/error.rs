//! Says why the settings cannot be used.

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting has a value that is not allowed.
    #[error("setting `{name}` is `{value}`: {allowed}")]
    Bad {
        /// The name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A required setting is not set.
    #[error("setting `{name}` is missing: {allowed}")]
    Missing {
        /// The name of the setting.
        name: &'static str,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A deployed function does not accept development identities.
    #[error("setting `A2A_AUTH` is `dev`: a deployed function accepts `gateway` only")]
    DevDeployed,
    /// A deployed function connects to public addresses only.
    #[error("setting `A2A_PUSH_ALLOW_PRIVATE` is `on`: a deployed function accepts `off` only")]
    PrivateDeployed,
    /// The thread's state would live longer than the thread.
    #[error("setting `A2A_STATE_TTL` is `{state}`: at most `A2A_THREAD_TTL`, which is `{thread}`")]
    StateOutlivesThread {
        /// The value of `A2A_STATE_TTL`.
        state: String,
        /// The value of `A2A_THREAD_TTL`.
        thread: String,
    },
}
