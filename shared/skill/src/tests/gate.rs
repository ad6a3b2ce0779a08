use crate::TurnFacts;
use crate::gate::{ConsentCall, ask_consent, verdict};
use crate::testing::facts;
use a2a_lambda_model::task::{Message, Part, TaskId};
use serde_json::{Value, json};

/// The digest of the question about a payment, whose input has this schema.
fn digest(task: u128, number: u32, input: &Value, schema: &Value) -> String {
    let call = ConsentCall {
        skill: "pay",
        input,
        schema,
    };
    let facts = TurnFacts {
        task_id: TaskId::made_of(task),
        consents: number - 1,
        ..facts()
    };
    let question = ask_consent(&facts, &[call]).unwrap();
    question
        .confirmation()
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_consent_is_for_one_question_of_one_task_about_one_input_of_one_schema() {
    let (input, schema) = (
        json!({"sum": 7}),
        json!({"properties": {"sum": {"type": "integer"}}}),
    );
    let first = digest(1, 1, &input, &schema);
    let explained = json!({
        "description": "A payment.",
        "properties": {"sum": {"type": "integer", "description": "In euros."}},
    });
    assert_eq!(digest(1, 1, &input, &explained), first);
    let cents = json!({"properties": {"sum": {"type": "integer"}, "cents": {}}});
    // A member that is called so is no description.
    let described = json!({"properties": {"sum": {"type": "integer"}, "description": {}}});
    let others = [
        digest(2, 1, &input, &schema),
        digest(1, 2, &input, &schema),
        digest(1, 1, &json!({"sum": 8}), &schema),
        digest(1, 1, &input, &cents),
        digest(1, 1, &input, &described),
    ];
    assert!(others.iter().all(|other| *other != first), "{others:?}");
}

#[test]
fn a_verdict_takes_the_words_of_the_question_and_no_others() {
    let digest = format!("abc{}", "0".repeat(61));
    let says = |text: &str| {
        let verdict = verdict(&digest, &Message::from_user("m", vec![Part::text(text)]));
        (verdict.agrees, verdict.is_named)
    };
    for text in ["yes piza", "Yes, PIZA.", " `yes piza` "] {
        assert_eq!(says(text), (Some(true), true), "{text}");
    }
    assert_eq!(says("no piza"), (Some(false), true));
    assert_eq!(
        (says("Yes!"), says("no.")),
        ((Some(true), false), (Some(false), false))
    );
    for text in [
        "yes pizo",
        "yes it is",
        "ok",
        "y",
        "piza",
        "",
        "yes yes",
        "no way",
    ] {
        assert_eq!(says(text).0, None, "{text}");
    }
}
