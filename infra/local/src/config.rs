//! Defines the command line, and reads the settings for it.

use crate::api_keys::KeysCommand;
use crate::block::BlockTenant;
use crate::embedded::{BUCKET, TABLE};
use crate::erase::EraseTenant;
use crate::folder::{make_private, private_file};
use crate::restore::RestoreObjects;
use crate::sign::SignCard;
use crate::watch::Watch;
use a2a_lambda::auth::AuthMode;
use a2a_lambda::http::Hosts;
use a2a_lambda::outbound::Reach;
use a2a_lambda::settings::{Environment, Settings, SettingsError, Source};
use a2a_lambda::store::aws::Endpoints;
use a2a_lambda::store::dynamodb::MAX_SHARDS;
use a2a_lambda::task::Timestamp;
use clap::{Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Runs the whole agent on this machine: no AWS account, nothing to install.
///
/// DynamoDB and S3 are served in process; tasks and artifacts are kept in the
/// data folder, so a restart goes on where the last run ended.
#[derive(Debug, Parser)]
#[command(name = "a2a-local", version)]
pub struct Cli {
    /// Something else than serving the agent.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How to serve it.
    #[command(flatten)]
    pub serve: Serve,
}

/// What the program can do beside serving the agent.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves DynamoDB and S3 only, for functions that run elsewhere on this
    /// machine (`cargo lambda watch`); prints the settings they need, the
    /// credentials of this run among them: no others are taken.
    Aws {
        /// Where tables and objects are kept.
        #[arg(long, value_name = "DIR", default_value = ".a2a")]
        data: PathBuf,
        /// Keep nothing after the end.
        #[arg(long, conflicts_with = "data")]
        memory: bool,
    },
    /// Runs every function under `cargo lambda watch`, as AWS Lambda would: one
    /// process for each, and what starts the background ones.
    ///
    /// It builds the functions, serves DynamoDB, S3 and SQS in this process, and
    /// starts `cargo lambda watch` on loopback with the settings it needs. Other
    /// settings (`A2A_…`) of the environment reach the functions.
    Watch(Watch),
    /// Signs the agent card of a deployment (A2A 1.0 §8.4: ES256).
    ///
    /// Without --in the card is that of the agent in this program under the
    /// settings of the environment, as a deployed function makes it. Give the
    /// signatures to the functions as `A2A_CARD_SIGNATURES`.
    SignCard(SignCard),
    /// Spreads the lists of one caller's tasks and conversations over more
    /// partitions of the list index, for one that makes more than about 700 tasks a second. The number
    /// only grows. Lists read all of them at once, writes follow in 5 minutes.
    GrowList(GrowList),
    /// Makes, lists and withdraws API keys.
    ///
    /// Its role needs dynamodb:PutItem, dynamodb:GetItem, dynamodb:Query and
    /// dynamodb:DeleteItem on the partition `A#keys` of the table.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Removes everything of one tenant: items, objects, uploads.
    ///
    /// First take the tenant's credentials away. The job reads the whole table,
    /// at least twice: it ends when it finds nothing any more. It can be cut and
    /// run again at any time. Its role needs dynamodb:Scan and
    /// dynamodb:BatchWriteItem on the table, s3:ListBucket, s3:ListBucketVersions,
    /// s3:PutObject, s3:DeleteObject and s3:DeleteObjectVersion on the bucket.
    EraseTenant(EraseTenant),
    /// Refuses all calls of one tenant, and ends its streams.
    ///
    /// It acts when the tokens that the functions hold are used up, after a
    /// minute at most, and on streams within 30 s. Running turns go on. It needs
    /// dynamodb:UpdateItem on the table.
    BlockTenant(BlockTenant),
    /// Ends the block of a tenant.
    UnblockTenant(BlockTenant),
    /// Lets the bucket follow a table that was restored to an earlier time.
    ///
    /// It takes away the delete markers that were set since, so that the table's
    /// objects can be read again, and then repeats the erasures of tenants that
    /// ended since. Run it before the functions use the restored table. Its role
    /// needs what erase-tenant needs.
    RestoreObjects(RestoreObjects),
}

/// Whose list, and to how many partitions.
#[derive(Debug, Clone, clap::Args)]
pub struct GrowList {
    /// The caller's tenant.
    #[arg(long)]
    pub tenant: String,
    /// The caller's subject.
    #[arg(long)]
    pub subject: String,
    /// The new number of partitions; each makes every page of the list a request
    /// dearer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(MAX_SHARDS)))]
    pub shards: u32,
    /// The table; else `A2A_TABLE`.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where DynamoDB answers, if that is not AWS.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
}

