//! The violations of a content.

use super::facts::{CheckFacts, Hit};
use super::merge::EffectiveRule;
use super::policy::Severity;
use crate::layer::KnowledgeLayer;
use schemars::JsonSchema;
use serde::Serialize;

/// A rule that the content breaks.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Violation {
    /// The policy.
    pub(crate) policy_id: String,
    /// The rule.
    pub(crate) rule_id: String,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The message of the rule.
    pub(crate) message: String,
    /// The layer of the rule.
    pub(crate) layer: KnowledgeLayer,
    /// The first line of the content, from 1, where something forbidden is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
}

/// Whether a content with these violations is acceptable: none of them blocks.
pub(crate) fn is_valid(violations: &[Violation]) -> bool {
    let mut severities = violations.iter().map(|violation| violation.severity);
    severities.all(|severity| severity < Severity::Block)
}

/// The violation of one rule that is for the path, if the content breaks it.
///
/// A positive rule is broken if nothing matches, also if the context lacks its target. A
/// negative rule is broken if something matches. The severity never changes this.
pub(super) fn violation(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> Option<Violation> {
    let forbids = rule.demand.rule.kind.is_negative();
    let at = match facts.search(rule.demand) {
        Some(Hit(line)) if forbids => line,
        None if !forbids => None,
        Some(_) | None => return None,
    };
    Some(Violation {
        policy_id: rule.policy_id.to_owned(),
        rule_id: rule.id().to_owned(),
        severity: rule.severity,
        message: rule.message().to_owned(),
        layer: rule.layer,
        at,
    })
}
