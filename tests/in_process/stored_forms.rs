//! What a client gets for a task or a context that another release has stored.

use a2a_lambda::store::keys::{self, Key};
use a2a_lambda::store::stored::SCHEMA;
use a2a_lambda::store::table::{ItemChange, Statement, Table as _};
use a2a_lambda::task::{ContextId, Owner, Subject, TaskId, TaskKey, TenantId, ThreadKey};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, Row};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use serde_json::json;

per_dialect! {
    paused ALL:
    a_task_of_another_release_is_unavailable_and_no_internal_error
    a_context_of_another_release_is_unavailable_and_no_internal_error
}

const CONTEXT: &str = "mine:c";
const FORMS: [u32; 2] = [SCHEMA - 1, SCHEMA + 1];

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    }
}

/// Gives an item another stored form.
async fn restore_as(world: &World, key: Key, form: u32) {
    let change = ItemChange::set("schema", i64::from(form));
    let update = Statement::update(key, [change]);
    let outcome = world.store.memory().table.write(update.into()).await;
    assert!(outcome.unwrap().is_done().unwrap());
}

fn is_unavailable(dialect: Dialect) -> Fault {
    Fault::new(dialect, Row::named("UnknownStoredForm").unwrap())
}

async fn a_task_of_another_release_is_unavailable_and_no_internal_error(dialect: Dialect) {
    each_row_async(FORMS, async |form| {
        let world = World::new().unwrap();
        let say = Say::to("ask", "hi").in_context(CONTEXT);
        let reply = world.call(&dialect.send(&say)).await;
        let id = dialect.task(&reply)["id"].as_str().unwrap().to_owned();
        let task = TaskKey::new(&owner(), &TaskId::parse(id.as_str()).unwrap());
        restore_as(&world, keys::task(&task), form).await;
        let before = world.store.commits().len();
        let answer = Say::in_task(&id, "more");
        let mut requests = vec![
            dialect.of_task(Op::Get, &id),
            dialect.of_task(Op::Cancel, &id),
            dialect.of_task(Op::Subscribe, &id),
            dialect.send(&answer),
            dialect.stream(&answer),
        ];
        if dialect.is_v10() {
            requests.push(dialect.request(Op::List, "", &json!({})));
        }
        for request in &requests {
            let reply = world.call(request).await;
            // 0.3 has the names of some methods of 0.1: the stored task would say which it is.
            let dialects = match dialect {
                Dialect::Rpc01 => vec![dialect, Dialect::Rpc03],
                _ => vec![dialect],
            };
            let mut faults = dialects.iter().map(|it| is_unavailable(*it).check(&reply));
            assert!(faults.any(|it| it.is_ok()), "{form} {}", reply.text());
        }
        assert_eq!(world.store.commits().len(), before);
    })
    .await;
}

async fn a_context_of_another_release_is_unavailable_and_no_internal_error(dialect: Dialect) {
    each_row_async(FORMS, async |form| {
        let world = World::new().unwrap();
        let say = Say::to("echo", "hi").in_context(CONTEXT);
        world.call(&dialect.send(&say)).await;
        let thread = ThreadKey::new(&owner(), &ContextId::parse(CONTEXT).unwrap());
        restore_as(&world, keys::thread(&thread), form).await;
        let contexts = Request::new("GET", "/a2a-lambda/contexts");
        let contexts = world.call(&Dialect::Rest10.versioned(contexts)).await;
        let listed = is_unavailable(Dialect::Rest10).check(&contexts);
        assert_eq!(listed, Ok(()), "{form}");
        let reply = world
            .call(&dialect.send(&say.clone().under("order:2")))
            .await;
        let fault = is_unavailable(dialect).check(&reply);
        assert_eq!(fault, Ok(()), "{form} {}", reply.text());
    })
    .await;
}
