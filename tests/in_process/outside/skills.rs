//! What a skill author writes, as a client gets it.

use super::{Client, artifact, bytes, code, data, id, reference};
use a2a_lambda::prelude::*;
use a2a_lambda_tests::dialect::{Dialect, Op, at};
use a2a_lambda_tests::error_rows::{CONTENT_TYPE, Fault};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{BASE_URL, Reply, Request, World};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

per_dialect! {
    paused ALL:
    each_kind_of_error_has_its_code_and_hides_its_cause
    an_unexpected_error_is_internal_and_says_nothing
    the_output_is_the_last_artifact_and_has_the_name_of_its_skill
    a_file_that_no_skill_takes_is_refused_and_a_pdf_finds_its_skill
    text_data_and_files_are_the_arguments_of_skills
    each_spelling_of_a_call_reaches_the_skill_that_it_names
    history_of_a_skill_that_keeps_no_input_says_so
}

const REST: Dialect = Dialect::Rest10;
/// The private cause of errors.
const CAUSE: &str = "canary-cause-0036";

/// A world with one skill.
macro_rules! only {
    ($skill:expr) => {
        World::serving(
            |_| {
                Agent::builder("only")
                    .description("Has one skill.")
                    .version("1")
                    .skill($skill)
                    .build()
            },
            |_| (),
        )
        .unwrap()
    };
}

/// Counts the letters of a diary.
#[skill(id = "diary", tags = ["test"], keeps_input = false)]
async fn diary(text: String) -> AgentResult<String> {
    Ok(format!("{} letters", text.len()))
}

async fn history_of_a_skill_that_keeps_no_input_says_so(dialect: Dialect) {
    let world = only!(diary);
    let client = Client::new(&world, dialect);
    let task = client.says("canary of ann").await;
    assert_eq!(dialect.words(artifact(&task, "diary")), "13 letters");
    // A client of 0.1 asks for a history, if it wants one.
    let has_history = !matches!(dialect, Dialect::Rpc01 | Dialect::Path01);
    for task in [client.gets(&task).await, task] {
        let task = task.to_string();
        assert!(!task.contains("canary"), "{task}");
        let is_said = task.contains("The agent does not keep this message.");
        assert_eq!(is_said, has_history, "{task}");
    }
}

