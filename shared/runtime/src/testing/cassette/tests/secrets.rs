//! What a cassette must not hold.

use super::*;
use a2a_lambda_skill::model::ToolResult;
use serde_json::{Map, Value};

/// A secret that JSON text escapes.
const SECRET: &str = "s3cr\"et\\of-mine";

fn options(options: &Value) -> Map<String, Value> {
    options.as_object().unwrap().clone()
}

/// A request with a secret in each place that can hold one.
fn with(secret: &str) -> ModelRequest {
    let content = vec![ModelContent::ToolUse {
        id: "call-1".to_owned(),
        name: "fetch".to_owned(),
        input: json!({"url": format!("http://host/?k={secret}"), secret: [secret]}),
    }];
    let result = ToolResult {
        id: "call-1".to_owned(),
        result: Err(format!("{secret} is not known")),
    };
    ModelRequest {
        messages: vec![
            ModelMessage::from_text(json!({ "inside": secret }).to_string()),
            ModelMessage::Model(content),
            ModelMessage::ToolResults(vec![result]),
        ],
        options: options(&json!({ "user": secret })),
        ..request(&format!("The code is {secret}; {secret}."))
    }
}

fn assert_free(text: &str) {
    let escaped = Value::from(SECRET).to_string();
    for form in [SECRET, escaped.trim_matches('"'), "s3cr", "of-mine"] {
        assert!(!text.contains(form), "{form} is in {text}");
    }
}

#[tokio::test]
async fn a_secret_is_in_no_byte_of_the_file_and_a_replay_needs_none() {
    let folder = Folder::new("secret");
    let says = format!("I keep {SECRET} to myself");
    let input = json!({"k": SECRET});
    let live = ScriptedModel::new()
        .text(says.clone())
        .text(says.clone())
        .tool_call("fetch", input.clone())
        .tool_call("fetch", input);
    let recording = folder.record(live).redact(SECRET);
    // The skill gets what the model wrote.
    assert_eq!(texts(recording.converse(with(SECRET)).await), [text(&says)]);
    // Streams cut the secret into pieces.
    pieces(&recording, with(SECRET)).await.unwrap();
    recording.converse(request("call")).await.unwrap();
    pieces(&recording, request("call")).await.unwrap();
    assert_free(&folder.text());

    // In the replay another text has the place of the secret.
    let replay = folder.replay().redact("placeholder");
    let hidden = "I keep <redacted> to myself";
    let reply = replay.converse(with("placeholder")).await;
    assert_eq!(texts(reply), [text(hidden)]);
    let streamed = pieces(&replay, with("placeholder")).await.unwrap();
    let joined = streamed.into_iter().map(|piece| match piece {
        Ok(Delta::Text(text)) => text,
        _ => String::new(),
    });
    assert_eq!(joined.collect::<String>(), hidden);
    let called = texts(replay.converse(request("call")).await);
    let ModelContent::ToolUse { input, .. } = &called[0] else {
        panic!("{called:?}");
    };
    assert_eq!(input, &json!({"k": "<redacted>"}));
}

#[tokio::test]
async fn a_miss_shows_no_secret() {
    let folder = Folder::new("shown");
    let recording = folder.record(ScriptedModel::new().text("hello"));
    recording
        .redact(SECRET)
        .converse(request("old"))
        .await
        .unwrap();
    let replay = folder.replay().redact(SECRET);
    let error = replay.converse(with(SECRET)).await.unwrap_err();
    let cause = error.cause().unwrap();
    assert!(cause.contains("<redacted> is not known"), "{cause}");
    assert_free(cause);
    assert_free(&format!("{replay:?}"));
}

#[tokio::test]
async fn of_two_secrets_the_longer_is_taken_out_first() {
    let folder = Folder::new("longer");
    let recording = folder.record(ScriptedModel::new().text("hello"));
    let recording = recording.redact("").redact("mine").redact("mine-too");
    recording.converse(request("mine-too, mine")).await.unwrap();
    let text = folder.text();
    assert!(
        text.contains(r#""system": "<redacted>, <redacted>""#),
        "{text}"
    );
}

#[tokio::test]
async fn options_with_the_name_of_a_secret_are_hidden() {
    let folder = Folder::new("options");
    let hidden = |value: &str| {
        json!({
            "api_key": value, "apiKey": value, "X-Api-Key": [value], "APIKEY": value,
            "authToken": value, "client_secret": value, "Authorization": value,
            "deep": [{"password": {"is": value}}],
        })
    };
    let with = |value: &str, most: u32| {
        let mut options = options(&hidden(value));
        options.insert("max_tokens".to_owned(), most.into());
        options.insert("keyboard".to_owned(), "qwerty".into());
        ModelRequest {
            options,
            ..ModelRequest::default()
        }
    };
    let recording = folder.record(ScriptedModel::new().text("hello"));
    recording.converse(with("v4lue", 7)).await.unwrap();
    let written = folder.text();
    assert!(!written.contains("v4lue"), "{written}");
    assert!(written.contains("qwerty"), "{written}");
    let replay = folder.replay();
    assert_eq!(
        texts(replay.converse(with("other", 7)).await),
        [text("hello")]
    );
    // The number of tokens is not a secret.
    replay.converse(with("other", 8)).await.unwrap_err();
}

#[tokio::test]
async fn a_secret_that_cannot_be_taken_out_is_not_written() {
    let folder = Folder::new("number");
    for secret in ["41733", "toolChoice"] {
        let recording = folder.record(ScriptedModel::new().text("hello"));
        let numbered = ModelRequest {
            options: options(&json!({ "pin": 41733 })),
            ..ModelRequest::default()
        };
        let error = recording
            .redact(secret)
            .converse(numbered)
            .await
            .unwrap_err();
        assert!(error.cause().unwrap().contains("`redact`"), "{secret}");
        assert!(!folder.path().exists());
    }
}
