//! The table of metrics: the name, kind, labels and help text of each, and what it adds up of
//! which events.

use crate::telemetry::events::{CALL, SCARCE, START, SWEEP, TURN};
use a2a_lambda_skill::MODEL;

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

/// The name of a metric, its help text, and the source of its amounts.
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
    /// The target of an event, and the field with the amount.
    pub(super) sources: &'static [(&'static str, &'static str)],
}

/// The upper bounds of the buckets of every histogram, in milliseconds.
pub(super) const BOUNDS: [u64; 15] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000,
];

/// The amount of every event: 1.
pub(super) const EACH: &str = "each";
/// The amount of a refusal by a rate limit: 1.
pub(super) const RATE_LIMITED: &str = "rate_limited";
/// The tokens of a call of a model, read and written together.
pub(super) const TOKENS: &str = "tokens";

macro_rules! families {
    ($($family:ident $name:literal $kind:ident [$($label:literal)*]
        [$($target:ident $amount:expr),+] $help:literal;)+
    ) => {
        /// A metric.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Family {
            $($family),+
        }

        impl Family {
            /// All of them, in the order of the text.
            pub(super) const ALL: &[Self] = &[$(Self::$family),+];

            /// Its description.
            pub(super) const fn describe(self) -> Description {
                match self {
                    $(Self::$family => Description {
                        name: $name,
                        help: $help,
                        kind: MetricKind::$kind,
                        labels: &[$($label),*],
                        sources: &[$(($target, $amount)),+],
                    }),+
                }
            }
        }
    };
}

families! {
    Requests "a2a_requests_total" Counter ["method" "skill_name" "status"] [CALL EACH]
        "Calls that were answered or refused.";
    RequestDuration "a2a_request_duration_seconds" Histogram ["method" "skill_name"] [CALL "ms"]
        "Time from a call to the end of its response.";
    Errors "a2a_errors_total" Counter ["skill_name" "reason" "class"] [CALL EACH, TURN EACH]
        "Calls that were refused, and tasks that failed, by reason or error code.";
    Turns "a2a_turns_total" Counter ["skill_name" "state"] [TURN EACH]
        "Turns of skills that ended, by the state of the task.";
    TurnDuration "a2a_turn_duration_seconds" Histogram ["skill_name"] [TURN "ms"]
        "Time that a turn ran in one process.";
    RateLimited "a2a_rate_limited_total" Counter ["tenant_id" "skill_name"] [CALL RATE_LIMITED]
        "Calls that a rate limit refused. At the edge the skill is unrouted.";
    StatesCleaned "a2a_states_cleaned_total" Counter [] [SWEEP "a2a_states_cleaned_total"]
        "Expired states of contexts that a sweep removed.";
    TasksCleaned "a2a_tasks_cleaned_total" Counter [] [SWEEP "sweep.tasks_removed"]
        "Tasks that a sweep removed.";
    TurnsResent "a2a_turns_resent_total" Counter [] [SWEEP "sweep.resent"]
        "Turns that waited, and that a sweep sent to the work queue.";
    ColdStarts "a2a_cold_starts_total" Counter ["function"] [START EACH]
        "Starts of a process of a function.";
    ColdStart "a2a_cold_start_seconds" Histogram ["function"] [START "ms"]
        "Time that a function needed to start.";
    UnknownSettings "a2a_unknown_settings_total" Counter ["function"] [START "settings.unknown"]
        "Settings that a starting function did not know.";
    ModelTokens "a2a_model_tokens_total" Counter ["model" "skill_name"] [MODEL TOKENS]
        "Tokens that language models read and wrote. Those of the router are unrouted.";
    Routes "a2a_routes_total" Counter ["how" "skill_name"] [CALL EACH]
        "Messages that got a skill, or the question which one, by what decided.";
    Units "a2a_dynamodb_units_total" Thousandths ["kind"]
        [CALL "units.read", CALL "units.write", TURN "units.read", TURN "units.write"]
        "Read and write units of DynamoDB that calls and turns consumed.";
    ScarceDays "a2a_scarce_days_total" Counter ["tenant_id"] [SCARCE EACH]
        "Days on which a tenant used four fifths of its tokens.";
}

impl Family {
    /// The metric with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let mut families = Self::ALL.iter().copied();
        families.find(|family| family.describe().name == name)
    }
}
