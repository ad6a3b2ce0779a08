//! The table of outcomes: who has to act when a call, a task, a caller or a webhook fails, and what
//! an operator does.
//!
//! The class of a row is in the log line, where alarms count it, and in the metric. The runbook in
//! `docs/operations.md` has the rows; a test compares them.

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultClass {
    /// Nobody here: what the caller sent, or a limit or an end that was meant.
    Caller,
    /// The agent, its settings or this library.
    Ours,
    /// The table, the bucket, a queue or a secret.
    Store,
    /// The service of the language model.
    Model,
    /// Another service that a skill uses.
    Tool,
}

impl FaultClass {
    /// The word in lines, filters and metrics.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Ours => "ours",
            Self::Store => "store",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

/// The word of what has not failed, where alarms count it too.
pub(crate) const OK: &str = "ok";

/// Outcomes with one class and one remedy. A word with `*` at its end is the beginning of words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomeRow {
    words: &'static [&'static str],
    class: FaultClass,
    #[cfg_attr(not(test), expect(dead_code, reason = "the runbook has it"))]
    does: &'static str,
}

macro_rules! outcomes {
    ($($name:ident { $($($word:literal)+ => $class:ident $does:literal;)+ })+) => {$(
        pub(crate) const $name: &[OutcomeRow] = &[$(
            OutcomeRow { words: &[$($word),+], class: FaultClass::$class, does: $does }
        ),+];
    )+};
}

