use super::*;
use crate::engine::EngineError;
use crate::store::StoreError;
use crate::task::A2aError;
use a2a_lambda_rows::each_row;

const RUNBOOK: &str = include_str!("../../../../../docs/operations.md");
const CODES: &str = include_str!("../../../../skill/src/error.rs");
const ERRORS: &str = include_str!("../../../../../tests/conformance/vectors/errors.json");

/// The cells of a row that the table decides.
fn cells(outcome: &OutcomeRow) -> String {
    format!("| {} | {} |", outcome.class.word(), outcome.does)
}

#[test]
fn an_operator_finds_each_outcome_in_the_runbook() {
    let rows = [TASKS, CALLERS, EVENTS].concat();
    let rows = rows.iter().map(|row| {
        let words = row.words.iter().map(|word| format!("`{word}`"));
        format!(
            "| {} {}\n",
            words.collect::<Vec<_>>().join(", "),
            cells(row)
        )
    });
    let rows: String = rows.collect();
    assert!(RUNBOOK.contains(&rows), "the runbook lacks:\n{rows}");
    each_row(CALLS, |outcome| {
        for word in outcome.words {
            let word = format!("| `{word}` | -");
            let rows = RUNBOOK.lines().filter(|line| line.starts_with(&word));
            let rows: Vec<&str> = rows.collect();
            assert_eq!(rows.len(), 1, "{word}");
            let cells = cells(outcome);
            assert!(rows[0].ends_with(&cells), "{word} {cells}");
        }
    });
}

#[test]
fn each_error_of_a_call_and_each_code_of_a_task_has_a_row() {
    let known = |outcomes: &[OutcomeRow]| -> Vec<_> {
        outcomes
            .iter()
            .flat_map(|it| it.words.iter().copied())
            .collect()
    };
    let errors: Vec<serde_json::Value> = serde_json::from_str(ERRORS).unwrap();
    let calls = known(CALLS);
    for error in &errors {
        assert!(
            calls.contains(&error["reason"].as_str().unwrap()),
            "{error}"
        );
    }
    let codes = CODES
        .split(" = \"")
        .skip(1)
        .filter_map(|rest| rest.split_once("\";"));
    let codes: Vec<&str> = codes.map(|(code, _)| code).collect();
    assert!(codes.len() > 25, "{codes:?}");
    each_row(codes, |code| {
        assert!(known(TASKS).contains(&code), "{code}")
    });
}

#[test]
fn a_table_with_a_deny_policy_is_no_fault_of_the_caller_and_a_brake_is_none_of_the_store() {
    let denied = StoreError::Refused("no identity-based policy allows the action".to_owned());
    let brake = A2aError::Unavailable { retry_after: 60 };
    let rows = [
        (EngineError::from(denied), FaultClass::Store),
        (
            StoreError::Unavailable(String::new()).into(),
            FaultClass::Store,
        ),
        (StoreError::Form(9).into(), FaultClass::Ours),
        (EngineError::internal("a rule"), FaultClass::Ours),
        (brake.into(), FaultClass::Caller),
        (
            A2aError::Unfinished { retry_after: 1 }.into(),
            FaultClass::Caller,
        ),
        (
            A2aError::Unavailable { retry_after: 1 }.into(),
            FaultClass::Store,
        ),
        (A2aError::TaskNotFound.into(), FaultClass::Caller),
    ];
    each_row(rows, |(error, class)| {
        assert_eq!(error.class(), class, "{error:?}")
    });
}

#[test]
fn an_author_says_that_a_tool_failed_by_the_beginning_of_a_code() {
    let rows = [
        ("TOOL_DOWN", FaultClass::Tool),
        ("OUT_OF_STOCK", FaultClass::Caller),
        ("MODEL_PROVIDER", FaultClass::Model),
        ("RUN_LIMIT_EXCEEDED", FaultClass::Ours),
        ("BUDGET_EXCEEDED", FaultClass::Caller),
    ];
    each_row(rows, |(code, class)| {
        assert_eq!(class_of(TASKS, code), class, "{code}")
    });
}
