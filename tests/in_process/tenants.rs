//! A caller cannot read, change or detect what belongs to another caller.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, UNAUTHENTICATED};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World, behind_a_gateway, send};
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_deployed_agent_serves_only_callers_named_by_the_gateway
    a_foreign_task_looks_exactly_like_an_absent_one
    the_owner_can_do_every_operation
    a_foreign_context_looks_exactly_like_an_invented_one
}

per_dialect! {
    paused [Rpc10, Rest10, Rest03]:
    a_list_has_only_the_callers_own_tasks
}

per_dialect! {
    paused [Rpc01, Path01]:
    two_callers_may_use_the_same_0_1_task_id
}

const OWNER: &str = "acme:ann";
/// Another tenant and another subject of the same tenant, some of them with
/// similar names.
const OTHERS: [&str; 5] = ["evil:ann", "acme:bob", "ACME:ann", "acme:Ann", "acm:ann"];

/// Every operation on a task, as a message or by its id.
fn operations(dialect: Dialect, id: &str) -> Vec<(String, Request)> {
    let mut all: Vec<(String, Request)> = [Op::Get, Op::Cancel, Op::Subscribe]
        .into_iter()
        .map(|op| (format!("{op:?}"), dialect.of_task(op, id)))
        .collect();
    let resume = dialect
        .of_task(Op::Subscribe, id)
        .header("last-event-id", "1.1");
    all.push(("resume".to_owned(), resume));
    all.push(("history".to_owned(), dialect.get(id, 5)));
    if !dialect.is_v01() {
        let say = Say::in_task(id, "blue");
        all.push(("send".to_owned(), dialect.send(&say)));
        all.push(("stream".to_owned(), dialect.stream(&say)));
    }
    if dialect == Dialect::Path01 {
        let path = format!("/tasks/{id}/get");
        all.push(("GET".to_owned(), Request::new("GET", path)));
    }
    if matches!(dialect, Dialect::Rest10 | Dialect::Rest03) {
        let (_, path) = dialect.route(Op::Subscribe, id);
        all.push((
            "GET".to_owned(),
            dialect.versioned(Request::new("GET", path)),
        ));
    }
    all
}

/// All that a client sees of a response, without the id that it named.
pub(crate) fn seen(reply: &Reply, id: &str) -> String {
    let headers: Vec<String> = reply
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    format!("{} {headers:?} {}", reply.status, reply.text()).replace(id, "ID")
}

async fn a_foreign_task_looks_exactly_like_an_absent_one(dialect: Dialect) {
    let world = World::new().unwrap();
    let open = dialect
        .send(&Say::to("ask", "hi").under("mine:1"))
        .from(OWNER);
    let task = dialect.task(&world.call(&open).await);
    let id = task["id"].as_str().unwrap().to_owned();
    let unknown = if dialect.is_v01() {
        "none:1".to_owned()
    } else {
        "task-0123456789abcdef0123456789abcdef".to_owned()
    };
    let writes = world.store.writes();
    let pairs = operations(dialect, &id)
        .into_iter()
        .zip(operations(dialect, &unknown));
    for ((name, theirs), (_, none)) in pairs {
        each_row_async(OTHERS, async |caller| {
            let foreign = world.call(&theirs.clone().from(caller)).await;
            let absent = world.call(&none.clone().from(caller)).await;
            let (foreign, absent) = (seen(&foreign, &id), seen(&absent, &unknown));
            assert_eq!(foreign, absent, "{dialect:?} {name} by {caller}");
            assert!(foreign.contains("TASK_NOT_FOUND"), "{foreign}");
        })
        .await;
        let absent = world.call(&none.clone().from(OWNER)).await;
        assert!(
            absent.text().contains("TASK_NOT_FOUND"),
            "{}",
            absent.text()
        );
    }
    assert_eq!(
        world.store.writes(),
        writes,
        "{dialect:?}: something was written"
    );
    let own = world.call(&dialect.of_task(Op::Get, &id).from(OWNER)).await;
    assert_eq!(dialect.state(&dialect.task(&own)), "input-required");
}

async fn the_owner_can_do_every_operation(dialect: Dialect) {
    let names = operations(dialect, "x").len();
    for index in 0..names {
        let world = World::new().unwrap();
        let open = dialect
            .send(&Say::to("ask", "hi").under("mine:1"))
            .from(OWNER);
        let task = dialect.task(&world.call(&open).await);
        let id = task["id"].as_str().unwrap();
        let (name, request) = operations(dialect, id).swap_remove(index);
        let reply = world.call(&request.from(OWNER)).await;
        let refused = reply.text().contains("\"reason\"");
        // The events of a short send are not stored, so a client cannot resume after one.
        let good = reply.status == 200 && !refused || name == "resume";
        assert!(good, "{dialect:?} {name}: {}", reply.text());
    }
}

async fn a_list_has_only_the_callers_own_tasks(dialect: Dialect) {
    let world = World::new().unwrap();
    let open = dialect.send(&Say::to("ask", "hi")).from(OWNER);
    let task = dialect.task(&world.call(&open).await);
    let context = dialect.context(&task);
    for filter in [json!({}), json!({ "contextId": context })] {
        let list = dialect.request(Op::List, "", &filter);
        let own = dialect.result(&world.call(&list.clone().from(OWNER)).await);
        assert_eq!(own["totalSize"], 1);
        each_row_async(OTHERS, async |caller| {
            let theirs = dialect.result(&world.call(&list.clone().from(caller)).await);
            assert_eq!(theirs["tasks"], json!([]), "{caller}");
            assert_eq!(theirs["totalSize"], 0);
        })
        .await;
    }
}

