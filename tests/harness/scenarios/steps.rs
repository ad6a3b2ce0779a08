//! The client's calls of each scenario.

use super::{
    BYTES, CHUNKS, Client, ECHO, Known, OWN_CONTEXT, OWN_ID, Scenario, get, own_id, rests, say,
    says, state, text,
};
use crate::dialect::{Dialect, Op, Say, at};
use crate::frames::Frame;
use crate::world::Request;
use a2a_lambda::task::TaskState;
use serde_json::{Value, json};

/// Makes the calls of a scenario. Each of the functions below is `Some` if the client got all
/// its responses.
pub(super) async fn run(scenario: Scenario, client: &dyn Client) -> Known {
    let mut known = Known {
        messages: 1,
        ..Known::default()
    };
    // After a broken call the client keeps what it knew before.
    let finished = match scenario {
        Scenario::Deferred => deferred(client, &mut known).await,
        Scenario::ClientId => client_id(client, &mut known).await,
        Scenario::Queued => queued(client, &mut known).await,
        Scenario::Stream => stream(client, &mut known).await,
        Scenario::Continued => continued(client, &mut known).await,
        Scenario::Cancel => cancel(client, &mut known).await,
        Scenario::File => file(client, &mut known).await,
        Scenario::Keyed => keyed(client, &mut known).await,
        Scenario::KeyedAnswer => keyed_answer(client, &mut known).await,
        Scenario::Context => context(client, &mut known).await,
    };
    known.finished = finished.is_some();
    known
}

impl Known {
    /// Keeps a task as in its last response.
    fn report(&mut self, task: &Value) {
        self.reported.retain(|it| at(it, "/id") != at(task, "/id"));
        self.reported.push(task.clone());
    }

    /// Keeps what a stream has shown; returns the state that it showed last.
    fn watch(&mut self, frames: Vec<Frame>) -> Option<TaskState> {
        let shown = |frame: &Frame, pointer| at(&frame.data, pointer).clone();
        if let Some(first) = frames.first() {
            self.report(&shown(first, "/task"));
        }
        let last = frames.last().map(|last| shown(last, "/statusUpdate"));
        self.frames = frames;
        state(&last?)
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }
}

/// The task in the response to a send.
async fn sent(client: &dyn Client, known: &mut Known, request: &Request) -> Option<Value> {
    let sent = client.call(request).await?;
    let task = at(&sent, "/task").clone();
    known.report(&task);
    Some(task)
}

async fn deferred(client: &dyn Client, known: &mut Known) -> Option<()> {
    sent(client, known, &says(Op::Send, ECHO)).await.map(drop)
}

async fn context(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = Dialect::Rest10.send(&say(ECHO).in_context(OWN_CONTEXT));
    let first = sent(client, known, &request).await;
    let second = sent(client, known, &request).await;
    first.and(second).map(drop)
}

async fn client_id(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = own_id();
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.extend(client.call(&request).await);
    }
    let both = tasks.len() == 2;
    if client.mend() {
        match client.call(&request).await {
            Some(task) => tasks.push(task),
            None => known.wrong("refused without a fault"),
        }
    }
    for task in &tasks {
        let id = text(task, "/id");
        // Other members of 0.1 have other forms than those of 1.0.
        known.report(&json!({ "id": id }));
        if id != OWN_ID {
            known.wrong(format!("another task: {task}"));
        }
    }
    let rests = |task: &Value| {
        let state = Dialect::Path01.state(task);
        state == "completed" || state == "failed"
    };
    for pair in tasks.windows(2) {
        if let [first, second] = pair
            && rests(first)
            && first != second
        {
            known.wrong(format!("sent again {first}: {second}"));
        }
    }
    (both
        && tasks
            .first()
            .is_some_and(|task| Dialect::Path01.state(task) == "completed"))
    .then_some(())
}

async fn queued(client: &dyn Client, known: &mut Known) -> Option<()> {
    let mut params = Dialect::Rest10.say(&say("steps 2"));
    if let Some(params) = params.as_object_mut() {
        let at_once = json!({"returnImmediately": true});
        params.insert("configuration".to_owned(), at_once);
    }
    let request = Dialect::Rest10.request(Op::Send, "", &params);
    let id = sent(client, known, &request).await;
    let id = id.map(|task| text(&task, "/id"));
    client.background(id.as_deref()).await?;
    let task = client.call(&get(&id?)).await?;
    if !rests(&task) {
        known.wrong(format!("at rest in the store, but the client sees {task}"));
    }
    known.report(&task);
    Some(())
}

