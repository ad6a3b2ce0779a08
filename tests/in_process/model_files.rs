//! Files that a client sends reach the model that its skill asks.

use a2a_lambda::testing::ScriptedModel;
use a2a_lambda_tests::world::{Request, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The task of a message with a file to the agent with a model.
async fn send(model: &ScriptedModel, text: &str, file: &Value) -> Value {
    let agent = |_| reference_agent::models::agent();
    let world = World::thinking(agent, model, &ScriptedModel::never()).unwrap();
    let message = json!({
        "messageId": "m-1",
        "role": "ROLE_USER",
        "parts": [{"text": text}, file],
    });
    let call = Request::post("/message:send", &json!({"message": message}));
    let response = world.call(&call.header("a2a-version", "1.0")).await;
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["task"].clone()
}

fn pdf(bytes: &[u8]) -> Value {
    let raw = STANDARD.encode(bytes);
    json!({"raw": raw, "filename": "cv.pdf", "mediaType": "application/pdf"})
}

#[tokio::test(start_paused = true)]
async fn the_attached_resume_is_read_by_the_model_also_from_the_store() {
    for length in [20, 2_000_000] {
        let mut resume = b"%PDF-1.7 John Doe ".to_vec();
        resume.resize(length, b' ');
        let user = json!({
            "name": "John Doe",
            "email": "john@example.com",
            "github_username": "johndoe",
        });
        let model = ScriptedModel::new().answer(user.clone());
        let text = "/summarize_resume Summarize the attached resume PDF";
        let task = send(&model, text, &pdf(&resume)).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        assert_eq!(task["artifacts"][0]["parts"][0]["data"], user);
        let request = &model.requests()[0];
        let files: Vec<_> = request.files().collect();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].bytes, resume);
        assert_eq!(
            request.messages[0].user_text(),
            "Summarize the attached resume PDF"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_picture_in_a_chat_is_seen_and_one_that_is_none_is_refused() {
    let model = ScriptedModel::new().text("A bicycle.");
    let picture = |bytes: &[u8]| {
        let raw = STANDARD.encode(bytes);
        json!({"raw": raw, "filename": "a.png", "mediaType": "image/png"})
    };
    let text = "/chat What is on this picture?";
    let task = send(&model, text, &picture(b"\x89PNG bicycle")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(model.requests()[0].files().count(), 1);
    let task = send(&ScriptedModel::new(), text, &picture(b"no picture")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
    let metadata = task["status"]["message"]["metadata"].to_string();
    assert!(metadata.contains("MODEL_INPUT"), "{task}");
}
