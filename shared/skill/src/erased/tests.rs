use crate::StartInput;
use crate::erased::{AnySkill, ErasedSkill, SkillOutcome, TurnStart};
use crate::testing::{RecordingHost, block_on, caller, delivered, request, turn};
use crate::{
    AgentError, AgentResult, Artifact, AuthHint, Content, ErrorCode, FinishedTask, NoOutput,
    NoSlot, OnInputResult, OnRequestResult, Saying, Skill, SkillHandler, SkillMetadata, SkillSlot,
    TaskContext, TextOr,
};
use a2a_lambda_model::task::{ContextId, Part, SavedSlot, SkillId, TaskId, TaskState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

struct BookFlight;

impl Skill for BookFlight {
    const METADATA: SkillMetadata = SkillMetadata::new("book-flight", "Books a flight.", &["t"]);
}

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    Where { on: Option<String> },
    When { to: String },
}

impl SkillSlot for Ask {
    const VERSION: u32 = 2;

    // Version 1 saved the destination only, as a string.
    fn migrate(from: u32, saved: Value) -> Option<Self> {
        match (from, saved) {
            (1, Value::String(to)) => Some(Self::When { to }),
            _ => None,
        }
    }
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields)]
struct Flight {
    to: Option<String>,
    on: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Booking {
    to: String,
    on: String,
}

impl SkillHandler<Ask> for BookFlight {
    type Input = TextOr<Flight>;
    type Output = Booking;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: TextOr<Flight>,
    ) -> AgentResult<OnRequestResult<Booking, Ask>> {
        let Flight { to, on } = match input {
            TextOr::Data(flight) => flight,
            TextOr::Text(_) => Flight::default(),
        };
        match (to, on) {
            (None, on) => OnRequestResult::ask("Where to?", Ask::Where { on }),
            (Some(to), None) => OnRequestResult::ask("When?", Ask::When { to }),
            (Some(to), Some(on)) => OnRequestResult::done(Booking { to, on }),
        }
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: Ask,
        said: Content,
    ) -> AgentResult<OnInputResult<Booking, Ask>> {
        let answer = said.text()?.trim().to_owned();
        match slot {
            Ask::Where { on: None } => OnInputResult::ask("When?", Ask::When { to: answer }),
            Ask::Where { on: Some(on) } => OnInputResult::done(Booking { to: answer, on }),
            Ask::When { to } => OnInputResult::done(Booking { to, on: answer }),
        }
    }
}

fn book_flight() -> ErasedSkill<BookFlight, Ask> {
    ErasedSkill::new(BookFlight)
}

fn asked(outcome: SkillOutcome) -> (String, SavedSlot) {
    match outcome {
        SkillOutcome::InputRequired { message, slot } => (message.text().unwrap().to_owned(), slot),
        other => panic!("{other:?}"),
    }
}

