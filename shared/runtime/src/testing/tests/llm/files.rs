//! What a model gets of files and of a long conversation.

use crate::prelude::*;
use crate::task::{Message, Part, PartContent, Role};
use crate::testing::{ScriptedModel, SkillTest};
use a2a_lambda_llm::LlmFunction;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_skill::model::{ModelFile, ModelRequest};
use a2a_lambda_skill::{ErrorCode, FilePart};
use serde_json::json;

const PDF: &[u8] = b"%PDF-1.7 a resume";
const PNG: &[u8] = b"\x89PNG a picture";

fn function() -> LlmFunction<String> {
    LlmFunction::new("Read it.")
}

/// The request for a content.
async fn request(content: &Content) -> ModelRequest {
    let model = ScriptedModel::new().text("read");
    function().run_with(&model, content).await.unwrap();
    model.requests()[0].clone()
}

fn files(request: &ModelRequest) -> Vec<ModelFile> {
    request.files().cloned().collect()
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message {
        role,
        ..Message::from_user("m", parts)
    }
}

fn file(name: impl Into<String>, media_type: &str, bytes: &'static [u8]) -> Part {
    Content::from_file(name, media_type, bytes)
        .into_parts()
        .remove(0)
}

#[tokio::test]
async fn a_file_reaches_the_model_with_its_bytes_and_the_records_with_its_digest() {
    let content = Content::from_text("The attached resume PDF")
        .with(Part::data(json!({"year": 2026})))
        .with(file("cv.pdf", "application/pdf", PDF));
    let request = request(&content).await;
    let file = ModelFile::new(Some("cv.pdf".to_owned()), "application/pdf", PDF);
    let json = serde_json::to_value(&request).unwrap();
    assert_eq!(
        json["messages"],
        json!([{"user": [
            {"text": "The attached resume PDF"},
            {"data": {"year": 2026}},
            {"file": {
                "name": "cv.pdf",
                "mediaType": "application/pdf",
                "size": PDF.len(),
                "sha256": file.sha256,
            }},
        ]}])
    );
    assert_eq!(files(&request), [file]);
}

#[tokio::test]
async fn a_conversation_has_the_files_of_its_newest_message_and_the_names_of_the_others() {
    let picture = |name| vec![Part::text("Look"), file(name, "image/png", PNG)];
    let thread = Thread::new()
        .add_event(message(Role::User, picture("old.png")))
        .add_event(message(Role::Agent, vec![Part::text("Nice")]))
        .add_event(message(Role::User, picture("new.png")));
    let names = |request: &ModelRequest| {
        let names = files(request).into_iter().map(|file| file.name.unwrap());
        names.collect::<Vec<_>>()
    };
    let model = ScriptedModel::new().text("one").text("two");
    function().chat_with(&model, &thread).await.unwrap();
    let old = FilePart::of(&picture("old.png")[1]).unwrap();
    let named = function().file(old);
    named.chat_with(&model, &thread).await.unwrap();
    let [one, two] = &*model.requests() else {
        panic!()
    };
    assert_eq!(names(one), ["new.png"]);
    assert_eq!(
        one.messages[0].user_text(),
        "Look\n[file: old.png (image/png)]"
    );
    assert_eq!(names(two), ["new.png", "old.png"]);
}

