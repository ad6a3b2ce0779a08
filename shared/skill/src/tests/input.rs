//! Tests how inputs are decoded from a message.

use crate::{AgentError, Content, ErrorCode, FilePart, FileSource, SkillInput, TextOr};
use a2a_lambda_model::task::{Part, PartContent};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Order {
    items: Vec<Item>,
    size: Option<Size>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Item {
    #[serde(rename = "a/b~c")]
    count: u8,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

fn data(value: Value) -> Content {
    Content::from_parts(vec![Part::data(value)])
}

fn refused<T: SkillInput + std::fmt::Debug>(content: &Content) -> AgentError {
    T::decode(content).unwrap_err()
}

#[test]
fn a_typed_input_is_the_first_data_part() {
    let content = Content::from_text("an order")
        .with(Part::data(json!({"items": [{"a/b~c": 2}]})))
        .with(Part::data(json!({"items": []})));
    let order = Order::decode(&content).unwrap();
    assert_eq!(order.items, [Item { count: 2 }]);
    assert_eq!(content.parse::<Order>().unwrap(), order);
}

#[test]
fn text_decodes_as_a_string_or_an_enum_variant() {
    assert_eq!(String::decode(&"hello".into()).unwrap(), "hello");
    assert_eq!(Size::decode(&"large".into()).unwrap(), Size::Large);
    assert_eq!(
        String::decode(&data(json!("data first")).with(Part::text("text"))).unwrap(),
        "data first"
    );
}

#[test]
fn error_of_an_invalid_input_has_a_json_pointer() {
    for (value, pointer) in [
        (
            json!({"items": [{"a/b~c": 1}, {"a/b~c": -1}]}),
            "/items/1/a~1b~0c",
        ),
        (json!({"items": [{"a/b~c": 1, "d": 2}]}), "/items/0/d"),
        (json!({"items": 5}), "/items"),
        (json!({"items": [], "size": "huge"}), "/size"),
        (json!({}), ""),
        (json!([]), ""),
    ] {
        let error = refused::<Order>(&data(value.clone()));
        assert_eq!(error.code(), ErrorCode::InvalidInput);
        assert_eq!(error.details()["pointer"], pointer, "{value}: {error}");
    }
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Trip {
    days: i64,
    legs: Vec<u8>,
    price: f64,
}

#[test]
fn doubles_below_2_to_the_53_decode_as_integers() {
    // As text: a Rust literal would already be rounded.
    for (sent, days) in [
        ("19", Some(19)),
        ("19.0", Some(19)),
        ("1.9e1", Some(19)),
        ("-0.0", Some(0)),
        ("-19.0", Some(-19)),
        ("9007199254740991.0", Some(9_007_199_254_740_991)),
        ("-9007199254740991.0", Some(-9_007_199_254_740_991)),
        ("9007199254740993", Some(9_007_199_254_740_993)),
        ("19.5", None),
        ("9007199254740992.0", None),
        ("9007199254740993.0", None),
        ("-9007199254740993.0", None),
        ("1e300", None),
    ] {
        let text = format!(r#"{{"days": {sent}, "legs": [1.0, 2], "price": 3.0}}"#);
        let content = data(serde_json::from_str(&text).unwrap());
        match days {
            Some(days) => {
                let (legs, price) = (vec![1, 2], 3.0);
                let expected = Trip { days, legs, price };
                assert_eq!(Trip::decode(&content).unwrap(), expected, "{sent}");
            }
            None => {
                let error = refused::<Trip>(&content);
                assert_eq!(error.details()["pointer"], "/days", "{sent}");
            }
        }
    }
}

#[test]
fn doubles_read_as_integers_do_not_hide_other_errors() {
    let error = refused::<Trip>(&data(json!({"days": 1.0, "legs": [300.0], "price": 3.5})));
    assert_eq!(error.details()["pointer"], "/legs/0");
    let as_they_are = data(json!([1.0, 2.5]));
    assert_eq!(Vec::<f64>::decode(&as_they_are).unwrap(), [1.0, 2.5]);
    assert_eq!(Value::decode(&as_they_are).unwrap(), json!([1.0, 2.5]));
}

#[test]
fn an_invalid_input_never_names_a_rust_type() {
    for content in [data(json!(5)), data(json!({"items": [7]})), "text".into()] {
        let error = refused::<Order>(&content);
        for name in ["Order", "Item", "struct"] {
            assert!(!error.text().contains(name), "{error}");
        }
    }
    let error = refused::<Order>(&data(json!({"items": [], "size": 5})));
    assert!(!error.text().contains("Size"), "{error}");
}

#[test]
fn message_without_the_required_part_is_missing_input() {
    let file = Content::from_file("a.png", "image/png", vec![1]);
    for error in [
        refused::<Order>(&file),
        refused::<String>(&file),
        refused::<TextOr<Order>>(&file),
        refused::<FilePart>(&"text".into()),
        file.text().unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::MissingInput);
    }
}

#[test]
fn text_or_reads_data_before_text() {
    let text = TextOr::<Order>::decode(&"a pizza".into()).unwrap();
    assert_eq!(text, TextOr::Text("a pizza".to_owned()));
    let content = Content::from_text("here").with(Part::data(json!({"items": []})));
    let order = TextOr::<Order>::decode(&content).unwrap();
    let (items, size) = (Vec::new(), None);
    assert_eq!(order, TextOr::Data(Order { items, size }));
    let error = refused::<TextOr<Order>>(&Content::from_text("x").with(Part::data(json!(1))));
    assert_eq!(error.code(), ErrorCode::InvalidInput);
}

#[test]
fn a_file_is_read_with_its_name_and_type() {
    let sent = Content::from_text("see").with(Part {
        filename: Some("a.png".to_owned()),
        ..Part::new(PartContent::Raw(vec![7].into()))
    });
    let file = FilePart::decode(&sent).unwrap();
    assert_eq!(file.name.as_deref(), Some("a.png"));
    assert_eq!(file.media_type, "image/png", "that of its name");
    assert_eq!(file.bytes().unwrap().as_ref(), [7]);
    let link = Part::new(PartContent::Url("https://example.org/a".to_owned()));
    let link = FilePart::decode(&Content::from_parts(vec![link])).unwrap();
    let url = FileSource::Url("https://example.org/a".to_owned());
    assert_eq!((link.bytes(), &link.source), (None, &url));
}

#[test]
fn the_schema_is_that_of_the_data_part() {
    let schema = Order::schema();
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["required"], json!(["items"]));
    assert_eq!(schema.get("title"), None);
    assert_eq!(TextOr::<Order>::schema(), schema);
    assert_eq!(Content::schema(), json!({}));
}

#[test]
fn modes_follow_from_what_can_be_read() {
    let both: &[&str] = &["text/plain", "application/json"];
    assert_eq!(Order::modes(), ["application/json"]);
    assert_eq!(String::modes(), both);
    assert_eq!(Size::modes(), both);
    assert_eq!(<Option<String>>::modes(), both);
    assert_eq!(Value::modes(), both);
    assert_eq!(u32::modes(), ["application/json"]);
    assert_eq!(TextOr::<Order>::modes(), both);
    assert_eq!(Content::modes(), ["*/*"]);
}

#[test]
fn content_gives_the_first_of_each_kind() {
    let content = Content::from_text("one")
        .with(Part::text("two"))
        .with(Part::data(json!(1)))
        .with(Part::data(json!(2)));
    assert_eq!(content.first_text(), Some("one"));
    assert_eq!(content.first_data(), Some(&json!(1)));
    assert_eq!(content.first_file(), None);
    assert_eq!(content.parts().len(), 4);
    let data = Content::from_data(&vec![1, 2]).unwrap();
    assert_eq!(data.first_data(), Some(&json!([1, 2])));
}

#[test]
fn errors_name_number_ranges_instead_of_rust_types() {
    let text = |error: AgentError| error.text().to_owned();
    let number = text(refused::<Vec<u8>>(
        &Content::from_text("x").with(Part::data(json!([-1]))),
    ));
    assert!(
        number.ends_with("expected a whole number in the range of the published schema"),
        "{number}"
    );
    let fraction = text(refused::<f64>(
        &Content::from_text("x").with(Part::data(json!("x"))),
    ));
    assert!(fraction.ends_with("expected a number"), "{fraction}");
}
