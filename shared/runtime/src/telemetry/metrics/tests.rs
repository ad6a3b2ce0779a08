//! Tests of what is counted and shown.

mod table;
mod text;

use super::Metrics;
use crate::telemetry::metrics::MetricsMode;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// The metrics of a process that logs errors only, shows its own metrics and runs `events`.
fn counted(events: impl FnOnce()) -> Metrics {
    let metrics = Metrics::default();
    count(&metrics, events);
    metrics
}

fn counted_for(mode: MetricsMode, events: impl FnOnce()) -> Metrics {
    let metrics = Metrics::default();
    metrics.keep_for(mode);
    count(&metrics, events);
    metrics
}

fn count(metrics: &Metrics, events: impl FnOnce()) {
    let lines = fmt::layer().with_filter(LevelFilter::ERROR);
    let subscriber = tracing_subscriber::registry()
        .with(metrics.layer())
        .with(lines);
    tracing::subscriber::with_default(subscriber, events);
}

/// A call of `skill` that took `ms`.
fn call(tenant: &str, skill: &str, ms: u64) {
    tracing::info!(
        target: "a2a_lambda::call",
        {
            a2a.method = "SendMessage",
            a2a.tenant = tenant,
            a2a.skill = skill,
            http.response.status_code = 200_u64,
            ms,
            units.read = 0.5_f64,
            units.write = 2.0_f64,
        },
        "call"
    );
}

/// A call that was refused for `reason`.
fn refused(tenant: &str, skill: Option<&str>, reason: &str) {
    tracing::info!(
        target: "a2a_lambda::call",
        {
            a2a.method = "SendMessage",
            a2a.tenant = tenant,
            a2a.skill = skill,
            a2a.error = reason,
            class = "caller",
            http.response.status_code = 429_u64,
            ms = 1_u64,
        },
        "refused"
    );
}

#[test]
fn a_function_keeps_only_what_it_stores() {
    for (mode, is_kept) in [(MetricsMode::Off, false), (MetricsMode::Table, true)] {
        let metrics = counted_for(mode, || call("acme", "echo", 1));
        let counted = metrics.lock();
        assert!(counted.total.series.is_empty(), "{mode:?}");
        assert_eq!(!counted.delta.series.is_empty(), is_kept, "{mode:?}");
    }
}

/// A turn of `skill` that left its task in `state`.
fn turn(skill: &str, state: &str, ms: u64) {
    tracing::info!(
        target: "a2a_lambda::turn",
        { a2a.skill = skill, a2a.state = state, ms },
        "turn"
    );
    tracing::info!(
        target: "a2a_lambda::model",
        {
            a2a.skill = skill,
            gen_ai.request.model = "m",
            gen_ai.usage.input_tokens = 5_u64,
            gen_ai.usage.output_tokens = 2_u64,
        },
        "model"
    );
}
