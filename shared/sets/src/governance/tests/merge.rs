use super::{compiled, facts, rule, validate, with};
use crate::governance::compile::CompiledPolicy;
use crate::governance::merge::{MergedPolicies, merge};
use crate::layer::KnowledgeLayer;
use serde_json::{Value, json};

/// The policy `p` of a layer, with one rule for each name. The pattern of a rule is its
/// layer, so that a test sees who wrote it.
fn policy(layer: &str, names: &[&str], changes: Value) -> CompiledPolicy {
    let rules = names
        .iter()
        .map(|name| with(rule("must_use", "code", layer), json!({ "id": name })));
    let rules: Vec<_> = rules.collect();
    compiled(with(
        json!({ "id": "p", "layer": layer, "rules": rules }),
        changes,
    ))
}

/// `<rule> of <layer>` for each rule in force.
fn in_force(merged: &MergedPolicies<'_>) -> Vec<String> {
    let rules = merged.rules.iter();
    let mut names: Vec<_> = rules
        .map(|rule| format!("{} of {}", rule.id(), rule.demand.rule.pattern))
        .collect();
    names.sort();
    names
}

#[test]
fn a_narrower_policy_changes_a_broader_one_by_its_mode() {
    for (mode, expected) in [
        ("override", &["b of team", "c of team"][..]),
        ("merge", &["a of company", "b of team", "c of team"]),
        ("intersect", &["b of team"]),
    ] {
        let policies = [
            policy("company", &["a", "b"], json!({})),
            policy("team", &["b", "c"], json!({ "merge": mode })),
        ];
        let merged = merge(&policies, KnowledgeLayer::Project);
        assert_eq!(in_force(&merged), expected, "{mode}");
        assert_eq!(merged.ids, ["p"]);
    }
}

#[test]
fn a_mandatory_policy_keeps_its_rules_in_every_mode() {
    for (mode, expected) in [
        (
            "override",
            &["a of company", "b of company", "c of team"][..],
        ),
        ("merge", &["a of company", "b of company", "c of team"]),
        ("intersect", &["a of company", "b of company"]),
    ] {
        let policies = [
            policy("company", &["a", "b"], json!({ "mandatory": true })),
            policy(
                "team",
                &["b", "c"],
                json!({ "merge": mode, "mandatory": true }),
            ),
        ];
        let merged = merge(&policies, KnowledgeLayer::Project);
        assert_eq!(in_force(&merged), expected, "{mode}");
        assert!(merged.rules.iter().all(|rule| rule.mandatory));
    }
}

#[test]
fn a_policy_without_mandatory_does_not_lift_it() {
    let policies = [
        policy("company", &["a"], json!({ "mandatory": true })),
        policy("org", &[], json!({})),
        policy(
            "project",
            &[],
            json!({ "merge": "override", "mandatory": true }),
        ),
    ];
    let merged = merge(&policies, KnowledgeLayer::Project);
    assert_eq!(in_force(&merged), ["a of company"]);
}

#[test]
fn a_policy_becomes_mandatory_where_a_layer_says_so() {
    let policies = [
        policy("company", &["a"], json!({})),
        policy("org", &["b"], json!({ "mandatory": true })),
        policy("project", &[], json!({ "merge": "override" })),
    ];
    let merged = merge(&policies, KnowledgeLayer::Project);
    assert_eq!(in_force(&merged), ["a of company", "b of org"]);
    assert!(merged.rules.iter().all(|rule| rule.mandatory));
}

#[test]
fn policies_below_the_target_are_left_out() {
    let policies = [
        policy("project", &["a"], json!({ "merge": "override" })),
        policy("team", &["a"], json!({})),
        policy("org", &["a"], json!({})),
        policy("company", &["a"], json!({})),
    ];
    for layer in KnowledgeLayer::ALL {
        let merged = merge(&policies, layer);
        assert_eq!(in_force(&merged), [format!("a of {layer}")]);
    }
}

#[test]
fn policies_of_other_ids_do_not_change_each_other() {
    let policies = [
        policy("company", &["a"], json!({ "mandatory": true })),
        policy("project", &["a"], json!({ "id": "q", "merge": "override" })),
    ];
    let merged = merge(&policies, KnowledgeLayer::Project);
    assert_eq!(in_force(&merged), ["a of company", "a of project"]);
    assert_eq!(merged.ids, ["p", "q"]);
}

#[test]
fn a_stricter_rule_keeps_the_message_of_the_mandatory_one() {
    let changed = json!([with(
        rule("must_use", "code", "x"),
        json!({ "message": "another", "appliesTo": [] }),
    )]);
    let warned = json!([with(
        rule("must_use", "code", "x"),
        json!({ "severity": "warn", "appliesTo": ["src/**"] }),
    )]);
    let policies = [
        policy(
            "company",
            &[],
            json!({ "mandatory": true, "rules": warned }),
        ),
        policy("team", &[], json!({ "mandatory": true, "rules": changed })),
    ];
    let merged = merge(&policies, KnowledgeLayer::Project);
    let found = validate(&merged, &facts(json!({ "path": "docs/a", "content": "" })));
    let found: Vec<_> = found
        .iter()
        .map(|v| (json!(v.severity), v.message.as_str()))
        .collect();
    assert_eq!(found, [(json!("block"), "broken")]);
}
