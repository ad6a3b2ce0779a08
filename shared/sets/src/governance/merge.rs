//! The policies of all layers from the company to a target, as one list of rules.
//!
//! The broadest policy of an id comes first, and each narrower one changes the result by its
//! [`MergeMode`]. A policy that is mandatory can only become stricter: a rule that a narrower
//! policy drops, replaces or weakens stays as it is.

use super::compile::{CompiledPolicy, CompiledRule};
use super::policy::{MergeMode, Severity};
use crate::layer::KnowledgeLayer;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The rules that are in force in a layer.
#[derive(Debug)]
pub(crate) struct MergedPolicies<'a> {
    /// The ids of the policies, sorted.
    pub(super) ids: Vec<&'a str>,
    /// By layer, policy id and rule id.
    pub(crate) rules: Vec<EffectiveRule<'a>>,
}

/// A rule that is in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EffectiveRule<'a> {
    /// The policy of the rule.
    pub(crate) policy_id: &'a str,
    /// The layer that wrote the rule. One that only made it stricter does not count.
    pub(crate) layer: KnowledgeLayer,
    /// Whether narrower layers can only make it stricter.
    pub(crate) mandatory: bool,
    /// What it demands, and its message.
    pub(super) demand: &'a CompiledRule,
    /// How bad a violation is.
    pub(crate) severity: Severity,
    /// The rule whose globs are in force.
    pub(super) globs_of: &'a CompiledRule,
}

/// The rules of one policy, by their ids.
type Rules<'a> = BTreeMap<&'a str, EffectiveRule<'a>>;

/// Merges the policies of `target` and all broader layers. Narrower policies are left out.
///
/// The order of the policies does not matter, except among those of one id and one layer:
/// they are taken in the given order.
pub(crate) fn merge(policies: &[CompiledPolicy], target: KnowledgeLayer) -> MergedPolicies<'_> {
    let in_force = policies.iter().filter(|policy| policy.layer >= target);
    let mut chain: Vec<&CompiledPolicy> = in_force.collect();
    chain.sort_by_key(|policy| Reverse(policy.layer));
    let mut by_id: BTreeMap<&str, Rules<'_>> = BTreeMap::new();
    for policy in chain {
        let rules = match by_id.remove(policy.id.as_str()) {
            Some(broader) => narrow(broader, policy),
            None => rules(policy),
        };
        by_id.insert(&policy.id, rules);
    }
    let ids = by_id.keys().copied().collect();
    let mut rules: Vec<_> = by_id.into_values().flat_map(Rules::into_values).collect();
    rules.sort_by_key(|rule| (rule.layer, rule.policy_id, rule.id()));
    MergedPolicies { ids, rules }
}

/// The rules as a policy writes them.
fn rules(policy: &CompiledPolicy) -> Rules<'_> {
    let rules = policy.rules.iter().map(|rule| {
        let rule = EffectiveRule {
            policy_id: &policy.id,
            layer: policy.layer,
            mandatory: policy.mandatory,
            demand: rule,
            severity: rule.rule.severity,
            globs_of: rule,
        };
        (rule.id(), rule)
    });
    rules.collect()
}

/// Changes the rules of the broader policies as the next narrower one says, as far as it may.
fn narrow<'a>(broader: Rules<'a>, policy: &'a CompiledPolicy) -> Rules<'a> {
    let mut narrower = rules(policy);
    let mut result = Rules::new();
    for (id, broader) in broader {
        let rule = match narrower.remove(id) {
            Some(rule) if broader.mandatory => broader.tighten(rule.demand),
            Some(rule) => rule,
            None if broader.mandatory || policy.merge == MergeMode::Merge => broader,
            None => continue,
        };
        result.insert(id, rule);
    }
    if policy.merge != MergeMode::Intersect {
        result.extend(narrower);
    }
    for rule in result.values_mut() {
        rule.mandatory |= policy.mandatory;
    }
    result
}

impl<'a> EffectiveRule<'a> {
    /// The id of the rule.
    pub(crate) fn id(&self) -> &'a str {
        &self.demand.rule.id
    }

    /// What a violation says.
    pub(crate) fn message(&self) -> &'a str {
        &self.demand.rule.message
    }

    /// This rule with severity and globs of the narrower one, if that one is nowhere weaker.
    /// The message stays: it is that of the layer that demands.
    fn tighten(self, narrower: &'a CompiledRule) -> Self {
        let (rule, other) = (&self.demand.rule, &narrower.rule);
        let is_same =
            (rule.kind, rule.target, &rule.pattern) == (other.kind, other.target, &other.pattern);
        let globs = &self.globs_of.rule.applies_to;
        // Compares texts: whether one glob includes another is not decided.
        let covers = other.applies_to.is_empty()
            || (!globs.is_empty() && globs.iter().all(|glob| other.applies_to.contains(glob)));
        if !is_same || !covers || other.severity < self.severity {
            return self;
        }
        Self {
            severity: other.severity,
            globs_of: narrower,
            ..self
        }
    }
}
