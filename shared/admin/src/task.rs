//! The command `task`: prints a stored task as JSON.

use crate::deployment::{DataFolders, Deployment, DeploymentError};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::{StoreError, stored};
use a2a_lambda::task::{IdError, Owner, Subject, TaskId, TaskKey, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Which task, and where it is stored.
#[derive(Debug, Clone, clap::Args)]
pub struct PrintTask {
    /// The id of the task.
    pub id: String,
    /// The tenant of its owner.
    #[arg(long)]
    pub tenant: String,
    /// The subject of its owner; needed for an id that a client made.
    #[arg(long)]
    pub subject: Option<String>,
    /// The data folder of a local agent, which must not run meanwhile. Without
    /// it the table is on AWS.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "bucket", "endpoint", "s3_endpoint"])]
    pub data: Option<PathBuf>,
    /// Where it is, if that is not a data folder.
    #[command(flatten)]
    pub deployment: Deployment,
}

/// Why a task is not printed.
#[derive(Debug, thiserror::Error)]
pub enum PrintTaskError {
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
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Prints the task.
///
/// # Errors
/// [`PrintTaskError`].
pub(crate) async fn run(
    options: &PrintTask,
    folders: &dyn DataFolders,
) -> Result<(), PrintTaskError> {
    let id = TaskId::parse(options.id.clone())?;
    let tenant = TenantId::parse(options.tenant.clone())?;
    let subject = match &options.subject {
        Some(subject) => Subject::parse(subject.clone())?,
        // It is not in the key of a task whose id the server made.
        None if id.is_server_made() => Subject::parse("any")?,
        None => return Err(PrintTaskError::Subject(id)),
    };
    let owner = Owner { tenant, subject };
    let storage = options
        .deployment
        .reach(options.data.as_deref(), folders)
        .await?;
    let records = Records::new(Arc::new(storage.table.clone()));
    let task = records
        .sweep()
        .load_by_key(&TaskKey::new(&owner, &id))
        .await;
    storage.stop().await;
    let task = task?.ok_or(PrintTaskError::None(owner.tenant, id))?;
    let text = format!("{:#}\n", stored::encode(&task));
    Ok(io::stdout().write_all(text.as_bytes())?)
}