async fn a_foreign_context_looks_exactly_like_an_invented_one(dialect: Dialect) {
    let world = World::new().unwrap();
    let open = dialect
        .send(&Say::to("ask", "hi").under("mine:1"))
        .from(OWNER);
    let context = dialect.context(&dialect.task(&world.call(&open).await));
    let invented = "ctx-0123456789abcdef0123456789abcdef";
    each_row_async(OTHERS, async |caller| {
        let mut answers = Vec::new();
        for id in [context.as_str(), invented] {
            let say = Say::to("echo", "hi").under("theirs:1").in_context(id);
            let reply = world.call(&dialect.send(&say).from(caller)).await;
            answers.push(seen(&reply, id));
        }
        assert!(answers[0].contains("CONTEXT_EXPIRED"), "{}", answers[0]);
        assert_eq!(answers[0], answers[1], "{dialect:?} {caller}");
    })
    .await;
}

async fn two_callers_may_use_the_same_0_1_task_id(dialect: Dialect) {
    let world = World::new().unwrap();
    for caller in [OWNER, "evil:ann", "acme:bob"] {
        let request = dialect.send(&Say::to("echo", caller).under("mine:1"));
        let task = dialect.task(&world.call(&request.from(caller)).await);
        assert_eq!(
            dialect.words(&task["artifacts"][0]),
            format!("echo: {caller}")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_named_in_the_request_is_not_an_identity() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    let open = dialect.send(&Say::to("ask", "hi")).from(OWNER);
    let task = dialect.task(&world.call(&open).await);
    let id = task["id"].as_str().unwrap();
    // A tenant in the path or the query only routes; the credentials name the caller.
    let read = |path: String| dialect.versioned(Request::new("GET", path));
    let own = world
        .call(&read(format!("/acme/tasks/{id}")).from(OWNER))
        .await;
    assert_eq!(own.status, 200, "{}", own.text());
    let own = world
        .call(&read(format!("/tasks/{id}?tenant=acme")).from(OWNER))
        .await;
    assert_eq!(own.status, 200, "{}", own.text());
    let rows = [
        format!("/acme/tasks/{id}"),
        format!("/evil/tasks/{id}"),
        format!("/tasks/{id}?tenant=acme"),
        format!("/tasks/{id}?tenant=evil"),
    ];
    each_row_async(rows, async |path| {
        let reply = world.call(&read(path.clone()).from("evil:ann")).await;
        assert_eq!(reply.status, 404, "{path} {}", reply.text());
    })
    .await;
    let cases = ["x-tenant", "tenant", "x-a2a-tenant", "x-amzn-tenant"];
    each_row_async(cases, async |header| {
        let spoof = read(format!("/tasks/{id}"))
            .header(header, "acme")
            .from("evil:ann");
        assert_eq!(world.call(&spoof).await.status, 404, "{header}");
    })
    .await;
}

async fn a_deployed_agent_serves_only_callers_named_by_the_gateway(dialect: Dialect) {
    let identities = [
        json!({}),
        json!({"subject": "ann"}),
        json!({"tenant": "", "subject": "ann"}),
        json!({"tenant": "a#b", "subject": "ann"}),
        json!({"tenant": "v1", "subject": "ann"}),
        json!({"tenant": "acme", "subject": ""}),
        json!({"tenant": "acme"}),
        // Many authorizers set it to a constant.
        json!({"tenant": "acme", "principalId": "ann"}),
        json!({"tenant": ["acme"], "subject": "ann"}),
    ];
    let world = World::with(behind_a_gateway).unwrap();
    let request = dialect.send(&Say::to("echo", "hi"));
    let edge = world.edge(Function::of(request.method, request.path()));
    each_row_async(&identities, async |context| {
        let identity = Identity {
            authorizer: context.as_object().cloned(),
            // An identity that only a development agent accepts.
            authorization: Some("Bearer dev:acme:ann".to_owned()),
        };
        let reply = send(&edge, &request, identity).await.finish().await;
        Fault::new(dialect, UNAUTHENTICATED).check(&reply).unwrap();
        assert!(!reply.header("www-authenticate").is_empty());
    })
    .await;
    assert_eq!(world.store.writes(), 0);
    let named: Value = json!({"tenant": "acme", "subject": "ann"});
    let identity = Identity {
        authorizer: named.as_object().cloned(),
        authorization: None,
    };
    let reply = send(&edge, &request, identity).await.finish().await;
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_skill_sees_only_the_callers_own_references_each_once() {
    let dialect = Dialect::Rest10;
    let world = World::new().unwrap();
    let mut ids = Vec::new();
    for owner in [OWNER, OTHERS[0], OTHERS[1]] {
        let open = dialect.send(&Say::to("echo", "hi")).from(owner);
        let task = dialect.task(&world.call(&open).await);
        ids.push(task["id"].as_str().unwrap().to_owned());
    }
    let [mine, theirs, neighbours] = ids.as_slice() else {
        panic!("{ids:?}");
    };
    let mut params = dialect.say(&Say::to("refers", "look"));
    let named = [mine, theirs, mine, "no id at all", neighbours, theirs, mine];
    params["message"]["referenceTaskIds"] = json!(named);
    let ask = dialect.request(Op::Send, "", &params).from(OWNER);
    let task = dialect.task(&world.call(&ask).await);
    let said = &task["artifacts"][0]["parts"][0]["text"];
    let expected = format!("shown: {mine}; not: no id at all {neighbours} {theirs}");
    assert_eq!(said, &json!(expected));
}
