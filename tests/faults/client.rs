//! The client of a case. It reads requests and writes responses as the HTTP edge does, and
//! calls an engine in between. So it sees the engine's errors, and no time limit of the edge
//! ends a call.

use crate::case::Case;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{Engine, EngineError};
use a2a_lambda::task::{A2aError, ContextId, Event, SendCommand, SendResponse, Task, TaskId};
use a2a_lambda_tests::dialect::Op;
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::scenarios::{Client, Known, Scenario, agent};
use a2a_lambda_tests::world::{Reply, Request};
use a2a_lambda_wire::{
    Call, MethodCall, MethodResult, OpenedRequest, RawRequest, StreamCall, StreamEncoder,
    UnaryCall, answer, open,
};
use async_trait::async_trait;
use http::HeaderMap;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// The most runs of the two steps of [`Scenario::Queued`]: each may run at most twice, since
/// a stored step does not run again.
const MAX_RUNS: usize = 4;

/// A client of one engine of a case.
pub(crate) struct Site<'a> {
    case: &'a Case,
    engine: &'a Engine,
}

impl<'a> Site<'a> {
    /// A client without faults.
    pub(crate) const fn clean(case: &'a Case) -> Self {
        let engine = &case.clean;
        Self { case, engine }
    }
}

impl Case {
    /// Runs a scenario with faults, lets it recover, then checks it.
    pub(crate) async fn attack(&self, scenario: Scenario) {
        let engine = &self.engine;
        let known = scenario.run(&Site { case: self, engine }).await;
        let tasks = self.recovers().await;
        let after = Site::clean(self);
        for what in scenario.holds(&after, &known).await {
            self.wrong(what);
        }
        for task in &tasks {
            self.is_whole(&task.id).await;
        }
        for what in scenario.deletes(&after, &known).await {
            self.wrong(what);
        }
        let runs = self.signals.runs();
        self.check(scenario != Scenario::Queued || runs <= MAX_RUNS, || {
            format!("more than {MAX_RUNS} step runs: {runs}")
        });
    }

    /// An error must be true for the client: the result is unknown, or the server failed.
    fn blames_us(&self, error: &EngineError) {
        let ours = matches!(
            error.a2a_error,
            A2aError::Unavailable { .. } | A2aError::Internal
        );
        self.check(ours, || {
            format!("refused with an error of the client: {error:?}")
        });
    }

    /// Checks that what a response says is stored.
    async fn is_stored(&self, sent: &SendResponse) {
        let said = match sent {
            SendResponse::Task(said) => said,
            SendResponse::Message(message) => {
                return self.wrong(format!("a message instead of a task: {message:?}"));
            }
        };
        let Some(record) = self.load(&said.id).await else {
            return self.wrong(format!("acknowledged and not stored: {said:?}"));
        };
        if said.status.state.is_at_rest() {
            let shown = self.shown(&record.id).await.unwrap();
            self.check(shown == **said, || {
                format!("answered {said:?}, stored {shown:?}")
            });
        }
    }

    /// Keeps a canceled task as stored, and lets its skill continue.
    async fn keep_canceled(&self, is_canceled: bool, id: &TaskId) {
        let stored = self.load(id).await;
        if is_canceled {
            *self.canceled.lock().unwrap() = stored;
        }
        self.signals.free.send_replace(true);
    }

    /// Checks that the log of a task has no gap, and that a canceled task has not changed.
    async fn is_whole(&self, id: &TaskId) {
        let record = self.load(id).await;
        let mut seq = None;
        for event in record.iter().flat_map(|record| record.events_after(0)) {
            let expected = seq.map_or(event.seq, |last: u64| last + 1);
            self.check(event.seq == expected, || {
                format!("a gap in the log before {event:?}")
            });
            seq = Some(event.seq);
        }
        let before = self.canceled.lock().unwrap().take();
        self.check(before.is_none() || before == record, || {
            format!("changed after its cancel: {before:?} {record:?}")
        });
    }
}

