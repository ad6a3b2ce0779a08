//! Uses a custom table: it counts its writes and passes every call to the table in memory.
//!
//! All that is stored is written over a table and bytes, so a table of one's own keeps tasks,
//! threads, push configs, documents and counters. It has to pass the contract
//! (`store::contract`).

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::keys::Key;
use a2a_lambda::store::memory::MemoryTable;
use a2a_lambda::store::table::{Item, Query, QueryPage, ReadTable, Table, Write, WriteResult};
use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the writes to another table.
#[derive(Debug, Default)]
struct Counting {
    table: MemoryTable,
    writes: AtomicUsize,
}

#[async_trait]
impl ReadTable for Counting {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.table.get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.table.query(query).await
    }
}

#[async_trait]
impl Table for Counting {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.table.write(write).await
    }
}

/// Settings for a local machine; all others have their defaults.
struct Development;

impl Source for Development {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// Sends what it was given back as an artifact.
#[skill(id = "copy", tags = ["text"])]
async fn copy(text: String) -> AgentResult<String> {
    Ok(text)
}

/// Sends one message; returns the state of the task and the number of writes.
async fn run() -> Result<String, Box<dyn Error>> {
    let table = Arc::new(Counting::default());
    let agent = Agent::builder("copier").skill(copy).build()?;
    let runtime = Runtime::builder(agent, Settings::read(&Development)?)
        .table(table.clone())
        .build()?;

    let message = json!({
        "messageId": "m-1",
        "role": "ROLE_USER",
        "parts": [{ "text": "hello" }],
    });
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": { "message": message },
    });
    let request = Request::post("/")
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .body(Bytes::from(call.to_string()))?;
    let edge = runtime.edge(Function::Rpc);
    let response = edge.handle(request, Identity::default(), None).await;
    let body = response.into_body().collect().await?.to_bytes();
    let answer: Value = serde_json::from_slice(&body)?;
    let state = answer
        .pointer("/result/task/status/state")
        .and_then(Value::as_str);
    let writes = table.writes.load(Ordering::Relaxed);
    Ok(format!("{}, writes: {writes}", state.unwrap_or("no task")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}", run().await?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_program_runs() {
        let shown = super::run().await.unwrap();
        assert_eq!(shown, "TASK_STATE_COMPLETED, writes: 1");
    }
}
