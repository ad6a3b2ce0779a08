//! What decoding, the engine and encoding cost alone: the steps of the HTTP edge, one after the
//! other in this process, over the store in memory.
//!
//! The steps are the functions that the edge calls. All run on one thread, whose CPU time is read
//! before and after a step: other programs on the machine do not count. The rest of a call is in no step: logs, the
//! SDK's call, the runtime of Lambda.

use crate::figures::Figures;
use crate::targets::CHUNKS;
use crate::{Failure, events};
use a2a_lambda::auth::{AuthMode, Authentication, Caller, Identity};
use a2a_lambda::engine::{CallBudget, Clock as _, SystemClock};
use a2a_lambda::http::{Function, HttpService};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::serve::GatewayEvent;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda_wire::{
    Call, MethodCall, MethodResult, OpenedRequest, RawRequest, StreamCall, StreamEncoder,
    UnaryCall, answer, open,
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// Calls before the measured ones.
const WARM: usize = 100;
const CALLS: usize = 1_000;
/// A stream is measured once for so many calls.
const PER_STREAM: usize = 10;

/// Microseconds of each step.
#[derive(Debug, Default)]
struct Parts {
    event: Figures,
    decode: Figures,
    engine: Figures,
    encode: Figures,
    whole: Figures,
}

/// An agent in this process.
struct Agent {
    runtime: Runtime,
    caller: Caller,
    identity: Identity,
}

struct Gateway;

impl Source for Gateway {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            "A2A_AUTH" => "gateway",
            "A2A_PUBLIC_URL" => events::URL,
            "A2A_SECRET_KEY" => "0123456789abcdef0123456789abcdef",
            _ => return None,
        };
        Some(value.to_owned())
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Program(format!("in this process: {error}"))
}

/// The CPU time of a step, in microseconds, and its result.
fn timed<T>(step: impl FnOnce() -> T) -> (f64, T) {
    let began = micros();
    let made = step();
    (micros() - began, made)
}

/// The CPU time of this thread, in microseconds.
fn micros() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Runs the steps on one thread, as a function does, and returns the table.
pub(crate) fn measure() -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    eprintln!("the steps of a call");
    runtime.block_on(async {
        let reference = Agent::new(reference_agent::agent().map_err(failed)?).await?;
        let send = reference.unary(Function::TasksSend, |n| events::send(n, events::TEXT));
        let send = send.await?;
        let task = reference.stored().await?;
        let get = reference.unary(Function::TasksGet, |_| events::get(&task));
        let get = get.await?;
        let conformance = conformance_agent::agent(Duration::from_secs(2)).map_err(failed)?;
        let chunk = Agent::new(conformance).await?.stream().await?;
        Ok(table(&[
            ("a send", 1.0, send),
            ("a get", 1.0, get),
            ("a chunk of a stream of 100", CHUNKS as f64, chunk),
        ]))
    })
}

fn table(rows: &[(&str, f64, Parts)]) -> String {
    let streams = CALLS / PER_STREAM;
    let mut text = format!(
        "The steps of a call alone, over the store in memory, without logs and the SDK's call: microseconds of CPU, \
         medians of {CALLS} calls or {streams} streams. \"All in the edge\" is a call from the decoded event to the \
         response, with the steps between and the checks around them.\n\n\
         | | decode the event | decode the request | engine | encode | all in the edge |\n|---|---|---|---|---|---|\n"
    );
    for (name, of, parts) in rows {
        let steps = [
            &parts.event,
            &parts.decode,
            &parts.engine,
            &parts.encode,
            &parts.whole,
        ];
        let steps = steps.map(|step| format!("{:.1}", step.median() / of));
        // Infallible: a `String` takes any text.
        let _ = writeln!(text, "| {name} | {} |", steps.join(" | "));
    }
    text.push('\n');
    text
}

impl Agent {
    async fn new(agent: AgentDefinition) -> Result<Self, Failure> {
        let settings = Settings::read(&Gateway).map_err(failed)?;
        let runtime = Runtime::builder(agent, settings).build().map_err(failed)?;
        let identity = Identity {
            authorizer: events::authorizer().as_object().cloned(),
            authorization: None,
        };
        let auth = Authentication::new(AuthMode::Gateway, None);
        let admitted = auth.caller(&identity, SystemClock.now()).await;
        Ok(Self {
            runtime,
            caller: admitted.map_err(failed)?.caller,
            identity,
        })
    }

    /// The id of a task that a send has stored.
    async fn stored(&self) -> Result<String, Failure> {
        let event = events::send("stored", events::TEXT);
        let edge = self.runtime.edge(Function::TasksSend);
        let body = self.whole(&edge, request_of(&event)?).await?;
        let sent: Value = serde_json::from_slice(&body)?;
        Ok(sent["task"]["id"].as_str().unwrap_or_default().to_owned())
    }

