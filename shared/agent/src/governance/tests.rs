//! Governance on the real engine, and its rules alone.

use super::evaluate::{CheckContext, evaluate};
use super::merge::{LayeredPolicy, merge};
use super::policy::{Policy, Severity};
use crate::agent;
use crate::governance::session::A2aAdapter;
use crate::layer::Layer;
use a2a_lambda::SkillTest;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::Content;
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};

fn rule(id: &str, constraint: &str, target: &str, value: &str, severity: &str) -> Value {
    json!({"id": id, "constraint": constraint, "target": target, "value": value,
           "severity": severity, "message": format!("{id} is broken")})
}

fn policy(id: &str, mandatory: bool, merge: &str, rules: &[Value]) -> Value {
    json!({"id": id, "mandatory": mandatory, "merge": merge, "rules": rules})
}

fn layered(layer: Layer, policy: &Value) -> LayeredPolicy {
    LayeredPolicy {
        layer,
        policy: Policy::parse(&policy.to_string()).unwrap(),
    }
}

fn context(value: Value) -> CheckContext {
    serde_json::from_value(value).unwrap()
}

/// The ids of the rules that a context breaks.
fn broken(policies: &[LayeredPolicy], value: Value) -> Vec<String> {
    let found = evaluate(policies, &context(value));
    found.into_iter().map(|it| it.rule_id).collect()
}

#[test]
fn each_constraint_finds_what_it_forbids_and_what_it_misses() {
    let full = json!({"path": "src/main.rs", "content": "use foo;\nunwrap()", "dependencies": ["serde"],
                      "imports": ["foo"], "config": {"a": {"b": 1}, "c": "x"}});
    for (constraint, target, value, expected) in [
        ("must_use", "code", "use foo", false),
        ("must_use", "code", "use bar", true),
        ("must_not_use", "code", "unwrap", true),
        ("must_not_use", "code", "panic", false),
        ("must_match", "file", r"^src/.*\.rs$", false),
        ("must_match", "file", "^tests/", true),
        ("must_not_match", "code", r"unwrap\(\)$", true),
        ("must_exist", "dependency", "ser*", false),
        ("must_exist", "dependency", "tokio", true),
        ("must_not_exist", "import", "f?o", true),
        ("must_not_exist", "import", "bar", false),
        ("must_use", "config", "a.b", false),
        ("must_use", "config", "c=x", false),
        ("must_use", "config", "c=y", true),
        ("must_match", "config", "^a.b=[0-9]$", false),
        ("must_exist", "file", "src/**/*.rs", false),
        ("must_exist", "file", "**/*.py", true),
    ] {
        let rules = [rule("r", constraint, target, value, "warn")];
        let policies = [layered(Layer::Team, &policy("p", false, "merge", &rules))];
        let found = broken(&policies, full.clone());
        assert_eq!(!found.is_empty(), expected, "{constraint} {target} {value}");
    }
}

#[test]
fn an_unknown_target_breaks_a_demand_and_no_prohibition() {
    let words = [
        "must_use",
        "must_match",
        "must_exist",
        "must_not_use",
        "must_not_match",
        "must_not_exist",
    ];
    for target in ["file", "code", "dependency", "import", "config"] {
        for (at, constraint) in words.into_iter().enumerate() {
            let rules = [rule("r", constraint, target, "x", "warn")];
            let policies = [layered(Layer::Team, &policy("p", false, "merge", &rules))];
            assert_eq!(
                broken(&policies, json!({})).len(),
                usize::from(at < 3),
                "{constraint} {target}"
            );
        }
    }
}

#[test]
fn findings_have_the_order_of_layer_policy_and_rule_and_name_the_line() {
    let rules = |names: [&str; 2]| names.map(|id| rule(id, "must_not_use", "code", "bad", "info"));
    let policies = [
        layered(
            Layer::Company,
            &policy("a", false, "merge", &rules(["z", "b"])),
        ),
        layered(
            Layer::Project,
            &policy("c", false, "merge", &rules(["y", "x"])),
        ),
        layered(
            Layer::Company,
            &policy("0", false, "merge", &rules(["n", "m"])),
        ),
    ];
    let found = evaluate(&policies, &context(json!({"content": "good\nbad"})));
    let ids: Vec<_> = found.iter().map(|it| it.rule_id.as_str()).collect();
    assert_eq!(ids, ["x", "y", "m", "n", "b", "z"]);
    assert!(found.iter().all(|it| it.at == Some(2)));
}

