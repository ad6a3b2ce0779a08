use super::*;
use a2a_lambda_rows::each_row;
use proptest::prelude::*;
use serde_json::json;

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn repeated(text: &str) -> Option<String> {
    duplicate(&read(text.as_bytes()).unwrap())
}

fn over(result: Result<Value, A2aError>) -> String {
    match result {
        Err(A2aError::InvalidRequest { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn exactly_the_allowed_number_of_values_passes() {
    let with = |values: usize| format!("[{}]", vec!["0"; values - 1].join(","));
    assert!(read(with(20_000).as_bytes()).is_ok());
    assert_eq!(
        over(read(with(20_001).as_bytes())),
        "more than 20000 JSON values"
    );
}

#[test]
fn every_member_of_an_object_counts_as_one_value() {
    let with = |members: usize| {
        let members = (0..members).map(|n| format!("\"{n}\":0"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    assert!(read(with(19_999).as_bytes()).is_ok());
    assert_eq!(
        over(read(with(20_000).as_bytes())),
        "more than 20000 JSON values"
    );
}

#[test]
fn a_member_that_serde_json_would_read_as_json_is_refused() {
    for body in [
        r#"{"$serde_json::private::RawValue":1}"#,
        r#"{"$serde_json::private::RawValue":"[1]"}"#,
        r#"[{"a":0,"\u0024serde_json::private::RawValue":"[1]"}]"#,
    ] {
        let why = over(read(body.as_bytes()));
        assert!(why.ends_with("is reserved"), "{why}");
    }
}

#[test]
fn many_small_objects_reach_the_limit_of_values() {
    let flood = format!("[{}]", vec!["{\"\":0}"; 100_000].join(","));
    assert_eq!(over(read(flood.as_bytes())), "more than 20000 JSON values");
}

#[test]
fn exactly_the_allowed_depth_passes() {
    assert!(read(nested(32).as_bytes()).is_ok());
    assert_eq!(
        over(read(nested(33).as_bytes())),
        "JSON nested deeper than 32"
    );
    let objects = format!("{}0{}", "{\"a\":".repeat(33), "}".repeat(33));
    assert_eq!(over(read(objects.as_bytes())), "JSON nested deeper than 32");
}

#[test]
fn a_body_of_open_brackets_does_not_exhaust_the_stack() {
    let bomb = "[".repeat(1_000_000);
    assert_eq!(over(read(bomb.as_bytes())), "JSON nested deeper than 32");
}

#[test]
fn malformed_json_is_a_parse_error() {
    let rows = [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "nul",
        "1 2",
        "1e999",
        "\u{feff}{}",
        "'a'",
        "[1",
        "NaN",
    ];
    each_row(rows, |bad| {
        assert_eq!(read(bad.as_bytes()).unwrap_err(), A2aError::Parse, "{bad}");
    });
    assert_eq!(read(b"\"\xff\"").unwrap_err(), A2aError::Parse);
}

#[test]
fn duplicate_members_are_named_by_path() {
    assert_eq!(repeated(r#"{"a":1,"b":2}"#), None);
    assert_eq!(repeated(r#"{"a":1,"a":2}"#).as_deref(), Some("a"));
    assert_eq!(
        repeated(r#"{"params":{"message":{"parts":[{"text":""},{"text":"","text":""}]}}}"#)
            .as_deref(),
        Some("params.message.parts[1].text")
    );
    assert_eq!(
        repeated(r#"[{"a":1},{"a":1,"a":1}]"#).as_deref(),
        Some("[1].a")
    );
}

#[test]
fn an_escaped_name_equals_the_plain_name() {
    assert_eq!(repeated(r#"{"a":1,"\u0061":2}"#).as_deref(), Some("a"));
}

#[test]
fn equal_names_in_different_objects_are_not_repeated() {
    assert_eq!(
        repeated(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#),
        None
    );
}

#[test]
fn a_long_member_name_is_cut_to_64_characters() {
    let name = "x".repeat(10_000);
    let text = format!("{{\"{name}\":1,\"{name}\":2}}");
    assert_eq!(repeated(&text), Some("x".repeat(64)));
}

#[test]
fn the_first_duplicate_of_an_object_is_named() {
    assert_eq!(
        repeated(r#"{"b":1,"b":2,"a":1,"a":2}"#).as_deref(),
        Some("b")
    );
    assert_eq!(
        repeated(r#"[[{"a":1}],[[{"a":1,"a":1}]]]"#).as_deref(),
        Some("[1][0][0].a")
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_body_is_the_value_that_serde_json_reads(value in any_json(), cut in 0usize..200, byte in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        let same = |bytes: &[u8]| {
            let ours = read(bytes).ok().filter(|value| duplicate(value).is_none());
            if let Some(ours) = ours {
                prop_assert_eq!(Some(ours), serde_json::from_slice::<Value>(bytes).ok());
            }
            Ok(())
        };
        prop_assert_eq!(duplicate(&read(&bytes).unwrap()), None);
        same(&bytes)?;
        let place = cut % bytes.len();
        bytes[place] = byte;
        same(&bytes)?;
        bytes.truncate(place);
        same(&bytes)?;
    }

    #[test]
    fn a_duplicate_member_is_found_among_any_values(value in any_json()) {
        let text = format!("{{\"outer\":[{value},{{\"x\":{value},\"y\":0,\"x\":{value}}}]}}");
        prop_assert_eq!(repeated(&text), Some("outer[1].x".to_owned()));
    }
}

#[test]
fn a_text_that_is_cut_inside_a_character_is_named() {
    for cut in [
        r#"{"a": "\ud83d"}"#,
        r#""\ud83d!""#,
        r#""\udc00""#,
        r#""\ud83d\u0041""#,
    ] {
        assert_eq!(
            read(cut.as_bytes()).unwrap_err(),
            A2aError::LoneSurrogate,
            "{cut}"
        );
    }
    assert!(read(r#""\ud83d\ude00""#.as_bytes()).is_ok());
}
