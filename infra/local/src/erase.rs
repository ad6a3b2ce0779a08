//! `erase-tenant`: removes everything of one tenant, or counts it.
//!
//! An operator's job: it reads the whole table, with rights that no function
//! has. A run that was cut is made again, and ends with nothing left.

use crate::deployment::{Deployment, DeploymentError, Reached};
use crate::restore;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::{EraseError, Erasure};
use a2a_lambda::task::{InvalidId, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A line about the progress is written each time so much more was looked at.
const STRIDE: u64 = 10_000;

/// Whose data, where it is, and whether it really goes.
#[derive(Debug, Clone, clap::Args)]
pub struct EraseTenant {
    /// The tenant.
    pub tenant: String,
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
    /// The name has another form.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// The data cannot be reached.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The job did not come to its end.
    #[error("failed to erase the tenant: {0}; run this again")]
    Erase(#[from] EraseError),
    /// The tenant's data could not be counted.
    #[error("failed to count: {0}")]
    Count(#[from] StoreError),
    /// The terminal is gone.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Removes or counts the tenant's data, and says how much it was.
///
/// # Errors
/// [`EraseTenantError`]; after one the same command can be run again.
pub async fn run(options: &EraseTenant) -> Result<(), EraseTenantError> {
    let tenant = TenantId::parse(options.tenant.clone())?;
    let reached = options.deployment.reach(options.data.as_deref()).await?;
    let Reached { records, blobs, .. } = &reached;
    let told = Progress::default();
    let told = |so_far: &Erasure| told.say(so_far);
    let text = if options.dry_run {
        let counted = records.count_tenant(&tenant, blobs, &told).await?;
        summary("would be removed", &tenant, &counted)
    } else {
        let erased = if options.data.is_some() {
            // A data folder keeps no versions, and no note about a tenant.
            records.erase_tenant(&tenant, blobs, &told).await?
        } else {
            restore::erase(records, blobs, &tenant, &told).await?
        };
        summary("removed", &tenant, &erased)
    };
    io::stdout().write_all(text.as_bytes())?;
    if options.dry_run {
        reached.stop().await;
    } else {
        reached.stop_and_tidy().await?;
    }
    Ok(())
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

/// Says now and then how far a long job has come.
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
            // With the terminal gone the job goes on.
            let _told = writeln!(
                io::stderr(),
                "round {rounds}: {read} items read, {items} items and {objects} objects found"
            );
        }
    }
}
