//! Unknown paths and methods, and operations that the agent does not offer.

use super::{Scene, Table};
use a2a_lambda_tests::dialect::{Dialect, Op};
use a2a_lambda_tests::error_rows::{METHOD, NO_PUSH, NOT_FOUND, Row, Shape, UNSUPPORTED};
use a2a_lambda_tests::world::Request;
use serde_json::json;

pub(super) fn add(table: &mut Table, scene: &Scene) {
    match table.dialect {
        Dialect::Rest10 => rest(table, scene, ""),
        Dialect::Rest03 => rest(table, scene, "/v1"),
        Dialect::Path01 => paths(table, scene),
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => {}
    }
    not_offered(table, scene);
    elsewhere(table, scene);
}

fn nowhere(table: &mut Table, method: &'static str, path: &str, shape: Shape) {
    let request = if method == "POST" {
        Request::post(path, &table.good())
    } else {
        Request::new(method, path)
    };
    let mut fault = table.fault(METHOD).shaped(shape);
    // An unknown path is not a 0.1 path, so it gets an error of 1.0.
    fault.v01 = false;
    let request = table.dialect.versioned(request);
    table.add(format!("{method} {path}"), request, fault);
}

fn rest(table: &mut Table, scene: &Scene, base: &str) {
    let id = &scene.waiting;
    let shape = Shape::of(table.dialect);
    let wrong = [
        ("GET", "message:send".to_owned()),
        ("PUT", "message:send".to_owned()),
        ("POST", "message:SEND".to_owned()),
        ("POST", "message/send".to_owned()),
        ("POST", "message:send/".to_owned()),
        ("POST", "message".to_owned()),
        ("POST", "message:".to_owned()),
        ("POST", format!("tasks/{id}")),
        ("DELETE", format!("tasks/{id}")),
        ("POST", format!("tasks/{id}:pause")),
        ("GET", format!("tasks/{id}:cancel")),
        ("GET", "tasks/".to_owned()),
        ("GET", "tasks/%zz".to_owned()),
        ("GET", "tasks/%ff".to_owned()),
        ("POST", "tasks/:cancel".to_owned()),
        ("GET", format!("tasks/{id}/artifacts")),
        ("POST", "extendedAgentCard".to_owned()),
    ];
    for (method, path) in wrong {
        nowhere(table, method, &format!("{base}/{path}"), shape);
    }
    nowhere(table, "GET", &format!("{base}/a/b/tasks"), shape);
}

fn paths(table: &mut Table, scene: &Scene) {
    let id = &scene.waiting;
    let wrong = [
        ("GET", "/tasks/send/x".to_owned()),
        ("PUT", "/tasks/send".to_owned()),
        ("POST", "/tasks/sends".to_owned()),
        ("POST", "/tasks/send/".to_owned()),
        ("POST", "/tasks".to_owned()),
        ("POST", format!("/tasks/{id}/get")),
        ("GET", "/tasks/%ff/get".to_owned()),
        ("POST", "/a2a/tasks/send".to_owned()),
        ("POST", "/a2a/tasks/stream".to_owned()),
        ("POST", "/tasks/pushNotification".to_owned()),
    ];
    for (method, path) in wrong {
        nowhere(table, method, &path, Shape::Rest10);
    }
}

/// Push configs and the extended card: known operations that are switched off.
fn not_offered(table: &mut Table, scene: &Scene) {
    for (line, row) in offers(table.dialect, &scene.waiting) {
        let (method, place) = line.split_once(' ').unwrap();
        let params = json!({"id": scene.waiting, "taskId": scene.waiting});
        let request = match method {
            "CALL" => {
                let body = json!({"jsonrpc": "2.0", "id": 7, "method": place, "params": params});
                Request::post("/", &body)
            }
            "POST" => Request::post(place, &params),
            "GET" => Request::new("GET", place),
            _ => Request::new("DELETE", place),
        };
        let fault = table.fault(row);
        table.add(&*line, table.dialect.versioned(request), fault);
    }
}

/// Methods (`CALL`) and paths of the operations that are not offered.
fn offers(dialect: Dialect, id: &str) -> Vec<(String, Row)> {
    let (push, card): (&[&str], &str) = match dialect {
        Dialect::Rpc10 => (
            &[
                "CALL CreateTaskPushNotificationConfig",
                "CALL GetTaskPushNotificationConfig",
                "CALL ListTaskPushNotificationConfigs",
                "CALL DeleteTaskPushNotificationConfig",
            ],
            "CALL GetExtendedAgentCard",
        ),
        Dialect::Rpc03 => (
            &[
                "CALL tasks/pushNotificationConfig/set",
                "CALL tasks/pushNotificationConfig/get",
                "CALL tasks/pushNotificationConfig/list",
                "CALL tasks/pushNotificationConfig/delete",
            ],
            "CALL agent/getAuthenticatedExtendedCard",
        ),
        Dialect::Rpc01 => (
            &[
                "CALL tasks/pushNotification/set",
                "CALL tasks/pushNotification/get",
            ],
            "",
        ),
        Dialect::Path01 => (
            &[
                "POST /tasks/pushNotification/set",
                "POST /tasks/pushNotification/get",
            ],
            "",
        ),
        Dialect::Rest10 | Dialect::Rest03 => (
            &["POST BASE", "GET BASE", "GET BASE/c1", "DELETE BASE/c1"],
            if dialect == Dialect::Rest10 {
                "GET /extendedAgentCard"
            } else {
                "GET /v1/card"
            },
        ),
    };
    let version = if dialect == Dialect::Rest03 {
        "/v1"
    } else {
        ""
    };
    let base = format!("{version}/tasks/{id}/pushNotificationConfigs");
    let push = push
        .iter()
        .map(|line| (line.replace("BASE", &base), NO_PUSH));
    let card = (!card.is_empty()).then(|| (card.to_owned(), UNSUPPORTED));
    push.chain(card).collect()
}

/// A tenant that is not the caller's.
fn elsewhere(table: &mut Table, scene: &Scene) {
    let dialect = table.dialect;
    let mut params = table.good();
    params["tenant"] = json!("evil");
    if dialect.is_v10() {
        let fault = table.fault(NOT_FOUND);
        let request = dialect.request(Op::Send, "", &params);
        table.add("a send to another tenant", request, fault);
        for op in [Op::Get, Op::Cancel, Op::Subscribe, Op::List] {
            let mut params = dialect.id_only(&scene.waiting);
            if op == Op::List {
                params = json!({});
            }
            params["tenant"] = json!("evil");
            let request = dialect.request(op, &scene.waiting, &params);
            let fault = table.fault(NOT_FOUND);
            table.add(format!("{op:?} at another tenant"), request, fault);
        }
        // The tenant is checked before the parameters.
        let request = dialect.request(Op::Send, "", &json!({"tenant": "evil"}));
        let fault = table.fault(NOT_FOUND);
        table.add("nothing to another tenant", request, fault);
    }
    if dialect == Dialect::Rest10 {
        for (name, path) in [
            ("send", "/evil/message:send".to_owned()),
            ("stream", "/evil/message:stream".to_owned()),
            ("cancel", format!("/evil/tasks/{}:cancel", scene.waiting)),
        ] {
            let request = dialect.versioned(Request::post(path, &table.good()));
            let fault = table.fault(NOT_FOUND);
            table.add(format!("path of another tenant: {name}"), request, fault);
        }
    }
}
