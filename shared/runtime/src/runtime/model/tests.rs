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
    use a2a_lambda_skill::model::{Model as _, ModelContent, ModelMessage, ModelRequest};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut request, mut piece) = (String::new(), [0; 1024]);
        while !request.ends_with("}") {
            let length = stream.read(&mut piece).await.unwrap();
            request.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
        let reply = r#"{"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello"}}]}"#;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", reply.len());
        stream.write_all((head + reply).as_bytes()).await.unwrap();
        request.to_lowercase()
    });
    let named = settings(ModelProvider::OpenAi, &format!("http://{address}"));
    let model = ConfiguredModel::new(&named).unwrap();
    let request = ModelRequest {
        messages: vec![ModelMessage::from_text("Hi")],
        ..ModelRequest::default()
    };
    let reply = model.converse(request).await.unwrap();
    assert_eq!(reply.content, [ModelContent::Text("Hello".to_owned())]);
    let request = service.await.unwrap();
    assert!(request.contains(r#""model":"small-1""#), "{request}");
    assert!(!request.contains("authorization"), "{request}");
}
