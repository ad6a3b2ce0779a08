//! Files in requests.

use super::*;

fn with_files(files: Vec<ModelFile>) -> ModelRequest {
    let text = ModelPart::Text("Whose is it?".to_owned());
    let files = files.into_iter().map(ModelPart::File);
    ModelRequest {
        messages: vec![ModelMessage::User(
            [text].into_iter().chain(files).collect(),
        )],
        ..ModelRequest::default()
    }
}

fn file(name: &str, media_type: &str, bytes: &'static [u8]) -> ModelFile {
    ModelFile::new(Some(name.to_owned()), media_type, bytes)
}

/// The error of a request with these files, if the service answers like this.
async fn refusal(files: Vec<ModelFile>, answers: Vec<StubAnswer>) -> AgentError {
    let stub = ModelStub::start(answers).await;
    let model = model(&stub, OpenAiApi::ChatCompletions);
    let converse = model.converse(with_files(files.clone())).await;
    let stream = model.converse_stream(with_files(files)).await;
    let (whole, streamed) = (converse.unwrap_err(), stream.err().unwrap());
    assert_eq!(whole, streamed);
    whole
}

#[tokio::test]
async fn both_apis_get_the_bytes_of_a_picture_and_of_a_pdf() {
    let files = vec![
        file("a.png", "image/png", b"picture"),
        file("cv.pdf", "application/pdf", b"resume"),
    ];
    let (picture, pdf) = (
        "data:image/png;base64,cGljdHVyZQ==",
        "data:application/pdf;base64,cmVzdW1l",
    );
    let chat = json!([{"role": "user", "content": [
        {"type": "text", "text": "Whose is it?"},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "file", "file": {"filename": "cv.pdf", "file_data": pdf}},
    ]}]);
    let responses = json!([{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "Whose is it?"},
        {"type": "input_image", "image_url": picture},
        {"type": "input_file", "filename": "cv.pdf", "file_data": pdf},
    ]}]);
    for (api, member, expected) in [
        (OpenAiApi::ChatCompletions, "messages", chat),
        (OpenAiApi::Responses, "input", responses),
    ] {
        let stub = ModelStub::start([StubAnswer::json(500, "{}")]).await;
        let request = with_files(files.clone());
        model(&stub, api).converse(request).await.unwrap_err();
        assert_eq!(stub.body(0)[member], expected);
    }
}

#[tokio::test]
async fn a_type_that_no_model_reads_is_refused_before_the_call() {
    let song = file("song.mp3", "audio/mpeg", b"la");
    let error = refusal(vec![song], vec![]).await;
    assert_eq!(error.code(), ErrorCode::ModelInput);
    let text = "the model does not read audio/mpeg (song.mp3): send a picture, a PDF or text";
    assert_eq!(error.text(), text);
}

#[tokio::test]
async fn a_model_of_text_that_gets_a_picture_says_so() {
    let says = r#"{"error": {"message": "image_url is not supported by this model"}}"#;
    let answers = || [StubAnswer::json(400, says), StubAnswer::json(400, says)];
    let picture = || vec![file("a.png", "image/png", b"picture")];
    let error = refusal(picture(), Vec::from(answers())).await;
    assert_eq!(error.code(), ErrorCode::ModelInput);
    assert!(!error.text().contains("image_url"), "{error:?}");
    // Without a file it is the service that fails.
    let error = refusal(vec![], Vec::from(answers())).await;
    assert_eq!(error.code(), ErrorCode::ModelProvider);
}