fn completed(outcome: SkillOutcome) -> Vec<(String, Value)> {
    match outcome {
        SkillOutcome::Completed { artifacts, .. } => delivered(&artifacts),
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: SkillOutcome) -> AgentError {
    match outcome {
        SkillOutcome::Failed { error } => error,
        other => panic!("{other:?}"),
    }
}

fn answer(skill: &dyn AnySkill, slot: SavedSlot, said: &str) -> SkillOutcome {
    turn(
        skill,
        &RecordingHost::default(),
        TurnStart::by_caller(StartInput::Answer(slot, said.into())),
    )
}

#[test]
fn two_questions_lead_to_a_booking() {
    let skill = book_flight();
    let (question, slot) = asked(request(&skill, "Book a flight"));
    assert_eq!(question, "Where to?");
    assert_eq!(slot.version, 2);
    let (question, slot) = asked(answer(&skill, slot, " Helsinki "));
    assert_eq!(question, "When?");
    let booked = completed(answer(&skill, slot, "Friday"));
    let booking = json!({"to": "Helsinki", "on": "Friday"});
    assert_eq!(booked, [("book-flight".to_owned(), booking)]);
}

#[test]
fn skill_does_not_ask_for_known_data() {
    let data = Content::from_data(&json!({"to": "Helsinki"})).unwrap();
    let (question, _) = asked(request(&book_flight(), data));
    assert_eq!(question, "When?");
}

#[test]
fn a_slot_of_an_older_version_is_migrated() {
    let slot = SavedSlot {
        version: 1,
        value: json!("Oslo"),
    };
    let booked = completed(answer(&book_flight(), slot, "Friday"));
    assert_eq!(booked[0].1, json!({"to": "Oslo", "on": "Friday"}));
}

#[test]
fn unreadable_slot_fails_the_task_as_incompatible() {
    for (version, value) in [(1, json!(5)), (3, json!({"When": {"to": "Oslo"}}))] {
        let slot = SavedSlot { version, value };
        let error = failed(answer(&book_flight(), slot, "Friday"));
        assert_eq!(error.code(), ErrorCode::StateIncompatible);
    }
    let broken = SavedSlot {
        version: 2,
        value: json!({"Who": {}}),
    };
    let error = failed(answer(&book_flight(), broken, "Friday"));
    assert_eq!(error.code(), ErrorCode::StateIncompatible);
    assert!(!error.text().contains("Who"), "{}", error.text());
}

#[test]
fn an_error_of_a_handler_fails_the_task_with_its_code() {
    let (_, slot) = asked(request(&book_flight(), "Book a flight"));
    let silence = Content::from_parts(vec![Part::data(json!(1))]);
    let outcome = turn(
        &book_flight(),
        &RecordingHost::default(),
        TurnStart::by_caller(StartInput::Answer(slot, silence)),
    );
    assert_eq!(failed(outcome).code(), ErrorCode::MissingInput);
}

/// A one-shot skill that ends its task with the given result.
struct Gives<O>(fn() -> AgentResult<OnRequestResult<O>>);

impl<O> Skill for Gives<O> {
    const METADATA: SkillMetadata = SkillMetadata::new("gives", "Gives something.", &["t"]);
}

impl<O: crate::SkillOutput> SkillHandler for Gives<O> {
    type Input = String;
    type Output = O;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<O>> {
        (self.0)()
    }
}

#[test]
fn the_output_is_the_last_artifact_named_after_the_skill() {
    let skill = ErasedSkill::<_, NoSlot>::new(Gives(|| {
        Ok(OnRequestResult::Completed {
            message: None,
            output: 3,
            artifacts: vec![Artifact::from_text("log", "counted")],
        })
    }));
    let artifacts = completed(request(&skill, "count"));
    assert_eq!(
        artifacts,
        [
            ("log".to_owned(), json!("counted")),
            ("gives".to_owned(), json!(3))
        ]
    );
}

#[test]
fn a_line_is_the_last_message_and_the_artifact_stays() {
    let outcome = |give| request(&ErasedSkill::<_, NoSlot>::new(Gives(give)), "count");
    let parts = |outcome| match outcome {
        SkillOutcome::Completed {
            message, artifacts, ..
        } => (
            message.map(Content::into_parts),
            artifacts[0].parts.clone(),
            artifacts.len(),
        ),
        other => panic!("{other:?}"),
    };
    let (silence, data, _) = parts(outcome(|| OnRequestResult::done(3)));
    let (line, beside, count) = parts(outcome(|| OnRequestResult::done(3).saying("Three.")));
    assert_eq!(silence, None);
    assert_eq!(line, Some(vec![Part::text("Three.")]));
    assert_eq!((beside, count), (data, 1));
}

#[test]
fn a_line_changes_no_result_that_does_not_complete() {
    type Result = AgentResult<OnRequestResult<u8, Ask>>;
    let question: Result = OnRequestResult::ask("Where to?", Ask::Where { on: None });
    let rejection: Result = OnRequestResult::reject("not on Sundays");
    let error: Result = Err(AgentError::domain("BUSY", "please try again"));
    for result in [question, rejection, error] {
        let before = format!("{result:?}");
        assert_eq!(format!("{:?}", result.saying("Booked.")), before);
    }
}

#[test]
fn a_skill_rejects_a_task_with_a_reason() {
    let skill =
        ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::<u8>::reject("not on Sundays")));
    let outcome = request(&skill, "count");
    assert!(
        matches!(&outcome, SkillOutcome::Rejected { reason } if reason == "not on Sundays"),
        "{outcome:?}"
    );
}

#[test]
fn text_output_is_a_text_part_and_unit_makes_no_artifact() {
    let text = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done("three".to_owned())));
    let SkillOutcome::Completed { artifacts, .. } = request(&text, "count") else {
        panic!("not completed");
    };
    assert_eq!(artifacts[0].text().as_deref(), Some("three"));
    let unit = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done(())));
    assert!(completed(request(&unit, "count")).is_empty());
    assert_eq!(unit.output_schema(), None);
    let none = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done(None::<u8>)));
    assert!(completed(request(&none, "count")).is_empty());
}

#[test]
fn an_output_that_cannot_be_written_fails_the_task() {
    #[derive(JsonSchema)]
    struct Broken;
    impl Serialize for Broken {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("secret"))
        }
    }
    let skill = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done(Broken)));
    let error = failed(request(&skill, "go"));
    assert_eq!(error.code(), ErrorCode::Serialization);
    assert!(!error.text().contains("secret"));
    assert_eq!(error.cause(), Some("secret"));
}

