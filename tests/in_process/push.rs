//! Push configs in every generation: created, shown without secrets, deleted.
//! The engine and the local suite test the deliveries.

use a2a_lambda::settings::{Settings, Source};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_push_config_is_stored_shown_without_secrets_and_deleted
    push_calls_on_an_unknown_and_a_foreign_task_fail_alike
    every_kind_of_send_can_bring_a_push_config
}

const URL: &str = "https://hook.example/a2a";
const TOKEN: &str = "canary-push-token";
const CREDENTIALS: &str = "canary-push-credentials";

fn legacy(id: Option<&str>) -> Value {
    let mut config = json!({
        "url": URL,
        "token": TOKEN,
        "authentication": {"schemes": ["Bearer"], "credentials": CREDENTIALS},
    });
    if let Some(id) = id {
        config["id"] = json!(id);
    }
    config
}

fn flat(task: &str, id: &str) -> Value {
    json!({
        "taskId": task,
        "id": id,
        "url": URL,
        "token": TOKEN,
        "authentication": {"scheme": "Bearer", "credentials": CREDENTIALS},
    })
}

fn rpc(dialect: Dialect, method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    dialect.versioned(Request::post("/", &body))
}

fn path(dialect: Dialect, task: &str, config: &str) -> String {
    let version = if dialect == Dialect::Rest03 {
        "/v1"
    } else {
        ""
    };
    let below = if config.is_empty() {
        String::new()
    } else {
        format!("/{config}")
    };
    format!("{version}/tasks/{task}/pushNotificationConfigs{below}")
}

/// The calls about the push config `id` of `task`. 0.1 has one config per task,
/// and can neither list nor delete it.
struct Calls {
    dialect: Dialect,
    task: String,
    id: &'static str,
}

impl Calls {
    fn create(&self) -> Request {
        let (task, id) = (&self.task, self.id);
        let set = json!({"taskId": task, "pushNotificationConfig": legacy(Some(id))});
        let of_v01 = json!({"id": task, "pushNotificationConfig": legacy(None)});
        match self.dialect {
            Dialect::Rpc10 => rpc(
                self.dialect,
                "CreateTaskPushNotificationConfig",
                &flat(task, id),
            ),
            Dialect::Rest10 => {
                let place = path(self.dialect, task, "");
                self.dialect
                    .versioned(Request::post(place, &flat(task, id)))
            }
            Dialect::Rpc03 => rpc(self.dialect, "tasks/pushNotificationConfig/set", &set),
            Dialect::Rest03 => {
                let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
                let config = json!({"name": name, "pushNotificationConfig": legacy(None)});
                let body =
                    json!({"parent": format!("tasks/{task}"), "configId": id, "config": config});
                Request::post(path(self.dialect, task, ""), &body)
            }
            Dialect::Rpc01 => rpc(self.dialect, "tasks/pushNotification/set", &of_v01),
            Dialect::Path01 => Request::post("/tasks/pushNotification/set", &of_v01),
        }
    }

    fn get(&self) -> Request {
        let (task, id) = (&self.task, self.id);
        let one = json!({"taskId": task, "id": id});
        let of_v03 = json!({"id": task, "pushNotificationConfigId": id});
        match self.dialect {
            Dialect::Rpc10 => rpc(self.dialect, "GetTaskPushNotificationConfig", &one),
            Dialect::Rest10 | Dialect::Rest03 => {
                let place = path(self.dialect, task, id);
                self.dialect.versioned(Request::new("GET", place))
            }
            Dialect::Rpc03 => rpc(self.dialect, "tasks/pushNotificationConfig/get", &of_v03),
            Dialect::Rpc01 => rpc(
                self.dialect,
                "tasks/pushNotification/get",
                &json!({"id": task}),
            ),
            Dialect::Path01 => Request::post("/tasks/pushNotification/get", &json!({"id": task})),
        }
    }

