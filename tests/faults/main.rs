//! Injects faults below the real AWS SDK, at every store call of ten scenarios of the real
//! engine.
//!
//! It checks three properties: a response matches what is stored, acknowledged work comes
//! to rest after the faults end, and no effect occurs twice.
//!
//! A failure names its case; `A2A_FAULT_CASE='<case>'` runs only that one.
#![cfg(test)]

mod case;
mod client;
mod faulty_connection;

use a2a_lambda::engine::CallBudget;
use a2a_lambda::task::A2aError;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_lambda_tests::scenarios::{Known, Scenario, ids, says};
use case::Case;
use client::{Site, command};
use faulty_connection::{Answer, Fault, Plan};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The number of cases that run in parallel.
const AT_ONCE: usize = 8;

/// The time limit of a case.
const LONGEST: Duration = Duration::from_secs(20);

/// Faults of a single attempt.
const FAULTS: [Fault; 10] = [
    Fault::Refuse,
    Fault::DropAfter,
    Fault::TimeoutAfter,
    Fault::Reply(Answer::Throttled),
    Fault::Reply(Answer::Internal),
    Fault::Reply(Answer::Conflict),
    Fault::Reply(Answer::InProgress),
    Fault::Reply(Answer::TooLarge),
    Fault::Truncate,
    Fault::Twice,
];

/// Faults of all attempts from one on, until the service recovers.
const OUTAGES: [Fault; 2] = [Fault::Refuse, Fault::DropAfter];

/// One case: a scenario and its faults.
#[derive(Debug, Clone, Copy)]
struct Point {
    scenario: Scenario,
    plan: Plan,
}

impl Point {
    fn name(self) -> String {
        let Plan {
            at, count, fault, ..
        } = self.plan;
        let extent = if count == 1 { "at" } else { "from" };
        format!("{:?} {fault:?} {extent} {at}", self.scenario)
    }
}

/// Runs a case; returns its violations.
async fn judge(emulator: Arc<Emulator>, point: Point, tenant: String) -> (Point, Vec<String>) {
    let case = Case::new(&emulator, &tenant, Some(point.plan));
    let ends = Box::pin(tokio::time::timeout(LONGEST, case.attack(point.scenario))).await;
    case.check(ends.is_ok(), || {
        "the scenario does not end within 20 s".to_owned()
    });
    let permanent = point.plan.fault == Fault::Reply(Answer::TooLarge);
    let mut wrong = std::mem::take(&mut *case.wrong.lock().unwrap());
    // An item that is too large can never be stored, so its task may fail with that reason.
    wrong.retain(|what| !(permanent && what.starts_with("failed: ")));
    let seen = case.line.seen();
    for what in &mut wrong {
        let call = seen.get(point.plan.at).map(String::as_str);
        what.push_str(&format!(" (at {})", call.unwrap_or("no call")));
    }
    (point, wrong)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name a case to replay"
)]
fn chosen() -> Option<String> {
    std::env::var("A2A_FAULT_CASE").ok()
}

