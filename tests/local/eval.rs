//! The command `eval`: data sets, live and from cassettes.

use crate::agent::{Folder, ModelService, ended, ended_in, refusal_in};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Output;

/// The folder of the repository's data sets.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../eval"))
}

/// A folder with this data set.
fn folder(lines: &[&str]) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path().join("set.jsonl"), lines.join("\n")).unwrap();
    folder
}

/// Runs the data set of `folder`.
async fn evaluated(folder: &Folder, more: &[&str], settings: &[(&str, &str)]) -> Output {
    let arguments = [&["eval", "set.jsonl"], more].concat();
    ended_in(folder, &arguments, settings).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The lines were written by others than the author of the router.
#[tokio::test]
async fn each_message_of_the_repository_reaches_its_skill_by_the_expected_rule() {
    let file = repository().join("router.jsonl");
    let output = ended(&["eval", file.to_str().unwrap()], &[]).await;
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}");
    let count = fs::read_to_string(file).unwrap().lines().count();
    let summary = format!("\nok {count}, failed 0, tokens 0; ");
    assert!(table.contains(&summary), "{table}");
}

#[tokio::test]
async fn answers_that_are_as_expected_pass() {
    let folder = folder(&[
        // A mark at the beginning, as editors of Windows write it.
        "\u{feff}{\"text\": \"/echo hi\", \"skill\": \"echo\", \"by\": \"command\", \"contains\": \"hi\"}",
        r#"{"data": {"a": 19, "b": 23}, "by": "schema", "equals": {"sum": 42.0}}"#,
        r#"{"text": "Add 17 and 4", "artifact": "add", "equals": {"sum": 21}, "tokens_below": 1}"#,
        r#"{"earlier": ["Book a flight"], "to": "task", "text": "Rome", "by": "pinned", "contains": "When"}"#,
        r#"{"text": "hm", "skill": null, "contains": "?"}"#,
    ]);
    let output = evaluated(&folder, &[], &[]).await;
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}");
    assert!(table.contains("\nok 5, failed 0, "), "{table}");
}

#[tokio::test]
async fn each_fault_is_told_with_what_happened_and_the_exit_code_is_one() {
    let folder = folder(&[
        r#"{"text": "/echo hi", "skill": "add", "by": "text"}"#,
        r#"{"text": "/echo hi", "skill": null, "contains": "ho"}"#,
        r#"{"data": {"a": 19, "b": 23}, "equals": {"sum": 43}}"#,
        r#"{"text": "Add 17 and 4", "artifact": "sum", "contains": "21"}"#,
        r#"{"text": "Add 17 and 4", "tool": "calculator", "tokens_below": 0}"#,
        r#"{"text": "/add many", "tokens_below": 10}"#,
        r#"{"earlier": ["/echo hi"], "to": "task", "text": "again", "skill": "echo"}"#,
        r#"{"text": "/echo hi", "contains": "hi"}"#,
        r#"{"text": "hm", "contains": "hm"}"#,
        r#"{"data": {"a": 9007199254740992, "b": 1}, "equals": {"sum": 9007199254740992}}"#,
        r#"{"text": "hm", "by": "ask", "artifact": "sum"}"#,
    ]);
    let output = evaluated(&folder, &[], &[]).await;
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}");
    for fault in [
        "line 1: the skill is `echo`, expected `add`",
        "line 1: `command` decides, expected `text`",
        "line 2: the skill is `echo`, expected a question",
        "line 2: `ho` is not in: hi",
        r#"line 3: no data is {"sum":43}; there is: {"sum":42}"#,
        "line 4: no artifact `sum`; there are: add",
        "line 5: no model called `calculator`; called: ",
        "line 5: 0 tokens, expected below 0",
        "line 6: ",
        "line 7: `earlier` leaves no open task for `to`",
        "line 9: no skill has got the message: the agent asks which one",
        r#"line 10: no data is {"sum":9007199254740992}; there is: {"sum":9007199254740993}"#,
        "line 11: no artifact `sum`; the agent asks: ",
        "\nok 1, failed 10, ",
    ] {
        assert!(table.contains(fault), "{fault}\n{table}");
    }
    assert_eq!(text(&output.stderr), "error: 10 of 11 rows failed\n");
}

