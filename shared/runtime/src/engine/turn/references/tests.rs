//! How much memory the referenced tasks of one message may use together.

use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::doubles::clock;
use crate::engine::{Engine, Policy, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::task::{
    Generation, Message, Metadata, Owner, Part, SendCommand, SendMode, SendResponse, Subject, Task,
    TenantId,
};
use std::sync::Arc;

/// The bytes of each file.
const FILE: usize = 40_000;

/// Makes a file; or counts the bytes of the files of the referenced tasks: those that
/// came with the tasks, and all.
#[skill(id = "files", tags = ["test"], input_modes = ["text/plain"])]
async fn files(cx: &mut TaskContext<'_>, input: String) -> AgentResult<OnRequestResult<String>> {
    if input == "make" {
        let bytes = vec![7; FILE];
        return Ok(OnRequestResult::Completed {
            message: None,
            output: "made".to_owned(),
            artifacts: vec![Artifact::from_file(
                "file",
                "application/octet-stream",
                bytes,
            )],
        });
    }
    let (mut given, mut read) = (0, 0);
    for task in cx.references().await? {
        let made = task.artifact("file").map(|it| it.parts.clone());
        let file = Content::from_parts(made.unwrap_or_default()).first_file();
        let file = file.ok_or_else(|| AgentError::missing_input("no file"))?;
        given += file.bytes().map_or(0, |bytes| bytes.len());
        read += cx.read_file(&file).await?.len();
    }
    OnRequestResult::done(format!("{given} {read}"))
}

async fn sent(engine: &Engine, text: &str, references: &[String]) -> Task {
    let owner = Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    let mut message = Message::from_user("m-1", vec![Part::text(text)]);
    message.reference_task_ids = references.to_vec();
    let command = SendCommand {
        message,
        client_task_id: None,
        mode: SendMode::Blocking,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
        idempotency_key: None,
    };
    let caller = Caller::behind(&owner, None);
    match engine
        .send(&caller, command, CallBudget::default())
        .await
        .unwrap()
    {
        SendResponse::Task(task) => *task,
        SendResponse::Message(message) => panic!("{message:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_files_of_all_references_share_one_memory_limit() {
    let store = Arc::new(MemoryStore::new());
    let services = Services {
        clock: Arc::new(clock()),
        ..Services::new(store.records.clone(), store.blobs.clone())
    };
    let policy = Policy {
        response_max: 2 * FILE + FILE / 2,
        ..Policy::default()
    };
    let agent = Agent::builder("test").skill(files).build().unwrap();
    let engine = Engine::new(Arc::new(agent), services, policy);
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(sent(&engine, "make", &[]).await.id.to_string());
    }
    let task = sent(&engine, "weigh", &made).await;
    let said = Artifact::from(task.artifacts.unwrap()[0].clone());
    // A file that was not loaded can still be read.
    assert_eq!(said.text().unwrap(), format!("{} {}", 2 * FILE, 4 * FILE));
}
