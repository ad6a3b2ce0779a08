//! Every operation as called by the owner, by other callers and without a name,
//! for an absent and for an expired item. The operations are the routes of the
//! route table and the JSON-RPC methods; one without a row here fails.

use crate::tenants::seen;
use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{CONTEXT_EXPIRED, Fault, NOT_FOUND, PARAMS, UNAUTHENTICATED};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World, behind_a_gateway, send};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_message_that_names_another_context_is_refused
}

const OWNER: &str = "acme:ann";
/// Another tenant, another subject, and both in another case.
const OTHERS: [&str; 4] = ["evil:ann", "acme:bob", "ACME:ann", "acme:Ann"];
/// A caller that never made anything.
const EMPTY_CALLER: &str = "empty:nobody";
const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);
/// The id of the task's push config.
const HOOK: &str = "p1";

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum About {
    /// The same for every caller, authenticated or not.
    All,
    /// The same for every authenticated caller.
    Known,
    /// A task by its id.
    Task,
    /// A context by its id.
    Context,
    /// A list of the caller's own items.
    Own,
    /// A new task.
    New,
}

/// The task, context and tenant that a request names.
#[derive(Debug, Clone)]
struct Target {
    task: String,
    context: String,
    tenant: &'static str,
}

struct Row {
    name: String,
    about: About,
    dialect: Dialect,
    request: Request,
}

/// Method and path of every route of the functions.
fn routes() -> Vec<String> {
    let manifest = include_str!("../../Cargo.toml");
    let (_, table) = manifest
        .split_once("[workspace.metadata.lambda.watch.router]\n")
        .unwrap();
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let mut all = Vec::new();
    // The paths for operators show nothing of any caller; `ops.rs` tests them.
    let of_callers = |line: &&str| !line.is_empty() && !line.contains("function = \"ops\"");
    for line in lines.filter(of_callers) {
        let (path, functions) = line.split_once(" = ").unwrap();
        for function in functions.split("method = \"").skip(1) {
            let (method, _) = function.split_once('"').unwrap();
            all.push(format!("{method} {}", path.trim_matches('"')));
        }
    }
    assert!(all.len() > 40, "only {} routes", all.len());
    all
}

/// All operations: the routes without `POST /`, which carries JSON-RPC, and the
/// JSON-RPC methods.
fn operations() -> Vec<String> {
    let routes = routes().into_iter().filter(|route| route != "POST /");
    let methods = a2a_lambda_wire::methods().map(|name| format!("CALL {name}"));
    routes.chain(methods).collect()
}

fn call(dialect: Dialect, method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    dialect.versioned(Request::post("/", &body))
}

/// Collects the requests of one operation.
struct Rows {
    operation: String,
    dialect: Dialect,
    rows: Vec<Row>,
}

impl Rows {
    fn add(&mut self, about: About, how: &str, request: Request) {
        let (operation, dialect) = (&self.operation, self.dialect);
        self.rows.push(Row {
            name: format!("{operation} {how}"),
            about,
            dialect,
            request: dialect.versioned(request),
        });
    }

    /// A new message, one in a context, one in a task, and one in a task that
    /// also names its context.
    fn messages(&mut self, target: &Target, with: impl Fn(&Value) -> Request) {
        let dialect = self.dialect;
        let new = Say::to("echo", "hi").under("other:1");
        self.add(About::New, "new", with(&dialect.say(&new)));
        let there = new.in_context(&target.context);
        self.add(About::Context, "in a context", with(&dialect.say(&there)));
        // Ids of 0.1 are per caller, so another caller's id is free.
        if !dialect.is_v01() {
            let answer = Say::in_task(&target.task, "blue");
            self.add(About::Task, "in a task", with(&dialect.say(&answer)));
            let both = answer.in_context(&target.context);
            self.add(About::Task, "in both", with(&dialect.say(&both)));
        }
    }
}

/// The requests of one operation; `None` if there is no row for it.
fn rows(operation: &str, target: &Target) -> Option<Vec<Row>> {
    let (method, name) = operation.split_once(' ').unwrap();
    let mut rows = Rows {
        operation: operation.to_owned(),
        dialect: dialect_of(method, name),
        rows: Vec::new(),
    };
    let known = if method == "CALL" {
        called(&mut rows, name, target)
    } else if let Some(path) = name.strip_prefix("/v1/") {
        shared(&mut rows, method, "/v1", path, target)
    } else if let Some(path) = name.strip_prefix("/{tenant}/") {
        let base = format!("/{}", target.tenant);
        shared(&mut rows, method, &base, path, target)
    } else {
        by_path(&mut rows, method, name, target)
    };
    known.then_some(rows.rows)
}

