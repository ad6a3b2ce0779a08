//! The knowledge skills on the real engine.

use crate::agent;
use crate::knowledge::store::ITEMS_MAX;
use a2a_lambda::SkillTest;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::Content;
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};

const LEAD: [&str; 3] = ["role:tech-lead", "project:shop", "team:red"];

/// A client, as the subject with these scopes.
fn skill_test(tenant: &str, subject: &str, scopes: &[&str]) -> SkillTest {
    let mut skill_test = SkillTest::new(&agent().unwrap(), "knowledge_query");
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

async fn call(skill_test: &mut SkillTest, skill: &str, input: Value) -> Reply {
    let input = Content::from_data(&input).unwrap();
    skill_test
        .new_task()
        .skill(skill)
        .send(input)
        .await
        .unwrap()
}

async fn done(skill_test: &mut SkillTest, skill: &str, input: Value) -> Value {
    let reply = call(skill_test, skill, input).await;
    reply
        .artifact_data(skill)
        .unwrap_or_else(|| panic!("{reply:?}"))
}

fn adr(content: &str) -> Value {
    json!({"path": "adr/0001.md", "layer": "project", "kind": "adr", "content": content,
           "tags": ["storage"], "message": "Decide on storage"})
}

fn to(status: &str) -> Value {
    json!({"path": "adr/0001.md", "layer": "project", "to": status, "message": "Because"})
}

const NAME: &str = r#"{"path": "adr/0001.md", "layer": "project"}"#;

fn name() -> Value {
    serde_json::from_str(NAME).unwrap()
}

#[tokio::test]
async fn an_item_is_stored_decided_and_found_with_its_history() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let first = done(
        &mut skill_test,
        "knowledge_store",
        adr("# Use files\n\nAll of it."),
    )
    .await;
    let second = done(
        &mut skill_test,
        "knowledge_store",
        adr("# Use DynamoDB\n\nOne table."),
    )
    .await;
    assert_ne!(first["commit"], second["commit"]);
    assert_eq!(
        done(&mut skill_test, "knowledge_query", json!({})).await["total"],
        0
    );
    for (status, from) in [("proposed", "draft"), ("accepted", "proposed")] {
        let changed = done(&mut skill_test, "knowledge_status", to(status)).await;
        assert_eq!(
            (&changed["from"], &changed["to"]),
            (&json!(from), &json!(status))
        );
    }
    for query in [
        json!({}),
        json!({"query": "DYNAMODB table"}),
        json!({"tags": ["storage"]}),
    ] {
        let found = done(&mut skill_test, "knowledge_query", query).await;
        assert_eq!(found["total"], 1);
        let item = &found["items"][0];
        assert_eq!(item["title"], "Use DynamoDB");
        assert_eq!(item["summary"], "One table.");
        assert_eq!(
            (&item["layer"], &item["scopeId"]),
            (&json!("project"), &json!("shop"))
        );
        assert_eq!(item["status"], "accepted");
    }
    let asked = skill_test.new_task().skill("knowledge_query");
    let reply = asked.send("What is our decision on storage?").await;
    let found = reply.unwrap().artifact_data("knowledge_query").unwrap();
    assert_eq!(found["total"], 1);
    for query in [
        json!({"query": "files"}),
        json!({"kind": ["policy"]}),
        json!({"status": ["draft"]}),
    ] {
        assert_eq!(
            done(&mut skill_test, "knowledge_query", query).await["total"],
            0
        );
    }
    let shown = done(&mut skill_test, "knowledge_show", name()).await;
    shows_the_history(&shown);
}

/// Two versions and two decisions.
fn shows_the_history(shown: &Value) {
    assert_eq!(shown["content"], "# Use DynamoDB\n\nOne table.");
    let history = shown["history"].as_array().unwrap();
    let messages: Vec<_> = history
        .iter()
        .map(|it| it["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Because",
            "Because",
            "Decide on storage",
            "Decide on storage"
        ]
    );
    assert_eq!(history[0]["author"], "ann");
}

#[tokio::test]
async fn an_item_is_shown_as_it_was_at_a_commit() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let first = done(
        &mut skill_test,
        "knowledge_store",
        adr("# Use files\n\nAll of it."),
    )
    .await;
    done(&mut skill_test, "knowledge_store", adr("# Use DynamoDB")).await;
    let mut earlier = name();
    earlier["at"] = first["commit"].clone();
    let shown = done(&mut skill_test, "knowledge_show", earlier).await;
    assert_eq!(shown["content"], "# Use files\n\nAll of it.");
}

#[tokio::test]
async fn a_stale_writer_is_refused_and_an_item_in_force_is_not_replaced() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let first = done(&mut skill_test, "knowledge_store", adr("one")).await;
    let with = |content: &str, expect: &Value| {
        let mut item = adr(content);
        item["expect"] = expect.clone();
        item
    };
    let second = done(
        &mut skill_test,
        "knowledge_store",
        with("two", &first["commit"]),
    )
    .await;
    let stale = call(
        &mut skill_test,
        "knowledge_store",
        with("three", &first["commit"]),
    )
    .await;
    assert_eq!(stale.error_code(), Some("STALE_COMMIT"));
    // The same content again is not another version.
    let again = done(
        &mut skill_test,
        "knowledge_store",
        with("two", &first["commit"]),
    )
    .await;
    assert_eq!(again["commit"], second["commit"]);
    for status in ["proposed", "accepted"] {
        done(&mut skill_test, "knowledge_status", to(status)).await;
    }
    let replaced = call(&mut skill_test, "knowledge_store", adr("four")).await;
    assert_eq!(replaced.error_code(), Some("INVALID_STATUS"));
    assert!(replaced.text().contains("the item is accepted;"));
    let back = call(&mut skill_test, "knowledge_status", to("draft")).await;
    assert_eq!(back.error_code(), Some("INVALID_STATUS"));
    assert_eq!(back.text(), "an item that is accepted cannot become draft");
}