async fn stream(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = says(Op::Stream, &format!("chunks {CHUNKS} 200"));
    let frames = client.stream(&request).await;
    (known.watch(frames)? == TaskState::Completed).then_some(())
}

/// Sends a message that the agent answers with a question; returns the task.
async fn asked(client: &dyn Client, known: &mut Known, request: &Request) -> Option<String> {
    let task = sent(client, known, request).await?;
    known.asked = state(&task) == Some(TaskState::InputRequired);
    // An outage may have released the turn: a worker asks later.
    if !known.asked && state(&task) != Some(TaskState::Working) {
        known.wrong(format!("failed: does not ask: {task}"));
    }
    known.asked.then(|| text(&task, "/id"))
}

/// The answer to the question of a task.
fn answer(known: &mut Known, task: &str) -> Request {
    known.messages = 2;
    Dialect::Rest10.send(&Say::in_task(task, "steps 1"))
}

async fn continued(client: &dyn Client, known: &mut Known) -> Option<()> {
    let id = asked(client, known, &says(Op::Send, "anything")).await?;
    let request = answer(known, &id);
    sent(client, known, &request).await?;
    known.answered = true;
    Some(())
}

/// Starts work that delivers a file, and cancels it once the file is stored.
async fn cancel(client: &dyn Client, known: &mut Known) -> Option<()> {
    let op = client.canceled_call();
    let request = says(op, &format!("file {BYTES} 2000"));
    let mut work = Box::pin(async {
        match op {
            Op::Stream => (None, client.stream(&request).await),
            _ => (client.call(&request).await, Vec::new()),
        }
    });
    let shown = client.delivered();
    let mut delivered = client.delivered();
    let mut stop = Box::pin(async {
        let id = delivered.wait_for(Option::is_some).await.ok()?.clone()?;
        client.call(&Dialect::Rest10.of_task(Op::Cancel, &id)).await
    });
    let mut canceled = None;
    let (sent, frames) = tokio::select! {
        biased;
        done = &mut stop => {
            canceled = Some(done);
            work.await
        }
        ended = &mut work => ended,
    };
    // Waits for a cancel that has started.
    if canceled.is_none() && shown.borrow().is_some() {
        canceled = Some(stop.await);
    }
    let mut last = known.watch(frames);
    if let Some(sent) = sent {
        let task = at(&sent, "/task");
        known.report(task);
        last = state(task);
    }
    let task = canceled??;
    known.report(&task);
    known.canceled = state(&task) == Some(TaskState::Canceled);
    if !known.canceled {
        known.wrong(format!("a cancel was answered with {task}"));
    }
    (known.canceled && last == Some(TaskState::Canceled)).then_some(())
}

async fn file(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = says(Op::Send, &format!("file {BYTES}"));
    let sent = sent(client, known, &request).await?;
    let read = client.call(&get(&text(&sent, "/id"))).await?;
    if rests(&sent) && at(&read, "/artifacts") != at(&sent, "/artifacts") {
        known.wrong("the file of the response differs from the stored file");
    }
    Some(())
}

fn under(request: Request, key: &str) -> Request {
    request.header("idempotency-key", key)
}

/// Sends the same request three times, the last time after the attack. Every response must
/// name the same task. Returns the task of the last one.
async fn until_answered(
    client: &dyn Client,
    known: &mut Known,
    request: &Request,
) -> Option<String> {
    let mut first: Option<String> = None;
    for last in [false, false, true] {
        let mended = last && client.mend();
        let Some(task) = sent(client, known, request).await else {
            if mended {
                known.wrong("refused without a fault");
            }
            continue;
        };
        let id = text(&task, "/id");
        let one = first.get_or_insert_with(|| id.clone());
        if *one != id {
            known.wrong(format!("{one}, then {id}"));
        }
        if last {
            return Some(id);
        }
    }
    None
}

async fn keyed(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = under(says(Op::Send, ECHO), "k");
    until_answered(client, known, &request).await.map(drop)
}

async fn keyed_answer(client: &dyn Client, known: &mut Known) -> Option<()> {
    let request = under(says(Op::Send, "anything"), "question");
    let id = asked(client, known, &request).await?;
    let request = under(answer(known, &id), "answer");
    known.answered = until_answered(client, known, &request).await == Some(id);
    if !known.answered {
        known.wrong("the answer went to another task");
    }
    known.answered.then_some(())
}
