//! The policies of all layers from the company to a target, as one list of rules.
//!
//! The broadest policy of an id comes first, and each narrower one changes the result by its
//! [`MergeMode`]. A policy that is mandatory can only become stricter: a rule that a narrower
//! policy drops, replaces or weakens stays as it is, and a [`MergeFinding`] says so.

use super::compile::{CompiledPolicy, CompiledRule, CompiledSuppression};
use super::policy::{MergeMode, Severity};
use crate::layer::KnowledgeLayer;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// The rules that are in force in a layer.
#[derive(Debug)]
pub(crate) struct MergedPolicies<'a> {
    pub(super) target: KnowledgeLayer,
    /// By layer, policy id and rule id.
    pub(super) rules: Vec<EffectiveRule<'a>>,
    pub(super) suppressions: Vec<&'a CompiledSuppression>,
    pub(super) findings: Vec<MergeFinding>,
    ids: Vec<&'a str>,
    has_mandatory: bool,
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

/// A narrower policy that weakens a mandatory one. The merge ignored that part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MergeFinding {
    /// The layer of the narrower policy.
    pub(crate) layer: KnowledgeLayer,
    /// The mandatory policy.
    pub(crate) policy_id: String,
    /// The rule; `None` if the finding is about the whole policy.
    pub(crate) rule_id: Option<String>,
    /// What it does: one of the texts below.
    pub(crate) weakening: &'static str,
}

/// It lacks the rule and says `override` or `intersect`.
pub(crate) const DROPS: &str = "drops a mandatory rule";
/// It has another kind, target or pattern for the rule.
pub(crate) const REPLACES: &str = "replaces what a mandatory rule demands";
/// It has a lower severity for the rule.
pub(crate) const WEAKENS_SEVERITY: &str = "lowers the severity of a mandatory rule";
/// Its globs for the rule lack one of the mandatory policy.
pub(crate) const NARROWS_APPLIES_TO: &str = "narrows `appliesTo` of a mandatory rule";
/// It is not mandatory itself.
pub(crate) const UN_MANDATES: &str = "is not mandatory, but a broader one is";
/// It suppresses violations of the policy.
pub(crate) const SUPPRESSES: &str = "suppresses violations of a mandatory policy of a broader one";

/// The policies of one id, merged so far.
#[derive(Debug, Default)]
struct Merging<'a> {
    rules: BTreeMap<&'a str, EffectiveRule<'a>>,
    /// The broadest layer that made the policy mandatory.
    mandatory: Option<KnowledgeLayer>,
}

/// Merges the policies of `target` and all broader layers. Narrower policies are left out.
///
/// The order of the policies does not matter, except among those of one id and one layer:
/// they are taken in the given order.
pub(crate) fn merge(policies: &[CompiledPolicy], target: KnowledgeLayer) -> MergedPolicies<'_> {
    let in_force = policies.iter().filter(|policy| policy.layer >= target);
    let mut chain: Vec<&CompiledPolicy> = in_force.collect();
    chain.sort_by_key(|policy| Reverse(policy.layer));

    let mut findings = Vec::new();
    let mut merging: BTreeMap<&str, Merging<'_>> = BTreeMap::new();
    for policy in &chain {
        match merging.get_mut(policy.id.as_str()) {
            Some(broader) => broader.narrow_to(policy, &mut findings),
            None => {
                merging.insert(&policy.id, Merging::first(policy));
            }
        }
    }
    let suppressions = suppressions(&chain, &merging, &mut findings);
    findings.sort();
    findings.dedup();
    let ids = merging.keys().copied().collect();
    let has_mandatory = merging.values().any(|policy| policy.mandatory.is_some());
    let rules = merging.into_values().flat_map(|policy| policy.rules);
    let mut rules: Vec<_> = rules.map(|(_, rule)| rule).collect();
    rules.sort_by_key(|rule| (rule.layer, rule.policy_id, rule.id()));
    MergedPolicies {
        target,
        rules,
        suppressions,
        findings,
        ids,
        has_mandatory,
    }
}

/// The suppressions of the chain, without those that a layer gives itself against a
/// mandatory policy of a broader one.
fn suppressions<'a>(
    chain: &[&'a CompiledPolicy],
    merging: &BTreeMap<&str, Merging<'_>>,
    findings: &mut Vec<MergeFinding>,
) -> Vec<&'a CompiledSuppression> {
    let mut active = Vec::new();
    for policy in chain {
        for suppression in &policy.suppressions {
            let target = suppression.policy_id.as_str();
            let mandatory = merging.get(target).and_then(|entry| entry.mandatory);
            if mandatory.is_some_and(|layer| policy.layer < layer) {
                findings.push(MergeFinding {
                    layer: policy.layer,
                    policy_id: suppression.policy_id.clone(),
                    rule_id: None,
                    weakening: SUPPRESSES,
                });
            } else {
                active.push(suppression);
            }
        }
    }
    active
}

