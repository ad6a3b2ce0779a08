//! What a stream of 1,000 tokens over 20 s costs, and how far it is behind.
//!
//! The stream runs on a virtual clock over the memory store, so its commits do not depend on
//! the machine. Then the same commits are written to DynamoDB, with a meter.

use crate::counter::{counted, indexes};
use crate::meter::Meter;
use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{CallBudget, Engine, Policy, Services};
use a2a_lambda::prelude::*;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::table::{Table, Write, WriteResult};
use a2a_lambda::task::{
    Event, Frame, Generation, Message, Metadata, Owner, Part, SendCommand, SendMode, Subject,
    TenantId,
};
use a2a_lambda::testing::{TableHooks, TableLayer, TestClock, committed_task};
use a2a_local::embedded::{Embedded, TABLE};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

const TOKENS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);
/// How long a write to the table takes.
const WRITE: Duration = Duration::from_millis(10);

/// When the skill made each token.
static MADE: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Writes as `chunks 1000 20` of the conformance agent does.
#[skill(id = "conformance", tags = ["test"])]
async fn tokens(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    let mut writer = cx.artifact_chunks("result");
    for number in 1..TOKENS {
        MADE.lock().unwrap().push(Instant::now());
        writer.push(format!("chunk-{number} ")).await?;
        tokio::time::sleep(PAUSE).await;
    }
    MADE.lock().unwrap().push(Instant::now());
    writer.finish_with(format!("chunk-{TOKENS} ")).await?;
    Ok(())
}

/// Takes its time, and keeps what was written.
#[derive(Debug, Default)]
struct Keeping(Mutex<Vec<Write>>);

#[async_trait]
impl TableHooks for Keeping {
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        self.0.lock().unwrap().push(write.clone());
        if committed_task(&write).is_some() {
            tokio::time::sleep(WRITE).await;
        }
        table.write(write).await
    }
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("local").unwrap(),
        subject: Subject::parse("local").unwrap(),
    }
}

fn go() -> SendCommand {
    let text = vec![Part::text("chunks 1000 20")];
    SendCommand {
        message: Message::from_user("0b0c8f5e-7d4e-4a41-9f0d-2f5f3b1c9a77", text),
        client_task_id: None,
        idempotency_key: None,
        mode: SendMode::Blocking,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
    }
}

/// The writes of the stream, and how long each token took to its client.
async fn streamed() -> (Vec<Write>, Vec<Duration>) {
    let memory = MemoryStore::new();
    let layer = TableLayer::new(memory.table, Keeping::default());
    let services = Services {
        clock: Arc::<TestClock>::default(),
        ..Services::new(
            Records::new(layer.clone()).with_blobs(memory.blobs.clone()),
            memory.blobs,
        )
    };
    let agent = Agent::builder("tokens").skill(tokens).build().unwrap();
    let engine = Engine::new(Arc::new(agent), services, Policy::default());
    let caller = Caller {
        owner: owner(),
        tier: "default".to_owned(),
        scopes: Default::default(),
    };
    let (frames, mut shown) = unbounded_channel();
    let stream = engine.stream(&caller, go(), CallBudget::default(), frames);
    let client = async {
        let mut arrived = Vec::new();
        while let Some(frame) = shown.recv().await {
            if let Frame::Event { event, .. } = frame
                && matches!(event.event, Event::Artifact(_))
            {
                arrived.push(Instant::now());
            }
        }
        arrived
    };
    let (ended, arrived) = tokio::join!(Box::pin(stream), client);
    ended.unwrap();
    let made = MADE.lock().unwrap();
    assert_eq!(arrived.len(), made.len());
    let behind = arrived
        .iter()
        .zip(made.iter())
        .map(|(at, made)| *at - *made);
    let behind = behind.collect();
    let written = std::mem::take(&mut *layer.hooks.0.lock().unwrap());
    (written, behind)
}

/// The write units of each write, and whether it was a transaction.
async fn costs(written: Vec<Write>) -> Vec<(usize, bool)> {
    let services = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(services.endpoints()).await;
    let meter = Meter::new(indexes(&clients).await, clients.dynamodb.clone());
    let table = DynamoTable::new(counted(&clients, &meter).dynamodb, TABLE);
    let mut costs = Vec::new();
    for write in written {
        assert!(table.write(write).await.unwrap().is_done().unwrap());
        let bill = meter.take();
        let transaction = bill.requests.contains_key("TransactWriteItems");
        costs.push((bill.writes + bill.index_writes, transaction));
    }
    costs
}

#[test]
fn a_thousand_tokens_in_20_s_cost_260_units_and_wait_300_ms_at_most() {
    let mut paused = Builder::new_current_thread();
    let paused = paused.enable_time().start_paused(true).build().unwrap();
    let (written, mut behind) = paused.block_on(streamed());
    behind.sort_unstable();
    let (median, last) = (behind[behind.len() / 2], behind[behind.len() - 1]);
    let mut real = Builder::new_multi_thread();
    let real = real.worker_threads(2).enable_all().build().unwrap();
    let costs = real.block_on(costs(written));
    let sum: usize = costs.iter().map(|(units, _)| units).sum();
    assert!(median <= Duration::from_millis(150), "{median:?}");
    assert!(last <= Duration::from_millis(300), "{last:?}");
    println!(
        "{sum} units, {} transactions",
        costs.iter().filter(|(_, it)| *it).count()
    );
    assert!(sum <= 260, "{sum} units: {costs:?}");
    // The first move waits for 1,800 compressed bytes, so that shorter tasks have none.
    let first = costs.iter().position(|(_, transaction)| *transaction);
    assert!(first >= Some(10) && costs.len() == 73, "{costs:?}");
}
