//! Runs the searches of a check inside the turn, so that no work outlives it.
//!
//! A search cannot be stopped. So its cost has a limit, and the turn can end between two of
//! them. The whole check has a limit too, and is refused before the first search.

use super::compile::CompiledSuppression;
use super::facts::CheckFacts;
use super::merge::{EffectiveRule, MergedPolicies};
use super::policy::RuleTarget;
use super::validate::{Violation, sort, violation};
use a2a_lambda::prelude::*;
use a2a_lambda::task::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most that one search costs: the size of its expression, times the bytes that it reads.
/// A core needs about half a second for it with the slowest expressions.
const SEARCH_MAX: u64 = 1 << 30;
/// The most that a check costs: about two seconds of a core with the slowest expressions.
const CHECK_MAX: u64 = 4 * SEARCH_MAX;
/// How long a cost of 1 takes with the seventh of a core that a function of 256 MB has.
const NANOS: u64 = 5;

/// A check of a context. It has a search for each rule and for each finding of the merge; the
/// one for a finding looks for suppressions only.
pub(super) struct Check<'a> {
    policies: &'a MergedPolicies<'a>,
    facts: &'a CheckFacts,
    /// Those that hold, by the policy that they suppress.
    suppressions: BTreeMap<&'a str, Vec<&'a CompiledSuppression>>,
    /// The cost of each search; `None` for a rule that is not for the path.
    costs: Vec<Option<u64>>,
    /// The cost of the globs that say for which paths rules are.
    globs: u64,
    /// The targets of the rules that are for the path.
    targets: BTreeSet<RuleTarget>,
}

/// What a check finds.
#[derive(Debug, Default)]
pub(super) struct CheckResult {
    pub(super) violations: Vec<Violation>,
    pub(super) suppressed: Vec<Violation>,
    /// The targets of the rules that are for the path.
    pub(super) targets: BTreeSet<RuleTarget>,
}

impl<'a> Check<'a> {
    /// Prepares a check. The suppressions that hold at the time `now` count; without a time
    /// none does.
    ///
    /// # Errors
    /// `CHECK_TOO_LARGE` when the context is too large for a rule, or for all of them.
    pub(super) async fn new(
        policies: &'a MergedPolicies<'a>,
        facts: &'a CheckFacts,
        now: Option<Timestamp>,
    ) -> AgentResult<Self> {
        let mut suppressions: BTreeMap<&str, Vec<&CompiledSuppression>> = BTreeMap::new();
        for suppression in &policies.suppressions {
            if now.is_some_and(|now| now < suppression.expires) {
                let policy = suppression.policy_id.as_str();
                suppressions.entry(policy).or_default().push(suppression);
            }
        }
        let mut check = Self {
            policies,
            facts,
            suppressions,
            costs: Vec::new(),
            globs: 0,
            targets: BTreeSet::new(),
        };
        for rule in &policies.rules {
            let globs = rule.globs_of.applies.as_ref();
            let bytes = facts.size(RuleTarget::File);
            check.globs += globs.map_or(0, |globs| cost(globs.size, bytes));
            if check.globs > SEARCH_MAX {
                return Err(too_large(format!(
                    "`path` has {bytes} bytes, which is too much for the globs of the policies in force"
                )));
            }
            let search = if facts.is_for(globs) {
                check.targets.insert(rule.demand.rule.target);
                let suppressing = check.suppressing(rule.policy_id, rule.message());
                Some(search_cost(rule, facts)?.saturating_add(suppressing))
            } else {
                None
            };
            check.costs.push(search);
            tokio::task::yield_now().await;
        }
        for finding in &policies.findings {
            let suppressing = check.suppressing(&finding.policy_id, &finding.to_string());
            check.costs.push(Some(suppressing));
        }
        check.check_total()?;
        Ok(check)
    }

    /// Refuses a check that costs too much, with the member of the context that costs most.
    fn check_total(&self) -> AgentResult<()> {
        let costs = self.costs.iter().flatten();
        let total = costs.fold(self.globs, |sum, cost| sum.saturating_add(*cost));
        if total <= CHECK_MAX {
            return Ok(());
        }
        let mut members: BTreeMap<(&str, usize), u64> = BTreeMap::new();
        for (rule, cost) in self.policies.rules.iter().zip(&self.costs) {
            let sum = members.entry(self.facts.searched(rule.demand)).or_default();
            *sum = sum.saturating_add(cost.unwrap_or_default());
        }
        let most = members.into_iter().max_by_key(|(_, cost)| *cost);
        let ((member, bytes), _) = most.unwrap_or((("context", 0), 0));
        // The cost grows with the bytes.
        let bytes_max = cost(bytes, 1).saturating_mul(CHECK_MAX) / total;
        Err(too_large(format!(
            "`{member}` has {bytes} bytes, expected at most {bytes_max} for all rules in force together"
        )))
    }

    /// The cost of a search for the suppressions of a message.
    fn suppressing(&self, policy_id: &str, message: &str) -> u64 {
        let suppressions = self.suppressions.get(policy_id).into_iter().flatten();
        cost(
            suppressions
                .map(|suppression| suppression.message.size)
                .sum(),
            message.len(),
        )
    }

    /// Runs the check.
    pub(super) async fn run(&self, cx: &TaskContext<'_>) -> CheckResult {
        let may_start =
            |cost: u64| cx.time_left() >= Duration::from_nanos(cost.saturating_mul(NANOS));
        self.searched(may_start).await
    }

    /// What all searches find. `may_start` says whether the time left suffices for a cost.
    pub(super) async fn searched(&self, may_start: impl Fn(u64) -> bool) -> CheckResult {
        let mut result = CheckResult {
            targets: self.targets.clone(),
            ..CheckResult::default()
        };
        for (index, cost) in self.costs.iter().enumerate() {
            let Some(cost) = cost else { continue };
            if !may_start(*cost) {
                // The engine drops the turn here and hands it over.
                std::future::pending::<()>().await;
            }
            #[cfg(test)]
            super::tests::SEARCHES.with(|searches| searches.borrow_mut().push(index));
            if let Some(violation) = self.search(index) {
                let list = if self.is_suppressed(&violation).await {
                    &mut result.suppressed
                } else {
                    &mut result.violations
                };
                list.push(violation);
            }
            tokio::task::yield_now().await;
        }
        sort(&mut result.violations);
        sort(&mut result.suppressed);
        result
    }

    /// Runs one search. That of a finding has found it already.
    fn search(&self, index: usize) -> Option<Violation> {
        let rules = &self.policies.rules;
        match rules.get(index) {
            Some(rule) => violation(rule, self.facts),
            None => {
                let finding = self.policies.findings.get(index - rules.len());
                finding.map(Violation::from)
            }
        }
    }

    async fn is_suppressed(&self, violation: &Violation) -> bool {
        let policy = self.suppressions.get(violation.policy_id.as_str());
        for suppression in policy.into_iter().flatten() {
            if suppression.message.is_match(&violation.message) {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    }
}

/// The cost of a search for a rule.
fn search_cost(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> AgentResult<u64> {
    let (member, bytes) = facts.searched(rule.demand);
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
