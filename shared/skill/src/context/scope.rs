//! Steps and scopes. A turn that runs again finds the result of a step by its path: the
//! steps and scopes around it, its name, and its number there.

use super::{TaskContext, from_value, to_value};
use crate::field_hash::step_hash;
use crate::turn_host::{ScopeEnd, ScopeId, StepInput, TryPolicy, TurnHost};
use crate::{AgentError, AgentResult, CallNames};
use futures::future::{Either, select};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

impl TaskContext<'_> {
    /// Runs `future` once and stores its result, a value or an error. When the turn runs again,
    /// `step` returns the stored result and does not run `future`. The private cause of an error
    /// is not stored. A step that the skill drops before it has a result (`timeout`, `select!`)
    /// does not run again either: it never returns, so that the skill drops it again.
    ///
    /// The key of a result is the path of the step: the steps and scopes around it, `name`, and
    /// its number there (`pay#2>charge#1`). So a turn starts the steps of a scope in the same
    /// order each time, one after the other. Branches of a `join!` that have steps each need a
    /// [`TaskContext::scope`]. The results of all branches are given in the order in which they
    /// came to be, one at a time, in each run.
    ///
    /// A turn that runs again and asks for other steps, or ends without asking for a stored one,
    /// waits for the build that stored them, or fails with `STEP_CHANGED`. No skill can catch that.
    /// [`TaskContext::step_of`] also compares what the step was asked.
    ///
    /// # Errors
    /// The error of `future`. `SERIALIZATION` or `STATE_TOO_LARGE`: then this error is the
    /// result. `STATE_INCOMPATIBLE` when the stored value does not decode as `T`.
    /// `INTERNAL_ERROR` when another step of the scope is open. Also when the result cannot be
    /// stored.
    pub async fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        self.run_once(name, StepInput::default(), future).await
    }

    /// As [`TaskContext::step`], for a step that is asked `input`. A turn that runs again and
    /// asks something else fails with `STEP_CHANGED`. A short hash of the input is stored with the
    /// result.
    ///
    /// # Errors
    /// As [`TaskContext::step`].
    pub async fn step_of<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        input: &impl Serialize,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        self.run_once(name, step_input(name, input)?, future).await
    }

    /// A step that may be tried several times: see [`Retry`].
    #[must_use]
    pub fn retry<'s>(&'s self, name: &'s str) -> Retry<'s> {
        Retry {
            cx: self.reborrow(),
            name,
            input: StepInput::default(),
            policy: TryPolicy::ONCE,
        }
    }

    async fn run_once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        input: StepInput,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        let mut future = Some(future);
        let work = move || future.take();
        self.run_step(name, input, TryPolicy::ONCE, work).await
    }

    /// As [`TaskContext::step`], for a step that is asked `input` and tried by `policy`. `work`
    /// makes the future of a try; `None` ends the tries.
    ///
    /// # Errors
    /// As [`TaskContext::step`].
    pub async fn run_step<T: Serialize + DeserializeOwned, W: Future<Output: StepOutput<T>>>(
        &self,
        name: &str,
        input: StepInput,
        policy: TryPolicy,
        mut work: impl FnMut() -> Option<W>,
    ) -> AgentResult<T> {
        let step = self.host.begin_step(name, input)?;
        let mut open = Open::new(self.host, step.scope);
        if let Some(result) = self.host.stored_result(&step).await {
            open.end = ScopeEnd::Finished;
            return result.and_then(from_value);
        }
        let mut result = Err(AgentError::internal("a step without work"));
        while let Some(future) = work() {
            self.host.begin_try(&step).await;
            let key = open.run(async { self.host.step_key() }).await;
            let requests = StepRequests::new(key);
            result = open.run(requests.clone().run(future)).await.into();
            if requests.has_post() {
                result = result.map_err(AgentError::settle);
            }
            match &result {
                Err(error) if self.host.try_again(&step, policy, error).await => {}
                _ => break,
            }
        }
        let step_result = match &result {
            Ok(value) => to_value(value),
            Err(error) => Err(error.clone()),
        };
        let end = self.host.end_step(&step, step_result).await;
        open.end = ScopeEnd::Finished;
        end?;
        result
    }

    /// Waits for `duration`. The end of the wait is a result as that of a step, so a turn that
    /// runs again does not wait a second time, and the branches beside it continue in the same order. A
    /// wait that a hand-over interrupts begins again: it has to fit into one invocation.
    ///
    /// # Errors
    /// When the turn ends meanwhile.
    pub async fn sleep(&self, name: &str, duration: Duration) -> AgentResult<()> {
        self.host.sleep(name, duration).await
    }

    /// Runs `future` in the scope `name` for at most `limit`; `None` when the time is over. A turn
    /// that runs again has the same end. `tokio::time::timeout` has not: its time runs again.
    ///
    /// # Errors
    /// The error of `future`. As [`TaskContext::scope`] and [`TaskContext::sleep`].
    pub async fn timeout<T>(
        &self,
        name: &str,
        limit: Duration,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<Option<T>> {
        let work = pin!(self.scope(name, future));
        match select(work, self.host.sleep(name, limit)).await {
            Either::Left((result, _)) => result.map(Some),
            Either::Right((over, _)) => over.map(|()| None),
        }
    }

    /// A key for another service that recognises a repeated request: it is the same in each try
    /// and each run of the step around it, and differs from that of every other step.
    #[must_use]
    pub fn step_key(&self) -> String {
        self.host.step_key()
    }

    /// Runs `future` in a scope of its own: its steps have the scope in their paths and an order
    /// of their own. Branches that run at the same time each need one.
    ///
    /// # Errors
    /// The error of `future`. `INTERNAL_ERROR` when a scope of this name is open.
    pub async fn scope<T>(
        &self,
        name: &str,
        future: impl Future<Output: StepOutput<T>>,
    ) -> AgentResult<T> {
        let mut open = Open::new(self.host, self.host.begin_scope(name)?);
        let output = open.run(future).await;
        self.host.end_scope(open.scope).await;
        open.end = ScopeEnd::Finished;
        output.into()
    }
}

