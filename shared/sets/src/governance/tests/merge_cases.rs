//! That a mandatory rule is in every result, for all small cases and for random chains.

use super::{compiled, facts, rule, validate, with};
use crate::governance::compile::CompiledPolicy;
use crate::governance::merge::{EffectiveRule, MergedPolicies, merge};
use crate::governance::policy::Severity;
use crate::layer::KnowledgeLayer;
use proptest::prelude::*;
use serde_json::{Value, json};

const SEVERITIES: [&str; 3] = ["info", "warn", "block"];
const MODES: [&str; 3] = ["override", "merge", "intersect"];
const GLOBS: [&[&str]; 4] = [&[], &["src/**"], &["docs/**"], &["src/**", "docs/**"]];

/// Whether the second list of globs has every path of the first. Written out, so that it
/// does not repeat the code.
const COVERED_BY: [[bool; 4]; 4] = [
    [true, false, false, false],
    [true, true, false, true],
    [true, false, true, true],
    [true, false, false, true],
];

/// What a rule `r` of the small cases has.
#[derive(Debug, Clone, Copy)]
struct Variant {
    severity: usize,
    globs: usize,
    pattern: &'static str,
}

impl Variant {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for severity in 0..SEVERITIES.len() {
            for globs in 0..GLOBS.len() {
                all.extend(["x", "y"].map(|pattern| Self {
                    severity,
                    globs,
                    pattern,
                }));
            }
        }
        all
    }

    fn rule(self) -> Value {
        let changes =
            json!({ "severity": SEVERITIES[self.severity], "appliesTo": GLOBS[self.globs] });
        with(rule("must_use", "code", self.pattern), changes)
    }
}

fn policy(layer: &str, mandatory: bool, mode: &str, rules: &[Value]) -> CompiledPolicy {
    compiled(json!({
        "id": "p", "layer": layer, "mandatory": mandatory, "merge": mode, "rules": rules,
    }))
}

/// Every way in which a narrower policy can treat the one rule of a mandatory policy.
#[test]
fn every_weakening_of_a_mandatory_rule_is_ignored() {
    let mut cases = 0;
    for upper in Variant::all() {
        for lower in std::iter::once(None).chain(Variant::all().into_iter().map(Some)) {
            for mode in MODES {
                for mandatory in [true, false] {
                    check(upper, lower, mode, mandatory);
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 24 * 25 * 3 * 2);
}

fn check(upper: Variant, lower: Option<Variant>, mode: &str, mandatory: bool) {
    let is_stricter = |lower: &Variant| {
        lower.pattern == upper.pattern
            && lower.severity >= upper.severity
            && COVERED_BY[upper.globs][lower.globs]
    };
    let kept = lower.filter(is_stricter).unwrap_or(upper);
    let rules: Vec<_> = lower.map(Variant::rule).into_iter().collect();
    let policies = [
        policy("company", true, "merge", &[upper.rule()]),
        policy("project", mandatory, mode, &rules),
    ];
    let merged = merge(&policies, KnowledgeLayer::Project);
    let case = format!("{upper:?} {lower:?} {mode} {mandatory}");
    let [rule] = merged.rules.as_slice() else {
        panic!("{case}: not one rule");
    };
    assert_eq!(rule.demand.rule.pattern, upper.pattern, "{case}");
    assert_eq!(
        json!(rule.severity),
        json!(SEVERITIES[kept.severity]),
        "{case}"
    );
    assert_eq!(rule.globs_of.rule.applies_to, GLOBS[kept.globs], "{case}");
    assert!(rule.mandatory, "{case}");
}

/// A random rule with one of three ids.
fn any_rule() -> impl Strategy<Value = Value> {
    let kinds = ["must_use", "must_not_use"];
    let parts = (0..3_usize, 0..2_usize, 0..2_usize, 0..3_usize, 0..4_usize);
    parts.prop_map(move |(id, kind, pattern, severity, globs)| {
        let changes = json!({
            "id": (["a", "b", "c"][id]),
            "severity": SEVERITIES[severity],
            "appliesTo": GLOBS[globs],
        });
        with(rule(kinds[kind], "code", ["x", "y"][pattern]), changes)
    })
}

/// A random policy `p` of a layer, or none.
fn any_policy(layer: KnowledgeLayer) -> impl Strategy<Value = Option<CompiledPolicy>> {
    let rules = prop::collection::vec(any_rule(), 0..4);
    let parts = (any::<bool>(), any::<bool>(), 0..3_usize, rules);
    parts.prop_map(move |(there, mandatory, mode, mut rules)| {
        rules.sort_by_key(|rule| rule["id"].to_string());
        rules.dedup_by_key(|rule| rule["id"].to_string());
        there.then(|| policy(layer.layer().as_str(), mandatory, MODES[mode], &rules))
    })
}

fn any_chain() -> impl Strategy<Value = Vec<CompiledPolicy>> {
    let chain = KnowledgeLayer::ALL.map(any_policy);
    chain.prop_map(|chain| chain.into_iter().flatten().collect())
}

fn at_least_as_strict(kept: &EffectiveRule<'_>, broader: &EffectiveRule<'_>) -> bool {
    let (kept_rule, rule) = (&kept.demand.rule, &broader.demand.rule);
    let globs = |of: &EffectiveRule<'_>| {
        let of = &of.globs_of.rule.applies_to;
        GLOBS.iter().position(|globs| globs == of).unwrap()
    };
    (kept_rule.kind, kept_rule.target, &kept_rule.pattern)
        == (rule.kind, rule.target, &rule.pattern)
        && kept.severity >= broader.severity
        && COVERED_BY[globs(broader)][globs(kept)]
}

/// The broken rules of a content.
fn broken(merged: &MergedPolicies<'_>, path: &str, content: &str) -> Vec<(String, Severity)> {
    let found = validate(merged, &facts(json!({ "path": path, "content": content })));
    let rules = found.into_iter();
    rules.map(|v| (v.rule_id, v.severity)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_merged_result_has_each_mandatory_rule_as_strict(chain in any_chain()) {
        for mandatory in chain.iter().filter(|policy| policy.mandatory) {
            // The rules that were in force when the mandatory policy had its say.
            let broader = merge(&chain, mandatory.layer);
            for target in KnowledgeLayer::ALL.into_iter().filter(|layer| *layer <= mandatory.layer) {
                let merged = merge(&chain, target);
                for rule in &broader.rules {
                    let kept = merged.rules.iter().find(|kept| kept.id() == rule.id());
                    prop_assert!(kept.is_some_and(|kept| at_least_as_strict(kept, rule)), "{rule:?} {kept:?}");
                }
                for path in ["src/a", "docs/a", "other/a"] {
                    for content in ["", "x", "y", "xy"] {
                        let after = broken(&merged, path, content);
                        for (id, severity) in broken(&broader, path, content) {
                            prop_assert!(after.iter().any(|(other, as_bad)| *other == id && *as_bad >= severity));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_policies_does_not_change_the_result(mut chain in any_chain()) {
        let shown = |chain: &[CompiledPolicy]| {
            let merged = merge(chain, KnowledgeLayer::Project);
            let rules = merged.rules.iter();
            let rules: Vec<_> = rules.map(|r| (r.layer, r.demand.rule.clone(), r.severity, r.mandatory)).collect();
            format!("{rules:?}")
        };
        let before = shown(&chain);
        chain.reverse();
        prop_assert_eq!(before, shown(&chain));
    }
}
