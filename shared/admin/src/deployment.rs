//! Opens the table and the bucket for the operator's commands.

use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use async_trait::async_trait;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Why a data folder cannot be used.
type DataFolderError = Box<dyn Error + Send + Sync>;

/// Opens the data folders of local agents: the table and the bucket that are not on AWS.
#[async_trait]
pub trait DataFolders: Sync {
    /// Opens the folder, which exists unless `may_make`. `None` if it is not a data folder.
    ///
    /// # Errors
    /// When it cannot be used.
    async fn open(
        &self,
        folder: &Path,
        may_make: bool,
    ) -> Result<Option<Box<dyn OpenFolder>>, DataFolderError>;

    /// The folder, if a running local agent uses it. Closing it changes nothing.
    ///
    /// # Errors
    /// When it cannot be read.
    fn beside(&self, folder: &Path) -> Result<Option<Box<dyn OpenFolder>>, DataFolderError>;

    /// The folder of a local agent that is started without `--data`.
    fn usual(&self) -> PathBuf;

    /// The folder that is named before the command, as in `a2a-local --data DIR keys list`.
    fn data(&self) -> Option<&Path>;
}

/// An open data folder.
#[async_trait]
pub trait OpenFolder: fmt::Debug + Send + Sync {
    /// Where its table and its bucket answer.
    fn endpoints(&self) -> &Endpoints;

    /// The names of its table and of its bucket.
    fn names(&self) -> (&'static str, &'static str);

    /// Closes it.
    async fn stop(self: Box<Self>);

    /// Closes it after an erasure, and removes what it still holds of the erased data.
    ///
    /// # Errors
    /// When something may be left.
    async fn stop_and_clean_up(self: Box<Self>) -> Result<(), DataFolderError>;
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
    /// Options name two places.
    #[error("`--data` before the command and an option after it name two places: pass one")]
    TwoPlaces,
    /// The folder is not the data folder of a local agent.
    #[error("`{}` is no data folder of a local agent", .0.display())]
    NoFolder(PathBuf),
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] DataFolderError),
}

/// The opened stores.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) table: DynamoTable,
    pub(crate) blobs: S3Blobs,
    folder: Option<Box<dyn OpenFolder>>,
}

impl Reached {
    /// The stores in this folder.
    async fn of(folder: &dyn OpenFolder) -> Self {
        let (clients, (table, bucket)) = (
            AwsClients::connect(folder.endpoints()).await,
            folder.names(),
        );
        Self {
            table: DynamoTable::new(clients.dynamodb, table),
            blobs: S3Blobs::new(clients.s3, bucket),
            folder: None,
        }
    }

    /// Tasks, with their large values.
    pub(crate) fn records(&self) -> Records {
        Records::new(Arc::new(self.table.clone())).with_blobs(Arc::new(self.blobs.clone()))
    }

    /// Stops the embedded services of a data folder, if there are any.
    pub(crate) async fn stop(self) {
        if let Some(folder) = self.folder {
            folder.stop().await;
        }
    }

    /// Stops them after an erasure, and removes what the data folder still holds of the
    /// erased data.
    ///
    /// # Errors
    /// [`DeploymentError`] when something may be left.
    pub(crate) async fn stop_and_clean_up(self) -> Result<(), DeploymentError> {
        match self.folder {
            Some(folder) => Ok(folder.stop_and_clean_up().await?),
            None => Ok(()),
        }
    }
}

impl Deployment {
    /// Opens the stores of the deployment, or of the data folder `data`.
    ///
    /// # Errors
    /// [`DeploymentError`] when a name is missing or the data folder cannot be used.
    pub(crate) async fn reach(
        &self,
        data: Option<&Path>,
        folders: &dyn DataFolders,
    ) -> Result<Reached, DeploymentError> {
        let is_elsewhere = self.table.is_some() || self.bucket.is_some() || self.endpoint.is_some();
        let folder = match data_folder(data, is_elsewhere, folders)? {
            Some(path) => Some(open(folders, path, false).await?),
            None => None,
        };
        let (endpoints, table, bucket) = match &folder {
            Some(folder) => {
                let (table, bucket) = folder.names();
                (
                    folder.endpoints().clone(),
                    table.to_owned(),
                    bucket.to_owned(),
                )
            }
            None => (
                self.endpoints(),
                resource_name(self.table.as_ref(), "table", "A2A_TABLE")?,
                resource_name(self.bucket.as_ref(), "bucket", "A2A_BUCKET")?,
            ),
        };
        let clients = AwsClients::connect(&endpoints).await;
        Ok(Reached {
            table: DynamoTable::new(clients.dynamodb, table),
            blobs: S3Blobs::new(clients.s3, bucket),
            folder,
        })
    }

