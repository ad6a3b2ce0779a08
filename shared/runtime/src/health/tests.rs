//! Tests of the probes.

use super::{Checks, Health};
use crate::store::StoreError;
use crate::store::health::HealthCheck;
use crate::task::Timestamp;
use crate::testing::TestClock;
use async_trait::async_trait;
use futures::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A dependency that answers after a time.
struct After(Duration, bool, AtomicU64);

#[async_trait]
impl HealthCheck for After {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.2.fetch_add(1, Ordering::Relaxed);
        sleep(self.0).await;
        match self.1 {
            true => Ok(()),
            false => Err(StoreError::Unavailable("a private cause".to_owned())),
        }
    }
}

fn after(millis: u64, works: bool) -> Arc<After> {
    Arc::new(After(
        Duration::from_millis(millis),
        works,
        AtomicU64::new(0),
    ))
}

fn health(checks: Checks) -> Health {
    Health::new(
        checks,
        Arc::new(TestClock::following(Timestamp::default(), 1)),
    )
}

#[tokio::test(start_paused = true)]
async fn a_report_names_each_dependency_that_does_not_work() {
    let checks = Checks::new()
        .with("fast", after(3, true))
        .with("broken", after(5, false))
        .with("silent", after(3_600_000, true));
    let began = Instant::now();
    let report = health(checks).report().await;
    assert_eq!(began.elapsed().as_secs(), 2);
    assert!(!report.works());
    let expected = [
        ("fast", true, 3),
        ("broken", false, 5),
        ("silent", false, 2_000),
    ];
    for (found, (name, works, millis)) in report.0.iter().zip(expected) {
        assert_eq!((found.name.as_str(), found.works), (name, works));
        // Tokio's timers have a resolution of 1 ms.
        assert!(
            (millis..=millis + 1).contains(&found.latency.as_millis()),
            "{found:?}"
        );
    }
    assert_eq!(report.0.len(), expected.len());
}

#[tokio::test(start_paused = true)]
async fn a_report_is_valid_for_ten_seconds() {
    let table = after(0, true);
    let health = health(Checks::new().with("table", table.clone()));
    for (wait, probes) in [(0, 1), (9_999, 1), (1, 2), (9_000, 2)] {
        sleep(Duration::from_millis(wait)).await;
        assert!(health.report().await.works());
        assert_eq!(table.2.load(Ordering::Relaxed), probes, "after {wait} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_start_one_probe() {
    let table = after(1_500, true);
    let health = health(Checks::new().with("table", table.clone()));
    let reports = join_all((0..100).map(|_| health.report())).await;
    assert!(reports.iter().all(super::HealthReport::works));
    assert_eq!(table.2.load(Ordering::Relaxed), 1);
}
