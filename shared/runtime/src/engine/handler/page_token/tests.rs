use super::*;
use crate::task::{Owner, Subject, TaskState, TenantId};
use a2a_lambda_rows::each_row;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
static SECRET: LazyLock<SecretKeySet> = LazyLock::new(|| keys(&["secret"]));
static GUESS: LazyLock<SecretKeySet> = LazyLock::new(|| keys(&["guess"]));
static NONE: LazyLock<SecretKeySet> = LazyLock::new(|| keys(&[]));

fn keys(keys: &[&str]) -> SecretKeySet {
    SecretKeySet::of(keys.iter().map(|key| key.as_bytes().to_vec()))
}

fn caller(tenant: &str, subject: &str) -> Caller {
    Caller {
        owner: Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        tier: "default".to_owned(),
        scopes: BTreeSet::new(),
    }
}

fn query() -> ListQuery {
    ListQuery {
        context_id: None,
        status: None,
        status_after: None,
        page_size: 10,
        page_token: None,
        history_length: 0,
        include_artifacts: false,
    }
}

fn task_place() -> TaskPosition {
    TaskPosition {
        after: ListPosition {
            at: Timestamp::from_millis(5),
            task: TaskId::made_of(1),
        },
        total: 7,
        offset: 3,
    }
}

fn thread_place() -> ThreadPosition {
    ThreadPosition {
        at: Timestamp::from_millis(5),
        context: ContextId::made_of(1),
    }
}

/// Lists that differ in one thing from the list of all tasks of `acme` and `ann`.
fn other_lists() -> Vec<(&'static str, PagedList<'static>)> {
    let ann = caller("acme", "ann");
    let of = |query: &ListQuery| PagedList::tasks(&SECRET, &ann, query);
    vec![
        ("a secret", PagedList::tasks(&GUESS, &ann, &query())),
        ("no secret", PagedList::tasks(&NONE, &ann, &query())),
        (
            "a tenant",
            PagedList::tasks(&SECRET, &caller("evil", "ann"), &query()),
        ),
        (
            "a subject",
            PagedList::tasks(&SECRET, &caller("acme", "bob"), &query()),
        ),
        (
            "a cut",
            PagedList::tasks(&SECRET, &caller("acm", "eann"), &query()),
        ),
        ("the contexts", PagedList::contexts(&SECRET, &ann)),
        (
            "a state",
            of(&ListQuery {
                status: Some(TaskState::Failed),
                ..query()
            }),
        ),
        (
            "a time",
            of(&ListQuery {
                status_after: Some(Timestamp::from_millis(0)),
                ..query()
            }),
        ),
        (
            "a context",
            of(&ListQuery {
                context_id: Some(ContextId::made_of(1)),
                ..query()
            }),
        ),
    ]
}

/// Asserts the one error that every invalid token gets.
fn refused<P: PagePosition + std::fmt::Debug>(list: &PagedList<'_>, token: &str, now: Timestamp) {
    let refusal = list.position::<P>(token, now).map(|place| place.write());
    let expected = A2aError::invalid("pageToken", "not a token of this list");
    assert_eq!(refusal, Err(expected), "{token}");
}

#[test]
fn a_page_token_is_valid_for_its_caller_list_and_filter_only() {
    let ann = caller("acme", "ann");
    let tasks = PagedList::tasks(&SECRET, &ann, &query());
    let token = tasks.token(&task_place(), NOW);
    assert_eq!(tasks.position(&token, NOW), Ok(task_place()));
    each_row(other_lists(), |(what, other)| {
        let opened = other.position::<TaskPosition>(&token, NOW);
        assert!(opened.is_err(), "{what} makes no difference");
        refused::<TaskPosition>(&other, &token, NOW);
        refused::<ThreadPosition>(&other, &token, NOW);
    });
    let contexts = PagedList::contexts(&SECRET, &ann);
    let token = contexts.token(&thread_place(), NOW);
    assert_eq!(contexts.position(&token, NOW), Ok(thread_place()));
    refused::<TaskPosition>(&tasks, &token, NOW);
    refused::<ThreadPosition>(&tasks, &token, NOW);
    let bob = caller("acme", "bob");
    refused::<ThreadPosition>(&PagedList::contexts(&SECRET, &bob), &token, NOW);
}

