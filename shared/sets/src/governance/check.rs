//! Runs the searches of a check inside the turn, so that no work outlives it.
//!
//! A search cannot be stopped. So its cost has a limit, and the turn can end between two of
//! them. The whole check has a limit too, and is refused before the first search.

use super::facts::{CheckFacts, Hit};
use super::merge::{EffectiveRule, MergedPolicies};
use super::policy::{RuleTarget, Severity};
use crate::layer::KnowledgeLayer;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most that one search costs: the size of its expression, times the bytes that it reads.
/// A core needs about half a second for it with the slowest expressions.
const SEARCH_MAX: u64 = 1 << 30;
/// The most that a check costs: about two seconds of a core with the slowest expressions.
const CHECK_MAX: u64 = 4 * SEARCH_MAX;
/// How long a cost of 1 takes with the seventh of a core that a function of 256 MB has.
const NANOS: u64 = 5;

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

/// A check of a context.
pub(super) struct Check<'a> {
    facts: &'a CheckFacts,
    /// The rules that are for the path, each with the cost of its search.
    searches: Vec<(&'a EffectiveRule<'a>, u64)>,
}

impl<'a> Check<'a> {
    /// Prepares a check.
    ///
    /// # Errors
    /// `CHECK_TOO_LARGE` when the context is too large for a rule, or for all of them.
    pub(super) async fn new(
        policies: &'a MergedPolicies<'a>,
        facts: &'a CheckFacts,
    ) -> AgentResult<Self> {
        let (mut total, mut searches) = (0, Vec::new());
        let bytes = facts.size(RuleTarget::File);
        for rule in &policies.rules {
            let globs = rule.globs_of.applies.as_ref();
            total += globs.map_or(0, |globs| cost(globs.size, bytes));
            if total > SEARCH_MAX {
                return Err(too_large(format!(
                    "`path` has {bytes} bytes, which is too much for the globs of the policies in force"
                )));
            }
            if facts.is_for(globs) {
                searches.push((rule, search_cost(rule, facts)?));
            }
            tokio::task::yield_now().await;
        }
        let check = Self { facts, searches };
        check.check_total(total)?;
        Ok(check)
    }

    /// Refuses a check that costs too much, with the member of the context that costs most.
    fn check_total(&self, globs: u64) -> AgentResult<()> {
        let costs = self.searches.iter();
        let total = costs.fold(globs, |sum, (_, cost)| sum.saturating_add(*cost));
        if total <= CHECK_MAX {
            return Ok(());
        }
        let mut members: BTreeMap<(&str, usize), u64> = BTreeMap::new();
        for (rule, cost) in &self.searches {
            let sum = members
                .entry(self.facts.search_size(rule.demand))
                .or_default();
            *sum = sum.saturating_add(*cost);
        }
        let most = members.into_iter().max_by_key(|(_, cost)| *cost);
        let ((member, bytes), _) = most.unwrap_or((("context", 0), 0));
        // The cost grows with the bytes.
        let bytes_max = cost(bytes, 1).saturating_mul(CHECK_MAX) / total;
        Err(too_large(format!(
            "`{member}` has {bytes} bytes, expected at most {bytes_max} for all rules in force together"
        )))
    }

    /// Runs the check: the violations, by layer, policy id and rule id.
    pub(super) async fn run(&self, cx: &TaskContext<'_>) -> Vec<Violation> {
        let may_start =
            |cost: u64| cx.time_left() >= Duration::from_nanos(cost.saturating_mul(NANOS));
        self.violations(may_start).await
    }

    /// What all searches find. `may_start` says whether the time left suffices for a cost.
    pub(super) async fn violations(&self, may_start: impl Fn(u64) -> bool) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (rule, cost) in &self.searches {
            if !may_start(*cost) {
                // The engine drops the turn here and hands it over.
                std::future::pending::<()>().await;
            }
            #[cfg(test)]
            super::tests::SEARCHES
                .with(|searches| searches.borrow_mut().push(rule.id().to_owned()));
            violations.extend(violation(rule, self.facts));
            tokio::task::yield_now().await;
        }
        violations
    }
}

/// The violation of one rule that is for the path, if the content breaks it.
///
/// A positive rule is broken if nothing matches, even if the context lacks its target. A
/// negative rule is broken if something matches. The severity never changes this.
fn violation(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> Option<Violation> {
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

/// The cost of a search for a rule.
fn search_cost(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> AgentResult<u64> {
    let (member, bytes) = facts.search_size(rule.demand);
    let size = rule.demand.matcher.size();
    let search = cost(size, bytes);
    if search > SEARCH_MAX {
        let most = SEARCH_MAX / cost(size, 1);
        return Err(too_large(format!(
            "`{member}` has {bytes} bytes, expected at most {most} for the rule `{}` of the policy `{}`",
            rule.id(),
            rule.policy_id
        )));
    }
    Ok(search)
}

fn cost(size: usize, bytes: usize) -> u64 {
    u64::try_from(size.saturating_mul(bytes)).unwrap_or(u64::MAX)
}

fn too_large(text: String) -> AgentError {
    AgentError::domain("CHECK_TOO_LARGE", text)
}