/// Reads a request, as the edge does.
fn opened(request: &Request) -> (Call, MethodCall) {
    let header = |name: &str| {
        let mut headers = request.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let raw = RawRequest {
        method: request.method,
        path: request.path(),
        query: request.target.split_once('?').map(|(_, query)| query),
        content_type: header("content-type"),
        version: header("a2a-version"),
        last_event_id: header("last-event-id"),
        idempotency_key: header("idempotency-key").map(str::as_bytes),
        body: &request.body,
        ..RawRequest::default()
    };
    let Ok(OpenedRequest::One(call)) = open(&raw) else {
        panic!("not a call: {request:?}");
    };
    let method = call.decode().unwrap();
    (*call, method)
}

/// The command of a send.
pub(crate) fn command(request: &Request) -> SendCommand {
    match opened(request) {
        (_, MethodCall::Unary(UnaryCall::Send(command))) => *command,
        (_, other) => panic!("not a send: {other:?}"),
    }
}

fn of_task(task: Task) -> MethodResult {
    MethodResult::Task(Box::new(task))
}

#[async_trait]
impl Client for Site<'_> {
    async fn call(&self, request: &Request) -> Option<Value> {
        let (case, caller) = (self.case, &self.case.caller);
        let (engine, reader) = (self.engine, self.engine.reader());
        let (call, method) = opened(request);
        let result = match method {
            MethodCall::Unary(UnaryCall::Send(mut command)) => {
                command.history_length = Case::HISTORY;
                let sent = engine.send(caller, *command, CallBudget::default()).await;
                sent.map(MethodResult::Sent)
            }
            MethodCall::Unary(UnaryCall::Get(query)) => {
                reader.get(caller, &query).await.map(of_task)
            }
            MethodCall::Unary(UnaryCall::List(query)) => {
                reader.list(caller, &query).await.map(MethodResult::Page)
            }
            MethodCall::Unary(UnaryCall::Cancel(command)) => {
                let canceled = engine.tasks.cancel(caller, &command).await;
                case.keep_canceled(canceled.is_ok(), &command.id).await;
                canceled.map(of_task)
            }
            MethodCall::Unary(UnaryCall::ListContexts(query)) => reader
                .contexts(caller, &query)
                .await
                .map(MethodResult::Contexts),
            MethodCall::Unary(UnaryCall::DeleteContext(id)) => {
                // On a slow machine it would take longer than it may.
                case.clock.hold(true);
                let deleted = engine.tasks.delete_context(caller, &id).await;
                case.clock.hold(false);
                deleted.map(|()| MethodResult::Deleted)
            }
            other => panic!("not a call of a scenario: {other:?}"),
        };
        match result {
            Ok(result) => {
                if let MethodResult::Sent(sent) = &result {
                    case.is_stored(sent).await;
                }
                serde_json::from_slice(&answer(&call, &result).body).ok()
            }
            Err(error) => {
                case.blames_us(&error);
                None
            }
        }
    }

    async fn stream(&self, request: &Request) -> Vec<Frame> {
        let (case, caller) = (self.case, &self.case.caller);
        let (call, method) = opened(request);
        let starts_work = matches!(method, MethodCall::Stream(StreamCall::Send(_)));
        let (sender, mut shown) = mpsc::unbounded_channel();
        let done = match method {
            MethodCall::Stream(StreamCall::Send(command)) => {
                self.engine
                    .stream(caller, *command, CallBudget::default(), sender)
                    .await
            }
            MethodCall::Stream(StreamCall::Subscribe(command)) => {
                let reader = self.engine.reader();
                reader
                    .subscribe(caller, &command, CallBudget::default(), sender)
                    .await
            }
            other => panic!("not a stream: {other:?}"),
        };
        let mut encoder = StreamEncoder::new(&call);
        let (mut body, mut last) = (Vec::new(), None);
        while let Some(frame) = shown.recv().await {
            body.extend(encoder.frame(&frame).unwrap_or_default());
            last = Some(frame);
        }
        match &done {
            Ok(()) => case.check(!starts_work || ends(last.as_ref()), || {
                format!("the stream ends without an error after {last:?}")
            }),
            Err(error) => {
                case.blames_us(error);
                case.check(last.is_none(), || "frames and an error".to_owned());
            }
        }
        let reply = Reply {
            status: 200,
            headers: HeaderMap::new(),
            body,
        };
        let mut events = frames(&reply).unwrap();
        // An error is not an event of the log.
        events.retain(|event| event.name.is_none());
        events
    }

    fn canceled_call(&self) -> Op {
        Op::Send
    }

    fn delivered(&self) -> watch::Receiver<Option<String>> {
        self.case.signals.delivered.subscribe()
    }

    async fn background(&self, _: Option<&str>) -> Option<()> {
        for time in [Some(Duration::from_secs(5)), None] {
            self.case.relays().await;
            // The first worker must run out of time; the second may finish the skill.
            if time.is_none() {
                self.case.signals.free.send_replace(true);
            }
            self.case.works(self.engine, time).await;
        }
        None
    }

    fn reports_saved(&self) -> bool {
        false
    }

    async fn reads(&self, task: &str) -> bool {
        self.case
            .load(&TaskId::parse(task).unwrap())
            .await
            .is_some()
    }

    fn mend(&self) -> bool {
        self.case.line.mend();
        true
    }

    async fn counted(&self, context: &str, known: &Known) -> Option<u64> {
        let context = ContextId::parse(context).unwrap();
        let owner = &self.case.caller.owner;
        let thread = self.case.store.load_thread(owner, &context).await.unwrap();
        let session = thread.map(|thread| thread.state.session);
        let session = session.unwrap_or_default();
        let counted = |key: &str| session.get(key).map_or(Some(0), Value::as_u64);
        let asked = counted("asked");
        self.case.check(!known.asked || asked == Some(1), || {
            format!("the session counted {asked:?} questions")
        });
        counted("steps")
    }

    fn chunk(&self, number: usize) -> String {
        agent::chunk(number)
    }
}

/// Whether a stream may end with this frame: the task is at rest, or it is an error.
fn ends(frame: Option<&a2a_lambda::task::Frame>) -> bool {
    use a2a_lambda::task::Frame;
    match frame {
        Some(Frame::Refused(_)) => true,
        Some(Frame::Event { event, .. }) => match &event.event {
            Event::Status(update) => update.status.state.is_at_rest(),
            Event::Artifact(_) => false,
        },
        _ => false,
    }
}
