//! Runs the function `worker`, which runs the turns of the work queue.

use super::batch;
use super::error::ServeError;
use super::services::{over_stores, queue};
use super::start::Start;
use crate::store::queue::{Ack, Receipt, WorkItem};
use crate::store::sqs::{self, SqsQueue};
use crate::task::Timestamp;
use a2a_lambda_skill::BuildAgent;
use a2a_lambda_skill::check_turns;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use aws_lambda_events::event::streams::SqsEventResponse;
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
    let queues = (&queue, settings.dead_letters_url.as_deref());
    let agent = agent.build().map_err(ServeError::Agent)?;
    agent.make_states().await?;
    let (runtime, counters) = over_stores(agent, &settings).await;
    let engine = &runtime.build_engine()?;
    let function = start.ready(counters);
    let run = async |event, deadline| {
        let turn = async |item: &WorkItem, receipt: &dyn Receipt, deadline| {
            Box::pin(engine.turns.work(item, receipt, deadline)).await
        };
        Ok::<_, Infallible>(respond(queues, event, deadline, turn).await)
    };
    function.run(run).await
}

/// Runs the turns of a batch with `turn`, which has to end before the deadline.
async fn respond(
    queues: (&SqsQueue, Option<&str>),
    event: SqsEvent,
    deadline: Option<Timestamp>,
    turn: impl AsyncFn(&WorkItem, &dyn Receipt, Option<Timestamp>) -> Ack,
) -> SqsEventResponse {
    let handle = async |item: WorkItem, message: &SqsMessage| {
        let handle = message.receipt_handle.clone().unwrap_or_default();
        let receipt = queues.0.receipt(handle).with_receives(receives(message));
        turn(&item, &receipt, deadline).await
    };
    batch::respond(queues, event, sqs::decode, handle).await
}

/// How often SQS has delivered a message, this time included.
fn receives(message: &SqsMessage) -> u32 {
    let count = message.attributes.get("ApproximateReceiveCount");
    count.and_then(|digits| digits.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests;