/// The options of serving.
#[derive(Debug, Clone, clap::Args)]
pub struct Serve {
    /// The port; 0 takes a free one, which is printed.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// The address to listen on. Beyond loopback only with --insecure-dev,
    /// since anybody who reaches it can name any tenant.
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<IpAddr>,
    /// Where tasks and artifacts are kept.
    #[arg(long, value_name = "DIR", default_value = ".a2a")]
    pub data: PathBuf,
    /// Keep nothing after the end.
    #[arg(long, conflicts_with = "data")]
    pub memory: bool,
    /// Who may call: everybody under any name, callers with an API key, or callers with
    /// a JWT or an API key.
    #[arg(long, value_enum, default_value_t = Auth::Dev)]
    pub auth: Auth,
    /// Which agent to serve.
    #[arg(long, value_enum, default_value_t = AgentName::Reference)]
    pub agent: AgentName,
    /// Which members the agent card has: `union` for clients of every protocol
    /// generation, `v1` for those of 1.0 only.
    #[arg(long, value_enum)]
    pub card: Option<Card>,
    /// Use this AWS emulator instead of the embedded one.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Where S3 answers, if that is elsewhere than at --endpoint.
    #[arg(long, value_name = "URL", requires = "endpoint")]
    pub s3_endpoint: Option<String>,
    /// Allow development identities beyond loopback.
    #[arg(long)]
    pub insecure_dev: bool,
}

/// The agents that can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentName {
    /// The skills of `shared/agent`.
    Reference,
    /// The agent the conformance kits and client walks talk to.
    Conformance,
}

/// Who may call the local agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// Everybody, under any name.
    Dev,
    /// Callers with an API key.
    Keys,
    /// Callers with a JWT of `A2A_JWT_ISSUER`, or with an API key.
    Jwt,
}

impl Auth {
    const fn mode(self) -> AuthMode {
        match self {
            Self::Dev => AuthMode::Dev,
            Self::Keys => AuthMode::Keys,
            Self::Jwt => AuthMode::Jwt,
        }
    }
}

/// The forms of the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Card {
    /// For every generation.
    Union,
    /// For 1.0.
    V1,
}

impl Card {
    /// The value of `A2A_CARD`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::V1 => "v1",
        }
    }
}

/// Why the command line or the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Other machines can reach the address.
    #[error(
        "refusing to listen on {0}: development identities let anybody who reaches it name any \
         tenant; pass --insecure-dev to do it anyway"
    )]
    Exposed(IpAddr),
    /// Nobody could make a key.
    #[error("`--auth keys` with --memory accepts nobody, since no key can be made; use --data DIR")]
    NoKeys,
    /// `A2A_BIND` is not an IP address.
    #[error("setting `A2A_BIND` is `{0}`: an IP address")]
    Bind(String),
    /// The data folder cannot be used.
    #[error("failed to use the data folder `{path}`: {source}")]
    Data {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A source of settings: first those of the command line and the data folder, then the
/// environment.
struct Local(BTreeMap<&'static str, String>);

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned().or_else(|| Environment.get(name))
    }

    fn built_at(&self) -> Option<Timestamp> {
        Environment.built_at()
    }
}

impl Serve {
    /// The address to listen on.
    ///
    /// # Errors
    /// [`ConfigError::Exposed`] for an address beyond loopback without `--insecure-dev`;
    /// [`ConfigError::Bind`] when `A2A_BIND` is not an IP address.
    pub fn address(&self) -> Result<IpAddr, ConfigError> {
        let address = match (self.bind, Environment.get("A2A_BIND")) {
            (Some(address), _) => address,
            (None, Some(text)) => text.parse().map_err(|_| ConfigError::Bind(text))?,
            (None, None) => IpAddr::from([127, 0, 0, 1]),
        };
        if address.is_loopback() || self.insecure_dev || self.auth != Auth::Dev {
            Ok(address)
        } else {
            Err(ConfigError::Exposed(address))
        }
    }

