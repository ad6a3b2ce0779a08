//! Gives a skill the services of its running turn.
//!
//! What the skill emits goes through a channel of capacity one to the event loop, which
//! groups it into commits. The skill waits while the loop's buffer is full. A saved
//! value or a step's result is acknowledged when it is stored.

use super::command::SkillCommand;
use super::references::NamedTasks;
use super::spec::TurnSpec;
use super::state_size::{StateTooLargeError, check_state_size};
use super::thread::TurnThread;
use crate::auth::Caller;
use crate::engine::Engine;
use crate::engine::clock::lock;
use crate::engine::files::chained_reader::ChainedReader;
use crate::engine::files::object_key::Attempt;
use crate::skill::state::States;
use crate::skill::turn_host::{DocumentHost, Emission, References, Step, TurnHost};
use crate::skill::{AgentError, AgentResult, Artifact, Content, TurnFacts};
use crate::store::documents::Documents;
use crate::store::{BlobReader, StoreError, stored};
use crate::task::{
    Blob, Change, Message, PartContent, Saved, TaskKey, TaskRecord, Timestamp, WriteId,
};
use crate::thread::Thread;
use a2a_lambda_model::store::read_up_to;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The time left of a turn without a limit: 15 minutes, the longest timeout of a Lambda
/// function.
const UNBOUND: Duration = Duration::from_secs(15 * 60);

/// The services of a turn, lent to its skill.
pub(in crate::engine) struct TurnHandle<'e> {
    engine: &'e Engine,
    asks: mpsc::Sender<SkillCommand>,
    saved: Mutex<Saved>,
    steps: Mutex<BTreeMap<String, u32>>,
    turn_thread: TurnThread<'e>,
    references: NamedTasks<'e>,
    task: TaskKey,
    attempt: Attempt,
    stop_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    over: AtomicBool,
}

impl<'e> TurnHandle<'e> {
    /// Creates the turn of `work`, and the receiver from which the event loop reads.
    pub(in crate::engine) fn new(
        engine: &'e Engine,
        work: &TurnSpec,
    ) -> (Self, mpsc::Receiver<SkillCommand>) {
        let (asks, inbox) = mpsc::channel(1);
        let mut saved = work.record.saved().clone();
        if work
            .opening
            .iter()
            .any(|change| matches!(change, Change::Resume { .. }))
        {
            // Steps belong to one turn. The opening removes those of the last turn, but
            // it is not stored yet.
            saved.steps.clear();
        }
        let turn = Self {
            engine,
            asks,
            saved: Mutex::new(saved),
            steps: Mutex::default(),
            turn_thread: TurnThread::new(engine, work),
            references: NamedTasks::new(engine, work),
            task: work.record.key(),
            attempt: Attempt::of(&work.record, engine.reader.clock.now()),
            stop_at: work.budget.stop_at,
            ends_at: work.budget.ends_at(),
            over: AtomicBool::new(false),
        };
        (turn, inbox)
    }

    /// Marks the turn as cancelled: another writer has the task.
    pub(in crate::engine) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// The turn's view of its thread, with its own changes.
    pub(in crate::engine) const fn turn_thread(&self) -> &TurnThread<'e> {
        &self.turn_thread
    }

    /// Stores a file under a key of this attempt, before any commit names it. A file of
    /// at most `inline_max` bytes goes into the commit instead.
    async fn keep_file(&self, mut source: BlobReader) -> Result<PartContent, StoreError> {
        let inline_max = self.engine.reader.policy.inline_max;
        let head = read_up_to(&mut source, inline_max.saturating_add(1)).await?;
        if head.len() <= inline_max {
            return Ok(PartContent::Raw(head));
        }
        let mut source: BlobReader = Box::pin(ChainedReader { head, rest: source });
        let key = self.attempt.early_key(self.engine.ids.next());
        let blobs = &self.engine.blobs;
        let measured = blobs.put_from(&self.task, &key, &mut source).await?;
        Ok(PartContent::Stored(Blob {
            key,
            size: measured.size,
            sha256: measured.sha256,
            upload: None,
        }))
    }

    async fn ask(&self, ask: SkillCommand) -> AgentResult<()> {
        self.asks
            .send(ask)
            .await
            .map_err(|_| AgentError::canceled())
    }

    /// Adds a value to the map that `of` selects, unless the task would keep too much.
    fn keep(
        &self,
        of: fn(&mut Saved) -> &mut BTreeMap<String, Value>,
        key: &str,
        value: &Value,
    ) -> Result<(), StateTooLargeError> {
        let mut saved = lock(&self.saved);
        let before = of(&mut saved).insert(key.to_owned(), value.clone());
        let allowed = self.engine.reader.policy.state_max_bytes;
        let fits = check_state_size(stored::saved_size(&saved), allowed);
        // The skill may continue after the error, with the value from before.
        if fits.is_err() {
            match before {
                Some(before) => of(&mut saved).insert(key.to_owned(), before),
                None => of(&mut saved).remove(key),
            };
        }
        fits
    }

    async fn kept(&self, ask: SkillCommand, stored: oneshot::Receiver<()>) -> AgentResult<()> {
        self.ask(ask).await?;
        stored.await.map_err(|_| AgentError::canceled())
    }
}