#[test]
fn a_rule_with_paths_is_for_those_alone() {
    let mut rule = rule("r", "must_not_use", "code", "bad", "warn");
    rule["appliesTo"] = json!(["src/**", "*.md"]);
    let policies = [layered(Layer::Team, &policy("p", false, "merge", &[rule]))];
    for (path, found) in [
        ("src/a/b.rs", 1),
        ("README.md", 1),
        ("docs/a.md", 0),
        ("tests/a.rs", 0),
    ] {
        let found_here = broken(&policies, json!({"path": path, "content": "bad"}));
        assert_eq!(found_here.len(), found, "{path}");
    }
    assert_eq!(broken(&policies, json!({"content": "bad"})).len(), 1);
}

#[test]
fn a_narrower_policy_joins_the_broader_one_as_it_says() {
    let broad = policy(
        "p",
        false,
        "merge",
        &[
            rule("a", "must_use", "code", "a", "warn"),
            rule("b", "must_use", "code", "b", "warn"),
        ],
    );
    let own = [
        rule("b", "must_use", "code", "b", "info"),
        rule("c", "must_use", "code", "c", "warn"),
    ];
    for (mode, expected) in [
        ("merge", vec!["a", "b", "c"]),
        ("override", vec!["b", "c"]),
        ("intersect", vec!["b"]),
    ] {
        let merged = merge(vec![
            layered(Layer::Project, &policy("p", false, mode, &own)),
            layered(Layer::Company, &broad),
        ]);
        assert_eq!(broken(&merged.policies, json!({})), expected, "{mode}");
        assert!(merged.weakened.is_empty());
    }
}

#[test]
fn a_mandatory_rule_is_in_every_merge_and_at_least_as_strict() {
    let mut old = rule("a", "must_use", "code", "a", "warn");
    old["appliesTo"] = json!(["src/**"]);
    let broad = policy("p", true, "merge", std::slice::from_ref(&old));
    let with = |member: &str, value: Value| {
        let mut new = old.clone();
        new[member] = value;
        new
    };
    let weaker = [
        vec![],
        vec![with("severity", json!("info"))],
        vec![with("value", json!("other"))],
        vec![with("constraint", json!("must_not_use"))],
        vec![with("appliesTo", json!(["src/main.rs"]))],
    ];
    for mode in ["merge", "override", "intersect"] {
        for rules in &weaker {
            let narrow = policy("p", false, mode, rules);
            let merged = merge(vec![
                layered(Layer::Company, &broad),
                layered(Layer::Team, &narrow),
            ]);
            let [one] = merged.policies.as_slice() else {
                panic!("{merged:?}");
            };
            assert_eq!(
                one.policy.rules[0].document,
                serde_json::from_value(old.clone()).unwrap()
            );
            assert!(one.policy.document.mandatory);
            let is_kept = rules.is_empty() && mode == "merge";
            assert_eq!(merged.weakened.is_empty(), is_kept, "{mode} {rules:?}");
        }
        for stricter in [
            with("severity", json!("block")),
            with("appliesTo", json!([])),
        ] {
            let narrow = policy("p", false, mode, std::slice::from_ref(&stricter));
            let merged = merge(vec![
                layered(Layer::Company, &broad),
                layered(Layer::Team, &narrow),
            ]);
            let kept = &merged.policies[0].policy.rules[0].document;
            assert_eq!(*kept, serde_json::from_value(stricter).unwrap());
            assert!(merged.weakened.is_empty());
        }
    }
}

#[test]
fn a_policy_with_a_wrong_pattern_is_refused_with_its_place() {
    let of = |id: &str, constraint: &str, value: &str| {
        let rule = rule(id, constraint, "code", value, "warn");
        policy("p", false, "merge", &[rule])
    };
    let mut twice = of("r", "must_use", "x");
    let again = twice["rules"][0].clone();
    twice["rules"].as_array_mut().unwrap().push(again);
    let mut late = of("r", "must_use", "x");
    late["suppressions"] = json!([{"message": "x", "expires": "soon"}]);
    let mut more = of("r", "must_use", "x");
    more["extra"] = json!(1);
    for (document, place) in [
        (of("r", "must_match", "("), "/rules/0/value"),
        (
            of("r", "must_match", &"(a{99}){99}".repeat(9)),
            "/rules/0/value",
        ),
        (of("r", "must_use", ""), "/rules/0/value"),
        (of("r r", "must_use", "x"), "/rules/0/id"),
        (twice, "/rules/1/id"),
        (policy("", false, "merge", &[]), "/id"),
        (late, "/suppressions/0/expires"),
        (more, "extra"),
    ] {
        let error = Policy::parse(&document.to_string()).unwrap_err();
        assert_eq!(error.code().as_str(), "CONSTRAINT_SYNTAX_ERROR");
        assert!(error.text().contains(place), "{}", error.text());
    }
    assert!(Severity::Block > Severity::Warn && Severity::Warn > Severity::Info);
}

