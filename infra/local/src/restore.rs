//! The command `restore-objects`: makes the bucket match a table that was restored to
//! an earlier time.
//!
//! A restored table names objects that were removed since. The bucket keeps their
//! versions for 36 days, so removing the delete markers brings them back. The restored
//! table also holds data of tenants that were erased since. The command repeats these
//! erasures.

use crate::deployment::{Deployment, DeploymentError, Reached};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::{DynamoStore, EraseError, Erasure};
use a2a_lambda::store::s3::{ErasedTenant, S3Blobs};
use a2a_lambda::task::{TenantId, Timestamp};
use std::collections::BTreeSet;
use std::io::{self, Write as _};

/// To which time the table was restored, and where the data is.
#[derive(Debug, Clone, clap::Args)]
pub struct RestoreObjects {
    /// The time to which the table was restored (RFC 3339, `2026-11-22T15:00:00Z`).
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Timestamp,
    /// The restored table, and its bucket.
    #[command(flatten)]
    pub deployment: Deployment,
}

/// Why the bucket may not match the table yet.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The table or the bucket cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The table or the bucket failed.
    #[error("failed to restore: {0}; run this again")]
    Store(#[from] StoreError),
    /// The repeated erasure of a tenant failed before its end.
    #[error("failed to erase a tenant again: {0}; run this again")]
    Erase(#[from] EraseError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Brings the removed objects back, and repeats the erasures since that time.
///
/// # Errors
/// [`RestoreError`]. After an error the operator can repeat the command.
pub async fn run(options: &RestoreObjects) -> Result<(), RestoreError> {
    let reached = options.deployment.reach(None).await?;
    let done = restored(&reached, options.since).await;
    reached.stop().await;
    Ok(io::stdout().write_all(done?.as_bytes())?)
}

async fn restored(reached: &Reached, since: Timestamp) -> Result<String, RestoreError> {
    let Reached { records, blobs, .. } = reached;
    let back = blobs.restore_removed(since, &|_| ()).await?;
    let tenants = blobs.erasures_since(since).await?;
    let tenants: BTreeSet<TenantId> = tenants.into_iter().map(|it| it.tenant).collect();
    let mut text = format!("{back} delete markers taken away\n");
    for tenant in &tenants {
        let erased = erase(records, blobs, tenant, &|_| ()).await?;
        let Erasure { items, objects, .. } = erased;
        text.push_str(&format!(
            "erased again: {items} items and {objects} objects of the tenant {tenant}\n"
        ));
    }
    Ok(text)
}

/// Removes all data of a tenant, including old versions of its objects, and stores a
/// note about the erasure in the bucket.
pub(crate) async fn erase(
    records: &DynamoStore,
    blobs: &S3Blobs,
    tenant: &TenantId,
    reported: &(dyn Fn(&Erasure) + Sync),
) -> Result<Erasure, EraseError> {
    let erased = records.erase_tenant(tenant, blobs, reported).await?;
    blobs.purge_tenant(tenant, &|_| ()).await?;
    // A later restore to a time before this erasure reads the note and repeats it.
    let note = ErasedTenant {
        tenant: tenant.clone(),
        at: SystemClock.now(),
    };
    blobs.note_erasure(&note).await?;
    Ok(erased)
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text)
        .ok_or_else(|| "not a time such as `2026-11-22T15:00:00Z`".to_owned())
}
