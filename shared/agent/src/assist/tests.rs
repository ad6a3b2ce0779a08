//! The assistant with a scripted model: what it asks, what it stores, and what its model reads.

use crate::agent;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::Content;
use a2a_lambda::skill::model::{ModelMessage, ModelRequest};
use a2a_lambda::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda::testing::{Reply, ScriptedModel, SkillTest};
use serde_json::{Value, json};

const MESSAGE: &str = "Name the source of every figure";

fn client(model: &ScriptedModel) -> SkillTest {
    let mut client = SkillTest::new(&agent().unwrap(), "assist");
    client.model(model.clone());
    client.as_caller(Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: "default".to_owned(),
        scopes: ["role:admin", "project:shop"].map(str::to_owned).into(),
    });
    client
}

fn memory(content: &str) -> Value {
    json!({"content": content, "layer": "user"})
}

async fn call(client: &mut SkillTest, skill: &str, input: Value) -> Reply {
    let input = Content::from_data(&input).unwrap();
    let reply = client.new_task().skill(skill).send(input).await.unwrap();
    assert_eq!(
        reply.state(),
        Some(TaskState::Completed),
        "{}",
        reply.text()
    );
    client.new_task().skill("assist");
    reply
}

/// Accepts a policy of the company, whose message is a constraint.
async fn constrain(client: &mut SkillTest) {
    let policy = json!({"id": "figures", "layer": "company", "rules": [
        {"id": "source", "kind": "must_use", "target": "code", "pattern": "source",
         "severity": "block", "message": MESSAGE}]});
    let item = json!({"path": "policies/figures.json", "layer": "company"});
    let mut new = item.clone();
    new["kind"] = json!("policy");
    new["content"] = json!(policy.to_string());
    new["message"] = json!("Write it");
    call(client, "knowledge_store", new).await;
    for status in ["proposed", "accepted"] {
        let mut change = item.clone();
        change["to"] = json!(status);
        change["message"] = json!("Yes");
        call(client, "knowledge_status", change).await;
    }
}

fn texts(request: &ModelRequest) -> Vec<String> {
    let texts = request.messages.iter().filter_map(|message| match message {
        ModelMessage::User(_) => Some(message.user_text()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn memory_is_stored_only_after_its_user_said_yes() {
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory("Ann likes tea"))
        .text("I did not.")
        .tool_call("memory_add", memory("Ann likes coffee"))
        .text("I remember that.");
    let mut client = client(&model);
    let asked = client.send("Remember what I like: tea").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    assert!(asked.text().contains("memory_add"), "{}", asked.text());
    assert!(asked.text().contains("Ann likes tea"), "{}", asked.text());
    let reply = client.send("no").await.unwrap();
    assert_eq!(reply.artifact_text("assist").as_deref(), Some("I did not."));
    let query = json!({"query": "Ann"});
    let none = call(&mut client, "memory_search", query.clone()).await;
    assert_eq!(none.artifact_data("memory_search").unwrap()["total"], 0);

    client.send("Then remember coffee").await.unwrap();
    client.send("yes").await.unwrap();
    let one = call(&mut client, "memory_search", query).await;
    assert_eq!(one.artifact_data("memory_search").unwrap()["total"], 1);
    model.finish().unwrap();
}

#[tokio::test]
async fn another_conversation_finds_a_memory_as_data_and_never_in_the_system_prompt() {
    let model = ScriptedModel::new().text("You like tea.");
    let mut client = client(&model);
    call(&mut client, "memory_add", memory("Ann likes tea")).await;
    client.new_context();
    client.send("Which tea or coffee do I like?").await.unwrap();
    let requests = model.requests();
    let request = requests.last().unwrap();
    assert!(
        !request.system.contains("Ann likes tea"),
        "{}",
        request.system
    );
    let messages = texts(request);
    let data: Vec<_> = messages
        .iter()
        .filter(|text| text.contains("Ann likes tea"))
        .collect();
    assert_eq!(data.len(), 1, "{messages:?}");
}

#[tokio::test]
async fn each_turn_has_the_constraints_of_its_moment() {
    let model = ScriptedModel::new().text("Hello.").text("Seven.");
    let mut client = client(&model);
    client.send("Hello").await.unwrap();
    assert!(!model.requests()[0].system.contains(MESSAGE));
    constrain(&mut client).await;
    client.send("How many pieces do we have?").await.unwrap();
    let requests = model.requests();
    let system = &requests[1].system;
    assert_eq!(system.matches(MESSAGE).count(), 1, "{system}");
    // The answer before is part of the conversation.
    assert!(format!("{:?}", requests[1].messages).contains("Hello."));
}

#[tokio::test]
async fn answer_after_a_confirmation_is_part_of_the_conversation() {
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory("Ann likes tea"))
        .text("Stored, Ann.")
        .text("I said that.");
    let mut client = client(&model);
    client.send("Remember what I like: tea").await.unwrap();
    client.send("yes").await.unwrap();
    client.new_task().send("What did you say?").await.unwrap();
    let requests = model.requests();
    assert!(format!("{:?}", requests[2].messages).contains("Stored, Ann."));
}

#[tokio::test]
async fn a_model_reads_no_command_in_the_answer_to_its_question() {
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory("Ann likes tea"))
        .text("I did not.");
    let mut client = client(&model);
    client
        .send("/assist Remember that I like tea")
        .await
        .unwrap();
    client.send("/assist no").await.unwrap();
    let sent = serde_json::to_string(&*model.requests()).unwrap();
    assert!(sent.contains("the user refused"), "{sent}");
    assert!(!sent.contains("/assist"), "{sent}");
}
