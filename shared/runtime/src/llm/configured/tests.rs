//! The model of the settings, against a service on loopback.

use super::ConfiguredModel;
#[cfg(not(feature = "bedrock"))]
use super::NoModelProvider;
use crate::settings::{ModelProvider, ModelSettings};
use serde_json::Map;

fn settings(provider: ModelProvider, endpoint: &str) -> ModelSettings {
    ModelSettings {
        router_id: None,
        provider,
        id: "small-1".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        options: Map::new(),
    }
}

#[cfg(not(feature = "bedrock"))]
#[test]
fn a_provider_that_the_program_does_not_have_stops_its_start() {
    let named = settings(ModelProvider::Bedrock, "http://127.0.0.1:9");
    let refused = ConfiguredModel::new(&named).map(drop);
    assert_eq!(refused, Err(NoModelProvider("bedrock")));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("A2A_MODEL_PROVIDER"), "{text}");
}

#[cfg(feature = "openai")]
#[tokio::test]
async fn the_model_of_the_settings_answers_at_its_address() {
    use crate::llm::model_stub::{ModelStub, StubAnswer};
    use a2a_lambda_skill::model::{Model as _, ModelContent, ModelMessage, ModelRequest};

    let answer = r#"{"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Hello"}}]}"#;
    let stub = ModelStub::start(vec![StubAnswer::json(200, answer)]).await;
    let named = settings(ModelProvider::OpenAi, &stub.url);
    let model = ConfiguredModel::new(&named).unwrap();
    let request = ModelRequest {
        messages: vec![ModelMessage::User("Hi".to_owned())],
        ..ModelRequest::default()
    };
    let reply = model.converse(request).await.unwrap();
    assert_eq!(reply.content, [ModelContent::Text("Hello".to_owned())]);
    let [asked] = stub.requests().try_into().unwrap();
    assert_eq!(asked.body["model"], "small-1");
    assert!(!asked.head.contains("authorization"), "{}", asked.head);
}
