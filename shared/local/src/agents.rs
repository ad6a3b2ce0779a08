//! The agents that a program serves.

use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{AgentBuildError, AgentDefinition};
use std::fmt;

type BuildFn = Box<dyn Fn(&Settings) -> Result<AgentDefinition, AgentBuildError> + Send + Sync>;

/// An agent that a program serves.
pub struct LocalAgent {
    pub(crate) name: &'static str,
    pub(crate) build: BuildFn,
    /// Whether the agent may call webhooks on this machine.
    pub(crate) calls_loopback: bool,
}

impl LocalAgent {
    /// The agent that `make` builds with the settings of the program. `name` chooses it: the
    /// value of `--agent`.
    pub fn new<F, E>(name: &'static str, make: F) -> Self
    where
        F: Fn(&Settings) -> Result<AgentDefinition, E> + Send + Sync + 'static,
        E: Into<AgentBuildError>,
    {
        Self {
            name,
            build: Box::new(move |settings| make(settings).map_err(Into::into)),
            calls_loopback: false,
        }
    }

    /// The same agent, which may call webhooks on this machine.
    #[must_use]
    pub fn calling_loopback(mut self) -> Self {
        self.calls_loopback = true;
        self
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
    pub(crate) first: LocalAgent,
    pub(crate) others: Vec<LocalAgent>,
}

impl Agents {
    /// A program that serves `agent` unless `--agent` chooses another.
    #[must_use]
    pub const fn new(agent: LocalAgent) -> Self {
        Self {
            first: agent,
            others: Vec::new(),
        }
    }

    /// The same program with one more agent.
    #[must_use]
    pub fn with(mut self, agent: LocalAgent) -> Self {
        self.others.push(agent);
        self
    }

    /// The agent with this name, the first one without a name.
    pub(crate) fn by_name(&self, name: Option<&str>) -> &LocalAgent {
        let mut others = self.others.iter();
        others
            .find(|agent| Some(agent.name) == name)
            .unwrap_or(&self.first)
    }
}
