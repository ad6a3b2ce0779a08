use super::{data, skill_test};
use crate::agent;
use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use a2a_lambda::task::{A2aError, TaskState};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[tokio::test]
async fn a_flight_is_booked_after_two_questions() {
    let mut skill_test = skill_test("book-flight");
    let reply = skill_test.send("Book a flight").await.unwrap();
    assert_eq!(
        (reply.state(), reply.text()),
        (Some(TaskState::InputRequired), "Where to?")
    );
    let reply = skill_test.send("Helsinki").await.unwrap();
    assert_eq!(
        (reply.state(), reply.text()),
        (Some(TaskState::InputRequired), "When?")
    );
    let reply = skill_test.send("Next Monday").await.unwrap();
    assert_eq!(
        (reply.state(), reply.text()),
        (
            Some(TaskState::Completed),
            "Booked a flight to Helsinki for Next Monday"
        )
    );
    let booking = json!({ "to": "Helsinki", "on": "Next Monday" });
    assert_eq!(reply.artifact_data("book-flight"), Some(booking));
    let said = [
        "Book a flight",
        "Where to?",
        "Helsinki",
        "When?",
        "Next Monday",
        "Booked a flight to Helsinki for Next Monday",
    ];
    assert_eq!(reply.conversation(), said);
}

#[tokio::test]
async fn skill_does_not_ask_for_known_values() {
    let mut skill_test = skill_test("book-flight");
    let reply = skill_test
        .send(data(&json!({ "on": "Friday" })))
        .await
        .unwrap();
    assert_eq!(reply.text(), "Where to?");
    let reply = skill_test.send("Oslo").await.unwrap();
    let booking = json!({ "to": "Oslo", "on": "Friday" });
    assert_eq!(reply.artifact_data("book-flight"), Some(booking));

    skill_test.new_context();
    let reply = skill_test
        .send(data(&json!({ "to": "Oslo" })))
        .await
        .unwrap();
    assert_eq!(reply.text(), "When?");
}

#[tokio::test]
async fn empty_answer_repeats_the_question() {
    let mut skill_test = skill_test("book-flight");
    skill_test.send("Book a flight").await.unwrap();
    let reply = skill_test.send("  ").await.unwrap();
    assert_eq!(
        (reply.state(), reply.text()),
        (Some(TaskState::InputRequired), "Where to?")
    );
}

#[tokio::test]
async fn client_cancels_instead_of_answering() {
    let mut skill_test = skill_test("book-flight");
    skill_test.send("Book a flight").await.unwrap();
    let canceled = skill_test.cancel().await.unwrap();
    assert_eq!(canceled.state(), Some(TaskState::Canceled));
    let again = skill_test.cancel().await.unwrap();
    assert_eq!(again.state(), Some(TaskState::Canceled));
}

#[tokio::test]
async fn another_caller_cannot_answer() {
    let mut skill_test = skill_test("book-flight");
    skill_test.send("Book a flight").await.unwrap();
    for (tenant, subject) in [("bench", "mallory"), ("other", "bench")] {
        let error = skill_test
            .caller(tenant, subject)
            .unwrap()
            .send("Oslo")
            .await
            .unwrap_err();
        assert_eq!(
            error.refusal(),
            Some(&A2aError::TaskNotFound),
            "{tenant} {subject}"
        );
    }
    let reply = skill_test
        .caller("bench", "bench")
        .unwrap()
        .send("Oslo")
        .await
        .unwrap();
    assert_eq!(reply.text(), "When?");
}

/// The skill with version 1 of its slot.
#[skill(id = "book-flight", description = "As it was.", tags = ["test"])]
struct Before;

#[derive(Serialize, Deserialize)]
enum FirstAsk {
    Where,
    When(String),
}

impl SkillSlot for FirstAsk {}

impl SkillHandler<FirstAsk> for Before {
    type Input = String;
    type Output = ();

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<(), FirstAsk>> {
        OnRequestResult::ask("Where to?", FirstAsk::Where)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: FirstAsk,
        said: Content,
    ) -> AgentResult<OnInputResult<(), FirstAsk>> {
        OnInputResult::ask("When?", FirstAsk::When(said.text()?.to_owned()))
    }
}

fn before() -> AgentDefinition {
    Agent::builder("before").skill(Before).build().unwrap()
}

#[tokio::test]
async fn new_version_accepts_the_answer_to_an_old_question() {
    let mut skill_test = SkillTest::new(&before(), "book-flight");
    skill_test.send("Book a flight").await.unwrap();
    let reply = skill_test
        .redeploy(&agent().unwrap())
        .send("Helsinki")
        .await
        .unwrap();
    assert_eq!(reply.text(), "When?");

    let mut skill_test = SkillTest::new(&before(), "book-flight");
    skill_test.send("Book a flight").await.unwrap();
    skill_test.send("Helsinki").await.unwrap();
    let reply = skill_test
        .redeploy(&agent().unwrap())
        .send("Monday")
        .await
        .unwrap();
    let booking = json!({ "to": "Helsinki", "on": "Monday" });
    assert_eq!(reply.artifact_data("book-flight"), Some(booking));
}

#[tokio::test]
async fn a_question_of_the_new_version_fails_after_a_roll_back() {
    let mut skill_test = skill_test("book-flight");
    skill_test.send("Book a flight").await.unwrap();
    let reply = skill_test
        .redeploy(&before())
        .send("Helsinki")
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Failed));
    assert_eq!(reply.error_code(), Some("STATE_INCOMPATIBLE"));
}
