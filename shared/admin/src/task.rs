//! The commands `task` and `end-task`: print a stored task as JSON, and cancel one.

use crate::BuildNamed;
use crate::deployment::{DataFolders, Deployment, DeploymentError, FolderUse, Reached};
use crate::output::{CommandError, print};
use a2a_lambda::engine::{Engine, Services};
use a2a_lambda::settings::{Environment, Settings};
use a2a_lambda::store::stored;
use a2a_lambda::task::{Owner, Subject, TaskId, TaskKey, TaskRecord, TenantId};
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

/// Prints the task.
///
/// # Errors
/// When the task cannot be read or printed.
pub(crate) async fn run(
    options: &TaskOptions,
    folders: &dyn DataFolders,
) -> Result<(), CommandError> {
    let storage = options.reach(folders).await?;
    let task = options.find(&storage).await;
    storage.stop().await;
    print(&format!("{:#}\n", stored::encode(&task?)))
}

/// Cancels the task as its owner would.
///
/// # Errors
/// When the task cannot be read, or has ended otherwise.
pub(crate) async fn end(
    options: &TaskOptions,
    folders: &dyn DataFolders,
    agent: BuildNamed<'_>,
) -> Result<(), CommandError> {
    let settings = Settings::read_public(&Environment)?;
    let agent = agent(None, &settings);
    let agent = agent.map_err(|error| format!("failed to build the agent: {error}"))?;
    let storage = options.reach(folders).await?;
    let services = Services {
        push: true,
        ..Services::new(storage.records(), Arc::new(storage.blobs.clone()))
    };
    let engine = Engine::new(Arc::new(agent), services, settings.policy);
    let result = match options.find(&storage).await {
        Ok(task) => match engine.tasks.end_task(task).await {
            Err(error) => Err(format!("failed to end the task: {error}").into()),
            Ok(task) => Ok(task),
        },
        Err(error) => Err(error),
    };
    storage.stop().await;
    print(&format!("ended: {}\n", result?.id))
}

impl TaskOptions {
    async fn reach(&self, folders: &dyn DataFolders) -> Result<Reached, DeploymentError> {
        let usual = self.deployment.usual(folders);
        let data = self.data.as_deref().or(usual.as_deref());
        self.deployment
            .reach(data, FolderUse::Beside, folders)
            .await
    }

    /// The task as it is stored.
    async fn find(&self, storage: &Reached) -> Result<TaskRecord, CommandError> {
        let id = TaskId::parse(self.id.clone())?;
        let tenant = TenantId::parse(self.tenant.clone())?;
        let subject = match &self.subject {
            Some(subject) => Subject::parse(subject.clone())?,
            // It is not in the key of a task whose id the server made.
            None if id.is_server_made() => Subject::parse("any")?,
            None => return Err(format!("a client made the id `{id}`: pass --subject").into()),
        };
        let owner = Owner { tenant, subject };
        let sweep = storage.records().sweep();
        let task = sweep.load_by_key(&TaskKey::new(&owner, &id)).await;
        let task = task.map_err(|error| format!("failed to read the task: {error}"))?;
        let none = || format!("the tenant `{}` has no stored task `{id}`", owner.tenant).into();
        task.ok_or_else(none)
    }
}