/// Each kind of error, with its code.
fn errors() -> Vec<(AgentError, &'static str)> {
    vec![
        (AgentError::model_provider(CAUSE), "MODEL_PROVIDER"),
        (AgentError::model_auth(CAUSE), "MODEL_AUTH"),
        (AgentError::model_rate_limited(CAUSE), "MODEL_RATE_LIMITED"),
        (AgentError::content_filtered(CAUSE), "CONTENT_FILTERED"),
        (
            AgentError::context_length_exceeded(CAUSE),
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (AgentError::model_output(CAUSE), "MODEL_OUTPUT"),
        (AgentError::model_unavailable(), "MODEL_UNAVAILABLE"),
        (AgentError::task_not_found("t"), "TASK_NOT_FOUND"),
        (AgentError::session_not_found("s"), "SESSION_NOT_FOUND"),
        (
            AgentError::invalid_transition("it has ended"),
            "INVALID_TASK_STATE_TRANSITION",
        ),
        (AgentError::skill_not_found("s"), "SKILL_NOT_FOUND"),
        (AgentError::invalid_input("bad"), "INVALID_INPUT"),
        (AgentError::missing_input("none"), "MISSING_INPUT"),
        (AgentError::context("nothing saved"), "CONTEXT_ERROR"),
        (AgentError::state_incompatible(CAUSE), "STATE_INCOMPATIBLE"),
        (AgentError::state_too_large(2, 1), "STATE_TOO_LARGE"),
        (
            AgentError::content_type_not_supported("no image"),
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        (AgentError::network(CAUSE), "NETWORK"),
        (AgentError::serialization(CAUSE), "SERIALIZATION"),
        (AgentError::internal(CAUSE), "INTERNAL_ERROR"),
        (
            AgentError::domain("MINE", "mine").with_detail("left", 7),
            "MINE",
        ),
    ]
}

/// Fails with the error of this number.
#[skill(id = "fails", tags = ["test"], input_modes = ["text/plain"])]
async fn fails(number: String) -> AgentResult<String> {
    let number: usize = number.parse()?;
    match errors().into_iter().nth(number) {
        Some((error, _)) => Err(error),
        None => Ok("no error".to_owned()),
    }
}

/// Checks that a reply has nothing private, and what an error of the code has.
fn is_public(reply: &Reply, code: &str) {
    assert!(!reply.text().contains(CAUSE), "{}", reply.text());
    assert!(reply.text().contains(code), "{}", reply.text());
}

async fn each_kind_of_error_has_its_code_and_hides_its_cause(dialect: Dialect) {
    let world = only!(fails);
    let client = Client::new(&world, dialect);
    let mut codes = BTreeSet::new();
    for (number, (error, expected)) in errors().iter().enumerate() {
        let text = number.to_string();
        let reply = client.sends(&client.message(&text, None, None)).await;
        is_public(&reply, expected);
        let task = dialect.task(&reply);
        assert_eq!(client.state(&task), "failed", "{expected}");
        assert_eq!(code(&task), *expected);
        assert_eq!(client.words(&task), error.text());
        assert!(codes.insert(code(&task).to_owned()), "{expected} twice");
        let details = at(&task, "/status/message/metadata/a2a-lambda~1errorDetails");
        let own = serde_json::to_value(error.details()).unwrap();
        assert_eq!(details, &own, "{expected}");
        let params = client.message(&text, None, None);
        let stream = dialect.request(Op::Stream, "", &params);
        is_public(&client.call(stream).await, expected);
        let read = dialect.of_task(Op::Get, id(&task));
        is_public(&client.call(read).await, expected);
    }
}

async fn an_unexpected_error_is_internal_and_says_nothing(dialect: Dialect) {
    let world = only!(fails);
    let client = Client::new(&world, dialect);
    let task = client.says("not a number").await;
    assert_eq!(client.state(&task), "failed");
    assert_eq!(
        (code(&task), client.words(&task).as_str()),
        ("INTERNAL_ERROR", "internal error")
    );
    let read = client.gets(&task).await.to_string();
    assert!(!read.contains("digit"), "{read}");
}

/// Gives an output beside an artifact of its own, and says something.
#[skill(id = "gives", tags = ["test"])]
async fn gives(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<OnRequestResult<Vec<u32>>> {
    cx.send_intermediate_update("soon").await?;
    cx.send_partial_artifact(Artifact::from_text("draft.txt", "half"))
        .await?;
    Ok(OnRequestResult::Completed {
        message: Some("there".into()),
        output: vec![4, 2],
        artifacts: vec![Artifact::from_json("more.json", &json!({"is": "more"}))?],
    })
}

async fn the_output_is_the_last_artifact_and_has_the_name_of_its_skill(dialect: Dialect) {
    let world = only!(gives);
    let client = Client::new(&world, dialect);
    let task = client.says("go").await;
    assert_eq!(client.state(&task), "completed");
    assert_eq!(client.words(&task), "there");
    let artifacts = task["artifacts"].as_array().unwrap();
    let names: Vec<&Value> = artifacts.iter().map(|it| &it["name"]).collect();
    assert_eq!(json!(names), json!(["draft.txt", "more.json", "gives"]));
    let last = artifacts[2].to_string();
    assert!(last.contains("[4,2]"), "{last}");
    let frames = client.streams(&client.message("go", None, None)).await;
    let shown = ["soon", "draft.txt", "more.json", "gives", "there"];
    assert_eq!(client.shown(&frames), shown);
}

async fn a_file_that_no_skill_takes_is_refused_and_a_pdf_finds_its_skill(dialect: Dialect) {
    let world = reference();
    let client = Client::new(&world, dialect);
    for media_type in ["application/zip", "text/html", "audio/mp3"] {
        let file = client.file("a.bin", media_type, b"\x01\x02\x03");
        let refused = client.sends(&client.with(&file)).await;
        let fault = Fault::new(dialect, CONTENT_TYPE);
        assert_eq!(fault.check(&refused), Ok(()), "{media_type}");
    }
    assert_eq!(world.store.writes(), 0, "no task was made");
    if dialect != REST {
        // The picture is large: one dialect is enough.
        return;
    }
    let file = client.file("a.pdf", "application/pdf", b"%PDF-1.4\n");
    let task = client.makes(&client.with(&file)).await;
    assert_eq!(client.state(&task), "completed");
    artifact(&task, "fingerprint.bmp");
}

/// A place.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    city: String,
    floor: i32,
}

/// Greets by name.
#[skill(id = "greets", tags = ["test"], input_modes = ["text/plain"])]
async fn greets(name: String) -> AgentResult<String> {
    Ok(format!("hello {name}"))
}

/// Says where a place is.
#[skill(id = "finds", tags = ["test"])]
async fn finds(place: Place) -> AgentResult<String> {
    Ok(format!("floor {} in {}", place.floor, place.city))
}

/// Describes a file.
#[skill(id = "describes", tags = ["test"], input_modes = ["*/*"])]
async fn describes(file: FilePart) -> AgentResult<String> {
    let name = file.name.as_deref().unwrap_or("-");
    Ok(format!("{name} is {}", file.media_type))
}

/// Counts the parts of a message.
#[skill(id = "counts", tags = ["test"], input_modes = ["*/*"])]
async fn counts(content: Content) -> AgentResult<String> {
    let text = content.first_text().unwrap_or("-");
    Ok(format!("{} parts, first {text}", content.parts().len()))
}

async fn text_data_and_files_are_the_arguments_of_skills(dialect: Dialect) {
    async fn output(
        world: &World,
        dialect: Dialect,
        part: impl Fn(&Client<'_>) -> Value,
    ) -> String {
        let client = Client::new(world, dialect);
        let task = client.makes(&client.with(&part(&client))).await;
        dialect.words(&task["artifacts"][0])
    }
    let text = |client: &Client<'_>| {
        client.message("Ann", None, None)["message"][dialect.parts()][0].clone()
    };
    let data = |client: &Client<'_>| client.data(&json!({"city": "Oslo", "floor": -3}));
    let file = |client: &Client<'_>| client.file("a.txt", "text/plain", b"abc");
    assert_eq!(output(&only!(greets), dialect, text).await, "hello Ann");
    assert_eq!(
        output(&only!(finds), dialect, data).await,
        "floor -3 in Oslo"
    );
    assert_eq!(
        output(&only!(describes), dialect, file).await,
        "a.txt is text/plain"
    );
    assert_eq!(
        output(&only!(counts), dialect, text).await,
        "1 parts, first Ann"
    );
}

/// Keeps a word over its question.
#[skill(id = "keeps", tags = ["test"])]
struct Keeps;

/// What the question of this release keeps.
#[derive(Serialize, Deserialize)]
struct Second {
    words: Vec<String>,
}

/// What the question of the release before kept.
#[derive(Serialize, Deserialize)]
struct First {
    word: String,
}

impl SkillSlot for First {}

impl SkillSlot for Second {
    const VERSION: u32 = 2;

    fn migrate(from: u32, value: Value) -> Option<Self> {
        let First { word } = serde_json::from_value(value).ok()?;
        (from == 1).then(|| Self { words: vec![word] })
    }
}

impl SkillHandler<First> for Keeps {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        word: String,
    ) -> AgentResult<OnRequestResult<String, First>> {
        cx.save_data("began", &format!("began with {word}")).await?;
        OnRequestResult::ask("and then?", First { word })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        First { word }: First,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, First>> {
        let began: Option<String> = cx.load_data("began")?;
        OnInputResult::done(format!("{began:?}: {word}, {}", answer.text()?))
    }
}

/// The next release of [`Keeps`].
#[skill(id = "keeps", tags = ["test"])]
struct KeepsMore;

impl SkillHandler<Second> for KeepsMore {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        word: String,
    ) -> AgentResult<OnRequestResult<String, Second>> {
        OnRequestResult::ask("and then?", Second { words: vec![word] })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        Second { mut words }: Second,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, Second>> {
        words.push(answer.text()?.to_owned());
        let began: Option<String> = cx.load_data("began")?;
        OnInputResult::done(format!("{began:?}, now {}", words.join(", ")))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_finds_its_slot_and_data_in_this_release_and_the_next() {
    let world = only!(Keeps);
    let client = Client::new(&world, REST);
    let asked = client.says("one").await;
    assert_eq!(client.words(&asked), "and then?");
    let done = client.answers(&asked, "two").await;
    let words = REST.words(artifact(&done, "keeps"));
    assert_eq!(words, r#"Some("began with one"): one, two"#);
    let asked = client.says("three").await;
    let next = |_| {
        let agent = Agent::builder("only").skill(KeepsMore);
        agent.description("Has one skill.").version("2").build()
    };
    let next = world.redeployed(next, |_| ()).unwrap();
    let client = Client::new(&next, REST);
    let done = client.answers(&asked, "four").await;
    let words = REST.words(artifact(&done, "keeps"));
    assert_eq!(words, r#"Some("began with three"), now three, four"#);
}

#[tokio::test(start_paused = true)]
async fn the_card_shows_what_the_attribute_of_a_skill_says() {
    let world = reference();
    let client = Client::new(&world, REST);
    let paths = [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agent.json",
    ];
    for path in paths {
        let card = client.call(Request::new("GET", path)).await.json();
        let skill = |id: &str| {
            let mut skills = card["skills"].as_array().unwrap().iter();
            skills.find(|skill| skill["id"] == id).unwrap().clone()
        };
        let add = skill("add");
        assert_eq!(add["name"], "Adder", "{path}");
        let description = "Adds two whole numbers, given as data or as a question.";
        assert_eq!(add["description"], description);
        assert_eq!(add["tags"], json!(["example", "math", "sum", "plus"]));
        assert_eq!(add["examples"], json!(["What's 2+2?", "add 19 and 23"]));
        let logo = skill("logo");
        assert_eq!(logo["inputModes"], json!(["text/plain"]), "{path}");
        assert_eq!(logo["outputModes"], json!(["image/png"]), "{path}");
    }
    let card = client.call(Request::new("GET", paths[0])).await.json();
    let mut extensions = card["capabilities"]["extensions"]
        .as_array()
        .unwrap()
        .iter();
    let schemas = extensions.find(|it| it["uri"].as_str().unwrap().contains("skill-schemas"));
    let url = at(schemas.unwrap(), "/params/url").as_str().unwrap();
    let path = url.strip_prefix(BASE_URL).unwrap();
    let schemas = world.call(&Request::new("GET", path)).await.json();
    let schema = at(&schemas, "/skills/generate-report/inputSchema");
    assert!(schema.to_string().contains(r#""points""#), "{schema}");
}

/// `metadata.skillId` is the name that the requirements give it.
async fn each_spelling_of_a_call_reaches_the_skill_that_it_names(dialect: Dialect) {
    let world = reference();
    let client = Client::new(&world, dialect);
    let named = json!({"skillId": "add"});
    let mut message = client.with(&client.data(&json!({"a": 19, "b": 23})));
    message["message"]["metadata"] = named.clone();
    let mut beside = client.message("19 and 23", None, None);
    beside["metadata"] = named;
    let written = client.message("/add {\"a\": 19, \"b\": 23}", None, None);
    let mut calls = vec![message, beside, written];
    for data in [
        json!({"skill": "add", "input": {"a": 19, "b": 23}}),
        json!({"tool": "add", "params": {"a": 19, "b": 23}}),
        json!({"name": "add", "arguments": "{\"a\": 19, \"b\": 23}"}),
    ] {
        calls.push(client.with(&client.data(&data)));
    }
    for params in calls {
        // The name is known to some clients, so this is not sent as a stranger does.
        let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
        let task = dialect.task(&reply);
        assert_eq!(client.words(&task), "42", "{params}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn artifacts_are_made_of_json_and_of_files() {
    let world = reference();
    let client = Client::new(&world, REST);
    let task = client.says("Generate Q4 financial report").await;
    assert_eq!(data(&task, "analysis.json")["points"], json!([]));
    let logo = client.says("Generate logo").await;
    assert!(bytes(&logo, "logo.png").starts_with(b"\x89PNG\r\n"));
    assert_eq!(
        at(artifact(&logo, "logo.png"), "/parts/0/mediaType"),
        "image/png"
    );
}
