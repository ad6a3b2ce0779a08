//! Contexts that outlive the program that stored them.

use crate::agent::{Folder, Running};
use crate::context_client::{Agent, GENERATIONS, Kind, Talk, listed, ours};
use a2a_lambda_tests::error_rows::{Fault, NOT_FOUND};
use a2a_lambda_tests::remote;
use a2a_lambda_tests::world::{Reply, Request};
use std::collections::BTreeSet;

impl Agent for Running {
    async fn call(&self, request: &Request) -> Reply {
        let live = remote::open(self.base(), request).await.unwrap();
        live.finish().await
    }
}

/// How a program ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Kill,
    Terminate,
}

impl End {
    async fn of(self, program: Running) {
        match self {
            Self::Kill => program.kill().await,
            Self::Terminate => program.terminate().await,
        }
    }
}

async fn start(folder: &Folder) -> Running {
    let data = folder.path().join("kept");
    let data = data.to_str().unwrap();
    Running::agent(folder, &["--agent", "conformance", "--data", data]).await
}

/// A context of each kind in each generation, with messages, a saved value and
/// a counted step.
async fn talks(program: &Running) -> Vec<Talk> {
    let mut talks = Vec::new();
    for dialect in GENERATIONS {
        for kind in Kind::ALL {
            let talk = Talk::begin(program, dialect, kind, "note the colour is blue").await;
            talk.continues(program, "steps 1").await;
            talks.push(talk);
        }
    }
    talks
}

/// Asserts that the agent remembers all of `talk`.
async fn remembers(program: &Running, talk: &Talk) {
    let memory = talk.recall(program).await;
    let begins = ["note the colour is blue", "the colour is blue"];
    assert!(
        memory.said.starts_with(&begins.map(str::to_owned)),
        "{talk:?} {memory:?}"
    );
    assert!(memory.said.contains(&"steps 1".to_owned()), "{memory:?}");
    assert_eq!(memory.noted, "the colour is blue", "{talk:?}");
    assert_eq!(memory.steps, 1, "{talk:?}");
    assert!(!memory.reset, "{talk:?}");
}

async fn deleted(program: &Running, path: &str) {
    let reply = program.call(&ours("DELETE", path)).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
}

async fn has_no_task(program: &Running, talk: &Talk) {
    let reply = talk.first_task(program).await;
    let fault = Fault::new(talk.dialect, NOT_FOUND);
    assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
}

async fn outlives(end: End) {
    let folder = Folder::new();
    let first = start(&folder).await;
    let talks = talks(&first).await;
    end.of(first).await;

    let second = start(&folder).await;
    let all: BTreeSet<String> = talks.iter().map(|talk| talk.context.clone()).collect();
    let found: BTreeSet<String> = listed(&second).await.into_keys().collect();
    assert_eq!(found, all);
    for talk in &talks {
        remembers(&second, talk).await;
    }
    // The second program deletes what the first one stored; the third finds it gone.
    let (gone, rest): (Vec<_>, Vec<_>) = talks.iter().enumerate().partition(|(n, _)| n % 2 == 0);
    let gone: Vec<&Talk> = gone.into_iter().map(|(_, talk)| talk).collect();
    let rest: Vec<&Talk> = rest.into_iter().map(|(_, talk)| talk).collect();
    for talk in &gone {
        deleted(&second, &format!("contexts/{}", talk.context)).await;
    }
    let (cut, rest) = rest.split_first().unwrap();
    deleted(&second, &format!("tasks/{}", cut.task)).await;
    end.of(second).await;

    let third = start(&folder).await;
    let found = listed(&third).await;
    for talk in &gone {
        assert!(!found.contains_key(&talk.context), "{talk:?}");
        has_no_task(&third, talk).await;
        // A client-made id is refused too, until the sweep has removed its items.
        talk.is_over(&third).await;
    }
    for talk in rest {
        remembers(&third, talk).await;
    }
    // Without its first task, a context continues from its thread.
    has_no_task(&third, cut).await;
    let memory = cut.recall(&third).await;
    assert_eq!(memory.noted, "the colour is blue");
    third.interrupt().await;
}

#[tokio::test]
async fn a_context_survives_a_kill() {
    outlives(End::Kill).await;
}

#[tokio::test]
async fn a_context_survives_a_termination() {
    outlives(End::Terminate).await;
}