#[test]
fn a_page_token_allows_another_page_size_and_projection() {
    let ann = caller("acme", "ann");
    let token = PagedList::tasks(&SECRET, &ann, &query()).token(&task_place(), NOW);
    let other = ListQuery {
        page_size: 1,
        history_length: 9,
        include_artifacts: true,
        ..query()
    };
    let list = PagedList::tasks(&SECRET, &ann, &other);
    assert_eq!(list.position(&token, NOW), Ok(task_place()));
}

#[test]
fn a_page_token_is_valid_for_exactly_one_hour() {
    let ann = caller("acme", "ann");
    let (tasks, contexts) = (
        PagedList::tasks(&SECRET, &ann, &query()),
        PagedList::contexts(&SECRET, &ann),
    );
    let tokens = (
        tasks.token(&task_place(), NOW),
        contexts.token(&thread_place(), NOW),
    );
    let hour = 3_600_000;
    let rows = [
        (0, true),
        (hour - 1, true),
        (hour, false),
        (hour + 1, false),
    ];
    each_row(rows, |(late, good)| {
        let then = NOW.plus(Duration::from_millis(late));
        let task = tasks.position::<TaskPosition>(&tokens.0, then);
        let thread = contexts.position::<ThreadPosition>(&tokens.1, then);
        assert_eq!((task.is_ok(), thread.is_ok()), (good, good), "{late} ms");
    });
}

#[test]
fn a_page_token_with_a_changed_missing_or_added_byte_is_refused() {
    let ann = caller("acme", "ann");
    let (tasks, contexts) = (
        PagedList::tasks(&SECRET, &ann, &query()),
        PagedList::contexts(&SECRET, &ann),
    );
    for (token, of_tasks) in [
        (tasks.token(&task_place(), NOW), true),
        (contexts.token(&thread_place(), NOW), false),
    ] {
        let refused = |token: &str| {
            if of_tasks {
                refused::<TaskPosition>(&tasks, token, NOW);
            } else {
                refused::<ThreadPosition>(&contexts, token, NOW);
            }
        };
        for at in 0..token.len() {
            let (head, tail) = token.split_at(at);
            let mut rest = tail.chars();
            let here = rest.next();
            let rest = rest.as_str();
            refused(head);
            refused(&format!("{head}{rest}"));
            for byte in ('\x20'..'\x7f').filter(|byte| Some(*byte) != here) {
                refused(&format!("{head}{byte}{rest}"));
            }
            each_row(["A", "=", ".", " "], |extra| {
                refused(&format!("{head}{extra}{tail}"));
            });
        }
        each_row(["A", "=", ".", " ", "\0"], |extra| {
            refused(&format!("{token}{extra}"));
        });
    }
}

proptest! {
    #[test]
    fn random_text_is_not_a_page_token(text in ".{0,200}") {
        let ann = caller("acme", "ann");
        let tasks = PagedList::tasks(&SECRET, &ann, &query());
        prop_assert!(tasks.position::<TaskPosition>(&text, NOW).is_err());
        let contexts = PagedList::contexts(&SECRET, &ann);
        prop_assert!(contexts.position::<ThreadPosition>(&text, NOW).is_err());
    }

    #[test]
    fn a_page_token_returns_its_position_unchanged(
        at in 0_i64..9_999_999_999_999,
        total: usize,
        delivered: usize,
        id in "[A-Za-z0-9._:-]{1,128}",
    ) {
        let ann = caller("acme", "ann");
        let at = Timestamp::from_millis(at);
        let task = TaskId::parse(id.clone()).unwrap();
        let after = ListPosition { at, task };
        let place = TaskPosition { after, total, offset: delivered };
        let tasks = PagedList::tasks(&SECRET, &ann, &query());
        prop_assert_eq!(tasks.position(&tasks.token(&place, NOW), NOW), Ok(place));
        let context = ContextId::parse(id).unwrap();
        let place = ThreadPosition { at, context };
        let contexts = PagedList::contexts(&SECRET, &ann);
        prop_assert_eq!(contexts.position(&contexts.token(&place, NOW), NOW), Ok(place));
    }
}

#[test]
fn a_token_opens_after_its_key_was_replaced_and_not_after_it_was_removed() {
    let ann = caller("acme", "ann");
    let token = PagedList::tasks(&SECRET, &ann, &query()).token(&task_place(), NOW);
    let replaced = keys(&["new", "secret"]);
    let place = PagedList::tasks(&replaced, &ann, &query()).position::<TaskPosition>(&token, NOW);
    assert_eq!(place, Ok(task_place()));
    refused::<TaskPosition>(
        &PagedList::tasks(&keys(&["new"]), &ann, &query()),
        &token,
        NOW,
    );
}
