//! A policy is in force when its commit is, also if its writer dies before it lists the policy.

use super::skills::{done, governed, policy, put_in_force, rule};
use crate::agent;
use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The list of items, as documents.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct ItemList(BTreeMap<String, Value>);

/// Reads the list.
#[skill(id = "read", tags = ["test"])]
async fn read(cx: &mut TaskContext<'_>, _input: String) -> AgentResult<ItemList> {
    let items = cx.documents("knowledge/items")?;
    let documents = items.list::<Value>(None, 250).await?.into_iter();
    let entries = documents.map(|document| (document.key, document.value));
    Ok(ItemList(entries.collect()))
}

/// Replaces the list.
#[skill(id = "write", tags = ["test"])]
async fn write(cx: &mut TaskContext<'_>, list: ItemList) -> AgentResult<String> {
    let items = cx.documents("knowledge/items")?;
    for document in items.list::<Value>(None, 250).await? {
        items.remove(&document.key).await?;
    }
    for (key, entry) in &list.0 {
        items.put(key, entry).await?;
    }
    Ok("written".to_owned())
}

/// The list of items.
async fn list(skill_test: &mut SkillTest) -> Value {
    let tests = Agent::builder("test").skill(read).skill(write);
    skill_test.redeploy(&tests.build().unwrap());
    let reply = skill_test
        .new_task()
        .skill("read")
        .send("go")
        .await
        .unwrap();
    skill_test.redeploy(&agent().unwrap());
    reply.artifact_data("read").unwrap()
}

/// Makes the list as it was before a commit: its writer has moved the head, and died.
async fn unlist(skill_test: &mut SkillTest, before: &Value) {
    let tests = Agent::builder("test").skill(read).skill(write);
    skill_test.redeploy(&tests.build().unwrap());
    let before = Content::from_data(before).unwrap();
    let reply = skill_test
        .new_task()
        .skill("write")
        .send(before)
        .await
        .unwrap();
    assert_eq!(reply.artifact_text("write").as_deref(), Some("written"));
    skill_test.redeploy(&agent().unwrap());
}

/// Whether governance enforces the policy that forbids `unwrap`, and whether a query finds it.
async fn is_in_force(skill_test: &mut SkillTest) -> (bool, bool) {
    let bad = json!({"layer": "project", "context": {"content": "x.unwrap()"}});
    let validated = done(skill_test, "governance_validate", bad).await;
    let found = done(skill_test, "knowledge_query", json!({"kind": ["policy"]})).await;
    let found = found["items"].as_array().unwrap();
    let is_found = found
        .iter()
        .any(|it| it["path"] == "policies/mandatory.json");
    (validated["valid"] == false, is_found)
}

#[tokio::test]
async fn unlisted_policy_of_a_dead_writer_is_in_force() {
    let other = |id| {
        policy(
            id,
            false,
            "merge",
            &[rule("r", "must_not_use", "code", "panic", "block")],
        )
    };
    let mut skill_test = governed(&other("first")).await;
    let forbids = rule("no-unwrap", "must_not_use", "code", "unwrap", "block");
    let mandatory = policy("second", true, "merge", &[forbids]);
    let name = json!({"path": "policies/mandatory.json", "layer": "company"});
    let mut item = name.clone();
    item["kind"] = json!("policy");
    item["content"] = json!(mandatory.to_string());
    item["message"] = json!("Rules");
    done(&mut skill_test, "knowledge_store", item).await;
    let mut change = name.clone();
    change["message"] = json!("Yes");
    for status in ["proposed", "accepted"] {
        let before = list(&mut skill_test).await;
        change["to"] = json!(status);
        done(&mut skill_test, "knowledge_status", change.clone()).await;
        unlist(&mut skill_test, &before).await;
    }
    assert_eq!(is_in_force(&mut skill_test).await, (true, true));
    // The next writer lists it, whatever it writes.
    put_in_force(&mut skill_test, "policies/third.json", &other("third")).await;
    assert_eq!(is_in_force(&mut skill_test).await, (true, true));
}
