//! Defines the command line.

use crate::embedded::DATA;
use crate::template::WriteTemplate;
use a2a_lambda_admin::{CARD, CheckServer, Eval};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

/// The values of `A2A_AUTH` with which this program serves an agent.
pub(crate) const AUTH: [&str; 3] = ["dev", "keys", "jwt"];

/// Runs the whole agent on this machine: no AWS account, nothing to install.
///
/// DynamoDB and S3 are served in process; tasks and artifacts are kept in the
/// data folder, so a restart continues where the last run ended.
#[derive(Debug, Parser)]
#[command(name = "a2a-local", version)]
pub(crate) struct Cli {
    /// Something else than serving the agent.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// How to serve it.
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// What the program can do beside serving the agent.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves the agent, and builds it again after each edit.
    ///
    /// A build that fails leaves the one before in service. Tasks go on with the new code: they
    /// are in the data folder. The page says which build serves.
    Dev(Dev),
    /// Checks a running A2A server, of 1.0 or 0.3, as its clients use it: the walk after a
    /// deployment.
    ///
    /// Each line is a step: ok, failed, or not shown with the reason. It sends the first example
    /// of some skills on the card, so it does what these say. The exit code is 1 if a step failed.
    Check(CheckServer),
    /// Writes the SAM template of an agent whose Lambda functions are one program.
    ///
    /// Run it again after an upgrade of the library. It replaces `template.yaml` and the files
    /// in `infra` that it names. It names the stacks in `samconfig.toml` that have no name, after
    /// the agent.
    Template(WriteTemplate),
    /// Compares the skills that the agent chooses, and its answers, with those that a file expects.
    ///
    /// Each row has a store of its own, in memory. A row that expects a skill alone sends
    /// nothing. The models are those of the settings, or recordings. The exit code is 1 if a row
    /// failed.
    Eval(Eval),
    /// The commands of an operator.
    #[command(flatten)]
    Admin(a2a_lambda_admin::AdminCommand),
}

/// The options of `dev`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Dev {
    /// The package to build, as `cargo -p`. Else the one that `cargo run` has started.
    #[arg(short, long, value_name = "SPEC")]
    pub(crate) package: Option<String>,
    /// The features to build with, as `cargo --features`.
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,
    /// The options of serving, as without `dev`, after the options of `dev`: for example `--port 0`.
    #[arg(
        value_name = "OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) serve: Vec<OsString>,
}

/// The options of serving.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Serve {
    /// The port; 0 takes a free one, which is printed.
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub(crate) port: u16,
    /// The address to listen on. Beyond loopback only with --insecure-dev,
    /// since anybody who reaches it can name any tenant.
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::from([127, 0, 0, 1]))]
    pub(crate) bind: IpAddr,
    /// Where tasks and artifacts are kept.
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub(crate) data: PathBuf,
    /// Keep nothing after the end.
    #[arg(long, conflicts_with = "data")]
    pub(crate) memory: bool,
    /// Who may call: everybody under any name, callers with an API key, or callers with
    /// a JWT or an API key. Else `A2A_AUTH`, else dev.
    #[arg(long, value_parser = AUTH)]
    pub(crate) auth: Option<String>,
    /// Which agent to serve.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Which members the agent card has: `union` for clients of every protocol
    /// generation, `v1` for those of 1.0 only.
    #[arg(long, value_parser = CARD)]
    pub(crate) card: Option<String>,
    /// Use this AWS emulator instead of the embedded one.
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Where S3 answers, if that is elsewhere than at --endpoint.
    #[arg(long, value_name = "URL", requires = "endpoint")]
    pub(crate) s3_endpoint: Option<String>,
    /// Write the settings here with which other programs on this machine use the data of this
    /// one, for example the functions under `cargo lambda watch`. The file has the credentials
    /// of this run. This program then also does the background work of those functions.
    #[arg(long, value_name = "FILE", conflicts_with = "endpoint")]
    pub(crate) env_file: Option<PathBuf>,
    /// Print what turns do, a line for each step, tool, model call, write and delivery as it ends.
    #[arg(long)]
    pub(crate) trace: bool,
    /// Send what turns do, without content, to a collector of OpenTelemetry: OTLP over HTTP as
    /// JSON, at URL/v1/traces.
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Allow development identities beyond loopback.
    #[arg(long)]
    pub(crate) insecure_dev: bool,
    /// `dev` has started the program: it reads the builds from standard input, and ends with it.
    #[arg(long, hide = true)]
    pub(crate) under_dev: bool,
    /// Print the address alone at the start, and that of a page whose token is kept nowhere.
    #[arg(long, hide = true)]
    pub(crate) no_banner: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_admin::AdminCommand;
    use clap::error::ErrorKind;

    #[test]
    fn erase_tenant_requires_yes_or_dry_run() {
        let parsed = |args: &[&str]| {
            let args = [&["a2a-local", "erase-tenant", "acme"], args].concat();
            Cli::try_parse_from(args).map(|cli| cli.command)
        };
        let unsaid = parsed(&[]).unwrap_err().to_string();
        assert!(unsaid.contains("--yes"), "{unsaid}");
        for both in [
            &["--yes", "--dry-run"][..],
            &["--yes", "--data", "x", "--table", "y"],
        ] {
            let refused = parsed(both).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ArgumentConflict, "{both:?}");
        }
        for (flag, yes) in [("--yes", true), ("--dry-run", false)] {
            let Some(Command::Admin(AdminCommand::EraseTenant(options))) = parsed(&[flag]).unwrap()
            else {
                panic!("another command");
            };
            assert_eq!((options.yes, options.dry_run), (yes, !yes));
        }
    }

    #[test]
    fn memory_and_a_data_folder_exclude_each_other() {
        let refused = Cli::try_parse_from(["a2a-local", "--memory", "--data", "x"]);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ArgumentConflict);
    }
}