#[test]
fn a_skill_without_output_or_slot_makes_no_task() {
    let replies = ErasedSkill::<Gives<NoOutput>, NoSlot>::new(Gives(|| {
        Ok(OnRequestResult::Message {
            message: "hello".into(),
        })
    }));
    assert!(!replies.makes_task());
    assert!(matches!(
        request(&replies, "hi"),
        SkillOutcome::Message { .. }
    ));
    let works = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done(())));
    assert!(works.makes_task());
    assert!(book_flight().makes_task());
}

#[test]
fn rejection_keeps_its_reason_and_failure_its_error() {
    let rejects = ErasedSkill::<Gives<()>, NoSlot>::new(Gives(|| {
        Ok(OnRequestResult::Rejected {
            reason: "not today".to_owned(),
        })
    }));
    let SkillOutcome::Rejected { reason } = request(&rejects, "go") else {
        panic!("not rejected");
    };
    assert_eq!(reason, "not today");
    let fails = ErasedSkill::<Gives<()>, NoSlot>::new(Gives(|| {
        Ok(OnRequestResult::Failed {
            error: AgentError::domain("TOO_LATE", "too late"),
        })
    }));
    assert_eq!(failed(request(&fails, "go")).code().as_str(), "TOO_LATE");
}

#[test]
fn auth_required_carries_its_hint_and_slot() {
    struct Login;
    impl Skill for Login {
        const METADATA: SkillMetadata = SkillMetadata::new("login", "Logs in.", &["t"]);
    }
    impl SkillHandler<Ask> for Login {
        type Input = String;
        type Output = ();
        async fn on_request(
            &self,
            _: &mut TaskContext<'_>,
            to: String,
        ) -> AgentResult<OnRequestResult<(), Ask>> {
            let hint = AuthHint::new("oauth2", "calendar");
            OnRequestResult::ask_credentials("log in", Ask::When { to }, hint)
        }
        async fn on_input_received(
            &self,
            _: &mut TaskContext<'_>,
            _: Ask,
            _: Content,
        ) -> AgentResult<OnInputResult<(), Ask>> {
            OnInputResult::done(())
        }
    }
    let skill = ErasedSkill::<_, Ask>::new(Login);
    let SkillOutcome::AuthRequired { slot, auth, .. } = request(&skill, "Oslo") else {
        panic!("no demand");
    };
    assert_eq!(slot.value, json!({"When": {"to": "Oslo"}}));
    assert_eq!(auth, AuthHint::new("oauth2", "calendar"));
    assert!(completed(answer(&skill, slot, "token")).is_empty());
}

#[test]
fn modes_are_what_the_types_imply() {
    let modes = |skill: &dyn AnySkill| {
        let metadata = *skill.metadata();
        (metadata.input_modes, metadata.output_modes)
    };
    let text: &[&str] = &["text/plain"];
    let json: &[&str] = &["application/json"];
    let both: &[&str] = &["text/plain", "application/json"];
    let says = ErasedSkill::<_, NoSlot>::new(Gives(|| OnRequestResult::done(String::new())));
    assert_eq!(modes(&says), (both, text));
    assert_eq!(modes(&book_flight()), (both, json));
    assert_eq!(book_flight().metadata().name, "book-flight");
}

#[test]
fn on_completed_runs_after_the_end_of_a_task() {
    #[derive(Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);
    impl Skill for Notes {
        const METADATA: SkillMetadata = SkillMetadata::new("notes", "Takes notes.", &["t"]);
    }
    impl SkillHandler for Notes {
        type Input = String;
        type Output = ();
        async fn on_request(
            &self,
            _: &mut TaskContext<'_>,
            _: String,
        ) -> AgentResult<OnRequestResult<()>> {
            OnRequestResult::done(())
        }
        async fn on_completed(&self, task: &FinishedTask) {
            self.0.lock().unwrap().push(task.state.to_string());
        }
    }
    let notes = Notes::default();
    let taken = Arc::clone(&notes.0);
    let settled = FinishedTask {
        task_id: TaskId::made_of(1),
        context_id: ContextId::made_of(1),
        skill: SkillId::parse("notes").unwrap(),
        state: TaskState::Canceled,
        artifacts: Vec::new(),
        caller: caller(),
    };
    let skill: &dyn AnySkill = &ErasedSkill::<_, NoSlot>::new(notes);
    block_on(skill.on_completed(&settled));
    assert_eq!(*taken.lock().unwrap(), ["canceled"]);
    // A skill without the handler uses the default, which does nothing.
    block_on(book_flight().on_completed(&settled));
}
