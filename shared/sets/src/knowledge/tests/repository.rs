//! Commits, reads and lists.

use super::bench::{MapObjects, author, place};
use crate::knowledge::authors::CommitAuthor;
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::objects::encode;
use crate::knowledge::path::ItemPath;
use crate::knowledge::repository::{MESSAGE_MAX, NewVersion, Repository};
use gix_object::Kind;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[tokio::test]
async fn a_file_is_read_as_it_was_in_each_commit() {
    let objects = MapObjects::default();
    let one = objects.write(None, "adr/1.md", "first").await;
    let two = objects.write(one, "adr/1.md", "second").await;
    let three = objects.write(two, "adr/2.md", "öther").await;
    assert_eq!(objects.read(one, "adr/1.md").await.unwrap(), "first");
    assert_eq!(objects.read(two, "adr/1.md").await.unwrap(), "second");
    assert_eq!(objects.read(three, "adr/1.md").await.unwrap(), "second");
    assert_eq!(objects.read(three, "adr/2.md").await.unwrap(), "öther");
    for absent in ["adr/2.md", "adr", "adr/1.md/x", "other/1.md"] {
        assert_eq!(objects.read(two, absent).await, None, "{absent}");
    }
    assert_eq!(
        objects.files(three).await,
        ["team/payments/adr/1.md", "team/payments/adr/2.md"]
    );
}

#[tokio::test]
async fn a_change_that_changes_nothing_makes_no_commit() {
    let objects = MapObjects::default();
    let one = objects.write(None, "a.md", "x").await;
    let before = objects.ids();
    assert_eq!(objects.commit(one, "a.md", "x", 9).await.unwrap(), None);
    assert_eq!(objects.ids(), before);
}

#[tokio::test]
async fn two_commits_on_one_head_have_two_ids_and_both_are_whole() {
    let objects = MapObjects::default();
    let head = objects.write(None, "a.md", "x").await;
    let mine = objects.write(head, "a.md", "mine").await;
    let yours = objects.write(head, "a.md", "yours").await;
    // The caller moves the head on condition that it is the parent: one of them is stale.
    assert_ne!(mine, yours);
    assert_eq!(objects.read(mine, "a.md").await.unwrap(), "mine");
    assert_eq!(objects.read(yours, "a.md").await.unwrap(), "yours");
    let again = objects.write(mine, "a.md", "yours").await;
    assert_ne!(again, yours, "the parent is part of the id");
}

#[tokio::test]
async fn equal_arguments_have_equal_ids_in_every_store() {
    let (one, other) = (MapObjects::default(), MapObjects::default());
    let first = one.write(None, "a/b.md", "x").await;
    assert_eq!(other.write(None, "a/b.md", "x").await, first);
    assert_eq!(one.write(None, "a/b.md", "x").await, first);
    assert_eq!(one.ids(), other.ids());
    // Stored ids contain it, so it may never change.
    assert_eq!(
        first.unwrap().to_string(),
        "74862208aba7c34eacbbf535cf2f370466cb72a2"
    );
}

#[tokio::test]
async fn a_commit_writes_only_the_blob_the_folders_above_it_and_itself() {
    let objects = MapObjects::default();
    let mut head = None;
    for number in 0..100 {
        head = objects
            .write(head, &format!("adr/{number:04}.md"), "text")
            .await;
    }
    assert_eq!(objects.files(head).await.len(), 100);
    objects.count("put");
    let next = objects.write(head, "adr/0050.md", "changed").await;
    let (last, writes) = (objects.last_put(), objects.count("put"));
    // The blob, the folders `adr`, `payments` and `team`, the root, and the commit.
    assert_eq!(writes, 6);
    assert_eq!(last, next, "the commit is written last");
    objects.read(next, "adr/0099.md").await.unwrap();
    assert_eq!(objects.count("get"), 6);
}

#[tokio::test]
async fn an_item_and_a_folder_cannot_have_one_name() {
    let objects = MapObjects::default();
    let head = objects.write(None, "a/b.md", "x").await;
    let below = objects.commit(head, "a/b.md/c.md", "y", 1).await;
    assert_eq!(
        below.unwrap_err().to_string(),
        "`path` is `team/payments/a/b.md/c.md`, but `team/payments/a/b.md` is an item"
    );
    let above = objects.commit(head, "a", "y", 1).await;
    assert!(above.unwrap_err().to_string().ends_with("is a folder"));
}

#[tokio::test]
async fn names_that_sort_around_a_folder_keep_the_order_of_git() {
    let objects = MapObjects::default();
    let mut head = None;
    for path in ["a/x", "a.b", "a-b", "a0", "ab/x", "é", "Z", "a b"] {
        head = objects.write(head, path, path).await;
    }
    for path in ["a/x", "a.b", "a-b", "a0", "ab/x", "é", "Z", "a b"] {
        assert_eq!(objects.read(head, path).await.unwrap(), path);
    }
}