outcomes! {
    CALLS {
        "TASK_NOT_FOUND" => Caller "nothing; the task is unknown, expired, or another caller's. Many from one caller may be probing";
        "TASK_NOT_CANCELABLE" "UNSUPPORTED_OPERATION" "PARSE_ERROR" "INVALID_REQUEST" => Caller "nothing";
        "PUSH_NOTIFICATION_NOT_SUPPORTED" => Caller "nothing; the card says so";
        "TASK_BUSY" => Caller "nothing. A worker takes over a killed turn within `A2A_LEASE` and one sweep";
        "CONTENT_TYPE_NOT_SUPPORTED" => Caller "nothing; the skill's media types are on the card";
        "INVALID_AGENT_RESPONSE" => Ours "a defect: report it";
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED" => Ours "an author's own server announces an extended card that it does not have; the functions announce what they have";
        "EXTENSION_SUPPORT_REQUIRED" => Caller "nothing; no extension is required so far";
        "VERSION_NOT_SUPPORTED" => Caller "nothing; a client that names a newer version than 1.0 is logged as a warning";
        "METHOD_NOT_FOUND" => Caller "nothing; if a known path returns it, the route leads to the wrong function";
        "INVALID_PARAMS" => Caller "nothing; the error names the field";
        "INTERNAL_ERROR" => Ours "look for `a call failed` at that time; the cause is in `error.cause`. Class `store` if a store refused the call: a lost right, a disabled key";
        "PAYLOAD_TOO_LARGE" => Caller "a body has at most 5 MiB, since an event of Lambda ends at 6 MB; upload larger files";
        "RATE_LIMITED" => Caller "nothing, or raise the limit of the tenant (*Limits of a tenant*). API Gateway sends it too, beyond `ApiRatePerSecond`";
        "UNAUTHENTICATED" => Caller "if all callers are refused: check that the authorizer's context has `tenant` and `subject`";
        "PERMISSION_DENIED" => Caller "an operator has braked the tenant; or the caller of a path for operators has no scope `ops`, or another tenant than `A2A_FIRST_KEY_TENANT`";
        "CONTEXT_EXPIRED" => Caller "nothing; the client begins a new context";
        "STATE_TOO_LARGE" => Caller "nothing; a message makes its task larger than 8 MiB less 16 KiB";
        "IDEMPOTENCY_KEY_REUSED" => Caller "nothing; the client used one key for two different requests";
        "UNKNOWN_STORED_FORM" => Ours "the task or the context was stored by another release, whose form this one does not read ([0004](decisions/0004-how-stored-forms-change.md)): deploy a release that reads it. `a call failed` names the form. Nothing is lost before `A2A_TASK_TTL` ends";
        "UNAVAILABLE" => Store "DynamoDB or S3 did not answer or throttled in three attempts, which the SDK makes within 5 s ([0008](decisions/0008-a-turn-that-runs-again-is-the-same-turn.md)): look for `a call failed`, the table's throttling and its cap. Class `caller`, and nothing to do: a large context whose client deletes the rest with its next call, or a brake (`Retry-After: 60`)";
    }
    TASKS {
        "MODEL_PROVIDER" "MODEL_OUTPUT" => Model "the model service failed or answered nonsense: read its status page and `error.cause` of `a turn of task … failed`. Meanwhile `brake set --skill` refuses what would fail";
        "MODEL_RATE_LIMITED" => Model "ask the model service for a higher quota, or lower `WorkerConcurrency`";
        "MODEL_AUTH" "MODEL_UNAVAILABLE" => Model "set the model, its key or the right to it: `A2A_MODEL_ID`, `A2A_MODEL_KEY`, `SkillPolicyArn`";
        "CONTEXT_LENGTH_EXCEEDED" "CONTENT_FILTERED" "MODEL_INPUT" => Caller "nothing; what the caller sent is too long for the model, has a file that it does not read, or its filter withheld the answer";
        "BUDGET_EXCEEDED" => Caller "nothing, or raise the budget: `A2A_TASK_TOKENS`, `A2A_TOKENS_PER_DAY`, the skill's own ([What it may cost](guide/cost.md))";
        "NETWORK" "TOOL_*" => Tool "look at the service that the skill uses; `error.cause` names it";
        "DEADLINE" => Ours "a slow skill: declare it `background`, or give it more time";
        "STATE_INCOMPATIBLE" "STEP_CHANGED" "SKILL_NOT_FOUND" => Ours "this build cannot go on with what an earlier one has stored: see *Upgrading and rolling back*";
        "STATE_TOO_LARGE" "ARTIFACT_TOO_LARGE" => Ours "the skill keeps too much, or delivers a file above `A2A_UPLOAD_MAX`";
        "RUN_LIMIT_EXCEEDED" => Ours "no progress for `A2A_TASK_RUN_MAX`: look for what its lines waited for";
        "INTERNAL_ERROR" "SERIALIZATION" "CONTEXT_ERROR" "INVALID_TASK_STATE_TRANSITION" => Ours "a defect of the skill: read `error.cause` of `a turn of task … failed`";
        "INVALID_INPUT" "MISSING_INPUT" "CONTENT_TYPE_NOT_SUPPORTED" "TASK_NOT_FOUND" "SESSION_NOT_FOUND" "CONTEXT_EXPIRED" "RATE_LIMITED" "CANCELED" "*" => Caller "nothing; the input, a limit, or a code of the agent's own domain";
    }
    CALLERS {
        "MALFORMED" "UNKNOWN_KEY" "EXPIRED_KEY" => Caller "one `a2a.key`: its owner needs another key (`keys create`). Many: somebody tries keys; the access log has the addresses, and `WebAcl=rate` slows them";
        "NO_ISSUER" "TOKEN_HEADER" "TOKEN_CLAIMS" "TOKEN_SIGNATURE" => Caller "compare the tokens with the settings `A2A_JWT_…` and with the keys that the issuer publishes. Forged tokens have these reasons too";
        "TOKEN_TIME" => Caller "one caller: its token is old. All of an issuer: its clock is off by more than 60 s; no setting of the agent mends that";
    }
    EVENTS {
        "gave up a push config" => Caller "tell the client that its webhook failed 24 times. It reads the task, and makes the push config again";
        "sweep.resent" => Store "the relay is off, or workers are behind: see RelaySilentAlarm";
        "relay.pushes_left" => Store "mend the push queue: its policy, its key or its name. The next event of the task, or the sweep, delivers the rest";
        "turn.changed" => Ours "the deployment has changed a step that is stored: deploy the step again, or cancel the task (`end-task`). Until then the turn waits";
        "tokens of the day" => Caller "a tenant has used four fifths of `A2A_TOKENS_PER_DAY`: raise it, or let its tasks fail with `BUDGET_EXCEEDED`";
        "failed to check credentials" => Store "the table, the first key or the issuer does not answer: callers get 503. `error.cause` says which";
    }
}

/// The class of `word`. What is in no row is ours, so that somebody looks at it.
pub(crate) fn class_of(outcomes: &[OutcomeRow], word: &str) -> FaultClass {
    let is_its = |row: &&str| match row.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => *row == word,
    };
    let mut outcomes = outcomes.iter();
    let outcome = outcomes.find(|outcome| outcome.words.iter().any(&is_its));
    outcome.map_or(FaultClass::Ours, |outcome| outcome.class)
}

#[cfg(test)]
mod tests;
