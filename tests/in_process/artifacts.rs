//! Names and ids of artifacts, by which clients keep versions.

use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

per_dialect! {
    paused ALL:
    an_artifact_keeps_its_name_and_has_a_new_id_in_each_task
    a_later_task_does_not_change_earlier_artifacts
}

/// Name and id of an artifact; 0.1 has no member for the id.
fn named(dialect: Dialect, artifact: &Value) -> (String, String) {
    let id = if dialect.is_v01() {
        at(artifact, "/metadata/artifactId")
    } else {
        at(artifact, "/artifactId")
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(at(artifact, "/name")), text(id))
}

/// Name and id of each artifact of a completed task, as a client reads it.
async fn artifacts(world: &World, dialect: Dialect, id: &str) -> Vec<(String, String)> {
    let task = dialect.task(&world.call(&dialect.of_task(Op::Get, id)).await);
    assert_eq!(dialect.state(&task), "completed", "{task}");
    let artifacts = task["artifacts"].as_array().unwrap().iter();
    artifacts.map(|one| named(dialect, one)).collect()
}

/// Name and id of the artifact in a frame of a stream.
fn in_frame(dialect: Dialect, frame: &Frame) -> Option<(String, String)> {
    let payload = frame.data.get("result").unwrap_or(&frame.data);
    let update = payload.get("artifactUpdate").unwrap_or(payload);
    let artifact = update.get("artifact")?;
    Some(named(dialect, artifact))
}

/// Streams three chunks and a result in the test's context. Returns the task's
/// id, and the artifact of each frame that has one.
async fn streamed(world: &World, dialect: Dialect, n: usize) -> (String, Vec<(String, String)>) {
    let name = format!("t:{n}");
    let say = Say::to("chunks", "go").under(&name).in_context("mine:c");
    let shown = frames(&world.call(&dialect.stream(&say)).await).unwrap();
    let found = shown.iter().filter_map(|frame| in_frame(dialect, frame));
    let id = world.store.commits().last().unwrap().task.to_string();
    (id, found.collect())
}

async fn an_artifact_keeps_its_name_and_has_a_new_id_in_each_task(dialect: Dialect) {
    let world = World::new().unwrap();
    // What a client keeps per context: the ids of each name.
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for n in 0..3 {
        let (id, shown) = streamed(&world, dialect, n).await;
        let read = artifacts(&world, dialect, &id).await;
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["letters", "chunks"], "{dialect:?}");
        // Every chunk of an artifact has the same id, in the stream and in the task.
        assert_eq!(shown.len(), 4, "{shown:?}");
        let live: BTreeSet<&(String, String)> = shown.iter().collect();
        assert_eq!(live, read.iter().collect(), "{dialect:?}");
        for (name, id) in read {
            versions.entry(name).or_default().push(id);
        }
    }
    for (name, ids) in &versions {
        assert!(ids.iter().all(|id| id.starts_with("artifact-")), "{ids:?}");
        let distinct: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), 3, "{dialect:?} {name}: {ids:?}");
    }
    let all: BTreeSet<&String> = versions.values().flatten().collect();
    assert_eq!(all.len(), 6, "two names never share an id");
}

async fn a_later_task_does_not_change_earlier_artifacts(dialect: Dialect) {
    let world = World::new().unwrap();
    let say = |name: &'static str, text: &'static str| {
        let say = Say::to("echo", text).under(name).in_context("mine:c");
        dialect.send(&say)
    };
    let first = dialect.task(&world.call(&say("t:1", "one")).await);
    let id = first["id"].as_str().unwrap();
    let second = dialect.task(&world.call(&say("t:2", "two")).await);
    let of = |task: &Value| dialect.words(&task["artifacts"][0]);
    assert_eq!(
        (of(&first), of(&second)),
        ("echo: one".into(), "echo: two".into())
    );
    let again = dialect.task(&world.call(&dialect.of_task(Op::Get, id)).await);
    assert_eq!(again["artifacts"], first["artifacts"], "{dialect:?}");
}
