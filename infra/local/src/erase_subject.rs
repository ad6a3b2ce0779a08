//! Removes all data of one subject of a tenant, or counts it.
//!
//! It makes the calls that the subject could make: it deletes each of its tasks and each of
//! its contexts, with their objects, push configs and idempotency keys. Then it withdraws the
//! subject's API keys. So it needs no scan of the table.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{Engine, EngineError};
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Settings, SettingsError, Source};
use a2a_lambda::skill::BuildError;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::api_keys::WriteApiKeys as _;
use a2a_lambda::store::dynamodb::DynamoStore;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::task::{A2aError, ContextId, ContextQuery, ListQuery, Owner, TaskId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// If so many rounds all find something, a client still writes.
const ROUNDS: u32 = 5;
/// Entries of one list.
const PAGE: usize = 100;

/// How much a subject has, or had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SubjectErasure {
    /// Tasks, removed or counted.
    pub(crate) tasks: u64,
    /// Contexts, removed or counted.
    pub(crate) contexts: u64,
    /// API keys, withdrawn or counted.
    pub(crate) keys: u64,
    /// Tasks and contexts that stay, because a turn still runs.
    pub(crate) busy: u64,
}

/// Why data of a subject may be left.
#[derive(Debug, thiserror::Error)]
pub enum EraseSubjectError {
    /// The table or the bucket does not answer.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The API keys cannot be read or withdrawn.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Turns of the subject still run.
    #[error("{0} tasks or contexts have a running turn; run this again when it has ended")]
    Busy(u64),
    /// Every round has found new data.
    #[error("the subject still writes: take its credentials away, then run this again")]
    StillWritten,
    /// The engine cannot be made.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The engine has no agent.
    #[error(transparent)]
    Agent(#[from] BuildError),
    /// The engine has no settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// The engine deletes by ids, so that all settings have their defaults.
struct DefaultSettings;

impl Source for DefaultSettings {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// The data of one subject.
pub(crate) struct SubjectData {
    engine: Engine,
    keys: DynamoStore,
    caller: Caller,
}

impl SubjectData {
    /// The data of `owner` in these stores.
    ///
    /// # Errors
    /// [`EraseSubjectError`] when the engine cannot be made.
    pub(crate) fn of(
        owner: Owner,
        records: &DynamoStore,
        blobs: &S3Blobs,
    ) -> Result<Self, EraseSubjectError> {
        let store = Arc::new(records.clone());
        let settings = Settings::read(&DefaultSettings)?;
        let runtime = Runtime::builder(reference_agent::agent()?, settings)
            .tasks(store.clone())
            .pushes(store.clone())
            .threads(store)
            .blobs(Arc::new(blobs.clone()))
            .build()?;
        Ok(Self {
            engine: runtime.engine().clone(),
            keys: records.clone(),
            caller: Caller {
                owner,
                tier: String::new(),
                scopes: BTreeSet::new(),
            },
        })
    }

    /// Counts what [`erase`](Self::erase) would remove.
    ///
    /// # Errors
    /// [`EraseSubjectError`] when a store does not answer.
    pub(crate) async fn count(&self) -> Result<SubjectErasure, EraseSubjectError> {
        Ok(SubjectErasure {
            tasks: self.tasks().await?.len() as u64,
            contexts: self.contexts().await?.len() as u64,
            keys: self.withdraw(false).await?,
            busy: 0,
        })
    }

    /// Removes all of it. It can be repeated after an error.
    ///
    /// # Errors
    /// [`EraseSubjectError`] when something may be left.
    pub(crate) async fn erase(&self) -> Result<SubjectErasure, EraseSubjectError> {
        let mut total = SubjectErasure {
            keys: self.withdraw(true).await?,
            ..SubjectErasure::default()
        };
        for _ in 0..ROUNDS {
            let round = self.round().await?;
            total.tasks += round.tasks;
            total.contexts += round.contexts;
            total.busy = round.busy;
            if round.tasks + round.contexts == 0 {
                return match total.busy {
                    0 => Ok(total),
                    busy => Err(EraseSubjectError::Busy(busy)),
                };
            }
        }
        Err(EraseSubjectError::StillWritten)
    }

    /// Deletes what the lists show once. A context goes before its tasks: its deletion
    /// removes them too.
    async fn round(&self) -> Result<SubjectErasure, EraseSubjectError> {
        let mut round = SubjectErasure::default();
        for id in self.contexts().await? {
            match self.engine.delete_context(&self.caller, &id).await {
                Ok(()) => round.contexts += 1,
                Err(error) => round.failed(error)?,
            }
        }
        for id in self.tasks().await? {
            match self.engine.delete_task(&self.caller, &id).await {
                Ok(()) => round.tasks += 1,
                Err(error) => round.failed(error)?,
            }
        }
        Ok(round)
    }

    async fn contexts(&self) -> Result<Vec<ContextId>, EngineError> {
        let (mut found, mut page_token) = (Vec::new(), None);
        loop {
            let query = ContextQuery {
                page_size: PAGE,
                page_token,
            };
            let page = self.engine.reader().contexts(&self.caller, &query).await?;
            found.extend(page.contexts.into_iter().map(|context| context.id));
            if page.next_page_token.is_empty() {
                return Ok(found);
            }
            page_token = Some(page.next_page_token);
        }
    }

    async fn tasks(&self) -> Result<Vec<TaskId>, EngineError> {
        let (mut found, mut page_token) = (Vec::new(), None);
        loop {
            let query = ListQuery {
                context_id: None,
                status: None,
                status_after: None,
                page_size: PAGE,
                page_token,
                history_length: 0,
                include_artifacts: false,
            };
            let page = self.engine.reader().list(&self.caller, &query).await?;
            found.extend(page.tasks.into_iter().map(|task| task.id));
            if page.next_page_token.is_empty() {
                return Ok(found);
            }
            page_token = Some(page.next_page_token);
        }
    }

    /// Withdraws the subject's API keys, or counts them.
    async fn withdraw(&self, really: bool) -> Result<u64, StoreError> {
        let owner = &self.caller.owner;
        let mut keys = self.keys.api_keys(Some(&owner.tenant)).await?;
        keys.retain(|key| key.owner == *owner);
        for key in keys.iter().filter(|_| really) {
            self.keys.withdraw_api_key(&key.id).await?;
        }
        Ok(keys.len() as u64)
    }
}

impl SubjectErasure {
    /// Counts what still runs. What is gone already, or not yet all gone, is looked at again
    /// in the next round.
    fn failed(&mut self, error: EngineError) -> Result<(), EngineError> {
        match error.refusal {
            A2aError::TaskBusy => self.busy += 1,
            A2aError::TaskNotFound | A2aError::ContextExpired => {}
            A2aError::Unfinished { .. } => self.contexts += 1,
            _ => return Err(error),
        }
        Ok(())
    }
}