/// A step with a policy of tries. A try that fails with an error that is
/// [transient](AgentError::transient) is followed by another one, after a growing wait: up to
/// two seconds in place, longer in another run of the turn unless other steps run beside it or
/// around it. A try begins as a run does: what the last one sent is not sent again, and its session
/// values and events are dropped. The [`step_key`](TaskContext::step_key) stays the same.
///
/// ```
/// use a2a_lambda::prelude::*;
///
/// /// Orders an article.
/// #[skill(id = "order", tags = ["shop"])]
/// async fn order(cx: &mut TaskContext<'_>, article: String) -> AgentResult<String> {
///     let order = async || Ok::<_, AgentError>(format!("ordered {article}"));
///     cx.retry("order").tries(3).run(order).await
/// }
/// ```
#[derive(Debug)]
pub struct Retry<'a> {
    cx: TaskContext<'a>,
    name: &'a str,
    input: StepInput,
    policy: TryPolicy,
}

impl Retry<'_> {
    /// The most tries, from 1. They count in all runs of the turn.
    #[must_use]
    pub const fn tries(mut self, tries: u32) -> Self {
        self.policy.tries = tries;
        self
    }

    /// The longest wait between two tries; one minute if it is not set.
    #[must_use]
    pub const fn longest_wait(mut self, wait: Duration) -> Self {
        self.policy.longest_wait = wait;
        self
    }

    /// What the step is asked, as in [`TaskContext::step_of`].
    ///
    /// # Errors
    /// `SERIALIZATION`.
    pub fn of(mut self, input: &impl Serialize) -> AgentResult<Self> {
        self.input = step_input(self.name, input)?;
        Ok(self)
    }

    /// Runs the step. `work` makes the future of a try.
    ///
    /// # Errors
    /// As [`TaskContext::step`]: the error of the last try.
    pub async fn run<T: Serialize + DeserializeOwned, W: Future<Output: StepOutput<T>>>(
        self,
        mut work: impl FnMut() -> W,
    ) -> AgentResult<T> {
        let work = || Some(work());
        self.cx
            .run_step(self.name, self.input, self.policy, work)
            .await
    }
}

fn step_input(name: &str, input: &impl Serialize) -> AgentResult<StepInput> {
    let hash = step_hash(name, input).map_err(AgentError::serialization)?;
    Ok(StepInput {
        hash: Some(hash),
        circumstances: None,
        row: CallNames::row_of("step", Some(input)),
    })
}

/// What a step or a scope gives: an [`AgentResult`].
#[diagnostic::on_unimplemented(
    message = "a step gives an `AgentResult`, and this one gives a `{Self}`",
    note = "`?` makes an `AgentError` of the error of a file or a call: `async {{ Ok(read()?) }}`"
)]
pub trait StepOutput<T>: Into<AgentResult<T>> {}

impl<T> StepOutput<T> for AgentResult<T> {}

/// A step or scope that has begun. It ends when this value is dropped.
struct Open<'a> {
    host: &'a dyn TurnHost,
    scope: ScopeId,
    end: ScopeEnd,
}

impl<'a> Open<'a> {
    const fn new(host: &'a dyn TurnHost, scope: ScopeId) -> Self {
        let end = ScopeEnd::Dropped;
        Self { host, scope, end }
    }

    /// Runs `future` in the scope. Other futures of the turn run between two polls, so each poll
    /// enters the scope and leaves it.
    async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|task| {
            let outer = self.host.enter(self.scope);
            let poll = future.as_mut().poll(task);
            self.host.enter(outer);
            poll
        })
        .await
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.host.leave(self.scope, self.end);
    }
}

tokio::task_local! {
    static CURRENT: Arc<StepRequests>;
}

/// The requests of one try of a step, for the client that sends them.
#[derive(Debug)]
pub struct StepRequests {
    key: String,
    writes: AtomicU32,
    has_post: AtomicBool,
}

impl StepRequests {
    fn new(key: String) -> Arc<Self> {
        Arc::new(Self {
            key,
            writes: AtomicU32::new(0),
            has_post: AtomicBool::new(false),
        })
    }

    /// Those of the innermost step that runs; `None` outside of steps.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Clone::clone).ok()
    }

    fn run<F: Future>(self: Arc<Self>, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// The idempotency key of the next write: that of the step, from the second write on with
    /// its number.
    #[must_use]
    pub fn next_key(&self) -> String {
        match self.writes.fetch_add(1, Ordering::Relaxed) {
            0 => self.key.clone(),
            before => format!("{}-{}", self.key, before.saturating_add(1)),
        }
    }

    /// Notes a `POST` that the other service may have done. The step is not tried again, since it
    /// would be done twice.
    pub fn note_post(&self) {
        self.has_post.store(true, Ordering::Relaxed);
    }

    fn has_post(&self) -> bool {
        self.has_post.load(Ordering::Relaxed)
    }
}
