//! Opens the table and the bucket for the operator's commands.

use crate::embedded::{BUCKET, DATABASE, Embedded, EmbeddedError, TABLE};
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::s3::S3Blobs;
use std::path::{Path, PathBuf};

/// Where the data of a deployment is.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Deployment {
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

/// Why the table or the bucket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// Neither an option nor a setting names the table or the bucket.
    #[error(
        "which {what}? pass --{what} NAME or set `{setting}`; or --data DIR for a local agent's"
    )]
    Where {
        /// `table` or `bucket`.
        what: &'static str,
        /// The setting that can name it.
        setting: &'static str,
    },
    /// The folder is not the data folder of a local agent.
    #[error("`{}` is no data folder of a local agent", .0.display())]
    NoFolder(PathBuf),
    /// The embedded DynamoDB and S3 do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
}

/// The opened stores.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) table: DynamoTable,
    pub(crate) blobs: S3Blobs,
    embedded: Option<Embedded>,
}

impl Reached {
    /// Stops the embedded services of a data folder, if there are any.
    pub(crate) async fn stop(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }

    /// Stops them after an erasure, and removes what the data folder still holds of the
    /// erased data.
    ///
    /// # Errors
    /// [`DeploymentError`] when something may be left.
    pub(crate) async fn stop_and_tidy(self) -> Result<(), DeploymentError> {
        match self.embedded {
            Some(embedded) => Ok(embedded.stop_and_tidy().await?),
            None => Ok(()),
        }
    }
}

impl Deployment {
    /// Opens the stores of the deployment, or of the data folder `data`.
    ///
    /// # Errors
    /// [`DeploymentError`] when a name is missing or the data folder cannot be used.
    pub(crate) async fn reach(&self, data: Option<&Path>) -> Result<Reached, DeploymentError> {
        let embedded = match data {
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
                self.endpoints(),
                named(self.table.as_ref(), "table", "A2A_TABLE")?,
                named(self.bucket.as_ref(), "bucket", "A2A_BUCKET")?,
            ),
        };
        let clients = AwsClients::connect(&endpoints).await;
        Ok(Reached {
            table: DynamoTable::new(clients.dynamodb, table),
            blobs: S3Blobs::new(clients.s3, bucket),
            embedded,
        })
    }

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

/// Where the table of a deployment or of a data folder is.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Table {
    /// The data folder of a local agent, which must not run meanwhile. Without it the table
    /// is that on AWS.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["table", "endpoint"])]
    pub data: Option<PathBuf>,
    /// The table; else `A2A_TABLE`.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where DynamoDB answers, if that is not AWS.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
}

/// The opened table.
#[derive(Debug)]
pub(crate) struct ReachedTable {
    pub(crate) table: DynamoTable,
    embedded: Option<Embedded>,
}

impl ReachedTable {
    /// Stops the embedded services of a data folder, if there are any.
    pub(crate) async fn stop(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }

    async fn embedded(embedded: Embedded) -> Self {
        let clients = AwsClients::connect(embedded.endpoints()).await;
        Self {
            table: DynamoTable::new(clients.dynamodb, TABLE),
            embedded: Some(embedded),
        }
    }
}

impl Table {
    /// Opens the table. `may_make` makes a data folder that does not exist.
    ///
    /// # Errors
    /// [`DeploymentError`] when a name is missing or the data folder cannot be used.
    pub(crate) async fn reach(&self, may_make: bool) -> Result<ReachedTable, DeploymentError> {
        let Some(folder) = &self.data else {
            let endpoints = self.endpoint.as_ref().map(Endpoints::at);
            let clients = AwsClients::connect(&endpoints.unwrap_or_default()).await;
            let table = named(self.table.as_ref(), "table", "A2A_TABLE")?;
            return Ok(ReachedTable {
                table: DynamoTable::new(clients.dynamodb, table),
                embedded: None,
            });
        };
        let embedded = if may_make {
            Embedded::start(Some(folder)).await?
        } else {
            kept_in(folder).await?
        };
        Ok(ReachedTable::embedded(embedded).await)
    }

    /// An empty table that ends with the process.
    #[cfg(test)]
    pub(crate) async fn in_memory() -> ReachedTable {
        ReachedTable::embedded(Embedded::start(None).await.unwrap()).await
    }
}

/// Starts the embedded services on an existing data folder. Without the check, a
/// misspelt name would make an empty folder and report that nothing is left.
async fn kept_in(folder: &Path) -> Result<Embedded, DeploymentError> {
    if !folder.join(DATABASE).is_file() {
        return Err(DeploymentError::NoFolder(folder.to_owned()));
    }
    Ok(Embedded::start(Some(folder)).await?)
}

/// The name of the table or the bucket. There is no default, since the command would
/// find no data under a wrong name and report that nothing is left.
fn named(
    value: Option<&String>,
    what: &'static str,
    setting: &'static str,
) -> Result<String, DeploymentError> {
    let name = value.cloned().or_else(|| Environment.get(setting));
    name.ok_or(DeploymentError::Where { what, setting })
}
