use super::{Asked, Hybrid, HybridSkill};
use crate::erased::{AnySkill, ErasedSkill};
use crate::testing::{RecordingHost, delivered, message, turn};
use crate::{AgentResult, AuthHint, Content, Skill, SkillMetadata, SkillSlot, TaskContext, Thread};
use crate::{SkillOutcome, StartInput, TurnStart};
use a2a_lambda_model::task::{Part, PartContent, SavedSlot};
use serde_json::json;

#[test]
fn only_a_complete_json_object_asks() {
    let asks = |reply: &str| !matches!(Hybrid::parse(reply), Hybrid::Reply(_));
    assert!(asks(
        " \n{\"state\":\"input-required\",\"prompt\":\"Which?\"} "
    ));
    for reply in [
        "Sure: {\"state\":\"input-required\",\"prompt\":\"Which?\"}",
        "{\"state\":\"input-required\",\"prompt\":\"Which?\"} Thanks.",
        "Here:\n```json\n{\"state\":\"input-required\",\"prompt\":\"Which?\"}\n```",
        "```json\n{\"state\":\"input-required\",\"prompt\":\"Which?\"}\n```\nThanks.",
        "```json\n{\"state\":\"input-required\",\"prompt\":\"Which?\"}```",
        "```json {\"state\":\"input-required\",\"prompt\":\"Which?\"} ```",
        "````\n```json\n{\"state\":\"input-required\",\"prompt\":\"Which?\"}\n```\n````",
        "[{\"state\":\"input-required\",\"prompt\":\"Which?\"}]",
        "{\"state\":\"completed\",\"prompt\":\"Which?\"}",
        "{\"state\":\"input-required\",\"prompt\":\"  \"}",
        "{\"state\":\"input-required\"}",
        "{\"prompt\":\"Which?\"}",
        "{\"state\":\"input-required\",\"prompt\":5}",
        "plain words",
        "",
    ] {
        assert_eq!(Hybrid::parse(reply), Hybrid::Reply(reply.to_owned()));
    }
}

#[test]
fn object_in_one_fence_that_wraps_the_reply_asks() {
    let prompt = "Which?".to_owned();
    let object = r#"{"state":"input-required","prompt":"Which?"}"#;
    for (open, close) in [
        ("```json\n", "\n```"),
        ("\n ```\n", "\n``` \n"),
        ("```JSON\r\n", "\r\n```"),
    ] {
        let reply = format!("{open}{object}{close}");
        let question = Hybrid::InputRequired {
            prompt: prompt.clone(),
        };
        assert_eq!(Hybrid::parse(&reply), question, "{reply}");
    }
    let two = format!("```json\n{object}\n```\n```json\n{object}\n```");
    assert_eq!(Hybrid::parse(&two), Hybrid::Reply(two));
    let code = "```json\n{\"a\": 1}\n```";
    assert_eq!(Hybrid::parse(code), Hybrid::Reply(code.to_owned()));
}

#[test]
fn credentials_question_contains_the_hint_of_the_reply() {
    let reply = r#"{"state":"auth-required","prompt":"Log in","service":"drive"}"#;
    let auth = AuthHint {
        auth_type: None,
        service: Some("drive".to_owned()),
    };
    let prompt = "Log in".to_owned();
    assert_eq!(Hybrid::parse(reply), Hybrid::AuthRequired { prompt, auth });
}

struct Report;

impl Skill for Report {
    const METADATA: SkillMetadata = SkillMetadata::new("report", "Formats a report.", &["t"]);
}

/// Answers with the last text of the thread.
async fn reply(cx: &mut TaskContext<'_>, thread: &Thread) -> AgentResult<String> {
    cx.send_intermediate_update("reading").await?;
    let last = thread.last(1).flat_map(|event| &event.parts).next();
    Ok(match last.map(|part| &part.content) {
        Some(PartContent::Text(text)) => text.clone(),
        _ => "nothing".to_owned(),
    })
}

fn said(texts: &[&str]) -> RecordingHost {
    RecordingHost {
        thread: texts
            .iter()
            .map(|text| message(vec![Part::text(*text)]))
            .collect(),
        ..RecordingHost::default()
    }
}

fn skill() -> impl AnySkill {
    ErasedSkill::<_, Asked>::new(HybridSkill::new(Report, reply))
}

fn start(host: &RecordingHost) -> SkillOutcome {
    let skill = skill();
    let input = skill.decode(&"ignored".into()).unwrap();
    turn(
        &skill,
        host,
        TurnStart::by_caller(StartInput::Request(input)),
    )
}

#[test]
fn ordinary_reply_completes_with_an_artifact_named_after_the_skill() {
    let host = said(&["# Report"]);
    let SkillOutcome::Completed { artifacts, .. } = start(&host) else {
        panic!("not completed");
    };
    let artifact = ("report".to_owned(), json!("# Report"));
    assert_eq!(delivered(&artifacts), [artifact]);
    assert_eq!(host.shown(), ["reading"]);
}

#[test]
fn a_structured_reply_asks_and_the_same_function_answers() {
    let question = r#"{"state":"input-required","prompt":"Which format?"}"#;
    let SkillOutcome::InputRequired { message, slot } = start(&said(&[question])) else {
        panic!("no question");
    };
    assert_eq!(message.text().unwrap(), "Which format?");
    assert_eq!(slot.value["prompt"], "Which format?");
    let host = said(&[question, "pdf"]);
    let call = TurnStart::by_caller(StartInput::Answer(slot, Content::from_text("pdf")));
    let SkillOutcome::Completed { artifacts, .. } = turn(&skill(), &host, call) else {
        panic!("not completed");
    };
    assert_eq!(delivered(&artifacts)[0].1, "pdf");
}

#[test]
fn credentials_reach_the_function_and_not_the_thread() {
    let demand = r#"{"state":"auth-required","prompt":"Log in"}"#;
    let host = said(&[demand]);
    let SkillOutcome::AuthRequired { slot, .. } = start(&host) else {
        panic!("no demand");
    };
    let call = TurnStart::by_caller(StartInput::Answer(slot, Content::from_text("token")));
    let SkillOutcome::Completed { artifacts, .. } = turn(&skill(), &host, call) else {
        panic!("not completed");
    };
    assert_eq!(delivered(&artifacts)[0].1, "token");
    assert_eq!(host.thread.len(), 1);
}

#[test]
fn the_slot_of_a_hybrid_skill_has_a_version() {
    let saved = SavedSlot {
        version: Asked::VERSION,
        value: json!({"prompt": "?", "auth": false}),
    };
    let call = TurnStart::by_caller(StartInput::Answer(saved, Content::from_text("x")));
    let outcome = turn(&skill(), &said(&["done"]), call);
    assert!(matches!(outcome, SkillOutcome::Completed { .. }));
}