const ADMIN: [&str; 2] = ["role:admin", "project:shop"];

fn be(bench: &mut SkillTest, tenant: &str, subject: &str, scopes: &[&str]) {
    bench.new_context().as_caller(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    });
}

async fn call(bench: &mut SkillTest, skill: &str, input: Value) -> Reply {
    let input = Content::from_data(&input).unwrap();
    bench.new_task().skill(skill).send(input).await.unwrap()
}

async fn done(bench: &mut SkillTest, skill: &str, input: Value) -> Value {
    let reply = call(bench, skill, input).await;
    reply
        .artifact_data(skill)
        .unwrap_or_else(|| panic!("{reply:?}"))
}

/// A client, after an admin has put a policy into force.
async fn governed(policy: &Value) -> SkillTest {
    let mut bench = SkillTest::new(&agent().unwrap(), "governance_validate");
    be(&mut bench, "acme", "eve", &ADMIN);
    let name = json!({"path": "policies/code.json", "layer": "company"});
    let mut item = name.clone();
    item["kind"] = json!("policy");
    item["content"] = json!(policy.to_string());
    item["message"] = json!("Rules");
    done(&mut bench, "knowledge_store", item).await;
    for status in ["proposed", "accepted"] {
        let mut change = name.clone();
        change["to"] = json!(status);
        change["message"] = json!("Yes");
        done(&mut bench, "knowledge_status", change).await;
    }
    bench
}

fn no_unwrap() -> Value {
    let mut policy = policy(
        "code",
        true,
        "merge",
        &[rule("no-unwrap", "must_not_use", "code", "unwrap", "block")],
    );
    policy["suppressions"] = json!([{"message": "^never", "expires": "2000-01-01T00:00:00Z"}]);
    policy
}

#[tokio::test]
async fn content_is_judged_by_the_accepted_policies_of_the_tenant() {
    let mut bench = governed(&no_unwrap()).await;
    let bad = json!({"layer": "project", "context": {"content": "x.unwrap()"}});
    let found = done(&mut bench, "governance_validate", bad.clone()).await;
    assert_eq!(
        (&found["valid"], &found["policies"]),
        (&json!(false), &json!(["code"]))
    );
    let violation = &found["violations"][0];
    assert_eq!(violation["policyId"], "code");
    assert_eq!(
        (&violation["severity"], &violation["at"]),
        (&json!("block"), &json!(1))
    );
    let good = json!({"layer": "project", "context": {"content": "x?"}});
    assert_eq!(
        done(&mut bench, "governance_validate", good).await["valid"],
        true
    );
    let check = json!({"content": "x.unwrap()", "kind": "pattern"});
    assert_eq!(
        done(&mut bench, "knowledge_check", check).await["valid"],
        false
    );
    be(&mut bench, "other", "eve", &ADMIN);
    assert_eq!(
        done(&mut bench, "governance_validate", bad).await["valid"],
        true
    );
}

#[tokio::test]
async fn a_policy_is_checked_before_it_is_stored() {
    let mut bench = governed(&no_unwrap()).await;
    let wrong = policy(
        "p",
        false,
        "merge",
        &[rule("r", "must_match", "code", "(", "warn")],
    );
    let item = json!({"path": "policies/p.json", "layer": "company", "kind": "policy",
                      "content": wrong.to_string(), "message": "x"});
    let reply = call(&mut bench, "knowledge_store", item).await;
    assert_eq!(reply.error_code(), Some("CONSTRAINT_SYNTAX_ERROR"));
    let reply = call(&mut bench, "governance_validate", json!({"policy": wrong})).await;
    assert_eq!(reply.error_code(), Some("CONSTRAINT_SYNTAX_ERROR"));
    let checked = done(
        &mut bench,
        "governance_validate",
        json!({"policy": no_unwrap()}),
    )
    .await;
    assert_eq!(checked["valid"], true);
    let check = json!({"content": wrong.to_string(), "kind": "policy"});
    let checked = done(&mut bench, "knowledge_check", check).await;
    assert_eq!(checked["valid"], false);
    assert!(
        checked["warnings"][0]
            .as_str()
            .unwrap()
            .contains("/rules/0/value")
    );
    let reply = call(&mut bench, "governance_validate", json!({"layer": "team"})).await;
    assert_eq!(reply.error_code(), Some("INVALID_INPUT"));
}

