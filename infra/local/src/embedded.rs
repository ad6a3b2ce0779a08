//! DynamoDB and S3 inside this process, on loopback ports.
//!
//! With a data folder everything survives a restart: `dynamodb.sqlite` holds
//! the table, `s3/` the objects. Without one the table is in memory and the
//! objects lie in a folder that goes with the process.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::create_table;
use dynoxide::Database;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// The name of the table. (Stream clients refuse shard ids under 28
/// characters, and the shard id is made of the table's name: at least 11.)
pub const TABLE: &str = "a2a-lambda-local";

/// The name of the bucket.
pub const BUCKET: &str = "a2a-lambda-local";

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Why the embedded services do not start.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The data folder cannot be used.
    #[error("failed to use the data folder `{}`: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No loopback port can be listened on.
    #[error("failed to listen on a loopback port: {0}")]
    Listen(#[from] std::io::Error),
    /// The database does not open.
    #[error("failed to open the database: {0}")]
    Database(#[from] dynoxide::DynoxideError),
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

/// The running services. Dropping it stops them at once, [`Embedded::stop`]
/// lets requests finish.
#[derive(Debug)]
pub struct Embedded {
    endpoints: Endpoints,
    stop: Option<oneshot::Sender<()>>,
    expiry: Expiry,
    dynamodb: JoinHandle<()>,
    s3: JoinHandle<()>,
    /// A folder of ours that goes with the services.
    passing: Option<PathBuf>,
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
        let (objects, passing) = match data {
            Some(folder) => (folder.join("s3"), None),
            None => {
                let folder = passing_folder(addresses.1);
                (folder.clone(), Some(folder))
            }
        };
        folder(&objects.join(BUCKET))?;
        let database = match data {
            Some(folder) => Database::new(&folder.join("dynamodb.sqlite").to_string_lossy())?,
            None => Database::memory()?,
        };
        let service = object_store(&objects)?;
        let (stop, stopped) = oneshot::channel();
        let embedded = Self {
            endpoints: Endpoints {
                dynamodb: Some(format!("http://{}", addresses.0)),
                s3: Some(format!("http://{}", addresses.1)),
            },
            stop: Some(stop),
            expiry: Expiry(database.clone()),
            dynamodb: tokio::spawn(serve_dynamodb(listeners.0, database, stopped)),
            s3: tokio::spawn(serve_s3(listeners.1, service)),
            passing,
        };
        let clients = AwsClients::connect(&embedded.endpoints).await;
        create_table(&clients.dynamodb, TABLE).await?;
        Ok(embedded)
    }

    /// Where the services answer.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// What removes expired items from the table.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Stops the services and waits for the requests that run. The data folder
    /// can be used again afterwards.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            // The receiver is gone only if the service has ended by itself.
            let _ = stop.send(());
        }
        let _ = (&mut self.dynamodb).await;
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.dynamodb.abort();
        self.s3.abort();
        if let Some(folder) = self.passing.take() {
            // What cannot be removed lies in the folder for passing files.
            let _ = std::fs::remove_dir_all(folder);
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

fn folder(path: &Path) -> Result<(), EmbeddedError> {
    crate::folder::make_private(path).map_err(|source| EmbeddedError::Folder {
        path: path.to_owned(),
        source,
    })
}

/// A folder that no other running process uses: our port is ours alone.
fn passing_folder(address: SocketAddr) -> PathBuf {
    let folder = std::env::temp_dir().join(format!(
        "a2a-lambda-{}-{}",
        std::process::id(),
        address.port()
    ));
    // Left over from a killed process, if it is there at all.
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn object_store(root: &Path) -> Result<S3Service, EmbeddedError> {
    let files =
        FileSystem::new(root).map_err(|error| EmbeddedError::Objects(format!("{error:?}")))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single("test", "test"));
    Ok(service.build())
}

async fn serve_dynamodb(listener: TcpListener, database: Database, stop: oneshot::Receiver<()>) {
    let stopped = async {
        // A dropped sender stops it as well.
        let _ = stop.await;
    };
    let served = dynoxide::server::serve_with_shutdown(listener, database, stopped).await;
    if let Err(error) = served {
        tracing::error!("the embedded DynamoDB has ended: {error}");
    }
}

async fn serve_s3(listener: TcpListener, service: S3Service) {
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!("the embedded S3 missed a connection: {error}");
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!("a connection of the embedded S3 stays slow: {error}");
        }
        let service = service.clone();
        connections.spawn(async move {
            let served = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
            if let Err(error) = served {
                tracing::debug!("a connection of the embedded S3 broke: {error}");
            }
        });
    }
}
