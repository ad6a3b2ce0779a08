//! JSON that is not a JSON-RPC request.

use super::Table;
use a2a_lambda_tests::dialect::{Dialect, Op, RPC_ID};
use a2a_lambda_tests::error_rows::{Fault, METHOD, PARAMS, REQUEST, Shape};
use a2a_lambda_tests::world::Request;
use serde_json::{Value, json};

pub(super) fn add(table: &mut Table) {
    match table.dialect {
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => {
            wrong_members(table);
            wrong_ids(table);
            twice(table);
            no_requests(table);
            methods(table);
        }
        // An envelope on a 0.1 path gets an envelope as response.
        Dialect::Path01 => {
            wrong_members(table);
            wrong_ids(table);
            other_paths(table);
        }
        Dialect::Rest10 | Dialect::Rest03 => {}
    }
}

fn envelope(table: &Table) -> Value {
    table.dialect.envelope(Op::Send, &table.good())
}

fn posted(table: &Table, body: &Value) -> Request {
    table.raw_body(body.to_string())
}

fn refused(table: &Table) -> Fault {
    table.fault(REQUEST).shaped(Shape::Rpc)
}

fn wrong_members(table: &mut Table) {
    let mut cases = Vec::new();
    let versions = [json!("1.0"), json!("2"), json!(2.0), json!(null), json!("")];
    for version in versions {
        let mut body = envelope(table);
        body["jsonrpc"] = version.clone();
        cases.push((format!("jsonrpc {version}"), body));
    }
    for method in [json!(null), json!(5), json!(["SendMessage"]), json!({})] {
        let mut body = envelope(table);
        body["method"] = method.clone();
        cases.push((format!("method {method}"), body));
    }
    let mut body = envelope(table);
    body.as_object_mut().unwrap().remove("method");
    cases.push(("without method".to_owned(), body));
    if table.dialect.is_rpc() {
        let mut body = envelope(table);
        body.as_object_mut().unwrap().remove("jsonrpc");
        cases.push(("without jsonrpc".to_owned(), body));
    }
    for (name, body) in cases {
        let (request, fault) = (posted(table, &body), refused(table));
        table.add(name, request, fault);
    }
}

fn wrong_ids(table: &mut Table) {
    for id in [
        "{}",
        "[]",
        "[7]",
        "true",
        &format!("\"{}\"", "i".repeat(1025)),
    ] {
        let text = envelope(table).to_string();
        let body = text.replacen(&format!("\"id\":{RPC_ID}"), &format!("\"id\":{id}"), 1);
        assert_ne!(text, body);
        let fault = refused(table).id(Value::Null);
        table.add(format!("id {id:.25}"), table.raw_body(body), fault);
    }
}

fn twice(table: &mut Table) {
    let text = envelope(table).to_string();
    let members = [
        (r#""jsonrpc":"2.0""#, json!(RPC_ID)),
        (r#""id":7"#, Value::Null),
    ];
    for (member, id) in members {
        let body = text.replacen(member, &format!("{member},{member}"), 1);
        assert_ne!(text, body);
        let fault = refused(table).id(id);
        table.add(format!("twice {member}"), table.raw_body(body), fault);
    }
    let method = format!(r#""method":"{}""#, table.dialect.method(Op::Send));
    let body = text.replacen(&method, &format!(r#"{method},"method":"GetTask""#), 1);
    assert_ne!(text, body);
    let fault = refused(table);
    table.add("two methods", table.raw_body(body), fault);
    let body = text.replacen(r#""params":"#, r#""params":{},"params":"#, 1);
    let fault = refused(table);
    table.add("twice params", table.raw_body(body), fault);
}

fn no_requests(table: &mut Table) {
    let good = envelope(table);
    let bodies = [
        ("a text", json!("SendMessage")),
        ("a number", json!(7)),
        ("null", json!(null)),
        ("true", json!(true)),
        ("an empty object", json!({})),
        ("an empty batch", json!([])),
        ("a batch of 17", json!(vec![good; 17])),
        ("a batch of 1,000 numbers", json!(vec![1; 1_000])),
    ];
    for (name, body) in bodies {
        let fault = refused(table).id(Value::Null);
        let request = posted(table, &body);
        table.add(format!("body is {name}"), request, fault);
    }
}

fn methods(table: &mut Table) {
    let names: &[&str] = match table.dialect {
        Dialect::Rpc10 => &[
            "",
            "Send",
            "sendMessage",
            "SendMessage ",
            "Tasks/Get",
            "rpc.x",
        ],
        Dialect::Rpc03 => &[
            "message/",
            "message/sends",
            "Message/send",
            "tasks/list",
            "a/b",
        ],
        _ => &[
            "tasks/sends",
            "tasks/send/",
            "tasks/",
            "tasks/pushNotification/x",
        ],
    };
    for name in names {
        let mut body = envelope(table);
        body["method"] = json!(name);
        let (request, fault) = (posted(table, &body), table.fault(METHOD));
        table.add(format!("method {name:?}"), request, fault);
    }
    for params in [
        json!(null),
        json!([]),
        json!("x"),
        json!(5),
        json!([{"message": {}}]),
    ] {
        let mut body = envelope(table);
        body["params"] = params.clone();
        // 1.0 treats absent parameters as empty ones; the others report `params`.
        let empty = params.is_null() && table.dialect == Dialect::Rpc10;
        let field = if empty { "message" } else { "params" };
        let (request, fault) = (posted(table, &body), table.fault(PARAMS).at(field));
        table.add(format!("params {params}"), request, fault);
    }
}

fn other_paths(table: &mut Table) {
    for method in [
        "tasks/get",
        "tasks/sendSubscribe",
        "message/send",
        "SendMessage",
        "x",
        "",
    ] {
        let mut body = envelope(table);
        body["method"] = json!(method);
        let (request, fault) = (posted(table, &body), refused(table));
        table.add(format!("an envelope for {method:?}"), request, fault);
    }
    let mut body = envelope(table);
    body["params"] = json!({"id": "new:1"});
    let fault = table.fault(PARAMS).shaped(Shape::Rpc).at("message");
    table.add("an envelope without message", posted(table, &body), fault);
    for body in [json!([]), json!("x"), json!(5), json!(null), json!(true)] {
        let fault = table.fault(PARAMS).at("params");
        table.add(format!("bare params {body}"), posted(table, &body), fault);
    }
}
