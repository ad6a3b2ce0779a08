//! A projection reads the wanted part of a long task, and nothing more.

use super::*;
use crate::stored::tests::submitted;
use crate::stored::{arrange, pieces};
use crate::task::{Artifact, ArtifactUpdate, Change, Part, Timestamp, WriteId};
use serde_json::json;

/// Long enough for a message to move to a child in the commit that stores it.
const LONG: usize = 40_000;

fn said(name: &str) -> crate::task::Message {
    let text = format!("{name}{}", ".".repeat(LONG));
    crate::task::Message::from_agent(name, vec![Part::text(text)])
}

fn makes(id: &str, append: bool, length: usize) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: id.to_owned(),
            name: None,
            description: None,
            parts: vec![Part::text("x".repeat(length))],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

/// A task after many commits, and the children of its last version.
struct Written {
    task: TaskRecord,
    children: BTreeMap<ChildName, FoundChild>,
}

impl Written {
    /// A new task whose metadata is long enough to move.
    fn new() -> Self {
        let at = Timestamp::from_millis(0);
        let mut metadata = Metadata::new();
        metadata.insert("asked".to_owned(), json!("m".repeat(LONG)));
        let mut task = submitted();
        task.metadata = metadata;
        let children = BTreeMap::new();
        let mut written = Self { task, children };
        written.write(vec![
            Change::Accept {
                message: said("go"),
            },
            Change::Start { lease_until: at },
        ]);
        written
    }

    fn write(&mut self, changes: Vec<Change>) {
        let at = Timestamp::from_millis(1);
        let write = WriteId::made_of(u128::from(self.task.version));
        let mut next = self.task.next(changes, write, at, at).unwrap();
        arrange(&mut next);
        for child in pieces(&next).unwrap().children {
            let found = FoundChild {
                version: next.version,
                text: child.text,
            };
            self.children.insert(child.place, found);
        }
        self.task = next;
    }

    /// Commits one message for each of `names`.
    fn says(mut self, names: &[&str]) -> Self {
        for name in names {
            self.write(vec![Change::Update {
                message: Some(said(name)),
                metadata: Metadata::new(),
            }]);
        }
        self
    }

    /// The head as a store finds it: without the moved content.
    fn head(&self) -> TaskRecord {
        let mut head = self.task.clone();
        let moved: usize = head.layout.history.iter().map(|it| it.items).sum();
        head.history.drain(..moved);
        if head.layout.docs.contains_key(&StoredValue::Metadata) {
            head.metadata.clear();
        }
        if head.layout.docs.contains_key(&StoredValue::Status) {
            let mut status = head.status().clone();
            status.message = None;
            head.restore_status(status);
        }
        let layout = head.layout.clone();
        for artifact in &mut head.artifacts {
            let segments = layout.artifacts.get(&artifact.id);
            let moved: usize = segments.into_iter().flatten().map(|it| it.items).sum();
            artifact.parts.drain(..moved);
        }
        head
    }

    /// The projection of `length` messages, and the children it needed.
    fn shown(&self, length: usize, artifacts: bool) -> (NeededChildren, TaskRecord) {
        let mut head = self.head();
        let needs = needs(&head, length, artifacts);
        assert!(needs.are_met(&self.children));
        let mut found = self.children.clone();
        found.retain(|place, _| needs.has(*place));
        join_some(&mut head, &found).unwrap();
        (needs, head)
    }
}

fn names(record: &TaskRecord) -> Vec<&str> {
    let messages = record.history.iter();
    messages.map(|message| message.id.as_str()).collect()
}

#[test]
fn an_excerpt_reads_only_the_messages_it_shows() {
    let task = Written::new().says(&["a", "b", "c", "d"]);
    // The last message is that of the status.
    let all = ["go", "a", "b", "c"];
    assert_eq!(names(&task.task), all);
    assert!(task.task.layout.history.len() > 2, "{:?}", task.task.layout);
    for length in 0..=5_usize {
        let (needs, shown) = task.shown(length, false);
        let wanted = length.min(all.len());
        assert_eq!(names(&shown), all[all.len() - wanted..], "{length}");
        assert_eq!(needs.history.len(), wanted, "{length}");
        assert_eq!(needs.parts.len(), 0, "{length}");
    }
}

#[test]
fn an_excerpt_always_shows_status_message_and_metadata() {
    let task = Written::new().says(&["a"]);
    let docs: Vec<_> = task.task.layout.docs.keys().copied().collect();
    assert!(docs.contains(&StoredValue::Metadata) && docs.contains(&StoredValue::Status));
    let (_, shown) = task.shown(0, false);
    assert_eq!(shown.metadata, task.task.metadata);
    assert_eq!(shown.status(), task.task.status());
}

#[test]
fn a_segment_shows_no_more_messages_than_belong_to_the_task() {
    let mut task = Written::new().says(&["a", "b"]);
    // A commit that lost has left a longer list under the same name.
    let segment = task.task.layout.history[0];
    let place = ChildName::History(segment.version);
    let stored = task.children.get_mut(&place).unwrap();
    let mut list: serde_json::Value = serde_json::from_str(&stored.text).unwrap();
    let twice = list[0].clone();
    list.as_array_mut().unwrap().push(twice);
    stored.text = list.to_string();
    let (_, shown) = task.shown(10, false);
    assert_eq!(names(&shown), names(&task.task));
}

#[test]
fn an_excerpt_ends_before_the_first_incomplete_artifact() {
    // Small parts are in a batch of events, large ones in a child of their own.
    for (length, in_batch) in [(9_000, true), (LONG, false)] {
        let mut task = Written::new();
        for (id, append) in [
            ("one", false),
            ("two", false),
            ("two", true),
            ("three", false),
        ] {
            task.write(vec![makes(id, append, length)]);
        }
        let (needs, shown) = task.shown(0, true);
        assert_eq!(shown.artifacts, task.task.artifacts);
        let counts = (needs.parts.len(), needs.batches.len());
        assert_eq!(counts, if in_batch { (0, 4) } else { (4, 0) });
        let second = task.task.layout.artifacts["two"][1];
        let own = ChildName::Parts(second.version);
        let mut children = task.children.clone();
        children.remove(&second.batch.map_or(own, ChildName::Events));
        assert!(!needs.are_met(&children));
        let mut head = task.head();
        join_some(&mut head, &children).unwrap();
        assert_eq!(head.artifacts, task.task.artifacts[..1]);
    }
}