    fn list(&self) -> Option<Request> {
        let task = &self.task;
        Some(match self.dialect {
            Dialect::Rpc10 => rpc(
                self.dialect,
                "ListTaskPushNotificationConfigs",
                &json!({"taskId": task}),
            ),
            Dialect::Rest10 | Dialect::Rest03 => {
                let place = path(self.dialect, task, "");
                self.dialect.versioned(Request::new("GET", place))
            }
            Dialect::Rpc03 => rpc(
                self.dialect,
                "tasks/pushNotificationConfig/list",
                &json!({"id": task}),
            ),
            Dialect::Rpc01 | Dialect::Path01 => return None,
        })
    }

    fn delete(&self) -> Option<Request> {
        let (task, id) = (&self.task, self.id);
        let one = json!({"taskId": task, "id": id});
        let of_v03 = json!({"id": task, "pushNotificationConfigId": id});
        Some(match self.dialect {
            Dialect::Rpc10 => rpc(self.dialect, "DeleteTaskPushNotificationConfig", &one),
            Dialect::Rest10 | Dialect::Rest03 => {
                let place = path(self.dialect, task, id);
                self.dialect.versioned(Request::new("DELETE", place))
            }
            Dialect::Rpc03 => rpc(self.dialect, "tasks/pushNotificationConfig/delete", &of_v03),
            Dialect::Rpc01 | Dialect::Path01 => return None,
        })
    }

    /// The result of a response: of an envelope its `result`.
    fn result(&self, reply: &Reply) -> Value {
        assert_eq!(reply.status, 200, "{:?}: {}", self.dialect, reply.text());
        assert!(!reply.text().contains("canary"), "{}", reply.text());
        let body = reply.json();
        if !self.dialect.is_rpc() {
            return body;
        }
        let result = body.get("result");
        result.unwrap_or_else(|| panic!("{body}")).clone()
    }

    /// The push config as the agent shows it.
    fn shown(&self) -> Value {
        let legacy = |id: Option<&str>| {
            let mut config = json!({"url": URL, "authentication": {"schemes": ["Bearer"]}});
            if let Some(id) = id {
                config["id"] = json!(id);
            }
            config
        };
        let (task, id) = (&self.task, self.id);
        match self.dialect {
            Dialect::Rpc10 | Dialect::Rest10 => json!({
                "id": id, "taskId": task, "url": URL, "authentication": {"scheme": "Bearer"},
            }),
            Dialect::Rpc03 => json!({"taskId": task, "pushNotificationConfig": legacy(Some(id))}),
            Dialect::Rest03 => json!({
                "name": format!("tasks/{task}/pushNotificationConfigs/{id}"),
                "pushNotificationConfig": legacy(Some(id)),
            }),
            Dialect::Rpc01 | Dialect::Path01 => {
                json!({"id": task, "pushNotificationConfig": legacy(None)})
            }
        }
    }

    fn all(&self, configs: &[Value]) -> Value {
        match self.dialect {
            Dialect::Rpc10 | Dialect::Rest10 => json!({"configs": configs}),
            Dialect::Rest03 => json!({"configs": configs, "nextPageToken": ""}),
            _ => json!(configs),
        }
    }
}

/// A task after the first turn of `skill`.
async fn task(world: &World, dialect: Dialect, skill: &str) -> Calls {
    let task = dialect.task(&world.call(&dialect.send(&Say::to(skill, "hi"))).await);
    Calls {
        dialect,
        task: task["id"].as_str().unwrap().to_owned(),
        id: if dialect.is_v01() {
            "default"
        } else {
            "hook-1"
        },
    }
}