/// `refusal_in` checks that no row was run: the program wrote no table.
#[tokio::test]
async fn lines_that_are_no_rows_are_named_together_and_nothing_runs() {
    let folder = folder(&[
        r#"{"text": "/echo hi", "contains": "hi"}"#,
        r#"{"txt": "hi", "skill": "echo"}"#,
        "",
        r#"{"text": "hi", "skill": "ech"}"#,
        r#"{"text": "hi", "data": {}, "by": "exampel", "to": "task"}"#,
        r#"{"text": "hi"}"#,
    ]);
    let error = refusal_in(&folder, &["eval", "set.jsonl"], &[]).await;
    for line in [
        "set.jsonl: nothing was run, ",
        "\n  line 2: unknown field `txt`, expected one of `text`, `data`, ",
        "\n  line 4: `skill` is `ech`, expected `null` or one of `echo`, `add`, ",
        "\n  line 5: a row has either `text` or `data`",
        "\n  line 5: `by` is `exampel`, expected one of `command`, `explicit`, ",
        "\n  line 5: `to` needs texts in `earlier`",
        "\n  line 6: nothing is expected: add `skill`, ",
    ] {
        assert!(error.contains(line), "{line}\n{error}");
    }
}

#[tokio::test]
async fn file_without_a_row_and_folder_without_cassettes_say_the_way_out() {
    let empty = folder(&["", " "]);
    let error = refusal_in(&empty, &["eval", "set.jsonl"], &[]).await;
    assert!(
        error.contains("set.jsonl: nothing was run, ")
            && error.contains("there is no row: write JSON objects, such as {\"text\""),
        "{error}"
    );
    let folder = folder(&[r#"{"text": "/echo hi", "contains": "hi"}"#]);
    let replay = ["eval", "set.jsonl", "--cassettes", "set"];
    let error = refusal_in(&folder, &replay, &[]).await;
    assert!(error.contains("run with `--record`"), "{error}");
    let record = [&replay[..], &["--record"]].concat();
    let error = refusal_in(&folder, &record, &[]).await;
    assert!(error.contains("set `A2A_MODEL_ID`"), "{error}");
}

/// One row is answered by the model of the assistant with a tool, one is for the model that
/// chooses skills.
#[tokio::test]
async fn recordings_answer_as_the_models_did_without_a_model() {
    let folder = folder(&[
        r#"{"text": "Which tea do I drink?", "skill": "assist", "by": "fallback", "tool": "memory_search", "contains": "Darjeeling", "tokens_below": 55}"#,
        r#"{"text": "A picture of a fox, please", "skill": "logo", "by": "ask"}"#,
        r#"{"text": "Add 17 and 4", "skill": "add", "by": "text", "contains": "21"}"#,
    ]);
    let script = json!({"rules": [
        {"when": {"tool": "route", "user": "fox"}, "input": {"skill": "logo"}},
        {"when": {"tool": "route"}, "input": {"skill": "none"}},
        {"when": {"result": false}, "tools": [{"name": "memory_search", "input": {"query": "tea"}}]},
        {"when": {"result": true}, "text": ["You drink ", "Darjeeling."]},
    ]});
    let service = ModelService::start(&folder, &script).await;
    let endpoint = format!("{}/v1", service.url);
    let settings = [
        ("A2A_MODEL_PROVIDER", "openai"),
        ("A2A_MODEL_ID", "stub"),
        ("A2A_MODEL_ENDPOINT_URL", &endpoint),
    ];
    let live = evaluated(&folder, &[], &settings).await;
    let table = text(&live.stdout);
    assert!(live.status.success(), "{table}{}", text(&live.stderr));
    // A route and two answers of the assistant, then a route; 18 tokens each.
    assert!(
        table.contains("\nok 3, failed 0, tokens 72; decided by: fallback 1, model 1, text 1\n"),
        "{table}"
    );
    let replay = ["--cassettes", "answers"];
    let record = [&replay[..], &["--record"]].concat();
    let recorded = evaluated(&folder, &record, &settings).await;
    assert_eq!(text(&recorded.stdout), table);
    drop(service);
    let replayed = evaluated(&folder, &replay, &[]).await;
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    assert_eq!(text(&replayed.stdout), table);

    let other = r#"{"text": "Which coffee do I drink?", "contains": "Darjeeling"}"#;
    fs::write(folder.path().join("set.jsonl"), other).unwrap();
    let unknown = evaluated(&folder, &replay, &[]).await;
    assert_eq!(unknown.status.code(), Some(1));
    let error = text(&unknown.stderr);
    assert!(
        error.contains("has no recording of this request") && error.contains("coffee"),
        "{error}"
    );
}
