use super::*;
use crate::task::Metadata;
use a2a_lambda_skill::{Artifact, Content};

/// A turn that has said these chunks of the artifact `text`.
fn replayed(chunks: &[&str]) -> ReplayedOutput {
    let artifact = chunk(chunks);
    ReplayedOutput(Mutex::new(Outputs {
        names: BTreeSet::from([artifact.name.clone()]),
        artifacts: BTreeMap::from([(artifact.name, artifact.parts)]),
        dropped_chunks: BTreeMap::new(),
    }))
}

fn chunk(texts: &[&str]) -> Artifact {
    let parts = texts.iter().map(|text| Part::text(*text));
    Artifact::from_parts("text", parts.collect())
}

/// Says the chunks again, of which `said` were said before; gets what is left, with `+` for an
/// appended chunk.
fn left(stored: &[&str], chunks: &[&str], said: usize) -> Vec<String> {
    left_of(stored, chunks, said, true)
}

fn left_of(stored: &[&str], chunks: &[&str], said: usize, may_differ: bool) -> Vec<String> {
    let replayed = replayed(stored);
    let mut left = Vec::new();
    for (place, text) in chunks.iter().enumerate() {
        let emission = Emission::Artifact {
            writer: None,
            artifact: chunk(&[text]),
            append: place > 0,
            last_chunk: false,
        };
        if let Some(Emission::Artifact {
            artifact, append, ..
        }) = replayed.remainder(emission, place < said, may_differ)
        {
            let sign = if append { "+" } else { "" };
            left.push(format!("{sign}{}", artifact.text().unwrap()));
        }
    }
    left
}

#[test]
fn chunks_that_were_said_are_dropped() {
    assert_eq!(left(&["a", "b"], &["a", "b", "c"], 2), ["+c"]);
    assert_eq!(left(&["a"], &["a", "b"], 1), ["+b"]);
    assert_eq!(left(&[], &["a", "b"], 0), ["a", "+b"]);
}

#[test]
fn another_try_of_a_step_does_not_say_its_chunks_again() {
    let turn = replayed(&[]);
    let write = |text: &str, append: bool, is_said: bool| {
        let emission = Emission::Artifact {
            writer: None,
            artifact: chunk(&[text]),
            append,
            last_chunk: false,
        };
        turn.remainder(emission, is_said, true).is_some()
    };
    assert!(write("a", false, false) && write("b", true, false));
    assert!(!write("a", false, true) && !write("b", true, true));
    assert!(write("c", true, false));
}

#[test]
fn another_text_replaces_the_one_that_was_cut_off() {
    assert_eq!(left(&["a", "b"], &["x", "b", "c"], 2), ["xb", "+c"]);
    assert_eq!(left(&["a", "b"], &["a", "x", "c"], 2), ["ax", "+c"]);
    assert_eq!(left(&["a"], &["x", "y"], 1), ["xy"]);
}

#[test]
fn an_artifact_that_a_later_step_wrote_again_stays_over_a_crash() {
    let stored = ["of the step"];
    assert!(left_of(&stored, &["before", "it"], 2, false).is_empty());
}

#[test]
fn a_message_that_was_said_is_dropped() {
    let replayed = replayed(&[]);
    let update = || Emission::Update(Content::from_text("hi"), Metadata::new());
    assert!(replayed.remainder(update(), true, true).is_none());
    assert!(replayed.remainder(update(), false, true).is_some());
}
