//! Runs the commands of `a2a-local`.

use crate::agents::Agents;
use crate::check::{self, CheckError};
use crate::config::{Cli, Command, Serve};
use crate::credentials::credentials;
use crate::embedded::{Embedded, EmbeddedError, LocalFolders};
use crate::eval_router::{self, EvalRouterError};
use crate::local_settings::ConfigError;
use crate::page::{AgentPage, HandedOn, PageParts};
use crate::pumps::{Pumps, PumpsError};
use crate::server::{Functions, serve};
use crate::template::{self, TemplateError};
use a2a_lambda::auth::AuthMode;
use a2a_lambda::engine::LimitPolicy;
use a2a_lambda::outbound::Reach;
use a2a_lambda::runtime::{Runtime, RuntimeError, stores};
use a2a_lambda::settings::{Configuration, Settings, Source as _, warn_of_unknown};
use a2a_lambda::skill::{AgentBuildError, AgentDefinition, StateError};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::create_table;
use a2a_lambda::store::s3::create_bucket;
use a2a_lambda::telemetry::{self, LogFormat, Metrics};
use a2a_lambda_admin::{AdminError, Export, ExportError};
use clap::ArgMatches;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The log filter when `A2A_LOG` is not set: warnings, and one line for each call.
const LOG: &str = "warn,a2a_lambda::call=info";

