//! Histories, and items with their last commit.

use super::bench::{MapObjects, author, change, place};
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::history::WALK_MAX;
use crate::knowledge::item::{ItemHead, ItemKind, ItemStatus};
use crate::knowledge::repository::{FileChange, Repository};

#[tokio::test]
async fn a_history_has_the_commits_that_changed_the_file_and_no_others() {
    let objects = MapObjects::default();
    let path = "adr/1.md";
    let one = objects.commit(None, path, Some("a"), 10).await.unwrap();
    let two = objects
        .commit(one, "adr/2.md", Some("x"), 20)
        .await
        .unwrap();
    let three = objects.commit(two, path, Some("b"), 30).await.unwrap();
    let four = objects
        .commit(three, "other.md", Some("x"), 40)
        .await
        .unwrap();
    let five = objects.commit(four, path, None, 50).await.unwrap();
    let six = objects.commit(five, path, Some("b"), 60).await.unwrap();

    let repository = Repository::new(&objects);
    let history = repository
        .history(six.unwrap(), &place(path), 50)
        .await
        .unwrap();
    assert_eq!(history.next, None);
    let found: Vec<_> = history
        .commits
        .iter()
        .map(|it| (Some(it.commit), it.at_s))
        .collect();
    assert_eq!(found, [(six, 60), (five, 50), (three, 30), (one, 10)]);
    let last = &history.commits[0];
    assert_eq!(
        (last.message.as_str(), last.author.as_str()),
        ("Change adr/1.md", "Ann Smith")
    );

    let never = repository
        .history(six.unwrap(), &place("never.md"), 50)
        .await
        .unwrap();
    assert_eq!((never.commits.len(), never.next), (0, None));
}

#[tokio::test]
async fn a_cut_history_continues_where_it_was_cut() {
    let objects = MapObjects::default();
    let mut head = None;
    for number in 0..5 {
        head = objects.write(head, "a.md", &number.to_string()).await;
    }
    let repository = Repository::new(&objects);
    let (mut next, mut found) = (head, Vec::new());
    while let Some(from) = next {
        let part = repository.history(from, &place("a.md"), 2).await.unwrap();
        assert!(part.commits.len() <= 2);
        found.extend(part.commits.into_iter().map(|it| it.commit));
        next = part.next;
    }
    let whole = repository
        .history(head.unwrap(), &place("a.md"), 50)
        .await
        .unwrap();
    assert_eq!(
        found,
        whole.commits.iter().map(|it| it.commit).collect::<Vec<_>>()
    );
    assert_eq!(found.len(), 5);
    let none = repository
        .history(head.unwrap(), &place("a.md"), 0)
        .await
        .unwrap();
    assert_eq!((none.commits.len(), none.next), (0, head));
}

#[tokio::test]
async fn a_walk_over_many_commits_is_bounded_and_says_so() {
    let objects = MapObjects::default();
    let first = objects.write(None, "first.md", "x").await;
    let mut head = first;
    for number in 0..WALK_MAX {
        head = objects.write(head, "other/b.md", &number.to_string()).await;
    }
    objects.count("get");
    let repository = Repository::new(&objects);
    let cut = repository
        .history(head.unwrap(), &place("first.md"), 1)
        .await
        .unwrap();
    assert_eq!((cut.commits.len(), cut.next), (0, first));
    // Of each commit: itself, its root, and the folders `team` and `payments`.
    assert_eq!(objects.count("get"), 4 * (WALK_MAX + 1));
    let rest = repository
        .history(first.unwrap(), &place("first.md"), 1)
        .await
        .unwrap();
    assert_eq!((rest.commits.len(), rest.next), (1, None));
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
    let file = FileChange {
        place: place("retry.md"),
        content: Some(head.file("# Retry\n").unwrap()),
    };
    let repository = Repository::new(&objects);
    let written = repository
        .commit(None, &[file], "Add", &author(), 1)
        .await
        .unwrap();
    // More commits than one walk looks at.
    let mut last = written;
    for number in 0..=WALK_MAX {
        last = objects.write(last, "b.md", &number.to_string()).await;
    }
    let [_, listed] = repository
        .list(last.unwrap())
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let item = repository
        .item(last.unwrap(), &listed.place)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(item.place, place("retry.md"));
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
    let changes = [change("a.md", Some("y"))];
    let repository = Repository::new(&objects);
    let two = repository
        .commit(one, &changes, "m", &author(), 1)
        .await
        .unwrap();
    objects.remove(one.unwrap());
    let history = repository.history(two.unwrap(), &place("a.md"), 9).await;
    assert!(matches!(history, Err(KnowledgeError::Missing(lost)) if Some(lost) == one));
}
