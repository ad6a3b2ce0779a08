//! The violations of a content.

use super::facts::{CheckFacts, Search};
use super::merge::{EffectiveRule, MergeFinding};
use super::policy::Severity;
use crate::layer::KnowledgeLayer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Stands for all policies, or for all rules of a policy, where a violation has no single
/// one. No policy and no rule can have this id.
pub(crate) const ANY_ID: &str = "*";

/// A rule that the content breaks, or a finding about the policies themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Violation {
    /// The policy; `*` for a finding about all of them.
    pub(crate) policy_id: String,
    /// The rule; `*` for a finding about the whole policy.
    pub(crate) rule_id: String,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The message of the rule.
    pub(crate) message: String,
    /// The layer of the rule.
    pub(crate) layer: KnowledgeLayer,
    /// The first line of the content, from 1, where something forbidden is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
}

/// Whether a content with these violations is acceptable: none of them blocks.
pub(crate) fn is_valid(violations: &[Violation]) -> bool {
    let mut severities = violations.iter().map(|violation| violation.severity);
    severities.all(|severity| severity < Severity::Block)
}

/// Orders by layer, policy id and rule id. Violations that agree in these keep their order.
pub(super) fn sort(violations: &mut [Violation]) {
    violations.sort_by(|a, b| {
        (a.layer, &a.policy_id, &a.rule_id).cmp(&(b.layer, &b.policy_id, &b.rule_id))
    });
}

/// The violation of one rule that is for the path, if the content breaks it.
///
/// A positive rule is broken if nothing matches, also if the context lacks its target. A
/// negative rule is broken if something matches. The severity never changes this.
pub(super) fn violation(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> Option<Violation> {
    let forbids = rule.demand.rule.kind.is_negative();
    let at = match facts.search(rule.demand) {
        Search::Present(at) if forbids => at,
        Search::Absent | Search::Unknown if !forbids => None,
        Search::Present(_) | Search::Absent | Search::Unknown => return None,
    };
    Some(Violation {
        at,
        ..Violation::from(rule)
    })
}

impl From<&EffectiveRule<'_>> for Violation {
    fn from(rule: &EffectiveRule<'_>) -> Self {
        Self {
            policy_id: rule.policy_id.to_owned(),
            rule_id: rule.id().to_owned(),
            severity: rule.severity,
            message: rule.message().to_owned(),
            layer: rule.layer,
            at: None,
        }
    }
}

/// A finding of the merge warns.
impl From<&MergeFinding> for Violation {
    fn from(finding: &MergeFinding) -> Self {
        let rule_id = finding.rule_id.as_deref().unwrap_or(ANY_ID);
        Self {
            policy_id: finding.policy_id.clone(),
            rule_id: rule_id.to_owned(),
            severity: Severity::Warn,
            message: finding.to_string(),
            layer: finding.layer,
            at: None,
        }
    }
}
