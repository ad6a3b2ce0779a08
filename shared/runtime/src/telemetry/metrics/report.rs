//! Sends what was counted, at the end of an invocation.

use super::{Metrics, MetricsMode};
use crate::engine::{Clock, SystemClock};
use crate::store::counters::{COUNTER_SHARDS, Counter, Counters};
use crate::task::Timestamp;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a process adds its counters to the table at most.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long an invocation waits for that.
const PATIENCE: Duration = Duration::from_secs(1);
/// The namespace of the metrics in CloudWatch, before the name of the stack.
const NAMESPACE: &str = "a2a-lambda";

/// The name of a deployed function, `<stack>-<function>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionName {
    namespace: String,
    function: String,
}

impl FunctionName {
    /// Splits `lambda_name`, the name on AWS, in front of `function`, the name in this project.
    #[must_use]
    pub fn of(lambda_name: Option<&str>, function: &str) -> Self {
        let stack = lambda_name
            .and_then(|name| name.strip_suffix(function))
            .and_then(|name| name.strip_suffix('-'));
        Self {
            namespace: stack.map_or_else(
                || NAMESPACE.to_owned(),
                |stack| format!("{NAMESPACE}/{stack}"),
            ),
            function: function.to_owned(),
        }
    }
}

/// Sends the counters of one process.
pub struct Reporter {
    metrics: Metrics,
    name: FunctionName,
    mode: MetricsMode,
    /// The table, if this function may write counters to it.
    counters: Option<Arc<dyn Counters>>,
    shard: u32,
    clock: Arc<dyn Clock>,
    print: Box<dyn Fn(String) + Send + Sync>,
    last_write: Mutex<Option<Timestamp>>,
}

impl Reporter {
    /// A reporter that prints and writes as `mode` says. `random` chooses the shard.
    #[must_use]
    pub fn new(
        metrics: Metrics,
        mode: MetricsMode,
        name: FunctionName,
        counters: Option<Arc<dyn Counters>>,
        random: u128,
    ) -> Self {
        let mode = match (mode, &counters) {
            (MetricsMode::Both, None) => MetricsMode::Emf,
            (MetricsMode::Table, None) => MetricsMode::Off,
            (mode, _) => mode,
        };
        metrics.send_to(mode);
        let shard = random % u128::from(COUNTER_SHARDS);
        Self {
            metrics,
            name,
            mode,
            counters,
            shard: u32::try_from(shard).unwrap_or_default(),
            clock: Arc::new(SystemClock),
            print: Box::new(print),
            last_write: Mutex::new(None),
        }
    }

    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Gives each line to `print`, and none to standard output. A line has no line end.
    #[must_use]
    pub fn with_print(mut self, print: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.print = Box::new(print);
        self
    }

    /// Sends what was counted since the last call. Call it when the work of an invocation is
    /// done and its response is not, since Lambda freezes the process after the response.
    pub async fn end_of_invocation(&self) {
        let now = self.clock.now();
        if self.mode.prints() {
            let (namespace, function) = (&self.name.namespace, &self.name.function);
            let lines = self
                .metrics
                .counted()
                .emf_lines
                .take(namespace, function, now);
            lines.into_iter().for_each(&self.print);
        }
        if let Some(counters) = self.counters.as_ref().filter(|_| self.is_due(now)) {
            let sums = self.metrics.counted().store_buffer.take();
            self.store(&**counters, &sums).await;
        }
    }

    /// Adds the counters to the table. Counters that fail are lost: after a lost response
    /// nobody knows whether they were added, and a second time would count them twice.
    async fn store(&self, counters: &dyn Counters, sums: &[Counter]) {
        if sums.is_empty() {
            return;
        }
        let adding = counters.add_counters(self.shard, sums);
        match tokio::time::timeout(PATIENCE, adding).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("failed to store counters: {error}"),
            Err(_) => tracing::warn!("failed to store counters within a second"),
        }
    }

    /// Whether the interval is over. If it is, the next one begins.
    fn is_due(&self, now: Timestamp) -> bool {
        if !self.mode.stores() {
            return false;
        }
        let mut last_write = self
            .last_write
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_due = last_write.is_none_or(|at| now >= at.plus(INTERVAL));
        if is_due {
            *last_write = Some(now);
        }
        is_due
    }
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter")
            .field("name", &self.name)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Prints one line in one write, so that no other line comes between.
fn print(mut line: String) {
    line.push('\n');
    // A function without standard output has no metrics; its calls still work.
    let _printed = std::io::stdout().write_all(line.as_bytes());
}
