//! Runs the function `worker`, which runs the turns of the work queue.

use super::batch::BatchResponse;
use super::error::ServeError;
use super::services::{clients, counters, queue};
use super::start::Start;
use crate::engine::Engine;
use crate::runtime::Runtime;
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::store::sqs::{self, SqsQueue};
use crate::task::Timestamp;
use a2a_lambda_model::redact::without_values;
use a2a_lambda_skill::BuildAgent;
use a2a_lambda_skill::check_turns;
use async_trait::async_trait;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_lambda_events::event::streams::SqsEventResponse;
use lambda_runtime::{LambdaEvent, service_fn};
use std::convert::Infallible;

/// Runs the worker: one turn of the work queue in each invocation.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn worker(agent: impl BuildAgent) -> Result<(), ServeError> {
    const { check_turns() };
    let start = Start::begin("worker")?;
    let settings = start.settings()?;
    let queue = queue(&settings).await?;
    let clients = clients().await;
    let counters = counters(&clients, &settings);
    let agent = agent.build().map_err(ServeError::Agent)?;
    agent.make_states().await?;
    let runtime = Runtime::builder(agent, settings.clone())
        .aws(&clients)
        .build()?;
    let worker = &Worker {
        turns: runtime.engine().clone(),
        queue,
    };
    let started = start.ready(counters);
    let (process, reporter) = (started.process, &started.reporter);
    let handler = service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        let deadline = process.deadline(event.context.deadline);
        let answer = worker.run(event.payload, deadline).await;
        reporter.end_of_invocation().await;
        Ok::<_, Infallible>(answer)
    });
    Ok(lambda_runtime::run(handler).await?)
}

/// Runs a turn. The engine does; tests replace it.
#[async_trait]
trait RunTurn: Send + Sync {
    async fn run(&self, item: &WorkItem, receipt: &dyn Receipt, deadline: Option<Timestamp>)
    -> Ack;
}

#[async_trait]
impl RunTurn for Engine {
    async fn run(
        &self,
        item: &WorkItem,
        receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Ack {
        self.work(item, receipt, deadline).await
    }
}

struct Worker<T> {
    turns: T,
    queue: SqsQueue,
}

impl<T: RunTurn> Worker<T> {
    /// Runs the turns of a batch; the response names the messages to deliver again.
    async fn run(&self, event: SqsEvent, deadline: Option<Timestamp>) -> SqsEventResponse {
        let mut answer = BatchResponse::default();
        for message in event.records {
            let ack = self.message(&message, deadline).await;
            answer.note(message.message_id, ack);
        }
        answer.build()
    }

    async fn message(&self, message: &SqsMessage, deadline: Option<Timestamp>) -> Ack {
        let item = match sqs::decode(message.body.as_deref().unwrap_or_default()) {
            Ok(item) => item,
            // Not deleted: a newer version of the function may be able to read it. If
            // not, SQS moves it to the dead-letter queue.
            Err(error) => {
                let error = without_values(&error.to_string());
                tracing::error!("failed to read a message of the work queue: {error}");
                return Ack::Keep;
            }
        };
        let receipt = self
            .queue
            .receipt(message.receipt_handle.clone().unwrap_or_default())
            .received(receives(message));
        self.turns.run(&item, &receipt, deadline).await
    }
}

/// How often SQS has delivered a message, this time included.
fn receives(message: &SqsMessage) -> u32 {
    let count = message.attributes.get("ApproximateReceiveCount");
    count.and_then(|digits| digits.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests;
