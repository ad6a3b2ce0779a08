//! Runs the searches of a check inside the turn, so that no work outlives it.
//!
//! A search cannot be stopped. So its cost has a limit, and the turn can end between two of
//! them.

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
/// The most that a check costs: less than the longest invocation of the worker. A turn that runs
/// again checks from the beginning.
const CHECK_MAX: u64 = 64 * SEARCH_MAX;
/// How long a cost of 1 takes with the seventh of a core that a function of 256 MB has.
const NANOS: u64 = 5;

/// What a check finds.
#[derive(Debug, Default)]
pub(super) struct CheckResult {
    pub(super) violations: Vec<Violation>,
    pub(super) suppressed: Vec<Violation>,
    /// The targets of the rules that are for the path.
    pub(super) targets: BTreeSet<RuleTarget>,
}

/// The suppressions that hold, by the policy that they suppress.
struct Suppressions<'a>(BTreeMap<&'a str, Vec<&'a CompiledSuppression>>);

/// Checks a context: searches for each rule that is for the path, and adds what the merge found.
/// The suppressions that hold at the time `now` count; without a time none does. `time_left`
/// is that of the turn.
///
/// # Errors
/// `CHECK_TOO_LARGE` when the context is too large for a rule, or for all of them.
pub(super) async fn check(
    policies: &MergedPolicies<'_>,
    facts: &CheckFacts,
    now: Option<Timestamp>,
    time_left: impl Fn() -> Duration,
) -> AgentResult<CheckResult> {
    let suppressions = Suppressions::at(policies, now);
    let mut result = CheckResult::default();
    let mut searches = Vec::new();
    let mut total: u64 = 0;
    for rule in &policies.rules {
        let globs = rule.globs_of.applies.as_ref();
        let path = facts.size(RuleTarget::File);
        add(&mut total, globs.map_or(0, |globs| cost(globs.size, path)))?;
        if facts.is_for(globs) {
            result.targets.insert(rule.demand.rule.target);
            let suppressing = suppressions.cost(rule.policy_id, rule.message());
            let cost = search_cost(rule, facts)?.saturating_add(suppressing);
            add(&mut total, cost)?;
            searches.push((rule, cost));
        }
        tokio::task::yield_now().await;
    }
    for finding in &policies.findings {
        let message = finding.to_string();
        add(&mut total, suppressions.cost(&finding.policy_id, &message))?;
    }
    for (rule, cost) in searches {
        if time_left() < Duration::from_nanos(cost.saturating_mul(NANOS)) {
            // The engine drops the turn here and hands it over.
            std::future::pending::<()>().await;
        }
        #[cfg(test)]
        super::tests::SEARCHES.with(|searches| searches.borrow_mut().push(rule.id().to_owned()));
        if let Some(violation) = violation(rule, facts) {
            suppressions.sort_in(&mut result, violation).await;
        }
        tokio::task::yield_now().await;
    }
    for finding in &policies.findings {
        suppressions.sort_in(&mut result, finding.into()).await;
    }
    sort(&mut result.violations);
    sort(&mut result.suppressed);
    Ok(result)
}

impl<'a> Suppressions<'a> {
    fn at(policies: &MergedPolicies<'a>, now: Option<Timestamp>) -> Self {
        let mut by_policy: BTreeMap<&str, Vec<&CompiledSuppression>> = BTreeMap::new();
        for suppression in &policies.suppressions {
            if now.is_some_and(|now| now < suppression.expires) {
                let policy = suppression.policy_id.as_str();
                by_policy.entry(policy).or_default().push(suppression);
            }
        }
        Self(by_policy)
    }

    fn of(&self, policy_id: &str) -> impl Iterator<Item = &&'a CompiledSuppression> {
        self.0.get(policy_id).into_iter().flatten()
    }

    /// The cost of a search for the suppressions of a message.
    fn cost(&self, policy_id: &str, message: &str) -> u64 {
        let sizes = self.of(policy_id).map(|it| it.message.size);
        cost(sizes.sum(), message.len())
    }

    /// Adds a violation to those that count, or to the suppressed ones.
    async fn sort_in(&self, result: &mut CheckResult, violation: Violation) {
        let mut list = &mut result.violations;
        for suppression in self.of(&violation.policy_id) {
            if suppression.message.is_match(&violation.message) {
                list = &mut result.suppressed;
                break;
            }
            tokio::task::yield_now().await;
        }
        list.push(violation);
    }
}

fn add(total: &mut u64, cost: u64) -> AgentResult<()> {
    *total = total.saturating_add(cost);
    if *total <= CHECK_MAX {
        return Ok(());
    }
    Err(too_large(format!(
        "`context` is too large for the policies in force: the check costs more than {CHECK_MAX}"
    )))
}

/// The cost of a search for a rule.
fn search_cost(rule: &EffectiveRule<'_>, facts: &CheckFacts) -> AgentResult<u64> {
    let target = rule.demand.rule.target;
    let (size, bytes) = (rule.demand.matcher.size(), facts.size(target));
    let search = cost(size, bytes);
    if search > SEARCH_MAX {
        let most = SEARCH_MAX / cost(size, 1);
        return Err(too_large(format!(
            "`{}` has {bytes} bytes, expected at most {most} for the rule `{}` of the policy `{}`",
            target.member(),
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
