//! The function that looks for turns which died.

use super::{Built, ServeError, clients, logging, push_queue};
use crate::engine::{EngineError, Leases};
use crate::runtime::Runtime;
use crate::settings::{Environment, Settings};
use crate::store::dynamodb::DynamoStore;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::de::IgnoredAny;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Looks over the open tasks once each time the schedule says so.
///
/// # Errors
/// [`ServeError`] when the function cannot start.
pub async fn sweep(agent: Built) -> Result<(), ServeError> {
    logging();
    let settings = Settings::read_public(&Environment)?;
    let clients = clients().await;
    let store = Arc::new(
        DynamoStore::new(clients.dynamodb.clone(), &settings.table)
            .with_tombstone(settings.policy.thread_tombstone),
    );
    let pushes = push_queue(&settings).await;
    let tasks = store.clone();
    let runtime = Runtime::builder(agent?, settings).aws(&clients).build()?;
    let mut engine = runtime.engine().clone();
    if let Some(queue) = pushes {
        engine = engine.with_push_queue(store, Arc::new(queue));
    }
    let (engine, tasks) = (&engine, &*tasks);
    let objects = &Mutex::new(None);
    let handler = service_fn(move |_tick: LambdaEvent<IgnoredAny>| async move {
        let report = Box::pin(engine.sweep(tasks, Leases::Respect)).await?;
        let threads = Box::pin(engine.sweep_threads(tasks)).await?;
        let after = place(objects).clone();
        let tidied = Box::pin(engine.sweep_objects(tasks, after)).await?;
        place(objects).clone_from(&tidied.next);
        tracing::info!(
            sweep.looked_at = report.looked_at,
            sweep.redispatched = report.redispatched,
            sweep.failed = report.failed,
            sweep.threads_looked_at = threads.looked_at,
            sweep.threads_expired = threads.threads_expired,
            a2a_states_cleaned_total = threads.states_cleaned,
            sweep.state_objects = threads.objects_removed,
            sweep.objects = tidied.looked_at,
            sweep.removed = tidied.removed,
            sweep.pushed = report.pushed,
            "swept"
        );
        Ok::<_, SweepError>(())
    });
    Ok(lambda_runtime::run(handler).await?)
}

/// Where the next look at stored objects begins. It is kept as long as the
/// environment is; a new one begins at the first object again.
fn place(objects: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    objects.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a sweep ended early. The next one begins anew.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    /// The store does not answer.
    #[error("failed to sweep: {0}")]
    Engine(#[from] EngineError),
}

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
    fn a_sweep_that_fails_has_a_name_and_tells_no_secrets() {
        let cause = StoreError::Unavailable("table-of-a-customer".to_owned());
        let diagnostic = Diagnostic::from(SweepError::from(EngineError::from(cause)));
        assert_eq!(diagnostic.error_type, "SweepError");
        assert!(diagnostic.error_message.starts_with("failed to sweep"));
        assert!(!diagnostic.error_message.contains("customer"));
    }

    #[test]
    fn any_event_of_the_schedule_will_do() {
        let tick = include_str!("sweep/schedule.json");
        assert!(serde_json::from_str::<IgnoredAny>(tick).is_ok());
    }
}
