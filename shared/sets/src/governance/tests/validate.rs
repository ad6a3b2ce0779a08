use super::{compiled, facts, rule, validate, with};
use crate::governance::check::{Violation, is_valid};
use crate::governance::facts::{CONTENT_MAX, CheckContext, CheckFacts, ENTRIES_MAX};
use crate::governance::merge::merge;
use crate::governance::policy::Severity;
use crate::layer::KnowledgeLayer;
use serde_json::{Value, json};

/// The violations of one rule.
fn broken(rule: Value, context: Value) -> Vec<Violation> {
    let policies = [compiled(
        json!({ "id": "p", "layer": "company", "rules": vec![rule] }),
    )];
    validate(&merge(&policies, KnowledgeLayer::Project), &facts(context))
}

/// For each target a context with its value, and patterns (text, expression, glob) that are
/// in it.
fn present() -> [(&'static str, Value, [&'static str; 3]); 5] {
    [
        (
            "file",
            json!({ "path": "src/a.rs" }),
            ["src/a.rs", r"^src/.*\.rs$", "src/*.rs"],
        ),
        (
            "code",
            json!({ "content": "fn main() {}" }),
            ["main", r"\bmain\b", "main"],
        ),
        (
            "dependency",
            json!({ "dependencies": ["serde@1", "tokio"] }),
            ["serde", "^serde@1", "ser*"],
        ),
        (
            "import",
            json!({ "imports": ["a::b", "std::fs::File"] }),
            ["std::fs", "fs::F", "std::*"],
        ),
        (
            "config",
            json!({ "config": { "tls": { "on": true } } }),
            ["/tls/on=true", "on=(true|1)$", "tls/*"],
        ),
    ]
}

/// For each target a context whose value has none of the patterns.
fn absent(target: &str) -> Value {
    match target {
        "file" => json!({ "path": "docs/b.md" }),
        "code" => json!({ "content": "struct A;" }),
        "dependency" => json!({ "dependencies": ["rand"] }),
        "import" => json!({ "imports": ["core::fmt"] }),
        _ => json!({ "config": { "tlsx": { "on": false } } }),
    }
}

const POSITIVE: [&str; 3] = ["must_use", "must_match", "must_exist"];
const NEGATIVE: [&str; 3] = ["must_not_use", "must_not_match", "must_not_exist"];

#[test]
fn each_kind_is_broken_exactly_when_its_name_says_so() {
    for severity in ["info", "warn", "block"] {
        for (target, has, patterns) in present() {
            for at in 0..3 {
                let count = |kind: &str, context: &Value| {
                    let rule = with(
                        rule(kind, target, patterns[at]),
                        json!({ "severity": severity }),
                    );
                    broken(rule, context.clone()).len()
                };
                let (positive, negative) = (POSITIVE[at], NEGATIVE[at]);
                assert_eq!(count(positive, &has), 0, "{positive} {target}");
                assert_eq!(count(positive, &absent(target)), 1, "{positive} {target}");
                assert_eq!(count(negative, &has), 1, "{negative} {target}");
                assert_eq!(count(negative, &absent(target)), 0, "{negative} {target}");
                // The context does not know the target.
                assert_eq!(count(positive, &json!({})), 1, "{positive} {target}");
                assert_eq!(count(negative, &json!({})), 0, "{negative} {target}");
            }
        }
    }
}

#[test]
fn an_empty_list_is_known_and_has_nothing() {
    for (target, member) in [("dependency", "dependencies"), ("import", "imports")] {
        assert_eq!(
            broken(rule("must_use", target, "a"), json!({ member: [] })).len(),
            1
        );
        assert_eq!(
            broken(rule("must_not_use", target, "a"), json!({ member: [] })).len(),
            0
        );
    }
}

