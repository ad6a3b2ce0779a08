//! Lists the names of the settings, and warns of `A2A_…` variables that are not
//! among them: most are misspelt.

use super::Environment;

/// The beginning of every name, except those of other programs.
pub(super) const PREFIX: &str = "A2A_";

/// Every setting that begins with [`PREFIX`], also those of the local agent.
pub(super) const NAMES: &[&str] = &[
    "A2A_AUTH",
    "A2A_BLOCKING_BUDGET",
    "A2A_BUCKET",
    "A2A_CARD",
    "A2A_CARD_SIGNATURES",
    "A2A_CONCURRENCY",
    "A2A_CORS_ORIGIN",
    "A2A_DEAD_LETTERS_URL",
    "A2A_FIRST_KEY",
    "A2A_FIRST_KEY_TENANT",
    "A2A_FLUSH_INTERVAL",
    "A2A_FUNCTION",
    "A2A_IDEMPOTENT_MESSAGE_ID",
    "A2A_JWT_AUDIENCE",
    "A2A_JWT_ISSUER",
    "A2A_JWT_SCOPE_CLAIMS",
    "A2A_JWT_TENANT_CLAIM",
    "A2A_JWT_TIER_CLAIM",
    "A2A_JWT_TYPES",
    "A2A_LEASE",
    "A2A_LOG",
    "A2A_METRICS",
    "A2A_MODEL_ENDPOINT_URL",
    "A2A_MODEL_ID",
    "A2A_MODEL_KEY",
    "A2A_MODEL_OPTIONS",
    "A2A_MODEL_PROVIDER",
    "A2A_PUBLIC_URL",
    "A2A_PUSH",
    "A2A_PUSH_ALLOW_PRIVATE",
    "A2A_PUSH_QUEUE_URL",
    "A2A_RATE_LIMIT",
    "A2A_RATE_SKILLS",
    "A2A_RATE_TIERS",
    "A2A_ROUTER_MODEL_ID",
    "A2A_ROUTING",
    "A2A_SECRET_KEY",
    "A2A_SECRET_KEY_ID",
    "A2A_SETTINGS",
    "A2A_SKILL_SECRET",
    "A2A_STATE_TTL",
    "A2A_STORED_PER_DAY",
    "A2A_STREAMING",
    "A2A_STREAMS_PER_TENANT",
    "A2A_SWEEP_INTERVAL",
    "A2A_TABLE",
    "A2A_TASK_RUN_MAX",
    "A2A_TASK_TOKENS",
    "A2A_TASK_TTL",
    "A2A_THREAD_TTL",
    "A2A_TOKENS_PER_DAY",
    "A2A_UPLOAD_MAX",
    "A2A_WORKERS",
    "A2A_WORKER_SHARE",
    "A2A_WORK_QUEUE_URL",
];

/// Logs a warning with the `A2A_…` variables that are not settings. The start
/// continues, since they may belong to another program.
pub fn warn_of_unknown() {
    let names = unknown(Environment::names());
    if !names.is_empty() {
        tracing::warn!("ignored unknown settings: {}", names.join(", "));
    }
}

/// Those of `names` that begin with [`PREFIX`] and are not in [`NAMES`], sorted.
fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_unknown = |name: &String| name.starts_with(PREFIX) && !NAMES.contains(&name.as_str());
    let mut unknown: Vec<String> = names.filter(is_unknown).collect();
    unknown.sort();
    unknown
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Source};
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// A source with development identities alone, which records the names it is
    /// asked for.
    #[derive(Default)]
    struct Asked(RefCell<BTreeSet<String>>);

    impl Source for Asked {
        fn get(&self, name: &str) -> Option<String> {
            self.0.borrow_mut().insert(name.to_owned());
            (name == "A2A_AUTH").then(|| "dev".to_owned())
        }
    }

    #[test]
    fn only_misspelt_settings_are_reported() {
        let set = [
            "A2A_LEAES",
            "A2A_LEASE",
            "TCK_STREAMING_TIMEOUT",
            "PATH",
            "A2A_",
        ];
        let names = unknown(set.into_iter().map(str::to_owned));
        assert_eq!(names, ["A2A_", "A2A_LEAES"]);
    }

    #[test]
    fn the_list_of_names_is_exactly_what_the_code_reads() {
        let asked = Asked::default();
        Settings::read(&asked).unwrap();
        let mut read = asked.0.into_inner();
        read.retain(|name| name.starts_with(PREFIX));
        // The functions, the local agent and the providers of models read these.
        let elsewhere = [
            "A2A_FUNCTION",
            "A2A_LOG",
            "A2A_MODEL_KEY",
            "A2A_SETTINGS",
            "A2A_SKILL_SECRET",
        ];
        read.extend(elsewhere.map(str::to_owned));
        assert_eq!(
            read,
            NAMES
                .iter()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>()
        );
    }
}
