//! Memory, knowledge and governance of the reference agent, by text.

use super::{Client, code, data, reference};
use a2a_lambda_tests::dialect::Dialect;
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};

const REST: Dialect = Dialect::Rest10;
/// Who leads the project `shop`, who writes in it, who reads there, and who is only a member.
const LEAD: &str = "acme:ann:default:role:admin,project:shop,team:red";
const WRITER: &str = "acme:dan:default:role:developer,project:shop,team:blue";
const READER: &str = "acme:bob:default:role:viewer,project:shop,team:blue";
const MEMBER: &str = "acme:eve:default:project:shop,team:blue";
/// Somebody with the same roles in another tenant.
const STRANGER: &str = "other:ann:default:role:admin,project:shop,team:red";

const fn caller<'w>(world: &'w World, caller: &'static str) -> Client<'w> {
    Client::new(world, REST).from(caller)
}

impl Client<'_> {
    /// The task of a skill that is called by its name and JSON, as text.
    async fn asks(&self, skill: &str, input: &Value) -> Value {
        self.says(&format!("/{skill} {input}")).await
    }

    /// The output of a call that completes.
    async fn done(&self, skill: &str, input: Value) -> Value {
        let task = self.asks(skill, &input).await;
        assert_eq!(self.state(&task), "completed", "{skill} {input}: {task}");
        data(&task, skill).clone()
    }

    /// The contents of the memories that match.
    async fn remembers(&self, query: &str) -> Vec<String> {
        let found = self.done("memory_search", json!({"query": query})).await;
        let results = found["results"].as_array().unwrap().iter();
        results
            .map(|it| it["content"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Puts an item into force that is stored already.
    async fn accepts(&self, place: &Value) {
        for status in ["proposed", "accepted"] {
            let mut change = place.clone();
            change["to"] = json!(status);
            change["message"] = json!(format!("Now {status}"));
            let changed = self.done("knowledge_status", change).await;
            assert_eq!(changed["to"], status);
        }
    }

    /// Stores a policy and puts it into force.
    async fn decrees(&self, layer: &str, policy: &Value) {
        let place = json!({"path": "policies/code.json", "layer": layer});
        let mut item = place.clone();
        item["kind"] = json!("policy");
        item["content"] = json!(policy.to_string());
        item["message"] = json!("A rule");
        self.done("knowledge_store", item).await;
        self.accepts(&place).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_is_found_by_those_who_share_it_until_its_owner_deletes_it() {
    let world = reference();
    let [ann, bob, stranger] = [LEAD, READER, STRANGER].map(|it| caller(&world, it));
    let own = json!({"content": "Ann drinks green tea", "layer": "user"});
    let own = ann.done("memory_add", own).await;
    let team = json!({"content": "The red team drinks tea at four", "layer": "team"});
    ann.done("memory_add", team).await;
    let project = json!({"content": "The shop sells tea", "layer": "project"});
    ann.done("memory_add", project).await;
    let found = ann.remembers("tea").await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(bob.remembers("tea").await, ["The shop sells tea"]);
    assert_eq!(stranger.remembers("tea").await, [""; 0]);
    assert_eq!(ann.remembers("coffee").await, [""; 0]);
    let name = json!({"id": own["id"], "layer": "user"});
    for other in [&bob, &stranger] {
        other.asks("memory_delete", &name).await;
        assert_eq!(ann.remembers("green").await, ["Ann drinks green tea"]);
    }
    let deleted = ann.done("memory_delete", name).await;
    assert_eq!(deleted["deleted"], true);
    assert_eq!(ann.remembers("green").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_found_in_force_and_shown_with_its_history() {
    let world = reference();
    let [ann, bob, stranger] = [LEAD, READER, STRANGER].map(|it| caller(&world, it));
    let place = json!({"path": "adr/0001-use-dynamodb.md", "layer": "project"});
    let mut item = place.clone();
    item["kind"] = json!("adr");
    item["content"] = json!("# Use DynamoDB\n\nOne table.");
    item["message"] = json!("Decide");
    let stored = ann.done("knowledge_store", item.clone()).await;
    let query = || json!({"query": "dynamodb"});
    assert_eq!(
        bob.done("knowledge_query", query()).await["items"],
        json!([])
    );
    ann.accepts(&place).await;
    let found = bob.done("knowledge_query", query()).await;
    assert_eq!(found["items"][0]["title"], "Use DynamoDB");
    assert_eq!(found["items"][0]["status"], "accepted");
    let shown = bob.done("knowledge_show", place.clone()).await;
    let history = shown["history"].as_array().unwrap().iter();
    let messages: Vec<&Value> = history.map(|it| &it["message"]).collect();
    assert_eq!(
        json!(messages),
        json!(["Now accepted", "Now proposed", "Decide"])
    );
    assert_eq!(
        stranger.done("knowledge_show", place).await["item"],
        Value::Null
    );
    // Who writes on what is no longer the newest commit changes nothing.
    item["expect"] = stored["commit"].clone();
    item["content"] = json!("Other");
    let stale = ann.asks("knowledge_store", &item).await;
    assert_eq!(ann.state(&stale), "failed", "{stale}");
    let found = bob.done("knowledge_query", query()).await;
    assert_eq!(found["items"][0]["summary"], "One table.");
}

/// A policy against `unwrap`.
fn no_unwrap(layer: &str, is_mandatory: bool) -> Value {
    json!({
        "id": "code", "layer": layer, "mandatory": is_mandatory,
        "rules": [{"id": "no-unwrap", "kind": "must_not_use", "target": "code", "pattern": "unwrap",
                   "severity": "block", "message": "Return an error instead"}],
    })
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_policy_judges_every_project_and_none_weakens_it() {
    let world = reference();
    let [ann, bob, stranger] = [LEAD, READER, STRANGER].map(|it| caller(&world, it));
    let check = |text: &str| json!({"layer": "project", "context": {"content": text}});
    let drift = || json!({"projectId": "shop", "context": {"content": "x.unwrap()"}});
    ann.decrees("company", &no_unwrap("company", true)).await;
    for is_weakened in [false, true] {
        if is_weakened {
            let mut weaker = no_unwrap("project", false);
            weaker["merge"] = json!("override");
            weaker["rules"] = json!([]);
            ann.decrees("project", &weaker).await;
        }
        let judged = bob.done("governance_validate", check("x.unwrap()")).await;
        assert_eq!(judged["valid"], false, "{judged}");
        let violations = judged["violations"].to_string();
        assert!(violations.contains("Return an error instead"), "{judged}");
        let drifted = bob.done("governance_drift_check", drift()).await;
        assert_eq!(drifted["driftScore"].as_f64(), Some(1.0), "{drifted}");
    }
    let judged = stranger
        .done("governance_validate", check("x.unwrap()"))
        .await;
    assert_eq!(judged["valid"], true, "{judged}");
}

#[tokio::test(start_paused = true)]
async fn a_policy_allows_what_breaks_no_rule_of_it() {
    let world = reference();
    let [ann, bob] = [LEAD, READER].map(|it| caller(&world, it));
    let mut policy = no_unwrap("company", false);
    policy["rules"][0]["kind"] = json!("must_use");
    policy["rules"][0]["pattern"] = json!("license");
    ann.decrees("company", &policy).await;
    for (text, is_valid) in [("the license", true), ("no such word", false)] {
        let check = json!({"layer": "project", "context": {"content": text}});
        let judged = bob.done("governance_validate", check).await;
        assert_eq!(judged["valid"], is_valid, "{text}: {judged}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_does_what_it_may_and_nothing_in_a_scope_of_others() {
    let world = reference();
    let item = |path: &str| json!({"path": path, "layer": "project", "kind": "adr", "content": "# One", "message": "x"});
    let change =
        |path: &str, to: &str| json!({"path": path, "layer": "project", "to": to, "message": "x"});
    let memory = |team: &str| json!({"content": "x", "layer": "team", "scopeId": team});
    let own = || json!({"content": "mine", "layer": "user"});
    // For each caller: whether it stores, proposes, accepts, and remembers for its team.
    for (who, may) in [
        (MEMBER, [false, false, false, false]),
        (READER, [false, false, false, false]),
        (WRITER, [true, true, false, true]),
        (LEAD, [true, true, true, true]),
    ] {
        let client = caller(&world, who);
        let team = if who == LEAD { "red" } else { "blue" };
        let other = if who == LEAD { "blue" } else { "red" };
        // Somebody else stores and proposes what the caller may not.
        let path = format!("adr/{}.md", who.len());
        let lead = caller(&world, LEAD);
        let calls = [
            ("knowledge_store", item(&path)),
            ("knowledge_status", change(&path, "proposed")),
            ("knowledge_status", change(&path, "accepted")),
            ("memory_add", memory(team)),
        ];
        for ((skill, input), may) in calls.iter().zip(may) {
            let state = client.state(&client.asks(skill, input).await);
            let expected = if may { "completed" } else { "rejected" };
            assert_eq!(state, expected, "{who} {skill} {input}");
            if !may {
                lead.done(skill, lead_of(skill, input)).await;
            }
        }
        let foreign = client.asks("memory_add", &memory(other)).await;
        assert_eq!(client.state(&foreign), "rejected", "{who}");
        client.done("memory_add", own()).await;
    }
}

/// The same call in the team of the lead.
fn lead_of(skill: &str, input: &Value) -> Value {
    let mut input = input.clone();
    if skill == "memory_add" {
        input["scopeId"] = json!("red");
    }
    input
}

#[tokio::test(start_paused = true)]
async fn bad_input_of_an_operation_is_refused_with_its_field() {
    let world = reference();
    let ann = caller(&world, LEAD);
    let item = |path: &str| json!({"path": path, "layer": "project", "kind": "adr", "content": "x", "message": "x"});
    for path in ["../a", "/a", "a/../b", "%2e%2e/a", ".git/config", "a\\b"] {
        let failed = ann.asks("knowledge_store", &item(path)).await;
        assert_eq!(code(&failed), "INVALID_INPUT", "{path}");
        assert!(ann.words(&failed).contains("path"), "{failed}");
    }
    let importance = json!({"content": "x", "importance": 1.5});
    let failed = ann.asks("memory_add", &importance).await;
    assert_eq!(code(&failed), "INVALID_INPUT");
    assert!(ann.words(&failed).contains("importance"), "{failed}");
    let mut policy = no_unwrap("company", true);
    policy["rules"][0]["kind"] = json!("must_match");
    policy["rules"][0]["pattern"] = json!("(");
    let mut item = item("policies/code.json");
    item["kind"] = json!("policy");
    item["layer"] = json!("company");
    item["content"] = json!(policy.to_string());
    let failed = ann.asks("knowledge_store", &item).await;
    assert_eq!(code(&failed), "CONSTRAINT_SYNTAX_ERROR");
    // A tenant is no member of an input, and a number is no text.
    for (skill, input) in [
        ("memory_add", json!({"content": "x", "tenant_id": "other"})),
        ("memory_add", json!({"content": "x", "importance": "much"})),
        ("knowledge_query", json!({"tenantContext": {}})),
        ("governance_validate", json!({"layer": "planet"})),
    ] {
        let text = format!("/{skill} {input}");
        let reply = ann.sends(&ann.message(&text, None, None)).await;
        let fault = Fault::new(REST, PARAMS);
        assert!(
            fault.check(&reply).is_ok() || reply.status == 400,
            "{text}: {}",
            reply.text()
        );
    }
    assert_eq!(ann.state(&ann.says("add 1 and 2").await), "completed");
}
