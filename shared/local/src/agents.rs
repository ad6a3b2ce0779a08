//! The agents that a program serves.

use crate::cli;
use crate::config::Cli;
use crate::export::Export;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{AgentBuildError, AgentDefinition};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::fmt;
use std::process::ExitCode;

type BuildFn = Box<dyn Fn(&Settings) -> Result<AgentDefinition, AgentBuildError> + Send + Sync>;

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

/// An agent that a program serves.
pub struct LocalAgent {
    name: &'static str,
    make: BuildFn,
    calls_loopback: bool,
}

impl LocalAgent {
    /// The agent that `make` builds with the settings of the program. `name` chooses it: the
    /// value of `--agent`.
    pub fn new<F, E>(name: &'static str, make: F) -> Self
    where
        F: Fn(&Settings) -> Result<AgentDefinition, E> + Send + Sync + 'static,
        E: Into<AgentBuildError>,
    {
        let make: BuildFn = Box::new(move |settings| make(settings).map_err(Into::into));
        Self {
            name,
            make,
            calls_loopback: false,
        }
    }

    /// The same agent, which may call webhooks on this machine.
    #[must_use]
    pub fn calling_loopback(mut self) -> Self {
        self.calls_loopback = true;
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// The error of its author.
    pub(crate) fn build(&self, settings: &Settings) -> Result<AgentDefinition, AgentBuildError> {
        (self.make)(settings)
    }

    /// Whether the agent may call webhooks on this machine.
    pub(crate) const fn calls_loopback(&self) -> bool {
        self.calls_loopback
    }
}

impl fmt::Debug for LocalAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalAgent")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The agents that one program can serve. `--agent` chooses one of several.
#[derive(Debug)]
pub struct Agents {
    first: LocalAgent,
    others: Vec<LocalAgent>,
    exports: Vec<Export>,
}

impl Agents {
    /// A program that serves `agent` unless `--agent` chooses another.
    #[must_use]
    pub const fn new(agent: LocalAgent) -> Self {
        Self {
            first: agent,
            others: Vec::new(),
            exports: Vec::new(),
        }
    }

    /// The same program with one more agent.
    #[must_use]
    pub fn with(mut self, agent: LocalAgent) -> Self {
        self.others.push(agent);
        self
    }

    /// The same program with a command that exports what its agent keeps.
    #[must_use]
    pub fn exporting(mut self, export: Export) -> Self {
        self.exports.push(export);
        self
    }

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

    /// The agent with this name, the first one without a name.
    pub(crate) fn named(&self, name: Option<&str>) -> &LocalAgent {
        let mut others = self.others.iter();
        others
            .find(|agent| Some(agent.name) == name)
            .unwrap_or(&self.first)
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
