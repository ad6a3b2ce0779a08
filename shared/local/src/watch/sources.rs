//! Starts the functions without a route: `relay` by the stream, `worker` and `push` by
//! their queues, `sweep` by the schedule.

use super::event::{has_failures, queue_event, stream_record, tick};
use super::invoke::{InvokeError, Invoker};
use crate::embedded::{Expiry, TABLE};
use crate::queue::{Delivery, LocalQueue, TextMessage};
use crate::stream::{Batch, Stream, TakeRecords};
use a2a_lambda::store::aws::{Endpoints, sdk_config};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How often the schedule starts the sweep: `SweepInterval` in `template.yaml`.
const EVERY: Duration = Duration::from_secs(300);

/// What starts the functions without a route.
pub(super) struct Sources {
    invoker: Invoker,
    endpoints: Endpoints,
    expiry: Expiry,
    work: LocalQueue<TextMessage>,
    push: LocalQueue<TextMessage>,
}

/// Hands the records of the stream to `relay`.
#[async_trait]
impl TakeRecords for Sources {
    async fn take(&self, batch: &Batch) -> bool {
        let records: Vec<Value> = batch.records.iter().filter_map(stream_record).collect();
        if records.is_empty() {
            return true;
        }
        let event = json!({"Records": records});
        match self.invoker.invoke("relay", &event).await {
            Ok(result) => !has_failures(&result),
            Err(error) => {
                failed("relay", &error);
                false
            }
        }
    }
}

impl Sources {
    pub(super) fn new(
        base: &str,
        endpoints: &Endpoints,
        expiry: Expiry,
        work: LocalQueue<TextMessage>,
        push: LocalQueue<TextMessage>,
    ) -> Self {
        Self {
            invoker: Invoker::new(base),
            endpoints: endpoints.clone(),
            expiry,
            work,
            push,
        }
    }

    /// Starts functions for ever, each with at most `at_once` calls at the same time.
    pub(super) async fn run(&self, at_once: usize) {
        tokio::join!(
            self.stream(),
            self.queue(&self.work, "worker", at_once),
            self.queue(&self.push, "push", at_once),
            self.schedule(),
        );
    }

    async fn stream(&self) {
        let endpoints = &self.endpoints;
        let config = sdk_config(endpoints.dynamodb.as_deref(), endpoints.keys.as_ref()).await;
        let client = aws_sdk_dynamodbstreams::Client::new(&config);
        Stream::new(client, TABLE).follow(self).await;
    }

    async fn queue(&self, queue: &LocalQueue<TextMessage>, function: &'static str, at_once: usize) {
        let mut calls = JoinSet::new();
        loop {
            tokio::select! {
                delivery = queue.receive(), if calls.len() < at_once => {
                    calls.spawn(delivered(self.invoker.clone(), function, delivery));
                }
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
            }
        }
    }

    async fn schedule(&self) {
        loop {
            if let Err(error) = self.invoker.invoke("sweep", &tick()).await {
                failed("sweep", &error);
            }
            // DynamoDB removes expired items itself; the embedded one does not.
            if let Err(error) = self.expiry.clean().await {
                tracing::warn!("{error}");
            }
            sleep(EVERY).await;
        }
    }
}

/// Hands a message to a function, and deletes it if the function succeeds.
async fn delivered(invoker: Invoker, function: &'static str, delivery: Delivery<TextMessage>) {
    let event = queue_event(&delivery, function);
    match invoker.invoke(function, &event).await {
        Ok(result) if has_failures(&result) => {}
        Ok(_) => {
            if !delivery.receipt.delete() {
                tracing::debug!("failed to delete a message: it was received again");
            }
        }
        Err(error) => failed(function, &error),
    }
}

fn failed(function: &str, error: &InvokeError) {
    tracing::warn!("failed to run `{function}`: {error}");
}
