//! Probes the dependencies of the agent: table, bucket, queues and those of an author. It also knows
//! the build that runs.
//!
//! A report is valid for 10 s, so that requests to the public health path cannot load the
//! dependencies. Only one probe runs at a time in a process.

use crate::engine::Clock;
use crate::store::StoreError;
use crate::store::health::HealthCheck;
use crate::task::Timestamp;
use futures::future::join_all;
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a report is valid.
const FRESH: Duration = Duration::from_secs(10);
/// How long a dependency may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The dependencies of an agent, by name.
#[derive(Clone, Default)]
pub struct Checks(Vec<(String, Arc<dyn HealthCheck>)>);

impl Checks {
    /// No dependencies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dependency. The report shows it under `name`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, check: Arc<dyn HealthCheck>) -> Self {
        self.0.push((name.into(), check));
        self
    }

    /// Adds the dependency `name`, which works if `other` does. Nothing if that is absent, or
    /// if `name` has a check of its own.
    #[must_use]
    pub(crate) fn like(self, other: &str, name: &str) -> Self {
        if self.0.iter().any(|(it, _)| it == name) {
            return self;
        }
        let entry = self.0.iter().find(|(it, _)| it == other);
        match entry.map(|(_, check)| Arc::clone(check)) {
            Some(check) => self.with(name, check),
            None => self,
        }
    }

    /// Adds all of `others`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}

/// What a probe found out about one dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether it answered in time and without an error.
    pub(crate) works: bool,
    /// How long it took.
    pub(crate) latency: Duration,
}

/// What a probe found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HealthReport(pub(crate) Vec<Dependency>);

impl HealthReport {
    /// Whether all dependencies work.
    pub(crate) fn works(&self) -> bool {
        self.0.iter().all(|dependency| dependency.works)
    }
}

/// The dependencies, and the last report about them.
pub(crate) struct Health {
    checks: Checks,
    clock: Arc<dyn Clock>,
    last: Mutex<Option<(Timestamp, HealthReport)>>,
}

impl Health {
    pub(crate) fn new(checks: Checks, clock: Arc<dyn Clock>) -> Self {
        Self {
            checks,
            clock,
            last: Mutex::new(None),
        }
    }

    /// The last report, or a new one if that is too old. Callers that come during a probe
    /// wait for its report, at most 2 s.
    pub(crate) async fn report(&self) -> HealthReport {
        let mut last = self.last.lock().await;
        let now = self.clock.now();
        if let Some((at, report)) = &*last
            && now < at.plus(FRESH)
        {
            return report.clone();
        }
        let probes = self
            .checks
            .0
            .iter()
            .map(|(name, check)| self.probe(name, check));
        let report = HealthReport(join_all(probes).await);
        *last = Some((self.clock.now(), report.clone()));
        report
    }

    /// What an operator should mend although everything works. A check under two names is asked
    /// once.
    pub(crate) async fn warnings(&self) -> Vec<&'static str> {
        let mut checks: Vec<_> = self.checks.0.iter().map(|(_, check)| check).collect();
        checks.sort_by_key(|check| Arc::as_ptr(check).cast::<()>());
        checks.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let warnings = checks
            .iter()
            .map(|check| timeout(PATIENCE, check.warning()));
        let warnings = join_all(warnings).await.into_iter();
        warnings
            .filter_map(|warning| warning.ok().flatten())
            .collect()
    }

    async fn probe(&self, name: &str, check: &Arc<dyn HealthCheck>) -> Dependency {
        let began = self.clock.now();
        let late = |_| Err(StoreError::Unavailable("no answer within 2 s".to_owned()));
        let result = timeout(PATIENCE, check.check_health()).await;
        let result = result.unwrap_or_else(late);
        if let Err(error) = &result {
            tracing::warn!(health.dependency = name, error.cause = %error, "a dependency does not work");
        }
        Dependency {
            name: name.to_owned(),
            works: result.is_ok(),
            latency: self.clock.now().since(began),
        }
    }
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Health").field(&self.checks).finish()
    }
}

/// What runs: the version of the library, and the beginning of the SHA-256 of the executable,
/// as `sha256sum` prints it. Read once, which takes some 10 ms for each 10 MB.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut hash = executable_hash().unwrap_or_else(|_| "unknown".to_owned());
        hash.truncate(12);
        format!("{}+{hash}", env!("CARGO_PKG_VERSION"))
    })
}

fn executable_hash() -> io::Result<String> {
    let mut file = File::open(std::env::current_exe()?)?;
    let mut hash = Context::new(&SHA256);
    let mut piece = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(hex::encode(hash.finish()));
        }
        hash.update(piece.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests;
