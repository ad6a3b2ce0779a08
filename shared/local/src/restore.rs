//! The command `restore-objects`: makes the bucket match a table that was restored to
//! an earlier time.
//!
//! A restored table names objects that were removed since. The bucket keeps their
//! versions for 36 days, so removing the delete markers brings them back. The restored
//! table also holds data of tenants and subjects that were erased since. The command repeats
//! these erasures.

use crate::deployment::{Deployment, DeploymentError, Reached};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::dynamodb::{DynamoStore, EraseError, Erasure};
use a2a_lambda::store::s3::{Erased, ErasureNote, S3Blobs};
use a2a_lambda::task::Timestamp;
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
    /// A repeated erasure failed before its end.
    #[error("failed to erase again: {0}; run this again")]
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
    let notes = blobs.erasures_since(since).await?;
    let scopes: BTreeSet<Erased> = notes.into_iter().map(|note| note.erased).collect();
    let mut text = format!("{back} delete markers taken away\n");
    for scope in scopes {
        let of = match &scope {
            Erased::Tenant(tenant) => format!("the tenant {tenant}"),
            Erased::Subject(subject) => format!("a subject of the tenant {}", subject.tenant()),
        };
        let Erasure { items, objects, .. } = erase(records, blobs, scope, &|_| ()).await?;
        text.push_str(&format!(
            "erased again: {items} items and {objects} objects of {of}\n"
        ));
    }
    Ok(text)
}

/// Removes all data of a tenant or of a subject, including old versions of its objects, and
/// stores a note about the erasure in the bucket.
pub(crate) async fn erase(
    records: &DynamoStore,
    blobs: &S3Blobs,
    scope: Erased,
    reported: &(dyn Fn(&Erasure) + Sync),
) -> Result<Erasure, EraseError> {
    let done = erase_once(records, blobs, &scope, reported).await?;
    // A later restore to a time before this erasure reads the note and repeats it.
    let note = ErasureNote {
        erased: scope,
        at: SystemClock.now(),
    };
    blobs.note_erasure(&note).await?;
    Ok(done)
}

/// The same without a note.
pub(crate) async fn erase_once(
    records: &DynamoStore,
    blobs: &S3Blobs,
    scope: &Erased,
    reported: &(dyn Fn(&Erasure) + Sync),
) -> Result<Erasure, EraseError> {
    match scope {
        Erased::Tenant(tenant) => {
            let erased = records.erase_tenant(tenant, blobs, reported).await?;
            blobs.purge_tenant(tenant, &|_| ()).await?;
            Ok(erased)
        }
        Erased::Subject(subject) => records.erase_subject(subject, blobs, reported).await,
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text)
        .ok_or_else(|| "not a time such as `2026-11-22T15:00:00Z`".to_owned())
}
