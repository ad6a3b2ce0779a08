//! Runs the searches of a check inside the turn, so that no work outlives it.
//!
//! A search cannot be stopped. So its cost has a limit, and the turn can end between two of
//! them. A long check is made of steps: a turn that runs again continues behind the last one.

use super::compile::CompiledSuppression;
use super::facts::CheckFacts;
use super::merge::{EffectiveRule, MergedPolicies};
use super::policy::RuleTarget;
use super::validate::{Violation, sort, violation};
use a2a_lambda::prelude::*;
use a2a_lambda::task::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most that one search costs: the size of its expression, times the bytes that it reads.
/// A core needs about half a second for it with the slowest expressions.
const SEARCH_MAX: u64 = 1 << 30;
/// A check that costs more consists of steps, and a step ends behind this cost.
const STEP_MAX: u64 = 4 * SEARCH_MAX;
/// The most that a check costs.
const CHECK_MAX: u64 = 64 * SEARCH_MAX;
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
    total: u64,
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

/// What some searches of a check found, as a step stores it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Slice {
    /// The version of the policies. With other policies the check begins again.
    version: String,
    /// The first search, and the one behind the last.
    first: usize,
    next: usize,
    breaches: Vec<Breach>,
}

/// A search that found a violation.
#[derive(Debug, Serialize, Deserialize)]
struct Breach {
    place: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_suppressed: bool,
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
            total: 0,
            targets: BTreeSet::new(),
        };
        for rule in &policies.rules {
            let globs = rule.globs_of.applies.as_ref();
            let cost_of_globs =
                globs.map_or(0, |globs| cost(globs.size, facts.size(RuleTarget::File)));
            check.add(cost_of_globs)?;
            let search = if facts.is_for(globs) {
                check.targets.insert(rule.demand.rule.target);
                let suppressing = check.suppressing(rule.policy_id, rule.message());
                Some(search_cost(rule, facts)?.saturating_add(suppressing))
            } else {
                None
            };
            check.add(search.unwrap_or_default())?;
            check.costs.push(search);
            tokio::task::yield_now().await;
        }
        for finding in &policies.findings {
            let suppressing = check.suppressing(&finding.policy_id, &finding.to_string());
            check.add(suppressing)?;
            check.costs.push(Some(suppressing));
        }
        Ok(check)
    }

    fn add(&mut self, cost: u64) -> AgentResult<()> {
        self.total = self.total.saturating_add(cost);
        if self.total <= CHECK_MAX {
            return Ok(());
        }
        Err(too_large(format!(
            "`context` is too large for the policies in force: the check costs more than {CHECK_MAX}"
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

    /// Runs the check with these policies of the version `version`.
    ///
    /// # Errors
    /// When a step cannot be stored.
    pub(super) async fn run(
        &self,
        cx: &TaskContext<'_>,
        version: &str,
    ) -> AgentResult<CheckResult> {
        let is_long = self.total > STEP_MAX;
        let mut progress = Slice::default();
        loop {
            let is_present = progress.version == version;
            if is_present && progress.next == self.costs.len() {
                return Ok(self.result(progress));
            }
            let slice = self.slice(cx, version, if is_present { progress.next } else { 0 });
            let slice = if is_long {
                cx.step("check", slice).await?
            } else {
                slice.await?
            };
            progress.add(slice);
        }
    }

    /// Runs the searches from `first` on, for the time of a step.
    async fn slice(&self, cx: &TaskContext<'_>, version: &str, first: usize) -> AgentResult<Slice> {
        let mut slice = Slice {
            version: version.to_owned(),
            first,
            next: first,
            ..Slice::default()
        };
        let mut sum: u64 = 0;
        while let Some(cost) = self.costs.get(slice.next)
            && sum < STEP_MAX
        {
            let cost = cost.unwrap_or_default();
            if cx.time_left() < Duration::from_nanos(cost.saturating_mul(NANOS)) {
                if slice.next > first {
                    break;
                }
                // The engine drops the turn here and hands it over.
                std::future::pending::<()>().await;
            }
            self.search(&mut slice).await;
            slice.next += 1;
            sum = sum.saturating_add(cost);
            tokio::task::yield_now().await;
        }
        Ok(slice)
    }

    /// Runs the next search, if its rule is for the path.
    async fn search(&self, slice: &mut Slice) {
        if let Some(None) = self.costs.get(slice.next) {
            return;
        }
        #[cfg(test)]
        super::tests::SEARCHES.with(|searches| searches.borrow_mut().push(slice.next));
        let violation = match self.policies.rules.get(slice.next) {
            Some(rule) => violation(rule, self.facts),
            None => self.violation(slice.next),
        };
        if let Some(violation) = violation {
            slice.breaches.push(Breach {
                place: slice.next,
                at: violation.at,
                is_suppressed: self.is_suppressed(&violation).await,
            });
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

    /// The violation that a search can find, without its line.
    fn violation(&self, index: usize) -> Option<Violation> {
        let rules = &self.policies.rules;
        match rules.get(index) {
            Some(rule) => Some(Violation::from(rule)),
            None => self
                .policies
                .findings
                .get(index - rules.len())
                .map(Violation::from),
        }
    }

    /// The violations, by layer, policy id and rule id.
    fn result(&self, slice: Slice) -> CheckResult {
        let mut result = CheckResult {
            targets: self.targets.clone(),
            ..CheckResult::default()
        };
        for breach in slice.breaches {
            let list = if breach.is_suppressed {
                &mut result.suppressed
            } else {
                &mut result.violations
            };
            let violation = self.violation(breach.place);
            list.extend(violation.map(|violation| Violation {
                at: breach.at,
                ..violation
            }));
        }
        sort(&mut result.violations);
        sort(&mut result.suppressed);
        result
    }
}

#[cfg(test)]
impl Check<'_> {
    /// What the whole check finds, without a turn.
    pub(super) async fn whole(&self) -> CheckResult {
        let mut slice = Slice::default();
        while slice.next < self.costs.len() {
            self.search(&mut slice).await;
            slice.next += 1;
        }
        self.result(slice)
    }
}

impl Slice {
    /// Adds the next slice. One that begins the check again replaces those before it.
    fn add(&mut self, slice: Self) {
        if slice.first == 0 {
            *self = slice;
        } else {
            self.next = slice.next;
            self.breaches.extend(slice.breaches);
        }
    }
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