impl DocumentHost for TurnHandle<'_> {
    fn documents(&self) -> AgentResult<Arc<dyn Documents>> {
        let documents = self.engine.documents.clone();
        documents.ok_or_else(|| AgentError::internal("the runtime has no store of documents"))
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        let id = WriteId::made_of(self.engine.ids.next());
        (self.engine.reader.clock.now(), id)
    }

    fn unread(&self, error: StoreError) -> AgentError {
        self.turn_thread.failed(error)
    }
}

impl TurnHost for TurnHandle<'_> {
    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>> {
        Box::pin(self.ask(SkillCommand::Emit(emission)))
    }

    fn store_file(&self, mut artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>> {
        Box::pin(async {
            if let Some(source) = artifact.source() {
                let content = self.keep_file(source.take()?).await;
                let content = content.map_err(|error| self.turn_thread.failed(error))?;
                artifact.fill(content);
            }
            Ok(artifact)
        })
    }

    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>> {
        Box::pin(async move {
            let bytes = self.engine.reader.bytes_of(&blob).await;
            bytes.map_err(|error| self.turn_thread.failed(error))
        })
    }

    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<BlobReader>> {
        Box::pin(async move {
            let (reader, unread) = (&self.engine.reader, self.turn_thread.unread_by());
            let opened = reader.open_blob(blob, unread).await;
            opened.map_err(|error| self.turn_thread.failed(error))
        })
    }

    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>> {
        if let Err(error) = self.keep(|saved| &mut saved.data, &key, &value) {
            return Box::pin(std::future::ready(Err(error.into())));
        }
        let (stored, done) = oneshot::channel();
        Box::pin(self.kept(SkillCommand::Save { key, value, stored }, done))
    }

    fn load(&self, key: &str) -> Option<Value> {
        lock(&self.saved).data.get(key).cloned()
    }

    fn begin_step(&self, name: &str) -> Step {
        let mut counts = lock(&self.steps);
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        let key = format!("{name}#{count}");
        let done = lock(&self.saved).steps.get(&key).cloned();
        Step { key, done }
    }

    fn may_start(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let now = self.engine.reader.clock.now();
            if self.stop_at.is_some_and(|at| at <= now) {
                // The event loop drops this future when it takes the request. If the
                // loop has ended already, nothing continues the turn.
                let _ended = self.asks.send(SkillCommand::Stop).await;
                std::future::pending::<()>().await;
            }
        })
    }

    fn end_step(&self, key: String, result: Value) -> BoxFuture<'_, AgentResult<()>> {
        if let Err(error) = self.keep(|saved| &mut saved.steps, &key, &result) {
            return Box::pin(std::future::ready(Err(error.into())));
        }
        let (stored, done) = oneshot::channel();
        Box::pin(self.kept(
            SkillCommand::Step {
                key,
                value: result,
                stored,
            },
            done,
        ))
    }

    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>> {
        Box::pin(self.turn_thread.thread())
    }

    fn references(&self) -> BoxFuture<'_, AgentResult<&References>> {
        Box::pin(async {
            let found = self.references.load().await;
            found.map_err(|error| self.turn_thread.failed(error))
        })
    }

    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>> {
        Box::pin(self.turn_thread.load(key))
    }

    fn save_session(&self, key: String, value: Value) -> AgentResult<()> {
        self.turn_thread.save(key, value);
        Ok(())
    }

    fn add_event(&self, content: Content) -> AgentResult<()> {
        self.turn_thread.add_event(content);
        Ok(())
    }

    fn time_left(&self) -> Duration {
        let now = self.engine.reader.clock.now();
        self.ends_at.map_or(UNBOUND, |end| end.since(now))
    }

    fn cancelled(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl TurnFacts {
    /// The facts of a task's current turn that are known before its message is read.
    pub(crate) fn of(record: &TaskRecord, caller: &Caller) -> Self {
        Self {
            task_id: record.id().clone(),
            context_id: record.context_id().clone(),
            caller: caller.clone(),
            message_id: String::new(),
            turn: record.turn(),
            accepted_output_modes: Vec::new(),
            references: Vec::new(),
            model: None,
            instructions: None,
            states: States::default(),
        }
    }

    /// Takes id and references of the message that opened the turn.
    pub(crate) fn set_message(&mut self, said: &Message) {
        self.message_id.clone_from(&said.id);
        self.references.clone_from(&said.reference_task_ids);
    }
}
