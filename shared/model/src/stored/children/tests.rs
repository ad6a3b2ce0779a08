//! A task split into pieces reads back unchanged after any sequence of changes.

use super::super::tests::{plain, submitted};
use super::super::{
    FoundChild, MAX_BYTES, OPEN_MAX_BYTES, StoreError, TaskFacts, head_of, join, names,
};
use super::{ChildName, arrange, fill, pieces};
use crate::store::SizeError;
use crate::task::distinct::noise;
use crate::task::{
    Artifact, ArtifactUpdate, Change, Message, Metadata, OutputCounts, Part, SavedSlot, TaskRecord,
    Timestamp, WriteId,
};
use a2a_lambda_rows::each_row;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HOUR: i64 = 3_600_000;

/// One change to the task.
#[derive(Debug, Clone)]
enum Op {
    Chunk(u8, bool, usize),
    Say(usize),
    Keep(usize),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![8 => 1..900_usize, 1 => 4_000..40_000_usize];
    prop_oneof![
        6 => (0..3_u8, prop::bool::weighted(0.8), length.clone())
            .prop_map(|(id, append, length)| Op::Chunk(id, append, length)),
        3 => length.clone().prop_map(Op::Say),
        1 => length.prop_map(Op::Keep),
        1 => Just(Op::Restart),
    ]
}

fn change(op: &Op) -> Change {
    match op {
        Op::Chunk(id, append, length) => Change::Artifact(ArtifactUpdate {
            artifact: Artifact {
                chunks_of: None,
                id: format!("a-{id}"),
                name: None,
                description: None,
                parts: vec![Part::text(noise(1, *length))],
                extensions: Vec::new(),
                metadata: Metadata::new(),
            },
            append: *append,
            last_chunk: false,
            metadata: Metadata::new(),
        }),
        Op::Say(length) => Change::Update {
            message: Some(said(noise(2, *length))),
            metadata: Metadata::new(),
        },
        Op::Keep(length) => Change::Save {
            key: "k".to_owned(),
            value: noise(3, *length).into(),
            outputs: OutputCounts::new(),
            reads: Vec::new(),
            save_place: Box::default(),
            order: None,
        },
        Op::Restart => Change::Claim {
            lease_until: Timestamp::from_millis(0),
        },
    }
}

fn said(text: String) -> Message {
    Message::from_agent("m", vec![Part::text(text)])
}

/// A table that contains one task.
#[derive(Default)]
struct Table {
    children: BTreeMap<ChildName, FoundChild>,
    written: Vec<usize>,
}

impl Table {
    /// Stores `record` and checks that it reads back unchanged.
    fn store(&mut self, record: &TaskRecord) {
        let stored = pieces(record).unwrap();
        self.written.push(stored.head.size());
        for child in stored.children {
            let found = FoundChild {
                version: record.version,
                content: child.content,
            };
            let before = self.children.insert(child.name, found);
            let is_state = child.name == ChildName::State;
            assert!(
                is_state || before.is_none(),
                "{:?} is written over",
                child.name
            );
        }
        let mut read = head_of(&stored.head, TaskFacts::of(record)).unwrap();
        let named = self.children.clone().into_iter();
        let named = named.filter(|(name, _)| names(&read, *name)).collect();
        assert!(join(&mut read, &named).unwrap(), "a child is missing");
        assert!(read == *record, "version {}", record.version);
    }
}

fn begin() -> TaskRecord {
    begun(&submitted())
}

fn begun(task: &TaskRecord) -> TaskRecord {
    let at = Timestamp::from_millis(HOUR);
    let lease_until = Timestamp::from_millis(2 * HOUR);
    let opening = [
        Change::Accept {
            message: said("go".to_owned()),
        },
        Change::Start { lease_until },
    ];
    let ends = Timestamp::from_millis(3 * HOUR);
    task.next(opening, WriteId::made_of(1), at, ends).unwrap()
}

fn after(record: &TaskRecord, changes: Vec<Change>) -> TaskRecord {
    let at = Timestamp::from_millis(HOUR * i64::try_from(record.version).unwrap());
    let ends = Timestamp::from_millis(at.as_millis() + 5 * HOUR);
    let write = WriteId::made_of(u128::from(record.version));
    let mut next = record.next(changes, write, at, ends).unwrap();
    arrange(&mut next);
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_task_reads_back_whole_after_any_sequence_of_changes(
        commits in prop::collection::vec(prop::collection::vec(op(), 1..8), 1..40),
    ) {
        let mut table = Table::default();
        let mut task = begin();
        for ops in commits {
            task = after(&task, ops.iter().map(change).collect());
            let mut again = task.clone();
            arrange(&mut again);
            prop_assert!(again == task, "laid out twice");
            table.store(&task);
            prop_assert!(task.kept_until >= task.expires_at);
        }
        let ended = after(&task, vec![Change::Complete { message: None }]);
        table.store(&ended);
        // Growing content, a status and a value stay in the item.
        let largest = table.written.iter().max().copied().unwrap_or_default();
        prop_assert!(largest < 40 * 1024, "{}", largest);
    }
}

#[test]
fn a_short_task_has_no_children() {
    let mut table = Table::default();
    let says = Change::Complete {
        message: Some(said(noise(4, 10_000))),
    };
    let mut task = after(&begin(), vec![change(&Op::Chunk(0, false, 1_000))]);
    table.store(&task);
    task = after(&task, vec![says]);
    assert!(task.layout.is_empty(), "{:?}", task.layout);
}

