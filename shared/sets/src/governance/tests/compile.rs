use super::{document, rule, with};
use crate::governance::compile::{CompiledPolicy, GLOBS_MAX, PATTERN_MAX, RULES_MAX};
use crate::governance::facts::CheckContext;
use crate::governance::policy::{MergeMode, PolicyDocument};
use serde_json::{Value, json};

/// The field that the refusal of a policy with these rules names.
fn refused(rules: &Value) -> String {
    let error = CompiledPolicy::compile(document(rules)).unwrap_err();
    let (rule_id, field) = (error.rule_id.clone(), error.field.clone());
    let error = error.agent_error();
    assert_eq!(error.code().as_str(), "CONSTRAINT_SYNTAX_ERROR");
    assert_eq!(error.details().get("field"), Some(&json!(field)));
    assert_eq!(
        error.details().get("ruleId").cloned(),
        rule_id.map(Value::from)
    );
    assert!(error.text().starts_with(&format!("`{field}` ")), "{error}");
    field
}

#[test]
fn an_unusable_expression_is_refused_with_its_place() {
    for kind in ["must_match", "must_not_match"] {
        for pattern in ["(", "a{2000}{2000}", "(?=a)", r"\p{L}", "[z-a]", "*"] {
            let broken = with(rule(kind, "code", pattern), json!({ "id": "broken" }));
            let rules = json!([rule("must_use", "code", "x"), broken]);
            assert_eq!(refused(&rules), "/rules/1/pattern", "{pattern}");
            let error = CompiledPolicy::compile(document(&rules)).unwrap_err();
            assert_eq!(error.rule_id.as_deref(), Some("broken"));
        }
    }
    let deep = "(".repeat(250) + &")".repeat(250);
    assert_eq!(
        refused(&json!([rule("must_match", "code", &deep)])),
        "/rules/0/pattern"
    );
}

#[test]
fn an_unusable_glob_is_refused_with_its_place() {
    for kind in ["must_exist", "must_not_exist"] {
        assert_eq!(
            refused(&json!([rule(kind, "file", "[a")])),
            "/rules/0/pattern"
        );
    }
    let rules = json!([with(
        rule("must_use", "code", "x"),
        json!({ "appliesTo": ["a", "a**"] })
    )]);
    assert_eq!(refused(&rules), "/rules/0/appliesTo/1");
}

#[test]
fn each_limit_accepts_its_value_and_refuses_the_next() {
    let long = |bytes: usize| "x".repeat(bytes);
    let with_pattern = |kind: &str, bytes| json!([rule(kind, "code", &long(bytes))]);
    for kind in ["must_use", "must_match"] {
        assert!(CompiledPolicy::compile(document(&with_pattern(kind, PATTERN_MAX))).is_ok());
        assert_eq!(
            refused(&with_pattern(kind, PATTERN_MAX + 1)),
            "/rules/0/pattern"
        );
        assert_eq!(refused(&with_pattern(kind, 0)), "/rules/0/pattern");
    }
    let many = |count: usize| -> Value {
        let rules = (0..count).map(|at| {
            with(
                rule("must_use", "code", "x"),
                json!({ "id": format!("r{at}") }),
            )
        });
        rules.collect()
    };
    assert!(CompiledPolicy::compile(document(&many(RULES_MAX))).is_ok());
    assert_eq!(refused(&many(RULES_MAX + 1)), "/rules");

    let changed = |changes| json!([with(rule("must_use", "code", "x"), changes)]);
    let globs = |count: usize| json!({ "appliesTo": vec!["src/**/*.{rs,toml}"; count] });
    assert!(CompiledPolicy::compile(document(&changed(globs(GLOBS_MAX)))).is_ok());
    assert_eq!(
        refused(&changed(globs(GLOBS_MAX + 1))),
        "/rules/0/appliesTo"
    );
    assert_eq!(
        refused(&changed(json!({ "appliesTo": [long(513)] }))),
        "/rules/0/appliesTo/0"
    );
    assert_eq!(
        refused(&changed(json!({ "appliesTo": [""] }))),
        "/rules/0/appliesTo/0"
    );
    assert!(CompiledPolicy::compile(document(&changed(json!({ "message": long(1024) })))).is_ok());
    assert_eq!(
        refused(&changed(json!({ "message": long(1025) }))),
        "/rules/0/message"
    );
    assert_eq!(
        refused(&changed(json!({ "message": "" }))),
        "/rules/0/message"
    );
}

