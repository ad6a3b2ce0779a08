//! Skills that ask a language model, and the model that chooses a skill.

use super::{Client, artifact, code, data, reference};
use a2a_lambda::testing::ScriptedModel;
use a2a_lambda_tests::dialect::{Dialect, at};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_message_that_names_its_skill_or_is_declared_asks_no_model
    an_agent_without_a_model_says_so_in_the_error_of_the_task
}

const REST: Dialect = Dialect::Rest10;
const INSTRUCTIONS: &str = "You work for a small company. Use only facts that the input has.\n\n";
const RESUME: &str = "Summarize this resume: John Doe, john@example.com, github.com/johndoe";

/// The agent whose skills ask this model. No message of it needs the router's model.
fn thinking(model: &ScriptedModel) -> World {
    let agent = |_| reference_agent::models::agent();
    World::thinking(agent, model, &ScriptedModel::never()).unwrap()
}

fn user(github: &str) -> Value {
    json!({"name": "John Doe", "email": "john@example.com", "github_username": github})
}

#[tokio::test(start_paused = true)]
async fn a_resume_becomes_a_profile_after_one_call_of_a_model() {
    let model = ScriptedModel::new()
        .answer(user("johndoe"))
        .answer(user(""));
    let world = thinking(&model);
    let client = Client::new(&world, REST);
    let done = client.says(RESUME).await;
    assert_eq!(client.words(&done), "Successfully extracted user profile");
    assert_eq!(data(&done, "user_profile.json"), &user("johndoe"));
    // What the model did not find is asked for, and the model is not asked again.
    let asked = client.says(RESUME).await;
    assert_eq!(client.state(&asked), "input-required");
    assert_eq!(client.words(&asked), "Please provide your GitHub username.");
    let done = client.answers(&asked, "jd").await;
    assert_eq!(client.words(&done), "Profile completed!");
    assert_eq!(data(&done, "user_profile.json"), &user("jd"));
    let asked = model.requests();
    assert_eq!(asked.len(), 2);
    let system =
        format!("{INSTRUCTIONS}Extract name, email address and GitHub username from the resume.");
    assert!(asked.iter().all(|request| request.system == system));
}

#[tokio::test(start_paused = true)]
async fn a_report_of_three_calls_shows_each_part_when_it_is_there() {
    let points = json!([{"label": "Q4", "value": 7.5}]);
    let analysis = json!({"data_points": points, "insights": ["one figure"]});
    let charts = json!([{"title": "Revenue", "kind": "bar", "data_points": points}]);
    let report = json!({"summary": "One figure.", "charts": charts});
    let model = ScriptedModel::new().answer(analysis.clone());
    let model = model
        .answer(json!({"value": charts}))
        .answer(report.clone());
    let world = thinking(&model);
    let client = Client::new(&world, REST);
    let params = client.message("Generate Q4 financial report", None, None);
    let frames = client.streams(&params).await;
    let expected = [
        "Analyzing data...",
        "analysis.json",
        "Generating charts...",
        "charts.json",
        "Compiling final report...",
        "final_report.json",
        "Report generation complete!",
    ];
    assert_eq!(client.shown(&frames), expected);
    let task = json!({"id": at(&frames[0].data, "/task/id")});
    let task = client.gets(&task).await;
    assert_eq!(data(&task, "analysis.json"), &analysis);
    assert_eq!(data(&task, "charts.json"), &charts);
    assert_eq!(data(&task, "final_report.json"), &report);
}

