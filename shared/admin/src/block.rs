//! The commands `block-tenant` and `unblock-tenant`: stop one tenant, or let it go on.

use crate::deployment::{DataFolders, Deployment, DeploymentError};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::limits::Limits;
use a2a_lambda::task::{IdError, TenantId};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Which tenant, and where its data is.
#[derive(Debug, Clone, clap::Args)]
pub struct BlockTenant {
    /// The tenant.
    pub tenant: String,
    /// The data folder of a local agent, which must not run meanwhile. Without
    /// it the table is on AWS.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "endpoint"])]
    pub data: Option<PathBuf>,
    /// The table; else `A2A_TABLE`.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where DynamoDB answers, if that is not AWS.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
}

/// Why a tenant may not be blocked, or its block may not have ended.
#[derive(Debug, thiserror::Error)]
pub enum BlockTenantError {
    /// The tenant's name is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The table cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The table did not take the change.
    #[error("failed to change the block of the tenant: {0}; run this again")]
    Store(#[from] StoreError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Blocks the tenant, or ends its block.
///
/// # Errors
/// [`BlockTenantError`]. After an error the operator can repeat the command.
pub(crate) async fn run(
    options: &BlockTenant,
    is_blocked: bool,
    folders: &dyn DataFolders,
) -> Result<(), BlockTenantError> {
    let tenant = TenantId::parse(options.tenant.clone())?;
    let deployment = Deployment {
        table: options.table.clone(),
        // The command does not use the bucket.
        bucket: Some(String::new()),
        endpoint: options.endpoint.clone(),
        s3_endpoint: None,
    };
    let connection = deployment.reach(options.data.as_deref(), folders).await?;
    let limits = Limits::new(Arc::new(connection.table.clone()));
    let result = limits.block(&tenant, is_blocked).await;
    connection.stop().await;
    result?;
    let text = if is_blocked {
        format!("the tenant {tenant} is blocked: calls within a minute, streams within 30 s\n")
    } else {
        format!("the tenant {tenant} is not blocked\n")
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}
