//! Tests of the sums of many processes.

use super::text::{parsed, value};
use super::{call, count, counted, turn};
use crate::clock::Clock;
use crate::store::contract::{Fault, WatchedTable};
use crate::store::counters::{Counter, Counters};
use crate::task::Timestamp;
use crate::telemetry::metrics::{Metrics, Reporter, text_of};
use crate::testing::TestClock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

struct Process {
    metrics: Metrics,
    reporter: Reporter,
}

impl Process {
    fn start(table: &Arc<WatchedTable>, clock: &Arc<TestClock>, random: u128) -> Self {
        let metrics = Metrics::default();
        let counters = Some(Counters::new(table.clone()));
        let reporter = Reporter::new(metrics.clone(), counters, random)
            .with_clock(Arc::clone(clock) as Arc<dyn Clock>);
        Self { metrics, reporter }
    }

    async fn call(&self, ms: u64) {
        count(&self.metrics, || call("acme", "echo", ms));
        self.reporter.end_of_invocation().await;
    }
}

const ECHO: [(&str, &str); 3] = [
    ("method", "SendMessage"),
    ("skill_name", "echo"),
    ("status", "200"),
];

async fn read(table: &Arc<WatchedTable>) -> Vec<Counter> {
    Counters::new(table.clone()).read_counters().await.unwrap()
}

async fn requests(table: &Arc<WatchedTable>) -> f64 {
    let samples = parsed(&text_of(&read(table).await));
    let is_there = samples.keys().any(|(name, _)| name == "a2a_requests_total");
    if is_there {
        value(&samples, "a2a_requests_total", &ECHO)
    } else {
        0.0
    }
}

#[tokio::test]
async fn sums_never_fall_over_processes_and_restarts() {
    let (table, clock) = (
        Arc::new(WatchedTable::default()),
        Arc::new(TestClock::standing(Timestamp::default())),
    );
    let mut before = 0.0;
    let mut processes: Vec<_> = (0..12).map(|n| Process::start(&table, &clock, n)).collect();
    for round in 0..30_u64 {
        for process in &processes {
            process.call(round).await;
        }
        let place = usize::try_from(round).unwrap() % processes.len();
        processes[place] = Process::start(&table, &clock, u128::from(round));
        clock.advance(Duration::from_secs(11));
        let now = requests(&table).await;
        assert!(now >= before, "{now} after {before}");
        before = now;
    }
    // Each process stored its call in each round before it was replaced.
    assert_eq!(before, 360.0);
}

#[tokio::test]
async fn a_process_writes_at_once_and_then_every_ten_seconds() {
    let (table, clock) = (
        Arc::new(WatchedTable::default()),
        Arc::new(TestClock::standing(Timestamp::default())),
    );
    let process = Process::start(&table, &clock, 3);
    process.call(1).await;
    let of_one = table.writes();
    assert_eq!(requests(&table).await, 1.0);
    for _ in 0..9 {
        clock.advance(Duration::from_secs(1));
        process.call(1).await;
    }
    assert_eq!(table.writes(), of_one);
    clock.advance(Duration::from_secs(1));
    process.call(1).await;
    assert_eq!(requests(&table).await, 11.0);
    assert_eq!(table.writes(), 2 * of_one);
}

#[tokio::test]
async fn a_lost_response_counts_nothing_twice() {
    let (table, clock) = (
        Arc::new(WatchedTable::default()),
        Arc::new(TestClock::standing(Timestamp::default())),
    );
    let process = Process::start(&table, &clock, 3);
    table.set(Fault::NoReply);
    process.call(1).await;
    table.set(Fault::None);
    clock.advance(Duration::from_secs(10));
    process.call(1).await;
    assert_eq!(requests(&table).await, 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_does_not_answer_delays_a_call_by_a_second() {
    let (table, clock) = (
        Arc::new(WatchedTable::default()),
        Arc::new(TestClock::standing(Timestamp::default())),
    );
    let process = Process::start(&table, &clock, 3);
    table.set(Fault::Hangs);
    let began = tokio::time::Instant::now();
    process.call(1).await;
    assert_eq!(began.elapsed().as_secs(), 1);
}

#[tokio::test]
async fn stored_counters_show_the_same_text_as_the_process() {
    let (table, clock) = (
        Arc::new(WatchedTable::default()),
        Arc::new(TestClock::standing(Timestamp::default())),
    );
    let process = Process::start(&table, &clock, 3);
    let failed = || turn("a \"b\"", "failed", 1_234);
    count(&process.metrics, failed);
    process.call(20).await;
    let text = text_of(&read(&table).await);
    let shown = counted(|| {
        failed();
        call("acme", "echo", 20);
    });
    assert_eq!(text, shown.text());
}

#[tokio::test]
async fn counters_of_a_later_version_are_left_out() {
    let amounts = BTreeMap::from([("n".to_owned(), 1), ("z9".to_owned(), 1)]);
    let series = |text: &str| Counter {
        series: text.to_owned(),
        amounts: amounts.clone(),
    };
    let known = series(r#"["a2a_tasks_cleaned_total"]"#);
    let unknown = [
        r#"["a2a_new_total"]"#,
        r#"["a2a_tasks_cleaned_total","x"]"#,
        "[]",
        "x",
    ];
    let all: Vec<_> = unknown.into_iter().map(series).chain([known]).collect();
    let samples = parsed(&text_of(&all));
    assert_eq!(value(&samples, "a2a_tasks_cleaned_total", &[]), 1.0);
    assert_eq!(samples.len(), 2);
}
