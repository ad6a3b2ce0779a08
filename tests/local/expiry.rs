//! The expiry of contexts that one program stored, as another program with a
//! later clock sees it, before and after clean-up.

use crate::agent::{Folder, Running};
use crate::context_client::{Agent, GENERATIONS, Kind, Talk, listed};
use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::task::Timestamp;
use a2a_lambda::testing::TestClock;
use a2a_lambda_tests::world::{self, Reply, Request};
use a2a_local::embedded::{Embedded, TABLE};
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

struct Local;

impl Source for Local {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// The agent of `cargo run` over its data folder, with a clock that the test
/// sets. The test itself starts what a schedule would start.
struct Later {
    clock: Arc<TestClock>,
    runtime: Runtime,
    clients: AwsClients,
    _services: Embedded,
}

impl Agent for Later {
    async fn call(&self, request: &Request) -> Reply {
        let edge = self
            .runtime
            .edge(Function::of(request.method, request.path()));
        let identity = Identity {
            authorizer: None,
            authorization: None,
        };
        world::send(&edge, request, identity).await.finish().await
    }
}

impl Later {
    async fn over(data: &Path) -> Self {
        let services = Embedded::start(Some(data)).await.unwrap();
        let clients = AwsClients::connect(services.endpoints()).await;
        let clock = Arc::new(TestClock::standing(Timestamp::default()));
        let agent = conformance_agent::agent(SECOND).unwrap();
        let runtime = Runtime::builder(agent, Settings::read(&Local).unwrap())
            .aws(&clients)
            .clock(clock.clone())
            .build()
            .unwrap();
        Self {
            clock,
            runtime,
            clients,
            _services: services,
        }
    }

    /// Runs the scheduled sweep of threads. Returns how many states it removed.
    async fn sweep(&self) -> usize {
        let swept = self.runtime.engine().sweeper.sweep_threads().await;
        swept.unwrap().states_cleaned
    }

    /// Deletes each item whose `ttl` has passed, as DynamoDB's TTL would.
    /// Returns how many.
    async fn let_go(&self, now: Timestamp) -> usize {
        let dynamodb = &self.clients.dynamodb;
        let mut pages = dynamodb.scan().table_name(TABLE).into_paginator().send();
        let mut removed = 0;
        while let Some(page) = pages.next().await {
            for item in page.unwrap().items.unwrap_or_default() {
                let ttl = item.get("ttl").and_then(|ttl| ttl.as_n().ok());
                let ttl: Option<i64> = ttl.and_then(|ttl| ttl.parse().ok());
                if ttl.is_none_or(|ttl| ttl * 1000 >= now.as_millis()) {
                    continue;
                }
                let key: std::collections::HashMap<String, AttributeValue> = item
                    .into_iter()
                    .filter(|(name, _)| name == "PK" || name == "SK")
                    .collect();
                let delete = dynamodb.delete_item().table_name(TABLE);
                delete.set_key(Some(key)).send().await.unwrap();
                removed += 1;
            }
        }
        removed
    }
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap();
    Timestamp::from_millis(at.as_millis() - millis)
}

/// A context of each kind in each generation, and when each expires.
async fn talks(program: &Running) -> Vec<(Talk, Timestamp)> {
    let mut talks = Vec::new();
    for dialect in GENERATIONS {
        for kind in Kind::ALL {
            let first = match kind {
                // Saved data would make a thread, which this kind has not.
                Kind::Derived => "echo the colour is blue",
                _ => "note the colour is blue",
            };
            talks.push(Talk::begin(program, dialect, kind, first).await);
        }
    }
    let over: BTreeMap<String, Timestamp> = listed(program).await;
    let reported = |talk: Talk| {
        let at = over[&talk.context];
        (talk, at)
    };
    talks.into_iter().map(reported).collect()
}

/// Asserts that a context continues without its state, and reports that once, if it had one.
async fn goes_on_without_state(later: &Later, talk: &Talk) {
    let memory = talk.recall(later).await;
    let has_kept = talk.kind != Kind::Derived;
    assert_eq!(memory.reset, has_kept, "{talk:?} {memory:?}");
    assert!(memory.said[0].ends_with("the colour is blue"), "{memory:?}");
    // The text that the skill added was part of the state.
    assert!(
        !memory.said.contains(&"the colour is blue".to_owned()),
        "{memory:?}"
    );
    assert!(memory.noted.is_null(), "{talk:?}");
    assert!(!talk.recall(later).await.reset, "it is reported once");
}

#[tokio::test]
async fn a_context_of_another_process_expires_on_time_and_stays_expired() {
    let folder = Folder::new();
    let data = folder.path().join("kept");
    let arguments = ["--agent", "conformance", "--data", data.to_str().unwrap()];
    let program = Running::agent(&folder, &arguments).await;
    let silent = talks(&program).await;
    let kept = talks(&program).await;
    let over = talks(&program).await;
    program.terminate().await;

    let later = Later::over(&data).await;
    // An hour after the last activity, and 1 ms before the context expires.
    let hour = silent
        .iter()
        .map(|(talk, end)| (talk, before(*end, DAY).plus(HOUR)));
    for (talk, at) in hour.chain(kept.iter().map(|(talk, end)| (talk, before(*end, MS)))) {
        later.clock.set(at);
        goes_on_without_state(&later, talk).await;
    }
    let mut answers = Vec::new();
    for (talk, end) in &over {
        later.clock.set(*end);
        let answer = talk.is_over(&later).await;
        later.clock.set(end.plus(SECOND));
        assert_eq!(talk.is_over(&later).await, answer, "{talk:?}");
        answers.push(answer);
    }
    let same = async |why: &str| {
        for ((talk, _), answer) in over.iter().zip(&answers) {
            assert!(talk.is_over(&later).await == *answer, "{why}: {talk:?}");
        }
    };
    let last = over.iter().map(|(_, end)| *end).max().unwrap();
    later.clock.set(last.plus(SECOND));
    assert!(later.sweep().await >= 6, "the sweep removes states");
    same("swept").await;
    later.let_go(last.plus(SECOND)).await;
    same("let go").await;

    // A client-made id is refused for a week after its expiry, and new after that.
    let first = over.iter().map(|(_, end)| *end).min().unwrap();
    let within = before(first.plus(DAY * 7), SECOND);
    later.clock.set(within);
    later.let_go(within).await;
    same("within a week").await;
    let week = last.plus(DAY * 7 + SECOND * 2);
    later.clock.set(week);
    later.let_go(week).await;
    for ((talk, _), answer) in over.iter().zip(&answers) {
        if talk.kind == Kind::Own {
            let memory = talk.recall(&later).await;
            assert_eq!(memory.said, ["recall"], "a new context");
            assert!(!memory.reset && memory.noted.is_null(), "{memory:?}");
        } else {
            assert_eq!(talk.is_over(&later).await, *answer, "{talk:?}");
        }
    }
    // When the tasks are deleted as well, a server-made id is still refused.
    let month = last.plus(DAY * 31);
    later.clock.set(month);
    assert!(later.let_go(month).await > 0, "the tasks");
    for ((talk, _), answer) in over.iter().zip(&answers) {
        if talk.kind != Kind::Own {
            assert_eq!(talk.is_over(&later).await, *answer, "{talk:?}");
        }
    }
}
