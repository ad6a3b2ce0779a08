//! Integers from clients that only have doubles, in every dialect.

use a2a_lambda_tests::dialect::{Dialect, Op, SKILL, Say, at};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_whole_double_is_an_integer_in_every_dialect
    the_error_message_names_the_wrong_number_in_every_dialect
}

/// A send of `data` to the skill that adds two integers.
fn add(dialect: Dialect, data: &str) -> Request {
    // Parsed from text, so that `19.0` stays a double.
    let data: Value = serde_json::from_str(data).unwrap();
    let part = match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => json!({ "data": data }),
        Dialect::Rest03 => json!({"data": {"data": data}}),
        Dialect::Rpc03 => json!({"kind": "data", "data": data}),
        Dialect::Rpc01 | Dialect::Path01 => json!({"type": "data", "data": data}),
    };
    let mut params = dialect.say(&Say::to("add", "hi"));
    params["message"]["metadata"] = json!({SKILL: "add"});
    params["message"][dialect.parts()] = json!([part]);
    dialect.request(Op::Send, "", &params)
}

async fn added(world: &World, dialect: Dialect, data: &str) -> Reply {
    world.call(&add(dialect, data)).await
}

async fn a_whole_double_is_an_integer_in_every_dialect(dialect: Dialect) {
    for data in [r#"{"a": 19, "b": 23}"#, r#"{"a": 19.0, "b": 2.3e1}"#] {
        // The test gives every 0.1 task the same id, so each needs a world of its own.
        let world = World::new().unwrap();
        let reply = added(&world, dialect, data).await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
        assert!(reply.text().contains(r#""sum":42"#), "{}", reply.text());
    }
}

async fn the_error_message_names_the_wrong_number_in_every_dialect(dialect: Dialect) {
    let world = World::new().unwrap();
    for (data, wrong) in [
        (r#"{"a": 19.5, "b": 23.0}"#, "19.5"),
        // 2^53 + 1 is not a double: it is read as 2^53, so the client's number is lost.
        (r#"{"a": 9007199254740993.0, "b": 23}"#, "9007199254740992"),
    ] {
        let reply = added(&world, dialect, data).await;
        Fault::new(dialect, PARAMS).check(&reply).unwrap();
        let body = reply.json();
        let places = ["/error/message", "/message"];
        let mut said = places.iter().filter_map(|place| at(&body, place).as_str());
        let message = said.next().unwrap();
        assert!(message.contains(wrong), "{dialect:?}: {message}");
        assert!(message.contains("whole number"), "{dialect:?}: {message}");
        assert!(!message.contains("i64"), "{dialect:?}: {message}");
    }
}
