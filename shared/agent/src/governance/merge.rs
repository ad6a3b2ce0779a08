//! The policies of several layers as one list.

use super::evaluate::Violation;
use super::policy::{MergeMode, Policy, Rule, Severity};
use crate::layer::Layer;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A policy and the layer that it is of; after a merge the narrowest of them.
#[derive(Debug, Clone)]
pub(crate) struct LayeredPolicy {
    pub(crate) layer: Layer,
    pub(crate) policy: Policy,
}

/// Merged policies, and what a narrower layer tried in vain.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// By layer and id.
    pub(crate) policies: Vec<LayeredPolicy>,
    /// A finding for each rule of a mandatory policy that a narrower layer weakens. The rule
    /// stays as it is.
    pub(crate) weakened: Vec<Violation>,
}

/// Merges policies of the same id, from the broadest layer to the narrowest.
pub(crate) fn merge(mut policies: Vec<LayeredPolicy>) -> Merged {
    // Equal layers keep their order, so that a merge does not depend on a sort.
    policies.sort_by_key(|it| Reverse(it.layer));
    let mut weakened = Vec::new();
    let mut by_id: BTreeMap<String, LayeredPolicy> = BTreeMap::new();
    for narrow in policies {
        let id = narrow.policy.document.id.clone();
        let joined = match by_id.remove(&id) {
            Some(broad) => join(&broad, narrow, &mut weakened),
            None => narrow,
        };
        by_id.insert(id, joined);
    }
    let mut policies: Vec<LayeredPolicy> = by_id.into_values().collect();
    policies.sort_by_key(|it| it.layer);
    Merged { policies, weakened }
}

fn join(
    broad: &LayeredPolicy,
    narrow: LayeredPolicy,
    weakened: &mut Vec<Violation>,
) -> LayeredPolicy {
    let LayeredPolicy { layer, policy } = narrow;
    let mandatory = broad.policy.document.mandatory;
    let mode = policy.document.merge;
    let mut rules = Vec::new();
    for old in &broad.policy.rules {
        let new = policy
            .rules
            .iter()
            .find(|new| new.document.id == old.document.id);
        let chosen = match (mode, new) {
            (_, Some(new)) => Some(new),
            (MergeMode::Merge, None) => Some(old),
            (MergeMode::Override | MergeMode::Intersect, None) => None,
        };
        let weaker = chosen.is_none_or(|chosen| !is_as_strict(chosen, old));
        if mandatory && weaker {
            weakened.push(Violation {
                policy_id: broad.policy.document.id.clone(),
                rule_id: old.document.id.clone(),
                severity: Severity::Warn,
                message: format!(
                    "the policy of the {} weakens a mandatory rule, which stays",
                    layer.name()
                ),
                layer,
                at: None,
            });
            rules.push(old.clone());
        } else {
            rules.extend(chosen.cloned());
        }
    }
    let known = |rule: &&Rule| {
        let id = &rule.document.id;
        !broad.policy.rules.iter().any(|old| old.document.id == *id)
    };
    if mode != MergeMode::Intersect {
        rules.extend(policy.rules.iter().filter(known).cloned());
    }
    let mut suppressions = policy.suppressions.clone();
    let mut document = policy.document.clone();
    if mandatory {
        document.mandatory = true;
        // A narrower layer cannot overlook what is mandatory.
        suppressions.clone_from(&broad.policy.suppressions);
    }
    LayeredPolicy {
        layer,
        policy: Policy {
            document,
            rules,
            suppressions,
        },
    }
}

/// Whether a rule finds all that another one finds, and takes it as seriously.
fn is_as_strict(new: &Rule, old: &Rule) -> bool {
    let (new, old) = (&new.document, &old.document);
    let broader = new.applies_to.is_empty()
        || (!old.applies_to.is_empty()
            && old
                .applies_to
                .iter()
                .all(|path| new.applies_to.contains(path)));
    new.constraint == old.constraint
        && new.target == old.target
        && new.value == old.value
        && new.severity >= old.severity
        && broader
}
