//! Kills the unchanged program at every store call of eight scenarios, and cuts streams
//! after every frame.
//!
//! It checks that acknowledged work comes to rest after a restart, that finished tasks keep
//! their content, and that a repeated write changes nothing. Planted faults prove that the
//! checks detect violations.
//!
//! A failure names its case; `A2A_KILL_CASE='<case>'` runs only that one.
#![cfg(test)]

#[expect(dead_code, reason = "only the suite `local` uses all of it")]
#[path = "../local/agent.rs"]
mod agent;
mod case;
mod client;
mod cut;
mod plan;
mod proxy;
mod site;

use a2a_lambda_tests::scenarios::Scenario;
use case::run;
use plan::{Deed, Plan, Point};
use std::collections::VecDeque;
use tokio::task::JoinSet;

/// The number of cases that run in parallel. A case spends most of its time waiting.
const AT_ONCE: usize = 6;

/// How often a case is tried. On a busy machine two chunks can become one commit, and then
/// the planned call does not occur.
const TRIES: usize = 5;

#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name a case to replay"
)]
fn chosen() -> Option<String> {
    std::env::var("A2A_KILL_CASE").ok()
}

/// The name of a case, for `A2A_KILL_CASE`.
fn name(scenario: Scenario, plan: &Plan) -> String {
    format!("{scenario:?} {plan}")
}

/// The store calls of a scenario that occur in both of two runs, so that calls that depend
/// on timing do not count.
async fn points(scenario: Scenario) -> Vec<Point> {
    let mut runs = Vec::new();
    for _ in 0..TRIES {
        let outcome = Box::pin(run(scenario, None, false)).await;
        assert_eq!(outcome.wrong, [""; 0], "{scenario:?} without a kill");
        // On a busy machine the client may be too late.
        if outcome.reached {
            runs.push(outcome.points);
        }
        if runs.len() == 2 {
            break;
        }
    }
    assert_eq!(runs.len(), 2, "{scenario:?} without a kill does not finish");
    let other = runs.pop().unwrap_or_default();
    let mut points = runs.pop().unwrap_or_default();
    points.retain(|point| other.contains(point));
    points
}