/// Commits the file `a.md` of the team with this message and author.
async fn commit_as(
    objects: &MapObjects,
    message: &str,
    author: &CommitAuthor,
) -> Result<Option<gix_hash::ObjectId>, KnowledgeError> {
    let version = NewVersion {
        file: b"x".to_vec(),
        message,
        author,
        at_s: 1,
    };
    let repository = Repository::new(objects);
    repository.commit(None, &place("a.md"), &version).await
}

#[tokio::test]
async fn a_message_that_git_does_not_keep_is_refused_and_nothing_is_written() {
    let objects = MapObjects::default();
    let long = "m".repeat(MESSAGE_MAX + 1);
    for message in ["", " \n ", "a\0b", "a\u{1b}[31m", &long] {
        let refused = commit_as(&objects, message, &author()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with("`message`"), "{refused}");
    }
    assert!(objects.ids().is_empty());
    let longest = "m".repeat(MESSAGE_MAX);
    assert!(commit_as(&objects, &longest, &author()).await.is_ok());
}

#[tokio::test]
async fn the_task_of_a_commit_cannot_forge_lines() {
    let objects = MapObjects::default();
    let task = "t\nparent 0\n\nbody";
    let author = CommitAuthor {
        task: task.to_owned(),
        ..author()
    };
    let commit = commit_as(&objects, "m", &author).await.unwrap().unwrap();
    let repository = Repository::new(&objects);
    let history = repository.history(commit, &place("a.md"), 9, 9).await;
    let [only] = history.unwrap().try_into().unwrap();
    assert_eq!(
        (only.message.as_str(), only.task.as_deref()),
        ("m", Some(task))
    );
}

#[tokio::test]
async fn a_missing_or_damaged_object_is_an_error_and_never_another_content() {
    let objects = MapObjects::default();
    let head = objects.write(None, "a/b.md", "x").await;
    for id in objects.ids() {
        let whole = objects.remove(id);
        let repository = Repository::new(&objects);
        let missing = repository.read(head.unwrap(), &place("a/b.md")).await;
        assert!(matches!(missing, Err(KnowledgeError::Missing(lost)) if lost == id));
        let other = encode(Kind::Blob, b"forged").unwrap();
        objects.replace(id, other.bytes);
        let damaged = repository.read(head.unwrap(), &place("a/b.md")).await;
        assert!(matches!(damaged, Err(KnowledgeError::Corrupt { id: lost, .. }) if lost == id));
        objects.replace(id, whole);
    }
    assert_eq!(objects.read(head, "a/b.md").await.unwrap(), "x");
}

#[tokio::test]
async fn an_id_of_another_kind_is_not_a_commit() {
    let objects = MapObjects::default();
    objects.write(None, "a.md", "x").await;
    let blob = objects.insert(encode(Kind::Blob, b"tree").unwrap());
    let repository = Repository::new(&objects);
    let read = repository.read(blob, &place("a.md")).await;
    assert!(matches!(read, Err(KnowledgeError::Corrupt { .. })));
    let commit = objects.commit(Some(blob), "a.md", "y", 1).await;
    assert!(matches!(commit, Err(KnowledgeError::Corrupt { .. })));
}

#[tokio::test]
async fn a_failure_of_the_store_reaches_the_caller() {
    let objects = MapObjects::default();
    objects.go_down();
    let commit = objects.commit(None, "a.md", "x", 1).await;
    assert!(matches!(commit, Err(KnowledgeError::Store(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_repository_has_what_a_map_of_its_changes_has(
        changes in prop::collection::vec(
            ("([a-c]{1,2}/){0,3}[a-c.é]{1,2}", "[a-z]{0,4}"),
            1..24,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let objects = MapObjects::default();
            let mut head = None;
            let mut wanted: BTreeMap<String, String> = BTreeMap::new();
            for (path, content) in changes {
                if ItemPath::parse(&path).is_err() {
                    continue;
                }
                match objects.commit(head, &path, &content, 1).await {
                    Err(KnowledgeError::Input(_)) => {
                        let is_below = |other: &String| {
                            other.starts_with(&format!("{path}/")) || path.starts_with(&format!("{other}/"))
                        };
                        assert!(wanted.keys().any(is_below), "{path}");
                    }
                    Err(other) => panic!("{other}"),
                    Ok(commit) => {
                        let before = wanted.clone();
                        wanted.insert(path, content);
                        assert_eq!(commit.is_some(), before != wanted);
                        head = commit.or(head);
                    }
                }
            }
            if head.is_some() {
                let files: Vec<_> = wanted.keys().map(|path| place(path).file()).collect();
                let mut listed = objects.files(head).await;
                listed.sort();
                assert_eq!(listed, files);
                for (path, content) in &wanted {
                    assert_eq!(objects.read(head, path).await.as_ref(), Some(content));
                }
            }
        });
    }
}
