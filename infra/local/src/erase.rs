//! The command `erase-tenant`: removes all data of one tenant, or counts it.
//!
//! An operator runs it, since it reads the whole table, with permissions that no
//! function has. After an interrupted run the operator repeats it; a run that
//! succeeds leaves nothing.

use crate::deployment::{Deployment, DeploymentError, Reached};
use crate::erase_subject::{EraseSubjectError, SubjectData, SubjectErasure};
use crate::restore;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::{DynamoStore, EraseError, Erasure};
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::task::{IdError, Owner, Subject, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// After this many more items and objects the command writes a line about its
/// progress.
const STRIDE: u64 = 10_000;

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
    /// The tenant's name is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The table or the bucket cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The erasure failed before its end.
    #[error("failed to erase the tenant: {0}; run this again")]
    Erase(#[from] EraseError),
    /// A subject's data may still be there.
    #[error("failed to erase the subject: {0}")]
    Subject(#[from] EraseSubjectError),
    /// The tenant's data could not be counted.
    #[error("failed to count: {0}")]
    Count(#[from] StoreError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Removes or counts the tenant's data, and prints how much it was.
///
/// # Errors
/// [`EraseTenantError`]. After an error the operator can repeat the command.
pub async fn run(options: &EraseTenant) -> Result<(), EraseTenantError> {
    let tenant = TenantId::parse(options.tenant.clone())?;
    let reached = options.deployment.reach(options.data.as_deref()).await?;
    let Reached { records, blobs, .. } = &reached;
    if let Some(subject) = &options.subject {
        let owner = Owner {
            tenant,
            subject: Subject::parse(subject.clone())?,
        };
        let text = erase_subject(options.dry_run, owner, records, blobs).await?;
        return end(&text, options.dry_run, reached).await;
    }
    let reported = Progress::default();
    let reported = |so_far: &Erasure| reported.say(so_far);
    let text = if options.dry_run {
        let counted = records.count_tenant(&tenant, blobs, &reported).await?;
        summary("would be removed", &tenant, &counted)
    } else {
        let erased = if options.data.is_some() {
            // The embedded S3 keeps no object versions, and a data folder needs no note
            // for a later restore.
            records.erase_tenant(&tenant, blobs, &reported).await?
        } else {
            restore::erase(records, blobs, &tenant, &reported).await?
        };
        summary("removed", &tenant, &erased)
    };
    end(&text, options.dry_run, reached).await
}

/// Prints the result, and stops the embedded services.
async fn end(text: &str, dry_run: bool, reached: Reached) -> Result<(), EraseTenantError> {
    io::stdout().write_all(text.as_bytes())?;
    if dry_run {
        reached.stop().await;
    } else {
        reached.stop_and_tidy().await?;
    }
    Ok(())
}

async fn erase_subject(
    dry_run: bool,
    owner: Owner,
    records: &DynamoStore,
    blobs: &S3Blobs,
) -> Result<String, EraseSubjectError> {
    let Owner { tenant, subject } = &owner;
    let of = format!("of the subject {subject} of the tenant {tenant}");
    let data = SubjectData::of(owner, records, blobs)?;
    let (done, found) = if dry_run {
        ("would be removed", data.count().await?)
    } else {
        ("removed", data.erase().await?)
    };
    let SubjectErasure {
        tasks,
        contexts,
        keys,
        ..
    } = found;
    Ok(format!(
        "{done}: {contexts} contexts, {tasks} further tasks and {keys} API keys {of}\n"
    ))
}

fn summary(done: &str, tenant: &TenantId, erasure: &Erasure) -> String {
    let Erasure {
        read,
        items,
        objects,
        rounds,
    } = erasure;
    format!(
        "{done}: {items} items and {objects} objects of the tenant {tenant} \
         ({read} items read in {rounds} rounds)\n"
    )
}

/// Prints the progress of a long run to standard error.
#[derive(Debug, Default)]
struct Progress(AtomicU64);

impl Progress {
    fn say(&self, so_far: &Erasure) {
        let seen = (so_far.read + so_far.items + so_far.objects) / STRIDE;
        if self.0.swap(seen, Ordering::Relaxed) < seen {
            let Erasure {
                read,
                items,
                objects,
                rounds,
            } = so_far;
            // The erasure continues even if standard error is closed.
            let _told = writeln!(
                io::stderr(),
                "round {rounds}: {read} items read, {items} items and {objects} objects found"
            );
        }
    }
}
