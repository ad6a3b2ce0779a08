//! Lists every metric: its name, help text, kind and labels.

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Requests,
    RequestDuration,
    Errors,
    Turns,
    TurnDuration,
    RateLimited,
    StatesCleaned,
    TasksCleaned,
    TurnsResent,
    ColdStarts,
    ColdStart,
    UnknownSettings,
    ModelTokens,
    Routes,
    Units,
    ScarceDays,
}

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A sum of whole numbers.
    Counter,
    /// A sum that is kept in thousandths.
    Thousandths,
    /// Durations: kept in milliseconds, shown in seconds.
    Histogram,
}

/// What a metric is called, and what its text says.
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
}

/// The upper bounds of the buckets of every histogram, in milliseconds.
pub(super) const BOUNDS: [u64; 15] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000,
];

impl Family {
    /// All of them, in the order of the text.
    pub(super) const ALL: [Self; 16] = [
        Self::Requests,
        Self::RequestDuration,
        Self::Errors,
        Self::Turns,
        Self::TurnDuration,
        Self::RateLimited,
        Self::StatesCleaned,
        Self::TasksCleaned,
        Self::TurnsResent,
        Self::ColdStarts,
        Self::ColdStart,
        Self::UnknownSettings,
        Self::ModelTokens,
        Self::Routes,
        Self::Units,
        Self::ScarceDays,
    ];

    /// Its description.
    pub(super) const fn describe(self) -> Description {
        let (name, kind, labels) = self.form();
        Description {
            name,
            help: self.help(),
            kind,
            labels,
        }
    }

    const fn form(self) -> (&'static str, MetricKind, &'static [&'static str]) {
        use MetricKind::{Counter, Histogram, Thousandths};
        match self {
            Self::Requests => (
                "a2a_requests_total",
                Counter,
                &["method", "skill_name", "status"],
            ),
            Self::RequestDuration => (
                "a2a_request_duration_seconds",
                Histogram,
                &["method", "skill_name"],
            ),
            Self::Errors => (
                "a2a_errors_total",
                Counter,
                &["skill_name", "reason", "class"],
            ),
            Self::Turns => ("a2a_turns_total", Counter, &["skill_name", "state"]),
            Self::TurnDuration => ("a2a_turn_duration_seconds", Histogram, &["skill_name"]),
            Self::RateLimited => (
                "a2a_rate_limited_total",
                Counter,
                &["tenant_id", "skill_name"],
            ),
            Self::StatesCleaned => ("a2a_states_cleaned_total", Counter, &[]),
            Self::TasksCleaned => ("a2a_tasks_cleaned_total", Counter, &[]),
            Self::TurnsResent => ("a2a_turns_resent_total", Counter, &[]),
            Self::ColdStarts => ("a2a_cold_starts_total", Counter, &["function"]),
            Self::ColdStart => ("a2a_cold_start_seconds", Histogram, &["function"]),
            Self::UnknownSettings => ("a2a_unknown_settings_total", Counter, &["function"]),
            Self::ModelTokens => ("a2a_model_tokens_total", Counter, &["model", "skill_name"]),
            Self::Routes => ("a2a_routes_total", Counter, &["how", "skill_name"]),
            Self::Units => ("a2a_dynamodb_units_total", Thousandths, &["kind"]),
            Self::ScarceDays => ("a2a_scarce_days_total", Counter, &["tenant_id"]),
        }
    }

    const fn help(self) -> &'static str {
        match self {
            Self::Requests => "Calls that were answered or refused.",
            Self::RequestDuration => "Time from a call to the end of its response.",
            Self::Errors => {
                "Calls that were refused, and tasks that failed, by reason or error code."
            }
            Self::Turns => "Turns of skills that ended, by the state of the task.",
            Self::TurnDuration => "Time that a turn ran in one process.",
            Self::RateLimited => {
                "Calls that a rate limit refused. At the edge the skill is unrouted."
            }
            Self::StatesCleaned => "Expired states of contexts that a sweep removed.",
            Self::TasksCleaned => "Tasks that a sweep removed.",
            Self::TurnsResent => "Turns that waited, and that a sweep sent to the work queue.",
            Self::ColdStarts => "Starts of a process of a function.",
            Self::ColdStart => "Time that a function needed to start.",
            Self::UnknownSettings => "Settings that a starting function did not know.",
            Self::ModelTokens => {
                "Tokens that language models read and wrote. Those of the router are unrouted."
            }
            Self::Routes => {
                "Messages that got a skill, or the question which one, by what decided."
            }
            Self::Units => "Read and write units of DynamoDB that calls and turns consumed.",
            Self::ScarceDays => "Days on which a tenant used four fifths of its tokens.",
        }
    }

    /// The metric with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|family| family.describe().name == name)
    }
}
