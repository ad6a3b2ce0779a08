use super::*;
use a2a_lambda_rows::each_row;
use serde_json::json;

fn violations<T: std::fmt::Debug>(result: Result<T, A2aError>) -> Vec<(String, String)> {
    match result {
        Err(A2aError::InvalidParams { violations }) => violations
            .into_iter()
            .map(|v| (v.field, v.description))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn fields<T: std::fmt::Debug>(result: Result<T, A2aError>) -> Vec<String> {
    violations(result)
        .into_iter()
        .map(|(field, _)| field)
        .collect()
}

#[test]
fn parameters_that_are_not_an_object_are_refused() {
    each_row([json!(null), json!([]), json!("x"), json!(1)], |params| {
        let result = read(&params, FieldCase::Json, |_| Some(()));
        assert_eq!(fields(result), ["params"]);
    });
}

#[test]
fn every_fault_is_listed_with_its_path() {
    let params = json!({
        "a": {"id": 7, "flag": "yes", "list": ["x", 2]},
        "n": -1,
        "word": "blue",
    });
    let result = read(&params, FieldCase::Json, |o| {
        if let Some(a) = o.object("a") {
            a.string("id");
            a.boolean("flag");
            a.strings("list");
            a.required_text("gone");
        }
        o.history_length("n", 0);
        o.choice("word", &[("red", 1), ("green", 2)]);
        Some(())
    });
    assert_eq!(
        violations(result),
        [
            ("a.id", "must be a string"),
            ("a.flag", "must be `true` or `false`"),
            ("a.list[1]", "must be a string"),
            ("a.gone", "is required"),
            ("n", "must be a whole number of at least 0"),
            ("word", "must be one of `red`, `green`"),
        ]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn a_null_member_counts_as_absent() {
    let result = read(&json!({"a": null}), FieldCase::Json, |o| {
        assert_eq!(o.string("a"), None);
        assert!(o.metadata("a").is_empty());
        o.required_text("a").map(str::to_owned)
    });
    assert_eq!(
        violations(result),
        [("a".to_owned(), "is required".to_owned())]
    );
}

#[test]
fn base64_is_read_in_both_alphabets_padded_or_not() {
    each_row(["-_8", "-_8=", "+/8", "+/8="], |text| {
        let bytes = read(&json!({"b": text}), FieldCase::Json, |o| o.base64("b"));
        assert_eq!(bytes.unwrap().as_ref(), [0xfb, 0xff], "{text}");
    });
    let empty = read(&json!({"b": ""}), FieldCase::Json, |o| o.base64("b"));
    assert!(empty.unwrap().is_empty());
    each_row(["+_8=", "a", "??", "QQ==="], |text| {
        let result = read(&json!({"b": text}), FieldCase::Json, |o| o.base64("b"));
        assert_eq!(fields(result), ["b"], "{text}");
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
        let result = read(&json!({"n": given}), FieldCase::Json, |o| {
            Some(o.history_length("n", 7))
        });
        assert_eq!(result.ok(), read_as, "{given}");
    });
}

#[test]
fn every_reader_knows_proto_names_and_proto_json_numbers_as_strings() {
    let params = json!({"page_size": "10"});
    let size = |o: &Object<'_>| Some(o.page_size());
    assert_eq!(read(&params, FieldCase::ProtoJson, size), Ok(Some(10)));
    assert_eq!(fields(read(&params, FieldCase::Json, size)), ["pageSize"]);
    let ten = json!({"page_size": 10.0});
    assert_eq!(read(&ten, FieldCase::Json, size), Ok(Some(10)));
    let both = json!({"page_size": 1, "pageSize": 1});
    assert_eq!(
        fields(read(&both, FieldCase::ProtoJson, size)),
        ["pageSize"]
    );
}

#[test]
fn a_query_is_read_by_the_same_rules() {
    let pairs = [("includeArtifacts", "true"), ("pageSize", "0")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let query = members(&pairs).unwrap();
    let result = read_map(&query, FieldCase::ProtoJson, |q| {
        assert_eq!(q.boolean("includeArtifacts"), Some(true));
        q.page_size()
    });
    assert_eq!(
        violations(result),
        [(
            "pageSize".to_owned(),
            "must be a whole number from 1 to 100".to_owned()
        )]
    );
    let twice = ["1", "2"].map(|value| ("a".to_owned(), value.to_owned()));
    assert_eq!(fields(members(&twice)), ["a"]);
}

#[test]
fn an_error_lists_at_most_32_faults() {
    let many: Vec<Value> = (0..1000).map(|n| json!(n)).collect();
    let result = read(&json!({"list": many}), FieldCase::Json, |o| {
        Some(o.strings("list"))
    });
    assert_eq!(violations(result).len(), MAX_VIOLATIONS);
}

#[test]
fn exactly_one_refuses_none_and_two() {
    let rows = [
        (json!({"text": "x"}), true),
        (json!({"text": "x", "data": null}), true),
        (json!({"data": null}), false),
        (json!({}), false),
        (json!({"text": "x", "data": 1}), false),
    ];
    each_row(rows, |(object, found)| {
        let result = read(&object, FieldCase::Json, |o| {
            o.exactly_one(&["text", "data"])
        });
        assert_eq!(result.is_ok(), found, "{object}");
    });
    let null = read(&json!({"data": null}), FieldCase::Json, |o| {
        o.exactly_one_by(&["text", "data"], |name| o.raw(name).is_some())
    });
    assert_eq!(null, Ok("data"));
}
