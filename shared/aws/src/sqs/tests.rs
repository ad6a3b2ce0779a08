use super::*;
use a2a_lambda_model::task::{Subject, TaskId, TenantId, WriteId};
use a2a_lambda_rows::each_row;
use serde_json::json;

fn item() -> WorkItem {
    WorkItem {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("a#\"\u{1F600}\u{0}").unwrap(),
        },
        task: TaskId::parse("order:1").unwrap(),
        incarnation: WriteId::made_of(u128::MAX),
        turn: u32::MAX,
        dispatch: u64::MAX,
    }
}

#[test]
fn a_message_reads_back_as_it_was_sent() {
    assert_eq!(decode(&encode(&item())).unwrap(), item());
}

#[test]
fn a_message_holds_ids_and_nothing_else() {
    let mut simple = item();
    simple.owner.subject = Subject::parse("ann").unwrap();
    (simple.turn, simple.dispatch) = (2, 7);
    simple.incarnation = WriteId::made_of(5);
    let body: serde_json::Value = serde_json::from_str(&encode(&simple)).unwrap();
    let expected = json!({
        "v": 1, "tenant": "acme", "subject": "ann", "task": "order:1",
        "incarnation": "00000000000000000000000000000005", "turn": 2, "dispatch": 7,
    });
    assert_eq!(body, expected);
}

#[test]
fn members_of_a_later_version_are_ignored() {
    let mut body: serde_json::Value = serde_json::from_str(&encode(&item())).unwrap();
    body["new"] = json!({});
    assert_eq!(decode(&body.to_string()).unwrap(), item());
}

#[test]
fn an_unreadable_message_is_corrupt_and_never_panics() {
    let whole: serde_json::Value = serde_json::from_str(&encode(&item())).unwrap();
    let mut bad: Vec<String> = ["", "{", "null", "[]", "\"x\"", "{}", "1e999", "\u{0}"]
        .map(str::to_owned)
        .into();
    for name in [
        "v",
        "tenant",
        "subject",
        "task",
        "incarnation",
        "turn",
        "dispatch",
    ] {
        for value in [
            json!(null),
            json!(-1),
            json!("#/"),
            json!(1.5),
            json!([]),
            json!(""),
        ] {
            let mut broken = whole.clone();
            broken[name] = value.clone();
            // Any text is a valid subject, and any text but the empty one a valid incarnation.
            if !["subject", "incarnation"].contains(&name) || value != json!("#/") {
                bad.push(broken.to_string());
            }
        }
    }
    let mut early = whole;
    early["v"] = json!(0);
    bad.push(early.to_string());
    each_row(bad, |body| {
        assert!(
            matches!(decode(&body), Err(StoreError::Corrupt(_))),
            "{body}"
        );
    });
}

#[test]
fn a_message_of_a_higher_form_is_told_from_an_unreadable_one() {
    let higher = encode(&item()).replace("\"v\":1", "\"v\":2");
    each_row([higher, r#"{"v":2,"item":[]}"#.to_owned()], |body| {
        assert!(matches!(decode(&body), Err(StoreError::Form(2))), "{body}");
    });
}

#[test]
fn a_message_is_hidden_for_whole_seconds_and_at_most_twelve_hours() {
    let rows = [
        (Duration::ZERO, 0),
        (Duration::from_nanos(1), 1),
        (Duration::from_millis(60_000), 60),
        (Duration::from_millis(60_001), 61),
        (Duration::MAX, 43_200),
    ];
    each_row(rows, |(time, seconds)| {
        assert_eq!(whole_seconds(time), seconds);
    });
}
