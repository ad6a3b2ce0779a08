//! Cuts streams after every frame and resumes them.

use crate::agent::{Folder, Running};
use crate::client::{events, open};
use a2a_lambda_rows::each_row;
use a2a_lambda_tests::dialect::Op;
use a2a_lambda_tests::frames::Frame;
use a2a_lambda_tests::scenarios::{says, subscribe};
use a2a_lambda_tests::world::Request;
use serde_json::Value;

/// The stream that is cut.
fn chunks() -> Request {
    says(Op::Stream, "chunks 6 30")
}

/// Damage that the check of a resumed stream must detect.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Dropped,
    Doubled,
    Swapped,
    /// The log from its start instead of the remaining events.
    FromTheStart,
    /// The first frame already shows the final state.
    Late,
    /// The last frame is missing.
    Short,
}

impl Damage {
    const ALL: [Self; 6] = [
        Self::Dropped,
        Self::Doubled,
        Self::Swapped,
        Self::FromTheStart,
        Self::Late,
        Self::Short,
    ];

    fn spoil(self, cut: &mut Cut) {
        let rest = &mut cut.rest;
        match self {
            Self::Dropped => drop(rest.remove(1)),
            Self::Doubled => rest.insert(1, rest[1].clone()),
            Self::Swapped => rest.swap(1, 2),
            Self::FromTheStart => drop(rest.splice(1.., cut.log.iter().skip(1).cloned())),
            Self::Late => rest[0].data["task"]["status"]["state"] = "TASK_STATE_COMPLETED".into(),
            Self::Short => drop(rest.pop()),
        }
    }
}

/// A stream that was cut: the frames before the cut, the frames after it, and the log.
#[derive(Debug, Clone)]
struct Cut {
    read: Vec<Frame>,
    rest: Vec<Frame>,
    log: Vec<Frame>,
}

impl Cut {
    /// Opens a stream, cuts it after `count` frames, and resumes it from there.
    async fn after(base: &str, count: usize) -> Self {
        let mut live = open(base, &chunks()).await.unwrap();
        let mut read: Vec<Frame> = Vec::new();
        while read.len() < count {
            read.push(live.next().await.unwrap().unwrap());
        }
        drop(live);
        let id = read[0].data["task"]["id"].as_str().unwrap();
        let after = |frame: &Frame| subscribe(id, frame.id.as_deref().unwrap());
        let rest = events(base, &after(&read[count - 1])).await;
        let log = events(base, &after(&read[0])).await;
        Self { read, rest, log }
    }

    /// The violation in the resumed stream, if there is one.
    fn wrong(&self) -> Option<String> {
        let Some(first) = self.rest.first() else {
            return Some("does not continue".to_owned());
        };
        // The first frame of a resumed stream is the task. It has no event id and no state
        // that is later than the cut.
        let state = &first.data["task"]["status"]["state"];
        if first.id.is_some()
            || !["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]
                .map(Value::from)
                .contains(state)
        {
            return Some(format!("begins with {first:?}"));
        }
        let read = self.read.iter().chain(self.rest.iter().skip(1)).skip(1);
        let log = self.log.iter().skip(1);
        let differs = read.clone().ne(log.clone());
        let (read, log): (Vec<_>, Vec<_>) = (read.collect(), log.collect());
        differs.then(|| format!("read {read:?}, in the log {log:?}"))
    }
}

/// The number of frames of the whole stream.
async fn frames(base: &str) -> usize {
    events(base, &chunks()).await.len()
}

async fn agent(folder: &Folder) -> Running {
    Running::agent(folder, &["--agent", "conformance", "--memory"]).await
}

#[tokio::test]
async fn resumed_stream_continues_with_the_next_frame() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let count = frames(agent.base()).await;
    for n in 1..count {
        let cut = Cut::after(agent.base(), n).await;
        assert_eq!(cut.wrong(), None, "after frame {n}");
    }
    assert!(count > 2);
    println!("{} cuts, 0 violations", count - 1);
}

#[tokio::test]
async fn stream_check_detects_every_damage() {
    let folder = Folder::new();
    let agent = agent(&folder).await;
    let whole = Cut::after(agent.base(), 2).await;
    assert_eq!(whole.wrong(), None);
    each_row(Damage::ALL, |damage| {
        let mut cut = whole.clone();
        damage.spoil(&mut cut);
        assert!(cut.wrong().is_some(), "{damage:?}: {cut:?}");
    });
}
