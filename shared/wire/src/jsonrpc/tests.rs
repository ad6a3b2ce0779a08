use super::*;
use a2a_lambda_rows::each_row;

fn read(text: &str) -> Result<Envelope, (RpcId, A2aError)> {
    envelope(json::read(text.as_bytes()).unwrap())
}

fn id_of(id: &str) -> RpcId {
    read(&format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#))
        .unwrap()
        .id
}

fn why(text: &str) -> (RpcId, String) {
    match read(text).unwrap_err() {
        (id, A2aError::InvalidRequest { why }) => (id, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_id_is_repeated_exactly() {
    let rows = [
        "\"a\"",
        "\"\"",
        "0",
        "-9223372036854775808",
        "9007199254740993",
        "18446744073709551615",
        "null",
    ];
    each_row(rows, |id| {
        let answer = serde_json::to_string(&result(&id_of(id), Value::Null)).unwrap();
        assert_eq!(
            answer,
            format!(r#"{{"id":{id},"jsonrpc":"2.0","result":null}}"#)
        );
    });
}

#[test]
fn an_id_has_at_most_1024_bytes() {
    let id = |length: usize| format!("\"{}\"", "i".repeat(length));
    assert!(matches!(id_of(&id(MAX_ID)), RpcId::Text(_)));
    let request = format!(
        r#"{{"jsonrpc":"2.0","method":"m","id":{}}}"#,
        id(MAX_ID + 1)
    );
    let (answered, why) = why(&request);
    assert_eq!(answered, RpcId::Null);
    assert!(why.contains("1024 bytes"), "{why}");
}

#[test]
fn a_request_without_an_id_is_a_notification_and_another_fault_is_not() {
    let request = read(r#"{"jsonrpc":"2.0","method":"m"}"#).unwrap();
    assert_eq!(request.id, RpcId::Absent);
    assert_eq!(serde_json::to_value(&request.id).unwrap(), Value::Null);
    assert_eq!(request.params, Value::Null);
    let null = read(r#"{"jsonrpc":"2.0","method":"m","id":null}"#).unwrap();
    assert_eq!(null.id, RpcId::Null);
    for text in [r#"{"jsonrpc":"2.0"}"#, r#"{"method":"m"}"#] {
        assert_eq!(why(text).0, RpcId::Null, "{text}");
    }
}

#[test]
fn an_id_of_a_wrong_type_is_refused_with_a_null_id() {
    for id in ["{}", "[1]", "true"] {
        let (answered, why) = why(&format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#));
        assert_eq!(answered, RpcId::Null, "{id}");
        assert!(why.contains("`id`"), "{why}");
    }
}

#[test]
fn an_id_that_is_any_number_comes_back() {
    each_row(["1.5", "1.0", "1e3", "18446744073709551616", "-7"], |id| {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#);
        let read = envelope(serde_json::from_str(&text).unwrap()).unwrap();
        let number: serde_json::Number = serde_json::from_str(id).unwrap();
        assert_eq!(read.id, RpcId::Number(number), "{id}");
    });
}

#[test]
fn a_faulty_envelope_is_refused_with_its_id() {
    let rows = [
        (r#"{"id":"a","method":"m"}"#, "jsonrpc"),
        (r#"{"id":"a","jsonrpc":"1.0","method":"m"}"#, "jsonrpc"),
        (r#"{"id":"a","jsonrpc":2.0,"method":"m"}"#, "jsonrpc"),
        (r#"{"id":"a","jsonrpc":"2.0"}"#, "method"),
        (r#"{"id":"a","jsonrpc":"2.0","method":7}"#, "method"),
        (r#"{"id":"a","jsonrpc":"2.0","method":null}"#, "method"),
    ];
    each_row(rows, |(text, member)| {
        let (id, why) = why(text);
        assert_eq!(id, RpcId::Text("a".to_owned()), "{text}");
        assert!(why.contains(member), "{why}");
    });
}

#[test]
fn only_an_object_is_a_request() {
    each_row(["1", "\"m\"", "null", "true"], |text| {
        assert_eq!(why(text).0, RpcId::Null);
    });
}

#[test]
fn a_duplicate_member_of_the_envelope_is_refused() {
    let (id, why_) = why(r#"{"jsonrpc":"2.0","id":"a","method":"m","method":"n"}"#);
    assert_eq!(id, RpcId::Text("a".to_owned()));
    assert!(why_.contains("`method`"), "{why_}");
    let twice = r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{},"params":{}}"#;
    assert!(why(twice).1.contains("`params`"));
}

#[test]
fn a_duplicate_id_is_answered_with_a_null_id() {
    let (id, _) = why(r#"{"jsonrpc":"2.0","id":"a","id":"b","method":"m"}"#);
    assert_eq!(id, RpcId::Null);
}

#[test]
fn a_duplicate_parameter_is_kept_for_the_decoder() {
    let request =
        read(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"role":1,"role":2}}}"#)
            .unwrap();
    assert_eq!(
        json::duplicate(&request.params).as_deref(),
        Some("message.role")
    );
}
