//! Counts calls, turns, sweeps and starts from their log events.
//!
//! A layer of `tracing` reads the events of these targets, whatever `A2A_LOG` shows. So the
//! engine has no counters of its own.
//!
//! - `family`: the name, help text and labels of each metric
//! - `measure`: what an event measured
//! - `registry`: the counters, for a bounded number of label sets
//! - `text`: the Prometheus text format
//! - `report`: adds what was counted to the table, at the end of an invocation

mod family;
mod measure;
mod registry;
mod report;
#[cfg(test)]
mod tests;
mod text;

pub use report::Reporter;

use self::measure::Fields;
use self::registry::{Names, Registry};
use crate::clock::lock;
use crate::store::counters::Counter;
use crate::telemetry::events::{CALL, LEFT_OUT, SCARCE, START, SWEEP, TURN};
use a2a_lambda_skill::MODEL;
use std::sync::{Arc, Mutex, MutexGuard};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The media type of the Prometheus text format.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where a function keeps what it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricsMode {
    /// Nowhere.
    #[default]
    Off,
    /// In the table, for `GET /metrics`.
    Table,
}

/// What a process has counted. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    /// Where a function keeps what it counts. `None` in a process that shows it itself.
    mode: Option<MetricsMode>,
    names: Names,
    /// Everything since the start, if the process shows it itself.
    total: Registry,
    /// What is not in the table yet.
    delta: Registry,
}

impl Metrics {
    /// The layer that counts.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        let is_counted = |event: &Metadata<'_>| {
            [CALL, LEFT_OUT, TURN, MODEL, SWEEP, START, SCARCE].contains(&event.target())
        };
        self.clone()
            .with_filter(filter_fn(is_counted).with_max_level_hint(LevelFilter::INFO))
    }

    /// Keeps what is counted from now on for this place only.
    pub(crate) fn keep_for(&self, mode: MetricsMode) {
        self.lock().mode = Some(mode);
    }

    /// Everything since the start of the process, in the Prometheus text format. A function
    /// has nothing here.
    #[must_use]
    pub fn text(&self) -> String {
        text::write(&self.lock().total)
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        // Every change is one addition, so the data behind a poisoned lock is complete.
        lock(&self.0)
    }
}

/// The sums of the counters of all processes, in the Prometheus text format.
pub(crate) fn text_of(counters: &[Counter]) -> String {
    text::write(&Registry::from_counters(counters))
}

impl<S: Subscriber> Layer<S> for Metrics {
    /// Counts an event, if anybody reads the count.
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut guard = self.lock();
        let counts = &mut *guard;
        if counts.mode == Some(MetricsMode::Off) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        for measurement in fields.measurements(event.metadata().target()) {
            let measurement = counts.names.admit(measurement);
            match counts.mode {
                None => counts.total.record(&measurement),
                Some(MetricsMode::Table) => counts.delta.record(&measurement),
                Some(MetricsMode::Off) => {}
            }
        }
    }
}