async fn a_push_config_is_stored_shown_without_secrets_and_deleted(dialect: Dialect) {
    // One task that waits for input, and one that has completed.
    for skill in ["ask", "echo"] {
        let world = World::new().unwrap();
        let calls = task(&world, dialect, skill).await;
        for request in [calls.create(), calls.get()] {
            let reply = world.call(&request).await;
            assert_eq!(calls.result(&reply), calls.shown(), "{dialect:?}");
        }
        let (Some(list), Some(delete)) = (calls.list(), calls.delete()) else {
            continue;
        };
        let listed = calls.result(&world.call(&list).await);
        assert_eq!(listed, calls.all(&[calls.shown()]), "{dialect:?}");
        for _ in 0..2 {
            let removed = calls.result(&world.call(&delete).await);
            let expected = match dialect {
                // The 0.3 kit expects the member `result` with the value null.
                Dialect::Rpc03 => Value::Null,
                _ => json!({}),
            };
            assert_eq!(removed, expected, "{dialect:?}");
        }
        let listed = calls.result(&world.call(&list).await);
        assert_eq!(listed, calls.all(&[]), "{dialect:?}");
        not_found(&world.call(&calls.get()).await, dialect);
    }
}

fn not_found(reply: &Reply, dialect: Dialect) {
    let body = reply.json();
    let code = match dialect {
        Dialect::Rest10 => {
            let reason = &body["error"]["details"][0]["reason"];
            assert_eq!(reason, "TASK_NOT_FOUND", "{body}");
            return assert_eq!(reply.status, 404);
        }
        Dialect::Rest03 | Dialect::Path01 => &body["code"],
        _ => &body["error"]["code"],
    };
    assert_eq!(*code, -32001, "{dialect:?}: {body}");
}

async fn push_calls_on_an_unknown_and_a_foreign_task_fail_alike(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut calls = task(&world, dialect, "ask").await;
    calls.result(&world.call(&calls.create()).await);
    let requests = |calls: &Calls| {
        let optional = [calls.list(), calls.delete()];
        let mut all = vec![calls.create(), calls.get()];
        all.extend(optional.into_iter().flatten());
        all
    };
    for request in requests(&calls) {
        for other in ["local:bob", "acme:local"] {
            not_found(&world.call(&request.clone().from(other)).await, dialect);
        }
    }
    calls.task = "task-00000000000000000000000000000000".to_owned();
    for request in requests(&calls) {
        not_found(&world.call(&request).await, dialect);
    }
}

