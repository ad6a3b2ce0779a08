use super::{ItemHead, ItemKind, ItemStatus, describe};
use crate::knowledge::path::{ItemLocation, ItemPath};
use crate::layer::Layer;
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
    let file = head().file("# Title\n---\nkind: \"spec\"\n");
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
fn a_file_that_is_no_item_is_refused() {
    for (file, fault) in [
        (&b"\xff"[..], "UTF-8"),
        (b"", "no head"),
        (b"# Readme\n", "no head"),
        (b"---\nkind: \"adr\"\n", "no head"),
        (b"---\nkind: adr\n---\n", "a line"),
        (b"---\nkind: \"adr\"\nkind: \"adr\"\n---\n", "a line"),
        (b"---\nkind: \"adr\"\n\n---\n", "a line"),
        (b"---\nkind: \"adr\"\n---\n", "a value"),
        (
            b"---\nkind: 1\nstatus: \"draft\"\ntitle: \"\"\n---\n",
            "a value",
        ),
    ] {
        let error = ItemHead::parse(file).unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
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
    let place = ItemLocation::new(Layer::Company, None, path).unwrap();
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
        let file = head.file(&content);
        let (read, same) = ItemHead::parse(&file).unwrap();
        prop_assert_eq!(read, head);
        prop_assert_eq!(same, content);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), text in "(---\n)?([a-z]{0,3}: ?\"?[a\n\"]){0,4}(---\n)?") {
        let _ = ItemHead::parse(&bytes);
        let _ = ItemHead::parse(text.as_bytes());
        let place = ItemLocation::of_file("company/a").unwrap();
        describe(&place, &text);
    }
}
