//! The skills with a scripted model: what a client of each sees.

use super::agent;
use a2a_lambda::skill::Content;
use a2a_lambda::skill::model::{ModelMessage, ToolResult};
use a2a_lambda::task::{Event, TaskState};
use a2a_lambda::testing::{ScriptedModel, SkillTest, check_agent};
use serde_json::{Value, json};

fn client(skill: &str, model: &ScriptedModel) -> SkillTest {
    let mut client = SkillTest::new(&agent().unwrap(), skill);
    client.model(model.clone());
    client
}

fn user(name: &str) -> Value {
    json!({"name": "John Doe", "email": "john@example.com", "github_username": name})
}

#[test]
fn agent_with_a_model_passes_its_check() {
    assert_eq!(check_agent(&agent().unwrap()), []);
}

#[tokio::test]
async fn resume_becomes_a_profile() {
    let model = ScriptedModel::new().answer(user("johndoe"));
    let mut client = client("summarize_resume", &model);
    let reply = client.send("John Doe, github.com/johndoe").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    assert_eq!(reply.text(), "Successfully extracted user profile");
    assert_eq!(
        reply.artifact_data("user_profile.json"),
        Some(user("johndoe"))
    );
}

#[tokio::test]
async fn missing_username_of_a_resume_is_asked_for() {
    let model = ScriptedModel::new().answer(user(""));
    let mut client = client("summarize_resume", &model);
    let asked = client.send("John Doe").await.unwrap();
    assert_eq!(asked.state(), Some(TaskState::InputRequired));
    assert_eq!(asked.text(), "Please provide your GitHub username.");
    let reply = client.send("johndoe").await.unwrap();
    assert_eq!(reply.text(), "Profile completed!");
    assert_eq!(
        reply.artifact_data("user_profile.json"),
        Some(user("johndoe"))
    );
    assert_eq!(model.requests().len(), 1);
}

fn analysis() -> Value {
    json!({"data_points": [{"label": "Q4", "value": 7.5}], "insights": ["one figure"]})
}

fn charts() -> Value {
    let points = json!([{"label": "Q4", "value": 7.5}]);
    json!([{"title": "Revenue", "kind": "bar", "data_points": points}])
}

fn report() -> ScriptedModel {
    let report = json!({"summary": "One figure.", "charts": charts()});
    let model = ScriptedModel::new().answer(analysis());
    model.answer(json!({"value": charts()})).answer(report)
}

/// Texts of updates and names of artifacts.
fn shown(client: &SkillTest) -> Vec<String> {
    let shown = client.events().iter().map(|event| match event {
        Event::Artifact(update) => update.artifact.name.clone().unwrap_or_default(),
        Event::Status(update) => {
            let message = update.status.message.clone();
            let content = message.map(|message| Content::from_parts(message.parts));
            let text = content.and_then(|content| content.first_text().map(str::to_owned));
            text.unwrap_or_default()
        }
    });
    shown.collect()
}

const REPORT_EVENTS: [&str; 7] = [
    "Analyzing data...",
    "analysis.json",
    "Generating charts...",
    "charts.json",
    "Compiling final report...",
    "final_report.json",
    "Report generation complete!",
];

#[tokio::test]
async fn report_of_a_model_shows_three_updates_and_its_partial_results() {
    let model = report();
    let mut client = client("generate_report", &model);
    let reply = client.send("Generate Q4 financial report").await.unwrap();
    assert_eq!(shown(&client), REPORT_EVENTS);
    assert_eq!(reply.artifact_data("analysis.json"), Some(analysis()));
    assert_eq!(reply.artifact_data("charts.json"), Some(charts()));
    let summary = &reply.artifact_data("final_report.json").unwrap()["summary"];
    assert_eq!(summary, "One figure.");
    // The last function gets both results, as the client does.
    let [_, _, last] = &*model.requests() else {
        panic!()
    };
    let sent = json!([analysis(), charts()]).to_string();
    assert_eq!(last.messages, [ModelMessage::from_text(sent)]);
}

#[tokio::test(start_paused = true)]
async fn stored_answers_of_a_model_survive_a_crash() {
    // The skill stores an update, an answer and a partial result, twice, and then an update
    // and an answer. The process ends after each answer.
    for things in [2, 5, 8] {
        let model = report();
        let mut client = client("generate_report", &model);
        let reply = client.crash_after(things).send("x").await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::Completed), "{things}");
        assert_eq!(model.requests().len(), 3, "after {things} things");
    }
}

fn letter() -> ScriptedModel {
    let lines = json!([{"sku": "A-1", "pieces": 3}, {"sku": "C-3", "pieces": 1}]);
    let priced = json!([{"sku": "A-1", "pieces": 3, "cents": 250, "on_stock": true}]);
    ScriptedModel::new()
        .answer(json!({"customer": "Ann", "lines": lines}))
        .answer(json!({"valid": true, "reason": null}))
        .tool_calls([
            ("price", json!({"sku": "A-1"})),
            ("stock", json!({"sku": "A-1"})),
            ("price", json!({"sku": "C-3"})),
        ])
        .answer(json!({"lines": priced}))
        .tool_call("euros", json!({"value": 750}))
        .answer(json!({"text": "Three A-1 for 7.50 €.", "total_cents": 750}))
}

