//! How far a project is from its policies.

use super::evaluate::{CheckContext, Violation, evaluate, known_share, sort};
use super::merge::{LayeredPolicy, Merged};
use super::policy::Severity;
use crate::layer::Layer;
use schemars::JsonSchema;
use serde::Serialize;

/// The least confidence that needs no person.
const SURE: f64 = 0.5;

/// The result of a drift check.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Drift {
    /// From 0 to 1: 1 for each `block`, 0.5 for each `warn`, 0.1 for each `info`.
    pub(crate) drift_score: f64,
    /// The share of the rules whose target is known.
    pub(crate) confidence: f64,
    pub(crate) has_drift: bool,
    pub(crate) violations: Vec<Violation>,
    /// The findings that a policy overlooks for a while.
    pub(crate) suppressed: Vec<Violation>,
    /// Whether something is not acceptable, or little is known.
    pub(crate) requires_manual_review: bool,
}

/// Checks a context. `head` is the commit of the policies, and `now_ms` the time.
pub(crate) fn drift(
    merged: &Merged,
    context: &CheckContext,
    head: Option<&str>,
    now_ms: i64,
) -> Drift {
    let found = evaluate(&merged.policies, context);
    let (suppressed, mut violations): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|violation| is_suppressed(&merged.policies, violation, now_ms));
    violations.extend(merged.weakened.iter().cloned());
    violations.extend(extra(&merged.policies, context, head));
    sort(&mut violations);
    let sum: f64 = violations.iter().map(|it| weight(it.severity)).sum();
    let confidence = known_share(&merged.policies, context);
    let blocks = violations.iter().any(|it| it.severity == Severity::Block);
    Drift {
        drift_score: sum.min(1.0),
        confidence,
        has_drift: !violations.is_empty(),
        requires_manual_review: blocks || confidence < SURE,
        violations,
        suppressed,
    }
}

const fn weight(severity: Severity) -> f64 {
    match severity {
        Severity::Block => 1.0,
        Severity::Warn => 0.5,
        Severity::Info => 0.1,
    }
}

fn is_suppressed(policies: &[LayeredPolicy], violation: &Violation, now_ms: i64) -> bool {
    let mut own = policies
        .iter()
        .filter(|it| it.policy.document.id == violation.policy_id)
        .flat_map(|it| &it.policy.suppressions);
    own.any(|(pattern, end)| now_ms < *end && pattern.is_match(&violation.message))
}

/// What no rule says.
fn extra(policies: &[LayeredPolicy], context: &CheckContext, head: Option<&str>) -> Vec<Violation> {
    let finding = |rule: &str, severity, message: &str| Violation {
        policy_id: "governance".to_owned(),
        rule_id: rule.to_owned(),
        severity,
        message: message.to_owned(),
        layer: Layer::Company,
        at: None,
    };
    let mut found = Vec::new();
    if !policies.iter().any(|it| it.policy.document.mandatory) {
        let text = "no policy is mandatory";
        found.push(finding("no-mandatory-policy", Severity::Info, text));
    }
    if let (Some(seen), Some(head)) = (context.version_hash.as_deref(), head)
        && seen != head
    {
        let text = "the policies have changed since the project was checked";
        found.push(finding("stale-version", Severity::Warn, text));
    }
    found
}
