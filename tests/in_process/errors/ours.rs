//! The runtime's own paths: uploads, contexts, deletions and the catalogue.

use super::{Scene, Table};
use a2a_lambda::http::MAX_BODY;
use a2a_lambda_tests::dialect::Dialect;
use a2a_lambda_tests::error_rows::{
    BUSY, CONTEXT_EXPIRED, MEDIA_TYPE, METHOD, NOT_FOUND, PARAMS, PARSE, REQUEST, Row, TOO_LARGE,
    UNSUPPORTED,
};
use a2a_lambda_tests::world::Request;
use serde_json::{Value, json};

const UPLOADS: &str = "/a2a-lambda/uploads";

pub(super) fn add(table: &mut Table, scene: &Scene) {
    // These paths give errors in the form of REST 1.0 in every dialect.
    if table.dialect != Dialect::Rest10 {
        return;
    }
    orders(table);
    bodies(table);
    pages(table);
    deletions(table, scene);
    methods(table);
}

fn order(table: &mut Table, body: &Value, field: &str) {
    let fault = table.fault(PARAMS).at(field);
    let mut name = format!("an order {body}");
    name.truncate(120);
    table.add(name, Request::post(UPLOADS, body), fault);
}

fn orders(table: &mut Table) {
    let sha = "0".repeat(64);
    for size in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("x"),
        json!(null),
        json!([]),
        json!(u64::MAX),
        json!(i64::MAX),
    ] {
        order(table, &json!({"size": size, "sha256": sha}), "size");
    }
    for digest in [
        json!(""),
        json!("../../x"),
        json!(sha.replacen('0', "g", 1)),
        json!("0".repeat(63)),
        json!("0".repeat(65)),
        json!(5),
        json!(null),
        json!("\u{e9}".repeat(32)),
    ] {
        order(table, &json!({"size": 1, "sha256": digest}), "sha256");
    }
    for member in ["filename", "mediaType"] {
        for value in [json!(5), json!([]), json!({}), json!("x".repeat(1025))] {
            let body = json!({member: value, "size": 1, "sha256": sha});
            order(table, &body, member);
        }
    }
    for body in [json!([]), json!(5), json!("x"), json!(null)] {
        order(table, &body, "params");
    }
    // The store in memory cannot grant an upload URL.
    let good = json!({"size": 1, "sha256": sha});
    let fault = table.fault(UNSUPPORTED);
    table.add("a valid order", Request::post(UPLOADS, &good), fault);
}

fn bodies(table: &mut Table) {
    let sha = "0".repeat(64);
    let text = format!(r#"{{"size":1,"sha256":"{sha}","filename":"a","filename":"b"}}"#);
    let upload = |body: &str| Request::post(UPLOADS, &Value::Null).body(body);
    let deep = format!(r#"{{"x":{}0{}}}"#, "[".repeat(40), "]".repeat(40));
    let many = format!(r#"{{"x":[{}0]}}"#, "0,".repeat(20_001));
    let cases = [
        ("a duplicate name", upload(&text), PARAMS),
        ("no JSON", upload("{"), PARSE),
        ("half a pair", upload(r#"{"filename":"\ud800"}"#), PARSE),
        ("too deep", upload(&deep), REQUEST),
        ("too many", upload(&many), REQUEST),
        ("too large", upload(&" ".repeat(MAX_BODY + 1)), TOO_LARGE),
        (
            "a form",
            upload("{}").header("content-type", "multipart/form-data"),
            MEDIA_TYPE,
        ),
        (
            "without type",
            upload("{}").without("content-type"),
            MEDIA_TYPE,
        ),
        (
            "compressed",
            upload("{}").header("content-encoding", "gzip"),
            MEDIA_TYPE,
        ),
    ];
    for (name, request, row) in cases {
        let fault = table.fault(row);
        table.add(format!("an order: {name}"), request, fault);
    }
}

fn pages(table: &mut Table) {
    let queries = [
        ("pageSize=0", "pageSize"),
        ("pageSize=101", "pageSize"),
        ("pageSize=-1", "pageSize"),
        ("pageSize=1.5", "pageSize"),
        ("pageSize=x", "pageSize"),
        ("pageSize=1&pageSize=1", "pageSize"),
        ("pageSize=99999999999999999999", "pageSize"),
        ("pageToken=x", "pageToken"),
        ("pageToken=%00", "pageToken"),
        ("pageToken=%ff", "pageToken"),
        ("pageToken=a&pageToken=a", "pageToken"),
        ("pageToken=AAAA.BBBB", "pageToken"),
    ];
    for (query, field) in queries {
        let request = Request::new("GET", format!("/a2a-lambda/contexts?{query}"));
        let fault = table.fault(PARAMS).at(field);
        table.add(format!("contexts?{query}"), request, fault);
    }
}

/// Texts in a path that are not valid ids.
const NO_IDS: [&str; 12] = [
    "a%20b",
    "a%2Fb",
    "..%2f..%2fx",
    "%00",
    "a%0d%0ab",
    "%C3%A9",
    "a~b",
    "a%23b",
    "a%5cb",
    "%F0%9F%98%80",
    "%E2%80%AE",
    "con%3F",
];

fn deletions(table: &mut Table, scene: &Scene) {
    let context = "ctx-0123456789abcdef0123456789abcdef";
    let mut cases: Vec<(String, Row)> = vec![
        (
            "tasks/task-0123456789abcdef0123456789abcdef".to_owned(),
            NOT_FOUND,
        ),
        ("tasks/nobody:1".to_owned(), NOT_FOUND),
        ("tasks/..".to_owned(), NOT_FOUND),
        (format!("tasks/{}", scene.foreign), NOT_FOUND),
        (format!("tasks/{}", scene.busy), BUSY),
        (format!("contexts/{context}"), CONTEXT_EXPIRED),
        ("contexts/nobody:1".to_owned(), CONTEXT_EXPIRED),
        (
            format!("contexts/{}", scene.foreign_context),
            CONTEXT_EXPIRED,
        ),
        (format!("contexts/{}", scene.busy_context), BUSY),
    ];
    for what in ["tasks", "contexts"] {
        cases.push((format!("{what}/{}", "x".repeat(129)), PARAMS));
        cases.extend(NO_IDS.iter().map(|id| (format!("{what}/{id}"), PARAMS)));
    }
    for (path, row) in cases {
        let mut fault = table.fault(row);
        if row == PARAMS {
            fault = fault.at("id");
        }
        let request = Request::new("DELETE", format!("/a2a-lambda/{path}"));
        table.add(format!("DELETE {path}"), request, fault);
    }
}

fn methods(table: &mut Table) {
    for line in [
        "GET uploads",
        "PUT uploads",
        "POST uploads/x",
        "POST contexts",
        "DELETE contexts",
        "DELETE contexts/",
        "GET contexts/x",
        "DELETE contexts/x/y",
        "DELETE contexts/%zz",
        "GET tasks/x",
        "DELETE tasks",
        "DELETE tasks/%ff",
        "POST skills",
        "GET skills/x",
        "GET nothing",
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let methods = ["GET", "PUT", "POST", "DELETE"];
        let method = methods.into_iter().find(|known| *known == method).unwrap();
        let request = Request::new(method, format!("/a2a-lambda/{path}"));
        let fault = table.fault(METHOD);
        table.add(format!("ours: {line}"), request, fault);
    }
}
