//! Runs the function `sweep`, which looks for turns whose process died.

use super::error::ServeError;
use super::services::{over_stores, push_queue, queue};
use super::start::Start;
use crate::engine::{EngineError, SweepPlaces};
use a2a_lambda_skill::BuildAgent;
use lambda_runtime::Diagnostic;
use serde::de::IgnoredAny;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Runs the sweep: one round for each event of the schedule.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn sweep(agent: impl BuildAgent) -> Result<(), ServeError> {
    let start = Start::begin("sweep")?;
    let settings = start.public_settings()?;
    let turns = queue(&settings).await?;
    let pushes = push_queue(&settings).await;
    let agent = agent.build().map_err(ServeError::Agent)?;
    let (runtime, counters) = over_stores(agent, &settings).await;
    let mut engine = runtime.build_engine()?;
    if let Some(queue) = pushes {
        engine = engine.with_push_queue(Arc::new(queue));
    }
    let places = Mutex::new(SweepPlaces::default());
    let sweep = async |_: IgnoredAny, deadline| {
        // Never contended: Lambda runs one invocation at a time in a process.
        let mut places = places.lock().await;
        let swept = Box::pin(engine.sweeper.sweep_round(&turns, &mut places, deadline)).await;
        swept.error.map_or(Ok(()), |error| Err(SweepError(error)))
    };
    start.ready(counters).run(sweep).await
}

/// Why a sweep ended early. The next one starts again.
#[derive(Debug, thiserror::Error)]
#[error("failed to sweep: {0}")]
struct SweepError(#[from] EngineError);

impl From<SweepError> for Diagnostic {
    fn from(error: SweepError) -> Self {
        Self {
            error_type: "SweepError".to_owned(),
            error_message: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    #[test]
    fn a_failed_sweep_has_an_error_type_and_shows_no_private_cause() {
        let cause = StoreError::Unavailable("table-of-a-customer".to_owned());
        let diagnostic = Diagnostic::from(SweepError::from(EngineError::from(cause)));
        assert_eq!(diagnostic.error_type, "SweepError");
        assert!(diagnostic.error_message.starts_with("failed to sweep"));
        assert!(!diagnostic.error_message.contains("customer"));
    }

    #[test]
    fn the_sweep_accepts_an_event_of_the_schedule() {
        let tick = include_str!("sweep/schedule.json");
        assert!(serde_json::from_str::<IgnoredAny>(tick).is_ok());
    }
}
