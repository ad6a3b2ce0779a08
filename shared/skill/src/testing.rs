//! A turn without an engine, for the tests of `skill`.

use super::metered_model::MeterCalls;
use super::model::Model;
use super::turn_host::{
    DocumentHost, Emission, References, ScopeEnd, ScopeId, SessionUpdate, Step, StepInput,
    TryPolicy, TurnHost,
};
use super::{
    AgentError, AgentResult, AnySkill, Artifact, Content, OpenFile, SkillOutcome, StartInput,
    TaskContext, Thread, TurnFacts, TurnStart,
};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Caller;
use a2a_lambda_model::task::{
    Blob, ContextId, Message, Owner, Part, PartContent, Subject, TaskId, TenantId, Timestamp,
    WriteId,
};
use a2a_lambda_store::documents::Documents;
use a2a_lambda_store::memory::MemoryTable;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A [`TurnHost`] that records what a turn does.
#[derive(Default)]
pub(super) struct RecordingHost {
    pub(super) emitted: Mutex<Vec<Emission>>,
    pub(super) data: Mutex<BTreeMap<String, Value>>,
    pub(super) session: Mutex<BTreeMap<String, Value>>,
    pub(super) steps: Mutex<BTreeMap<String, Value>>,
    pub(super) events: Mutex<Vec<Content>>,
    pub(super) begun: Mutex<BTreeMap<String, usize>>,
    pub(super) thread: Thread,
    pub(super) references: References,
}

impl RecordingHost {
    /// Starts another attempt of the same turn: stored values stay.
    pub(super) fn again(&self) {
        self.begun.lock().unwrap().clear();
    }

    /// The emissions as texts: `name=text`, with `+` in front for an appended chunk and `.`
    /// at the end for the last one. An update is its text only.
    pub(super) fn shown(&self) -> Vec<String> {
        let emitted = self.emitted.lock().unwrap();
        emitted
            .iter()
            .map(|emission| match emission {
                Emission::Update(content, _) => content.text().unwrap().to_owned(),
                Emission::Artifact {
                    artifact,
                    append,
                    last_chunk,
                    ..
                } => format!(
                    "{}{}={}{}",
                    if *append { "+" } else { "" },
                    artifact.name,
                    artifact.text().unwrap_or_default(),
                    if *last_chunk { "." } else { "" },
                ),
            })
            .collect()
    }
}

impl DocumentHost for RecordingHost {
    fn documents(&self) -> AgentResult<Documents> {
        Ok(Documents::new(Arc::new(MemoryTable::default())))
    }

    fn write_stamp(&self) -> (Timestamp, WriteId) {
        (Timestamp::from_millis(0), WriteId::made_of(1))
    }

    fn store_failed(&self, error: StoreError) -> BoxFuture<'_, AgentError> {
        Box::pin(std::future::ready(error.into()))
    }
}

impl MeterCalls for RecordingHost {}

