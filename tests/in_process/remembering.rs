//! What an organisation remembers and decides, for clients that call its skills by text commands:
//! they send no metadata of ours.

use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};

const REST: Dialect = Dialect::Rest10;
/// A lead of the team red, a colleague of another team, and the lead of another tenant.
const LEAD: &str = "acme:ann:default:role:admin,team:red,project:shop";
const COLLEAGUE: &str = "acme:bob:default:role:admin,team:blue";
const STRANGER: &str = "other:ann:default:role:admin,team:red";

fn world() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

/// The task of a text.
async fn says(world: &World, caller: &'static str, text: &str) -> Value {
    let say = Say {
        skill: None,
        ..Say::to("", text)
    };
    let request: Request = REST.send(&say).from(caller);
    assert!(!String::from_utf8_lossy(&request.body).contains("a2a-lambda"));
    REST.task(&world.call(&request).await)
}

/// The task of a command with data.
async fn runs(world: &World, caller: &'static str, skill: &str, input: &Value) -> Value {
    says(world, caller, &format!("/{skill} {input}")).await
}

/// The output of a call that completes.
async fn done(world: &World, caller: &'static str, skill: &str, input: &Value) -> Value {
    output(&runs(world, caller, skill, input).await)
}

fn output(task: &Value) -> Value {
    assert_eq!(REST.state(task), "completed", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap();
    artifacts.last().unwrap()["parts"][0]["data"].clone()
}

/// The code and the text with which a task failed.
fn failure(task: &Value) -> String {
    assert_eq!(REST.state(task), "failed", "{task}");
    task["status"]["message"].to_string()
}

#[tokio::test(start_paused = true)]
async fn deletion_says_true_only_if_a_memory_was_deleted() {
    let world = world();
    let memory = json!({"content": "The team drinks tea", "layer": "team"});
    let added = done(&world, LEAD, "memory_add", &memory).await;
    let named = json!({"id": added["id"], "layer": "team", "scopeId": "red"});
    let mut invented = named.clone();
    invented["id"] = json!("mem-0123456789abcdef01234567");
    let mut elsewhere = named.clone();
    elsewhere["scopeId"] = json!("blue");
    // Of others, of another tenant, an invented one, and under another scope: all look absent.
    for (caller, name) in [
        (COLLEAGUE, &named),
        (COLLEAGUE, &invented),
        (COLLEAGUE, &elsewhere),
        (STRANGER, &named),
        (LEAD, &invented),
        (LEAD, &elsewhere),
    ] {
        let answer = done(&world, caller, "memory_delete", name).await;
        assert_eq!(answer, json!({"deleted": false}), "{caller} {name}");
    }
    let search = json!({"query": "tea"});
    assert_eq!(
        done(&world, LEAD, "memory_search", &search).await["total"],
        1
    );

    let gone = done(&world, LEAD, "memory_delete", &named).await;
    assert_eq!(gone["deleted"], true);
    let remains = gone["remains"].to_string();
    for place in ["tasks", "contexts", "stream", "backups", "35 days"] {
        assert!(remains.contains(place), "{remains}");
    }
    assert_eq!(
        done(&world, LEAD, "memory_search", &search).await["total"],
        0
    );
    let again = done(&world, LEAD, "memory_delete", &named).await;
    assert_eq!(again, json!({"deleted": false}));
}

#[tokio::test(start_paused = true)]
async fn drafts_that_a_query_hides_are_counted() {
    let world = world();
    let decision = json!({"path": "adr/1.md", "layer": "team", "kind": "adr",
                          "content": "# Use DynamoDB", "message": "Decide"});
    done(&world, LEAD, "knowledge_store", &decision).await;
    let answer = output(&says(&world, LEAD, "What is our decision on DynamoDB").await);
    let hidden = json!({"items": [], "total": 0, "alsoMatching": {"draft": 1}});
    assert_eq!(answer, hidden);
    // Those that do not match, or that the caller may not see, are not counted.
    let other = output(&says(&world, LEAD, "What is our decision on Postgres").await);
    assert_eq!(other, json!({"items": [], "total": 0}));
    let foreign = output(&says(&world, COLLEAGUE, "What is our decision on DynamoDB").await);
    assert_eq!(foreign, json!({"items": [], "total": 0}));
    let drafts = json!({"query": "dynamodb", "status": ["draft"]});
    let shown = done(&world, LEAD, "knowledge_query", &drafts).await;
    assert_eq!(shown["total"], 1);
    assert_eq!(shown.get("alsoMatching"), None);
}

#[tokio::test(start_paused = true)]
async fn successor_of_an_item_has_to_exist_and_is_shown() {
    let world = world();
    for path in ["adr/1.md", "adr/2.md"] {
        let item = json!({"path": path, "layer": "team", "kind": "adr", "content": "# Storage",
                          "message": "Decide"});
        done(&world, LEAD, "knowledge_store", &item).await;
        for to in ["proposed", "accepted"] {
            let change = json!({"path": path, "layer": "team", "to": to, "message": "Yes"});
            done(&world, LEAD, "knowledge_status", &change).await;
        }
    }
    let change = |by: &str| {
        json!({"path": "adr/1.md", "layer": "team", "to": "superseded", "supersededBy": by,
               "message": "Newer"})
    };
    for by in ["adr/3.md", "adr/1.md"] {
        let refused = runs(&world, LEAD, "knowledge_status", &change(by)).await;
        let why = failure(&refused);
        assert!(why.contains("supersededBy"), "{by}: {why}");
    }
    done(&world, LEAD, "knowledge_status", &change("adr/2.md")).await;
    let name = json!({"path": "adr/1.md", "layer": "team"});
    let shown = done(&world, LEAD, "knowledge_show", &name).await;
    assert_eq!(shown["item"]["supersededBy"], "adr/2.md");
    let query = json!({"query": "storage", "status": ["superseded"]});
    let listed = done(&world, LEAD, "knowledge_query", &query).await;
    assert_eq!(listed["items"][0]["supersededBy"], "adr/2.md");
    assert_eq!(listed["alsoMatching"], json!({"accepted": 1}));
}