fn dialect_of(method: &str, name: &str) -> Dialect {
    let of_0_1 = ["tasks/send", "tasks/stream", "tasks/pushNotification/"];
    match method {
        "CALL" if of_0_1.iter().any(|start| name.starts_with(start)) => Dialect::Rpc01,
        "CALL" if name.contains('/') => Dialect::Rpc03,
        "CALL" => Dialect::Rpc10,
        _ if name.starts_with("/v1/") || name.starts_with("/agent/") => Dialect::Rest03,
        "POST" if name.starts_with("/tasks/") && !name.contains('{') => Dialect::Path01,
        _ if name == "/tasks/{id}/get" => Dialect::Path01,
        _ => Dialect::Rest10,
    }
}

fn called(rows: &mut Rows, name: &str, target: &Target) -> bool {
    let Target { task, context, .. } = target;
    let dialect = rows.dialect;
    let with = |params: &Value| call(dialect, name, params);
    let config = json!({"url": "https://hook.example/", "id": HOOK});
    match name {
        "SendMessage"
        | "SendStreamingMessage"
        | "message/send"
        | "message/stream"
        | "tasks/send"
        | "tasks/sendSubscribe"
        | "tasks/stream" => rows.messages(target, with),
        "GetTask" | "CancelTask" | "SubscribeToTask" | "tasks/get" | "tasks/cancel"
        | "tasks/resubscribe" => {
            rows.add(About::Task, "", with(&json!({ "id": task })));
        }
        "ListTasks" => {
            rows.add(About::Own, "all", with(&json!({})));
            rows.add(
                About::Own,
                "of a context",
                with(&json!({ "contextId": context })),
            );
        }
        "CreateTaskPushNotificationConfig" => {
            let one = json!({"taskId": task, "url": "https://hook.example/", "id": HOOK});
            rows.add(About::Task, "", with(&one));
        }
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            rows.add(About::Task, "", with(&json!({"taskId": task, "id": HOOK})));
        }
        "ListTaskPushNotificationConfigs" => {
            rows.add(About::Task, "", with(&json!({ "taskId": task })));
        }
        "tasks/pushNotificationConfig/set" => {
            let set = json!({"taskId": task, "pushNotificationConfig": config});
            rows.add(About::Task, "", with(&set));
        }
        "tasks/pushNotificationConfig/get" | "tasks/pushNotificationConfig/delete" => {
            let one = json!({"id": task, "pushNotificationConfigId": HOOK});
            rows.add(About::Task, "", with(&one));
        }
        "tasks/pushNotificationConfig/list" => {
            rows.add(About::Task, "", with(&json!({ "id": task })));
        }
        "tasks/pushNotification/set" => {
            let set = json!({"id": task, "pushNotificationConfig": config});
            rows.add(About::Task, "", with(&set));
        }
        "tasks/pushNotification/get" => {
            rows.add(About::Task, "", with(&json!({ "id": task })));
        }
        "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => {
            rows.add(About::Known, "", with(&json!({})));
        }
        _ => return false,
    }
    true
}

