//! Bad input gives the error of the caller's dialect, names the field by its
//! path, and creates nothing. One rule makes the cases of all six dialects
//! where they share it.

mod bodies;
mod envelopes;
mod ours;
mod params;
mod queries;
mod routes;
mod tasks;

use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{Fault, Row};
use a2a_lambda_tests::tester::SKILL_CANARY;
use a2a_lambda_tests::watched_store::STORE_CANARY;
use a2a_lambda_tests::world::{Live, Request, World};
use serde_json::Value;
use std::collections::BTreeSet;

/// At least this many inputs for each dialect.
const ENOUGH: usize = 60;

#[tokio::test(start_paused = true)]
async fn bad_input_to_json_rpc_1_0_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Rpc10).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_to_rest_1_0_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Rest10).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_to_json_rpc_0_3_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Rpc03).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_to_rest_0_3_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Rest03).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_to_json_rpc_0_1_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Rpc01).await;
}

#[tokio::test(start_paused = true)]
async fn bad_input_to_the_paths_of_0_1_is_refused_and_creates_nothing() {
    refuses_all(Dialect::Path01).await;
}

async fn refuses_all(dialect: Dialect) {
    let scene = Scene::set(dialect).await;
    let mut table = Table::new(dialect);
    bodies::add(&mut table);
    envelopes::add(&mut table);
    params::add(&mut table);
    queries::add(&mut table, &scene);
    routes::add(&mut table, &scene);
    tasks::add(&mut table, &scene);
    ours::add(&mut table, &scene);
    let names: BTreeSet<&str> = table.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), table.cases.len(), "two cases have one name");
    assert!(names.len() >= ENOUGH, "only {} inputs", names.len());

    let mut wrong = Vec::new();
    for case in &table.cases {
        let before = scene.world.store.writes();
        let reply = scene.world.call(&case.request).await;
        let secret = [STORE_CANARY, SKILL_CANARY].map(|canary| reply.text().contains(canary));
        let created = scene.world.store.writes() - before;
        let found = case.fault.check(&reply).err().or_else(|| {
            let clean = created == 0 && secret == [false; 2];
            (!clean).then(|| format!("{created} writes, private text: {secret:?}"))
        });
        if let Some(why) = found {
            wrong.push(format!(
                "{}: {why}\n    {} {}",
                case.name,
                reply.status,
                reply.text()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} in {dialect:?}:\n{}",
        wrong.len(),
        names.len(),
        wrong.join("\n")
    );
}

/// One input and the fault it has to give.
struct Case {
    name: String,
    request: Request,
    fault: Fault,
}

struct Table {
    dialect: Dialect,
    cases: Vec<Case>,
}

impl Table {
    const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            cases: Vec::new(),
        }
    }

    fn add(&mut self, name: impl Into<String>, request: Request, fault: Fault) {
        let name = name.into();
        self.cases.push(Case {
            name,
            request,
            fault,
        });
    }

    /// `row` in the table's dialect, with the id of the request in the response.
    fn fault(&self, row: Row) -> Fault {
        Fault::new(self.dialect, row)
    }

    /// `row`, found before an id was read.
    fn early(&self, row: Row) -> Fault {
        self.fault(row).id(Value::Null)
    }

    /// The parameters of a valid send.
    fn good(&self) -> Value {
        self.dialect.say(&Say::to("echo", "hi").under("new:1"))
    }

    /// A send with this text as its parameters.
    fn raw_send(&self, params: &str) -> Request {
        let method = self.dialect.method(Op::Send);
        let body = if self.dialect.is_rpc() {
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
        } else {
            params.to_owned()
        };
        self.raw_body(body)
    }

    /// A send with this text as its body.
    fn raw_body(&self, body: impl Into<Vec<u8>>) -> Request {
        self.dialect
            .request(Op::Send, "", &Value::Null)
            .body(body.into())
    }
}

/// Tasks in the states that the cases need, all made in one dialect.
struct Scene {
    world: World,
    finished: String,
    waiting: String,
    waiting_context: String,
    other_context: String,
    busy: String,
    busy_context: String,
    foreign: String,
    foreign_context: String,
    _working: Live,
}

impl Scene {
    async fn set(dialect: Dialect) -> Self {
        let world = World::with(|settings| settings.push = false).unwrap();
        let finished = opened(&world, dialect, "echo", "done:1", None).await;
        let waiting = opened(&world, dialect, "ask", "open:1", None).await;
        let foreign = opened(&world, dialect, "ask", "theirs:1", Some("evil:eve")).await;
        let slow = dialect.stream(&Say::to("slow", "now").under("busy:1"));
        let mut working = world.open(&slow).await;
        let first = working.next().await.unwrap().unwrap().data;
        let busy = ["/result/id", "/id", "/task/id", "/result/task/id"]
            .into_iter()
            .find_map(|place| at(&first, place).as_str())
            .unwrap()
            .to_owned();
        let busy_context = dialect.of_task(Op::Get, &busy);
        let busy_context = dialect.context(&dialect.task(&world.call(&busy_context).await));
        Self {
            busy_context,
            finished: finished.0,
            waiting: waiting.0,
            waiting_context: waiting.1,
            other_context: finished.1,
            busy,
            foreign: foreign.0,
            foreign_context: foreign.1,
            world,
            _working: working,
        }
    }
}

/// Makes a task, and returns its id and context.
async fn opened(
    world: &World,
    dialect: Dialect,
    skill: &str,
    id: &str,
    caller: Option<&'static str>,
) -> (String, String) {
    let mut request = dialect.send(&Say::to(skill, "hi").under(id));
    request.caller = caller;
    let reply = world.call(&request).await;
    let task = dialect.task(&reply);
    let id = task["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", reply.text()));
    (id.to_owned(), dialect.context(&task))
}

/// Sets the value at a pointer. Its parent must exist.
fn put(value: &mut Value, pointer: &str, new: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Object(members) => {
            members.insert(name.to_owned(), new);
        }
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = new,
        other => panic!("{other} has no members"),
    }
}

/// Removes the member at a pointer.
fn take(value: &mut Value, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.unwrap().remove(name).unwrap();
}
