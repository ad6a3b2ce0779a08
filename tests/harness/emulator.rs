//! A DynamoDB and an S3 to test against, and the one rule about which.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::contract::Stores;
use a2a_lambda::store::dynamodb::{DynamoStore, create_table};
use a2a_lambda::store::s3::{S3Blobs, create_bucket};
use a2a_local::embedded::{BUCKET, Embedded, EmbeddedError, TABLE};
use std::net::SocketAddr;
use std::sync::Arc;

/// Table and bucket in an emulator, and what keeps it running.
#[derive(Debug)]
pub struct Emulator {
    /// Clients of it.
    pub clients: AwsClients,
    /// Tasks and threads in its table.
    pub records: DynamoStore,
    /// Bytes in its bucket.
    pub blobs: S3Blobs,
    /// Where its DynamoDB listens.
    pub dynamodb: SocketAddr,
    /// Where its S3 listens.
    pub s3: SocketAddr,
    /// Keeps the services inside this process running.
    _embedded: Option<Embedded>,
}

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The embedded services do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// Table or bucket cannot be made.
    #[error("failed to make table and bucket: {0}")]
    SetUp(#[from] StoreError),
    /// The endpoint is no URL of a host and port.
    #[error("`{0}` names no host and port")]
    Endpoint(String),
}

/// The emulator that was started outside, if there is one.
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
    /// The emulator at `AWS_ENDPOINT_URL`; without it one inside this process,
    /// in memory. (With the feature `docker-tests` and no `AWS_ENDPOINT_URL`
    /// the suite also runs against LocalStack, see `emulator/docker.rs`.)
    ///
    /// # Errors
    /// [`EmulatorError`] when it does not start or takes no table or bucket.
    pub async fn start() -> Result<Self, EmulatorError> {
        match outside() {
            Some(url) => Self::at(&url).await,
            None => Self::alone().await,
        }
    }

    /// One inside this process, always: for what looks at the whole of a table,
    /// in which no other test may be at work.
    ///
    /// # Errors
    /// [`EmulatorError`] when it does not start.
    pub async fn alone() -> Result<Self, EmulatorError> {
        let embedded = Embedded::start(None).await?;
        let endpoints = embedded.endpoints().clone();
        let clients = AwsClients::connect(&endpoints).await;
        Self::of(clients, &endpoints, Some(embedded)).await
    }

    /// The emulator that answers at `url`; table and bucket are made if absent.
    ///
    /// # Errors
    /// [`EmulatorError`] when it takes no table or bucket.
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
            records: DynamoStore::new(clients.dynamodb.clone(), TABLE)
                .with_blobs(Arc::new(S3Blobs::new(clients.s3.clone(), BUCKET))),
            blobs: S3Blobs::new(clients.s3.clone(), BUCKET),
            clients,
            dynamodb: address(endpoints.dynamodb.as_deref()).await?,
            s3: address(endpoints.s3.as_deref()).await?,
            _embedded: embedded,
        })
    }

    /// Its stores, as the contract suite takes them.
    #[must_use]
    pub fn stores(&self) -> Stores<'_> {
        Stores {
            tasks: &self.records,
            sweep: &self.records,
            threads: &self.records,
            blobs: &self.blobs,
            pushes: Some(&self.records),
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

/// A number that no other run against the same emulator has.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a test run needs a name of its own, and no clock of the product"
)]
pub fn run() -> u128 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    (nanos << 32) | u128::from(std::process::id())
}