/// The routes that 0.3 and 1.0 share, with or without a base path.
fn shared(rows: &mut Rows, method: &str, base: &str, path: &str, target: &Target) -> bool {
    let Target { task, context, .. } = target;
    let get = |path: String| Request::new("GET", format!("{base}/{path}"));
    let post = |path: String, body: &Value| Request::post(format!("{base}/{path}"), body);
    let hooks = format!("tasks/{task}/pushNotificationConfigs");
    match (method, path) {
        ("POST", "message:send" | "message:stream") => {
            rows.messages(target, |params| post(path.to_owned(), params));
        }
        ("GET", "tasks") => {
            rows.add(About::Own, "all", get("tasks".to_owned()));
            let filtered = format!("tasks?contextId={context}");
            rows.add(About::Own, "of a context", get(filtered));
        }
        ("GET", "tasks/{id}") => {
            rows.add(About::Task, "", get(format!("tasks/{task}")));
            let events = get(format!("tasks/{task}:subscribe"));
            let resumed = events.clone().header("last-event-id", "1.1");
            rows.add(About::Task, ":subscribe", events);
            rows.add(About::Task, ":subscribe again", resumed);
        }
        ("POST", "tasks/{id}") => {
            for verb in [":cancel", ":subscribe"] {
                let request = post(format!("tasks/{task}{verb}"), &json!({}));
                rows.add(About::Task, verb, request);
            }
        }
        ("GET", "tasks/{id}/pushNotificationConfigs") => rows.add(About::Task, "", get(hooks)),
        ("POST", "tasks/{id}/pushNotificationConfigs") => {
            let config = json!({"url": "https://hook.example/"});
            let body = if rows.dialect == Dialect::Rest03 {
                let name = format!("{hooks}/{HOOK}");
                let config = json!({"name": name, "pushNotificationConfig": config});
                json!({"parent": format!("tasks/{task}"), "configId": HOOK, "config": config})
            } else {
                config
            };
            rows.add(About::Task, "", post(hooks, &body));
        }
        ("GET" | "DELETE", "tasks/{id}/pushNotificationConfigs/{configId}") => {
            let mut request = get(format!("{hooks}/{HOOK}"));
            request.method = if method == "GET" { "GET" } else { "DELETE" };
            rows.add(About::Task, "", request);
        }
        ("GET", "extendedAgentCard" | "card") => {
            rows.add(About::Known, "", get(path.to_owned()));
        }
        _ => return false,
    }
    true
}

fn by_path(rows: &mut Rows, method: &str, path: &str, target: &Target) -> bool {
    let Target { task, context, .. } = target;
    match (method, path) {
        (
            "GET" | "HEAD",
            "/.well-known/agent-card.json"
            | "/.well-known/agent.json"
            | "/agent.json"
            | "/a2a-lambda/schemas",
        ) => {
            let verb = if method == "GET" { "GET" } else { "HEAD" };
            rows.add(About::All, "", Request::new(verb, path));
        }
        ("GET", "/a2a-lambda/skills" | "/agent/authenticatedExtendedCard") => {
            rows.add(About::Known, "", Request::new("GET", path));
        }
        ("GET", "/a2a-lambda/contexts") => rows.add(About::Own, "", Request::new("GET", path)),
        ("DELETE", "/a2a-lambda/contexts/{id}") => {
            let path = format!("/a2a-lambda/contexts/{context}");
            rows.add(About::Context, "", Request::new("DELETE", path));
        }
        ("DELETE", "/a2a-lambda/tasks/{id}") => {
            let path = format!("/a2a-lambda/tasks/{task}");
            rows.add(About::Task, "", Request::new("DELETE", path));
        }
        ("POST", "/a2a-lambda/uploads") => {
            let order = json!({"size": 3, "sha256": "0".repeat(64)});
            rows.add(About::Known, "", Request::post(path, &order));
        }
        ("POST", "/tasks/send" | "/tasks/sendSubscribe" | "/tasks/stream") => {
            rows.messages(target, |params| Request::post(path, params));
        }
        ("POST", "/tasks/get" | "/tasks/cancel" | "/tasks/resubscribe")
        | ("POST", "/tasks/pushNotification/get") => {
            rows.add(About::Task, "", Request::post(path, &json!({ "id": task })));
        }
        ("POST", "/tasks/pushNotification/set") => {
            let config = json!({"url": "https://hook.example/"});
            let set = json!({"id": task, "pushNotificationConfig": config});
            rows.add(About::Task, "", Request::post(path, &set));
        }
        ("GET", "/tasks/{id}/get") => {
            let path = format!("/tasks/{task}/get");
            rows.add(About::Task, "", Request::new("GET", path));
        }
        _ => return shared(rows, method, "", path.trim_start_matches('/'), target),
    }
    true
}

