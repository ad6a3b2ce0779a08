//! Runs the commands of `a2a-local`.

use crate::agents::Agents;
use crate::background::pumps::Pumps;
use crate::config::{Cli, Command, Serve};
use crate::dev::{self, Builds};
use crate::embedded::{Embedded, LocalFolders};
use crate::local_settings::credentials;
use crate::otlp::Spans;
use crate::page::AgentPage;
use crate::process::{RunError, print, wait_for_signal};
use crate::server::{Functions, serve};
use crate::template;
use crate::traces::Traces;
use a2a_lambda::auth::AuthMode;
use a2a_lambda::engine::{Leases, LimitPolicy};
use a2a_lambda::outbound::AddressPolicy;
use a2a_lambda::runtime::{Runtime, adapt_to_model, stores};
use a2a_lambda::settings::{Configuration, Settings, Source as _, warn_of_unknown};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::dynamodb::{DynamoTable, create_table};
use a2a_lambda::store::s3::create_bucket;
use a2a_lambda::task::SkillId;
use a2a_lambda::telemetry::{self, LogFormat, Metrics};
use a2a_lambda_admin::Export;
use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::json;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The log filter when `A2A_LOG` is not set: warnings, and one line for each call. The SDK warns of
/// each place without a region or credentials, and the error of a command names both.
const LOG: &str = "warn,aws_config=error,a2a_lambda::call=info";

/// What is called when a thread panics.
type PanicHook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Runs the program.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub(crate) async fn run(cli: Cli, folders: &LocalFolders, agents: &Agents) -> Result<(), RunError> {
    // The other commands act on a deployment, and have nothing to do with the file.
    let configuration = match cli.command {
        None | Some(Command::Eval(_)) => Configuration::load()?.refuse_unknown()?,
        Some(_) => Configuration::default(),
    };
    let filter = configuration.get("A2A_LOG");
    let filter = filter.as_deref().or(Some(LOG));
    let terminal = panic::take_hook();
    let metrics = telemetry::start(LogFormat::Text, filter);
    show_panics(terminal);
    warn_of_unknown();
    let build = |name: Option<&str>, settings: &Settings| (agents.by_name(name).build)(settings);
    match cli.command {
        Some(Command::Admin(command)) => Box::pin(command.run(folders, &build)).await,
        Some(Command::Dev(options)) => Box::pin(dev::run(&options)).await,
        Some(Command::Check(options)) => Box::pin(options.run()).await,
        Some(Command::Template(options)) => {
            let settings = Settings::read_public(&configuration)?;
            let agent = (agents.by_name(None).build)(&settings)
                .map_err(|error| format!("failed to build the agent: {error}"))?;
            Ok(template::run(&options, &agent.manifest().id)?)
        }
        Some(Command::Eval(options)) => Box::pin(options.run(&build, &configuration)).await,
        None => Box::pin(agent(agents, cli.serve, &configuration, metrics)).await,
    }
}

/// Shows panics in the terminal as Rust does by itself: with their text, and with a backtrace if
/// `RUST_BACKTRACE` asks for it. The log has the place alone, as in a function.
fn show_panics(terminal: PanicHook) {
    let log = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        log(panic);
        terminal(panic);
    }));
}

/// Runs the command of an export.
///
/// # Errors
/// [`RunError`] when nothing is exported.
pub(crate) async fn export(
    export: &Export,
    matches: &ArgMatches,
    folders: &LocalFolders,
) -> Result<(), RunError> {
    telemetry::start(LogFormat::Text, Some(LOG));
    Box::pin(export.run(matches, folders)).await
}

/// The data folders for a command, with the one that is named before it.
pub(crate) fn folders(matches: &ArgMatches) -> LocalFolders {
    let is_default = matches.value_source("data") == Some(ValueSource::DefaultValue);
    let data = matches.get_one("data").filter(|_| !is_default).cloned();
    LocalFolders { data }
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
    metrics: Metrics,
) -> Result<(), RunError> {
    let address = options.address(configuration)?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        format!("failed to listen on {address}: {error}; choose another with --port N")
    })?;
    let address = listener.local_addr()?;
    let mut settings = options.settings(configuration, &format!("http://{address}"))?;
    let entry = agents.by_name(options.agent.as_deref());
    if entry.calls_loopback && settings.policy.reach == AddressPolicy::Public {
        settings.policy.reach = AddressPolicy::Loopback;
    }
    let (embedded, endpoints, clients) = store(&options, &settings).await?;
    let agent =
        (entry.build)(&settings).map_err(|error| format!("failed to build the agent: {error}"))?;
    let fallback = agent.fallback().cloned();
    let agent = adapt_to_model(agent, settings.model.is_some());
    agent.make_states().await?;
    let names = (&agent, fallback.as_ref());
    let banner = banner(names, &options, &settings, (address, configuration.path()));
    let folder = options.folder();
    let traces_folder = folder.or(embedded.as_ref().map(Embedded::folder));
    let spans = Spans::start(options.otlp.as_deref(), &agent, &settings)?;
    let mut traces = Traces::open(traces_folder, settings.policy.task_ttl, options.trace)?;
    traces.spans = spans;
    let mut builds = options.under_dev.then(dev::builds);
    traces.build = dev::own_number(&mut builds).await;
    let traces = Arc::new(traces);
    let mut page = AgentPage::open(
        address, &agent, &settings, &clients, &endpoints, &traces, folder,
    )?;
    if let Some(page) = &mut page {
        page.builds.clone_from(&builds);
    }
    // Without a reader nothing is recorded.
    let has_reader = page.is_some() || options.trace || options.otlp.is_some();
    let traces = has_reader.then_some(traces);
    let runtime = runtime(agent, &settings, &clients, metrics, traces.clone())?;
    let (program, store) = ((&runtime, embedded.as_ref()), (&clients, &endpoints));
    let leases = options.leases();
    let pumps = background(program, store, &settings, leases, traces).await?;
    if let Some(embedded) = &embedded {
        options.write_env_file(configuration, &embedded.settings())?;
    }
    // The signal handlers come before the banner: a script that reads the banner may
    // send a signal immediately.
    let mut interruption = Box::pin(wait_for_end(builds));
    let _not_yet = futures::poll!(&mut interruption);
    let line = page
        .as_ref()
        .filter(|_| !options.no_banner || options.memory);
    print(&(line.map(AgentPage::line).unwrap_or_default() + &banner))?;
    let functions = Functions::new(&runtime, page);
    serve(listener, Arc::new(functions), interruption).await;
    pumps.stop().await;
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
    Ok(())
}

