//! Governance on the real engine.

use crate::agent;
use crate::session::A2aAdapter;
use a2a_lambda::SkillTest;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::Content;
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};

pub(super) fn rule(id: &str, kind: &str, target: &str, pattern: &str, severity: &str) -> Value {
    json!({"id": id, "kind": kind, "target": target, "pattern": pattern,
           "severity": severity, "message": format!("{id} is broken")})
}

pub(super) fn policy(id: &str, mandatory: bool, merge: &str, rules: &[Value]) -> Value {
    json!({"id": id, "layer": "company", "mandatory": mandatory, "merge": merge, "rules": rules})
}

const ADMIN: [&str; 2] = ["role:admin", "project:shop"];

fn be(skill_test: &mut SkillTest, tenant: &str, subject: &str, scopes: &[&str]) {
    skill_test.new_context().as_caller(Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    });
}

pub(super) async fn call(skill_test: &mut SkillTest, skill: &str, input: Value) -> Reply {
    let input = Content::from_data(&input).unwrap();
    skill_test
        .new_task()
        .skill(skill)
        .send(input)
        .await
        .unwrap()
}

pub(super) async fn done(skill_test: &mut SkillTest, skill: &str, input: Value) -> Value {
    let reply = call(skill_test, skill, input).await;
    reply
        .artifact_data(skill)
        .unwrap_or_else(|| panic!("{reply:?}"))
}

/// A client, after an admin has put a policy into force.
pub(super) async fn governed(policy: &Value) -> SkillTest {
    let mut skill_test = SkillTest::new(&agent().unwrap(), "governance_validate");
    be(&mut skill_test, "acme", "eve", &ADMIN);
    put_in_force(&mut skill_test, "policies/code.json", policy).await;
    skill_test
}

/// Puts a policy of the company into force.
pub(super) async fn put_in_force(skill_test: &mut SkillTest, path: &str, policy: &Value) {
    let name = json!({"path": path, "layer": "company"});
    let mut item = name.clone();
    item["kind"] = json!("policy");
    item["content"] = json!(policy.to_string());
    item["message"] = json!("Rules");
    done(skill_test, "knowledge_store", item).await;
    for status in ["proposed", "accepted"] {
        let mut change = name.clone();
        change["to"] = json!(status);
        change["message"] = json!("Yes");
        done(skill_test, "knowledge_status", change).await;
    }
}

fn no_unwrap() -> Value {
    let rules = [rule("no-unwrap", "must_not_use", "code", "unwrap", "block")];
    policy("code", true, "merge", &rules)
}

#[tokio::test]
async fn content_is_judged_by_the_accepted_policies_of_the_tenant() {
    let mut skill_test = governed(&no_unwrap()).await;
    let bad = json!({"layer": "project", "context": {"content": "x.unwrap()"}});
    let found = done(&mut skill_test, "governance_validate", bad.clone()).await;
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
        done(&mut skill_test, "governance_validate", good).await["valid"],
        true
    );
    let check = json!({"content": "x.unwrap()", "kind": "pattern"});
    assert_eq!(
        done(&mut skill_test, "knowledge_check", check).await["valid"],
        false
    );
    skill_test.new_task().skill("knowledge_check");
    let reply = skill_test.send("May I use unwrap()?").await.unwrap();
    let asked = reply.artifact_data("knowledge_check").unwrap();
    assert_eq!(asked["violations"][0]["policyId"], "code", "{asked}");
    be(&mut skill_test, "other", "eve", &ADMIN);
    assert_eq!(
        done(&mut skill_test, "governance_validate", bad).await["valid"],
        true
    );
}

#[tokio::test]
async fn a_policy_is_checked_before_it_is_stored() {
    let mut skill_test = governed(&no_unwrap()).await;
    let wrong = policy(
        "p",
        false,
        "merge",
        &[rule("r", "must_match", "code", "(", "warn")],
    );
    let item = json!({"path": "policies/p.json", "layer": "company", "kind": "policy",
                      "content": wrong.to_string(), "message": "x"});
    let reply = call(&mut skill_test, "knowledge_store", item).await;
    assert_eq!(reply.error_code(), Some("CONSTRAINT_SYNTAX_ERROR"));
    let reply = call(
        &mut skill_test,
        "governance_validate",
        json!({"policy": wrong}),
    )
    .await;
    assert_eq!(reply.error_code(), Some("CONSTRAINT_SYNTAX_ERROR"));
    let checked = done(
        &mut skill_test,
        "governance_validate",
        json!({"policy": no_unwrap()}),
    )
    .await;
    assert_eq!(checked["valid"], true);
    let check = json!({"content": wrong.to_string(), "kind": "policy"});
    let checked = done(&mut skill_test, "knowledge_check", check).await;
    assert_eq!(checked["valid"], false);
    assert!(
        checked["warnings"][0]
            .as_str()
            .unwrap()
            .contains("/rules/0/pattern")
    );
    let reply = call(
        &mut skill_test,
        "governance_validate",
        json!({"layer": "team"}),
    )
    .await;
    assert_eq!(reply.error_code(), Some("INVALID_INPUT"));
}