#[test]
fn a_dependency_is_known_by_its_name_in_every_notation() {
    for entry in [
        "a",
        "a@1.0",
        "a = \"1\"",
        "a>=2",
        "a ~> 3",
        "a[x]",
        "a^1",
        " a ",
    ] {
        let found = broken(
            rule("must_not_use", "dependency", "a"),
            json!({ "dependencies": [entry] }),
        );
        assert_eq!(found.len(), 1, "{entry}");
    }
    let scoped = json!({ "dependencies": ["@acme/x@1"] });
    assert_eq!(
        broken(
            rule("must_not_use", "dependency", "@acme/x"),
            scoped.clone()
        )
        .len(),
        1
    );
    assert_eq!(
        broken(rule("must_not_exist", "dependency", "@acme/*"), scoped).len(),
        1
    );
    let other = json!({ "dependencies": ["ab", "a-b", "b/a"] });
    assert_eq!(
        broken(rule("must_not_use", "dependency", "a"), other).len(),
        0
    );
}

#[test]
fn an_import_of_a_part_uses_the_whole() {
    for entry in ["os", "os.path", "os::x", "os/x"] {
        assert_eq!(
            broken(
                rule("must_not_use", "import", "os"),
                json!({ "imports": [entry] })
            )
            .len(),
            1
        );
    }
    let other = json!({ "imports": ["oss", "my.os"] });
    assert_eq!(broken(rule("must_not_use", "import", "os"), other).len(), 0);
}

#[test]
fn a_configuration_is_searched_at_every_depth() {
    let config = json!({ "config": { "a": [{ "b/c": "x" }], "gone": null, "n": 1.5 } });
    for (kind, pattern, count) in [
        ("must_not_use", "/a/0/b~1c=x", 1),
        ("must_not_use", "/n=1.5", 1),
        ("must_not_match", "=x$", 1),
        ("must_not_match", "null", 0),
        ("must_not_exist", "a", 1),
        ("must_not_exist", "a/0", 1),
        ("must_not_exist", "gone", 0),
        ("must_not_exist", "x", 0),
        ("must_not_exist", "*/n*", 0),
        ("must_not_exist", "*/*/*/b*", 0),
    ] {
        assert_eq!(
            broken(rule(kind, "config", pattern), config.clone()).len(),
            count,
            "{pattern}"
        );
    }
}

#[test]
fn a_forbidden_content_is_reported_with_its_first_line() {
    let content = json!({ "content": "one\r\ntwo é\nbad\nbad\n" });
    for (kind, pattern, line) in [
        ("must_not_use", "bad", 3),
        ("must_not_match", "b.d", 3),
        ("must_not_match", "(?m)^two", 2),
        ("must_not_exist", "one", 1),
        ("must_not_match", r"\n", 1),
        ("must_not_match", "$", 5),
    ] {
        let found = broken(rule(kind, "code", pattern), content.clone());
        assert_eq!(
            found.iter().map(|v| v.at).collect::<Vec<_>>(),
            [Some(line)],
            "{pattern}"
        );
    }
    assert_eq!(
        broken(rule("must_use", "code", "absent"), content)[0].at,
        None
    );
}

#[test]
fn a_rule_is_for_its_paths_in_every_spelling() {
    let in_src = |path: &str| {
        let rule = with(
            rule("must_use", "code", "x"),
            json!({ "appliesTo": ["src/**", "*.rs"] }),
        );
        broken(rule, json!({ "path": path, "content": "" })).len()
    };
    for path in [
        "src/a",
        "./src/a",
        "src//a",
        "/src/a",
        r"src\a",
        "docs/../src/a",
        "../src/a",
        "a.rs",
    ] {
        assert_eq!(in_src(path), 1, "{path}");
    }
    for path in ["docs/a", "src/../docs/a", "src", "srcs/a"] {
        assert_eq!(in_src(path), 0, "{path}");
    }
}

#[test]
fn a_caller_cannot_avoid_a_rule_by_omitting_the_path() {
    for path in [json!({}), json!({ "path": "" }), json!({ "path": "./.." })] {
        let rule = with(
            rule("must_not_use", "code", "bad"),
            json!({ "appliesTo": ["src/**"] }),
        );
        let context = with(path, json!({ "content": "bad" }));
        assert_eq!(broken(rule, context).len(), 1);
    }
}

