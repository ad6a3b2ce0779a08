use super::{Offer, RouteRequest, Routed, message_text, route, route_answer};
use crate::prelude::*;
use crate::testing::message;
use a2a_lambda_model::task::{A2aError, Message, Metadata, Part, PartContent, SkillId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod declared;

/// Says back what you said.
#[skill(id = "echo", tags = ["test"], examples = ["Say hello!"])]
async fn echo(input: Content) -> AgentResult<Content> {
    Ok(input)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Terms {
    a: i64,
    b: i64,
}

/// Adds two numbers.
#[skill(id = "add", tags = ["math"], input_modes = ["application/json", "text/plain"])]
async fn add(terms: Terms) -> AgentResult<i64> {
    Ok(terms.a + terms.b)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Trip {
    to: String,
}

/// Books a flight to a city.
#[skill(id = "book-flight", tags = ["travel"], examples = ["Book a flight to Oslo"])]
async fn book(trip: TextOr<Trip>) -> AgentResult<String> {
    Ok(match trip {
        TextOr::Text(text) => text,
        TextOr::Data(trip) => trip.to,
    })
}

/// Draws a picture.
#[skill(id = "draw", tags = ["art"], input_modes = ["image/*"])]
async fn draw(_: FilePart) -> AgentResult<String> {
    Ok(String::new())
}

struct Math;

impl From<Math> for SkillSet {
    fn from(_: Math) -> Self {
        Self::new("math-set").skill(add)
    }
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("agent").skill(echo).skills(Math).skill(book);
    agent.skill(draw).build().unwrap()
}

/// The agent without the skill that accepts every part.
fn choosy() -> AgentDefinition {
    let agent = Agent::builder("agent").skills(Math).skill(book);
    agent.skill(draw).build().unwrap()
}

fn id(text: &str) -> SkillId {
    SkillId::parse(text).unwrap()
}

fn said(text: &str) -> Message {
    message(vec![Part::text(text)])
}

fn data(value: Value) -> Message {
    message(vec![Part::data(value)])
}

fn meta(value: &Value) -> Metadata {
    value.as_object().unwrap().clone()
}

fn routed_with(
    agent: &AgentDefinition,
    message: &Message,
    request_metadata: &Metadata,
) -> Result<Routed, A2aError> {
    let request = RouteRequest {
        pinned: None,
        message,
        request_metadata,
    };
    route(agent, &request)
}

fn routed(agent: &AgentDefinition, message: &Message) -> Result<Routed, A2aError> {
    routed_with(agent, message, &Metadata::new())
}

/// The skill, the step and the content of a decision.
fn chosen(routed: Result<Routed, A2aError>) -> (String, &'static str, Content) {
    match routed.unwrap() {
        Routed::Skill(route) => (route.id.to_string(), route.how, route.content),
        other => panic!("{other:?}"),
    }
}

fn step(agent: &AgentDefinition, message: &Message) -> (String, &'static str) {
    let (id, how, _) = chosen(routed(agent, message));
    (id, how)
}

fn violation(routed: Result<Routed, A2aError>) -> (String, String) {
    match routed {
        Err(A2aError::InvalidParams { field, description }) => (field, description),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_spelling_of_an_explicit_call_is_understood() {
    for key in ["a2a-lambda/skillId", "skillId", "skill_id", "skill"] {
        let mut message = said("Book a flight to Oslo");
        message.metadata = meta(&json!({key: "echo"}));
        assert_eq!(step(&agent(), &message), ("echo".to_owned(), "explicit"));
    }
    for key in ["skillId", "skill_id", "skill"] {
        let around = meta(&json!({key: "echo"}));
        let (id, how, _) = chosen(routed_with(&agent(), &said("add"), &around));
        assert_eq!((id.as_str(), how), ("echo", "explicit"));
    }
    for (name, arguments) in [
        ("skill", "input"),
        ("skill", "params"),
        ("tool", "input"),
        ("tool", "params"),
        ("tool", "arguments"),
        ("tool_name", "tool_input"),
        ("tool", "tool_input"),
        ("name", "arguments"),
        ("name", "input"),
        ("name", "tool_input"),
    ] {
        let call = data(json!({name: "add", arguments: {"a": 1, "b": 2}}));
        let (id, how, content) = chosen(routed(&agent(), &call));
        assert_eq!((id.as_str(), how), ("add", "explicit"));
        assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
    }
    let arguments = "{\"a\": 1, \"b\": 2}";
    for call in [
        json!({"type": "function", "function": {"name": "add", "arguments": arguments}}),
        json!({"type": "function_call", "name": "add", "arguments": arguments}),
    ] {
        let (id, how, content) = chosen(routed(&agent(), &data(call)));
        assert_eq!((id.as_str(), how), ("add", "explicit"));
        assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
    }
}

#[test]
fn text_of_a_call_is_the_text_of_a_skill_that_takes_text() {
    for (key, member) in [
        ("skill", "input"),
        ("tool", "params"),
        ("tool_name", "tool_input"),
        ("name", "arguments"),
        ("name", "tool_input"),
    ] {
        let call = data(json!({key: "echo", member: "hello"}));
        let (id, how, content) = chosen(routed(&agent(), &call));
        assert_eq!((id.as_str(), how), ("echo", "explicit"));
        assert_eq!(content.text().unwrap(), "hello");
    }
    // A skill that takes no text refuses it, and other values too.
    let agent = Agent::builder("agent").skill(echo).skill(subtract);
    let agent = agent.build().unwrap();
    for (input, skill) in [
        (json!("1 and 2"), "subtract"),
        (json!(7), "subtract"),
        (json!([1]), "echo"),
    ] {
        let call = data(json!({"skill": skill, "input": input}));
        let (field, why) = violation(routed(&agent, &call));
        assert_eq!(field, "message.parts[0].data.input");
        assert!(why.contains("a JSON object"), "{why}");
    }
    // Ordinary data: the name is no skill, or the member is not only for calls.
    for value in [
        json!({"skill": "Rust", "input": "5 years"}),
        json!({"tool": "hammer", "params": "heavy"}),
        json!({"name": "echo", "input": "brand/acme.svg"}),
        json!({"name": "Ann", "arguments": {"a": 1}}),
        json!({"type": "function", "function": {"name": "fly", "arguments": "{}"}}),
    ] {
        assert!(
            matches!(
                routed(&self::agent(), &data(value.clone())),
                Ok(Routed::Ask { .. })
            ),
            "{value}"
        );
    }
}

#[test]
fn arguments_may_be_json_text() {
    for name in ["tool", "skill", "name"] {
        let call = data(json!({name: "add", "arguments": "{\"a\": 1, \"b\": 2}"}));
        let (id, how, content) = chosen(routed(&agent(), &call));
        assert_eq!((id.as_str(), how), ("add", "explicit"));
        assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
        let agent = Agent::builder("agent").skill(echo).skill(subtract);
        let agent = agent.build().unwrap();
        for wrong in [json!("{broken"), json!("[1]"), json!(7)] {
            let call = data(json!({name: "subtract", "arguments": wrong}));
            let (field, _) = violation(routed(&agent, &call));
            assert_eq!(field, "message.parts[0].data.arguments", "{wrong}");
        }
    }
    // A name that is no skill makes ordinary data.
    let other = data(json!({"name": "fly", "arguments": {"a": 1}}));
    asked(routed(&agent(), &other));
}

#[test]
fn an_unknown_explicit_id_is_refused_with_the_known_ones() {
    let mut message = said("Book a flight to Oslo");
    message.metadata = meta(&json!({"a2a-lambda/skillId": "fly"}));
    let (field, why) = violation(routed(&agent(), &message));
    assert_eq!(field, "message.metadata[\"a2a-lambda/skillId\"]");
    assert_eq!(
        why,
        "unknown skill `fly`; known are `echo`, `add`, `book-flight`, `draw`"
    );
    let around = meta(&json!({"skill": "fly"}));
    let (field, _) = violation(routed_with(&agent(), &said("hi"), &around));
    assert_eq!(field, "metadata.skill");
    let (field, _) = violation(routed(&agent(), &data(json!({"tool": "fly", "input": {}}))));
    assert_eq!(field, "message.parts[0].data.tool");
}

#[test]
fn long_unknown_id_is_cut_in_the_error() {
    let mut message = said("hi");
    message.metadata = meta(&json!({"skillId": "x".repeat(100_000)}));
    let (_, why) = violation(routed(&agent(), &message));
    assert!(why.len() < 300, "{} bytes", why.len());
}

#[test]
fn explicit_id_must_be_a_string_or_null() {
    let mut message = said("Book a flight to Oslo");
    message.metadata = meta(&json!({"skillId": 7}));
    assert_eq!(
        violation(routed(&agent(), &message)).0,
        "message.metadata.skillId"
    );
    message.metadata = meta(&json!({"skillId": null}));
    assert_eq!(step(&agent(), &message).1, "example");
}

#[test]
fn spellings_that_contradict_each_other_are_refused() {
    let mut message = data(json!({"skill": "add", "input": {"a": 1, "b": 2}}));
    message.metadata = meta(&json!({"skillId": "echo"}));
    let (field, why) = violation(routed(&agent(), &message));
    assert_eq!(field, "message.parts[0].data.skill");
    assert_eq!(
        why,
        "contradicts `message.metadata.skillId`, which names `echo`"
    );
    message.metadata = meta(&json!({"skillId": "add"}));
    assert_eq!(step(&agent(), &message).1, "explicit");
    let around = meta(&json!({"skill": "echo"}));
    violation(routed_with(&agent(), &message, &around));
}

#[test]
fn data_with_a_member_called_skill_is_not_a_call() {
    for value in [
        json!({"skill": "add"}),
        json!({"skill": "addition", "input": "text"}),
        json!({"skill": {"name": "add"}, "input": {}}),
        json!({"input": {}}),
        json!(["skill", "input"]),
    ] {
        let routed = routed(&agent(), &data(value.clone()));
        assert!(matches!(routed, Ok(Routed::Ask { .. })), "{value}");
    }
}

#[test]
fn tool_must_belong_to_the_named_set() {
    let call = |skill: &str, tool: &str| {
        data(json!({"skill": skill, "tool": tool, "params": {"a": 1, "b": 2}}))
    };
    let ok = step(&agent(), &call("math-set", "add"));
    assert_eq!(ok, ("add".to_owned(), "explicit"));
    for (skill, tool) in [("math-set", "echo"), ("other", "add"), ("math-set", "fly")] {
        let (field, _) = violation(routed(&agent(), &call(skill, tool)));
        assert_eq!(field, "message.parts[0].data.tool");
    }
}

#[test]
fn two_calls_or_two_sets_of_arguments_are_refused() {
    let call = json!({"skill": "add", "input": {"a": 1, "b": 2}});
    let twice = message(vec![Part::data(call.clone()), Part::data(call)]);
    violation(routed(&agent(), &twice));
    violation(routed(
        &agent(),
        &data(json!({"skill": "add", "input": {}, "params": {}})),
    ));
}

#[test]
fn a_task_keeps_its_skill() {
    let owner = id("book-flight");
    let pinned = |message: &Message| {
        let request = RouteRequest {
            pinned: Some(&owner),
            message,
            request_metadata: &Metadata::new(),
        };
        route(&agent(), &request)
    };
    let (id, how, _) = chosen(pinned(&said("/echo hi")));
    assert_eq!((id.as_str(), how), ("book-flight", "pinned"));
    let mut other = said("Oslo");
    other.metadata = meta(&json!({"skillId": "echo"}));
    assert_eq!(violation(pinned(&other)).0, "message.metadata.skillId");
    other.metadata = meta(&json!({"skillId": "book-flight"}));
    assert_eq!(chosen(pinned(&other)).1, "pinned");
}

#[test]
fn task_of_a_removed_skill_is_refused() {
    let gone = id("gone");
    let request = RouteRequest {
        pinned: Some(&gone),
        message: &said("hi"),
        request_metadata: &Metadata::new(),
    };
    let refused = route(&agent(), &request);
    assert!(matches!(
        refused,
        Err(A2aError::UnsupportedOperation { .. })
    ));
}

#[test]
fn the_only_skill_answers_everything_it_takes() {
    let agent = Agent::builder("agent").skill(book).build().unwrap();
    let decided = step(&agent, &said("anything"));
    assert_eq!(decided, ("book-flight".to_owned(), "single"));
}

fn image() -> Part {
    Part {
        media_type: Some("image/PNG; q=1".to_owned()),
        ..Part::new(PartContent::Raw(vec![1].into()))
    }
}

#[test]
fn a_command_of_the_only_skill_is_a_command() {
    let agent = Agent::builder("agent").skill(book).build().unwrap();
    let (_, how, content) = chosen(routed(&agent, &said("/book-flight to Rome")));
    assert_eq!((how, content.text().unwrap()), ("command", "to Rome"));
}

#[test]
fn the_only_skill_that_takes_the_parts_answers() {
    let decided = step(&choosy(), &message(vec![image()]));
    assert_eq!(decided, ("draw".to_owned(), "media_type"));
}

#[test]
fn parts_that_no_skill_accepts_are_refused_before_any_handler() {
    let captioned = message(vec![image(), Part::text("what is this?")]);
    assert_eq!(
        step(&choosy(), &captioned),
        ("draw".to_owned(), "media_type")
    );
    let sound = Part {
        media_type: Some("audio/mp3".to_owned()),
        ..image()
    };
    let refused = routed(&choosy(), &message(vec![Part::text("and this?"), sound]));
    let Err(A2aError::ContentTypeNotSupported { detail }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(detail, "no skill takes `text/plain`, `audio/mp3` together");
}

#[test]
fn a_chosen_skill_must_take_every_part() {
    let mut message = message(vec![Part::data(json!({"a": 1, "b": 2})), image()]);
    message.metadata = meta(&json!({"skillId": "add"}));
    let refused = routed(&agent(), &message);
    let Err(A2aError::ContentTypeNotSupported { detail }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        detail,
        "skill `add` takes `application/json`, `text/plain`, not `image/PNG; q=1`"
    );
}

#[test]
fn data_goes_to_the_only_skill_that_can_decode_it() {
    let sum = step(&agent(), &data(json!({"a": 1, "b": 2})));
    assert_eq!(sum, ("add".to_owned(), "schema"));
    let trip = step(&agent(), &data(json!({"to": "Oslo"})));
    assert_eq!(trip, ("book-flight".to_owned(), "schema"));
}

/// Subtracts two numbers.
#[skill(id = "subtract", tags = ["math"])]
async fn subtract(terms: Terms) -> AgentResult<i64> {
    Ok(terms.a - terms.b)
}

#[test]
fn data_that_fits_two_skills_leads_to_a_question() {
    let agent = Agent::builder("agent")
        .skills(Math)
        .skill(subtract)
        .skill(book);
    let agent = agent.build().unwrap();
    let (candidates, _) = asked(routed(&agent, &data(json!({"a": 1, "b": 2}))));
    assert_eq!(candidates, ["add", "subtract", "book-flight"]);
    let (id, how) = step(&agent, &data(json!({"to": "Oslo"})));
    assert_eq!((id.as_str(), how), ("book-flight", "schema"));
}

#[test]
fn a_command_goes_to_its_skill_without_the_command() {
    let (id, how, content) = chosen(routed(&agent(), &said("  /echo  hello there")));
    assert_eq!((id.as_str(), how), ("echo", "command"));
    assert_eq!(content.text().unwrap(), "hello there");
    let path = routed(&agent(), &said("/etc/passwd"));
    assert!(matches!(path, Ok(Routed::Ask { .. })), "{path:?}");
}

#[test]
fn a_named_skill_gets_no_command_of_its_own() {
    for (text, words) in [
        ("/echo hello there", "hello there"),
        ("/echo", "/echo"),
        ("/add 1 and 2", "/add 1 and 2"),
        ("/echoes of it", "/echoes of it"),
    ] {
        let mut named = said(text);
        named.metadata = meta(&json!({"skillId": "echo"}));
        let (_, how, content) = chosen(routed(&agent(), &named));
        assert_eq!((how, content.text().unwrap()), ("explicit", words));
    }
}

#[test]
fn a_command_has_json_as_the_input_of_a_skill_that_takes_data() {
    let sent = |text: &str| {
        let (id, how, content) = chosen(routed(&agent(), &said(text)));
        assert_eq!(how, "command");
        (id.as_str().to_owned(), content)
    };
    let (id, content) = sent(r#"/add {"a": 1, "b": 2}"#);
    assert_eq!(id, "add");
    assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
    let (_, content) = sent(r#"/book-flight {"to": "Oslo"}"#);
    assert_eq!(content.first_data(), Some(&json!({"to": "Oslo"})));
    // A skill that takes every part gets the text as it is.
    for text in [r#"/echo {"a": 1}"#, "/book-flight to Oslo", "/book-flight"] {
        let (_, content) = sent(text);
        assert!(content.first_data().is_none(), "{text}");
    }
    let nothing = Agent::builder("agent").skill(echo).skill(subtract);
    let routed = routed(&nothing.build().unwrap(), &said("/subtract"));
    let (_, _, content) = chosen(routed);
    assert_eq!(content.first_data(), Some(&json!({})));
}

fn asked(routed: Result<Routed, A2aError>) -> (Vec<String>, String) {
    match routed.unwrap() {
        Routed::Ask { slot, question } => (
            Offer::of(&slot)
                .skills
                .iter()
                .map(ToString::to_string)
                .collect(),
            message_text::text(&message(question)),
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_that_no_skill_declares_leads_to_a_question() {
    for text in ["I need flights to Paris", "please add these numbers", "hm"] {
        let (mut candidates, question) = asked(routed(&agent(), &said(text)));
        candidates.sort();
        assert_eq!(candidates, ["add", "book-flight", "echo"], "{text}");
        let line = "(`add`): Adds two numbers.";
        assert!(question.contains(line), "{question}");
    }
    let offer = Offer {
        skills: vec![id("add"), id("echo")],
        ..Offer::default()
    };
    let slot = offer.slot();
    assert_eq!(slot.value, json!({"candidates": ["add", "echo"]}));
    assert_eq!(Offer::of(&slot), offer);
}

#[test]
fn example_beside_data_that_its_skill_cannot_read_decides_nothing() {
    let beside =
        |value: Value| message(vec![Part::text("Book a flight to Oslo"), Part::data(value)]);
    asked(routed(&agent(), &beside(json!({"query": "tea"}))));
    let (id, how, _) = chosen(routed(&agent(), &beside(json!({"to": "Oslo"}))));
    assert_eq!((id.as_str(), how), ("book-flight", "schema"));
}

/// Each message also fits the steps of the messages below it.
#[test]
fn the_first_step_that_decides_routes_a_message() {
    let sum = || Part::data(json!({"a": 1, "b": 2}));
    let flight = || Part::text("Book a flight to Oslo");
    let mut named = message(vec![Part::text("/book-flight"), sum()]);
    named.metadata = meta(&json!({"skillId": "add"}));
    for (message, skill, how) in [
        (named, "add", "explicit"),
        (
            message(vec![Part::text("/book-flight"), sum()]),
            "book-flight",
            "command",
        ),
        (message(vec![flight(), image()]), "draw", "media_type"),
        (message(vec![flight(), sum()]), "add", "schema"),
        (message(vec![flight()]), "book-flight", "example"),
    ] {
        let decided = step(&choosy(), &message);
        assert_eq!(decided, (skill.to_owned(), how));
    }
}

fn answered(original: &Message, answer: &Message) -> Result<Routed, A2aError> {
    let offer = Offer {
        skills: vec![id("echo"), id("add"), id("book-flight")],
        ..Offer::default()
    };
    let request = RouteRequest {
        pinned: None,
        message: answer,
        request_metadata: &Metadata::new(),
    };
    let decision = route_answer(&agent(), original, &offer, &request)?;
    decision.map_or_else(|| route(&agent(), &request), Ok)
}

#[test]
fn a_command_decides_also_where_a_skill_lacks_its_input() {
    let offer = Offer {
        skills: vec![id("echo")],
        lacks: true,
        ..Offer::default()
    };
    for (text, skill, how, words) in [
        ("hello", "echo", "text", "hello"),
        ("/echo hello", "echo", "command", "hello"),
        ("/book-flight to Oslo", "book-flight", "command", "to Oslo"),
    ] {
        let request = RouteRequest {
            pinned: None,
            message: &said(text),
            request_metadata: &Metadata::new(),
        };
        let decision = route_answer(&agent(), &message(vec![image()]), &offer, &request);
        let (id, step, content) = chosen(decision.map(Option::unwrap));
        assert_eq!((id.as_str(), step), (skill, how));
        assert_eq!(content.text().unwrap(), words);
    }
}

#[test]
fn answer_with_a_skill_id_sends_the_original_message_to_it() {
    let original = said("Paris");
    for answer in ["book-flight", " `Book-Flight` ", "/book-flight", "3", "3."] {
        let (id, how, content) = chosen(answered(&original, &said(answer)));
        assert_eq!((id.as_str(), how), ("book-flight", "answer"), "{answer}");
        assert_eq!(content.text().unwrap(), "Paris");
    }
    // A text that chooses the skill says nothing more than the metadata; another one is the request.
    for (text, content) in [
        ("echo", "Paris"),
        ("1", "Paris"),
        ("  ", "Paris"),
        ("more", "more"),
    ] {
        let mut answer = said(text);
        answer.metadata = meta(&json!({"skillId": "echo"}));
        let (id, _, input) = chosen(answered(&original, &answer));
        assert_eq!((id.as_str(), input.text().unwrap()), ("echo", content));
    }
}

#[test]
fn answer_with_arguments_or_other_text_replaces_the_request() {
    let original = said("hm");
    let call = data(json!({"skill": "add", "input": {"a": 1, "b": 2}}));
    let (id, _, content) = chosen(answered(&original, &call));
    assert_eq!(id, "add");
    assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
    let (id, how, content) = chosen(answered(&original, &said("book a flight to Oslo")));
    assert_eq!((id.as_str(), how), ("book-flight", "example"));
    assert_eq!(content.text().unwrap(), "book a flight to Oslo");
    asked(answered(&original, &said("no idea")));
    let mut unknown = said("this one");
    unknown.metadata = meta(&json!({"skillId": "fly"}));
    violation(answered(&original, &unknown));
}