#[tokio::test]
async fn drift_sums_the_findings_and_leaves_out_what_is_suppressed() {
    let mut rules = policy(
        "code",
        true,
        "merge",
        &[
            rule("info", "must_use", "code", "a", "info"),
            rule("warn", "must_use", "code", "b", "warn"),
            rule("later", "must_use", "code", "c", "block"),
        ],
    );
    rules["suppressions"] = json!([
        {"message": "^later", "expires": "2100-01-01T00:00:00Z"},
        {"message": "^warn", "expires": "2000-01-01T00:00:00Z"},
    ]);
    let mut bench = governed(&rules).await;
    let check = json!({"projectId": "shop", "context": {"content": "x"}});
    let found = done(&mut bench, "governance_drift_check", check.clone()).await;
    assert!(
        (found["driftScore"].as_f64().unwrap() - 0.6).abs() < 1e-9,
        "{found}"
    );
    assert_eq!(
        (&found["hasDrift"], &found["confidence"]),
        (&json!(true), &json!(1.0))
    );
    assert_eq!(found["suppressed"][0]["ruleId"], "later");
    assert_eq!(found["requiresManualReview"], false);
    let mut stale = check.clone();
    stale["context"]["versionHash"] = json!("0000");
    let found = done(&mut bench, "governance_drift_check", stale).await;
    assert_eq!(found["driftScore"], 1.0);
    let unknown = json!({"projectId": "shop"});
    let found = done(&mut bench, "governance_drift_check", unknown).await;
    assert_eq!(
        (&found["confidence"], &found["requiresManualReview"]),
        (&json!(0.0), &json!(true))
    );
    let foreign = call(
        &mut bench,
        "governance_drift_check",
        json!({"projectId": "bank"}),
    )
    .await;
    assert_eq!(foreign.state(), Some(TaskState::Rejected));
}

#[tokio::test]
async fn a_conversation_begins_with_fitting_memories_and_the_active_constraints() {
    let mut bench = governed(&no_unwrap()).await;
    be(&mut bench, "acme", "ann", &["project:shop"]);
    let memory = json!({"content": "Ann drinks green tea", "layer": "user"});
    done(&mut bench, "memory_add", memory).await;
    let found = done(
        &mut bench,
        "session_context",
        json!({"query": "tea please"}),
    )
    .await;
    assert_eq!(found["memories"][0]["content"], "Ann drinks green tea");
    assert_eq!(found["constraints"][0]["ruleId"], "no-unwrap");
    assert_eq!(
        found["promptAddition"],
        "What is known:\n- Ann drinks green tea\nWhat has to hold:\n- no-unwrap is broken"
    );

    bench.new_context();
    let reply = bench
        .new_task()
        .skill("memory_search")
        .send("green tea")
        .await
        .unwrap();
    let history = reply.task().unwrap().history.iter().flatten();
    let shown = history.filter_map(|it| it.metadata.get("a2a-lambda/activeConstraints"));
    assert_eq!(shown.count(), 1);
}

#[test]
fn memory_and_knowledge_are_tools_with_descriptions_and_schemas() {
    let agent = agent().unwrap();
    let tools = |tools: Vec<a2a_lambda::skill::Tool>| {
        assert!(tools.iter().all(|it| !it.description().is_empty()));
        assert!(tools.iter().all(|it| it.input_schema().is_object()));
        tools
            .iter()
            .map(a2a_lambda::skill::Tool::id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        tools(A2aAdapter.memory_tools(&agent)),
        ["memory_add", "memory_search", "memory_delete"]
    );
    assert_eq!(
        tools(A2aAdapter.knowledge_tools(&agent)),
        [
            "knowledge_query",
            "knowledge_show",
            "knowledge_check",
            "knowledge_store",
            "knowledge_status"
        ]
    );
}
