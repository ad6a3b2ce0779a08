//! The program: start everything, say what is served and where, stop cleanly.

use crate::config::{AgentName, Cli, Command, ConfigError, Serve};
use crate::embedded::{Embedded, EmbeddedError};
use crate::server::{Functions, serve};
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Environment, Settings, Source as _};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::aws::{AwsClients, SetUpError};
use a2a_lambda::telemetry::{self, LogFormat};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Why the program ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The command line or a setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The agent gives no valid card.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The embedded DynamoDB and S3 do not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// Table or bucket cannot be made.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// The port cannot be used.
    #[error("failed to listen on {address}: {source}; choose another with --port N")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The terminal is gone.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Runs the program.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub async fn run(cli: Cli) -> Result<(), RunError> {
    telemetry::start(LogFormat::Text, Environment.get("A2A_LOG").as_deref().or(Some("warn")));
    match cli.command {
        Some(Command::Aws { data, memory }) => aws((!memory).then_some(data.as_path())).await,
        None => agent(cli.serve).await,
    }
}

/// Prints why the program ended.
#[must_use]
pub fn fail(error: &RunError) -> ExitCode {
    // With the terminal gone there is nobody to tell.
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
    let (embedded, clients) = store(&options, &settings).await?;
    let (tasks, threads, blobs) = clients.stores(&settings.table, &settings.bucket);
    let agent = definition(options.agent, &settings);
    let banner = banner(&agent, &options, &settings, address);
    let max_body = settings.max_body;
    let runtime =
        Runtime::builder(agent, settings).tasks(tasks).threads(threads).blobs(blobs).build()?;
    io::stdout().write_all(banner.as_bytes())?;
    io::stdout().flush()?;
    serve(listener, Arc::new(Functions::new(&runtime, max_body)), interrupted()).await;
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
    Ok(())
}

/// DynamoDB and S3: the embedded ones, or those at `--endpoint`.
async fn store(
    options: &Serve,
    settings: &Settings,
) -> Result<(Option<Embedded>, AwsClients), RunError> {
    let (embedded, clients) = match &options.endpoint {
        Some(url) => (None, AwsClients::loopback(url, url)),
        None => {
            let embedded = Embedded::start(options.folder()).await?;
            let clients = AwsClients::loopback(embedded.dynamodb_url(), embedded.s3_url());
            (Some(embedded), clients)
        }
    };
    clients.set_up(&settings.table, &settings.bucket).await?;
    Ok((embedded, clients))
}

fn definition(name: AgentName, settings: &Settings) -> AgentDefinition {
    match name {
        AgentName::Reference => reference_agent::agent(),
        AgentName::Conformance => reference_agent::conformance::agent(settings.tck_streaming_timeout),
    }
}

async fn aws(data: Option<&Path>) -> Result<(), RunError> {
    let embedded = Embedded::start(data).await?;
    let settings = Settings::read(&DevSettings).map_err(ConfigError::from)?;
    let clients = AwsClients::loopback(embedded.dynamodb_url(), embedded.s3_url());
    clients.set_up(&settings.table, &settings.bucket).await?;
    let text = format!(
        "A2A_TABLE={}\nA2A_BUCKET={}\nAWS_ENDPOINT_URL_DYNAMODB={}\nAWS_ENDPOINT_URL_S3={}\n\
         AWS_ACCESS_KEY_ID=local\nAWS_SECRET_ACCESS_KEY=local\nAWS_REGION=us-east-1\nready\n",
        settings.table,
        settings.bucket,
        embedded.dynamodb_url(),
        embedded.s3_url(),
    );
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()?;
    interrupted().await;
    embedded.stop().await;
    Ok(())
}

/// The environment with development identities.
struct DevSettings;

impl a2a_lambda::settings::Source for DevSettings {
    fn get(&self, name: &str) -> Option<String> {
        if name == "A2A_AUTH" { Some("dev".to_owned()) } else { Environment.get(name) }
    }
}

/// Ready when the user presses Ctrl-C or the process is asked to end.
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
    // Without a signal handler the process is ended the hard way.
    let _pressed = tokio::signal::ctrl_c().await;
}

/// What is served, and where, with three calls to paste.
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
    let skills: Vec<&str> = agent.manifest().skills.iter().map(|s| s.metadata.id).collect();
    format!(
        "\n  {name} {version}: {skills}\n  card   {public}/.well-known/agent-card.json\n  \
         data   {kept}\n  off    rate limits, push notifications\n\n  try\n    \
         curl {base}/.well-known/agent-card.json\n    \
         curl {base}/ -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":{{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"echo hello\"}}]}}}}}}'\n    \
         curl -N {base}/tasks/sendSubscribe -H 'Content-Type: application/json' -d \
         '{{\"id\":\"my-task-1\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"hello\"}}]}}}}'\n\n\
         listening on {base}\n",
        name = agent.manifest().name,
        version = agent.manifest().version,
        skills = skills.join(", "),
        public = settings.public_url,
    )
}