fn results(messages: &[ModelMessage]) -> &[ToolResult] {
    match messages.last() {
        Some(ModelMessage::ToolResults(results)) => results,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_functions_and_two_workers_process_an_order() {
    let model = letter();
    let mut client = client("process_order", &model);
    let reply = client
        .send("Three A-1 and a C-3, please. Ann")
        .await
        .unwrap();
    assert_eq!(reply.text(), "Processing complete");
    assert_eq!(
        reply.artifact_data("result.json").unwrap()["total_cents"],
        750
    );
    let asked = model.requests();
    let looked_up: Vec<_> = results(&asked[3].messages)
        .iter()
        .map(|one| &one.result)
        .collect();
    let unknown = Err("INVALID_INPUT: there is no article `C-3`".to_owned());
    assert_eq!(looked_up, [&Ok(json!(250)), &Ok(json!(100)), &unknown]);
    assert_eq!(results(&asked[5].messages)[0].result, Ok(json!("7.50 €")));
    let own = "You work for a small company. Use only facts that the input has.\n\n";
    assert!(asked.iter().all(|request| request.system.starts_with(own)));
}

#[tokio::test]
async fn letter_that_is_no_order_is_rejected() {
    let model = ScriptedModel::new()
        .answer(json!({"customer": "Ann", "lines": []}))
        .answer(json!({"valid": false, "reason": "no article is named"}));
    let reply = client("process_order", &model)
        .send("Hello!")
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Rejected));
    assert_eq!(reply.text(), "no article is named");
}

#[tokio::test]
async fn conversation_goes_to_the_model_and_its_text_comes_in_pieces() {
    let model = ScriptedModel::new()
        .text("Hello! How can I help?")
        .tool_call("stock", json!({"sku": "A-1"}))
        .text("There are 100 pieces.");
    let mut client = client("chat", &model);
    client.send("Hi").await.unwrap();
    let reply = client.send("How many A-1 are there?").await.unwrap();
    assert_eq!(
        reply.artifact_text("chat").as_deref(),
        Some("There are 100 pieces.")
    );
    let pieces = shown(&client).iter().filter(|name| *name == "chat").count();
    assert!(pieces >= 4, "{pieces}");
    let asked = model.requests();
    let said = serde_json::to_value(&asked[1].messages).unwrap();
    let before = json!({"model": [{"text": "Hello! How can I help?"}]});
    assert_eq!(
        said,
        json!([{"user": "Hi"}, before, {"user": "How many A-1 are there?"}])
    );
}

/// What the user says in the requests of a model, without the rest.
fn heard(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    let texts = requests.iter().map(|request| {
        let texts = request.messages.iter().filter_map(|message| match message {
            ModelMessage::User(_) => Some(message.user_text()),
            ModelMessage::Model(_) | ModelMessage::ToolResults(_) => None,
        });
        texts.collect()
    });
    texts.collect()
}

#[tokio::test(start_paused = true)]
async fn a_model_reads_no_command_and_the_stored_message_has_it() {
    let model = ScriptedModel::new().text("Why?").text("Knock, knock.");
    let mut client = SkillTest::of_agent(&agent().unwrap());
    client.model(model.clone());
    let reply = client.crash_before(1).send("/chat tell me a joke").await;
    assert_eq!(reply.unwrap().conversation(), ["/chat tell me a joke"]);
    client.new_task().send(" /chat another one").await.unwrap();
    let joke = "tell me a joke";
    // The first answer was lost with its process.
    assert_eq!(
        heard(&model),
        [vec![joke], vec![joke], vec![joke, "another one"]]
    );
}

#[tokio::test]
async fn a_model_reads_no_command_that_answers_the_question_of_the_router() {
    let model = ScriptedModel::new().text("Why?");
    let mut client = SkillTest::of_agent(&agent().unwrap());
    client.model(model.clone());
    let reply = client.send("hm").await.unwrap();
    assert_eq!(reply.state(), Some(TaskState::InputRequired));
    let reply = client.send("/chat tell me a joke").await.unwrap();
    assert_eq!(reply.artifact_text("chat").as_deref(), Some("Why?"));
    assert_eq!(heard(&model), [vec!["hm", "tell me a joke"]]);
}

#[tokio::test]
async fn a_command_alone_is_all_that_a_model_reads() {
    let model = ScriptedModel::new().text("Yes?");
    let mut client = SkillTest::of_agent(&agent().unwrap());
    client.model(model.clone());
    client.send("/chat").await.unwrap();
    assert_eq!(heard(&model), [vec!["/chat"]]);
}
