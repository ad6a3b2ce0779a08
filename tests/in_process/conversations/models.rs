//! Conversations with a model that chooses what no rule decides.

use super::*;
use a2a_lambda::skill::model::ModelRequest;
use a2a_lambda::testing::ScriptedModel;

fn thinking(router: &ScriptedModel) -> World {
    let agent = |_| reference_agent::agent();
    World::thinking(agent, &ScriptedModel::never(), router).unwrap()
}

/// Lets the model give this answer next.
fn then(router: &ScriptedModel, answer: &Value) {
    drop(router.clone().answer(answer.clone()));
}

fn flight() -> Turn {
    says("Book a flight", Begins("book-flight", "flight"))
}

fn logo() -> Turn {
    says("Generate logo", Begins("logo", "logo"))
}

/// What the model reads.
fn text_of(request: &ModelRequest) -> String {
    serde_json::to_string(request).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_model_says_which_task_a_message_answers_or_is_about() {
    let router = ScriptedModel::new();
    let world = thinking(&router);
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client.plays(&flight()).await;
    client.plays(&logo()).await;
    let answers =
        json!({"skill": "book-flight", "task": client.id("flight"), "relation": "answers"});
    then(&router, &answers);
    client
        .plays(&says("the capital of Finland", Answers("flight")))
        .await;
    let about = json!({"skill": "logo", "task": client.id("logo"), "relation": "about"});
    then(&router, &about);
    client
        .plays(&says(
            "a bit more like the blue sky",
            Refines("logo", "logo", "blue"),
        ))
        .await;
    then(&router, &json!({"skill": "logo", "relation": "new"}));
    client
        .plays(&says("something round for my shop", Begins("logo", "shop")))
        .await;
    let requests = router.requests();
    let read = text_of(&requests[0]);
    for shown in [
        &client.id("flight"),
        &client.id("logo"),
        "input-required",
        "logo.png",
        "spokeLast",
    ] {
        assert!(read.contains(shown), "{shown}: {read}");
    }
    // What was said before is not shown.
    assert!(!read.contains("Where to?"), "{read}");
    assert_eq!(router.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_model_was_not_shown_is_no_choice() {
    let router = ScriptedModel::new();
    let world = thinking(&router);
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client
        .plays(&says("Generate logo", Begins("logo", "other")))
        .await;
    client.context = None;
    client.plays(&flight()).await;
    for relation in ["answers", "about"] {
        let wrong = json!({"skill": "logo", "task": client.id("other"), "relation": relation});
        then(&router, &wrong);
    }
    // The conversation decides.
    client.plays(&says("Helsinki", Answers("flight"))).await;
    assert_eq!(router.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_conversation_decides_when_the_model_is_late() {
    let late = ScriptedModel::new().wait(Duration::from_secs(3600));
    let router = late.answer(json!({"skill": "logo"}));
    let world = thinking(&router);
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client.plays(&flight()).await;
    client.plays(&says("Helsinki", Answers("flight"))).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_is_not_asked_about_credentials_and_choices() {
    let router = ScriptedModel::new();
    let world = thinking(&router);
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    let format = || says("Format my report", Begins("format-report", "format"));
    client.plays(&format()).await;
    client
        .plays(&says("PDF", Answers("format")).to("format"))
        .await;
    client.plays(&says("sk-secret-123", Refused)).await;
    assert_eq!(router.requests().len(), 0);
}