#[tokio::test]
async fn drift_sums_the_violations_up_to_one() {
    let rules = [
        rule("info", "must_use", "code", "a", "info"),
        rule("warn", "must_use", "code", "b", "warn"),
        rule("block", "must_use", "code", "c", "block"),
    ];
    let mut skill_test = governed(&policy("code", true, "merge", &rules)).await;
    let check = |project: &str, content: &str| json!({"projectId": project, "context": {"content": content}});
    for (content, score) in [
        ("a b c", 0.0),
        ("b c", 0.1),
        ("a c", 0.5),
        ("c", 0.6),
        ("a b", 1.0),
        ("x", 1.0),
    ] {
        let input = check("shop", content);
        let found = done(&mut skill_test, "governance_drift_check", input).await;
        let found = (&found["driftScore"], found["violations"] == json!([]));
        assert_eq!(found, (&json!(score), score == 0.0), "{content}");
    }
    // A project of others looks like one without policies.
    let foreign = check("bank", "x");
    let found = done(&mut skill_test, "governance_drift_check", foreign).await;
    let own = done(
        &mut skill_test,
        "governance_drift_check",
        check("shop", "x"),
    )
    .await;
    assert_eq!(found, own);
}

#[tokio::test]
async fn a_conversation_begins_with_fitting_memories_and_the_active_constraints() {
    let mut skill_test = governed(&no_unwrap()).await;
    be(&mut skill_test, "acme", "ann", &["project:shop"]);
    let memory = json!({"content": "Ann drinks green tea", "layer": "user"});
    done(&mut skill_test, "memory_add", memory).await;
    let found = done(
        &mut skill_test,
        "session_context",
        json!({"query": "tea please"}),
    )
    .await;
    assert_eq!(found["memories"][0]["content"], "Ann drinks green tea");
    assert_eq!(found["constraints"][0]["ruleId"], "no-unwrap");
    assert_eq!(
        found["promptAddition"],
        "What has to hold:\n- no-unwrap is broken"
    );

    skill_test.new_context();
    let reply = skill_test
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
        [
            "memory_add",
            "memory_search",
            "memory_list",
            "memory_delete"
        ]
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

#[tokio::test]
async fn a_project_cannot_weaken_a_mandatory_policy_of_the_company() {
    let mut skill_test = governed(&no_unwrap()).await;
    let mut weaker = policy("code", false, "override", &[]);
    weaker["layer"] = json!("project");
    let name = json!({"path": "policies/code.json", "layer": "project"});
    let mut item = name.clone();
    item["kind"] = json!("policy");
    item["content"] = json!(weaker.to_string());
    item["message"] = json!("Not here");
    done(&mut skill_test, "knowledge_store", item).await;
    for status in ["proposed", "accepted"] {
        let mut change = name.clone();
        change["to"] = json!(status);
        change["message"] = json!("Yes");
        done(&mut skill_test, "knowledge_status", change).await;
    }
    let bad = json!({"layer": "project", "context": {"content": "x.unwrap()"}});
    let found = done(&mut skill_test, "governance_validate", bad).await;
    assert_eq!(found["valid"], false);
    assert_eq!(found["violations"][0]["message"], "no-unwrap is broken");
    let drift = json!({"projectId": "shop", "context": {"content": "x.unwrap()"}});
    let drift = done(&mut skill_test, "governance_drift_check", drift).await;
    assert_eq!(drift["driftScore"], 1.0);
}

#[tokio::test]
async fn a_policy_counts_in_its_own_layer_only() {
    let mut skill_test = governed(&no_unwrap()).await;
    // A project that calls its policy one of the company.
    let item = json!({"path": "policies/p.json", "layer": "project", "kind": "policy",
                      "content": no_unwrap().to_string(), "message": "x"});
    let reply = call(&mut skill_test, "knowledge_store", item).await;
    assert_eq!(reply.error_code(), Some("INVALID_LAYER"));
}

#[tokio::test]
async fn who_may_not_write_policies_cannot_replace_one_by_another_item() {
    let mut skill_test = governed(&no_unwrap()).await;
    let mut draft = policy("draft", false, "merge", &[]);
    draft["layer"] = json!("project");
    let mut item = json!({"path": "policies/draft.json", "layer": "project", "kind": "policy",
                          "content": draft.to_string(), "message": "x"});
    done(&mut skill_test, "knowledge_store", item.clone()).await;
    be(
        &mut skill_test,
        "acme",
        "dan",
        &["role:developer", "project:shop"],
    );
    item["kind"] = json!("spec");
    item["content"] = json!("# Nothing");
    let reply = call(&mut skill_test, "knowledge_store", item).await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));
    assert!(reply.text().contains("tech-lead"), "{}", reply.text());
}
