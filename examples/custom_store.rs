//! Uses a custom task store: it counts its writes and passes every call to the store in
//! memory.
//!
//! `store::wrap` forwards the calls that this store does not implement. A store that keeps
//! tasks itself implements `ReadTasks` and `WriteTasks` instead, encodes records with
//! `store::stored`, and passes the store contract (`store::contract`).

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::wrap::WrapTasks;
use a2a_lambda::store::{Committed, StoreError, TaskWrite, WriteTasks};
use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the writes to another store.
struct Counting {
    tasks: Arc<MemoryStore>,
    writes: AtomicUsize,
}

#[async_trait]
impl WrapTasks for Counting {
    fn tasks(&self) -> &dyn WriteTasks {
        &*self.tasks
    }

    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.tasks.records.commit(write).await
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
    let memory = Arc::new(MemoryStore::new());
    let tasks = Arc::new(Counting {
        tasks: Arc::clone(&memory),
        writes: AtomicUsize::new(0),
    });
    let agent = Agent::builder("copier").skill(copy).build()?;
    let runtime = Runtime::builder(agent, Settings::read(&Development)?)
        .tasks(tasks.clone())
        .threads(memory.clone())
        .blobs(memory)
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
    let writes = tasks.writes.load(Ordering::Relaxed);
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
