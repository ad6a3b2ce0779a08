//! A client that repeats the digest of a question whether tools may run.

use a2a_lambda::testing::ScriptedModel;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};

const KEY: &str = "a2a-lambda/confirm";

per_dialect! {
    paused ALL:
    an_answer_with_another_digest_confirms_nothing
}

/// Sends a message with this digest in its metadata.
async fn sends(world: &World, dialect: Dialect, say: &Say<'_>, digest: Option<&Value>) -> Value {
    let mut params = dialect.say(say);
    if let Some(digest) = digest {
        params["message"]["metadata"][KEY] = digest.clone();
    }
    dialect.task(&world.call(&dialect.request(Op::Send, "", &params)).await)
}

async fn an_answer_with_another_digest_confirms_nothing(dialect: Dialect) {
    let memory = json!({"content": "Ann likes tea", "layer": "user"});
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory)
        .text("I remember that.");
    let agent = |_| reference_agent::agent();
    let world = World::thinking(agent, &model, &ScriptedModel::never()).unwrap();
    let asked = sends(&world, dialect, &Say::to("assist", "Keep it in mind"), None).await;
    assert_eq!(dialect.state(&asked), "input-required", "{asked}");
    let parts = asked["status"]["message"][dialect.parts()]
        .as_array()
        .unwrap();
    let digest = &parts[0]["metadata"][KEY];
    let task = asked["id"].as_str().unwrap();
    let yes = |id| Say {
        id,
        ..Say::in_task(task, "yes")
    };
    for (id, wrong) in [("2", json!("0".repeat(64))), ("3", json!(7))] {
        let again = sends(&world, dialect, &yes(id), Some(&wrong)).await;
        assert_eq!(dialect.state(&again), "input-required", "{again}");
        let words = dialect.status_words(&again);
        assert!(words.contains("confirmed nothing"), "{words}");
    }
    assert_eq!(model.requests().len(), 1);
    let done = sends(&world, dialect, &yes("4"), Some(digest)).await;
    assert_eq!(dialect.state(&done), "completed", "{done}");
    model.finish().unwrap();
}