/// A world with a task of the owner that waits for input in this dialect, and a
/// push config of it.
async fn asked(dialect: Dialect) -> (World, Target) {
    let world = World::new().unwrap();
    let open = dialect
        .send(&Say::to("ask", "hi").under("mine:1"))
        .from(OWNER);
    let task = dialect.task(&world.call(&open).await);
    let target = Target {
        task: task["id"].as_str().unwrap().to_owned(),
        context: dialect.context(&task),
        tenant: "acme",
    };
    // The only push config of a 0.1 task has the id `default`.
    let id = if dialect.is_v01() { "default" } else { HOOK };
    let hook = json!({"taskId": target.task, "id": id, "url": "https://hook.example/"});
    let hook = call(Dialect::Rpc10, "CreateTaskPushNotificationConfig", &hook).from(OWNER);
    let made = world.call(&hook).await;
    assert!(made.json().get("result").is_some(), "{}", made.text());
    (world, target)
}

/// Well-formed ids that name nothing.
fn nothing(dialect: Dialect, tenant: &'static str) -> Target {
    let unknown = "0123456789abcdef0123456789abcdef";
    let task = if dialect.is_v01() {
        "none:1".to_owned()
    } else {
        format!("task-{unknown}")
    };
    let context = format!("ctx-{unknown}");
    Target {
        task,
        context,
        tenant,
    }
}

