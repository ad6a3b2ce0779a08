//! Commits, reads and lists.

use super::bench::{MapObjects, author, change, place};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::objects::encode;
use crate::knowledge::path::{ItemPath, ItemPlace};
use crate::knowledge::repository::{CommitAuthor, FILE_MAX, FileChange, MESSAGE_MAX, Repository};
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
async fn a_deleted_file_is_gone_with_its_empty_folders() {
    let objects = MapObjects::default();
    let one = objects.write(None, "a/b/c.md", "x").await;
    let two = objects.write(one, "d.md", "y").await;
    let three = objects.commit(two, "a/b/c.md", None, 3).await.unwrap();
    assert_eq!(objects.files(three).await, ["team/payments/d.md"]);
    let four = objects.commit(three, "d.md", None, 4).await.unwrap();
    assert!(objects.files(four).await.is_empty());
    let five = objects.write(four, "a/b/c.md", "x").await;
    assert_eq!(objects.read(five, "a/b/c.md").await.unwrap(), "x");
}

#[tokio::test]
async fn a_change_that_changes_nothing_makes_no_commit() {
    let objects = MapObjects::default();
    let one = objects.write(None, "a.md", "x").await;
    let before = objects.ids();
    for (path, content) in [
        ("a.md", Some("x")),
        ("b.md", None),
        ("b/c.md", None),
        ("a.md/b", None),
    ] {
        assert_eq!(objects.commit(one, path, content, 9).await.unwrap(), None);
    }
    assert_eq!(objects.commit(None, "a.md", None, 9).await.unwrap(), None);
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
        "e16ac960dc3581b1fe4c083836c2433d2a3123c1"
    );
}

#[tokio::test]
async fn a_commit_writes_only_the_blob_the_folders_above_it_and_itself() {
    let objects = MapObjects::default();
    let changes: Vec<_> = (0..1_000)
        .map(|number| change(&format!("adr/{number:04}.md"), Some("text")))
        .collect();
    let repository = Repository::new(&objects);
    let head = repository
        .commit(None, &changes, "Import", &author(), 1)
        .await
        .unwrap();
    assert_eq!(objects.files(head).await.len(), 1_000);
    objects.count("put");
    let next = objects.write(head, "adr/0500.md", "changed").await;
    let (last, writes) = (objects.last_put(), objects.count("put"));
    // The blob, the folders `adr`, `payments` and `team`, the root, and the commit.
    assert_eq!(writes, 6);
    assert_eq!(last, next, "the commit is written last");
    objects.read(next, "adr/0999.md").await.unwrap();
    assert_eq!(objects.count("get"), 6);
}

#[tokio::test]
async fn one_commit_can_change_many_files() {
    let objects = MapObjects::default();
    let head = objects.write(None, "old/a.md", "x").await;
    let company = ItemPlace::new("company", None, ItemPath::parse("a.md").unwrap()).unwrap();
    let company = FileChange {
        place: company,
        content: Some(b"c".to_vec()),
    };
    let changes = [
        change("old/a.md", None),
        change("new/a.md", Some("x")),
        change("new/b.md", Some("wrong")),
        change("new/b.md", Some("right")),
        company,
    ];
    let repository = Repository::new(&objects);
    let commit = repository
        .commit(head, &changes, "Move", &author(), 2)
        .await;
    let commit = commit.unwrap();
    assert_eq!(
        objects.files(commit).await,
        [
            "company/a.md",
            "team/payments/new/a.md",
            "team/payments/new/b.md"
        ]
    );
    assert_eq!(objects.read(commit, "new/b.md").await.unwrap(), "right");
}