#[tokio::test(start_paused = true)]
async fn an_order_passes_two_functions_and_two_workers_with_tools() {
    let priced = json!([{"sku": "A-1", "pieces": 3, "cents": 250, "on_stock": true}]);
    let model = ScriptedModel::new()
        .answer(json!({"customer": "Ann", "lines": [{"sku": "A-1", "pieces": 3}]}))
        .answer(json!({"valid": true, "reason": null}))
        .tool_calls([
            ("price", json!({"sku": "A-1"})),
            ("stock", json!({"sku": "A-1"})),
        ])
        .answer(json!({"lines": priced}))
        .tool_call("euros", json!({"value": 750}))
        .answer(json!({"text": "Three A-1 for 7.50 €.", "total_cents": 750}))
        .answer(json!({"customer": "Bob", "lines": []}))
        .answer(json!({"valid": false, "reason": "no article is named"}));
    let world = thinking(&model);
    let client = Client::new(&world, REST);
    let letter = "Dear shop, please send three pieces of A-1. Ann";
    let done = client.says(letter).await;
    assert_eq!(client.words(&done), "Processing complete");
    assert_eq!(data(&done, "result.json")["total_cents"], 750);
    let said = serde_json::to_string(&model.requests()[5].messages).unwrap();
    assert!(
        said.contains("7.50 €"),
        "the model got the tool's result: {said}"
    );
    let refused = client.says(letter).await;
    assert_eq!(client.state(&refused), "rejected");
    assert_eq!(client.words(&refused), "no article is named");
    assert_eq!(model.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_calls_a_tool_writes_its_answer_in_pieces() {
    let model = ScriptedModel::new()
        .tool_call("stock", json!({"sku": "A-1"}))
        .text("There are 100 pieces.")
        .text("As I said, 100.");
    let world = thinking(&model);
    let client = Client::new(&world, REST);
    let params = client.message("How many pieces of A-1 are on stock?", None, None);
    let frames = client.streams(&params).await;
    let shown = client.shown(&frames);
    let pieces = shown.iter().filter(|name| *name == "chat").count();
    assert!(pieces >= 2, "{shown:?}");
    let task = json!({"id": at(&frames[0].data, "/task/id")});
    let task = client.gets(&task).await;
    let words = REST.words(artifact(&task, "chat"));
    assert_eq!(words, "There are 100 pieces.");
    // The next message of the conversation has the answer before it.
    client
        .says_in(&REST.context(&task), "/chat Are you sure?")
        .await;
    let said = serde_json::to_string(&model.requests()[2].messages).unwrap();
    assert!(said.contains("There are 100 pieces."), "{said}");
    assert!(said.contains("\"Are you sure?\""), "{said}");
    assert!(
        model
            .requests()
            .iter()
            .all(|it| it.system.starts_with(INSTRUCTIONS))
    );
}

async fn an_agent_without_a_model_says_so_in_the_error_of_the_task(dialect: Dialect) {
    let world = World::serving(|_| reference_agent::models::agent(), |_| ()).unwrap();
    let client = Client::new(&world, dialect);
    let failed = client.says(RESUME).await;
    assert_eq!(client.state(&failed), "failed");
    assert_eq!(code(&failed), "MODEL_UNAVAILABLE");
}

async fn a_message_that_names_its_skill_or_is_declared_asks_no_model(dialect: Dialect) {
    let models = [ScriptedModel::never(), ScriptedModel::never()];
    let agent = |_| reference_agent::agent();
    let world = World::thinking(agent, &models[0], &models[1]).unwrap();
    let client = Client::new(&world, dialect);
    for text in ["add 19 and 23", "/add {\"a\": 19, \"b\": 23}", "19 + 23"] {
        assert_eq!(client.words(&client.says(text).await), "42", "{text}");
    }
    let call = client.data(&json!({"tool": "add", "arguments": {"a": 19, "b": 23}}));
    let task = client.makes(&client.with(&call)).await;
    assert_eq!(client.words(&task), "42");
    let asked = client.says("Book a flight").await;
    client.answers(&asked, "I do not know yet").await;
    for model in models {
        assert_eq!(model.requests(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_that_no_rule_routes_is_one_call_with_the_skills_alone() {
    let to = json!({"skill": "logo"});
    let router = ScriptedModel::new()
        .answer(to)
        .answer(json!({"skill": "none"}));
    let model = ScriptedModel::new().text("Of what?");
    let agent = |_| reference_agent::agent();
    let world = World::thinking(agent, &model, &router).unwrap();
    let client = Client::new(&world, REST).from("acme:ann");
    let mut params = client.message("a picture of our company, red", None, None);
    params["message"]["metadata"] = json!({"note": "private"});
    let task = client.makes(&params).await;
    assert_eq!(client.words(&task), "Here it is.");
    let requests = router.requests();
    let [request] = &*requests else {
        panic!("{requests:?}")
    };
    assert!(
        request.system.contains("- logo: Draws a logo"),
        "{}",
        request.system
    );
    let names = &request.tools[0].input_schema["properties"]["skill"]["enum"];
    assert!(names.as_array().unwrap().contains(&json!("add")), "{names}");
    let whole = serde_json::to_string(request).unwrap();
    for private in ["private", "acme", "a2a-lambda"] {
        assert!(!whole.contains(private), "{private} in {whole}");
    }
    // What that model does not know goes to the assistant. Without a model it is a question.
    let task = client.says("a picture of our company, red").await;
    assert_eq!(REST.words(artifact(&task, "assist")), "Of what?");
    assert_eq!(router.requests().len(), 2);
    let world = reference();
    let asked = Client::new(&world, REST)
        .says("a picture of our company, red")
        .await;
    assert_eq!(REST.state(&asked), "input-required");
}

#[tokio::test(start_paused = true)]
async fn a_plain_yes_confirms_a_call_whose_every_member_was_shown() {
    let content = format!("tea{}", "x".repeat(10_240));
    let memory = json!({"content": content, "layer": "user", "tags": ["\u{202e}a"]});
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory)
        .text("I remember that.");
    let router = ScriptedModel::new().answer(json!({"skill": "none"}));
    let agent = |_| reference_agent::agent();
    let world = World::thinking(agent, &model, &router).unwrap();
    let client = Client::new(&world, REST).from("acme:ann");
    let asked = client.says("Please keep in mind that I like tea").await;
    assert_eq!(client.state(&asked), "input-required");
    let question = client.words(&asked);
    for part in [
        "- memory_add\n",
        "\n  layer: \"user\"",
        "[1]: \"\\u{202e}a\"",
    ] {
        assert!(question.contains(part), "{part} in {question}");
    }
    let done = client.answers(&asked, "yes").await;
    assert_eq!(REST.words(artifact(&done, "assist")), "I remember that.");
}

#[tokio::test(start_paused = true)]
async fn the_dispatcher_prompt_reaches_the_model_that_chooses() {
    let router = ScriptedModel::new().answer(json!({"skill": "chat"}));
    let model = ScriptedModel::new().text("Hello!");
    let agent = |_| reference_agent::models::agent();
    let world = World::thinking(agent, &model, &router).unwrap();
    let task = Client::new(&world, REST).says("Good morning").await;
    assert_eq!(REST.words(artifact(&task, "chat")), "Hello!");
    let prompt = "A letter of a customer is an order.";
    assert!(router.requests()[0].system.contains(prompt));
}
