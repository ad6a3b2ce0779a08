//! Runs DynamoDB and S3 in this process, on loopback ports. Only programs with the
//! credentials of this run can use them.
//!
//! A data folder keeps the data over restarts: `dynamodb.sqlite` holds the table,
//! `s3/` the objects. Without one the table is in memory, and the objects are in a
//! temporary folder that the process removes at its end.
//!
//! - `dynamodb`, `object_service`: the two services, for programs with the credentials
//! - `object_files`: the objects as files of the data folder
//! - `host`, `sigv4`: which requests the services accept
//! - `stream`: the stream of the table

mod dynamodb;
mod host;
mod object_files;
mod object_service;
mod sigv4;
pub(crate) mod stream;

use crate::accept::{ConnectionLimits, accept};
use crate::folder::{DataFolder, FolderError, make_new, make_private, private_file};
use crate::traces::FOLDER;
use a2a_lambda::engine::{Ids as _, RandomIds};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, EmulatorKeys, Endpoints};
use a2a_lambda::store::dynamodb::{DynamoTable, create_table};
use a2a_lambda_admin::{CommandError, DataFolders, OpenFolder};
use async_trait::async_trait;
use dynamodb::DynamoService;
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError};
use object_files::collect_unreferenced;
use object_service::ObjectService;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The name of the table. It needs at least 11 characters: the database library makes
/// the ids of stream shards of it, and clients refuse ids under 28 characters.
pub const TABLE: &str = "a2a-lambda-local";

/// The name of the bucket.
pub const BUCKET: &str = "a2a-lambda-local";