    /// The settings of an agent with the base URL `public_url`, if `A2A_PUBLIC_URL` does
    /// not set another.
    ///
    /// # Errors
    /// [`ConfigError`] for a setting that cannot be used, or a data folder that
    /// cannot hold the secret.
    pub fn settings(&self, public_url: &str) -> Result<Settings, ConfigError> {
        let mut local = BTreeMap::from([("A2A_AUTH", self.auth.mode().word().to_owned())]);
        if self.auth == Auth::Keys && self.memory && self.endpoint.is_none() {
            return Err(ConfigError::NoKeys);
        }
        if let Some(card) = self.card {
            local.insert("A2A_CARD", card.word().to_owned());
        }
        if Environment.get("A2A_PUBLIC_URL").is_none() {
            local.insert("A2A_PUBLIC_URL", public_url.to_owned());
        }
        if self.endpoint.is_none() {
            local.insert("A2A_TABLE", TABLE.to_owned());
            local.insert("A2A_BUCKET", BUCKET.to_owned());
        }
        if Environment.get("A2A_SECRET_KEY").is_none() {
            match self.folder() {
                Some(data) => _ = local.insert("A2A_SECRET_KEY", secret(data)?),
                None if self.auth == Auth::Dev => {}
                None => _ = local.insert("A2A_SECRET_KEY", fresh_secret()),
            }
        }
        let mut settings = Settings::read(&Local(local))?;
        if !self.address()?.is_loopback() {
            // Other machines reach the agent under host names that are not known here.
            settings.hosts = Hosts::Any;
        }
        if self.agent == AgentName::Conformance && settings.policy.reach == Reach::Public {
            // The webhooks of the conformance kits are plain HTTP on this machine.
            settings.policy.reach = Reach::Loopback;
        }
        Ok(settings)
    }

    /// The endpoints of an AWS emulator, if `--endpoint` names one.
    #[must_use]
    pub fn endpoints(&self) -> Option<Endpoints> {
        let mut endpoints = Endpoints::at(self.endpoint.as_deref()?);
        if self.s3_endpoint.is_some() {
            endpoints.s3.clone_from(&self.s3_endpoint);
        }
        Some(endpoints)
    }

    /// The data folder; `None` with `--memory`.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        (!self.memory).then_some(self.data.as_path())
    }
}

/// The `A2A_SECRET_KEY` of a data folder. The first run makes it.
fn secret(folder: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Data {
        path: folder.to_owned(),
        source,
    };
    let path = folder.join("secret.key");
    match fs::read_to_string(&path) {
        Ok(secret) => return Ok(secret),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    make_private(folder).map_err(failed)?;
    let secret = fresh_secret();
    let mut file = private_file(&path).map_err(failed)?;
    file.write_all(secret.as_bytes()).map_err(failed)?;
    Ok(secret)
}

fn fresh_secret() -> String {
    use a2a_lambda::engine::{Ids as _, RandomIds};
    format!("{:032x}{:032x}", RandomIds.next(), RandomIds.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(args: &[&str]) -> Serve {
        let args = [&["a2a-local"], args].concat();
        Cli::try_parse_from(args).unwrap().serve
    }

    #[test]
    fn addresses_beyond_loopback_require_insecure_dev() {
        assert!(serve(&[]).address().unwrap().is_loopback());
        assert!(serve(&["--bind", "::1"]).address().is_ok());
        let exposed = serve(&["--bind", "0.0.0.0"]).address().unwrap_err();
        assert!(exposed.to_string().contains("--insecure-dev"), "{exposed}");
        assert!(
            serve(&["--bind", "0.0.0.0", "--insecure-dev"])
                .address()
                .is_ok()
        );
    }

    #[test]
    fn keys_in_memory_are_refused_since_nobody_could_make_one() {
        let url = "http://127.0.0.1:1";
        let refused = serve(&["--memory", "--auth", "keys"]).settings(url);
        assert!(matches!(refused, Err(ConfigError::NoKeys)));
        // An agent that checks credentials may listen beyond loopback.
        assert!(
            serve(&["--bind", "0.0.0.0", "--auth", "jwt"])
                .address()
                .is_ok()
        );
    }

    #[test]
    fn the_card_date_defaults_to_that_of_the_executable() {
        let settings = serve(&["--memory"]).settings("http://127.0.0.1:1").unwrap();
        assert!(settings.deployed_at.is_some());
    }

    #[test]
    fn erase_tenant_requires_yes_or_dry_run() {
        let parsed = |args: &[&str]| {
            let args = [&["a2a-local", "erase-tenant", "acme"], args].concat();
            Cli::try_parse_from(args).map(|cli| cli.command)
        };
        let unsaid = parsed(&[]).unwrap_err().to_string();
        assert!(unsaid.contains("--yes"), "{unsaid}");
        assert!(parsed(&["--yes", "--dry-run"]).is_err());
        assert!(parsed(&["--yes", "--data", "x", "--table", "y"]).is_err());
        for (flag, yes) in [("--yes", true), ("--dry-run", false)] {
            let Some(Command::EraseTenant(options)) = parsed(&[flag]).unwrap() else {
                panic!("another command");
            };
            assert_eq!((options.yes, options.dry_run), (yes, !yes));
        }
    }

    #[test]
    fn memory_and_a_data_folder_exclude_each_other() {
        assert!(Cli::try_parse_from(["a2a-local", "--memory", "--data", "x"]).is_err());
    }
}
