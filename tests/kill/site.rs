//! The program as the scenarios see it: over HTTP, and in its store.

use crate::case::{LOOK, LOOKS, Store};
use crate::client::{call, open};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::Frame;
use a2a_lambda_tests::scenarios::{Client, Known, get};
use a2a_lambda_tests::world::Request;
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

/// The program at a base URL.
pub(crate) struct Site<'a> {
    base: String,
    store: &'a Store,
    delivered: watch::Sender<Option<String>>,
}

impl<'a> Site<'a> {
    pub(crate) fn new(base: &str, store: &'a Store) -> Self {
        Self {
            base: base.to_owned(),
            store,
            delivered: watch::Sender::default(),
        }
    }
}

#[async_trait]
impl Client for Site<'_> {
    async fn call(&self, request: &Request) -> Option<Value> {
        call(&self.base, request).await
    }

    async fn stream(&self, request: &Request) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let Some(mut live) = open(&self.base, request).await else {
            return frames;
        };
        while let Some(frame) = live.next().await.unwrap() {
            let shows_file = frame.data.get("artifactUpdate").is_some();
            frames.push(frame);
            if shows_file {
                let id = frames[0].data["task"]["id"].as_str();
                self.delivered.send_replace(id.map(str::to_owned));
            }
        }
        frames
    }

    fn canceled_call(&self) -> Op {
        Op::Stream
    }

    fn delivered(&self) -> watch::Receiver<Option<String>> {
        self.delivered.subscribe()
    }

    async fn background(&self, task: Option<&str>) -> Option<()> {
        // Reads the store directly, so that polls are not counted as calls of the program.
        let mut looks = 0..LOOKS;
        while !self.store.task(task?).await?.state().is_at_rest() {
            looks.next()?;
            tokio::time::sleep(LOOK).await;
        }
        Some(())
    }

    fn reports_saved(&self) -> bool {
        true
    }

    async fn reads(&self, task: &str) -> bool {
        self.call(&get(task)).await.is_some()
    }

    fn mend(&self) -> bool {
        false
    }

    async fn counted(&self, context: &str, _: &Known) -> Option<u64> {
        let next = Say::to("conformance", "steps 1").in_context(context);
        let sent = self.call(&Dialect::Rest10.send(&next)).await?;
        let reported = &sent["task"]["artifacts"][0]["parts"][0]["data"];
        // The agent also counts this message.
        reported["inConversation"].as_u64()?.checked_sub(1)
    }

    fn chunk(&self, number: usize) -> String {
        format!("chunk-{number} ")
    }
}