/// The runtime of the agent. `traces` record what its turns do.
fn runtime(
    agent: AgentDefinition,
    settings: &Settings,
    clients: &AwsClients,
    metrics: Metrics,
    traces: Option<Arc<Traces>>,
) -> Result<Runtime, RunError> {
    let mut runtime = Runtime::builder(agent, settings.clone())
        .aws(clients)
        .metrics(metrics);
    if let Some(traces) = traces {
        runtime = runtime.recorder(traces);
    }
    if let Some(credentials) = credentials(settings, stores(clients, settings).0.table())? {
        runtime = runtime.credentials(credentials);
    }
    Ok(runtime.build()?)
}

/// The background work, with the expiry of an embedded database.
async fn background(
    (runtime, embedded): (&Runtime, Option<&Embedded>),
    (clients, endpoints): (&AwsClients, &Endpoints),
    settings: &Settings,
    leases: Leases,
    traces: Option<Arc<Traces>>,
) -> Result<Pumps, RunError> {
    let deliveries = stores(clients, settings).0.deliveries();
    let engine = runtime.engine();
    let pumps = Pumps::start(engine, deliveries, endpoints, settings, leases, traces).await;
    let mut pumps =
        pumps.map_err(|error| format!("failed to look for unfinished tasks: {error}"))?;
    if let Some(embedded) = embedded {
        pumps.expire(embedded.expiry(), settings.sweep_interval);
    }
    Ok(pumps)
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
    let set_up = async {
        create_table(&clients.dynamodb, &settings.table).await?;
        create_bucket(&clients.s3, &settings.bucket).await?;
        let table = DynamoTable::new(clients.dynamodb.clone(), &settings.table);
        table.claim_form().await
    };
    set_up
        .await
        .map_err(|error| format!("failed to set up table and bucket: {error}"))?;
    Ok((None, endpoints, clients))
}

/// Ready when the program has to end: the user says so, or `dev` does.
async fn wait_for_end(builds: Option<Builds>) {
    let dev = async {
        match builds {
            Some(mut builds) => while builds.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = wait_for_signal() => {}
        () = dev => {}
    }
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
    (agent, fallback): (&AgentDefinition, Option<&SkillId>),
    options: &Serve,
    settings: &Settings,
    (address, file): (SocketAddr, Option<&Path>),
) -> String {
    let base = format!("http://{address}");
    if options.no_banner {
        return format!("listening on {base}\n");
    }
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
    let mut examples = agent
        .manifest()
        .skills
        .iter()
        .flat_map(|skill| skill.metadata.examples);
    let words = quote(examples.next().unwrap_or(&"hello"));
    format!(
        "\n  {name} {version}: {skills}\n  card   {public}/.well-known/agent-card.json\n  \
         data   {data}{file}\n  calls  {calls}\n  model  {model}\n  budget {budget}\n\n  try\n    \
         curl {base}/.well-known/agent-card.json\n    \
         curl {base}/{header} -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":{{\"messageId\":\"m1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":{words}}}]}}}}}}'\n    \
         curl -N {base}/tasks/sendSubscribe{header} -H 'Content-Type: application/json' -d \
         '{{\"id\":\"my-task-1\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":{words}}}]}}}}'\n\n\
         listening on {base}\n",
        file = file.unwrap_or_default(),
        calls = callers(options, settings),
        model = model(settings, fallback),
        budget = budget(&settings.policy.limits),
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

/// The language model, and where it is. Without one it says which skill the agent lacks.
fn model(settings: &Settings, fallback: Option<&SkillId>) -> String {
    let Some(model) = &settings.model else {
        return match fallback {
            Some(skill) => format!("none (`A2A_MODEL_ID`), so the agent has no `{skill}`"),
            None => "none (`A2A_MODEL_ID`)".to_owned(),
        };
    };
    let provider = model.provider.word();
    match &model.endpoint {
        Some(url) => format!("{} ({provider}, {url})", model.id),
        None => format!("{} ({provider})", model.id),
    }
}

/// What a task, and a tenant on one day, may use.
fn budget(limits: &LimitPolicy) -> String {
    let most = |most: Option<u64>| most.map_or("any".to_owned(), |most| most.to_string());
    let task = most(limits.tokens_per_task);
    let (tokens, bytes) = (
        most(limits.tokens_per_day),
        most(limits.stored_bytes_per_day),
    );
    format!("{task} tokens a task; a tenant and day: {tokens} tokens, {bytes} stored bytes")
}

/// JSON of a text, for a place between single quotes.
fn quote(text: &str) -> String {
    json!(text).to_string().replace('\'', "\\u0027")
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_single_quote_does_not_end_the_words_of_the_shell() {
        let words = quote("what's for lunch?");
        assert_eq!(words, r#""what\u0027s for lunch?""#);
        let text: String = serde_json::from_str(&words).unwrap();
        assert_eq!(text, "what's for lunch?");
    }
}
