use super::{CONTENT_MAX, ItemError, ItemHead, ItemKind, ItemStatus, describe};
use crate::knowledge::path::{ItemPath, ItemPlace};
use proptest::prelude::*;

fn head() -> ItemHead {
    ItemHead {
        kind: ItemKind::Adr,
        status: ItemStatus::Accepted,
        title: "Use \"DynamoDB\"".to_owned(),
        summary: "One table.\nFor all: tasks".to_owned(),
        tags: vec!["storage".to_owned(), "aws".to_owned()],
        superseded_by: None,
    }
}

#[test]
fn a_file_shows_its_head_as_lines_and_its_content_unchanged() {
    let file = head().file("# Title\n---\nkind: \"spec\"\n").unwrap();
    let text = String::from_utf8(file.clone()).unwrap();
    assert_eq!(
        text,
        "---\nkind: \"adr\"\nstatus: \"accepted\"\ntitle: \"Use \\\"DynamoDB\\\"\"\n\
         summary: \"One table.\\nFor all: tasks\"\ntags: [\"storage\",\"aws\"]\n---\n\
         # Title\n---\nkind: \"spec\"\n"
    );
    let (read, content) = ItemHead::parse(&file).unwrap();
    assert_eq!((read, content), (head(), "# Title\n---\nkind: \"spec\"\n"));
}

#[test]
fn a_content_at_the_limit_is_written_and_one_byte_more_refused() {
    let content = "a".repeat(CONTENT_MAX);
    let file = head().file(&content).unwrap();
    assert_eq!(ItemHead::parse(&file).unwrap().1, content);
    let refused = head().file(&format!("{content}a")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`content` has 262145 bytes, expected at most 262144"
    );
    let none = head().file("").unwrap();
    assert_eq!(ItemHead::parse(&none).unwrap().1, "");
}

#[test]
fn a_file_that_is_no_item_is_refused_with_its_line() {
    for (file, error) in [
        (&b"\xff"[..], ItemError::NotText),
        (b"", ItemError::NoHead),
        (b"# Readme\n", ItemError::NoHead),
        (b"---\nkind: \"adr\"\n", ItemError::NoHead),
        (b"---\nkind: adr\n---\n", ItemError::Line(1)),
        (
            b"---\nkind: \"adr\"\nkind: \"adr\"\n---\n",
            ItemError::Line(2),
        ),
        (b"---\nkind: \"adr\"\n\n---\n", ItemError::Line(2)),
        (b"---\nkind: \"adr\"\n---\n", ItemError::Value),
        (
            b"---\nkind: 1\nstatus: \"draft\"\ntitle: \"\"\n---\n",
            ItemError::Value,
        ),
    ] {
        assert_eq!(ItemHead::parse(file).unwrap_err(), error);
    }
}

#[test]
fn a_head_of_a_later_version_is_read() {
    let file =
        b"---\nowner: {\"team\": 1}\nkind: \"spec\"\nstatus: \"draft\"\ntitle: \"t\"\n---\nx";
    let (head, content) = ItemHead::parse(file).unwrap();
    assert_eq!(
        (head.kind, head.tags.len(), content),
        (ItemKind::Spec, 0, "x")
    );
}

#[test]
fn a_status_changes_only_forward() {
    use ItemStatus as S;
    let all = [
        S::Draft,
        S::Proposed,
        S::Accepted,
        S::Deprecated,
        S::Superseded,
        S::Rejected,
    ];
    let allowed = [
        (S::Draft, S::Proposed),
        (S::Proposed, S::Accepted),
        (S::Proposed, S::Rejected),
        (S::Accepted, S::Deprecated),
        (S::Accepted, S::Superseded),
    ];
    for from in all {
        for to in all {
            assert_eq!(
                from.may_become(to),
                allowed.contains(&(from, to)),
                "{from:?} {to:?}"
            );
        }
    }
}

#[test]
fn title_and_summary_come_from_the_content() {
    let path = ItemPath::parse("adr/0001-use-dynamodb.md").unwrap();
    let place = ItemPlace::new("company", None, path).unwrap();
    let described = |content| describe(&place, content);
    assert_eq!(
        described("# Use  DynamoDB\r\n\r\nOne table\r\nfor all.\r\n\r\nMore."),
        ("Use DynamoDB".to_owned(), "One table for all.".to_owned())
    );
    assert_eq!(
        described("#tag is no heading"),
        ("0001-use-dynamodb".to_owned(), String::new())
    );
    assert_eq!(
        described(""),
        ("0001-use-dynamodb".to_owned(), String::new())
    );
    let (title, summary) = describe(
        &place,
        &format!("# {}\n{}", "ä".repeat(300), "ö ".repeat(300)),
    );
    assert_eq!((title.chars().count(), summary.chars().count()), (200, 300));
    assert!(title.ends_with('…') && summary.ends_with('…'));
}

proptest! {
    #[test]
    fn any_head_and_content_survive_the_file(
        title in any::<String>(),
        summary in any::<String>(),
        tags in any::<Vec<String>>(),
        superseded_by in any::<Option<String>>(),
        content in any::<String>(),
    ) {
        let head = ItemHead { title, summary, tags, superseded_by, ..head() };
        let file = head.file(&content).unwrap();
        let (read, same) = ItemHead::parse(&file).unwrap();
        prop_assert_eq!(read, head);
        prop_assert_eq!(same, content);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), text in "(---\n)?([a-z]{0,3}: ?\"?[a\n\"]){0,4}(---\n)?") {
        let _ = ItemHead::parse(&bytes);
        let _ = ItemHead::parse(text.as_bytes());
        let place = ItemPlace::of_file("company/a").unwrap();
        describe(&place, &text);
    }
}