#[tokio::test]
async fn an_item_and_a_folder_cannot_have_one_name() {
    let objects = MapObjects::default();
    let head = objects.write(None, "a/b.md", "x").await;
    let below = objects.commit(head, "a/b.md/c.md", Some("y"), 1).await;
    assert_eq!(
        below.unwrap_err().to_string(),
        "`path` is `team/payments/a/b.md/c.md`, but `team/payments/a/b.md` is an item"
    );
    let above = objects.commit(head, "a", Some("y"), 1).await;
    assert!(above.unwrap_err().to_string().ends_with("is a folder"));
    for changes in [
        [change("n", Some("y")), change("n/m", Some("y"))],
        [change("n/m", Some("y")), change("n", Some("y"))],
    ] {
        let repository = Repository::new(&objects);
        let both = repository
            .commit(head, &changes, "Both", &author(), 1)
            .await;
        assert!(matches!(both, Err(KnowledgeError::InTheWay { .. })));
    }
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

#[tokio::test]
async fn arguments_out_of_range_are_refused_and_nothing_is_written() {
    let objects = MapObjects::default();
    let repository = Repository::new(&objects);
    let most = "a".repeat(FILE_MAX);
    let long = format!("{most}a");
    for (content, message, at_s, field) in [
        (long.as_str(), "m", 1, "`content`"),
        ("x", "", 1, "`message`"),
        ("x", " \n ", 1, "`message`"),
        ("x", "a\0b", 1, "`message`"),
        ("x", "a\u{1b}[31m", 1, "`message`"),
        ("x", &"m".repeat(MESSAGE_MAX + 1), 1, "`message`"),
        ("x", "m", 253_402_300_800, "`time`"),
        ("x", "m", u64::MAX, "`time`"),
    ] {
        let changes = [change("a.md", Some(content))];
        let refused = repository
            .commit(None, &changes, message, &author(), at_s)
            .await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with(field), "{refused}");
    }
    assert!(objects.ids().is_empty());
    let changes = [change("a.md", Some(&most)), change("b.md", Some(""))];
    let message = "m".repeat(MESSAGE_MAX);
    let author = author();
    let commit = repository.commit(None, &changes, &message, &author, 253_402_300_799);
    let commit = commit.await.unwrap();
    assert_eq!(objects.read(commit, "a.md").await.unwrap(), most);
    assert_eq!(objects.read(commit, "b.md").await.unwrap(), "");
}

#[test]
fn an_author_cannot_forge_lines_of_a_commit() {
    for (name, email) in [
        ("", "a@b"),
        ("Ann", ""),
        ("Ann <root@x>", "a@b"),
        ("Ann", "a@b> 1 +0000\ncommitter x"),
        ("Ann\nparent 0", "a@b"),
        ("Ann", "a b"),
        (" Ann", "a@b"),
        (&"a".repeat(257), "a@b"),
    ] {
        let refused = CommitAuthor::new(name, email).unwrap_err().to_string();
        assert!(refused.starts_with("`author`"), "{refused}");
    }
    assert!(CommitAuthor::new("Ünal Ö. 王", "user-1@tenant").is_ok());
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
    let changes = [change("a.md", Some("y"))];
    let commit = repository
        .commit(Some(blob), &changes, "m", &author(), 1)
        .await;
    assert!(matches!(commit, Err(KnowledgeError::Corrupt { .. })));
}

#[tokio::test]
async fn a_failure_of_the_store_reaches_the_caller() {
    let objects = MapObjects::default();
    objects.go_down();
    let commit = objects.commit(None, "a.md", Some("x"), 1).await;
    assert!(matches!(commit, Err(KnowledgeError::Store(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_repository_has_what_a_map_of_its_changes_has(
        changes in prop::collection::vec(
            ("([a-c]{1,2}/){0,3}[a-c.é]{1,2}", prop::option::weighted(0.7, "[a-z]{0,4}")),
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
                match objects.commit(head, &path, content.as_deref(), 1).await {
                    Err(KnowledgeError::InTheWay { .. }) => {
                        let is_below = |other: &String| {
                            other.starts_with(&format!("{path}/")) || path.starts_with(&format!("{other}/"))
                        };
                        assert!(wanted.keys().any(is_below), "{path}");
                    }
                    Err(other) => panic!("{other}"),
                    Ok(commit) => {
                        let before = wanted.clone();
                        match content {
                            Some(content) => wanted.insert(path, content),
                            None => wanted.remove(&path),
                        };
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
