//! Starts a function: its settings, its log and its counters.

use super::error::ServeError;
#[cfg(feature = "secrets")]
use super::stored_keys::SecretsManagerKeys;
#[cfg(feature = "secrets")]
use crate::engine::SecretKeys;
use crate::engine::{Clock as _, Ids as _, RandomIds, SystemClock};
use crate::settings::{self, Configuration, Environment, Settings, Source as _};
use crate::store::counters::Counters;
use crate::task::Timestamp;
use crate::telemetry::metrics::Reporter;
use crate::telemetry::{self, LogFormat, Metrics, events};
#[cfg(feature = "aws")]
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
#[cfg(feature = "aws")]
use serde::{Serialize, de::DeserializeOwned};
#[cfg(feature = "aws")]
use std::fmt::Debug;
use std::sync::Arc;

/// A function that is starting.
pub(super) struct Start {
    function: &'static str,
    process: Process,
    metrics: Metrics,
    pub(super) configuration: Configuration,
}

/// A function that waits for invocations. A clone reports to the same reporter.
#[derive(Clone)]
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) reporter: Arc<Reporter>,
}

impl Start {
    /// Begins the start of `function`. Call it first in `main`.
    ///
    /// # Errors
    /// [`ServeError`] when a panic would end the process, or the configuration file cannot
    /// be used.
    pub(super) fn begin(function: &'static str) -> Result<Self, ServeError> {
        let process = Process {
            started_at: SystemClock.now(),
        };
        let configuration = Configuration::load();
        let filter = configuration
            .as_ref()
            .map_or_else(|_| Environment.get("A2A_LOG"), |it| it.get("A2A_LOG"));
        let metrics = telemetry::start(LogFormat::Json, filter.as_deref());
        settings::warn_of_unknown();
        if let Ok(configuration) = &configuration {
            configuration.report_unknown();
        }
        crate::panics::check()?;
        Ok(Self {
            function,
            process,
            metrics,
            configuration: configuration?,
        })
    }

    /// The settings, with the secret keys. Those of Secrets Manager are read when one is needed.
    ///
    /// # Errors
    /// [`ServeError::Settings`] when a setting cannot be used.
    #[cfg(feature = "aws")]
    pub(super) fn settings(&self) -> Result<Settings, ServeError> {
        let settings = Settings::read(&self.configuration)?;
        #[cfg(feature = "secrets")]
        let settings = with_stored_keys(settings);
        Ok(settings)
    }

    /// The settings of a function without the secret key.
    ///
    /// # Errors
    /// [`ServeError::Settings`] when a setting cannot be used.
    pub(super) fn public_settings(&self) -> Result<Settings, ServeError> {
        Ok(Settings::read_public(&self.configuration)?)
    }

    /// Ends the start, and logs how long it took. Without `counters` the function writes
    /// nothing that it counts to the table.
    pub(super) fn ready(self, counters: Option<Counters>) -> Started {
        let reporter = Reporter::new(self.metrics, counters, RandomIds.next());
        let unknown = self.configuration.unknown().len();
        let took = SystemClock.now().since(self.process.started_at);
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        events::cold_start(self.function, took, unknown);
        Started {
            process: self.process,
            reporter: Arc::new(reporter),
        }
    }
}

#[cfg(feature = "aws")]
impl Started {
    /// Runs `work` for each event. The process sends what it has counted before its response,
    /// since Lambda freezes it afterwards.
    ///
    /// # Errors
    /// [`ServeError::Lambda`] when the Runtime API cannot be reached.
    pub(super) async fn run<A, R, E>(
        self,
        work: impl AsyncFn(A, Option<Timestamp>) -> Result<R, E>,
    ) -> Result<(), ServeError>
    where
        A: DeserializeOwned,
        R: Serialize,
        E: Into<Diagnostic> + Debug,
    {
        let (function, work) = (&self, &work);
        let handler = service_fn(move |event: LambdaEvent<A>| async move {
            let deadline = function.process.deadline(event.context.deadline);
            let response = work(event.payload, deadline).await;
            function.reporter.end_of_invocation().await;
            response
        });
        Ok(lambda_runtime::run(handler).await?)
    }
}

/// The settings with the keys of `A2A_SECRET_KEY_ID`, if it is set.
#[cfg(feature = "secrets")]
fn with_stored_keys(mut settings: Settings) -> Settings {
    if let Some(id) = settings.secret_key_id.clone() {
        settings.policy.secrets = SecretKeys::from_reader(Arc::new(SecretsManagerKeys { id }));
    }
    settings
}

/// When this process started, to judge the deadlines of its invocations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    started_at: Timestamp,
}

impl Process {
    /// Reads a deadline of the Lambda runtime, in milliseconds since 1970. `None`
    /// for a time before the start of the process: `cargo lambda watch` sends a
    /// constant of 1970. A later deadline counts even if it has passed.
    pub(super) fn deadline(self, millis: u64) -> Option<Timestamp> {
        let at = i64::try_from(millis).ok().map(Timestamp::from_millis);
        at.filter(|at| *at >= self.started_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_deadline_before_the_start_of_the_process_is_none() {
        let started = Timestamp::from_millis(1_700_000_000_000);
        let process = Process {
            started_at: started,
        };
        // 600000 is what `cargo lambda watch` sends.
        each_row([0, 600_000, 1_699_999_999_999, u64::MAX], |none| {
            assert_eq!(process.deadline(none), None, "{none}");
        });
        // A deadline counts even if it has passed.
        assert_eq!(process.deadline(1_700_000_000_000), Some(started));
    }
}
