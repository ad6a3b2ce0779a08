//! The log of any sequence of chunks reads back as it was written, and is short.

use super::super::message::StoredArtifact;
use super::super::tests::submitted;
use super::super::{decode, encode};
use super::{StoredBatch, entries, events};
use crate::task::{
    Artifact, ArtifactUpdate, Change, Message, Metadata, Part, TaskRecord, Timestamp, WriteId,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn begun() -> TaskRecord {
    let lease_until = Timestamp::from_millis(1);
    then(&submitted(), [Change::Start { lease_until }])
}

fn then(task: &TaskRecord, changes: impl IntoIterator<Item = Change>) -> TaskRecord {
    let write = WriteId::made_of(u128::from(task.version()) + 1);
    let (at, ends) = (Timestamp::from_millis(2), Timestamp::from_millis(3));
    task.next(changes, write, at, ends).unwrap()
}

fn update(id: &str, texts: &[&str], append: bool) -> ArtifactUpdate {
    ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: format!("artifact-{id}"),
            name: Some("report".to_owned()),
            description: None,
            parts: texts.iter().copied().map(Part::text).collect(),
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    }
}

/// A first chunk of `id`, and the others.
fn chunks(id: &str, texts: &[&str]) -> Vec<Change> {
    let chunk = |(n, text): (usize, &&str)| Change::Artifact(update(id, &[*text], n > 0));
    texts.iter().enumerate().map(chunk).collect()
}

fn appended(id: &str, texts: &[&str]) -> Vec<Change> {
    let chunk = |text: &&str| Change::Artifact(update(id, &[*text], true));
    texts.iter().map(chunk).collect()
}

/// The entries of the stored log, after checks that the task reads back.
fn log(task: &TaskRecord) -> Vec<Value> {
    let stored = encode(task);
    assert_eq!(&decode(stored.clone()).unwrap(), task);
    let log = stored["log"].as_array().unwrap();
    log.iter().map(|entry| entry["e"].clone()).collect()
}

#[test]
fn runs_of_chunks_are_one_entry_that_does_not_repeat_them() {
    let task = then(&begun(), chunks("a", &["one ", "two ", "three "]));
    let task = then(&task, appended("a", &["four ", "five "]));
    let log = log(&task);
    let [_, first, run] = log.as_slice() else {
        panic!("{log:?}");
    };
    assert_eq!(first["a"]["a"]["p"], json!(["one "]));
    assert_eq!(run, &json!({"c": [0, 1, [2, 2]]}));
    let stored = encode(&task);
    assert_eq!(
        stored["a"][0]["p"],
        json!(["one ", "two ", "three ", "four ", "five "])
    );
}

#[test]
fn each_event_of_a_run_has_the_id_and_the_number_it_had() {
    let task = then(&begun(), chunks("a", &["one ", "two ", "three "]));
    let read = decode(encode(&task)).unwrap();
    let ids = |task: &TaskRecord| -> Vec<(String, u64)> {
        let all = task.events_after(0);
        all.map(|it| (it.id.to_string(), it.seq)).collect()
    };
    assert_eq!(ids(&read), ids(&task));
    assert_eq!(ids(&read).last(), Some(&("2.3".to_owned(), 4)));
}

#[test]
fn a_run_breaks_at_whatever_is_not_a_plain_chunk_of_its_artifact() {
    let last = ArtifactUpdate {
        last_chunk: true,
        ..update("a", &["end"], true)
    };
    let mut noted = update("a", &["noted"], true);
    noted.metadata.insert("k".to_owned(), json!(1));
    let mut described = update("a", &["described"], true);
    described.artifact.metadata.insert("k".to_owned(), json!(1));
    let says = Change::Update {
        message: Some(Message::from_agent("m", vec![Part::text("half")])),
        metadata: Metadata::new(),
    };
    for between in [
        Change::Artifact(last),
        Change::Artifact(noted),
        Change::Artifact(described),
        Change::Artifact(update("a", &["two", "parts"], true)),
        Change::Artifact(update("b", &["other"], false)),
        Change::Artifact(update("a", &["again"], false)),
        says,
    ] {
        let mut changes = chunks("a", &["one ", "two "]);
        changes.push(between.clone());
        changes.extend(appended("a", &["three ", "four "]));
        let log = log(&then(&begun(), changes));
        assert!(log.len() >= 5, "{between:?}: {log:?}");
    }
}

