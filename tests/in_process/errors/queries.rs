//! Reads of tasks and lists with invalid parameters.

use super::{Scene, Table};
use a2a_lambda_tests::dialect::{Dialect, Op};
use a2a_lambda_tests::error_rows::{PARAMS, VERSION};
use a2a_lambda_tests::world::Request;
use serde_json::{Value, json};

pub(super) fn add(table: &mut Table, scene: &Scene) {
    gets(table, scene);
    ids(table);
    lists(table);
    resumes(table, scene);
    versions(table, scene);
}

fn gets(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    for length in [
        json!(-1),
        json!("x"),
        json!(1.5),
        json!("9999999999999999999999"),
    ] {
        let fault = table.fault(PARAMS).at("historyLength");
        let request = dialect.get(&scene.waiting, length.clone());
        table.add(format!("get with history {length}"), request, fault);
    }
    if matches!(dialect, Dialect::Rest10 | Dialect::Rest03) {
        let path = dialect.route(Op::Get, &scene.waiting).1;
        let request = Request::new("GET", format!("{path}?historyLength=1&historyLength=2"));
        let fault = table.fault(PARAMS).at("historyLength");
        table.add("get with two histories", dialect.versioned(request), fault);
    }
    if dialect == Dialect::Path01 {
        for length in ["-1", "x", "1.5"] {
            let path = format!("/tasks/{}/get?historyLength={length}", scene.waiting);
            let fault = table.fault(PARAMS).at("historyLength");
            table.add(
                format!("GET with history {length}"),
                Request::new("GET", path),
                fault,
            );
        }
    }
}

fn ids(table: &mut Table) {
    let dialect = table.dialect;
    for op in [Op::Get, Op::Cancel, Op::Subscribe] {
        let fault = || table.fault(PARAMS).at("id");
        let mut cases = Vec::new();
        if matches!(dialect, Dialect::Rest10 | Dialect::Rest03) {
            for id in ["a%20b", "%00", "a%2Fb", "%C3%A9", "a~b", &"x".repeat(129)] {
                cases.push((format!("{op:?} of {id}"), dialect.of_task(op, id), fault()));
            }
        } else {
            for id in [
                json!(""),
                json!("a b"),
                json!(5),
                json!(null),
                json!("x".repeat(129)),
            ] {
                let request = dialect.request(op, "", &json!({ "id": id }));
                cases.push((format!("{op:?} of {id}"), request, fault()));
            }
            let request = dialect.request(op, "", &json!({}));
            cases.push((format!("{op:?} without id"), request, fault()));
        }
        for (name, request, fault) in cases {
            table.add(name, request, fault);
        }
    }
}

/// The parameters a list refuses. JSON-RPC 0.3 and 0.1 have no list.
fn lists(table: &mut Table) {
    let dialect = table.dialect;
    if !matches!(dialect, Dialect::Rpc10 | Dialect::Rest10 | Dialect::Rest03) {
        return;
    }
    let sizes = [json!(0), json!(101), json!(-1), json!("x"), json!(2.5)];
    let others = [
        ("status", json!("done")),
        ("pageToken", json!("garbage")),
        ("pageToken", json!("AAAA.BBBB")),
        (
            "pageToken",
            json!("MTIzIDEgMSB0YXNrLTA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        ),
        ("contextId", json!("a~b")),
        ("contextId", json!("x".repeat(129))),
        ("statusTimestampAfter", json!("yesterday")),
        ("statusTimestampAfter", json!("2026-13-01T00:00:00Z")),
        ("historyLength", json!(-1)),
        ("includeArtifacts", json!("maybe")),
    ];
    let sizes = sizes.map(|size| ("pageSize", size));
    for (name, value) in sizes.into_iter().chain(others) {
        let request = dialect.request(Op::List, "", &json!({ name: value }));
        let fault = table.fault(PARAMS).at(name);
        table.add(format!("list with {name} {value}"), request, fault);
    }
}

fn resumes(table: &mut Table, scene: &Scene) {
    for event in [
        "x",
        "1",
        "-1.1",
        "1.1.1",
        "99.1",
        "1.99",
        "0.0",
        "1.99999999999999999999",
    ] {
        let request = table.dialect.of_task(Op::Subscribe, &scene.waiting);
        let request = request.header("last-event-id", event);
        let fault = table.fault(PARAMS).at("Last-Event-ID");
        table.add(format!("subscribe after {event}"), request, fault);
    }
}

fn versions(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    let good = table.good();
    let requests = |version: &dyn Fn(Request) -> Request| {
        [
            version(dialect.request(Op::Send, "", &good)),
            version(dialect.of_task(Op::Get, &scene.waiting)),
            version(dialect.of_task(Op::Subscribe, &scene.waiting)),
        ]
    };
    let mut bad = vec!["99.0", "1.1", "one", "-1.0", "1.0.x", "0.4"];
    // A2A 1.0 §3.6.1: a request without a version is one of 0.3.
    if dialect.is_v10() {
        bad.extend(["0.3", "0.3.0", "2.0", "1", ""]);
        for request in requests(&|request| request.without("a2a-version")) {
            let fault = table.fault(VERSION);
            table.add(format!("no version: {}", named(table)), request, fault);
        }
    }
    for version in bad {
        for request in requests(&|request| request.header("a2a-version", version)) {
            let fault = table.fault(VERSION);
            table.add(
                format!("version {version:?}: {}", named(table)),
                request,
                fault,
            );
        }
    }
    let mut asked = dialect.request(Op::Send, "", &good).without("a2a-version");
    asked.target.push_str("?A2A-Version=99.0");
    let fault = table.fault(VERSION);
    table.add("a version in the query", asked, fault);
    // The version is checked before the parameters.
    let request = dialect.request(Op::Send, "", &Value::Object(serde_json::Map::new()));
    let fault = table.fault(VERSION);
    table.add(
        "version 99.0 and no message",
        request.header("a2a-version", "99.0"),
        fault,
    );
}

/// A unique number for the name of a case that differs only in its operation.
fn named(table: &Table) -> usize {
    table.cases.len()
}
