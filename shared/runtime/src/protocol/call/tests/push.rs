//! Webhooks in the words of every generation.

use super::*;
use crate::protocol::{Reply, answer};
use crate::task::{PushConfig, PushId, PushListQuery, PushPage, PushQuery, TaskId};

#[test]
fn a_webhook_is_read_alike_in_every_generation() {
    let hook = json!({
        "url": "https://hook.example/x",
        "token": "canary",
        "authentication": {"schemes": ["Bearer"], "credentials": "canary"},
    });
    let flat = |task: Value| {
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
    let path = "/tasks/t/pushNotificationConfigs";
    for (request, generation, at) in [
        (
            post(
                "/",
                &rpc("CreateTaskPushNotificationConfig", &flat(json!("t"))),
            ),
            Generation::V10,
            "",
        ),
        (
            post(path, &flat(json!("another")).to_string()),
            Generation::V10,
            "",
        ),
        (
            post("/", &rpc("tasks/pushNotificationConfig/set", &set)),
            Generation::V03,
            "pushNotificationConfig",
        ),
        (
            post(&format!("/v1{path}"), &rest.to_string()),
            Generation::V03,
            "config.pushNotificationConfig",
        ),
        (
            post("/", &rpc("tasks/pushNotification/set", &of_v01)),
            Generation::V01,
            "pushNotificationConfig",
        ),
        (
            post("/tasks/pushNotification/set", &of_v01.to_string()),
            Generation::V01,
            "pushNotificationConfig",
        ),
    ] {
        let ask = one(&request).decode().unwrap();
        let Ask::CreatePush(create) = ask else {
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
        let expected = match (generation, at) {
            (Generation::V01, _) => Some("default"),
            (_, "config.pushNotificationConfig") => Some("c"),
            _ => None,
        };
        assert_eq!(id, expected);
    }
}

#[test]
fn what_is_wrong_with_a_webhook_is_named_by_its_field() {
    let long = |length: usize| "x".repeat(length);
    for (member, value, field) in [
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
    ] {
        let mut params = json!({"taskId": "t", "url": "https://hook.example/"});
        params[member] = value.clone();
        let refusal = rpc_call("CreateTaskPushNotificationConfig", &params).decode();
        assert_eq!(fields(refusal.unwrap_err()), [field], "{value}");
    }
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
        assert_eq!(fields(refusal.unwrap_err()), [field], "{value}");
    }
}

#[test]
fn a_webhook_is_asked_for_by_task_and_id() {
    let query = |id: Option<&str>| PushQuery {
        task: TaskId::parse("t").unwrap(),
        id: id.map(|id| PushId::parse(id).unwrap()),
    };
    let both = json!({"task_id": "t", "id": "c"});
    let of_v03 = json!({"id": "t", "pushNotificationConfigId": "c"});
    for (request, id) in [
        (
            post("/", &rpc("GetTaskPushNotificationConfig", &both)),
            Some("c"),
        ),
        (get("/tasks/t/pushNotificationConfigs/c"), Some("c")),
        (get("/v1/tasks/t/pushNotificationConfigs/c"), Some("c")),
        (
            post("/", &rpc("tasks/pushNotificationConfig/get", &of_v03)),
            Some("c"),
        ),
        (
            post(
                "/",
                &rpc("tasks/pushNotificationConfig/get", &json!({"id": "t"})),
            ),
            None,
        ),
        (
            post("/", &rpc("tasks/pushNotification/get", &json!({"id": "t"}))),
            Some("default"),
        ),
        (
            post("/tasks/pushNotification/get", r#"{"id":"t"}"#),
            Some("default"),
        ),
    ] {
        assert_eq!(one(&request).decode(), Ok(Ask::GetPush(query(id))));
    }
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
            Ok(Ask::DeletePush(query(Some("c"))))
        );
    }
    for (request, size) in [
        (
            post(
                "/",
                &rpc("ListTaskPushNotificationConfigs", &json!({"taskId": "t"})),
            ),
            None,
        ),
        (
            post(
                "/",
                &rpc("tasks/pushNotificationConfig/list", &json!({"id": "t"})),
            ),
            None,
        ),
        (get("/tasks/t/pushNotificationConfigs"), None),
        (get("/v1/tasks/t/pushNotificationConfigs"), None),
    ] {
        let expected = PushListQuery {
            task: TaskId::parse("t").unwrap(),
            page_size: size,
            page_token: None,
        };
        assert_eq!(one(&request).decode(), Ok(Ask::ListPushes(expected)));
    }
}

#[test]
fn a_webhook_is_shown_without_its_secrets() {
    let config = PushConfig {
        task: TaskId::parse("t").unwrap(),
        id: PushId::parse("c").unwrap(),
        url: "https://hook.example/x".to_owned(),
        schemes: vec!["Bearer".to_owned()],
    };
    let legacy = json!({
        "id": "c", "url": "https://hook.example/x", "authentication": {"schemes": ["Bearer"]},
    });
    let page = Reply::Pushes(PushPage {
        configs: vec![config.clone()],
        next_page_token: String::new(),
    });
    let one_of = Reply::Push(config);
    let v10 = json!({
        "id": "c", "taskId": "t", "url": "https://hook.example/x",
        "authentication": {"scheme": "Bearer"},
    });
    let v03 = json!({"taskId": "t", "pushNotificationConfig": legacy});
    let rest = json!({
        "name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": legacy,
    });
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
            &Reply::PushDeleted,
            &Value::Null,
        ),
        (
            post("/", &rpc("DeleteTaskPushNotificationConfig", &none)),
            &Reply::PushDeleted,
            &none,
        ),
    ] {
        let answered = body(&answer(&one(&request), reply));
        let shown = match answered.get("jsonrpc") {
            Some(_) => answered.get("result").unwrap(),
            None => &answered,
        };
        assert_eq!(shown, expected);
    }
}
