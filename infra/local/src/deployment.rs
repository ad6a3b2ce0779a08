//! The table and the bucket that an operator's job works on.

use crate::embedded::{BUCKET, DATABASE, Embedded, EmbeddedError, TABLE};
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::DynamoStore;
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

/// Why the data cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
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
}

/// Stores over the data.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) records: DynamoStore,
    pub(crate) blobs: S3Blobs,
    embedded: Option<Embedded>,
}

impl Reached {
    /// Ends the services that were started for a data folder.
    pub(crate) async fn stop(self) {
        if let Some(embedded) = self.embedded {
            embedded.stop().await;
        }
    }

    /// The same after a removal: the data folder keeps no trace of it.
    ///
    /// # Errors
    /// [`DeploymentError`] when a trace may be left.
    pub(crate) async fn stop_and_tidy(self) -> Result<(), DeploymentError> {
        match self.embedded {
            Some(embedded) => Ok(embedded.stop_and_tidy().await?),
            None => Ok(()),
        }
    }
}

impl Deployment {
    /// The stores of the deployment, or of the data folder `data`.
    ///
    /// # Errors
    /// [`DeploymentError`].
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
            records: DynamoStore::new(clients.dynamodb, table),
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

/// The services over a folder that a local agent has kept its data in. A wrong
/// name must not make an empty one and report that nothing is left.
async fn kept_in(folder: &Path) -> Result<Embedded, DeploymentError> {
    if !folder.join(DATABASE).is_file() {
        return Err(DeploymentError::NoFolder(folder.to_owned()));
    }
    Ok(Embedded::start(Some(folder)).await?)
}

/// On AWS there is no table by default: a name that was forgotten must not be
/// taken for a deployment without data.
fn named(
    given: Option<&String>,
    what: &'static str,
    setting: &'static str,
) -> Result<String, DeploymentError> {
    let name = given.cloned().or_else(|| Environment.get(setting));
    name.ok_or(DeploymentError::Where { what, setting })
}
