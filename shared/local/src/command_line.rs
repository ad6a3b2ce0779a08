//! The command line of a program, and what it does.

use crate::agents::{Agents, LocalAgent};
use crate::commands;
use crate::config::Cli;
use a2a_lambda::settings::{Configuration, Settings};
use a2a_lambda::skill::{AgentBuildError, AgentDefinition};
use a2a_lambda_admin::Export;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::process::ExitCode;

/// Serves `agent`: the whole program, with its options, commands and errors.
///
/// It reads the command line, and returns when the program ends. `agent` builds the agent; the
/// commands that need none do not call it. The help does, since a set of the agent may have a
/// command.
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
        // The help, and a command of a set, need the agents.
        let (matches, exports) = match self.command(&[]).try_get_matches() {
            Ok(matches) => (matches, Vec::new()),
            Err(_) => {
                let exports = self.exports();
                (self.command(&exports).get_matches(), exports)
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let folders = commands::folders(&matches);
        let result = match runtime {
            Ok(runtime) => match find_export(&exports, &matches) {
                Some((export, matches)) => {
                    runtime.block_on(commands::export(export, matches, &folders))
                }
                None => {
                    let arguments = Cli::from_arg_matches(&matches);
                    let cli = arguments.unwrap_or_else(|error| error.exit());
                    runtime.block_on(commands::run(cli, &folders, &self))
                }
            },
            Err(error) => Err(error.into()),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => commands::fail(&error),
        }
    }

    /// The exports of all agents that can be built, one for each name.
    fn exports(&self) -> Vec<Export> {
        let Ok(settings) = Settings::read_public(&Configuration::default()) else {
            return Vec::new();
        };
        let all = std::iter::once(&self.first).chain(&self.others);
        let agents = all.filter_map(|agent| (agent.build)(&settings).ok());
        let exports = agents.flat_map(|agent| Export::all(&agent));
        let mut exports: Vec<Export> = exports.collect();
        exports.sort_by(|one, other| one.name().cmp(other.name()));
        exports.dedup_by(|one, other| one.name() == other.name());
        exports
    }

    /// The command line. A program with one agent has no `--agent`.
    fn command(&self, exports: &[Export]) -> clap::Command {
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
            .subcommands(exports.iter().map(Export::command))
            .mut_arg("agent", choose.clone())
            .mut_subcommand("eval", |command| command.mut_arg("agent", choose.clone()))
            .mut_subcommand("sign-card", |command| command.mut_arg("agent", choose))
    }
}

/// The export that a command line asks for.
fn find_export<'a>(
    exports: &'a [Export],
    matches: &'a ArgMatches,
) -> Option<(&'a Export, &'a ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    let export = exports.iter().find(|export| export.name() == name)?;
    Some((export, matches))
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
            !one.command(&[])
                .render_long_help()
                .to_string()
                .contains("--agent")
        );
        let two = one.with(LocalAgent::new("other", none));
        let help = two.command(&[]).render_long_help().to_string();
        assert!(help.contains("--agent") && help.contains("other"), "{help}");
    }

    #[test]
    fn an_unknown_agent_is_refused_with_the_known_names() {
        let two = Agents::new(LocalAgent::new("one", none));
        let two = two.with(LocalAgent::new("two", none));
        let parse = |arguments: &[&str]| {
            let arguments = [&["a2a-local"], arguments].concat();
            two.command(&[]).try_get_matches_from(arguments)
        };
        let refused = parse(&["--agent", "three"]).unwrap_err().to_string();
        assert!(
            refused.contains("one") && refused.contains("two"),
            "{refused}"
        );
        for (arguments, name) in [(&[] as &[&str], "one"), (&["--agent", "two"], "two")] {
            let cli = Cli::from_arg_matches(&parse(arguments).unwrap()).unwrap();
            assert_eq!(two.by_name(cli.serve.agent.as_deref()).name, name);
        }
        let sign = parse(&["sign-card", "--key", "k", "--agent", "two"]);
        assert!(sign.is_ok());
    }
}
