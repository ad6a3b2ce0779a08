//! The command `erase-tenant`: removes all data of a tenant, or of one of its subjects, or
//! counts it.
//!
//! An operator runs it, since it reads the whole table, with permissions that no
//! function has. After an interrupted run the operator repeats it; a run that
//! succeeds leaves nothing.

use crate::deployment::{DataFolders, Deployment, DeploymentError, FolderUse, Reached};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::{EraseError, Erasure};
use a2a_lambda::task::{IdError, Owner, Subject, SubjectKey, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// After this many more items and objects the command writes a line about its
/// progress.
const STRIDE: u64 = 10_000;

/// What an erasure removes.
enum Erased {
    /// A whole tenant.
    Tenant(TenantId),
    /// One subject of a tenant.
    Subject(SubjectKey),
}

/// Whose data, where it is, and whether it really goes.
#[derive(Debug, Clone, clap::Args)]
pub struct EraseTenant {
    /// The tenant.
    pub tenant: String,
    /// Only the data of this subject of the tenant, and its API keys.
    #[arg(long)]
    pub subject: Option<String>,
    /// Really remove it. Nothing but a backup brings it back.
    #[arg(long, required_unless_present = "dry_run", conflicts_with = "dry_run")]
    pub yes: bool,
    /// Only count what would go.
    #[arg(long)]
    pub dry_run: bool,
    /// The data folder of a local agent, which must not run meanwhile. Without
    /// it the table and the bucket are those on AWS.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "bucket", "endpoint", "s3_endpoint"])]
    pub data: Option<PathBuf>,
    /// Where it is, if that is not a data folder.
    #[command(flatten)]
    pub deployment: Deployment,
}

/// Why a tenant's data may still be there.
#[derive(Debug, thiserror::Error)]
pub enum EraseTenantError {
    /// The name of the tenant or of the subject is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The table or the bucket cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The erasure failed before its end.
    #[error("failed to erase: {0}; run this again")]
    Erase(#[from] EraseError),
    /// The data could not be counted.
    #[error("failed to count: {0}")]
    Count(#[from] StoreError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

impl EraseTenant {
    /// Removes or counts the data, and prints how much it was.
    ///
    /// # Errors
    /// [`EraseTenantError`]. After an error the operator can repeat the command.
    pub async fn run(&self, folders: &dyn DataFolders) -> Result<(), EraseTenantError> {
        let (scope, of) = scope(self)?;
        let data = self.data.as_deref();
        let stores = self
            .deployment
            .reach(data, FolderUse::Alone, folders)
            .await?;
        let Reached { table, blobs, .. } = &stores;
        let progress = Progress::default();
        let report = |so_far: &Erasure| progress.say(so_far);
        let (verb, erasure) = if self.dry_run {
            let erasure = match &scope {
                Erased::Tenant(tenant) => table.count_tenant(tenant, blobs, &report).await?,
                Erased::Subject(subject) => table.count_subject(subject, blobs, &report).await?,
            };
            ("would be removed", erasure)
        } else {
            let erasure = match &scope {
                Erased::Tenant(tenant) => {
                    let erasure = table.erase_tenant(tenant, blobs, &report).await?;
                    blobs.purge_tenant(tenant).await?;
                    erasure
                }
                Erased::Subject(subject) => table.erase_subject(subject, blobs, &report).await?,
            };
            ("removed", erasure)
        };
        io::stdout().write_all(summary(verb, &of, &erasure).as_bytes())?;
        if self.dry_run {
            stores.stop().await;
        } else {
            stores.stop_and_clean_up().await?;
        }
        Ok(())
    }
}

/// What is erased, as keys and as the operator names it.
fn scope(options: &EraseTenant) -> Result<(Erased, String), IdError> {
    let tenant = TenantId::parse(options.tenant.clone())?;
    let Some(subject) = &options.subject else {
        let of = format!("the tenant {tenant}");
        return Ok((Erased::Tenant(tenant), of));
    };
    let subject = Subject::parse(subject.clone())?;
    let of = format!("the subject {subject} of the tenant {tenant}");
    let owner = Owner { tenant, subject };
    Ok((Erased::Subject(SubjectKey::of(&owner)), of))
}

fn summary(verb: &str, of: &str, erasure: &Erasure) -> String {
    let Erasure {
        read,
        items,
        objects,
        rounds,
    } = erasure;
    format!(
        "{verb}: {items} items and {objects} objects of {of} \
         ({read} items read in {rounds} rounds)\n"
    )
}

/// Prints the progress of a long run to standard error.
#[derive(Debug, Default)]
struct Progress(AtomicU64);

impl Progress {
    fn say(&self, so_far: &Erasure) {
        let stride = (so_far.read + so_far.items + so_far.objects) / STRIDE;
        if self.0.swap(stride, Ordering::Relaxed) < stride {
            let Erasure {
                read,
                items,
                objects,
                rounds,
            } = so_far;
            // The erasure continues even if standard error is closed.
            let _printed = writeln!(
                io::stderr(),
                "round {rounds}: {read} items read, {items} items and {objects} objects found"
            );
        }
    }
}