#[tokio::test]
async fn knowledge_of_another_project_or_tenant_is_not_seen() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    done(&mut skill_test, "knowledge_store", adr("# Secret")).await;
    let all = json!({"status": ["draft"]});
    assert_eq!(
        done(&mut skill_test, "knowledge_query", all.clone()).await["total"],
        1
    );
    for (tenant, subject, scopes) in [
        ("acme", "bob", vec!["role:admin", "project:bank"]),
        ("other", "ann", LEAD.to_vec()),
    ] {
        be(&mut skill_test, tenant, subject, &scopes);
        assert_eq!(
            done(&mut skill_test, "knowledge_query", all.clone()).await["total"],
            0
        );
        for scope in ["shop", "bank"] {
            let mut foreign = name();
            foreign["scopeId"] = json!(scope);
            let shown = done(&mut skill_test, "knowledge_show", foreign).await;
            assert_eq!(shown["item"], Value::Null, "{scope}");
        }
    }
}

#[tokio::test]
async fn what_the_role_does_not_allow_is_rejected() {
    let mut skill_test = skill_test("acme", "ann", &["role:developer", "project:shop"]);
    done(&mut skill_test, "knowledge_store", adr("# Draft")).await;
    done(&mut skill_test, "knowledge_status", to("proposed")).await;
    let mut policy = adr(r#"{"id": "p", "layer": "project", "rules": []}"#);
    policy["kind"] = json!("policy");
    let mut company = adr("# All");
    company["layer"] = json!("company");
    for (skill, input) in [
        ("knowledge_store", policy),
        ("knowledge_store", company),
        ("knowledge_status", to("accepted")),
    ] {
        let reply = call(&mut skill_test, skill, input).await;
        assert_eq!(reply.state(), Some(TaskState::Rejected), "{skill}");
        assert!(reply.text().contains("role"), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_path_that_leaves_its_folder_is_refused_with_the_field() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    for path in [
        "../a",
        "/a",
        "a/../b",
        "a//b",
        "%2e%2e/a",
        ".git/config",
        "a\\b",
        "",
        "a/.",
    ] {
        let mut item = adr("x");
        item["path"] = json!(path);
        let reply = call(&mut skill_test, "knowledge_store", item).await;
        assert_eq!(reply.error_code(), Some("INVALID_INPUT"), "{path}");
        assert!(reply.text().contains("path"), "{}", reply.text());
    }
    let mut item = adr(&"x".repeat(65_537));
    let reply = call(&mut skill_test, "knowledge_store", item.clone()).await;
    assert_eq!(reply.error_code(), Some("CONTENT_TOO_LONG"));
    for content in ["", " \n\u{3000}"] {
        let reply = call(&mut skill_test, "knowledge_store", adr(content)).await;
        assert_eq!(reply.error_code(), Some("CONTENT_EMPTY"), "{content:?}");
    }
    item["content"] = json!("x".repeat(65_536));
    done(&mut skill_test, "knowledge_store", item).await;
}

#[tokio::test]
async fn pages_of_a_query_join_to_all_items() {
    let mut skill_test = skill_test("acme", "ann", &["role:admin", "project:shop", "org:eu"]);
    for n in 0..7 {
        let mut item = adr("# Item");
        item["path"] = json!(format!("adr/{n}.md"));
        item["layer"] = json!(["project", "org", "company"][n % 3]);
        done(&mut skill_test, "knowledge_store", item).await;
    }
    let mut query = json!({"status": ["draft"], "limit": 3});
    let mut paths = Vec::new();
    loop {
        let found = done(&mut skill_test, "knowledge_query", query.clone()).await;
        assert_eq!(found["total"], 7);
        let items = found["items"].as_array().unwrap();
        paths.extend(
            items
                .iter()
                .map(|it| it["path"].as_str().unwrap().to_owned()),
        );
        match found.get("cursor") {
            Some(cursor) => query["cursor"] = cursor.clone(),
            None => break,
        }
    }
    // By layer, and in it by path.
    let expected = [2, 5, 1, 4, 0, 3, 6].map(|n| format!("adr/{n}.md"));
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn a_tenant_has_a_limit_of_items_and_changes_those_it_has() {
    let mut skill_test = skill_test("acme", "ann", &LEAD);
    let item = |n: usize, content: &str| {
        let mut item = adr(content);
        item["path"] = json!(format!("adr/{n}.md"));
        item
    };
    for n in 0..ITEMS_MAX {
        done(&mut skill_test, "knowledge_store", item(n, "one")).await;
    }
    let more = call(&mut skill_test, "knowledge_store", item(ITEMS_MAX, "one")).await;
    assert_eq!(more.error_code(), Some("TOO_MANY_ITEMS"));
    done(&mut skill_test, "knowledge_store", item(0, "two")).await;
    let all = json!({"status": ["draft"]});
    let found = done(&mut skill_test, "knowledge_query", all).await;
    assert_eq!(found["total"], ITEMS_MAX);
    be(&mut skill_test, "other", "ann", &LEAD);
    done(&mut skill_test, "knowledge_store", item(0, "one")).await;
}