    /// The response of the edge.
    async fn whole(
        &self,
        edge: &HttpService,
        request: http::Request<Bytes>,
    ) -> Result<Bytes, Failure> {
        let response = edge.handle(request, self.identity.clone(), None).await;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(failed)?;
        let body = body.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(failed(String::from_utf8_lossy(&body)))
    }

    /// The time of the whole edge.
    async fn whole_time(&self, edge: &HttpService, event: &Bytes) -> Result<f64, Failure> {
        let request = request_of(event)?;
        let began = micros();
        self.whole(edge, request).await?;
        Ok(micros() - began)
    }

    async fn unary(
        &self,
        function: Function,
        event: impl Fn(&str) -> Bytes,
    ) -> Result<Parts, Failure> {
        let edge = self.runtime.edge(function);
        let mut parts = Parts::default();
        for n in 0..WARM + CALLS {
            if n == WARM {
                parts = Parts::default();
            }
            let given = event(&format!("steps-{n}"));
            let (call, command) = parts.decoded(&given)?;
            let began = micros();
            let result = self.reply(command).await?;
            parts.engine.add(micros() - began);
            let (took, _) = timed(|| answer(&call, &result));
            parts.encode.add(took);
            let given = event(&format!("whole-{n}"));
            parts.whole.add(self.whole_time(&edge, &given).await?);
        }
        Ok(parts)
    }

    async fn reply(&self, command: MethodCall) -> Result<MethodResult, Failure> {
        let engine = self.runtime.engine();
        match command {
            MethodCall::Unary(UnaryCall::Send(command)) => {
                let sent = engine.send(&self.caller, *command, CallBudget::default());
                Ok(MethodResult::Sent(sent.await.map_err(failed)?))
            }
            MethodCall::Unary(UnaryCall::Get(query)) => {
                let task = engine.reader().get(&self.caller, &query).await;
                Ok(MethodResult::Task(Box::new(task.map_err(failed)?)))
            }
            _ => Err(failed("expected a send or a get")),
        }
    }

    /// The steps of a whole stream.
    async fn stream(&self) -> Result<Parts, Failure> {
        let edge = self.runtime.edge(Function::TasksStream);
        let text = format!("chunks {CHUNKS}");
        let mut parts = Parts::default();
        for n in 0..(WARM + CALLS) / PER_STREAM {
            if n == WARM / PER_STREAM {
                parts = Parts::default();
            }
            let given = events::stream(&format!("steps-{n}"), &text);
            let (call, command) = parts.decoded(&given)?;
            let MethodCall::Stream(StreamCall::Send(command)) = command else {
                return Err(failed("expected a stream"));
            };
            let (sender, mut frames) = unbounded_channel();
            let budget = CallBudget::default();
            let began = micros();
            let streamed = self
                .runtime
                .engine()
                .stream(&self.caller, *command, budget, sender);
            streamed.await.map_err(failed)?;
            parts.engine.add(micros() - began);
            let mut shown = Vec::new();
            while let Ok(frame) = frames.try_recv() {
                shown.push(frame);
            }
            if shown.len() < CHUNKS {
                return Err(failed(format!("{} frames", shown.len())));
            }
            let mut encoder = StreamEncoder::new(&call);
            let (took, _) = timed(|| -> Vec<_> {
                let encoded = shown.iter().map(|frame| encoder.frame(frame));
                encoded.collect()
            });
            parts.encode.add(took);
            let given = events::stream(&format!("whole-{n}"), &text);
            parts.whole.add(self.whole_time(&edge, &given).await?);
        }
        Ok(parts)
    }
}

impl Parts {
    /// Decodes an event in two steps, and notes their times.
    fn decoded(&mut self, event: &Bytes) -> Result<(Call, MethodCall), Failure> {
        let (took, read) = timed(|| GatewayEvent::read(event));
        self.event.add(took);
        let request = read?.request;
        let (took, decoded) = timed(|| decode(&request));
        self.decode.add(took);
        decoded
    }
}

/// The request of an event, without its Lambda envelope.
fn request_of(event: &Bytes) -> Result<http::Request<Bytes>, Failure> {
    Ok(GatewayEvent::read(event)?.request)
}

/// The operation of a request, as the edge decodes it.
fn decode(request: &http::Request<Bytes>) -> Result<(Call, MethodCall), Failure> {
    let text = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
    let opened = open(&RawRequest {
        method: request.method().as_str(),
        path: request.uri().path(),
        content_type: text("content-type"),
        accept: text("accept"),
        version: text("a2a-version"),
        body: request.body(),
        ..RawRequest::default()
    });
    let Ok(OpenedRequest::One(call)) = opened else {
        return Err(failed("expected one call"));
    };
    call.check_version().map_err(failed)?;
    let command = call.decode().map_err(failed)?;
    Ok((*call, command))
}