async fn every_kind_of_send_can_bring_a_push_config(dialect: Dialect) {
    for (op, continued) in [(Op::Send, false), (Op::Stream, false), (Op::Send, true)] {
        let world = World::new().unwrap();
        let mut calls = Calls {
            dialect,
            task: "order:1".to_owned(),
            id: if dialect.is_v01() {
                "default"
            } else {
                "hook-1"
            },
        };
        if continued {
            calls = task(&world, dialect, "ask").await;
        }
        let say = if continued {
            Say::in_task(&calls.task, "blue")
        } else {
            Say::to("ask", "hi")
        };
        let mut params = dialect.say(&say);
        let config = legacy(Some("hook-1"));
        match dialect {
            Dialect::Rpc10 | Dialect::Rest10 => {
                params["configuration"]["taskPushNotificationConfig"] = flat("", "hook-1");
            }
            Dialect::Rpc03 => params["configuration"]["pushNotificationConfig"] = config,
            Dialect::Rest03 => params["configuration"]["pushNotification"] = config,
            Dialect::Rpc01 | Dialect::Path01 => params["pushNotification"] = legacy(None),
        }
        let reply = world.call(&dialect.request(op, "", &params)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(!reply.text().contains("canary"), "{}", reply.text());
        if !continued && !dialect.is_v01() {
            let commits = world.store.commits();
            calls.task = commits[0].task.as_str().to_owned();
        }
        let found = calls.result(&world.call(&calls.get()).await);
        assert_eq!(found, calls.shown(), "{dialect:?} {op:?} {continued}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_webhook_url_is_refused_with_its_field() {
    let cases = [
        (Dialect::Rpc10, "url"),
        (Dialect::Rest10, "url"),
        (Dialect::Rpc03, "pushNotificationConfig.url"),
        (Dialect::Rest03, "config.pushNotificationConfig.url"),
        (Dialect::Rpc01, "pushNotificationConfig.url"),
    ];
    each_row_async(cases, async |(dialect, field)| {
        let world = World::new().unwrap();
        let calls = task(&world, dialect, "ask").await;
        let rows = [
            "http://hook.example/",
            "https://169.254.169.254/latest/",
            "https://user:pw@hook.example/",
            "https://localhost/",
        ];
        each_row_async(rows, async |bad| {
            let mut request = calls.create();
            let body = String::from_utf8(request.body).unwrap().replace(URL, bad);
            request.body = body.into_bytes();
            let reply = world.call(&request).await;
            let text = reply.text();
            assert!(
                text.contains(&format!("\"{field}\"")),
                "{dialect:?}: {text}"
            );
            assert!(!text.contains("canary"), "{text}");
        })
        .await;
        not_found(&world.call(&calls.get()).await, dialect);
    })
    .await;
}

/// The settings of a function on AWS.
struct Deployed;

impl Source for Deployed {
    fn get(&self, name: &str) -> Option<String> {
        (name == "AWS_LAMBDA_INITIALIZATION_TYPE").then(|| "on-demand".to_owned())
    }
}

/// Limits webhooks as a deployed function does.
fn as_deployed(settings: &mut Settings) {
    let deployed = Settings::read_public(&Deployed).unwrap();
    let secrets = settings.policy.secrets.clone();
    settings.policy = deployed.policy;
    settings.policy.secrets = secrets;
}

#[tokio::test(start_paused = true)]
async fn a_local_agent_alone_names_the_setting_for_private_webhooks() {
    let way_out = ", unless the agent runs with `A2A_PUSH_ALLOW_PRIVATE=on`";
    let (scheme, host) = ("must be an https URL", "must name a public host");
    let user = "must not hold a user name or password";
    let rows = [
        ("http://localhost:5000/notify", scheme, true),
        ("http://hook.example/", scheme, true),
        ("https://localhost/", host, true),
        ("https://127.0.0.1:8443/", host, true),
        ("https://10.0.0.8/", host, true),
        ("https://[::1]/", host, true),
        ("https://agent.internal/", host, true),
        ("https://user:pw@hook.example/", user, false),
    ];
    each_row_async(rows, async |(bad, why, is_private)| {
        for (is_local, world) in [
            (true, World::new().unwrap()),
            (false, World::with(as_deployed).unwrap()),
        ] {
            let sentence = match is_local && is_private {
                true => format!("{why}{way_out}"),
                false => why.to_owned(),
            };
            each_row_async(Dialect::ALL, async |dialect| {
                let mut request = task(&world, dialect, "ask").await.create();
                let body = String::from_utf8(request.body).unwrap().replace(URL, bad);
                request.body = body.into_bytes();
                let text = world.call(&request).await.text();
                assert!(
                    text.contains(&format!("{sentence}\"")),
                    "{dialect:?}: {text}"
                );
            })
            .await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_secrets_of_a_push_config_are_not_stored_in_plain_text() {
    use a2a_lambda::task::{Owner, Subject, TaskId, TenantId};
    let world = World::new().unwrap();
    let calls = task(&world, Dialect::Rpc10, "ask").await;
    calls.result(&world.call(&calls.create()).await);
    let owner = Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    };
    let id = TaskId::parse(calls.task.as_str()).unwrap();
    let kept = world
        .store
        .memory()
        .records
        .pushes(&owner, &id)
        .await
        .unwrap();
    assert_eq!(kept.len(), 1);
    for push in kept {
        let text = a2a_lambda::store::stored::push_text(&push).unwrap();
        assert!(text.contains(URL) && !text.contains("canary"), "{text}");
    }
}