impl<'a> Merging<'a> {
    /// The rules of the broadest policy.
    fn first(policy: &'a CompiledPolicy) -> Self {
        let rules = policy.rules.iter();
        Self {
            rules: rules
                .map(|rule| (rule.rule.id.as_str(), EffectiveRule::new(policy, rule)))
                .collect(),
            mandatory: policy.mandatory.then_some(policy.layer),
        }
    }

    /// Changes the rules as the next narrower policy says, as far as it may.
    fn narrow_to(&mut self, policy: &'a CompiledPolicy, findings: &mut Vec<MergeFinding>) {
        let mut narrower = Self::first(policy).rules;
        let mut rules = BTreeMap::new();
        let mut note = |rule_id: Option<&str>, weakening| {
            findings.push(MergeFinding {
                layer: policy.layer,
                policy_id: policy.id.clone(),
                rule_id: rule_id.map(str::to_owned),
                weakening,
            });
        };
        for (id, broader) in std::mem::take(&mut self.rules) {
            let result = match (narrower.remove(id), policy.merge) {
                (Some(rule), _) if broader.mandatory => {
                    let weaker = broader.weakenings(rule.demand);
                    weaker.iter().for_each(|how| note(Some(id), *how));
                    Some(broader.tightened(rule.demand, weaker.is_empty()))
                }
                (Some(rule), _) => Some(rule),
                (None, MergeMode::Merge) => Some(broader),
                (None, MergeMode::Override | MergeMode::Intersect) if broader.mandatory => {
                    note(Some(id), DROPS);
                    Some(broader)
                }
                (None, MergeMode::Override | MergeMode::Intersect) => None,
            };
            rules.extend(result.map(|rule| (id, rule)));
        }
        match policy.merge {
            MergeMode::Override | MergeMode::Merge => rules.extend(narrower),
            MergeMode::Intersect => {}
        }
        if self.mandatory.is_some() && !policy.mandatory {
            note(None, UN_MANDATES);
        }
        if policy.mandatory {
            self.mandatory = self.mandatory.or(Some(policy.layer));
            for rule in rules.values_mut() {
                rule.mandatory = true;
            }
        }
        self.rules = rules;
    }
}

impl<'a> EffectiveRule<'a> {
    fn new(policy: &'a CompiledPolicy, rule: &'a CompiledRule) -> Self {
        Self {
            policy_id: &policy.id,
            layer: policy.layer,
            mandatory: policy.mandatory,
            demand: rule,
            severity: rule.rule.severity,
            globs_of: rule,
        }
    }

    /// The id of the rule.
    pub(crate) fn id(&self) -> &'a str {
        &self.demand.rule.id
    }

    /// What a violation says.
    pub(crate) fn message(&self) -> &'a str {
        &self.demand.rule.message
    }

    /// What of the narrower rule is weaker than this one.
    fn weakenings(&self, narrower: &CompiledRule) -> Vec<&'static str> {
        let (rule, other) = (&self.demand.rule, &narrower.rule);
        let same =
            (rule.kind, rule.target, &rule.pattern) == (other.kind, other.target, &other.pattern);
        let globs = &self.globs_of.rule.applies_to;
        // Compares texts: whether one glob includes another is not decided.
        let covers = other.applies_to.is_empty()
            || (!globs.is_empty() && globs.iter().all(|glob| other.applies_to.contains(glob)));
        let mut weaker = Vec::new();
        weaker.extend((!same).then_some(REPLACES));
        weaker.extend((other.severity < self.severity).then_some(WEAKENS_SEVERITY));
        weaker.extend((!covers).then_some(NARROWS_APPLIES_TO));
        weaker
    }

    /// This rule with severity and globs of the narrower one, if that one is nowhere weaker.
    /// The message stays, because suppressions name it.
    const fn tightened(self, narrower: &'a CompiledRule, is_tighter: bool) -> Self {
        if is_tighter {
            Self {
                severity: narrower.rule.severity,
                globs_of: narrower,
                ..self
            }
        } else {
            self
        }
    }
}

impl<'a> MergedPolicies<'a> {
    /// The ids of the policies, sorted.
    pub(crate) fn ids(&self) -> &[&'a str] {
        &self.ids
    }

    /// The rules in force, by layer, policy id and rule id.
    pub(crate) fn rules(&self) -> &[EffectiveRule<'a>] {
        &self.rules
    }

    /// Whether one of the policies is mandatory.
    pub(crate) const fn has_mandatory(&self) -> bool {
        self.has_mandatory
    }
}

/// One sentence for the author of the narrower policy.
impl fmt::Display for MergeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, weakening) = (self.layer, self.weakening);
        write!(
            f,
            "the policy of the layer `{layer}` {weakening}; this is ignored"
        )
    }
}
