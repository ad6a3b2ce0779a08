//! Reads and shows push configs in every generation.

use super::*;
use crate::{MethodResult, UnaryCall, answer};
use a2a_lambda_model::task::{PushConfig, PushId, PushListQuery, PushPage, PushQuery, TaskId};
use a2a_lambda_rows::each_row;

/// Requests that create one push config: path, body, generation, and the path of
/// the config in the parameters.
fn registrations() -> Vec<(&'static str, String, Generation, &'static str)> {
    let hook = json!({
        "url": "https://hook.example/x",
        "token": "canary",
        "authentication": {"schemes": ["Bearer"], "credentials": "canary"},
    });
    let flat = |task: &str| {
        json!({
            "taskId": task, "url": "https://hook.example/x", "token": "canary",
            "authentication": {"scheme": "Bearer", "credentials": "canary"},
        })
    };
    let rest = json!({
        "parent": "tasks/t", "configId": "c",
        "config": {"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": hook},
    });
    let set = json!({"taskId": "t", "pushNotificationConfig": hook});
    let of_v01 = json!({"id": "t", "pushNotificationConfig": hook});
    let create = rpc("CreateTaskPushNotificationConfig", &flat("t"));
    let set_v03 = rpc("tasks/pushNotificationConfig/set", &set);
    let set_v01 = rpc("tasks/pushNotification/set", &of_v01);
    let (v10, v03, v01) = (Generation::V10, Generation::V03, Generation::V01);
    let inner = "pushNotificationConfig";
    let path = "/tasks/t/pushNotificationConfigs";
    let of_rest = "/v1/tasks/t/pushNotificationConfigs";
    vec![
        ("/", create, v10, ""),
        (path, flat("another").to_string(), v10, ""),
        ("/", set_v03, v03, inner),
        (
            of_rest,
            rest.to_string(),
            v03,
            "config.pushNotificationConfig",
        ),
        ("/", set_v01, v01, inner),
        (
            "/tasks/pushNotification/set",
            of_v01.to_string(),
            v01,
            inner,
        ),
    ]
}

#[test]
fn every_generation_creates_the_same_push_config() {
    each_row(registrations(), |(path, body, generation, at)| {
        let ask = one(&post(path, &body)).decode().unwrap();
        let MethodCall::Unary(UnaryCall::CreatePush(create)) = ask else {
            panic!("{ask:?}")
        };
        assert_eq!(create.task.as_str(), "t");
        let offer = &create.offer;
        assert_eq!((offer.at.as_str(), offer.generation), (at, generation));
        assert_eq!(offer.url, "https://hook.example/x");
        assert_eq!(offer.schemes, ["Bearer"]);
        assert_eq!(offer.token.as_ref().unwrap().expose(), "canary");
        assert_eq!(offer.credentials.as_ref().unwrap().expose(), "canary");
        let id = offer.id.as_ref().map(|id| id.as_str());
        let expected = match (generation, path) {
            (Generation::V01, _) | (Generation::V03, "/") => Some("default"),
            (Generation::V10, _) => None,
            (Generation::V03, _) => Some("c"),
        };
        assert_eq!(id, expected);
    });
}

#[test]
fn a_fault_in_a_push_config_names_its_field() {
    let long = |length: usize| "x".repeat(length);
    let rows = [
        ("url", json!(""), "url"),
        (
            "url",
            json!(format!("https://hook.example/{}", long(2048))),
            "url",
        ),
        ("url", json!("https://hook.example/\r\nX: y"), "url"),
        ("token", json!(long(257)), "token"),
        ("token", json!("a\r\nX-Evil: 1"), "token"),
        ("token", json!("\u{0}"), "token"),
        ("token", json!("ü"), "token"),
        ("id", json!("a/b"), "id"),
        ("id", json!(long(129)), "id"),
        (
            "authentication",
            json!({"scheme": "Bea rer"}),
            "authentication.scheme",
        ),
        (
            "authentication",
            json!({"scheme": "B\r\n"}),
            "authentication.scheme",
        ),
        ("authentication", json!({}), "authentication.scheme"),
        (
            "authentication",
            json!({"scheme": "Bearer", "credentials": "a\nb"}),
            "authentication.credentials",
        ),
    ];
    each_row(rows, |(member, value, field)| {
        let mut params = json!({"taskId": "t", "url": "https://hook.example/"});
        params[member] = value.clone();
        let refusal = rpc_call("CreateTaskPushNotificationConfig", &params).decode();
        assert_eq!(field_of(refusal.unwrap_err()), field, "{value}");
    });
    for (value, field) in [
        (json!({"schemes": ["a b"]}), "authentication.schemes[0]"),
        (json!({"schemes": "Bearer"}), "authentication.schemes"),
        (
            json!({"schemes": [], "credentials": "a\tb"}),
            "authentication.credentials",
        ),
    ] {
        let config = json!({"url": "https://hook.example/", "authentication": value});
        let params = json!({"taskId": "t", "pushNotificationConfig": config});
        let refusal = rpc_call("tasks/pushNotificationConfig/set", &params).decode();
        let field = format!("pushNotificationConfig.{field}");
        assert_eq!(field_of(refusal.unwrap_err()), field, "{value}");
    }
}

fn query(id: Option<&str>) -> PushQuery {
    PushQuery {
        task: TaskId::parse("t").unwrap(),
        id: id.map(|id| PushId::parse(id).unwrap()),
    }
}