async fn points(emulator: &Arc<Emulator>, run: u128) -> Vec<Point> {
    let mut points = Vec::new();
    for scenario in Scenario::ALL {
        let tenant = format!("f{run:x}-{scenario:?}").to_lowercase();
        let case = Case::new(emulator, &tenant, None);
        Box::pin(case.attack(scenario)).await;
        let wrong = case.wrong.lock().unwrap().clone();
        assert!(wrong.is_empty(), "{scenario:?} without a fault: {wrong:#?}");
        let calls = case.line.seen();
        println!("{scenario:?}: {} calls: {}", calls.len(), calls.join(" "));
        for at in 0..calls.len() {
            let once = FAULTS.iter().map(|fault| (1, *fault));
            let ever = OUTAGES.iter().map(|fault| (usize::MAX, *fault));
            points.extend(once.chain(ever).map(|(count, fault)| Point {
                scenario,
                plan: Plan {
                    at,
                    count,
                    fault,
                    only: "",
                },
            }));
        }
    }
    points
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn responses_match_the_store_after_any_fault() {
    let emulator = Arc::new(Emulator::start().await.unwrap());
    let run = run();
    let mut left = Box::pin(points(&emulator, run)).await;
    if let Some(name) = chosen() {
        left.retain(|point| point.name() == name);
    }
    let total = left.len();
    let mut cases = JoinSet::new();
    let mut violations = Vec::new();
    let mut number = 0;
    loop {
        while cases.len() < AT_ONCE
            && let Some(point) = left.pop()
        {
            number += 1;
            let tenant = format!("f{run:x}-{number}");
            cases.spawn(judge(Arc::clone(&emulator), point, tenant));
        }
        let Some(judged) = cases.join_next().await else {
            break;
        };
        let (point, wrong) = judged.unwrap();
        if !wrong.is_empty() {
            println!("A2A_FAULT_CASE='{}'", point.name());
            for what in &wrong {
                println!("  {what}");
            }
            violations.push(point.name());
        }
    }
    println!("{total} fault points, {} violations", violations.len());
    assert!(total > 0, "no such case");
    assert!(violations.is_empty(), "replay: {violations:#?}");
}

#[tokio::test]
async fn throttled_send_uses_three_attempts_and_is_unavailable() {
    let emulator = Arc::new(Emulator::start().await.unwrap());
    let plan = Plan {
        at: 0,
        count: usize::MAX,
        fault: Fault::Reply(Answer::Throttled),
        only: "",
    };
    let tenant = format!("t{:x}", run());
    let case = Case::new(&emulator, &tenant, Some(plan));
    let command = command(&says(Op::Send, "echo hello"));
    let sent = case
        .engine
        .send(&case.caller, command, CallBudget::default());
    let refusal = sent.await.unwrap_err().a2a_error;
    assert!(
        matches!(refusal, A2aError::Unavailable { .. }),
        "{refusal:?}"
    );
    assert_eq!(case.line.seen(), ["PutItem"; 3]);
}

/// The parts of a request that puts a pointer, or the thread that a task opens.
const PLACED: [&str; 2] = ["TASK#", "thread_id"];

#[tokio::test]
async fn a_send_whose_context_is_throttled_leaves_nothing() {
    let emulator = Arc::new(Emulator::start().await.unwrap());
    for (number, only) in PLACED.into_iter().enumerate() {
        // A first message, and one in a conversation with a task.
        for tasks in 0..2 {
            // Its first task has stored the thread of the conversation.
            if tasks > 0 && only != PLACED[0] {
                continue;
            }
            let tenant = format!("p{:x}-{number}-{tasks}", run());
            let case = Case::new(&emulator, &tenant, None);
            let say = Say {
                skill: None,
                ..Say::to("", "echo my-secret").in_context("mine:c")
            };
            let send = Dialect::Rest10.send(&say);
            let sent = || {
                let sent = case
                    .engine
                    .send(&case.caller, command(&send), CallBudget::default());
                Box::pin(sent)
            };
            for _ in 0..tasks {
                sent().await.unwrap();
            }
            let fault = Fault::Reply(Answer::Throttled);
            case.line.spoil(Plan {
                at: 0,
                count: usize::MAX,
                fault,
                only,
            });
            let refusal = sent().await.unwrap_err().a2a_error;
            assert!(
                matches!(refusal, A2aError::Unavailable { .. }),
                "{refusal:?}"
            );
            case.line.mend();
            let site = Site::clean(&case);
            assert_eq!(ids(&site).await.len(), tasks, "{only}");
            let wrong = Scenario::Context.deletes(&site, &Known::default()).await;
            assert_eq!(wrong, [""; 0], "{only} after {tasks} tasks");
            assert_eq!(case.wrong.lock().unwrap().clone(), [""; 0]);
        }
    }
}
