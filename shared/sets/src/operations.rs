//! The twelve operations together: card, submission, formats, and scopes of others (RAD-C1).

use crate::agent;
use a2a_lambda::SkillTest;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::Content;
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const LEAD: [&str; 5] = [
    "role:admin",
    "project:shop",
    "team:red",
    "org:eu",
    "project:",
];

/// A valid call of each operation, in an order in which each one finds what it needs.
fn calls() -> Vec<(&'static str, Value)> {
    let adr = json!({"path": "adr/1.md", "layer": "team", "kind": "adr", "content": "# Use DynamoDB",
                     "message": "Decide"});
    vec![
        (
            "memory_add",
            json!({"content": "We use tea", "layer": "team"}),
        ),
        ("memory_search", json!({"query": "tea"})),
        ("memory_list", json!({})),
        ("memory_delete", json!({"id": "mem-1", "layer": "team"})),
        ("knowledge_store", adr),
        (
            "knowledge_status",
            json!({"path": "adr/1.md", "layer": "team", "to": "proposed", "message": "Ready"}),
        ),
        ("knowledge_query", json!({"status": ["proposed"]})),
        (
            "knowledge_show",
            json!({"path": "adr/1.md", "layer": "team"}),
        ),
        ("knowledge_check", json!({"content": "x", "kind": "adr"})),
        (
            "governance_validate",
            json!({"layer": "team", "context": {"content": "x"}}),
        ),
        ("governance_drift_check", json!({"projectId": "shop"})),
        ("session_context", json!({"query": "tea"})),
    ]
}

fn skill_test(tenant: &str, subject: &str, scopes: &[&str]) -> SkillTest {
    let mut skill_test = SkillTest::new(&agent().unwrap(), "memory_add");
    be(&mut skill_test, tenant, subject, scopes);
    skill_test
}

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

async fn call(skill_test: &mut SkillTest, skill: &str, input: &Value) -> Reply {
    let input = Content::from_data(input).unwrap();
    skill_test
        .new_task()
        .skill(skill)
        .send(input)
        .await
        .unwrap()
}

