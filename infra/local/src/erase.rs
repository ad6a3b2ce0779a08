//! `erase-tenant`: removes everything of one tenant, or counts it.
//!
//! An operator's job: it reads the whole table, with rights that no function
//! has. A run that was cut is made again, and ends with nothing left.

use crate::embedded::{BUCKET, DATABASE, Embedded, EmbeddedError, TABLE};
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::{DynamoStore, EraseError, Erasure};
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::task::{InvalidId, TenantId};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
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
    /// The table; else `A2A_TABLE`.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// The bucket; else `A2A_BUCKET`.
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,
    /// Where DynamoDB and S3 answer, if that is not AWS.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Where S3 answers, if that is elsewhere than at --endpoint.
    #[arg(long, value_name = "URL", requires = "endpoint")]
    pub s3_endpoint: Option<String>,
}

/// Why a tenant's data may still be there.
#[derive(Debug, thiserror::Error)]
pub enum EraseTenantError {
    /// The name has another form.
    #[error(transparent)]
    Name(#[from] InvalidId),
    /// Nothing says where the data is.
    #[error(
        "which {what}? pass --{what} NAME or set `{setting}`; or --data DIR for a local agent's"
    )]
    Where {
        /// What is missing.
        what: &'static str,
        /// The setting that can name it.
        setting: &'static str,
    },
    /// There is no such data folder.
    #[error("`{}` is no data folder of a local agent", .0.display())]
    NoFolder(PathBuf),
    /// The embedded DynamoDB and S3 do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
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
    let embedded = match &options.data {
        Some(folder) => Some(kept_in(folder).await?),
        None => None,
    };
    let (endpoints, table, bucket) = match &embedded {
        Some(embedded) => (
            embedded.endpoints().clone(),
            TABLE.to_owned(),
            BUCKET.to_owned(),
        ),
        None => (
            options.endpoints(),
            named(options.table.as_ref(), "table", "A2A_TABLE")?,
            named(options.bucket.as_ref(), "bucket", "A2A_BUCKET")?,
        ),
    };
    let clients = AwsClients::connect(&endpoints).await;
    let blobs = S3Blobs::new(clients.s3, bucket);
    let store = DynamoStore::new(clients.dynamodb, table);
    let told = Progress::default();
    let told = |so_far: &Erasure| told.say(so_far);
    let text = if options.dry_run {
        let counted = store.count_tenant(&tenant, &blobs, &told).await?;
        summary("would be removed", &tenant, &counted)
    } else {
        let erased = store.erase_tenant(&tenant, &blobs, &told).await?;
        summary("removed", &tenant, &erased)
    };
    io::stdout().write_all(text.as_bytes())?;
    match embedded {
        Some(embedded) if options.dry_run => embedded.stop().await,
        Some(embedded) => embedded.stop_and_tidy().await?,
        None => {}
    }
    Ok(())
}

impl EraseTenant {
    fn endpoints(&self) -> Endpoints {
        let Some(url) = &self.endpoint else {
            return Endpoints::default();
        };
        let mut endpoints = Endpoints::at(url);
        if self.s3_endpoint.is_some() {
            endpoints.s3.clone_from(&self.s3_endpoint);
        }
        endpoints
    }
}

/// The services over a folder that a local agent has kept its data in. A wrong
/// name must not make an empty one and report that nothing is left.
async fn kept_in(folder: &Path) -> Result<Embedded, EraseTenantError> {
    if !folder.join(DATABASE).is_file() {
        return Err(EraseTenantError::NoFolder(folder.to_owned()));
    }
    Ok(Embedded::start(Some(folder)).await?)
}

/// On AWS there is no table by default: a name that was forgotten must not be
/// taken for a tenant without data.
fn named(
    given: Option<&String>,
    what: &'static str,
    setting: &'static str,
) -> Result<String, EraseTenantError> {
    let name = given.cloned().or_else(|| Environment.get(setting));
    name.ok_or(EraseTenantError::Where { what, setting })
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
