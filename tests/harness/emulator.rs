//! Starts DynamoDB and S3 emulators for tests, or connects to running ones.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::contract::Stores;
use a2a_lambda::store::dynamodb::{self, DynamoTable, create_table};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::{S3Blobs, create_bucket};
use a2a_local::embedded::{BUCKET, Embedded, EmbeddedError, TABLE};
use std::net::SocketAddr;
use std::sync::Arc;

/// Table and bucket in an emulator, and the handle that keeps it running.
#[derive(Debug)]
pub struct Emulator {
    /// Clients of the emulator.
    pub clients: AwsClients,
    /// Tasks and threads in its table.
    pub records: Records,
    /// Bytes in its bucket.
    pub blobs: S3Blobs,
    /// The address of its DynamoDB.
    pub dynamodb: SocketAddr,
    /// The address of its S3.
    pub s3: SocketAddr,
    /// Keeps the services inside this process running.
    embedded: Option<Embedded>,
}

/// The reason why no emulator is available.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The embedded services do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The table or the bucket cannot be created.
    #[error("failed to create table and bucket: {0}")]
    SetUp(#[from] StoreError),
    /// The endpoint is not a URL with host and port.
    #[error("endpoint `{0}` is not `http://host:port`")]
    Endpoint(String),
}

/// The URL of an emulator that runs outside, from `AWS_ENDPOINT_URL`.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name an emulator"
)]
pub fn outside() -> Option<String> {
    std::env::var("AWS_ENDPOINT_URL")
        .ok()
        .filter(|url| !url.is_empty())
}

impl Emulator {
    /// The emulator at `AWS_ENDPOINT_URL`; without that variable an emulator in this
    /// process, in memory. (With the feature `docker-tests` and no `AWS_ENDPOINT_URL` the
    /// suite also runs against LocalStack, see `emulator/docker.rs`.)
    ///
    /// # Errors
    /// [`EmulatorError`] when it does not start, or rejects the table or the bucket.
    pub async fn start() -> Result<Self, EmulatorError> {
        match outside() {
            Some(url) => Self::at(&url).await,
            None => Self::alone().await,
        }
    }

    /// An emulator in this process, even if another is configured. It is for tests that
    /// read a whole table, which no other test may use at the same time.
    ///
    /// # Errors
    /// [`EmulatorError`] when it does not start.
    pub async fn alone() -> Result<Self, EmulatorError> {
        let embedded = Embedded::start(None).await?;
        let endpoints = embedded.endpoints().clone();
        let clients = AwsClients::connect(&endpoints).await;
        Self::of(clients, &endpoints, Some(embedded)).await
    }

    /// The emulator at `url`. Creates table and bucket if they do not exist.
    ///
    /// # Errors
    /// [`EmulatorError`] when it rejects the table or the bucket.
    pub async fn at(url: &str) -> Result<Self, EmulatorError> {
        let endpoints = Endpoints::at(url);
        let clients = AwsClients::connect(&endpoints).await;
        create_table(&clients.dynamodb, TABLE).await?;
        create_bucket(&clients.s3, BUCKET).await?;
        Self::of(clients, &endpoints, None).await
    }

    async fn of(
        clients: AwsClients,
        endpoints: &Endpoints,
        embedded: Option<Embedded>,
    ) -> Result<Self, EmulatorError> {
        Ok(Self {
            records: dynamodb::records(clients.dynamodb.clone(), TABLE)
                .with_blobs(Arc::new(S3Blobs::new(clients.s3.clone(), BUCKET))),
            blobs: S3Blobs::new(clients.s3.clone(), BUCKET),
            clients,
            dynamodb: address(endpoints.dynamodb.as_deref()).await?,
            s3: address(endpoints.s3.as_deref()).await?,
            embedded,
        })
    }

    /// Removes what has expired from a table in this process. Outside, the service does so.
    ///
    /// # Errors
    /// [`EmulatorError`] when the database fails.
    pub async fn clean_up(&self) -> Result<(), EmulatorError> {
        if let Some(embedded) = &self.embedded {
            embedded.expiry().clean().await?;
        }
        Ok(())
    }

    /// Its table.
    #[must_use]
    pub fn table(&self) -> DynamoTable {
        DynamoTable::new(self.clients.dynamodb.clone(), TABLE)
    }

    /// Its stores, in the form that the store contract takes.
    #[must_use]
    pub fn stores(&self) -> Stores {
        Stores {
            records: self.records.clone(),
            deliveries: self.records.deliveries(),
            sweep: self.records.sweep(),
            blobs: Arc::new(self.blobs.clone()),
        }
    }
}

async fn address(url: Option<&str>) -> Result<SocketAddr, EmulatorError> {
    let url = url.unwrap_or_default();
    let none = || EmulatorError::Endpoint(url.to_owned());
    let host = url.strip_prefix("http://").ok_or_else(none)?;
    let host = host.trim_end_matches('/');
    let mut found = tokio::net::lookup_host(host).await.map_err(|_| none())?;
    found.next().ok_or_else(none)
}

/// A number that is unique among all runs against the same emulator.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a test run needs a unique name, independent of the product's clock"
)]
pub fn run() -> u128 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    (nanos << 32) | u128::from(std::process::id())
}