fn tenant_of(caller: &'static str) -> &'static str {
    caller.split(':').next().unwrap()
}

/// All that a caller sees of a response, with placeholders for the ids it named.
async fn view(
    world: &World,
    operation: &str,
    at: usize,
    target: &Target,
    who: &'static str,
) -> String {
    let row = rows(operation, target).unwrap().swap_remove(at);
    let reply = world.call(&row.request.from(who)).await;
    let text = seen(&reply, &target.task).replace(&target.context, "CONTEXT");
    text.replace(&format!("/{}/", target.tenant), "/TENANT/")
}

fn refused(dialect: Dialect, reply: &Reply) -> bool {
    let rows = [NOT_FOUND, CONTEXT_EXPIRED, PARAMS, UNAUTHENTICATED];
    rows.iter()
        .any(|fault| Fault::new(dialect, *fault).check(reply).is_ok())
}

#[test]
fn every_operation_has_a_row() {
    let missing: Vec<String> = operations()
        .into_iter()
        .filter(|operation| {
            let target = nothing(Dialect::Rest10, "acme");
            rows(operation, &target).is_none_or(|rows| rows.is_empty())
        })
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "no row for these operations");
    let names = operations();
    let one: BTreeSet<&String> = names.iter().collect();
    assert_eq!(one.len(), names.len(), "an operation is listed twice");
    assert!(names.len() > 60, "only {} operations", names.len());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_item_looks_like_an_absent_one() {
    each_row_async(operations(), async |operation| {
        let without_data = nothing(Dialect::Rest10, "acme");
        for (at, row) in rows(&operation, &without_data).unwrap().iter().enumerate() {
            let word = match row.about {
                About::Task => "TASK_NOT_FOUND",
                About::Context => "CONTEXT_EXPIRED",
                _ => continue,
            };
            let (world, target) = asked(row.dialect).await;
            let none = nothing(row.dialect, "acme");
            let row = rows(&operation, &target).unwrap().swap_remove(at);
            let unknown = view(&world, &operation, at, &none, OWNER).await;
            assert!(unknown.contains(word), "{}: {unknown}", row.name);
            let writes = world.store.writes();
            each_row_async(OTHERS, async |other| {
                let tenant = tenant_of(other);
                let cases = [
                    (
                        "foreign",
                        Target {
                            tenant,
                            ..target.clone()
                        },
                    ),
                    ("by its owner's tenant", target.clone()),
                    (
                        "unknown",
                        Target {
                            tenant,
                            ..none.clone()
                        },
                    ),
                ];
                each_row_async(cases, async |(what, named)| {
                    // The path of another tenant gives the error of an absent task.
                    let elsewhere = operation.contains("{tenant}") && named.tenant != tenant;
                    let found = view(&world, &operation, at, &named, other).await;
                    if elsewhere {
                        assert!(found.contains("TASK_NOT_FOUND"), "{}: {found}", row.name);
                    } else {
                        assert_eq!(found, unknown, "{} {what} by {other}", row.name);
                    }
                })
                .await;
            })
            .await;
            assert_eq!(world.store.writes(), writes, "{}", row.name);
            let own = world.call(&row.request.from(OWNER)).await;
            let good =
                own.status == 200 && !refused(row.dialect, &own) || row.name.ends_with("again");
            assert!(good, "{}: {} {}", row.name, own.status, own.text());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_item_looks_like_an_absent_one() {
    each_row_async(operations(), async |operation| {
        let dialect = rows(&operation, &nothing(Dialect::Rest10, "acme")).unwrap()[0].dialect;
        let (world, target) = asked(dialect).await;
        let none = nothing(dialect, "acme");
        advance(MONTH).await;
        for cleaned in [false, true] {
            if cleaned {
                world.clean_up();
            }
            for (at, row) in rows(&operation, &target).unwrap().iter().enumerate() {
                if ![About::Task, About::Context].contains(&row.about) {
                    continue;
                }
                let unknown = view(&world, &operation, at, &none, OWNER).await;
                for caller in [OWNER, OTHERS[1]] {
                    let found = view(&world, &operation, at, &target, caller).await;
                    assert_eq!(found, unknown, "{} {cleaned} {caller}", row.name);
                }
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn callers_without_data_all_see_the_same() {
    each_row_async(operations(), async |operation| {
        let dialect = rows(&operation, &nothing(Dialect::Rest10, "acme")).unwrap()[0].dialect;
        let (world, target) = asked(dialect).await;
        for (at, row) in rows(&operation, &target).unwrap().iter().enumerate() {
            let named = |who: &'static str| Target {
                tenant: tenant_of(who),
                ..target.clone()
            };
            let without_data =
                view(&world, &operation, at, &named(EMPTY_CALLER), EMPTY_CALLER).await;
            each_row_async(OTHERS, async |other| {
                let seen = view(&world, &operation, at, &named(other), other).await;
                match row.about {
                    // A new task, with ids of its own.
                    About::New => {
                        assert!(!seen.contains("ID"), "{} {other}: {seen}", row.name);
                        assert!(seen.starts_with("200"), "{} {other}: {seen}", row.name);
                    }
                    _ => assert_eq!(seen, without_data, "{} by {other}", row.name),
                }
            })
            .await;
            let own = view(&world, &operation, at, &target, OWNER).await;
            match row.about {
                About::Own => assert_ne!(own, without_data, "{}: the owner sees nothing", row.name),
                About::All | About::Known => assert_eq!(own, without_data, "{}", row.name),
                _ => {}
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_the_public_card_needs_no_authentication() {
    each_row_async(operations(), async |operation| {
        let target = nothing(Dialect::Rest10, "acme");
        for row in rows(&operation, &target).unwrap() {
            let world = World::with(behind_a_gateway).unwrap();
            let edge = world.edge(Function::of(row.request.method, row.request.path()));
            let identity = Identity {
                authorizer: None,
                authorization: Some("Bearer dev:acme:ann".to_owned()),
            };
            let reply = send(&edge, &row.request, identity).await.finish().await;
            if row.about == About::All {
                assert_eq!(reply.status, 200, "{}", row.name);
                continue;
            }
            let fault = Fault::new(row.dialect, UNAUTHENTICATED);
            assert_eq!(
                fault.check(&reply),
                Ok(()),
                "{}: {}",
                row.name,
                reply.text()
            );
            assert_eq!(world.store.writes(), 0, "{}", row.name);
        }
    })
    .await;
}

async fn a_message_that_names_another_context_is_refused(dialect: Dialect) {
    let (world, target) = asked(dialect).await;
    let theirs = dialect
        .send(&Say::to("ask", "hi").under("theirs:1"))
        .from("evil:eve");
    let theirs = dialect.context(&dialect.task(&world.call(&theirs).await));
    let invented = "ctx-0123456789abcdef0123456789abcdef";
    let mut answers = Vec::new();
    let writes = world.store.writes();
    for op in [Op::Send, Op::Stream] {
        for context in [theirs.as_str(), invented, "free:1"] {
            let say = Say::in_task(&target.task, "blue").in_context(context);
            let request = dialect.request(op, "", &dialect.say(&say)).from(OWNER);
            let reply = world.call(&request).await;
            assert_eq!(
                Fault::new(dialect, PARAMS).check(&reply),
                Ok(()),
                "{}",
                reply.text()
            );
            answers.push(seen(&reply, context));
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{dialect:?} {answers:?}");
    assert_eq!(world.store.writes(), writes);
}