/// Why the program ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The command line or a setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The agent cannot be built.
    #[error("failed to build the agent: {0}")]
    Agent(#[source] AgentBuildError),
    /// A state of the skills cannot be made.
    #[error(transparent)]
    State(#[from] StateError),
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
    /// A command of an operator failed.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// What an agent keeps was not exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The router cannot be evaluated.
    #[error(transparent)]
    EvalRouter(#[from] EvalRouterError),
    /// The templates are not written, or differ.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A server is not known to work.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Runs the program.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub(crate) async fn run(cli: Cli, agents: &Agents) -> Result<(), RunError> {
    // The other commands act on a deployment, and have nothing to do with the file.
    let configuration = match cli.command {
        None => Configuration::load()
            .and_then(Configuration::refuse_unknown)
            .map_err(ConfigError::from)?,
        Some(_) => Configuration::default(),
    };
    let filter = configuration.get("A2A_LOG");
    let filter = filter.as_deref().or(Some(LOG));
    let handed_on = HandedOn::take();
    let notes = handed_on.notes.layer();
    let metrics = telemetry::start_with(LogFormat::Text, filter, Some(notes));
    warn_of_unknown();
    match cli.command {
        Some(Command::Admin(command)) => {
            let agent =
                |name: Option<&str>, settings: &Settings| agents.named(name).build(settings);
            Ok(Box::pin(command.run(&LocalFolders, &agent)).await?)
        }
        Some(Command::Check(options)) => Ok(Box::pin(check::run(&options)).await?),
        Some(Command::Template(options)) => {
            let settings = Settings::read_public(&configuration).map_err(ConfigError::from)?;
            let agent = agents.named(None).build(&settings);
            let agent = agent.map_err(RunError::Agent)?;
            Ok(template::run(&options, &agent.manifest().id)?)
        }
        Some(Command::EvalRouter(options)) => {
            Ok(print(&Box::pin(eval_router::run(&options, agents)).await?)?)
        }
        None => {
            Box::pin(agent(
                agents,
                cli.serve,
                &configuration,
                (metrics, handed_on),
            ))
            .await
        }
    }
}

/// Runs the command of an export.
///
/// # Errors
/// [`RunError::Export`].
pub(crate) async fn export(export: &Export, matches: &ArgMatches) -> Result<(), RunError> {
    telemetry::start(LogFormat::Text, Some(LOG));
    Ok(Box::pin(export.run(matches, &LocalFolders)).await?)
}

/// Prints a text for the user at once.
fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()
}

/// Prints why the program ended.
#[must_use]
pub(crate) fn fail(error: &RunError) -> ExitCode {
    // If standard error is closed, the exit code has to do.
    let _told = writeln!(io::stderr(), "error: {error}");
    ExitCode::FAILURE
}

async fn agent(
    agents: &Agents,
    options: Serve,
    configuration: &Configuration,
    (metrics, handed_on): (Metrics, HandedOn),
) -> Result<(), RunError> {
    let address = options.address(configuration)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| RunError::Listen { address, source })?;
    let address = listener.local_addr()?;
    let mut settings = options.settings(configuration, &format!("http://{address}"))?;
    let entry = agents.named(options.agent.as_deref());
    if entry.calls_loopback() && settings.policy.reach == Reach::Public {
        settings.policy.reach = Reach::Loopback;
    }
    let (embedded, endpoints, clients) = store(&options, &settings).await?;
    let agent = entry.build(&settings).map_err(RunError::Agent)?;
    agent.make_states().await?;
    let banner = banner(&agent, &options, &settings, (address, configuration.path()));
    let page = AgentPage::open(&PageParts {
        address,
        agent: &agent,
        settings: &settings,
        clients: &clients,
        endpoints: &endpoints,
        handed_on: &handed_on,
        keeps_data: options.keeps_data(),
    })?;
    let mut runtime = Runtime::builder(agent, settings.clone())
        .aws(&clients)
        .metrics(metrics);
    if settings.auth.checks_credentials() {
        let store = stores(&clients, &settings).0;
        let credentials = credentials(&settings, store).map_err(ConfigError::from)?;
        runtime = runtime.credentials(credentials);
    }
    let runtime = runtime.build()?;
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
    if let Some(embedded) = &embedded {
        options.write_env_file(configuration, &embedded.settings())?;
    }
    // The signal handlers come before the banner: a script that reads the banner may
    // send a signal immediately.
    let mut interruption = Box::pin(interrupted());
    let _not_yet = futures::poll!(&mut interruption);
    print(&(page.as_ref().map(AgentPage::line).unwrap_or_default() + &banner))?;
    let functions = Functions::new(&runtime, settings.max_body).with_page(page);
    serve(listener, Arc::new(functions), interruption).await;
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

/// Who may call.
fn callers(options: &Serve, settings: &Settings) -> String {
    let make = || {
        let target = match (&options.endpoint, options.folder()) {
            (Some(url), _) => format!("--endpoint {url} --table {}", settings.table),
            (None, Some(folder)) => format!("--data {}", folder.display()),
            (None, None) => return String::new(),
        };
        let hint = if options.endpoint.is_some() {
            ""
        } else {
            "; stop this agent first"
        };
        format!(
            "\n         a new key: cargo run -- keys create {target} --tenant T --subject S{hint}"
        )
    };
    match settings.auth {
        AuthMode::Keys => format!("with `Authorization: Bearer <API key>`{}", make()),
        AuthMode::Jwt => {
            let issuer = settings.credentials.issuer.as_deref().unwrap_or_default();
            format!("with a JWT of {issuer}, or an API key{}", make())
        }
        AuthMode::Gateway | AuthMode::Dev => {
            "everybody under any name: `Authorization: Bearer dev:<tenant>:<subject>`".to_owned()
        }
    }
}

/// The text at the start: agent, card URL, data, what is off, and three example calls.
fn banner(
    agent: &AgentDefinition,
    options: &Serve,
    settings: &Settings,
    (address, file): (SocketAddr, Option<&Path>),
) -> String {
    let base = format!("http://{address}");
    let data = match (options.folder(), &options.endpoint) {
        (_, Some(url)) => format!("the emulator at {url}"),
        (Some(folder), None) => format!("{}/ (DynamoDB and S3 in process)", folder.display()),
        (None, None) => "memory: nothing is kept (DynamoDB and S3 in process)".to_owned(),
    };
    let file = file.map(|path| format!("\n  file   {}", path.display()));
    let skills: Vec<&str> = agent
        .manifest()
        .skills
        .iter()
        .map(|s| s.metadata.id)
        .collect();
    format!(
        "\n  {name} {version}: {skills}\n  card   {public}/.well-known/agent-card.json\n  \
         data   {data}{file}\n  calls  {calls}\n  limits {limits}\n  \
         model  {model}\n  off    {off}\n\n  try\n    \
         curl {base}/.well-known/agent-card.json\n    \
         curl {base}/{header} -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":{{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"echo hello\"}}]}}}}}}'\n    \
         curl -N {base}/tasks/sendSubscribe{header} -H 'Content-Type: application/json' -d \
         '{{\"id\":\"my-task-1\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"hello\"}}]}}}}'\n\n\
         listening on {base}\n",
        file = file.unwrap_or_default(),
        calls = callers(options, settings),
        limits = limits(&settings.policy.limits),
        model = model(settings),
        off = off(settings),
        header = if settings.auth.checks_credentials() {
            " -H 'Authorization: Bearer KEY'"
        } else {
            ""
        },
        name = agent.manifest().name,
        version = agent.manifest().version,
        skills = skills.join(", "),
        public = settings.public_url.without_stage().unwrap_or(&base),
    )
}

/// The language model, and where it is.
fn model(settings: &Settings) -> String {
    let Some(model) = &settings.model else {
        return "none (`A2A_MODEL_ID`)".to_owned();
    };
    let provider = model.provider.word();
    match &model.endpoint {
        Some(url) => format!("{} ({provider}, {url})", model.id),
        None => format!("{} ({provider})", model.id),
    }
}

/// The limits of a tenant that are on, with their numbers.
fn limits(policy: &LimitPolicy) -> String {
    let mut on = Vec::new();
    if let Some(rate) = policy.rates.calls {
        on.push(format!("{} calls a minute", rate.per_minute));
    }
    let rates = policy.rates.tiers.iter().chain(&policy.rates.skills);
    on.extend(rates.map(|(name, rate)| format!("{name} {} a minute", rate.per_minute)));
    if let Some(streams) = policy.streams_per_tenant {
        on.push(format!("{streams} streams of a tenant"));
    }
    if let Some(pool) = &policy.shared_streams {
        on.push(format!("{} streams of all tenants", pool.cap));
    }
    if on.is_empty() {
        return "none".to_owned();
    }
    on.join(", ")
}

/// What is off.
fn off(settings: &Settings) -> String {
    let limits = &settings.policy.limits;
    let off = [
        (limits.rates.calls.is_none(), "rate limits"),
        (limits.streams_per_tenant.is_none(), "stream limits"),
        (!settings.push, "push notifications"),
    ];
    let off: Vec<&str> = off.iter().filter(|it| it.0).map(|it| it.1).collect();
    if off.is_empty() {
        return "nothing".to_owned();
    }
    off.join(", ")
}
