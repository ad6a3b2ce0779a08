//! The commands `task` and `end-task`: print a stored task as JSON, and cancel one.

use crate::BuildNamed;
use crate::deployment::{DataFolders, Deployment, DeploymentError, Reached};
use a2a_lambda::engine::{Engine, EngineError, Services};
use a2a_lambda::settings::{Environment, Settings, SettingsError};
use a2a_lambda::skill::AgentBuildError;
use a2a_lambda::store::{StoreError, stored};
use a2a_lambda::task::{IdError, Owner, Subject, TaskId, TaskKey, TaskRecord, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Which task, and where it is stored.
#[derive(Debug, Clone, clap::Args)]
pub struct TaskOptions {
    /// The id of the task.
    pub id: String,
    /// The tenant of its owner.
    #[arg(long, default_value = "local")]
    pub tenant: String,
    /// The subject of its owner; needed for an id that a client made.
    #[arg(long)]
    pub subject: Option<String>,
    /// The data folder of a local agent. Without it, and without a table, it is `.a2a`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "bucket", "endpoint", "s3_endpoint"])]
    pub data: Option<PathBuf>,
    /// Where it is, if that is not a data folder.
    #[command(flatten)]
    pub deployment: Deployment,
}

/// Why a task is not printed or ended.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// An id, a tenant or a subject is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The client made the id, so the key contains the subject.
    #[error("a client made the id `{0}`: pass --subject")]
    Subject(TaskId),
    /// The table cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The task cannot be read.
    #[error("failed to read the task: {0}")]
    Store(#[from] StoreError),
    /// No such task is stored.
    #[error("the tenant `{0}` has no stored task `{1}`")]
    None(TenantId, TaskId),
    /// The task has ended otherwise, or the table did not take the end.
    #[error("failed to end the task: {0}")]
    End(#[from] EngineError),
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent, whose skill learns of the end, cannot be built.
    #[error("failed to build the agent: {0}")]
    Agent(#[from] AgentBuildError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Prints the task.
///
/// # Errors
/// [`TaskError`].
pub(crate) async fn run(options: &TaskOptions, folders: &dyn DataFolders) -> Result<(), TaskError> {
    let storage = options.reach(folders).await?;
    let task = options.find(&storage).await;
    storage.stop().await;
    let text = format!("{:#}\n", stored::encode(&task?));
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Cancels the task as its owner would.
///
/// # Errors
/// [`TaskError`].
pub(crate) async fn end(
    options: &TaskOptions,
    folders: &dyn DataFolders,
    agent: BuildNamed<'_>,
) -> Result<(), TaskError> {
    let settings = Settings::read_public(&Environment)?;
    let agent = agent(None, &settings)?;
    let storage = options.reach(folders).await?;
    let services = Services {
        push: true,
        ..Services::new(storage.records(), Arc::new(storage.blobs.clone()))
    };
    let engine = Engine::new(Arc::new(agent), services, settings.policy);
    let result = match options.find(&storage).await {
        Ok(task) => engine.tasks.end_task(task).await.map_err(TaskError::from),
        Err(error) => Err(error),
    };
    storage.stop().await;
    let text = format!("ended: {}\n", &result?.id);
    Ok(io::stdout().write_all(text.as_bytes())?)
}

impl TaskOptions {
    async fn reach(&self, folders: &dyn DataFolders) -> Result<Reached, DeploymentError> {
        let is_named = self.deployment.is_named() || folders.data().is_some();
        let usual = (!is_named).then(|| folders.usual());
        let data = self.data.as_deref().or(usual.as_deref());
        self.deployment.reach_beside(data, folders).await
    }

    /// The task as it is stored.
    async fn find(&self, storage: &Reached) -> Result<TaskRecord, TaskError> {
        let id = TaskId::parse(self.id.clone())?;
        let tenant = TenantId::parse(self.tenant.clone())?;
        let subject = match &self.subject {
            Some(subject) => Subject::parse(subject.clone())?,
            // It is not in the key of a task whose id the server made.
            None if id.is_server_made() => Subject::parse("any")?,
            None => return Err(TaskError::Subject(id)),
        };
        let owner = Owner { tenant, subject };
        let sweep = storage.records().sweep();
        let task = sweep.load_by_key(&TaskKey::new(&owner, &id)).await?;
        task.ok_or(TaskError::None(owner.tenant, id))
    }
}
