//! The part of the engine that a function has.

use super::ops::AnswerOperator;
use crate::auth::Caller;
use crate::engine::{CallBudget, Engine, EngineError, Reader, StopFrames};
use crate::task::{A2aError, Frame, SendResponse};
use a2a_lambda_skill::CallNames;
use a2a_lambda_wire::{MethodResult, StreamCall, UnaryCall};
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// The part of the engine that a function has.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    /// None of it: the function serves cards only.
    Cards,
    /// The part that reads, or all of it.
    Calls(Arc<dyn RunCalls>),
    /// None of it: the function serves health and metrics only.
    Ops(Arc<dyn AnswerOperator>),
}

impl Backend {
    pub(super) fn calls(&self) -> Result<&Arc<dyn RunCalls>, A2aError> {
        match self {
            Self::Calls(calls) => Ok(calls),
            Self::Cards | Self::Ops(_) => Err(A2aError::MethodNotFound),
        }
    }

    pub(super) fn reader(&self) -> Result<&Reader, A2aError> {
        self.calls().map(|calls| calls.reader())
    }
}

/// Runs the calls of clients. A function links what its own implementation calls, and not the
/// rest of the engine.
#[async_trait]
pub(crate) trait RunCalls: Debug + Send + Sync {
    /// The part of the engine that reads.
    fn reader(&self) -> &Reader;

    /// Runs a call with one response, of at most `share` bytes if given.
    async fn unary(
        &self,
        caller: &Caller,
        call: UnaryCall,
        budget: CallBudget,
        share: Option<usize>,
    ) -> Result<MethodResult, EngineError>;

    /// Runs a call whose response is a stream, and sends its frames. `stop` ends them with an
    /// error before the call ends.
    async fn stream(
        self: Arc<Self>,
        caller: Caller,
        call: StreamCall,
        budget: CallBudget,
        frames: UnboundedSender<Frame>,
        stop: StopFrames,
    ) -> Result<(), EngineError>;
}

#[async_trait]
impl RunCalls for Reader {
    fn reader(&self) -> &Reader {
        self
    }

    async fn unary(
        &self,
        caller: &Caller,
        call: UnaryCall,
        _: CallBudget,
        share: Option<usize>,
    ) -> Result<MethodResult, EngineError> {
        let small = share.map(|bytes| self.clone().with_budget(bytes));
        let reader = small.as_ref().unwrap_or(self);
        Ok(match call {
            UnaryCall::Get(query) => {
                MethodResult::Task(Box::new(reader.get(caller, &query).await?))
            }
            UnaryCall::List(query) => {
                MethodResult::Page(Box::pin(reader.list(caller, &query)).await?)
            }
            UnaryCall::GetPush(query) => MethodResult::Push(reader.get_push(caller, &query).await?),
            UnaryCall::ListPushes(query) => {
                MethodResult::Pushes(reader.list_pushes(caller, &query).await?)
            }
            UnaryCall::ListContexts(query) => {
                MethodResult::Contexts(reader.contexts(caller, &query).await?)
            }
            UnaryCall::Send(_)
            | UnaryCall::Cancel(_)
            | UnaryCall::CreateUpload(_)
            | UnaryCall::CreatePush(_)
            | UnaryCall::DeletePush(_)
            | UnaryCall::DeleteContext(_)
            | UnaryCall::DeleteTask(_)
            | UnaryCall::ExtendedCard
            | UnaryCall::Skills => return Err(A2aError::MethodNotFound.into()),
        })
    }

    async fn stream(
        self: Arc<Self>,
        caller: Caller,
        call: StreamCall,
        budget: CallBudget,
        frames: UnboundedSender<Frame>,
        stop: StopFrames,
    ) -> Result<(), EngineError> {
        let StreamCall::Subscribe(command) = call else {
            return Err(A2aError::MethodNotFound.into());
        };
        let stream = self.subscribe(&caller, &command, budget, frames);
        self.with_slots(&caller, stop, stream).await
    }
}

#[async_trait]
impl RunCalls for Engine {
    fn reader(&self) -> &Reader {
        Self::reader(self)
    }

    // The large futures are boxed, so that a read does not move room for a send.
    async fn unary(
        &self,
        caller: &Caller,
        call: UnaryCall,
        budget: CallBudget,
        share: Option<usize>,
    ) -> Result<MethodResult, EngineError> {
        let small = share.map(|bytes| self.clone().with_budget(bytes));
        let engine = small.as_ref().unwrap_or(self);
        Ok(match call {
            UnaryCall::Send(command) => {
                let response = Box::pin(engine.send(caller, *command, budget)).await?;
                if let SendResponse::Task(task) = &response {
                    CallNames::note(|names| &names.task, task.id.as_str());
                }
                MethodResult::Sent(response)
            }
            UnaryCall::Cancel(command) => {
                let task = Box::pin(engine.tasks.cancel(caller, &command)).await?;
                MethodResult::Task(Box::new(task))
            }
            UnaryCall::CreateUpload(order) => {
                MethodResult::Upload(Box::new(self.files.create_upload(caller, order).await?))
            }
            UnaryCall::CreatePush(command) => {
                MethodResult::Push(Box::pin(self.pushes.create_push(caller, &command)).await?)
            }
            UnaryCall::DeletePush(query) => {
                self.pushes.delete_push(caller, &query).await?;
                MethodResult::PushDeleted
            }
            UnaryCall::DeleteContext(id) => {
                self.tasks.delete_context(caller, &id).await?;
                MethodResult::Deleted
            }
            UnaryCall::DeleteTask(id) => {
                Box::pin(self.tasks.delete_task(caller, &id)).await?;
                MethodResult::Deleted
            }
            read @ (UnaryCall::Get(_)
            | UnaryCall::List(_)
            | UnaryCall::GetPush(_)
            | UnaryCall::ListPushes(_)
            | UnaryCall::ListContexts(_)
            | UnaryCall::ExtendedCard
            | UnaryCall::Skills) => {
                return self.reader().unary(caller, read, budget, share).await;
            }
        })
    }

    async fn stream(
        self: Arc<Self>,
        caller: Caller,
        call: StreamCall,
        budget: CallBudget,
        frames: UnboundedSender<Frame>,
        stop: StopFrames,
    ) -> Result<(), EngineError> {
        let command = match call {
            StreamCall::Send(command) => command,
            subscribe @ StreamCall::Subscribe(_) => {
                let reader = Arc::new(self.reader().clone());
                return reader.stream(caller, subscribe, budget, frames, stop).await;
            }
        };
        let stream = Self::stream(&self, &caller, *command, budget, frames);
        let stream = self.reader().with_slots(&caller, stop, stream);
        Box::pin(stream).await
    }
}