#[test]
fn a_push_config_is_read_by_task_and_id() {
    let both = json!({"task_id": "t", "id": "c"});
    let of_v03 = json!({"id": "t", "pushNotificationConfigId": "c"});
    let task = json!({"id": "t"});
    let [v10, v03, first, v01] = [
        rpc("GetTaskPushNotificationConfig", &both),
        rpc("tasks/pushNotificationConfig/get", &of_v03),
        rpc("tasks/pushNotificationConfig/get", &task),
        rpc("tasks/pushNotification/get", &task),
    ];
    let rows = [
        (post("/", &v10), Some("c")),
        (get("/tasks/t/pushNotificationConfigs/c"), Some("c")),
        (get("/v1/tasks/t/pushNotificationConfigs/c"), Some("c")),
        (post("/", &v03), Some("c")),
        (post("/", &first), None),
        (post("/", &v01), Some("default")),
        (
            post("/tasks/pushNotification/get", r#"{"id":"t"}"#),
            Some("default"),
        ),
    ];
    each_row(rows, |(request, id)| {
        assert_eq!(
            one(&request).decode(),
            Ok(MethodCall::Unary(UnaryCall::GetPush(query(id))))
        );
    });
}

#[test]
fn a_push_config_is_deleted_by_id_and_listed_by_task() {
    let both = json!({"task_id": "t", "id": "c"});
    let of_v03 = json!({"id": "t", "pushNotificationConfigId": "c"});
    for request in [
        post("/", &rpc("DeleteTaskPushNotificationConfig", &both)),
        post("/", &rpc("tasks/pushNotificationConfig/delete", &of_v03)),
        RawRequest {
            method: "DELETE",
            ..get("/tasks/t/pushNotificationConfigs/c")
        },
    ] {
        assert_eq!(
            one(&request).decode(),
            Ok(MethodCall::Unary(UnaryCall::DeletePush(query(Some("c")))))
        );
    }
    let v10 = rpc("ListTaskPushNotificationConfigs", &json!({"taskId": "t"}));
    let v03 = rpc("tasks/pushNotificationConfig/list", &json!({"id": "t"}));
    let rows = [
        post("/", &v10),
        post("/", &v03),
        get("/tasks/t/pushNotificationConfigs"),
        get("/v1/tasks/t/pushNotificationConfigs"),
    ];
    each_row(rows, |request| {
        let expected = PushListQuery {
            task: TaskId::parse("t").unwrap(),
            page_size: None,
            page_token: None,
        };
        assert_eq!(
            one(&request).decode(),
            Ok(MethodCall::Unary(UnaryCall::ListPushes(expected)))
        );
    });
}

fn shown_config() -> PushConfig {
    PushConfig {
        task: TaskId::parse("t").unwrap(),
        id: PushId::parse("c").unwrap(),
        url: "https://hook.example/x".to_owned(),
        schemes: vec!["Bearer".to_owned()],
    }
}

/// The push config in 1.0, in 0.3 and in 0.3 over REST.
fn shown_as() -> [Value; 3] {
    let legacy = json!({
        "id": "c", "url": "https://hook.example/x", "authentication": {"schemes": ["Bearer"]},
    });
    [
        json!({
            "id": "c", "taskId": "t", "url": "https://hook.example/x",
            "authentication": {"scheme": "Bearer"},
        }),
        json!({"taskId": "t", "pushNotificationConfig": legacy}),
        json!({
            "name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": legacy,
        }),
    ]
}

fn shows(request: &RawRequest<'_>, reply: &MethodResult, expected: &Value) {
    let answered = body(&answer(&one(request), reply));
    let shown = match answered.get("jsonrpc") {
        Some(_) => answered.get("result").unwrap(),
        None => &answered,
    };
    assert_eq!(shown, expected);
}

#[test]
fn a_push_config_is_shown_without_its_secrets() {
    let one_of = MethodResult::Push(shown_config());
    let [v10, v03, rest] = shown_as();
    let v01 = json!({
        "id": "t",
        "pushNotificationConfig":
            {"url": "https://hook.example/x", "authentication": {"schemes": ["Bearer"]}},
    });
    let none = json!({});
    for (request, reply, expected) in [
        (
            post("/", &rpc("GetTaskPushNotificationConfig", &none)),
            &one_of,
            &v10,
        ),
        (get("/tasks/t/pushNotificationConfigs/c"), &one_of, &v10),
        (
            post("/", &rpc("tasks/pushNotificationConfig/get", &none)),
            &one_of,
            &v03,
        ),
        (get("/v1/tasks/t/pushNotificationConfigs/c"), &one_of, &rest),
        (
            post("/", &rpc("tasks/pushNotification/get", &none)),
            &one_of,
            &v01,
        ),
        (post("/tasks/pushNotification/get", "{}"), &one_of, &v01),
    ] {
        shows(&request, reply, expected);
    }
}

#[test]
fn each_generation_lists_and_deletes_push_configs_in_its_format() {
    let page = MethodResult::Pushes(PushPage {
        configs: vec![shown_config()],
        next_page_token: String::new(),
    });
    let [v10, v03, rest] = shown_as();
    let none = json!({});
    for (request, reply, expected) in [
        (
            post("/", &rpc("ListTaskPushNotificationConfigs", &none)),
            &page,
            &json!({"configs": [v10]}),
        ),
        (
            post("/", &rpc("tasks/pushNotificationConfig/list", &none)),
            &page,
            &json!([v03]),
        ),
        (
            get("/v1/tasks/t/pushNotificationConfigs"),
            &page,
            &json!({"configs": [rest], "nextPageToken": ""}),
        ),
        (
            post("/", &rpc("tasks/pushNotificationConfig/delete", &none)),
            &MethodResult::PushDeleted,
            &Value::Null,
        ),
        (
            post("/", &rpc("DeleteTaskPushNotificationConfig", &none)),
            &MethodResult::PushDeleted,
            &none,
        ),
    ] {
        shows(&request, reply, expected);
    }
}
