//! Runs the commands of `a2a-local`.

use crate::config::{AgentName, Cli, Command, ConfigError, GrowList, Serve};
use crate::embedded::{BUCKET, Embedded, EmbeddedError, TABLE};
use crate::erase::{self, EraseTenantError};
use crate::pumps::{Pumps, PumpsError};
use crate::restore::{self, RestoreError};
use crate::server::{Functions, serve};
use crate::sign::{self, SignError};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::runtime::{Runtime, RuntimeError, stores};
use a2a_lambda::settings::{Environment, Settings, Source as _, warn_of_unknown};
use a2a_lambda::skill::{AgentDefinition, BuildError};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::{DynamoStore, create_table};
use a2a_lambda::store::s3::create_bucket;
use a2a_lambda::task::{IdError, Owner, Subject, TenantId};
use a2a_lambda::telemetry::{self, LogFormat};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The log filter when `A2A_LOG` is not set.
const LOG: &str = "warn";

/// Why the program ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The command line or a setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The agent cannot be published.
    #[error(transparent)]
    Agent(#[from] BuildError),
    /// The agent has no valid card.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The embedded DynamoDB and S3 do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The table or the bucket at `--endpoint` cannot be created.
    #[error("failed to set up table and bucket: {0}")]
    SetUp(#[from] StoreError),
    /// The unfinished turns of the last run cannot be taken over.
    #[error(transparent)]
    Pumps(#[from] PumpsError),
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {source}; choose another with --port N")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A tenant or a subject is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The number of partitions of a list did not change.
    #[error("failed to grow the list: {0}")]
    Grow(#[source] StoreError),
    /// A tenant's data may still be there.
    #[error(transparent)]
    Erase(#[from] EraseTenantError),
    /// The bucket may not match its restored table yet.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The card cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Runs the program.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub async fn run(cli: Cli) -> Result<(), RunError> {
    telemetry::start(
        LogFormat::Text,
        Environment.get("A2A_LOG").as_deref().or(Some(LOG)),
    );
    warn_of_unknown();
    match cli.command {
        Some(Command::Aws { data, memory }) => aws((!memory).then_some(data.as_path())).await,
        Some(Command::GrowList(options)) => grow_list(options).await,
        Some(Command::EraseTenant(options)) => Ok(erase::run(&options).await?),
        Some(Command::RestoreObjects(options)) => Ok(restore::run(&options).await?),
        Some(Command::SignCard(options)) => Ok(sign::run(&options)?),
        None => agent(cli.serve).await,
    }
}

/// Prints why the program ended.
#[must_use]
pub fn fail(error: &RunError) -> ExitCode {
    // If standard error is closed, the exit code has to do.
    let _told = writeln!(io::stderr(), "error: {error}");
    ExitCode::FAILURE
}

async fn agent(options: Serve) -> Result<(), RunError> {
    let address = SocketAddr::new(options.address()?, options.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| RunError::Listen { address, source })?;
    let address = listener.local_addr()?;
    let settings = options.settings(&format!("http://{address}"))?;
    let (embedded, endpoints, clients) = store(&options, &settings).await?;
    let agent = definition(options.agent, &settings)?;
    let banner = banner(&agent, &options, &settings, address);
    let runtime = Runtime::builder(agent, settings.clone())
        .aws(&clients)
        .build()?;
    let mut pumps = Pumps::start(
        runtime.engine(),
        stores(&clients, &settings).0,
        &endpoints,
        &settings,
    )
    .await?;
    if let Some(embedded) = &embedded {
        pumps.expire(embedded.expiry(), settings.sweep_interval);
    }
    // The signal handlers come before the banner: a script that reads the banner may
    // send a signal immediately.
    let mut interrupted = Box::pin(interrupted());
    let _not_yet = futures::poll!(&mut interrupted);
    io::stdout().write_all(banner.as_bytes())?;
    io::stdout().flush()?;
    serve(
        listener,
        Arc::new(Functions::new(&runtime, settings.max_body)),
        interrupted,
    )
    .await;
    pumps.stop().await;
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
    Ok(())
}

/// DynamoDB and S3: the embedded ones, or those at `--endpoint`.
async fn store(
    options: &Serve,
    settings: &Settings,
) -> Result<(Option<Embedded>, Endpoints, AwsClients), RunError> {
    let Some(endpoints) = options.endpoints() else {
        let embedded = Embedded::start(options.folder()).await?;
        let endpoints = embedded.endpoints().clone();
        let clients = AwsClients::connect(&endpoints).await;
        return Ok((Some(embedded), endpoints, clients));
    };
    let clients = AwsClients::connect(&endpoints).await;
    create_table(&clients.dynamodb, &settings.table).await?;
    create_bucket(&clients.s3, &settings.bucket).await?;
    Ok((None, endpoints, clients))
}

fn definition(name: AgentName, settings: &Settings) -> Result<AgentDefinition, BuildError> {
    match name {
        AgentName::Reference => reference_agent::agent(),
        AgentName::Conformance => {
            reference_agent::conformance::agent(settings.tck_streaming_timeout)
        }
    }
}

async fn aws(data: Option<&Path>) -> Result<(), RunError> {
    let embedded = Embedded::start(data).await?;
    let endpoints = embedded.endpoints();
    let or_none = |value: Option<&String>| value.cloned().unwrap_or_default();
    let keys = endpoints.keys.as_ref();
    let text = format!(
        "A2A_TABLE={TABLE}\nA2A_BUCKET={BUCKET}\nAWS_ENDPOINT_URL_DYNAMODB={}\n\
         AWS_ENDPOINT_URL_S3={}\nAWS_REGION=us-east-1\nAWS_ACCESS_KEY_ID={}\n\
         AWS_SECRET_ACCESS_KEY={}\nready\n",
        or_none(endpoints.dynamodb.as_ref()),
        or_none(endpoints.s3.as_ref()),
        or_none(keys.map(|keys| &keys.id)),
        or_none(keys.map(|keys| &keys.secret)),
    );
    // As above: a script that reads `ready` may send a signal immediately.
    let mut interrupted = Box::pin(interrupted());
    let _not_yet = futures::poll!(&mut interrupted);
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()?;
    interrupted.await;
    embedded.stop().await;
    Ok(())
}

async fn grow_list(options: GrowList) -> Result<(), RunError> {
    let owner = Owner {
        tenant: TenantId::parse(options.tenant)?,
        subject: Subject::parse(options.subject)?,
    };
    let endpoints = match &options.endpoint {
        Some(url) => Endpoints::at(url),
        None => Endpoints::default(),
    };
    let clients = AwsClients::connect(&endpoints).await;
    let table = options.table.or_else(|| Environment.get("A2A_TABLE"));
    let store = DynamoStore::new(clients.dynamodb, table.unwrap_or_else(|| TABLE.to_owned()));
    let now = SystemClock.now();
    let from = store.grow_list(&owner, options.shards, now).await;
    let from = from.map_err(RunError::Grow)?.to_rfc3339();
    let shards = options.shards;
    let text = format!(
        "lists read {shards} partitions from now on, writes spread over them from {from} on\n"
    );
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Ready when the user presses Ctrl-C or the process gets SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // An error means that there is no handler: then Ctrl-C kills the process.
    let _pressed = tokio::signal::ctrl_c().await;
}

/// The text at the start: agent, card URL, data, what is off, and three example calls.
fn banner(
    agent: &AgentDefinition,
    options: &Serve,
    settings: &Settings,
    address: SocketAddr,
) -> String {
    let base = format!("http://{address}");
    let kept = match (options.folder(), &options.endpoint) {
        (_, Some(url)) => format!("the emulator at {url}"),
        (Some(folder), None) => format!("{}/ (DynamoDB and S3 in process)", folder.display()),
        (None, None) => "memory: nothing is kept (DynamoDB and S3 in process)".to_owned(),
    };
    let skills: Vec<&str> = agent
        .manifest()
        .skills
        .iter()
        .map(|s| s.metadata.id)
        .collect();
    format!(
        "\n  {name} {version}: {skills}\n  card   {public}/.well-known/agent-card.json\n  \
         data   {kept}\n  off    {off}\n\n  try\n    \
         curl {base}/.well-known/agent-card.json\n    \
         curl {base}/ -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":{{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"echo hello\"}}]}}}}}}'\n    \
         curl -N {base}/tasks/sendSubscribe -H 'Content-Type: application/json' -d \
         '{{\"id\":\"my-task-1\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"hello\"}}]}}}}'\n\n\
         listening on {base}\n",
        off = if settings.push {
            "rate limits"
        } else {
            "rate limits, push notifications"
        },
        name = agent.manifest().name,
        version = agent.manifest().version,
        skills = skills.join(", "),
        public = settings.public_url,
    )
}
