//! The memory skills on the real engine.

use crate::{Layer, MemorySettings as _, agent};
use a2a_lambda::SkillTest;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::{Agent, Content};
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::Reply;
use serde_json::{Value, json};
use std::time::Duration;

fn skill_test() -> SkillTest {
    SkillTest::new(&agent().unwrap(), "memory_add")
}

fn caller(tenant: &str, subject: &str, scopes: &[&str]) -> Caller {
    Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    }
}

/// The next messages come from another caller, in a conversation of its own.
fn be(skill_test: &mut SkillTest, caller: Caller) {
    skill_test.new_context().as_caller(caller);
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

async fn add(skill_test: &mut SkillTest, input: Value) -> Value {
    let reply = call(skill_test, "memory_add", input).await;
    reply
        .artifact_data("memory_add")
        .unwrap_or_else(|| panic!("{reply:?}"))
}

/// The contents that a search finds.
async fn find(skill_test: &mut SkillTest, input: Value) -> Vec<String> {
    let reply = call(skill_test, "memory_search", input).await;
    let found = reply
        .artifact_data("memory_search")
        .unwrap_or_else(|| panic!("{reply:?}"));
    assert_eq!(found["mode"], "lexical");
    let results = found["results"].as_array().unwrap();
    results
        .iter()
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_agent_with_a_default_layer_remembers_without_a_question() {
    let set = super::set().default_layer(Layer::User);
    let agent = Agent::builder("notes").skills(set).build().unwrap();
    let mut skill_test = SkillTest::new(&agent, "memory_add");
    let reply = skill_test.send("Remember that I like tea").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    let added = reply.artifact_data("memory_add").unwrap();
    assert_eq!(added["layer"], "user");
    let team = json!({"content": "x", "layer": "session"});
    assert_eq!(add(&mut skill_test, team).await["layer"], "session");
}

#[tokio::test]
async fn a_search_reads_the_newest_memories_and_names_what_it_left_out() {
    let mut skill_test = skill_test();
    let search = json!({"query": "oldest latest", "layers": ["user"]});
    let memory = |content: &str| json!({"content": content, "layer": "user"});
    add(&mut skill_test, memory("the oldest note")).await;
    let found = async |skill_test: &mut SkillTest| {
        let reply = call(skill_test, "memory_search", search.clone()).await;
        let data = reply.artifact_data("memory_search").unwrap();
        (data["total"].clone(), data["partial"].clone(), reply)
    };
    let (total, partial, reply) = found(&mut skill_test).await;
    assert_eq!((total, partial), (json!(1), json!(false)));
    assert!(!reply.text().contains("searched"), "{}", reply.text());
    for number in 0..20 {
        let content = format!("{number} {}", "tea ".repeat(8_000));
        add(&mut skill_test, memory(&content)).await;
    }
    add(&mut skill_test, memory("the latest note")).await;
    let (total, partial, reply) = found(&mut skill_test).await;
    assert_eq!((total, partial), (json!(1), json!(true)));
    let line = "Found 1 memory about \"oldest latest\": \"the latest note\" \
                (older memories were not searched)";
    assert_eq!(reply.text(), line);
    // What a conversation begins with has read no more.
    let query = json!({"query": "latest"});
    let reply = call(&mut skill_test, "session_context", query).await;
    let data = reply.artifact_data("session_context").unwrap();
    assert_eq!(data["partial"], true, "{data}");
    // Another scope has its own 512 KB.
    let other = json!({"content": "the oldest of this talk", "layer": "session"});
    add(&mut skill_test, other).await;
    let texts = find(&mut skill_test, json!({"query": "oldest"})).await;
    assert_eq!(texts, ["the oldest of this talk"]);
}

#[tokio::test]
async fn a_memory_is_found_by_its_words_until_it_is_deleted() {
    let mut skill_test = skill_test();
    let added = add(
        &mut skill_test,
        json!({"content": "Ann drinks green tea", "layer": "user", "tags": ["drinks"],
               "metadata": {"source": "chat"}, "importance": 0.9}),
    )
    .await;
    assert_eq!(added["layer"], "user");
    assert_eq!(added["indexed"], "lexical");
    assert!(added.get("expiresAt").is_none());
    add(
        &mut skill_test,
        json!({"content": "The server is in Oslo", "layer": "user"}),
    )
    .await;

    let reply = call(&mut skill_test, "memory_search", json!({"query": "tea"})).await;
    let found = reply.artifact_data("memory_search").unwrap();
    assert_eq!(found["total"], 1);
    let [first] = found["results"].as_array().unwrap().as_slice() else {
        panic!("{found}");
    };
    assert_eq!(first["id"], added["id"]);
    assert_eq!(first["metadata"], json!({"source": "chat"}));
    assert_eq!(first["createdAt"], added["createdAt"]);
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea", "tags": ["food"]}))
            .await
            .len(),
        0
    );
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea", "layers": ["team"]}))
            .await
            .len(),
        0
    );

    for is_deleted in [true, false] {
        let gone = json!({"id": added["id"], "layer": "user"});
        let reply = call(&mut skill_test, "memory_delete", gone).await;
        let answer = reply.artifact_data("memory_delete").unwrap();
        assert_eq!(answer["deleted"], is_deleted);
        assert_eq!(answer.get("remains").is_some(), is_deleted, "{answer}");
        assert_eq!(
            find(&mut skill_test, json!({"query": "tea"})).await.len(),
            0
        );
    }
}

