//! One agent with either store, memory or emulator, and a clock that the test sets. One
//! test can then check both stores.

use crate::emulator::{Emulator, EmulatorError, run};
use crate::world::{self, Live, Reply, Request};
use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::http::Function;
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Settings, SettingsError, Source};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::task::Timestamp;
use a2a_lambda::testing::TestClock;
use std::sync::Arc;
use std::time::Duration;

/// The store of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The memory store.
    Memory,
    /// The table and the bucket of an emulator.
    Emulator,
}

impl Place {
    /// Both stores.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Emulator];
}

/// The reason why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// No emulator is available.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent cannot be published.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// An agent with its HTTP edges.
#[derive(Debug)]
pub struct Fixture {
    /// The emulator, if the agent does not use the memory store.
    pub emulator: Option<Emulator>,
    runtime: Runtime,
    clock: Arc<TestClock>,
    /// The prefix of its tenants' names, unique for this run.
    name: String,
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

impl Fixture {
    /// Starts `agent` at `place` with changed settings. The clock is set to the current
    /// time and does not advance.
    ///
    /// # Errors
    /// [`FixtureError`] when no emulator is available, or the agent cannot be published.
    pub async fn at(
        place: Place,
        agent: AgentDefinition,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, FixtureError> {
        let mut settings = Settings::read(&Local)?;
        change(&mut settings);
        let clock = Arc::new(TestClock::standing(SystemClock.now()));
        let mut builder = Runtime::builder(agent, settings).clock(clock.clone());
        let emulator = match place {
            Place::Memory => None,
            Place::Emulator => Some(Emulator::start().await?),
        };
        if let Some(emulator) = &emulator {
            builder = builder.aws(&emulator.clients);
        }
        Ok(Self {
            runtime: builder.build()?,
            clock,
            name: format!("s{:x}-", run()),
            emulator,
        })
    }

    /// The time of the agent's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The name of `tenant` in this run.
    #[must_use]
    pub fn tenant(&self, tenant: &str) -> String {
        format!("{}{tenant}", self.name)
    }

    /// Sets the clock to `after` later than `since`.
    pub fn set(&self, since: Timestamp, after: Duration) {
        self.clock.set(since.plus(after));
    }

    /// The whole response to a request of `caller`, in the form `tenant:subject`.
    pub async fn call(&self, request: &Request, caller: &str) -> Reply {
        self.open(request, caller).await.finish().await
    }

    /// The response with its body unread.
    pub async fn open(&self, request: &Request, caller: &str) -> Live {
        let edge = self
            .runtime
            .edge(Function::of(request.method, request.path()));
        let identity = Identity {
            authorizer: None,
            authorization: Some(format!("Bearer dev:{}", self.tenant(caller))),
        };
        world::send(&edge, request, identity).await
    }
}
