//! A deployment while a turn runs: a worker of the next release continues the turn.

use crate::text_clients::{record, works};
use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::World;
use std::collections::BTreeSet;
use std::time::Duration;

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    chunks_before_and_after_a_deployment_are_one_artifact
}

const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

/// More than an item of the task keeps inline under the settings of the second release.
fn chunk(letter: &str) -> String {
    letter.repeat(20_000)
}

/// Writes an artifact in large chunks, with a step of ten seconds before each.
#[skill(id = "letters", tags = ["test"])]
async fn letters(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    let mut letters = cx.artifact_chunks("letters");
    for letter in LETTERS {
        let step = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(chunk(letter))
        };
        letters.push(cx.step("letter", step).await?).await?;
    }
    letters.finish().await
}

fn release(version: &'static str) -> impl FnOnce(Gate) -> Result<AgentDefinition, BuildError> {
    move |_| {
        let agent = Agent::builder("letters").skill(letters);
        agent.description("Writes.").version(version).build()
    }
}

fn other_settings(settings: &mut Settings) {
    let policy = &mut settings.policy;
    policy.inline_max = 1_000;
    policy.response_max = 1_000_000;
    policy.flush_interval = Duration::from_millis(5);
    policy.lease = Duration::from_secs(20);
    policy.blocking_budget = Duration::from_secs(5);
}

/// What the frames after the first show, with each letter once.
fn shown(dialect: Dialect, frames: &[Frame]) -> Vec<String> {
    let words = frames.iter().skip(1).map(|frame| {
        let mut word = dialect.described(frame);
        for letter in LETTERS {
            word = word.replace(&chunk(letter), letter);
        }
        word
    });
    words.collect()
}

async fn chunks_before_and_after_a_deployment_are_one_artifact(dialect: Dialect) {
    let first = World::serving(release("1"), |_| ()).unwrap();
    let second = first.redeployed(release("2"), other_settings).unwrap();
    let mut params = dialect.say(&Say::to("letters", "go"));
    if !dialect.is_v10() {
        params["configuration"] = serde_json::json!({"blocking": true});
    }
    let send = dialect.request(Op::Send, "", &params);
    let followed = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let id = record(&first).await.id.to_string();
        first.call(&dialect.of_task(Op::Subscribe, &id)).await
    };
    let turn = async {
        let begun = dialect.task(&first.call(&send).await);
        assert_eq!(dialect.state(&begun), "working");
        let half = chunk("a") + &chunk("b");
        assert_eq!(dialect.words(&begun["artifacts"][0]), half);
        works(&second).await;
    };
    let (followed, ()) = tokio::join!(followed, turn);
    let followed = frames(&followed).unwrap();
    let expected = [
        "artifact letters a",
        "artifact letters +b",
        // What was said after the last step is said again, behind the mark of a new run.
        "status working",
        "artifact letters +b",
        "artifact letters +c",
        "artifact letters +d",
        "artifact letters +.",
        "status completed",
    ];
    assert_eq!(shown(dialect, &followed), expected);

    let id = record(&second).await.id.to_string();
    let whole = LETTERS.map(chunk).concat();
    let mut ids = BTreeSet::new();
    for release in [&first, &second] {
        let task = release.call(&dialect.of_task(Op::Get, &id)).await;
        let task = dialect.task(&task);
        assert_eq!(dialect.state(&task), "completed");
        let artifacts = task["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), 1);
        assert!(dialect.words(&artifacts[0]) == whole, "{task}");
        ids.insert(artifacts[0]["artifactId"].to_string());
        let resume = dialect.of_task(Op::Subscribe, &id);
        let resume = resume.header("last-event-id", followed[0].id.as_ref().unwrap());
        let resumed = frames(&release.call(&resume).await).unwrap();
        assert_eq!(resumed[1..], followed[1..]);
    }
    assert_eq!(ids.len(), 1);
}