#[test]
fn entries_in_a_child_contain_their_texts() {
    let task = then(&begun(), chunks("a", &["one ", "two ", "three "]));
    let stored = entries(task.events_after(0));
    let text = serde_json::to_value(&stored).unwrap();
    assert_eq!(text[2]["e"], json!({"p": ["two ", "three "]}));
    let read = events(stored).unwrap();
    assert!(read.iter().eq(task.events_after(0)));
}

#[test]
fn a_batch_with_the_parts_of_its_chunks_has_their_texts_once() {
    let task = then(&begun(), chunks("a", &["one ", "two "]));
    let task = then(&task, appended("a", &["three ", "four "]));
    let moved = task.artifacts().iter().map(StoredArtifact::from).collect();
    let batch = StoredBatch::of(entries(task.events_after(0)), moved);
    let text = serde_json::to_string(&batch).unwrap();
    assert_eq!(text.matches("three ").count(), 1, "{text}");
    let read: StoredBatch<'_> = serde_json::from_str(&text).unwrap();
    assert!(read.events().unwrap().iter().eq(task.events_after(0)));
    let read: StoredBatch<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(read.into_artifacts()[0].p.len(), 4);
}

#[test]
fn a_damaged_run_is_corrupt() {
    let task = then(&begun(), chunks("a", &["one ", "two "]));
    for damaged in [
        json!({"c": [0, 1, [2]]}),
        json!({"c": [1, 0, [1]]}),
        json!({"c": [0, u64::MAX, [u64::MAX]]}),
        json!({"c": [0, 1, [1, 0]]}),
    ] {
        let mut stored = encode(&task);
        stored["log"][2]["e"] = damaged.clone();
        assert!(decode(stored).is_err(), "{damaged}");
    }
    let mut stored = encode(&task);
    stored["log"][1]["e"] = json!({"p": ["of nothing"]});
    assert!(decode(stored).is_err());
}

#[derive(Debug, Clone)]
enum Op {
    Chunk {
        id: u8,
        words: Vec<u8>,
        append: bool,
        last: bool,
        noted: bool,
    },
    Say,
    Commit,
}

fn op() -> impl Strategy<Value = Op> {
    let chunk = (
        0..2_u8,
        prop::collection::vec(0..3_u8, 1..3),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        12 => chunk.prop_map(|(id, words, append, last, noted)| Op::Chunk { id, words, append, last, noted }),
        1 => Just(Op::Say),
        3 => Just(Op::Commit),
    ]
}

fn change(op: &Op) -> Option<Change> {
    match op {
        Op::Chunk {
            id,
            words,
            append,
            last,
            noted,
        } => {
            let texts: Vec<String> = words.iter().map(|word| format!("w{word}")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mut chunk = update(&id.to_string(), &texts, *append);
            chunk.last_chunk = *last;
            if *noted {
                chunk.artifact.metadata.insert("k".to_owned(), json!(1));
            }
            Some(Change::Artifact(chunk))
        }
        Op::Say => Some(Change::Update {
            message: Some(Message::from_agent("m", vec![Part::text("half")])),
            metadata: Metadata::new(),
        }),
        Op::Commit => None,
    }
}

proptest! {
    #[test]
    fn any_log_reads_back_as_it_was_written(ops in prop::collection::vec(op(), 0..60)) {
        let mut task = begun();
        for group in ops.split(|op| matches!(op, Op::Commit)) {
            task = then(&task, group.iter().filter_map(change));
        }
        prop_assert_eq!(&decode(encode(&task)).unwrap(), &task);
        let read = events(entries(task.events_after(0))).unwrap();
        prop_assert!(read.iter().eq(task.events_after(0)));
    }
}