#[tokio::test]
async fn a_memory_in_words_asks_for_its_layer() {
    let mut skill_test = skill_test();
    let asked = skill_test.send("Remember that I like tea").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    assert!(
        asked.text().starts_with("In which layer: agent, user"),
        "{}",
        asked.text()
    );
    let asked = skill_test.send("planet").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    let done = skill_test.send("User").await.unwrap();
    assert_eq!(done.artifact_data("memory_add").unwrap()["layer"], "user");
    skill_test.new_task().skill("memory_search");
    let reply = skill_test.send("tea").await.unwrap();
    assert_eq!(reply.artifact_data("memory_search").unwrap()["total"], 1);
}

#[tokio::test]
async fn a_memory_is_stored_as_it_was_sent() {
    let mut skill_test = skill_test();
    let content = "Write to ann@example.com about tea";
    let memory =
        json!({"content": content, "layer": "user", "metadata": {"from": "bob@example.com"}});
    let added = add(&mut skill_test, memory).await;
    assert_eq!(added.get("redacted"), None, "{added}");
    let reply = call(&mut skill_test, "memory_search", json!({"query": "tea"})).await;
    let found = &reply.artifact_data("memory_search").unwrap()["results"][0];
    assert_eq!(found["content"], content);
    assert_eq!(found["metadata"]["from"], "bob@example.com");
}

#[tokio::test]
async fn narrow_layers_come_first_and_a_scope_of_others_is_not_seen() {
    let mut skill_test = skill_test();
    let lead = caller(
        "acme",
        "ann",
        &["role:tech-lead", "project:shop", "team:red"],
    );
    let admin = caller("acme", "eve", &["role:admin"]);
    be(&mut skill_test, admin);
    add(
        &mut skill_test,
        json!({"content": "The company buys tea", "layer": "company"}),
    )
    .await;
    be(&mut skill_test, lead);
    for (layer, content) in [
        ("team", "The team drinks tea at four"),
        ("project", "The project sells tea"),
        ("user", "I like tea"),
        ("session", "We talk about tea"),
        ("agent", "Offer tea to Ann"),
    ] {
        add(&mut skill_test, json!({"content": content, "layer": layer})).await;
    }

    let all = find(&mut skill_test, json!({"query": "tea"})).await;
    assert_eq!(
        all,
        [
            "Offer tea to Ann",
            "I like tea",
            "We talk about tea",
            "The project sells tea",
            "The team drinks tea at four",
            "The company buys tea",
        ]
    );
    be(
        &mut skill_test,
        caller("acme", "bob", &["role:viewer", "project:shop", "team:blue"]),
    );
    let seen = find(&mut skill_test, json!({"query": "tea"})).await;
    assert_eq!(seen, ["The project sells tea", "The company buys tea"]);
    be(
        &mut skill_test,
        caller("other", "ann", &["role:admin", "project:shop", "team:red"]),
    );
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await.len(),
        0
    );
}