#[test]
fn the_expressions_of_a_policy_are_limited_together() {
    let many = |count: usize, pattern: &str| -> Value {
        let named = |at| {
            with(
                rule("must_match", "code", pattern),
                json!({ "id": format!("r{at}") }),
            )
        };
        (0..count).map(named).collect()
    };
    // 32 KiB each, of 128 KiB.
    assert!(CompiledPolicy::compile(document(&many(4, "a{1000}"))).is_ok());
    assert_eq!(refused(&many(5, "a{1000}")), "/rules/4/pattern");
    assert_eq!(refused(&many(1, "a{1100}")), "/rules/0/pattern");
    // Ordinary expressions with globs fit as often as there can be rules.
    let rules = many(RULES_MAX, r"\.unwrap\(\)");
    let rules = rules.as_array().unwrap().iter().cloned();
    let rules: Value = rules
        .map(|rule| with(rule, json!({ "appliesTo": ["src/**/*.rs"] })))
        .collect();
    assert!(CompiledPolicy::compile(document(&rules)).is_ok());
}

#[test]
fn an_id_is_short_plain_and_used_once() {
    for id in ["", "a b", "*", "é", "a/b", &"x".repeat(129)] {
        let rules = json!([with(rule("must_use", "code", "x"), json!({ "id": id }))]);
        assert_eq!(refused(&rules), "/rules/0/id", "{id}");
    }
    let twice = rule("must_use", "code", "x");
    assert_eq!(refused(&json!([twice, twice])), "/rules/1/id");
    let error = CompiledPolicy::parse(r#"{"id":"*","layer":"team","rules":[]}"#).unwrap_err();
    assert_eq!((error.field.as_str(), error.rule_id), ("/id", None));
}

#[test]
fn a_document_with_an_unknown_member_or_word_is_refused() {
    let good = json!({
        "id": "p",
        "layer": "team",
        "rules": [with(rule("must_not_match", "import", "x"), json!({ "appliesTo": ["src/**"] }))],
    });
    assert!(CompiledPolicy::parse(&good.to_string()).is_ok());
    for (at, changes) in [
        ("", json!({ "tenant": "acme" })),
        ("", json!({ "layer": "user" })),
        ("", json!({ "merge": "replace" })),
        ("/rules/0", json!({ "applies_to": [] })),
        ("/rules/0", json!({ "severity": "error" })),
        ("/rules/0", json!({ "kind": "mustUse" })),
        ("/rules/0", json!({ "target": "network" })),
    ] {
        let mut bad = good.clone();
        let place = bad.pointer_mut(at).unwrap();
        *place = with(place.clone(), changes);
        let error = CompiledPolicy::parse(&bad.to_string())
            .unwrap_err()
            .agent_error();
        assert_eq!(error.code().as_str(), "CONSTRAINT_SYNTAX_ERROR", "{bad}");
    }
    assert!(CompiledPolicy::parse("not JSON").is_err());
}

#[test]
fn a_policy_merges_unless_it_says_otherwise() {
    let policy: PolicyDocument =
        serde_json::from_value(json!({ "id": "p", "layer": "team", "rules": [] })).unwrap();
    assert_eq!((policy.merge, policy.mandatory), (MergeMode::Merge, false));
}

#[test]
fn the_published_schema_names_the_members_of_the_wire() {
    let members = |schema: &Value| -> Vec<String> {
        assert_eq!(schema["additionalProperties"], json!(false), "{schema}");
        let mut names: Vec<_> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        names.sort();
        names
    };
    let policy = json!(schemars::schema_for!(PolicyDocument));
    assert_eq!(
        members(&policy),
        ["id", "layer", "mandatory", "merge", "rules"]
    );
    assert_eq!(policy["required"], json!(["id", "layer", "rules"]));
    assert_eq!(
        members(&policy["$defs"]["PolicyRule"]),
        [
            "appliesTo",
            "id",
            "kind",
            "message",
            "pattern",
            "severity",
            "target"
        ]
    );
    let context = json!(schemars::schema_for!(CheckContext));
    assert_eq!(
        members(&context),
        [
            "config",
            "content",
            "dependencies",
            "files",
            "imports",
            "path"
        ]
    );
    assert_eq!(context["required"], Value::Null);
}
