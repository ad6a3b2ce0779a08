//! The command line of a program, and what it does.

use crate::agents::{Agents, LocalAgent};
use crate::cli;
use crate::config::Cli;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{AgentBuildError, AgentDefinition};
use a2a_lambda_admin::Export;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::process::ExitCode;

/// Serves `agent`: the whole program, with its options, commands and errors.
///
/// It reads the command line, and returns when the program ends. `agent` builds the agent; the
/// commands that need none do not call it.
///
/// ```no_run
/// use a2a_lambda::prelude::*;
///
/// /// Repeats a text.
/// #[skill(id = "echo", tags = ["text"])]
/// async fn echo(text: String) -> AgentResult<String> {
///     Ok(text)
/// }
///
/// fn agent() -> Result<AgentDefinition, BuildError> {
///     Agent::builder("echo").description("Repeats.").skill(echo).build()
/// }
///
/// fn main() -> std::process::ExitCode {
///     a2a_local::serve(agent)
/// }
/// ```
pub fn serve<F, E>(agent: F) -> ExitCode
where
    F: Fn() -> Result<AgentDefinition, E> + Send + Sync + 'static,
    E: Into<AgentBuildError>,
{
    let agent = LocalAgent::new("agent", move |_: &Settings| agent());
    Agents::new(agent).serve()
}

impl Agents {
    /// Reads the command line and does what it says, until the program ends.
    #[must_use]
    pub fn serve(self) -> ExitCode {
        let matches = self.command().get_matches();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let result = match runtime {
            Ok(runtime) => match self.export(&matches) {
                Some((export, matches)) => runtime.block_on(cli::export(export, matches)),
                None => {
                    let arguments = Cli::from_arg_matches(&matches);
                    let cli = arguments.unwrap_or_else(|error| error.exit());
                    runtime.block_on(cli::run(cli, &self))
                }
            },
            Err(error) => Err(error.into()),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => cli::fail(&error),
        }
    }

    /// The export that a command line asks for.
    fn export<'a>(&self, matches: &'a ArgMatches) -> Option<(&Export, &'a ArgMatches)> {
        let (name, matches) = matches.subcommand()?;
        let export = self.exports.iter().find(|export| export.name() == name)?;
        Some((export, matches))
    }

    /// The command line. A program with one agent has no `--agent`.
    fn command(&self) -> clap::Command {
        let all = std::iter::once(&self.first).chain(&self.others);
        let names: Vec<&'static str> = all.map(|agent| agent.name).collect();
        let alone = names.len() == 1;
        let first = self.first.name;
        let choose = move |argument: clap::Arg| {
            argument
                .value_parser(clap::builder::PossibleValuesParser::new(names.clone()))
                .default_value(first)
                .hide(alone)
        };
        Cli::command()
            .subcommands(self.exports.iter().map(Export::command))
            .mut_arg("agent", choose.clone())
            .mut_subcommand("eval-router", |command| {
                command.mut_arg("agent", choose.clone())
            })
            .mut_subcommand("sign-card", |command| command.mut_arg("agent", choose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &Settings) -> Result<AgentDefinition, AgentBuildError> {
        Err("none".into())
    }

    #[test]
    fn a_program_with_one_agent_offers_no_choice() {
        let one = Agents::new(LocalAgent::new("agent", none));
        assert!(
            !one.command()
                .render_long_help()
                .to_string()
                .contains("--agent")
        );
        let two = one.with(LocalAgent::new("other", none));
        let help = two.command().render_long_help().to_string();
        assert!(help.contains("--agent") && help.contains("other"), "{help}");
    }

    #[test]
    fn an_unknown_agent_is_refused_with_the_known_names() {
        let two = Agents::new(LocalAgent::new("one", none));
        let two = two.with(LocalAgent::new("two", none));
        let parse = |arguments: &[&str]| {
            let arguments = [&["a2a-local"], arguments].concat();
            two.command().try_get_matches_from(arguments)
        };
        let refused = parse(&["--agent", "three"]).unwrap_err().to_string();
        assert!(
            refused.contains("one") && refused.contains("two"),
            "{refused}"
        );
        for (arguments, name) in [(&[] as &[&str], "one"), (&["--agent", "two"], "two")] {
            let cli = Cli::from_arg_matches(&parse(arguments).unwrap()).unwrap();
            assert_eq!(two.named(cli.serve.agent.as_deref()).name, name);
        }
        let sign = parse(&["sign-card", "--key", "k", "--agent", "two"]);
        assert!(sign.is_ok());
    }
}
