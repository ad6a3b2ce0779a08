//! One agent over a memory or over an emulator, at a time that a test sets: so
//! that one story is told of both.

use crate::emulator::{Emulator, EmulatorError, run};
use crate::virtual_clock::SetClock;
use crate::world::{self, Live, Reply, Request};
use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::http::Door;
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Settings, SettingsError, Source};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::task::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Where an agent keeps what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the memory of the process.
    Memory,
    /// In the table and the bucket of an emulator.
    Emulator,
}

impl Place {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Emulator];
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum StandError {
    /// There is no emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The settings have changed their rules.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent cannot be published.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// An agent at its edge.
#[derive(Debug)]
pub struct Stand {
    /// What it keeps everything in, if that is not its memory.
    pub emulator: Option<Emulator>,
    runtime: Runtime,
    clock: Arc<SetClock>,
    /// What the names of its tenants begin with: no other run has them.
    name: String,
}

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

impl Stand {
    /// `agent` at `place`, with these changes of its settings. Its clock stands
    /// at the time of its start.
    ///
    /// # Errors
    /// [`StandError`] when there is no emulator, or the agent cannot be
    /// published.
    pub async fn at(
        place: Place,
        agent: AgentDefinition,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, StandError> {
        let mut settings = Settings::read(&Local)?;
        change(&mut settings);
        let clock = Arc::new(SetClock::default());
        clock.set(SystemClock.now());
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

    /// The time it is there.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What `tenant` is called here.
    #[must_use]
    pub fn tenant(&self, tenant: &str) -> String {
        format!("{}{tenant}", self.name)
    }

    /// Sets the clock to `after` behind `since`.
    pub fn set(&self, since: Timestamp, after: Duration) {
        self.clock.set(since.plus(after));
    }

    /// The whole answer to a request of `caller`, who is `tenant:subject`.
    pub async fn call(&self, request: &Request, caller: &str) -> Reply {
        self.open(request, caller).await.finish().await
    }

    /// The same with its body unread.
    pub async fn open(&self, request: &Request, caller: &str) -> Live {
        let edge = self.runtime.edge(Door::of(request.method, request.path()));
        let identity = Identity {
            authorizer: None,
            authorization: Some(format!("Bearer dev:{}", self.tenant(caller))),
        };
        world::send(&edge, request, identity).await
    }
}