/// Runs cases in parallel, each until its planned call occurs.
async fn all(mut left: VecDeque<(Scenario, Plan)>) -> (usize, Vec<String>, Vec<String>) {
    let mut cases = JoinSet::new();
    let (mut kills, mut missed, mut violations) = (0, Vec::new(), Vec::new());
    loop {
        while cases.len() < AT_ONCE
            && let Some((scenario, plan)) = left.pop_front()
        {
            cases.spawn(async move {
                for _ in 0..TRIES {
                    let outcome = Box::pin(run(scenario, Some(&plan), false)).await;
                    if outcome.reached || !outcome.wrong.is_empty() {
                        return (name(scenario, &plan), Some(outcome));
                    }
                }
                (name(scenario, &plan), None)
            });
        }
        let Some(ended) = cases.join_next().await else {
            return (kills, missed, violations);
        };
        let (name, outcome) = ended.unwrap();
        let Some(outcome) = outcome else {
            println!("not reached: {name}");
            missed.push(name);
            continue;
        };
        kills += 1;
        if !outcome.wrong.is_empty() {
            println!("A2A_KILL_CASE='{name}'");
            outcome.wrong.iter().for_each(|what| println!("  {what}"));
            violations.push(name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn program_killed_at_any_store_call_finishes_acknowledged_work() {
    let mut left = VecDeque::new();
    for scenario in Scenario::ALL.into_iter().filter(|it| it.is_killed()) {
        let points = points(scenario).await;
        let names: Vec<String> = points.iter().map(Point::to_string).collect();
        println!("{scenario:?}: {} calls: {}", names.len(), names.join(", "));
        for point in points {
            for deed in [Deed::KillBefore, Deed::KillAfter] {
                let point = point.clone();
                left.push_back((scenario, Plan { point, deed }));
            }
        }
    }
    if let Some(chosen) = chosen() {
        left.retain(|(scenario, plan)| name(*scenario, plan) == chosen);
    }
    let total = left.len();
    assert!(total > 0, "no such case");
    let (kills, missed, violations) = all(left).await;
    println!(
        "{kills} kills at {total} points, {} not reached, {} violations",
        missed.len(),
        violations.len()
    );
    assert!(violations.is_empty(), "replay: {violations:#?}");
    assert!(missed.is_empty(), "not reached: {missed:#?}");
}

/// A fault of the store that the proxy injects, and the scenario that must detect it.
struct Planted {
    scenario: Scenario,
    operation: &'static str,
    /// Whether it applies to the last call of the operation; otherwise to the first.
    last: bool,
    deed: Option<Deed>,
}

const PLANTED: [Planted; 9] = [
    // The store loses a finished task.
    planted(Scenario::Deferred, "PutItem", false, Some(Deed::Forget)),
    // The store loses the commit of an answer, a transaction of task and thread.
    planted(
        Scenario::Continued,
        "TransactWriteItems",
        true,
        Some(Deed::Forget),
    ),
    // The store executes only the task's part of that transaction.
    planted(
        Scenario::Continued,
        "TransactWriteItems",
        true,
        Some(Deed::Torn),
    ),
    // The store loses a commit whose frame the client has seen.
    planted(Scenario::Stream, "UpdateItem", false, Some(Deed::Forget)),
    // The store ignores the fence that the cancel set, at the worker's last write.
    planted(
        Scenario::Cancel,
        "UpdateItem",
        true,
        Some(Deed::Unconditional),
    ),
    // The store loses the bytes of a file.
    planted(Scenario::File, "PUT object", false, Some(Deed::Forget)),
    // The store returns an old read.
    planted(Scenario::Queued, "GetItem", true, Some(Deed::Stale)),
    // The store executes repeated writes without their conditions.
    planted(Scenario::Queued, "", false, None),
    planted(Scenario::Cancel, "", false, None),
];

const fn planted(
    scenario: Scenario,
    operation: &'static str,
    last: bool,
    deed: Option<Deed>,
) -> Planted {
    Planted {
        scenario,
        operation,
        last,
        deed,
    }
}

/// The plan of a planted fault, from a run without it.
async fn plan(fault: &Planted) -> Option<Plan> {
    let deed = fault.deed?;
    let points = points(fault.scenario).await;
    let mut found = points
        .into_iter()
        .filter(|point| point.operation == fault.operation);
    let point = if fault.last {
        found.next_back()
    } else {
        found.next()
    };
    let point = point.expect("the scenario makes such a call");
    Some(Plan { point, deed })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn checks_detect_every_planted_store_fault() {
    let mut cases = JoinSet::new();
    for fault in &PLANTED {
        cases.spawn(async move {
            let plan = plan(fault).await;
            let what = plan
                .as_ref()
                .map_or("old writes".to_owned(), Plan::to_string);
            let mut wrong = Vec::new();
            // One more call than in the run before can move the fault to a harmless call.
            for _ in 0..TRIES {
                let disarmed = plan.is_none();
                let outcome = Box::pin(run(fault.scenario, plan.as_ref(), disarmed)).await;
                wrong = outcome.wrong;
                if !wrong.is_empty() {
                    break;
                }
            }
            (format!("{:?}: {what}", fault.scenario), wrong)
        });
    }
    let mut unseen = Vec::new();
    while let Some(ended) = cases.join_next().await {
        let (name, wrong) = ended.unwrap();
        match wrong.first() {
            Some(what) => println!("noticed {name}: {what:.160}"),
            None => unseen.push(name),
        }
    }
    println!(
        "{} planted, {} missed, 0 violations",
        PLANTED.len(),
        unseen.len()
    );
    assert!(unseen.is_empty(), "{unseen:#?}");
}