impl TurnHost for RecordingHost {
    fn store_file(&self, mut artifact: Artifact) -> BoxFuture<'_, AgentResult<Artifact>> {
        Box::pin(async {
            if let Some(source) = artifact.source() {
                let mut source = source.take()?;
                let bytes = a2a_lambda_model::store::read_up_to(&mut source, usize::MAX).await?;
                artifact.fill(PartContent::Raw(bytes));
            }
            Ok(artifact)
        })
    }

    fn read_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<Bytes>> {
        Box::pin(async move { Ok(Bytes::from(format!("the bytes of {}", blob.key))) })
    }

    fn open_file(&self, blob: Blob) -> BoxFuture<'_, AgentResult<OpenFile>> {
        let bytes = std::io::Cursor::new(format!("the bytes of {}", blob.key));
        Box::pin(async move { Ok(Box::pin(bytes) as OpenFile) })
    }

    fn result_name(&self) -> &str {
        "result"
    }

    fn emit(&self, emission: Emission) -> BoxFuture<'_, AgentResult<()>> {
        self.emitted.lock().unwrap().push(emission);
        std::future::ready(Ok(())).boxed()
    }

    fn save(&self, key: String, value: Value) -> BoxFuture<'_, AgentResult<()>> {
        self.data.lock().unwrap().insert(key, value);
        std::future::ready(Ok(())).boxed()
    }

    fn load(&self, key: &str) -> AgentResult<Option<Value>> {
        Ok(self.data.lock().unwrap().get(key).cloned())
    }

    fn begin_step(&self, name: &str, input: StepInput) -> AgentResult<Step> {
        let mut begun = self.begun.lock().unwrap();
        let n = begun.entry(name.to_owned()).or_default();
        *n += 1;
        let key = format!("{name}#{n}");
        Ok(Step {
            scope: ScopeId(0),
            key,
            ordinal: 1,
            input,
        })
    }

    fn stored_result<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Option<AgentResult<Value>>> {
        let value = self.steps.lock().unwrap().get(&step.key).cloned();
        std::future::ready(value.map(Ok)).boxed()
    }

    fn begin_try<'a>(&'a self, _: &'a Step) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }

    fn try_again<'a>(
        &'a self,
        _: &'a Step,
        _: TryPolicy,
        _: &'a AgentError,
    ) -> BoxFuture<'a, bool> {
        std::future::ready(false).boxed()
    }

    fn sleep(&self, _: &str, _: Duration) -> BoxFuture<'_, AgentResult<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn begin_scope(&self, _: &str) -> AgentResult<ScopeId> {
        Ok(ScopeId(0))
    }

    fn enter(&self, scope: ScopeId) -> ScopeId {
        scope
    }

    fn end_scope(&self, _: ScopeId) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn leave(&self, _: ScopeId, _: ScopeEnd) {}

    fn end_step<'a>(
        &'a self,
        step: &'a Step,
        result: AgentResult<Value>,
    ) -> BoxFuture<'a, AgentResult<()>> {
        let stored = result.map(|value| {
            self.steps.lock().unwrap().insert(step.key.clone(), value);
        });
        std::future::ready(stored).boxed()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn step_key(&self) -> String {
        "key".to_owned()
    }

    fn thread(&self) -> BoxFuture<'_, AgentResult<Thread>> {
        std::future::ready(Ok(self.thread.clone())).boxed()
    }

    fn references(&self) -> BoxFuture<'_, AgentResult<&References>> {
        std::future::ready(Ok(&self.references)).boxed()
    }

    fn load_session(&self, key: String) -> BoxFuture<'_, AgentResult<Option<Value>>> {
        std::future::ready(Ok(self.session.lock().unwrap().get(&key).cloned())).boxed()
    }

    fn save_session(&self, key: String, value: Value) -> AgentResult<()> {
        self.session.lock().unwrap().insert(key, value);
        Ok(())
    }

    fn update_session(&self, key: String, update: SessionUpdate) -> AgentResult<()> {
        let mut session = self.session.lock().unwrap();
        let value = update.0(session.get(&key).cloned())?;
        session.insert(key, value);
        Ok(())
    }

    fn add_event(&self, content: Content) -> AgentResult<()> {
        self.events.lock().unwrap().push(content);
        Ok(())
    }

    fn time_left(&self) -> Duration {
        Duration::from_secs(7)
    }

    fn trace_parent(&self) -> Option<String> {
        None
    }
}

pub(super) fn facts() -> TurnFacts {
    TurnFacts {
        task_id: TaskId::made_of(1),
        context_id: ContextId::made_of(1),
        caller: caller(),
        turn: 1,
        message_id: "m-1".to_owned(),
        accepted_output_modes: Vec::new(),
        references: Vec::new(),
        model: None::<Arc<dyn Model>>,
        instructions: None,
        states: super::state::States::default(),
        incarnation: WriteId::made_of(1),
        consents: 0,
        consent: None,
    }
}

pub(super) fn caller() -> Caller {
    Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: "default".to_owned(),
        scopes: BTreeSet::new(),
    }
}

/// Runs a turn of the skill to its end.
pub(super) fn turn(skill: &dyn AnySkill, host: &RecordingHost, call: TurnStart) -> SkillOutcome {
    let facts = facts();
    let mut cx = TaskContext::new(host, &facts);
    block_on(skill.turn(&mut cx, call))
}

/// Runs the first turn of a task with this content.
pub(super) fn request(skill: &dyn AnySkill, content: impl Into<Content>) -> SkillOutcome {
    let input = skill.decode(&content.into()).unwrap();
    turn(
        skill,
        &RecordingHost::default(),
        TurnStart::by_caller(StartInput::Request(input)),
    )
}

pub(super) fn message(parts: Vec<Part>) -> Message {
    Message::from_user("m-1", parts)
}

/// The name and the text or data of each artifact.
pub(super) fn delivered(artifacts: &[Artifact]) -> Vec<(String, Value)> {
    let content = |artifact: &Artifact| match (artifact.data(), artifact.text()) {
        (Some(data), _) => data.clone(),
        (None, text) => Value::from(text),
    };
    artifacts
        .iter()
        .map(|artifact| (artifact.name.clone(), content(artifact)))
        .collect()
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time();
    runtime.build().unwrap().block_on(future)
}
