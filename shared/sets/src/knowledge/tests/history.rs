//! Histories, and items with their last commit.

use super::bench::{MapObjects, author, place};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::item::{ItemHead, ItemKind, ItemStatus};
use crate::knowledge::repository::{NewVersion, Repository};
use crate::origin::WrittenBy;

#[tokio::test]
async fn a_history_has_the_commits_that_changed_the_file_and_no_others() {
    let objects = MapObjects::default();
    let path = "adr/1.md";
    let one = objects.commit(None, path, "a", 10).await.unwrap();
    let two = objects.commit(one, "adr/2.md", "x", 20).await.unwrap();
    let three = objects.commit(two, path, "b", 30).await.unwrap();
    let four = objects.commit(three, "other.md", "x", 40).await.unwrap();
    let five = objects.commit(four, path, "a", 50).await.unwrap();

    let repository = Repository::new(&objects);
    let history = repository
        .history(five.unwrap(), &place(path), 50, 50)
        .await
        .unwrap();
    let found: Vec<_> = history
        .iter()
        .map(|it| (Some(it.commit), it.at_s))
        .collect();
    assert_eq!(found, [(five, 50), (three, 30), (one, 10)]);
    assert_eq!(
        (history[0].message.as_str(), history[0].author.as_str()),
        ("Change adr/1.md", "author-1")
    );
    assert_eq!(
        (history[0].via, history[0].task.as_deref()),
        (Some(WrittenBy::Model), Some("task 1"))
    );
    let last = repository.history(five.unwrap(), &place(path), 2, 50).await;
    assert_eq!(last.unwrap(), history[..2]);
    let never = repository
        .history(five.unwrap(), &place("never.md"), 50, 50)
        .await
        .unwrap();
    assert_eq!(never, []);
}

#[tokio::test]
async fn a_walk_over_many_commits_is_bounded() {
    const WALK: usize = 20;
    let objects = MapObjects::default();
    let first = objects.write(None, "first.md", "x").await;
    let mut head = first;
    for number in 0..WALK {
        head = objects.write(head, "other/b.md", &number.to_string()).await;
    }
    objects.count("get");
    let repository = Repository::new(&objects);
    let history = async |from: Option<_>| {
        let place = place("first.md");
        let history = repository.history(from.unwrap(), &place, 1, WALK).await;
        history.unwrap().len()
    };
    assert_eq!(history(head).await, 0);
    // Of each commit: itself, its root, and the folders `team` and `payments`.
    assert_eq!(objects.count("get"), 4 * (WALK + 1));
    assert_eq!(history(first).await, 1);
}

#[tokio::test]
async fn an_item_is_rebuilt_from_the_repository_alone() {
    let objects = MapObjects::default();
    let head = ItemHead {
        kind: ItemKind::Pattern,
        status: ItemStatus::Draft,
        title: "Retry".to_owned(),
        summary: "With jitter.".to_owned(),
        tags: vec!["resilience".to_owned()],
        superseded_by: None,
    };
    let author = author();
    let version = NewVersion {
        file: head.file("# Retry\n"),
        message: "Add",
        author: &author,
        at_s: 1,
    };
    let repository = Repository::new(&objects);
    let written = repository
        .commit(None, &place("retry.md"), &version)
        .await
        .unwrap();
    let mut last = written;
    for number in 0..20 {
        last = objects.write(last, "b.md", &number.to_string()).await;
    }
    let item = repository
        .item(last.unwrap(), &place("retry.md"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(item.location, place("retry.md"));
    assert_eq!((item.head, item.content.as_str()), (head, "# Retry\n"));
    assert_eq!(Some(item.commit), written);
    let absent = repository
        .item(last.unwrap(), &place("c.md"))
        .await
        .unwrap();
    assert_eq!(absent, None);
    let foreign = repository.item(last.unwrap(), &place("b.md")).await;
    assert!(matches!(foreign, Err(KnowledgeError::Item(_))));
}

#[tokio::test]
async fn a_history_over_a_missing_commit_is_an_error() {
    let objects = MapObjects::default();
    let one = objects.write(None, "a.md", "x").await;
    let two = objects.write(one, "a.md", "y").await;
    objects.remove(one.unwrap());
    let repository = Repository::new(&objects);
    let history = repository.history(two.unwrap(), &place("a.md"), 9, 9).await;
    assert!(matches!(history, Err(KnowledgeError::Missing(lost)) if Some(lost) == one));
}
