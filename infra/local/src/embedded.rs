//! DynamoDB and S3 inside this process, on loopback ports, for programs that
//! have the credentials of this run.
//!
//! With a data folder everything survives a restart: `dynamodb.sqlite` holds
//! the table, `s3/` the objects. Without one the table is in memory and the
//! objects lie in a folder that goes with the process.

use crate::accept::{Limits, accept};
use crate::dynamodb::DynamoDoor;
use crate::files::tidy;
use crate::folder::{DataFolder, FolderError, make_new, make_private, private_file};
use crate::keys;
use crate::objects::ObjectDoor;
use a2a_lambda::engine::{Ids as _, RandomIds};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::create_table;
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The name of the table. (Stream clients refuse shard ids under 28
/// characters, and the shard id is made of the table's name: at least 11.)
pub const TABLE: &str = "a2a-lambda-local";

/// The name of the bucket.
pub const BUCKET: &str = "a2a-lambda-local";

/// The file of the table, in the data folder.
pub(crate) const DATABASE: &str = "dynamodb.sqlite";

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// Longer than the SDKs keep a connection that they do not use (90 s): one that
/// they take up again is still there.
const LIMITS: Limits = Limits {
    connections: 1024,
    headers: Duration::from_secs(120),
};

/// Why the embedded services do not start.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The data folder cannot be used.
    #[error("failed to use the data folder `{}`: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: FolderError,
    },
    /// What names objects that are gone stays.
    #[error("failed to tidy up the data folder: {0}")]
    Tidy(#[source] std::io::Error),
    /// No loopback port can be listened on.
    #[error("failed to listen on a loopback port: {0}")]
    Listen(#[from] std::io::Error),
    /// The database does not open.
    #[error("failed to open the database: {0}")]
    Database(#[from] DynoxideError),
    /// What has expired cannot be removed.
    #[error("failed to remove what has expired: {0}")]
    Expiry(String),
    /// The object store does not open.
    #[error("failed to open the object store: {0}")]
    Objects(String),
    /// The table cannot be made.
    #[error("failed to make the table: {0}")]
    Table(#[from] StoreError),
}

/// The running services. Dropping it stops them soon; after
/// [`Embedded::stop`] nothing of them runs.
#[derive(Debug)]
pub struct Embedded {
    endpoints: Endpoints,
    /// Dropping it tells the services to stop.
    stop: Option<watch::Sender<()>>,
    expiry: Expiry,
    services: Vec<JoinHandle<()>>,
    /// Let go when everything else is closed.
    place: Place,
}

/// Where everything lies.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    keeper: Keeper,
}

/// What a folder is ours by.
#[derive(Debug)]
enum Keeper {
    /// The lock of a data folder.
    Lock { _held: DataFolder },
    /// Its name, which nobody else knows. It goes with us.
    Name { _held: Passing },
}

impl Place {
    /// The data folder, or one that keeps the objects of this run alone.
    fn take(data: Option<&Path>) -> Result<Self, EmbeddedError> {
        let folder = data.map_or_else(passing_folder, Path::to_owned);
        let failed = |source| EmbeddedError::Folder {
            path: folder.clone(),
            source,
        };
        let keeper = if data.is_some() {
            Keeper::Lock {
                _held: DataFolder::take(&folder).map_err(failed)?,
            }
        } else {
            make_new(&folder).map_err(|error| failed(error.into()))?;
            Keeper::Name {
                _held: Passing(folder.clone()),
            }
        };
        let objects = folder.join("s3").join(BUCKET);
        make_private(&objects).map_err(|error| failed(error.into()))?;
        Ok(Self { folder, keeper })
    }

    /// The table, if it is kept: its file and those beside it, which get the
    /// same mode, are its owner's alone.
    fn database(&self) -> Result<Database, EmbeddedError> {
        let Some(path) = self.kept() else {
            return Ok(Database::memory()?);
        };
        private_file(&path).map_err(|error| EmbeddedError::Folder {
            path: self.folder.clone(),
            source: error.into(),
        })?;
        Ok(Database::new(&path.to_string_lossy())?)
    }

    /// The file of the table, if it is kept.
    fn kept(&self) -> Option<PathBuf> {
        matches!(self.keeper, Keeper::Lock { .. }).then(|| self.folder.join(DATABASE))
    }
}

/// A folder that goes with its last user.
#[derive(Debug)]
struct Passing(PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for passing files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Native TTL of the embedded table. On AWS it is the service that removes what
/// has expired; here it is whoever asks for it.
#[derive(Clone)]
pub struct Expiry(Database);

impl Expiry {
    /// Removes the items whose time is up by this machine's clock, and says how
    /// many they were. The stream tells of them as on AWS.
    ///
    /// # Errors
    /// [`EmbeddedError::Expiry`] when the database fails.
    pub async fn clean(&self) -> Result<usize, EmbeddedError> {
        let database = self.0.clone();
        // It works on the disk, and lets requests pass between its pages.
        let cleaned = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        match cleaned {
            Ok(removed) => removed.map_err(|error| EmbeddedError::Expiry(error.to_string())),
            Err(died) => Err(EmbeddedError::Expiry(died.to_string())),
        }
    }
}

impl std::fmt::Debug for Expiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expiry").finish_non_exhaustive()
    }
}

impl Embedded {
    /// Starts both services, with table and bucket in place. `data` is the
    /// folder to keep everything in, made if absent.
    ///
    /// # Errors
    /// [`EmbeddedError`] when the folder, a port or the database cannot be used.
    pub async fn start(data: Option<&Path>) -> Result<Self, EmbeddedError> {
        let listeners = (listen()?, listen()?);
        let addresses = (listeners.0.local_addr()?, listeners.1.local_addr()?);
        let place = Place::take(data)?;
        let objects = place.folder.join("s3");
        let database = place.database()?;
        let keys = Arc::new(keys::fresh());
        let files = ObjectDoor::new(&objects, Arc::clone(&keys)).map_err(EmbeddedError::Objects)?;
        let table = DynamoDoor::new(database.clone(), Arc::clone(&keys));
        let (stop, stopped) = watch::channel(());
        let over = |mut stopped: watch::Receiver<()>| async move {
            // Nothing is ever sent: the sender is gone.
            let _ = stopped.changed().await;
        };
        let embedded = Self {
            endpoints: Endpoints {
                dynamodb: Some(format!("http://{}", addresses.0)),
                s3: Some(format!("http://{}", addresses.1)),
                keys: Some(keys.as_ref().clone()),
            },
            stop: Some(stop),
            expiry: Expiry(database),
            services: vec![
                tokio::spawn(accept(
                    listeners.0,
                    LIMITS,
                    move |request| table.clone().answer(request),
                    over(stopped.clone()),
                )),
                tokio::spawn(accept(
                    listeners.1,
                    LIMITS,
                    move |request| files.clone().answer(request),
                    over(stopped),
                )),
            ],
            place,
        };
        let clients = AwsClients::connect(&embedded.endpoints).await;
        create_table(&clients.dynamodb, TABLE).await?;
        Ok(embedded)
    }

    /// Where the services answer, and the credentials they take.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// What removes expired items from the table.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Stops the services and waits until nothing of them runs. The data folder
    /// can be used again afterwards.
    pub async fn stop(mut self) {
        self.end().await;
    }

    async fn end(&mut self) {
        drop(self.stop.take());
        for service in &mut self.services {
            // One that died has stopped as well.
            let _ = service.await;
        }
    }

    /// Stops the services and removes from the data folder what still names
    /// items and objects that are gone: the records of the stream, which the
    /// library keeps for ever, pages of the database that are free, and files
    /// beside the objects. The next start needs no record: it sweeps.
    ///
    /// # Errors
    /// [`EmbeddedError`] when something of it may be left.
    pub async fn stop_and_tidy(mut self) -> Result<(), EmbeddedError> {
        self.end().await;
        let Some(database) = self.place.kept() else {
            return Ok(());
        };
        let database = Storage::new(&database.to_string_lossy())?;
        database
            .conn()
            .execute("DELETE FROM _stream_records", [])
            .map_err(DynoxideError::from)?;
        database.vacuum()?;
        tidy(&self.place.folder.join("s3"), BUCKET).map_err(EmbeddedError::Tidy)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        for service in &self.services {
            service.abort();
        }
    }
}

/// A loopback port. Accepted sockets inherit that they send at once; without
/// it a read of an object waits up to 44 ms for the client's acknowledgement.
fn listen() -> Result<TcpListener, std::io::Error> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    socket.listen(BACKLOG)
}

/// A folder whose name nobody can know before.
fn passing_folder() -> PathBuf {
    std::env::temp_dir().join(format!("a2a-lambda-{:032x}", RandomIds.next()))
}