#[tokio::test]
async fn what_the_role_does_not_allow_is_rejected_and_a_foreign_scope_looks_absent() {
    let mut skill_test = skill_test();
    be(
        &mut skill_test,
        caller("acme", "ann", &["role:developer", "project:shop"]),
    );
    let added = add(
        &mut skill_test,
        json!({"content": "tea", "layer": "project"}),
    )
    .await;
    let gone = json!({"id": added["id"], "layer": "project"});
    be(
        &mut skill_test,
        caller("acme", "carl", &["role:viewer", "project:shop"]),
    );
    let reply = call(&mut skill_test, "memory_delete", gone.clone()).await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));
    assert!(reply.text().contains("developer"), "{}", reply.text());
    let reply = call(
        &mut skill_test,
        "memory_add",
        json!({"content": "x", "layer": "company"}),
    )
    .await;
    assert_eq!(reply.state(), Some(TaskState::Rejected));

    be(&mut skill_test, caller("acme", "bob", &["role:admin"]));
    let foreign = json!({"id": added["id"], "layer": "project", "scopeId": "shop"});
    let reply = call(&mut skill_test, "memory_delete", foreign).await;
    assert_eq!(
        reply.artifact_data("memory_delete"),
        Some(json!({"deleted": false}))
    );
    be(
        &mut skill_test,
        caller("acme", "bob", &["role:admin", "project:a", "project:b"]),
    );
    let reply = call(&mut skill_test, "memory_delete", gone).await;
    assert_eq!(reply.error_code(), Some("MISSING_IDENTIFIER"));
    be(
        &mut skill_test,
        caller("acme", "ann", &["role:viewer", "project:shop"]),
    );
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await,
        ["tea"]
    );
}

#[tokio::test]
async fn memories_of_a_conversation_end_after_a_day_or_when_the_caller_says() {
    let mut skill_test = skill_test();
    for (content, layer, ttl) in [
        ("tea now", "session", None),
        ("tea soon", "user", Some(60)),
        ("tea always", "user", None),
    ] {
        let mut memory = json!({"content": content, "layer": layer});
        if let Some(seconds) = ttl {
            memory["ttlSeconds"] = json!(seconds);
        }
        add(&mut skill_test, memory).await;
    }
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await.len(),
        3
    );
    skill_test.advance(Duration::from_secs(61));
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await.len(),
        2
    );
}

#[tokio::test]
async fn a_turn_that_runs_again_remembers_once() {
    let mut skill_test = skill_test();
    let memory = json!({"content": "tea", "layer": "user"});
    for input in [memory.clone(), memory] {
        let reply = call(&mut skill_test, "memory_add", input).await;
        assert_eq!(reply.state(), Some(TaskState::Completed));
    }
    // Two tasks said the same, and a search shows duplicates once.
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await,
        ["tea"]
    );
}

#[tokio::test]
async fn a_deletion_that_runs_again_says_the_same() {
    let mut skill_test = skill_test();
    let added = add(&mut skill_test, json!({"content": "tea", "layer": "user"})).await;
    // After the step that has found the memory, the turn dies, and before or after the removal.
    skill_test.crash_after(1);
    let gone = json!({"id": added["id"], "layer": "user"});
    let reply = call(&mut skill_test, "memory_delete", gone).await;
    assert_eq!(
        reply.artifact_data("memory_delete").unwrap()["deleted"],
        true
    );
    assert_eq!(
        find(&mut skill_test, json!({"query": "tea"})).await.len(),
        0
    );
}

#[tokio::test]
async fn an_input_beyond_its_limits_is_refused_with_the_field() {
    let mut skill_test = skill_test();
    let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
    for (field, input, code) in [
        (
            "content",
            json!({"content": "x".repeat(32_769)}),
            "CONTENT_TOO_LONG",
        ),
        ("content", json!({"content": ""}), "CONTENT_EMPTY"),
        ("content", json!({"content": " \n"}), "CONTENT_EMPTY"),
        (
            "metadata",
            json!({"content": "x", "metadata": {"a": "b".repeat(4096)}}),
            "CONTENT_TOO_LONG",
        ),
        (
            "tags",
            json!({"content": "x", "tags": many}),
            "INVALID_INPUT",
        ),
        (
            "importance",
            json!({"content": "x", "importance": 1.5}),
            "INVALID_INPUT",
        ),
    ] {
        let reply = call(&mut skill_test, "memory_add", input).await;
        assert_eq!(reply.error_code(), Some(code), "{field}");
        assert!(reply.text().contains(field), "{}", reply.text());
    }
    let largest = json!({"content": "x".repeat(32_768), "layer": "user"});
    assert_eq!(add(&mut skill_test, largest).await["layer"], "user");
    for input in [
        json!({"content": "x", "tenant_id": "other"}),
        json!({"content": "x", "tenantContext": {}}),
        json!({"content": "x", "layer": "planet"}),
    ] {
        let input = Content::from_data(&input).unwrap();
        let error = skill_test.new_task().skill("memory_add").send(input).await;
        assert!(error.is_err());
    }
    for input in [
        json!({"query": ""}),
        json!({"query": "x".repeat(1025)}),
        json!({"query": "x", "limit": 51}),
        json!({"query": "x", "threshold": 2}),
    ] {
        let reply = call(&mut skill_test, "memory_search", input).await;
        assert_eq!(reply.error_code(), Some("INVALID_INPUT"));
    }
}