#[test]
fn violations_come_by_layer_policy_and_rule() {
    let policy = |id: &str, layer: &str| {
        let named = |id: &str| with(rule("must_use", "code", "x"), json!({ "id": id }));
        compiled(json!({ "id": id, "layer": layer, "rules": [named("b"), named("a")] }))
    };
    let mut policies = vec![
        policy("q", "company"),
        policy("z", "project"),
        policy("p", "company"),
        policy("t", "team"),
    ];
    let order = |policies: &[_]| -> Vec<String> {
        let found = validate(&merge(policies, KnowledgeLayer::Project), &facts(json!({})));
        let names = found
            .iter()
            .map(|v| format!("{} {} {}", v.layer, v.policy_id, v.rule_id));
        names.collect()
    };
    let expected = [
        "project z a",
        "project z b",
        "team t a",
        "team t b",
        "company p a",
        "company p b",
        "company q a",
        "company q b",
    ];
    assert_eq!(order(&policies), expected);
    policies.reverse();
    assert_eq!(order(&policies), expected);
}

#[test]
fn only_a_violation_that_blocks_makes_a_content_invalid() {
    for (severity, valid) in [("info", true), ("warn", true), ("block", false)] {
        let rule = with(
            rule("must_use", "code", "x"),
            json!({ "severity": severity }),
        );
        assert_eq!(is_valid(&broken(rule, json!({}))), valid);
    }
    assert!(is_valid(&[]));
}

#[test]
fn a_violation_has_the_members_of_the_wire() {
    let found = broken(
        rule("must_not_use", "code", "bad"),
        json!({ "content": "bad" }),
    );
    assert_eq!(
        json!(found),
        json!([{
            "policyId": "p",
            "ruleId": "r",
            "severity": "block",
            "message": "broken",
            "layer": "company",
            "at": 1,
        }])
    );
    assert_eq!(found[0].severity, Severity::Block);
}

#[test]
fn a_context_above_a_limit_is_refused() {
    let code = |context: CheckContext| {
        CheckFacts::of(context)
            .err()
            .map(|error| error.code().to_string())
    };
    let content = |bytes: usize| CheckContext {
        content: Some("x".repeat(bytes)),
        ..CheckContext::default()
    };
    assert_eq!(code(content(CONTENT_MAX)), None);
    assert_eq!(
        code(content(CONTENT_MAX + 1)),
        Some("CONTENT_TOO_LONG".to_owned())
    );
    let path = |bytes: usize| CheckContext {
        path: Some("x".repeat(bytes)),
        ..CheckContext::default()
    };
    assert_eq!(code(path(1024)), None);
    assert_eq!(code(path(1025)), Some("INVALID_INPUT".to_owned()));
    let list = |count: usize, bytes: usize| CheckContext {
        dependencies: Some(vec!["x".repeat(bytes); count]),
        ..CheckContext::default()
    };
    assert_eq!(code(list(ENTRIES_MAX, 1)), None);
    assert_eq!(
        code(list(ENTRIES_MAX + 1, 0)),
        Some("INVALID_INPUT".to_owned())
    );
    assert_eq!(code(list(2, CONTENT_MAX)), Some("INVALID_INPUT".to_owned()));
    let config = |value: Value| CheckContext {
        config: Some(serde_json::from_value(json!({ "a": value })).unwrap()),
        ..CheckContext::default()
    };
    assert_eq!(code(config(json!(vec![0; ENTRIES_MAX - 1]))), None);
    assert_eq!(
        code(config(json!(vec![0; ENTRIES_MAX]))),
        Some("INVALID_INPUT".to_owned())
    );
    assert_eq!(
        code(config(json!("x".repeat(CONTENT_MAX)))),
        Some("INVALID_INPUT".to_owned())
    );
    assert_eq!(
        code(config(json!({ "x".repeat(1025): 0 }))),
        Some("INVALID_INPUT".to_owned())
    );
}

#[test]
fn an_unknown_member_of_a_context_is_refused() {
    assert!(serde_json::from_value::<CheckContext>(json!({ "tenant": "acme" })).is_err());
}
