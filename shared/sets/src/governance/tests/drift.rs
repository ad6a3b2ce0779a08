use super::{compiled, drift, facts, rule, with};
use crate::governance::drift::{DriftReport, NO_MANDATORY_POLICY, STALE_POLICY_VERSION};
use crate::governance::merge::merge;
use crate::layer::KnowledgeLayer;
use a2a_lambda::task::Timestamp;
use serde_json::{Value, json};

fn at(time: &str) -> Timestamp {
    Timestamp::parse_rfc3339(time).unwrap()
}

fn report(policies: &[Value], context: Value) -> DriftReport {
    let policies: Vec<_> = policies.iter().cloned().map(compiled).collect();
    let merged = merge(&policies, KnowledgeLayer::Project);
    drift(&merged, &facts(context), "v2", at("2026-11-23T12:00:00Z"))
}

/// A mandatory policy of the company with rules of these severities, which an empty content
/// breaks.
fn mandatory(severities: &[&str]) -> Value {
    let rules = severities.iter().enumerate().map(|(at, severity)| {
        let changes =
            json!({ "id": format!("r{at}"), "severity": severity, "message": format!("m{at}") });
        with(rule("must_use", "code", "x"), changes)
    });
    let rules: Vec<_> = rules.collect();
    json!({ "id": "p", "layer": "company", "mandatory": true, "rules": rules })
}

fn suppressing(message: &str, expires: &str) -> Value {
    json!([{ "policyId": "p", "message": message, "expires": expires }])
}

fn ids(violations: &[crate::governance::validate::Violation]) -> Vec<&str> {
    violations
        .iter()
        .map(|violation| violation.rule_id.as_str())
        .collect()
}

#[test]
fn the_score_sums_the_severities_up_to_one() {
    for (severities, score) in [
        (&[][..], 0.0),
        (&["info"], 0.1),
        (&["info", "info", "info"], 0.3),
        (&["warn"], 0.5),
        (&["warn", "info"], 0.6),
        (&["warn", "warn"], 1.0),
        (&["block"], 1.0),
        (&["block", "warn", "info"], 1.0),
    ] {
        let found = report(&[mandatory(severities)], json!({ "content": "" }));
        assert!(
            (found.drift_score - score).abs() < f64::EPSILON,
            "{severities:?} {found:?}"
        );
        assert_eq!(found.has_drift, score > 0.0);
        assert_eq!(found.requires_manual_review, severities.contains(&"block"));
        assert_eq!(
            report(&[mandatory(severities)], json!({ "content": "x" })).violations,
            []
        );
    }
}

#[test]
fn a_suppression_holds_for_its_messages_until_its_end() {
    let of = |message: &str, expires: &str| {
        let policy = with(
            mandatory(&["block", "warn"]),
            json!({ "suppressions": suppressing(message, expires) }),
        );
        report(&[policy], json!({ "content": "" }))
    };
    let later = "2026-11-23T12:00:00.001Z";
    let found = of("^m0$", later);
    assert_eq!(
        (ids(&found.suppressed), ids(&found.violations)),
        (vec!["r0"], vec!["r1"])
    );
    assert!((found.drift_score - 0.5).abs() < f64::EPSILON);
    assert!(!found.requires_manual_review);
    assert_eq!(ids(&of("m", later).suppressed), ["r0", "r1"]);
    assert!(!of("m", later).has_drift);
    assert_eq!(of("other", later).suppressed, []);
    // From its end on it does not hold.
    assert_eq!(of("m", "2026-11-23T12:00:00Z").suppressed, []);
    assert_eq!(of("m", "2026-11-23T13:00:00+01:00").suppressed, []);

    let other = json!({
        "id": "q", "layer": "company", "rules": [],
        "suppressions": [{ "policyId": "other", "message": "m", "expires": later }],
    });
    assert_eq!(
        report(&[mandatory(&["block"]), other], json!({ "content": "" })).suppressed,
        []
    );
}

#[test]
fn a_narrower_layer_cannot_suppress_a_mandatory_policy() {
    let later = "2027-01-01T00:00:00Z";
    let project = json!({
        "id": "own", "layer": "project", "rules": [], "suppressions": suppressing(".", later),
    });
    let found = report(
        &[mandatory(&["block"]), project.clone()],
        json!({ "content": "" }),
    );
    assert_eq!(found.suppressed, []);
    // The attempt is reported, and cannot suppress its own report.
    assert_eq!(ids(&found.violations), ["*", "r0"]);
    let voluntary = with(mandatory(&["block"]), json!({ "mandatory": false }));
    let found = report(&[voluntary, project], json!({ "content": "" }));
    assert_eq!(ids(&found.suppressed), ["r0"]);
}

#[test]
fn the_confidence_is_the_share_of_targets_with_values() {
    let named = |target: &str| with(rule("must_not_use", target, "x"), json!({ "id": target }));
    let rules = json!([
        named("code"),
        named("dependency"),
        named("import"),
        named("config")
    ]);
    let policy = json!({ "id": "p", "layer": "company", "mandatory": true, "rules": rules });
    let of = |context| report(std::slice::from_ref(&policy), context);
    for (context, confidence, review) in [
        (json!({}), 0.0, true),
        (json!({ "content": "" }), 0.25, true),
        (json!({ "content": "", "path": "a" }), 0.25, true),
        (json!({ "content": "", "imports": [] }), 0.5, false),
        (
            json!({ "content": "", "imports": [], "dependencies": [], "config": {} }),
            1.0,
            false,
        ),
    ] {
        let found = of(context);
        assert!(
            (found.confidence - confidence).abs() < f64::EPSILON,
            "{found:?}"
        );
        assert_eq!(found.requires_manual_review, review);
    }
    // A rule for other paths does not count.
    let elsewhere = with(named("code"), json!({ "appliesTo": ["src/**"] }));
    let policy = with(policy.clone(), json!({ "rules": [elsewhere] }));
    assert!((report(&[policy], json!({ "path": "docs/a" })).confidence - 1.0).abs() < f64::EPSILON);
}

#[test]
fn missing_mandatory_policies_and_a_stale_version_are_findings() {
    let found = report(&[], json!({}));
    assert_eq!(ids(&found.violations), [NO_MANDATORY_POLICY]);
    assert!((found.drift_score - 0.1).abs() < f64::EPSILON);
    assert!((found.confidence - 1.0).abs() < f64::EPSILON);

    let found = report(&[mandatory(&[])], json!({ "policyVersion": "v1" }));
    assert_eq!(ids(&found.violations), [STALE_POLICY_VERSION]);
    assert!((found.drift_score - 0.5).abs() < f64::EPSILON);
    assert!(!report(&[mandatory(&[])], json!({ "policyVersion": "v2" })).has_drift);
    assert!(!report(&[mandatory(&[])], json!({})).has_drift);
}

#[test]
fn a_report_has_the_members_of_the_wire() {
    let found = json!(report(&[mandatory(&["block"; 100])], json!({})));
    let members: Vec<_> = found.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "confidence",
            "driftScore",
            "hasDrift",
            "policyVersion",
            "requiresManualReview",
            "suppressed",
            "violations"
        ]
    );
    // JSON has no NaN: serde_json writes null for it.
    assert_eq!(
        (&found["driftScore"], &found["confidence"]),
        (&json!(1.0), &json!(0.0))
    );
}
