//! Each function serves only its own routes.

use a2a_lambda::http::Function;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, METHOD, Shape};
use a2a_lambda_tests::world::{DOORS, Request, World};
use serde_json::{Value, json};

struct Route {
    door: Function,
    dialect: Dialect,
    request: Request,
    /// Whether the request succeeds.
    works: bool,
}

/// A request and the function to which API Gateway routes it. A POST without a
/// message is about the task `x`.
fn route(door: Function, dialect: Dialect, line: &str, say: Option<Value>, works: bool) -> Route {
    let (method, path) = match line.split_once(' ').unwrap() {
        ("GET", path) => ("GET", path),
        ("DELETE", path) => ("DELETE", path),
        (_, path) => ("POST", path),
    };
    let request = match method {
        "POST" => Request::post(path, &say.unwrap_or_else(|| json!({"id": "x"}))),
        method => Request::new(method, path),
    };
    let request = dialect.versioned(request);
    Route {
        door,
        dialect,
        request,
        works,
    }
}

/// Every route of the agent.
fn routes() -> Vec<Route> {
    let mut all = cards_and_rpc();
    all.extend(rest(Dialect::Rest10, "", "/extendedAgentCard"));
    all.extend(rest(Dialect::Rest10, "/local", "/extendedAgentCard"));
    all.extend(rest(Dialect::Rest03, "/v1", "/card"));
    all.extend(paths_of_0_1());
    all
}

fn cards_and_rpc() -> Vec<Route> {
    let cards = [
        "GET /.well-known/agent-card.json",
        "GET /.well-known/agent.json",
        "GET /agent.json",
        "GET /a2a-lambda/schemas",
    ];
    let cards = cards.map(|line| route(Function::AgentCard, Dialect::Rest10, line, None, true));
    let mut all: Vec<Route> = cards.into();
    for dialect in [Dialect::Rpc10, Dialect::Rpc03, Dialect::Rpc01] {
        for op in [Op::Send, Op::Stream] {
            let say = dialect.say(&Say::to("echo", "hi"));
            let call = dialect.envelope(op, &say);
            all.push(route(Function::Rpc, dialect, "POST /", Some(call), true));
        }
    }
    let skills = "GET /a2a-lambda/skills";
    all.push(route(
        Function::TasksGet,
        Dialect::Rest10,
        skills,
        None,
        true,
    ));
    let ours = [
        (Function::TasksGet, "GET /a2a-lambda/contexts", true),
        (Function::TasksSend, "DELETE /a2a-lambda/contexts/x", false),
        (Function::TasksSend, "DELETE /a2a-lambda/tasks/x", false),
    ];
    for (door, line, works) in ours {
        all.push(route(door, Dialect::Rest10, line, None, works));
    }
    for line in ["GET /health", "GET /a2a-lambda/health"] {
        all.push(route(Function::Ops, Dialect::Rest10, line, None, true));
    }
    let extended = "GET /agent/authenticatedExtendedCard";
    let extended = route(Function::TasksGet, Dialect::Rest03, extended, None, false);
    all.push(extended);
    all
}

fn rest(dialect: Dialect, base: &str, extended: &str) -> Vec<Route> {
    let push = "/tasks/x/pushNotificationConfigs";
    let say = || Some(dialect.say(&Say::to("echo", "hi")));
    let extended = format!("GET {base}{extended}");
    let mut all = vec![route(Function::TasksGet, dialect, &extended, None, false)];
    for (door, method, path, say, works) in [
        (Function::TasksSend, "POST", "/message:send", say(), true),
        (
            Function::TasksStream,
            "POST",
            "/message:stream",
            say(),
            true,
        ),
        (Function::TasksGet, "GET", "/tasks", None, true),
        (Function::TasksGet, "GET", "/tasks/x", None, false),
        (Function::TasksGet, "GET", "/tasks/x:subscribe", None, false),
        (
            Function::TasksStream,
            "POST",
            "/tasks/x:subscribe",
            None,
            false,
        ),
        (
            Function::TasksStream,
            "POST",
            "/tasks/x:cancel",
            None,
            false,
        ),
        (Function::TasksSend, "POST", push, None, false),
        (Function::TasksGet, "GET", push, None, false),
        (Function::TasksGet, "GET", &format!("{push}/c"), None, false),
        (
            Function::TasksSend,
            "DELETE",
            &format!("{push}/c"),
            None,
            false,
        ),
    ] {
        let line = format!("{method} {base}{path}");
        all.push(route(door, dialect, &line, say, works));
    }
    all
}

fn paths_of_0_1() -> Vec<Route> {
    let dialect = Dialect::Path01;
    let say = |id| Some(dialect.say(&Say::to("echo", "hi").under(id)));
    let rows = [
        (Function::TasksSend, "POST /tasks/send", say("d:1")),
        (
            Function::TasksStream,
            "POST /tasks/sendSubscribe",
            say("d:2"),
        ),
        (Function::TasksStream, "POST /tasks/stream", say("d:3")),
        (Function::TasksGet, "POST /tasks/get", None),
        (Function::TasksGet, "GET /tasks/x/get", None),
        (Function::TasksSend, "POST /tasks/cancel", None),
        (Function::TasksStream, "POST /tasks/resubscribe", None),
        (
            Function::TasksSend,
            "POST /tasks/pushNotification/set",
            None,
        ),
        (Function::TasksGet, "POST /tasks/pushNotification/get", None),
    ];
    let rows = rows.into_iter().map(|(door, line, say)| {
        let works = say.is_some();
        route(door, dialect, line, say, works)
    });
    rows.collect()
}

#[tokio::test(start_paused = true)]
async fn each_function_serves_its_own_routes_and_no_other() {
    let world = World::new().unwrap();
    each_row_async(routes(), async |route| {
        let Route {
            door,
            dialect,
            request,
            works,
        } = route;
        let line = format!("{} {} at {door:?}", request.method, request.target);
        assert_eq!(Function::of(request.method, request.path()), door, "{line}");
        for other in DOORS.into_iter().filter(|other| *other != door) {
            let before = world.store.writes();
            let reply = world.open_at(other, &request).await.finish().await;
            let fault = Fault::new(dialect, METHOD).id(Value::Null);
            let checked = fault.check(&reply);
            assert_eq!(
                checked,
                Ok(()),
                "{line}, sent to {other:?}: {}",
                reply.text()
            );
            assert_eq!(world.store.writes(), before, "{line}, sent to {other:?}");
        }
        let reply = world.open_at(door, &request).await.finish().await;
        assert!(
            !reply.text().contains("METHOD_NOT_FOUND"),
            "{line}: {}",
            reply.text()
        );
        let good = reply.status == 200 && !reply.text().contains("\"error\"");
        assert_eq!(good, works, "{line}: {} {}", reply.status, reply.text());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_function_refuses_an_unknown_route() {
    let world = World::new().unwrap();
    let rows = [
        "/nowhere",
        "/a2a/tasks/send",
        "/message:send/x",
        "/health",
        "/metrics",
    ];
    each_row_async(rows, async |target| {
        each_row_async(DOORS, async |door| {
            let request = Request::post(target, &json!({}));
            let reply = world.open_at(door, &request).await.finish().await;
            let fault = Fault::new(Dialect::Rest10, METHOD).shaped(Shape::Rest10);
            assert_eq!(fault.check(&reply), Ok(()), "{target} at {door:?}");
        })
        .await;
    })
    .await;
    assert_eq!(world.store.writes(), 0);
}