#[test]
fn each_operation_is_published_with_description_schemas_and_formats() {
    let agent = agent().unwrap();
    for (id, _) in calls() {
        let mut skills = agent.manifest().skills.iter();
        let skill = skills.find(|skill| skill.metadata.id == id).unwrap();
        assert!(!skill.metadata.description.is_empty(), "{id}");
        assert!(
            skill.metadata.input_modes.contains(&"application/json"),
            "{id}"
        );
        assert_eq!(skill.metadata.output_modes, ["application/json"], "{id}");
        let schema = skill.input_schema().to_string();
        for name in ["tenant", "subject", "caller", "tenantContext"] {
            assert!(!schema.contains(&format!("\"{name}\"")), "{id}: {name}");
        }
        assert!(schema.contains(r#""additionalProperties":false"#), "{id}");
        assert!(skill.output_schema().is_some(), "{id}");
    }
}

#[tokio::test]
async fn each_operation_completes_with_one_json_artifact_that_fits_its_schema() {
    let agent = agent().unwrap();
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    for (id, input) in calls() {
        let reply = call(&mut skill_test, id, &input).await;
        assert_eq!(
            reply.state(),
            Some(TaskState::Completed),
            "{id}: {}",
            reply.text()
        );
        let artifacts = reply.task().unwrap().artifacts.as_ref().unwrap().len();
        assert_eq!(artifacts, 1, "{id}");
        let output = reply.artifact_data(id).unwrap();
        let mut skills = agent.manifest().skills.iter();
        let skill = skills.find(|skill| skill.metadata.id == id).unwrap();
        let schema = skill.output_schema().unwrap();
        let names = |value: &Value| -> BTreeSet<String> {
            let members = value.as_object().into_iter().flatten();
            members.map(|(name, _)| name.clone()).collect()
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let required: BTreeSet<_> = required.map(|it| it.as_str().unwrap().to_owned()).collect();
        assert!(
            names(&output).is_subset(&names(&schema["properties"])),
            "{id}: {output}"
        );
        assert!(required.is_subset(&names(&output)), "{id}: {output}");
    }
}

#[tokio::test]
async fn each_operation_says_in_a_line_what_its_data_says() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let mut lines = Vec::new();
    for (id, input) in calls() {
        lines.push(call(&mut skill_test, id, &input).await.text().to_owned());
    }
    assert_eq!(
        lines,
        [
            "Remembered for team red: \"We use tea\"",
            "Found 1 memory about \"tea\": \"We use tea\"",
            "Found 1 memory: \"We use tea\"",
            "There is no such memory",
            "Stored adr/1.md for team red as a draft",
            "adr/1.md is now proposed (was draft)",
            "Found 1 item: \"adr/1.md: Use DynamoDB\"",
            "adr/1.md (proposed): \"Use DynamoDB\"",
            "Valid, with no findings",
            "Valid, with no findings",
            "The drift of \"shop\" is 0.0 of 1, with no findings",
            "Found 1 memory: \"We use tea\", and no constraints",
        ]
    );
}

#[tokio::test]
async fn a_line_tells_what_there_is_not_and_what_there_is_beside() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let mut line =
        async |id: &str, input: Value| call(&mut skill_test, id, &input).await.text().to_owned();
    assert_eq!(
        line("memory_search", json!({"query": "tea"})).await,
        "Found no memories about \"tea\""
    );
    let item = json!({"path": "adr/1.md", "layer": "team"});
    assert_eq!(line("knowledge_show", item).await, "There is no such item");
    for (id, input) in calls().into_iter().take(5) {
        line(id, input).await;
    }
    assert_eq!(
        line("knowledge_query", json!({"query": "DynamoDB"})).await,
        "Found no accepted items; also 1 draft"
    );
    let policy = json!({"content": "no policy", "kind": "policy"});
    let verdict = line("knowledge_check", policy).await;
    assert!(
        verdict.starts_with("Not valid, with 1 finding: \""),
        "{verdict}"
    );
}

#[tokio::test]
async fn a_line_is_short_whatever_was_stored() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let content = format!("tea \u{202e}\n{}", "x".repeat(9_000));
    for number in 0..12 {
        let memory = json!({"content": format!("{number} {content}"), "layer": "team"});
        call(&mut skill_test, "memory_add", &memory).await;
    }
    let search = json!({"query": "tea", "limit": 12});
    let reply = call(&mut skill_test, "memory_search", &search).await;
    let line = reply.text();
    assert!(
        line.starts_with("Found 12 memories about \"tea\": \""),
        "{line}"
    );
    assert!(line.ends_with("…\", …"), "{line}");
    assert!(line.len() < 500, "{}", line.len());
    assert!(!line.contains(['\u{202e}', '\n']), "{line:?}");
    let list = json!({"limit": 2});
    let reply = call(&mut skill_test, "memory_list", &list).await;
    assert!(
        reply.text().ends_with(" (there are more)"),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn each_operation_refuses_members_that_it_does_not_know() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    for (id, input) in calls() {
        for name in ["tenantContext", "tenant_id", "roles"] {
            let mut input = input.clone();
            input[name] = json!("other");
            let input = Content::from_data(&input).unwrap();
            let sent = skill_test.new_task().skill(id).send(input).await;
            assert!(sent.unwrap_err().to_string().contains(name), "{id}: {name}");
        }
    }
}

#[tokio::test]
async fn no_operation_reaches_a_scope_of_others() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    for (id, input) in calls() {
        call(&mut skill_test, id, &input).await;
    }
    for (tenant, subject, scopes) in [
        ("acme", "bob", vec!["role:admin", "team:blue"]),
        ("other", "ann", LEAD.to_vec()),
    ] {
        be(&mut skill_test, tenant, subject, &scopes);
        let mut answers = Vec::new();
        for scope in ["red", "absent"] {
            let mut seen = Vec::new();
            for (id, mut input) in calls() {
                if input.get("layer").is_some() {
                    input["scopeId"] = json!(scope);
                }
                // What the caller of another tenant writes is its own.
                let writes = ["memory_add", "knowledge_store", "knowledge_status"].contains(&id);
                if tenant == "acme" || !writes {
                    let reply = call(&mut skill_test, id, &input).await;
                    let (line, data) = (reply.text(), reply.artifact_data(id));
                    let said = format!("{:?} {line} {data:?}", reply.state());
                    assert!(
                        !said.contains("We use tea") && !said.contains("DynamoDB"),
                        "{said}"
                    );
                    seen.push(said);
                }
            }
            answers.push(seen);
        }
        // What is there and what is not look the same.
        let [there, absent] = answers.as_slice() else {
            panic!()
        };
        assert_eq!(there, absent);
    }
}
