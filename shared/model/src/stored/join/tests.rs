//! A projection reads the wanted part of a long task, and nothing more.

use super::*;
use crate::stored::tests::submitted;
use crate::stored::{TaskFacts, arrange, head_of, pieces};
use crate::task::distinct::noise;
use crate::task::{ArtifactUpdate, Change, Metadata, Part, Timestamp, WriteId};
use serde_json::json;

/// Long enough for a message to move to a child in the commit that stores it.
const LONG: usize = 40_000;

fn said(name: &str) -> crate::task::Message {
    let text = format!("{name}{}", noise(1, LONG));
    crate::task::Message::from_agent(name, vec![Part::text(text)])
}

fn makes(id: &str, append: bool, length: usize) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: id.to_owned(),
            name: None,
            description: None,
            parts: vec![Part::text(noise(2, length))],
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
        metadata.insert("asked".to_owned(), json!(noise(3, LONG)));
        let mut task = submitted();
        task.fields_mut().metadata = metadata;
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
                content: child.content,
            };
            self.children.insert(child.name, found);
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
        let head = pieces(&self.task).unwrap().head;
        head_of(&head, TaskFacts::of(&self.task)).unwrap()
    }

    /// The projection of `length` messages, and the children it needed.
    fn shown(&self, length: usize, artifacts: bool) -> (NeededChildren, TaskRecord) {
        let mut head = self.head();
        let needs = needs(&head, wanted(length, artifacts));
        assert!(needs.complete);
        let mut found = self.children.clone();
        found.retain(|name, _| needs.names.contains(name));
        assert_eq!(found.len(), needs.names.len());
        join(&mut head, &found).unwrap();
        (needs, head)
    }
}

const fn wanted(history_length: usize, artifacts: bool) -> Projection {
    Projection {
        history_length,
        artifacts,
        bytes: usize::MAX,
    }
}

fn names_of(record: &TaskRecord) -> Vec<&str> {
    let messages = record.history.iter();
    messages.map(|message| message.id.as_str()).collect()
}

#[test]
fn an_excerpt_reads_only_the_messages_it_shows() {
    let task = Written::new().says(&["a", "b", "c", "d"]);
    // The last message is that of the status.
    let all = ["go", "a", "b", "c"];
    assert_eq!(names_of(&task.task), all);
    assert_eq!(task.task.layout.children.len(), 5);
    for length in 0..=5_usize {
        let (needs, shown) = task.shown(length, false);
        let wanted = length.min(all.len());
        assert_eq!(names_of(&shown), all[all.len() - wanted..], "{length}");
        // That of the status is in a child too, and so is the metadata.
        assert_eq!(needs.names.len(), wanted + 2, "{length}");
    }
}

#[test]
fn an_excerpt_always_shows_status_message_and_metadata() {
    let task = Written::new().says(&["a"]);
    assert!(task.task.layout.status && task.task.layout.has_value(StoredValue::Metadata));
    assert!(task.head().status.message.is_none() && task.head().metadata.is_empty());
    let (_, shown) = task.shown(0, false);
    assert_eq!(shown.metadata, task.task.metadata);
    assert_eq!(&shown.status, &task.task.status);
}

#[test]
fn a_child_shows_no_more_messages_than_belong_to_the_task() {
    let mut task = Written::new().says(&["a"]);
    task.write(vec![Change::Save {
        key: "k".to_owned(),
        value: json!(1),
        outputs: [].into(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    }]);
    let mut task = task.says(&["b", "c"]);
    // The new turn goes back to the checkpoint.
    let lease_until = Timestamp::from_millis(9);
    task.write(vec![Change::Claim { lease_until }]);
    assert_eq!(names_of(&task.task), ["go", "a"]);
    let (_, shown) = task.shown(10, false);
    assert_eq!(names_of(&shown), ["go", "a"]);
}

#[test]
fn an_excerpt_ends_before_the_first_incomplete_artifact() {
    let mut task = Written::new();
    for (id, append) in [
        ("one", false),
        ("two", false),
        ("two", true),
        ("three", false),
    ] {
        task.write(vec![makes(id, append, 9_000)]);
    }
    let (needs, shown) = task.shown(0, true);
    assert_eq!(shown.artifacts, task.task.artifacts);
    assert_eq!(needs.names.len(), 4 + 1);
    let second = &task.task.layout.children[3];
    assert!(second.artifacts.contains_key("two"));
    let mut children = task.children.clone();
    children.remove(&ChildName::of(second));
    let mut head = task.head();
    assert!(!join(&mut head, &children).unwrap());
    assert_eq!(head.artifacts, task.task.artifacts[..1]);
}

#[test]
fn an_excerpt_reads_what_fits_newest_messages_first() {
    let mut task = Written::new().says(&["a", "b"]);
    task.write(vec![makes("one", false, 9_000)]);
    let (all, _) = task.shown(9, true);
    let mut shown = Vec::new();
    for bytes in (0..=all.bytes).step_by(10_000).chain([all.bytes]) {
        let some = Projection {
            bytes,
            ..wanted(9, true)
        };
        let needs = needs(&task.head(), some);
        assert!(needs.bytes <= bytes, "{needs:?}");
        assert_eq!(needs.complete, bytes == all.bytes);
        shown.push(needs.names.len());
    }
    assert!(shown.is_sorted() && shown.first() == Some(&0), "{shown:?}");
    assert_eq!(shown.last(), Some(&all.names.len()));
}
