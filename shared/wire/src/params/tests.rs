use super::*;
use crate::words::WordTable;
use a2a_lambda_rows::each_row;
use serde_json::json;

/// Reads `params` in plain JSON.
fn json<T>(
    params: &Value,
    decode: impl FnOnce(&Object<'_>) -> ReadResult<T>,
) -> Result<T, (String, String)> {
    read(params, FieldCase::Json, decode)
}

/// What `decode` reads, or the field and description of the fault.
fn read<T>(
    params: &Value,
    case: FieldCase,
    decode: impl FnOnce(&Object<'_>) -> ReadResult<T>,
) -> Result<T, (String, String)> {
    const WORDS: WordTable = &[
        ("ROLE_USER", &["user"]),
        ("list", &["first", "secondWord"]),
        ("none", &[]),
    ];
    decode(&Object::new(params.as_object().unwrap(), case, WORDS)).map_err(fault)
}

fn fault(error: A2aError) -> (String, String) {
    match error {
        A2aError::InvalidParams { field, description } => (field, description),
        other => panic!("{other:?}"),
    }
}

fn field_of<T: std::fmt::Debug>(result: Result<T, (String, String)>) -> String {
    result.unwrap_err().0
}

#[test]
fn the_fault_of_a_member_has_its_path_and_rule() {
    let words = [("red", 1), ("green", 2)];
    let params = json!({
        "a": {"id": 7, "flag": "yes", "texts": ["x", 2], "empty": ""},
        "historyLength": -1, "word": "blue", "role": "red", "parts": [],
    });
    let fault = |read: fn(&Object<'_>) -> ReadResult<()>| json(&params, read).unwrap_err();
    let inside = |read: fn(&Object<'_>) -> ReadResult<()>| {
        json(&params, |o| read(&o.required_object("a")?)).unwrap_err()
    };
    let rows = [
        (
            inside(|a| a.string("id").map(drop)),
            "a.id",
            "must be a string",
        ),
        (
            inside(|a| a.boolean("flag").map(drop)),
            "a.flag",
            "must be `true` or `false`",
        ),
        (
            inside(|a| a.strings("texts").map(drop)),
            "a.texts[1]",
            "must be a string",
        ),
        (
            inside(|a| a.required_text("gone").map(drop)),
            "a.gone",
            "is required",
        ),
        (
            inside(|a| a.required_text("empty").map(drop)),
            "a.empty",
            "must not be empty",
        ),
        (
            fault(|o| o.history_length(0).map(drop)),
            "historyLength",
            "must be a whole number of at least 0",
        ),
        (
            json(&params, |o| o.choice("word", &words)).unwrap_err(),
            "word",
            "must be one of `red`, `green`",
        ),
        (fault(|o| o.role()), "role", "must be one of `user`"),
        (
            fault(|o| o.parts(|_| Ok(())).map(drop)),
            "parts",
            "must have 1 to 64 parts",
        ),
    ];
    each_row(rows, |((field, description), path, rule)| {
        assert_eq!((field.as_str(), description.as_str()), (path, rule));
    });
}

#[test]
fn a_null_member_counts_as_absent() {
    let result = json(&json!({"a": null}), |o| {
        assert_eq!(o.string("a"), Ok(None));
        assert_eq!(o.metadata("a"), Ok(Map::new()));
        o.required_text("a").map(str::to_owned)
    });
    assert_eq!(result, Err(("a".to_owned(), "is required".to_owned())));
}

#[test]
fn base64_is_read_in_both_alphabets_padded_or_not() {
    let bytes = |text: &str| json(&json!({"b": text}), |o| o.base64("b"));
    each_row(["-_8", "-_8=", "+/8", "+/8="], |text| {
        assert_eq!(
            bytes(text).unwrap().unwrap().as_ref(),
            [0xfb, 0xff],
            "{text}"
        );
    });
    assert!(bytes("").unwrap().unwrap().is_empty());
    each_row(["+_8=", "a", "??", "QQ==="], |text| {
        assert_eq!(field_of(bytes(text)), "b", "{text}");
    });
}

#[test]
fn a_history_length_is_clamped_and_never_negative() {
    let rows = [
        (json!(0), Some(0)),
        (json!(100), Some(100)),
        (json!(101), Some(100)),
        (json!(u64::MAX), Some(100)),
        (json!(null), Some(7)),
        (json!(-1), None),
        (json!(2.0), Some(2)),
        (json!(1e1), Some(10)),
        (json!(1.5), None),
        (json!("3"), None),
    ];
    each_row(rows, |(given, read_as)| {
        let result = json(&json!({"historyLength": given}), |o| o.history_length(7));
        assert_eq!(result.ok(), read_as, "{given}");
    });
}

#[test]
fn every_reader_knows_proto_names_and_proto_json_numbers_as_strings() {
    let params = json!({"page_size": "10"});
    let size = |o: &Object<'_>| o.page_size();
    assert_eq!(read(&params, FieldCase::ProtoJson, size), Ok(10));
    assert_eq!(field_of(json(&params, size)), "pageSize");
    assert_eq!(json(&json!({"page_size": 10.0}), size), Ok(10));
    let both = json!({"page_size": 1, "pageSize": 1});
    assert_eq!(
        field_of(read(&both, FieldCase::ProtoJson, size)),
        "pageSize"
    );
}

#[test]
fn a_query_is_read_by_the_same_rules() {
    let pairs = [("includeArtifacts", "true"), ("pageSize", "0")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let query = members(&pairs).unwrap();
    let query = Object::new(&query, FieldCase::ProtoJson, &[]);
    assert_eq!(query.boolean("includeArtifacts"), Ok(Some(true)));
    let (name, rule) = fault(query.page_size().unwrap_err());
    assert_eq!(name, "pageSize");
    assert_eq!(rule, "must be a whole number from 1 to 100");
    let twice = ["1", "2"].map(|value| ("a".to_owned(), value.to_owned()));
    assert_eq!(fault(members(&twice).unwrap_err()).0, "a");
}

#[test]
fn exactly_one_content_is_read() {
    let rows = [
        ([None, Some(1)], Ok(("data", 1))),
        ([None, None], Err(())),
        ([Some(1), Some(2)], Err(())),
    ];
    each_row(rows, |([text, data], expected)| {
        let result = json(&json!({"part": {}}), |o| {
            let part = o.required_object("part")?;
            part.only([("text", text), ("data", data)])
        });
        let rule = "must have exactly one of `text`, `data`".to_owned();
        let expected = expected.map_err(|()| ("part".to_owned(), rule));
        assert_eq!(result, expected);
    });
}

#[test]
fn a_member_is_read_and_named_as_the_client_calls_it() {
    let list = |params: Value| json(&params, |o| o.strings("list"));
    for name in ["first", "secondWord", "second_word"] {
        assert_eq!(list(json!({ name: ["x"], "list": 1 })).unwrap(), ["x"]);
    }
    let other = json!({"first": null, "secondWord": ["x"]});
    assert_eq!(list(other).unwrap(), ["x"]);
    let rows = [
        (json!({"first": 1}), "first", "must be a list of strings"),
        (
            json!({"secondWord": [1]}),
            "secondWord[0]",
            "must be a string",
        ),
        (
            json!({"first": [], "second_word": []}),
            "first",
            "is given twice, also as `second_word`",
        ),
    ];
    each_row(rows, |(params, path, rule)| {
        let (field, description) = list(params).unwrap_err();
        assert_eq!((field.as_str(), description.as_str()), (path, rule));
    });
    let gone = json(&json!({}), |o| o.required_object("list").map(drop));
    assert_eq!(field_of(gone), "first");
    let none = json(&json!({"none": 1}), |o| {
        o.string("none").map(|it| it.is_none())
    });
    assert_eq!(none, Ok(true));
}