#[tokio::test]
async fn what_a_request_does_not_take_is_named_with_the_reason() {
    let many = |count, media_type: &str, bytes: &'static [u8]| {
        let parts = (0..count).map(|n| file(format!("f{n}"), media_type, bytes));
        Content::from_parts(parts.collect())
    };
    let large = vec![b'%'; 30_000_000];
    let link = Part {
        media_type: Some("image/png".to_owned()),
        ..Part::new(PartContent::Url("https://example.com/a.png".to_owned()))
    };
    let large = Content::from_file("cv.pdf", "application/pdf", large);
    let rows = [
        (large, 0, "it has 30000000 bytes"),
        (
            many(21, "image/png", PNG),
            20,
            "a request takes 20 pictures",
        ),
        (
            many(6, "application/pdf", PDF),
            5,
            "a request takes 5 documents",
        ),
        (Content::from_parts(vec![link]), 0, "it is a link"),
    ];
    each_row_async(rows, async |(content, count, why)| {
        let request = request(&content).await;
        assert_eq!(files(&request).len(), count);
        let text = request.messages[0].user_text();
        assert!(text.contains("is left out") && text.contains(why), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_not_of_its_type_is_refused_with_the_way_out() {
    let model = ScriptedModel::new();
    for (media_type, bytes) in [("image/png", PDF), ("text/plain", &b"\xff\xfe"[..])] {
        let content = Content::from_file("a", media_type, bytes);
        let error = function().run_with(&model, &content).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::ModelInput);
        assert!(
            error.text().contains("with its own media type"),
            "{error:?}"
        );
    }
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn a_file_of_text_is_a_text() {
    let request = request(&Content::from_file(
        "a.csv",
        "text/csv; charset=utf-8",
        "n\n1",
    ))
    .await;
    assert_eq!(
        request.messages[0].user_text(),
        "[file: a.csv (text/csv)]\nn\n1"
    );
}

#[tokio::test]
async fn a_thread_of_5000_messages_is_cut_from_its_old_end_and_keeps_its_beginning() {
    let mut thread = Thread::new();
    for number in 0..2_500 {
        let text = format!("question {number} {}", "x".repeat(80));
        thread = thread
            .add_event(message(Role::User, vec![Part::text(text)]))
            .add_event(message(Role::Agent, vec![Part::text("answer")]));
    }
    let function = function().window(10_000);
    let model = ScriptedModel::new().text("one").text("two");
    function.chat_with(&model, &thread).await.unwrap();
    let left_out = function.left_out(&thread);
    assert!((4_000..5_000).contains(&left_out), "{left_out}");
    let next = thread.add_event(message(Role::User, vec![Part::text("And now?")]));
    function.chat_with(&model, &next).await.unwrap();
    let [one, two] = &*model.requests() else {
        panic!()
    };
    let begin = one.messages[0].user_text();
    assert!(begin.starts_with(&format!("[{left_out} earlier messages are left out]")));
    assert_eq!(one.messages.len() + left_out, 5_000);
    assert!(serde_json::to_vec(&one.messages).unwrap().len() < 20_000);
    // A service has cached what both begin with.
    assert_eq!(two.messages[..one.messages.len()], one.messages[..]);
}

#[tokio::test]
async fn a_message_that_is_larger_than_the_window_is_sent_alone() {
    let text = |text: &str| vec![Part::text(text)];
    let thread = Thread::new()
        .add_event(message(Role::User, text("before")))
        .add_event(message(Role::Agent, text("answer")))
        .add_event(message(Role::User, text(&"x".repeat(100))));
    let function = function().window(10);
    let model = ScriptedModel::new().text("one");
    function.chat_with(&model, &thread).await.unwrap();
    assert_eq!(function.left_out(&thread), 2);
    let [request] = &*model.requests() else {
        panic!()
    };
    let [sent] = &*request.messages else {
        panic!("{request:?}")
    };
    assert!(sent.user_text().ends_with("xxx"));
}

/// Reads what is attached.
#[skill(id = "read", tags = ["test"], input_modes = ["text/plain", "application/pdf"])]
async fn read(cx: &mut TaskContext<'_>, _content: Content) -> AgentResult<String> {
    let thread = cx.thread().await?;
    function().chat(cx, &thread).await
}

#[tokio::test]
async fn a_skill_hands_the_file_of_its_message_to_the_model() {
    let model = ScriptedModel::new().text("Ann");
    let agent = Agent::builder("reader").skill(read).build().unwrap();
    let mut client = SkillTest::new(&agent, "read");
    client.model(model.clone());
    let content = Content::from_text("Whose is it?");
    let content = content.with(file("cv.pdf", "application/pdf", PDF));
    let reply = client.send(content).await.unwrap();
    assert_eq!(reply.artifact_text("read"), Some("Ann".to_owned()));
    assert_eq!(files(&model.requests()[0])[0].bytes, PDF);
}

#[test]
fn a_file_counts_by_its_kind_and_its_pages_before_its_request() {
    let pages = |count: usize| {
        let page = "4 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n";
        let tree = format!("2 0 obj\n<</Type/Pages /Count {count}>>\nendobj\n");
        [
            b"%PDF-1.4\n".to_vec(),
            tree.into(),
            page.repeat(count).into(),
        ]
        .concat()
    };
    let compressed = b"%PDF-1.5\n<< /Type /ObjStm >> << /Type/Page >>".to_vec();
    let rows = [
        ("image/png", vec![b'/'; 3_000_000], 2_000),
        ("application/pdf", pages(1), 2_000),
        ("application/pdf", pages(3), 6_000),
        ("application/pdf", pages(1_000), 100_000),
        ("application/pdf", compressed, 2_000),
        ("application/pdf", vec![b'%'; 120_000], 6_000),
        ("application/pdf", vec![b'%'; 4_000_000], 100_000),
    ];
    for (media_type, bytes, tokens) in rows {
        let size = bytes.len();
        let file = ModelFile::new(None, media_type, bytes);
        assert_eq!(file.tokens(), tokens, "{media_type}, {size} bytes");
    }
}
