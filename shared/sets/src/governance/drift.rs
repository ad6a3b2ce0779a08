//! How far a project has moved away from its policies.

use super::check::CheckResult;
use super::facts::CheckFacts;
use super::merge::MergedPolicies;
use super::policy::{RuleTarget, Severity};
use super::validate::{ANY_ID, Violation, sort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Below this confidence a person should look at the result.
const CONFIDENT: f64 = 0.5;
/// The rule id of the finding that no policy is mandatory.
pub(crate) const NO_MANDATORY_POLICY: &str = "no-mandatory-policy";
/// The rule id of the finding that the caller knows other policies than the present ones.
pub(crate) const STALE_POLICY_VERSION: &str = "stale-policy-version";

/// The drift of a project. No number in it is ever NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftReport {
    /// 0 to 1: the sum over the violations that are not suppressed, 1.0 for each that
    /// blocks, 0.5 for each that warns, 0.1 for each other one.
    pub(crate) drift_score: f64,
    /// 0 to 1: for how many of the targets of the rules in force the context has values.
    /// With rules for code and dependencies and only the code known, it is 0.5. It is 1
    /// without rules.
    pub(crate) confidence: f64,
    /// Whether a violation is not suppressed.
    pub(crate) has_drift: bool,
    /// The violations that count, by layer, policy id and rule id.
    pub(crate) violations: Vec<Violation>,
    /// The violations that are known and accepted for now, in the same order.
    pub(crate) suppressed: Vec<Violation>,
    /// Whether a violation that counts blocks, or the confidence is below 0.5.
    pub(crate) requires_manual_review: bool,
    /// The version of the policies in force.
    pub(crate) policy_version: String,
}

/// Reports the drift that a check found. `version` is the present version of the policies, to
/// compare with that of the context.
pub(super) fn drift(
    policies: &MergedPolicies<'_>,
    facts: &CheckFacts,
    version: &str,
    result: CheckResult,
) -> DriftReport {
    let mut violations = result.violations;
    // These have no policy, so nothing can suppress them.
    violations.extend(extra(policies, facts, version));
    sort(&mut violations);
    let confidence = confidence(&result.targets, facts);
    let blocks = |violation: &Violation| violation.severity == Severity::Block;
    DriftReport {
        drift_score: score(&violations),
        confidence,
        has_drift: !violations.is_empty(),
        requires_manual_review: violations.iter().any(blocks) || confidence < CONFIDENT,
        violations,
        suppressed: result.suppressed,
        policy_version: version.to_owned(),
    }
}

fn extra(policies: &MergedPolicies<'_>, facts: &CheckFacts, version: &str) -> Vec<Violation> {
    let finding = |rule_id: &str, severity, message: &str| Violation {
        policy_id: ANY_ID.to_owned(),
        rule_id: rule_id.to_owned(),
        severity,
        message: message.to_owned(),
        layer: policies.target,
        at: None,
    };
    let mut findings = Vec::new();
    if !policies.has_mandatory() {
        let text = "no policy of this layer or a broader one is mandatory";
        findings.push(finding(NO_MANDATORY_POLICY, Severity::Info, text));
    }
    if facts
        .policy_version()
        .is_some_and(|client_version| client_version != version)
    {
        let text = "`policyVersion` is not the version of the policies in force";
        findings.push(finding(STALE_POLICY_VERSION, Severity::Warn, text));
    }
    findings
}

/// Sums tenths, so that the order of the violations does not change the sum.
fn score(violations: &[Violation]) -> f64 {
    let tenths = violations.iter().fold(0_u32, |sum, violation| {
        let more = match violation.severity {
            Severity::Block => 10,
            Severity::Warn => 5,
            Severity::Info => 1,
        };
        sum.saturating_add(more)
    });
    f64::from(tenths.min(10)) / 10.0
}

fn confidence(targets: &BTreeSet<RuleTarget>, facts: &CheckFacts) -> f64 {
    let (mut all, mut hits) = (0_u32, 0_u32);
    for target in targets {
        all += 1;
        hits += u32::from(facts.knows(*target));
    }
    if all == 0 {
        return 1.0;
    }
    f64::from(hits) / f64::from(all)
}
