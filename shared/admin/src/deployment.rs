//! Opens the table and the bucket for the operator's commands.

use crate::output::CommandError;
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use async_trait::async_trait;
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
    ) -> Result<Option<Box<dyn OpenFolder>>, CommandError>;

    /// Where the data of the folder answers, if a running local agent uses it.
    ///
    /// # Errors
    /// When it cannot be read.
    fn beside(&self, folder: &Path) -> Result<Option<Endpoints>, CommandError>;

    /// The names of the table and of the bucket in each folder.
    fn names(&self) -> (&'static str, &'static str);

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

    /// Closes it.
    async fn stop(self: Box<Self>);

    /// Closes it after an erasure, and removes what it still holds of the erased data.
    ///
    /// # Errors
    /// When something may be left.
    async fn stop_and_clean_up(self: Box<Self>) -> Result<(), CommandError>;
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
    Folder(#[from] CommandError),
}

/// What a command does with a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderUse {
    /// No other program may use the folder.
    Alone,
    /// No other program may use the folder; one that does not exist is made.
    Make,
    /// It also works beside a running local agent.
    Beside,
}

/// The opened table, and the bucket unless a command has no use for it.
#[derive(Debug)]
pub(crate) struct Reached<B = S3Blobs> {
    pub(crate) table: DynamoTable,
    pub(crate) blobs: B,
    /// The data folder, if this program has opened it: nobody else uses the table.
    pub(crate) folder: Option<Box<dyn OpenFolder>>,
}

impl<B> Reached<B> {
    /// Stops the embedded services of a data folder, if there are any.
    pub(crate) async fn stop(self) {
        if let Some(folder) = self.folder {
            folder.stop().await;
        }
    }
}

impl Reached {
    /// Tasks, with their large values.
    pub(crate) fn records(&self) -> Records {
        Records::new(Arc::new(self.table.clone())).with_blobs(Arc::new(self.blobs.clone()))
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
        folder_use: FolderUse,
        folders: &dyn DataFolders,
    ) -> Result<Reached, DeploymentError> {
        let local = self.open(data, folder_use, folders).await?;
        let (table, bucket) = local.as_ref().map(|_| folders.names()).unzip();
        let table = resource_name(table, self.table.as_ref(), "table", "A2A_TABLE")?;
        let bucket = resource_name(bucket, self.bucket.as_ref(), "bucket", "A2A_BUCKET")?;
        let (url, s3) = (self.endpoint.as_ref(), self.s3_endpoint.as_ref());
        let remote = || (endpoints(url, s3), None);
        let (endpoints, folder) = local.unwrap_or_else(remote);
        let clients = AwsClients::connect(&endpoints).await;
        Ok(Reached {
            table: DynamoTable::new(clients.dynamodb, table),
            blobs: S3Blobs::new(clients.s3, bucket),
            folder,
        })
    }

    /// Opens the data folder that a command acts on: that of its option `data`, or the one before
    /// it. Where it answers, and the folder if nobody else has it.
    async fn open(
        &self,
        data: Option<&Path>,
        folder_use: FolderUse,
        folders: &dyn DataFolders,
    ) -> Result<Option<(Endpoints, Option<Box<dyn OpenFolder>>)>, DeploymentError> {
        let path = match folders.data() {
            Some(_) if data.is_none() && self.has_options() => {
                return Err(DeploymentError::TwoPlaces);
            }
            before => data.or(before),
        };
        let Some(path) = path else { return Ok(None) };
        if folder_use == FolderUse::Beside
            && let Some(endpoints) = folders.beside(path)?
        {
            return Ok(Some((endpoints, None)));
        }
        // Without the check, a misspelt name would make an empty folder and report that nothing
        // is left.
        let folder = folders.open(path, folder_use == FolderUse::Make).await?;
        let folder = folder.ok_or_else(|| DeploymentError::NoFolder(path.to_owned()))?;
        Ok(Some((folder.endpoints().clone(), Some(folder))))
    }

    /// The usual data folder, if neither an option nor a setting names a place.
    pub(crate) fn usual(&self, folders: &dyn DataFolders) -> Option<PathBuf> {
        let is_named = self.has_options()
            || Environment.get("A2A_TABLE").is_some()
            || folders.data().is_some();
        (!is_named).then(|| folders.usual())
    }

    fn has_options(&self) -> bool {
        let options = [&self.table, &self.bucket, &self.endpoint];
        options.into_iter().any(Option::is_some)
    }
}

/// The endpoints of an emulator, whose S3 may be elsewhere; those of AWS without one.
#[must_use]
pub fn endpoints(url: Option<&String>, s3: Option<&String>) -> Endpoints {
    Endpoints {
        dynamodb: url.cloned(),
        s3: s3.or(url).cloned(),
        keys: None,
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

impl Table {
    /// Opens the table.
    ///
    /// # Errors
    /// [`DeploymentError`] when a name is missing or the data folder cannot be used.
    pub(crate) async fn reach(
        &self,
        folder_use: FolderUse,
        folders: &dyn DataFolders,
    ) -> Result<Reached<()>, DeploymentError> {
        let deployment = self.deployment();
        let local = deployment.open(self.data.as_deref(), folder_use, folders);
        let local = local.await?;
        let table = local.as_ref().map(|_| folders.names().0);
        let table = resource_name(table, self.table.as_ref(), "table", "A2A_TABLE")?;
        let (endpoints, folder) =
            local.unwrap_or_else(|| (endpoints(self.endpoint.as_ref(), None), None));
        let clients = AwsClients::connect(&endpoints).await;
        Ok(Reached {
            table: DynamoTable::new(clients.dynamodb, table),
            blobs: (),
            folder,
        })
    }

    /// The deployment of the table, without the bucket.
    pub(crate) fn deployment(&self) -> Deployment {
        Deployment {
            table: self.table.clone(),
            endpoint: self.endpoint.clone(),
            ..Deployment::default()
        }
    }
}

/// The name of the table or the bucket: that of data folders, or the one of an option or a
/// setting. There is no default, since the command would find no data under a wrong name and
/// report that nothing is left.
fn resource_name(
    local: Option<&str>,
    option: Option<&String>,
    what: &'static str,
    setting: &'static str,
) -> Result<String, DeploymentError> {
    let name = local.map(str::to_owned).or_else(|| option.cloned());
    let name = name.or_else(|| Environment.get(setting));
    name.ok_or(DeploymentError::Where { what, setting })
}