/// The file in the data folder that holds the table.
const DATABASE: &str = "dynamodb.sqlite";
/// The data folder of a local agent that is started without `--data`.
pub(crate) const DATA: &str = ".a2a";

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// The AWS SDKs keep an idle connection for 90 s. The server keeps it longer, so that a
/// client never reuses a connection which the server has closed.
pub(crate) const LIMITS: ConnectionLimits = ConnectionLimits {
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
        /// The cause.
        source: FolderError,
    },
    /// Traces of removed objects may be left.
    #[error("failed to tidy up the data folder: {0}")]
    CleanUp(#[source] std::io::Error),
    /// There is no free loopback port.
    #[error("failed to listen on a loopback port: {0}")]
    Listen(#[from] std::io::Error),
    /// The database cannot be opened.
    #[error("failed to open the database: {0}")]
    Database(#[from] DynoxideError),
    /// Expired items cannot be removed.
    #[error("failed to remove what has expired: {0}")]
    Expiry(String),
    /// The object store cannot be opened.
    #[error("failed to open the object store: {0}")]
    Objects(String),
    /// The table cannot be created.
    #[error("failed to make the table: {0}")]
    Table(#[from] StoreError),
}

/// The running services. Dropping this value stops them soon; [`Embedded::stop`] waits
/// until they have ended.
#[derive(Debug)]
pub struct Embedded {
    endpoints: Endpoints,
    keys: Arc<EmulatorKeys>,
    /// A value stops the services.
    stop: watch::Sender<()>,
    expiry: Expiry,
    services: JoinSet<()>,
    /// The last field, so that the lock is released after the services are gone.
    data_place: DataPlace,
}

/// The folder with all data.
#[derive(Debug)]
struct DataPlace {
    path: PathBuf,
    /// Keeps other programs out of a data folder. Without it the folder is a temporary one for the
    /// objects of this run, with a random name.
    lock: Option<DataFolder>,
}

impl DataPlace {
    /// Opens the data folder, or makes a temporary one.
    fn take(data: Option<&Path>) -> Result<Self, FolderError> {
        let (path, lock) = match data {
            Some(folder) => (folder.to_owned(), Some(DataFolder::take(folder)?)),
            None => {
                let name = format!("a2a-lambda-{:032x}", RandomIds.next());
                let folder = std::env::temp_dir().join(name);
                make_new(&folder)?;
                (folder, None)
            }
        };
        let folder = Self { path, lock };
        make_private(&folder.objects().join(BUCKET))?;
        Ok(folder)
    }

    /// Tells other programs of this user where the services answer.
    fn leave_note(
        &mut self,
        (table, files): (SocketAddr, SocketAddr),
        keys: &EmulatorKeys,
    ) -> Result<(), std::io::Error> {
        let note = format!("{table}\n{files}\n{}\n{}", keys.id, keys.secret);
        self.lock
            .as_mut()
            .map_or(Ok(()), |lock| lock.leave_note(&note))
    }

    /// The folder with the buckets.
    fn objects(&self) -> PathBuf {
        self.path.join("s3")
    }

    /// The path of the table's file; `None` if the table is in memory.
    fn table(&self) -> Option<PathBuf> {
        self.lock.as_ref().map(|_| self.path.join(DATABASE))
    }
}

impl Drop for DataPlace {
    fn drop(&mut self) {
        if self.lock.is_none() {
            // If this fails, the operating system cleans its folder for temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes expired items from the embedded table. On AWS, DynamoDB does this itself
/// (its TTL); here the program has to call [`Expiry::clean`].
#[derive(Clone)]
pub struct Expiry(Database);

impl Expiry {
    /// Removes the items that have expired by this machine's clock, and returns their
    /// number. The table's stream records each removal, as on AWS.
    ///
    /// # Errors
    /// [`EmbeddedError::Expiry`] when the database fails.
    #[expect(
        clippy::disallowed_methods,
        reason = "it blocks on the disk for one sweep, and is not part of a turn"
    )]
    pub async fn clean(&self) -> Result<usize, EmbeddedError> {
        let database = self.0.clone();
        // Between its pages it lets other requests run.
        let result = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        match result {
            Ok(count) => count.map_err(|error| EmbeddedError::Expiry(error.to_string())),
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
    /// Starts both services, and creates the table and the bucket if they are missing.
    /// `data` is the data folder, which is made if it is missing.
    ///
    /// # Errors
    /// [`EmbeddedError`] when the folder, a port or the database cannot be used.
    pub async fn start(data: Option<&Path>) -> Result<Self, EmbeddedError> {
        let listeners = (listen()?, listen()?);
        let addresses = (listeners.0.local_addr()?, listeners.1.local_addr()?);
        let fault = |source| EmbeddedError::Folder {
            path: data.map_or_else(std::env::temp_dir, Path::to_owned),
            source,
        };
        let mut data_place = DataPlace::take(data).map_err(fault)?;
        let path = match data_place.table() {
            Some(path) => {
                // Only the owner can read it; `SQLite` gives its side files the same mode.
                private_file(&path).map_err(|error| fault(error.into()))?;
                path.to_string_lossy().into_owned()
            }
            // In memory, under a name by which a second connection finds it.
            None => format!("file:{:032x}?mode=memory&cache=shared", RandomIds.next()),
        };
        let database = Database::new(&path)?;
        index_stream(&Storage::new(&path)?)?;
        // The services accept no others.
        let keys = Arc::new(EmulatorKeys {
            id: format!("A2ALOCAL{:032X}", RandomIds.next()),
            secret: fresh_secret(),
        });
        data_place.leave_note(addresses, &keys)?;
        let files = ObjectService::new(&data_place.objects(), Arc::clone(&keys));
        let files = files.map_err(EmbeddedError::Objects)?;
        let table = DynamoService::new(database.clone(), Arc::clone(&keys));
        let (stop, receiver) = watch::channel(());
        let over = |mut receiver: watch::Receiver<()>| async move {
            // It also returns when the sender is dropped.
            let _ = receiver.changed().await;
        };
        let mut services = JoinSet::new();
        let answer = move |request| table.clone().answer(request);
        services.spawn(accept(listeners.0, LIMITS, answer, over(receiver.clone())));
        let answer = move |request| files.clone().answer(request);
        services.spawn(accept(listeners.1, LIMITS, answer, over(receiver)));
        let embedded = Self {
            endpoints: Endpoints {
                dynamodb: Some(format!("http://{}", addresses.0)),
                s3: Some(format!("http://{}", addresses.1)),
                keys: Some(keys.as_ref().clone()),
            },
            keys,
            stop,
            expiry: Expiry(database),
            services,
            data_place,
        };
        let clients = AwsClients::connect(&embedded.endpoints).await;
        create_table(&clients.dynamodb, TABLE).await?;
        let form = DynamoTable::new(clients.dynamodb, TABLE).claim_form().await;
        form.map_err(|error| fault(FolderError::Form(error)))?;
        Ok(embedded)
    }

    /// The URLs of the services, and the credentials that they accept.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The settings of a function that uses the services.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let endpoint = |url: &Option<String>| url.clone().unwrap_or_default();
        vec![
            ("A2A_TABLE", TABLE.to_owned()),
            ("A2A_BUCKET", BUCKET.to_owned()),
            (
                "AWS_ENDPOINT_URL_DYNAMODB",
                endpoint(&self.endpoints.dynamodb),
            ),
            ("AWS_ENDPOINT_URL_S3", endpoint(&self.endpoints.s3)),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", self.keys.id.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.keys.secret.clone()),
        ]
    }

    /// The folder with all data.
    pub(crate) fn folder(&self) -> &Path {
        &self.data_place.path
    }

    /// A handle with which expired items can be removed.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Stops the services and waits until they have ended. Afterwards another program
    /// can use the data folder.
    pub async fn stop(mut self) {
        self.end().await;
    }

    async fn end(&mut self) {
        self.stop.send_replace(());
        // A service that panicked has ended too.
        while self.services.join_next().await.is_some() {}
    }

    /// Stops the services and removes the traces of removed items and objects from the
    /// data folder: the records of the stream, which the library never removes, free
    /// pages of the database, side files of objects, and what turns did. The next start does not need
    /// the stream's records, since it sweeps.
    ///
    /// # Errors
    /// [`EmbeddedError`] when traces may be left.
    pub async fn stop_and_clean_up(mut self) -> Result<(), EmbeddedError> {
        self.end().await;
        let Some(path) = self.data_place.table() else {
            return Ok(());
        };
        let database = Storage::new(&path.to_string_lossy())?;
        database
            .conn()
            .execute("DELETE FROM _stream_records", [])
            .map_err(DynoxideError::from)?;
        database.vacuum()?;
        // They hold what the erased tasks were asked, and nobody needs those of the others.
        let traces = path.with_file_name(FOLDER);
        if traces.exists() {
            fs::remove_dir_all(traces).map_err(EmbeddedError::CleanUp)?;
        }
        collect_unreferenced(&self.data_place.objects(), BUCKET).map_err(EmbeddedError::CleanUp)
    }
}

/// The data folders, for the commands of an operator.
#[derive(Debug, Clone, Default)]
pub struct LocalFolders {
    /// The option `--data` before the command.
    pub data: Option<PathBuf>,
}

#[async_trait]
impl DataFolders for LocalFolders {
    async fn open(
        &self,
        folder: &Path,
        may_make: bool,
    ) -> Result<Option<Box<dyn OpenFolder>>, CommandError> {
        if !may_make && !folder.join(DATABASE).is_file() {
            return Ok(None);
        }
        Ok(Some(Box::new(Embedded::start(Some(folder)).await?)))
    }

    fn beside(&self, folder: &Path) -> Result<Option<Endpoints>, CommandError> {
        let note = DataFolder::note(folder)?;
        Ok(note.as_deref().and_then(endpoints_of_note))
    }

    fn names(&self) -> (&'static str, &'static str) {
        (TABLE, BUCKET)
    }

    fn usual(&self) -> PathBuf {
        PathBuf::from(DATA)
    }

    fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }
}

/// The services of the local agent that left this note: its addresses and its credentials.
fn endpoints_of_note(note: &str) -> Option<Endpoints> {
    let mut lines = note.lines();
    let mut url = || Some(format!("http://{}", lines.next()?));
    let (dynamodb, s3) = (url(), url());
    let (id, secret) = (lines.next()?.to_owned(), lines.next()?.to_owned());
    Some(Endpoints {
        dynamodb,
        s3,
        keys: Some(EmulatorKeys { id, secret }),
    })
}

#[async_trait]
impl OpenFolder for Embedded {
    fn endpoints(&self) -> &Endpoints {
        self.endpoints()
    }

    async fn stop(self: Box<Self>) {
        Self::stop(*self).await;
    }

    async fn stop_and_clean_up(self: Box<Self>) -> Result<(), CommandError> {
        Ok(Self::stop_and_clean_up(*self).await?)
    }
}

/// Adds an index that the library does not have. Each write asks for the last number of the stream,
/// and each poll for the records behind one: without it both read all that was ever written.
fn index_stream(storage: &Storage) -> Result<(), DynoxideError> {
    const INDEX: &str = "CREATE INDEX IF NOT EXISTS stream_by_number \
         ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";
    storage.conn().execute(INDEX, [])?;
    Ok(())
}

/// 256 random bits.
pub(crate) fn fresh_secret() -> String {
    format!("{:032x}{:032x}", RandomIds.next(), RandomIds.next())
}

/// Listens on a free loopback port. Accepted sockets inherit `TCP_NODELAY`; without it
/// a read of an object waits up to 44 ms for the client's acknowledgement.
fn listen() -> Result<TcpListener, std::io::Error> {
    let socket = TcpSocket::new_v4()?;
    socket.set_nodelay(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::index_stream;
    use a2a_lambda_rows::each_row;
    use dynoxide::storage::Storage;

    #[test]
    fn a_write_and_a_poll_find_the_end_of_the_stream_by_an_index() {
        let storage = Storage::memory().unwrap();
        index_stream(&storage).unwrap();
        // As the library asks: for the last number, and for the records behind one.
        let number = "CAST(sequence_number AS INTEGER)";
        let of = "FROM _stream_records WHERE table_name = 'a'";
        let rows = [
            format!("SELECT COALESCE(MAX({number}), 0) + 1 {of}"),
            format!(
                "SELECT keys_json {of} AND shard_id = 'b' AND {number} > 3 ORDER BY {number} ASC LIMIT 4"
            ),
        ];
        each_row(rows, |sql| {
            let plan = format!("EXPLAIN QUERY PLAN {sql}");
            let plan = storage
                .conn()
                .query_row(&plan, [], |row| row.get::<_, String>(3));
            let plan = plan.unwrap();
            assert!(plan.contains("INDEX stream_by_number"), "{plan}");
        });
    }
}