#[test]
fn join_detects_an_item_older_than_its_children() {
    let task = after(&begin(), vec![change(&Op::Keep(40_000))]);
    let early = pieces(&task).unwrap();
    let later = after(&task, vec![change(&Op::Keep(50_000))]);
    let mut table = Table::default();
    table.store(&later);
    let mut read = head_of(&early.head, TaskFacts::of(&task)).unwrap();
    assert!(!join(&mut read, &table.children).unwrap());
    let mut read = head_of(&early.head, TaskFacts::of(&task)).unwrap();
    assert!(!join(&mut read, &BTreeMap::new()).unwrap());
}

/// About the write units of a commit: one for each started KB of an item, two in a
/// transaction. The keys and attributes of an item have less than 500 bytes.
fn units(record: &TaskRecord) -> usize {
    let stored = pieces(record).unwrap();
    let children = stored.children.iter().map(|child| child.content.size());
    let sizes = std::iter::once(stored.head.size()).chain(children);
    let alone = stored.children.is_empty();
    let each = if alone { 1 } else { 2 };
    sizes.map(|size| (size + 500).div_ceil(1024) * each).sum()
}

/// The units of 1,000 tokens in 67 commits.
fn units_of_stream(token: impl Fn(usize) -> String) -> usize {
    let mut table = Table::default();
    let mut task = begun(&plain());
    let mut cost = units(&task);
    for commit in 0..67_usize {
        let chunk = |n| {
            Change::Artifact(ArtifactUpdate {
                artifact: Artifact {
                    chunks_of: None,
                    id: "artifact-0123456789abcdef0123456789abcdef".to_owned(),
                    name: Some("result".to_owned()),
                    description: None,
                    parts: vec![Part::text(token(commit * 15 + n))],
                    extensions: Vec::new(),
                    metadata: Metadata::new(),
                },
                append: commit + n > 0,
                last_chunk: false,
                metadata: Metadata::new(),
            })
        };
        task = after(&task, (0..15).map(chunk).collect());
        table.store(&task);
        cost += units(&task);
    }
    assert!(table.children.len() < 12, "{}", table.children.len());
    task = after(&task, vec![Change::Complete { message: None }]);
    cost + units(&task)
}

#[test]
fn a_thousand_tokens_cost_at_most_260_units_and_random_ones_300() {
    const WORDS: [&str; 6] = ["The ", "order ", "is ", "on ", "its ", "way, "];
    let words = units_of_stream(|n| WORDS[n % WORDS.len()].to_owned());
    let numbers = units_of_stream(|n| format!("chunk-{n} "));
    let random = units_of_stream(|n| noise(n as u64, 10));
    println!("{words} {numbers} {random}");
    assert!(
        words <= 260 && numbers <= 260 && random <= 300,
        "{words} {numbers} {random}"
    );
}

/// An open task of exactly `size` bytes, by what it says it has moved to children.
fn open_task_of(size: usize) -> TaskRecord {
    let mut task = after(&begin(), vec![asks("?")]);
    fill(&mut task, size);
    task
}

fn asks(question: &str) -> Change {
    Change::AskInput {
        message: said(question.to_owned()),
        slot: SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        },
    }
}

fn fails(text: &str) -> Change {
    Change::Fail {
        message: said(text.to_owned()),
    }
}

#[test]
fn a_turn_fills_a_task_up_to_the_room_for_its_end() {
    for size in OPEN_MAX_BYTES - 300..=OPEN_MAX_BYTES {
        assert!(pieces(&open_task_of(size)).is_ok(), "{size}");
    }
    for size in OPEN_MAX_BYTES + 1..OPEN_MAX_BYTES + 300 {
        let refused = pieces(&open_task_of(size));
        let Err(StoreError::TooLarge(SizeError::Bytes { current, limit })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((current, limit), (size as u64, OPEN_MAX_BYTES as u64));
    }
}

#[test]
fn a_task_of_any_size_can_be_failed_and_canceled() {
    // An older program has filled it up to the last byte but some for its end.
    let sizes = (OPEN_MAX_BYTES - 300..=OPEN_MAX_BYTES).chain([MAX_BYTES - 3_000]);
    for size in sizes {
        let task = open_task_of(size);
        for end in [Change::Cancel, fails(&"why ".repeat(200))] {
            let ended = after(&task, vec![end]);
            assert!(pieces(&ended).is_ok(), "{size}");
        }
        let mut expired = task.clone();
        expired.fields_mut().expires_at = expired.updated_at;
        assert!(pieces(&expired).is_ok(), "{size}");
    }
}

#[test]
fn a_long_question_leaves_room_for_its_place_in_the_history() {
    let rows = [3_000, 5_000, 15_000, 17_000, 1_000_000, 3_000_000];
    each_row(rows, |length| {
        let mut task = after(&begin(), vec![asks(&noise(5, length))]);
        fill(&mut task, OPEN_MAX_BYTES + 1);
        assert!(pieces(&task).is_err(), "{length}");
        fill(&mut task, OPEN_MAX_BYTES);
        assert!(pieces(&task).is_ok(), "{length}");
        for end in [Change::Cancel, fails("why")] {
            let ended = pieces(&after(&task, vec![end]));
            assert!(ended.is_ok(), "{length}: {ended:?}");
        }
    });
}