    /// The same, also beside a running local agent.
    ///
    /// # Errors
    /// Those of [`Deployment::reach`].
    pub(crate) async fn reach_beside(
        &self,
        data: Option<&Path>,
        folders: &dyn DataFolders,
    ) -> Result<Reached, DeploymentError> {
        let is_elsewhere = self.table.is_some() || self.bucket.is_some() || self.endpoint.is_some();
        let path = data_folder(data, is_elsewhere, folders)?;
        match path.map(|path| folders.beside(path)).transpose()?.flatten() {
            Some(folder) => Ok(Reached::of(&*folder).await),
            None => self.reach(data, folders).await,
        }
    }

    /// Whether an option or a setting names the table.
    pub(crate) fn is_named(&self) -> bool {
        let options = [&self.table, &self.bucket, &self.endpoint];
        options.into_iter().any(Option::is_some) || Environment.get("A2A_TABLE").is_some()
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
    /// The data folder that this program has opened.
    folder: Option<Box<dyn OpenFolder>>,
}

impl ReachedTable {
    /// Whether nobody else uses the table.
    pub(crate) const fn is_ours(&self) -> bool {
        self.folder.is_some()
    }

    /// Stops the embedded services of a data folder, if there are any.
    pub(crate) async fn stop(self) {
        if let Some(folder) = self.folder {
            folder.stop().await;
        }
    }
}

impl Table {
    /// Opens the table. `may_make` makes a data folder that does not exist.
    ///
    /// # Errors
    /// [`DeploymentError`] when a name is missing or the data folder cannot be used.
    pub(crate) async fn reach(
        &self,
        may_make: bool,
        folders: &dyn DataFolders,
    ) -> Result<ReachedTable, DeploymentError> {
        let is_elsewhere = self.table.is_some() || self.endpoint.is_some();
        let Some(path) = data_folder(self.data.as_deref(), is_elsewhere, folders)? else {
            let endpoints = self.endpoint.as_ref().map(Endpoints::at);
            let clients = AwsClients::connect(&endpoints.unwrap_or_default()).await;
            let table = resource_name(self.table.as_ref(), "table", "A2A_TABLE")?;
            return Ok(ReachedTable {
                table: DynamoTable::new(clients.dynamodb, table),
                folder: None,
            });
        };
        let folder = open(folders, path, may_make).await?;
        Ok(ReachedTable {
            table: table_in(&*folder).await,
            folder: Some(folder),
        })
    }

    /// Opens the table, also beside a running local agent.
    ///
    /// # Errors
    /// Those of [`Table::reach`].
    pub(crate) async fn reach_beside(
        &self,
        folders: &dyn DataFolders,
    ) -> Result<ReachedTable, DeploymentError> {
        let is_elsewhere = self.table.is_some() || self.endpoint.is_some();
        let path = data_folder(self.data.as_deref(), is_elsewhere, folders)?;
        match path.map(|path| folders.beside(path)).transpose()?.flatten() {
            Some(folder) => Ok(ReachedTable {
                table: table_in(&*folder).await,
                folder: None,
            }),
            None => self.reach(false, folders).await,
        }
    }
}

async fn table_in(folder: &dyn OpenFolder) -> DynamoTable {
    let clients = AwsClients::connect(folder.endpoints()).await;
    DynamoTable::new(clients.dynamodb, folder.names().0)
}

/// The data folder that a command acts on: that of its option `data`, or the one before it.
fn data_folder<'a>(
    data: Option<&'a Path>,
    is_elsewhere: bool,
    folders: &'a dyn DataFolders,
) -> Result<Option<&'a Path>, DeploymentError> {
    match folders.data() {
        Some(_) if data.is_none() && is_elsewhere => Err(DeploymentError::TwoPlaces),
        before => Ok(data.or(before)),
    }
}

/// Without the check, a misspelt name would make an empty folder and report that nothing is
/// left.
async fn open(
    folders: &dyn DataFolders,
    path: &Path,
    may_make: bool,
) -> Result<Box<dyn OpenFolder>, DeploymentError> {
    let folder = folders.open(path, may_make).await?;
    folder.ok_or_else(|| DeploymentError::NoFolder(path.to_owned()))
}

/// The name of the table or the bucket. There is no default, since the command would
/// find no data under a wrong name and report that nothing is left.
fn resource_name(
    value: Option<&String>,
    what: &'static str,
    setting: &'static str,
) -> Result<String, DeploymentError> {
    let name = value.cloned().or_else(|| Environment.get(setting));
    name.ok_or(DeploymentError::Where { what, setting })
}
