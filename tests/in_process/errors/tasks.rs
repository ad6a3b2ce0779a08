//! Messages and cancels that the state of their task refuses, or whose task or
//! context is unknown.

use super::{Scene, Table, put};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{
    BUSY, CONTENT_TYPE, CONTEXT_EXPIRED, FINISHED, NOT_CANCELABLE, NOT_FOUND, PARAMS, UNSUPPORTED,
};
use serde_json::json;

pub(super) fn add(table: &mut Table, scene: &Scene) {
    messages(table, scene);
    unknown(table, scene);
    ended(table, scene);
    contexts(table, scene);
    inputs(table);
}

fn messages(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    for (name, id, row) in [
        ("a finished task", &scene.finished, FINISHED),
        ("a busy task", &scene.busy, BUSY),
    ] {
        let say = Say::in_task(id, "more");
        let fault = table.fault(row);
        table.add(format!("a message to {name}"), dialect.send(&say), fault);
        let fault = table.fault(row);
        table.add(format!("a stream to {name}"), dialect.stream(&say), fault);
    }
    let mut say = Say::in_task(&scene.waiting, "more");
    say.skill = Some("echo");
    let field = "message.metadata[\"a2a-lambda/skillId\"]";
    let fault = table.fault(PARAMS).at(field);
    table.add(
        "another skill for a waiting task",
        dialect.send(&say),
        fault,
    );
}

fn unknown(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    let made = "task-0123456789abcdef0123456789abcdef";
    // A2A 1.0 §3.4.2: a task id in a message must name an existing task.
    let ids = [("unknown", made), ("foreign", scene.foreign.as_str())];
    for (name, id) in ids {
        for op in [Op::Get, Op::Cancel, Op::Subscribe] {
            let fault = table.fault(NOT_FOUND);
            table.add(
                format!("{op:?} of a task {name}"),
                dialect.of_task(op, id),
                fault,
            );
        }
        // Ids of 0.1 are per caller, so another caller's id is free.
        if dialect.is_v01() && name == "foreign" {
            continue;
        }
        let say = Say::in_task(id, "hi");
        let fault = table.fault(NOT_FOUND);
        table.add(
            format!("a message to a task {name}"),
            dialect.send(&say),
            fault,
        );
        let fault = table.fault(NOT_FOUND);
        table.add(
            format!("a stream to a task {name}"),
            dialect.stream(&say),
            fault,
        );
    }
    let fault = table.fault(NOT_FOUND);
    let request = dialect.of_task(Op::Subscribe, made);
    table.add(
        "resume of an unknown task",
        request.header("last-event-id", "1.1"),
        fault,
    );
}

fn ended(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    let fault = table.fault(NOT_CANCELABLE);
    table.add(
        "cancel of a finished task",
        dialect.of_task(Op::Cancel, &scene.finished),
        fault,
    );
    if dialect.is_v10() {
        let fault = table.fault(UNSUPPORTED);
        let request = dialect.of_task(Op::Subscribe, &scene.finished);
        table.add("subscribe to a finished task", request, fault);
    }
}

fn contexts(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    let made = "ctx-0123456789abcdef0123456789abcdef";
    for (name, context) in [("invented", made), ("foreign", &scene.foreign_context)] {
        let say = Say::to("echo", "hi").under("new:2").in_context(context);
        let fault = table.fault(CONTEXT_EXPIRED);
        table.add(format!("a context {name}"), dialect.send(&say), fault);
        let fault = table.fault(CONTEXT_EXPIRED);
        table.add(
            format!("a stream in a context {name}"),
            dialect.stream(&say),
            fault,
        );
    }
    assert_ne!(scene.waiting_context, scene.other_context);
    let say = Say::in_task(&scene.waiting, "hi").in_context(&scene.other_context);
    let field = if dialect.is_v01() {
        "sessionId"
    } else {
        "message.contextId"
    };
    let fault = table.fault(PARAMS).at(field);
    table.add("a task in another context", dialect.send(&say), fault);
}

/// A skill's input schema is checked before a task is created.
fn inputs(table: &mut Table) {
    let dialect = table.dialect;
    let parts = dialect.parts();
    let data = |data: serde_json::Value| match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => json!([{ "data": data }]),
        Dialect::Rest03 => json!([{ "data": { "data": data } }]),
        Dialect::Rpc03 => json!([{"kind": "data", "data": data}]),
        Dialect::Rpc01 | Dialect::Path01 => json!([{"type": "data", "data": data}]),
    };
    // REST 0.3 puts the data of a data part into an inner `data` member.
    let level = if dialect == Dialect::Rest03 {
        ".data"
    } else {
        ""
    };
    let place = format!("message.{parts}[0].data{level}");
    for (name, data, inside) in [
        ("a wrong type", data(json!({"a": "x", "b": 1})), ".a"),
        ("a missing member", data(json!({"a": 1})), ""),
        (
            "an unknown member",
            data(json!({"a": 1, "b": 2, "c": 3})),
            ".c",
        ),
        (
            "a wrong type in a call",
            data(json!({"skill": "add", "input": {"a": "x", "b": 1}})),
            ".input.a",
        ),
        (
            "a wrong type in a call of another spelling",
            data(json!({"tool": "add", "params": {"a": 1, "b": []}})),
            ".params.b",
        ),
    ] {
        let mut params = dialect.say(&Say::to("add", "x").under("new:3"));
        put(&mut params, &format!("/message/{parts}"), data);
        let fault = table.fault(PARAMS).at(format!("{place}{inside}"));
        let request = dialect.request(Op::Send, "", &params);
        table.add(format!("input with {name}"), request, fault);
    }
    if dialect.is_v01() {
        return;
    }
    let mut params = dialect.say(&Say::to("echo", "hi"));
    params["configuration"] = json!({"acceptedOutputModes": ["image/png"]});
    let fault = table.fault(CONTENT_TYPE);
    table.add(
        "an output mode that no skill has",
        dialect.request(Op::Send, "", &params),
        fault,
    );
}
