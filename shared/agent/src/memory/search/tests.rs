use super::words::words;
use super::{
    Importance, LIMIT_MAX, MEMORIES_MAX, MemoryEntry, MemoryQuery, QUERY_MAX, SearchError, search,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn entry(id: &str, content: &str) -> MemoryEntry {
    MemoryEntry {
        id: id.to_owned(),
        content: content.to_owned(),
        layer: 1,
        scope_id: "scope".to_owned(),
        tags: Vec::new(),
        created_at_ms: 0,
        importance: Importance::default(),
    }
}

fn query(text: &str) -> MemoryQuery<'_> {
    MemoryQuery {
        text,
        ..MemoryQuery::default()
    }
}

fn ids<'a>(memories: &'a [MemoryEntry], query: &MemoryQuery<'_>) -> Vec<&'a str> {
    let found = search(memories, query).unwrap();
    found.hits.iter().map(|it| it.memory.id.as_str()).collect()
}

#[test]
fn a_memory_with_more_and_rarer_words_of_the_query_comes_first() {
    let memories = [
        entry("common", "the team deploys on friday"),
        entry("rare", "the dynamo table has a stream"),
        entry("both", "the team reads the stream of the dynamo table"),
        entry("none", "lunch is at noon"),
    ];
    assert_eq!(
        ids(&memories, &query("team dynamo stream")),
        ["both", "rare", "common"]
    );
}

#[test]
fn a_score_is_the_share_of_the_best_possible_one() {
    let score = |content: &str, text: &str| {
        let memories = [entry("it", content)];
        search(&memories, &query(text)).unwrap().hits[0].score
    };
    assert!((score("rust lambda", "rust lambda") - 0.43).abs() < 0.005);
    // Words that no memory has are rare, so they weigh more than half.
    assert!(score("rust lambda", "rust lambda unknown words") < 0.43 / 2.0);
    assert!(score("rust rust rust", "rust") > 0.6);
}

#[test]
fn a_narrow_layer_comes_before_a_better_match() {
    let mut memories = [
        entry("exact", "rust lambda"),
        entry("partly", "rust is liked here"),
    ];
    memories[0].layer = 6;
    assert_eq!(ids(&memories, &query("rust lambda")), ["partly", "exact"]);
}

#[test]
fn equal_matches_come_newest_first_and_then_by_id() {
    let mut memories = [
        entry("b", "rust one"),
        entry("a", "rust two"),
        entry("c", "rust six"),
    ];
    memories[2].created_at_ms = 5;
    assert_eq!(ids(&memories, &query("rust")), ["c", "a", "b"]);
}

#[test]
fn a_word_in_a_tag_counts_more_than_in_the_content() {
    let mut memories = [
        entry("content", "rust is here"),
        entry("tag", "something is here"),
    ];
    memories[1].tags = vec!["Rust".to_owned()];
    assert_eq!(ids(&memories, &query("rust")), ["tag", "content"]);
}

#[test]
fn an_important_memory_comes_before_an_equal_one() {
    let mut memories = [entry("a", "rust one"), entry("b", "rust two")];
    memories[1].importance = Importance::new(1.0).unwrap();
    assert_eq!(ids(&memories, &query("rust")), ["b", "a"]);
}

#[test]
fn words_match_in_any_case_composition_and_script() {
    for (content, text) in [
        ("Straße", "STRASSE"),
        ("caf\u{e9}", "CAFE\u{301}"),
        ("ΟΔΟΣ", "οδος"),
        ("ﬁle", "file"),
        ("数据库很慢", "数据"),
        ("नमस्ते दुनिया", "नमस्ते"),
        ("İstanbul", "i\u{307}stanbul"),
        ("snake_case-word", "word"),
    ] {
        assert_eq!(ids(&[entry("it", content)], &query(text)), ["it"], "{text}");
    }
    assert!(ids(&[entry("it", "category")], &query("cat")).is_empty());
}

#[test]
fn a_text_without_words_finds_nothing() {
    let memories = [entry("a", "!!!"), entry("b", "")];
    assert!(ids(&memories, &query("!!!")).is_empty());
    assert!(ids(&[], &query("rust")).is_empty());
}

#[test]
fn layers_and_tags_select_memories() {
    let mut memories = [
        entry("user", "rust one"),
        entry("team", "rust two"),
        entry("org", "rust six"),
    ];
    memories[1].layer = 4;
    memories[2].layer = 5;
    memories[1].tags = vec!["Backend".to_owned(), "x".to_owned()];
    memories[2].tags = vec!["frontend".to_owned()];
    let layers = MemoryQuery {
        layers: &[1, 5],
        ..query("rust")
    };
    assert_eq!(ids(&memories, &layers), ["user", "org"]);
    let tags = ["backend".to_owned(), "unknown".to_owned()];
    let tagged = MemoryQuery {
        tags: &tags,
        ..query("rust")
    };
    assert_eq!(ids(&memories, &tagged), ["team"]);
}

#[test]
fn the_limit_cuts_the_results_and_not_the_total() {
    let memories: Vec<_> = (0..60)
        .map(|id| entry(&format!("{id:02}"), &format!("rust number{id}")))
        .collect();
    let found = search(&memories, &query("rust")).unwrap();
    assert_eq!((found.hits.len(), found.total), (10, 60));
    let most = MemoryQuery {
        limit: Some(LIMIT_MAX),
        ..query("rust")
    };
    let found = search(&memories, &most).unwrap();
    assert_eq!((found.hits.len(), found.total), (50, 60));
}

#[test]
fn the_threshold_removes_memories_that_have_few_words_of_the_query() {
    let memories = [
        entry("all", "green tea from japan"),
        entry("one", "green grass on hills"),
    ];
    let strict = MemoryQuery {
        threshold: Some(0.25),
        ..query("green tea japan")
    };
    assert_eq!(ids(&memories, &strict), ["all"]);
    let never = MemoryQuery {
        threshold: Some(1.0),
        ..query("green tea japan")
    };
    assert_eq!(search(&memories, &never).unwrap().total, 0);
}

#[test]
fn duplicates_collapse_to_the_narrowest_layer() {
    let mut memories = [
        entry("wide", "Deploy on Friday, never on Monday!"),
        entry("narrow", "never on monday deploy, on friday"),
        entry("other", "deploy on Friday, never on Sunday"),
    ];
    memories[0].layer = 6;
    memories[1].layer = 2;
    memories[2].layer = 3;
    let found = search(&memories, &query("deploy")).unwrap();
    let kept: Vec<_> = found.hits.iter().map(|it| it.memory.id.as_str()).collect();
    assert_eq!((kept, found.total), (vec!["narrow", "other"], 2));
}

#[test]
fn duplicates_have_95_percent_of_their_words_in_common() {
    // 39 of 41 words are 95.1 %, and 38 of 40 words are 95.0 %. 37 of 39 are 94.9 %.
    for (common, is_duplicate) in [(39, true), (38, true), (37, false)] {
        let shared: Vec<_> = (0..common).map(|word| format!("word{word}")).collect();
        let shared = shared.join(" ");
        let memories = [
            entry("a", &format!("{shared} left")),
            entry("b", &format!("{shared} right")),
        ];
        let total = search(&memories, &query("word1")).unwrap().total;
        assert_eq!(total == 1, is_duplicate, "{common}");
    }
}

#[test]
fn two_thousand_memories_of_one_template_are_compared_in_time() {
    // Each has 93 % of its words in common with each other one.
    let template = (0..280).map(|word| format!("word{word} "));
    let template = template.collect::<String>();
    let memories: Vec<_> = (0..MEMORIES_MAX)
        .map(|id| {
            let own = (0..20).map(|word| format!("own{id}x{word} "));
            entry(
                &id.to_string(),
                &format!("{template}{}", own.collect::<String>()),
            )
        })
        .collect();
    assert_eq!(
        search(&memories, &query("word7")).unwrap().total,
        MEMORIES_MAX
    );
}

proptest! {
    #[test]
    fn duplicates_are_those_that_a_comparison_of_all_pairs_finds(
        absent in prop::collection::vec(prop::collection::btree_set(0..50_u8, 0..4), 2..12),
    ) {
        let all = || (0..50_u8).collect::<BTreeSet<_>>();
        let sets: Vec<_> = absent.iter().map(|absent| &all() - absent).collect();
        let memories: Vec<_> = sets
            .iter()
            .enumerate()
            .map(|(id, set)| {
                let words = set.iter().map(|word| format!("w{word} "));
                MemoryEntry {
                    tags: vec!["all".to_owned()],
                    ..entry(&format!("{id:02}"), &words.collect::<String>())
                }
            })
            .collect();
        let all = MemoryQuery { limit: Some(50), ..query("all") };
        let mut kept: Vec<usize> = Vec::new();
        let found = ids(&memories, &all);
        // The order does not depend on duplicates, but those that were removed are not in it.
        let mut order: Vec<usize> = (0..memories.len()).collect();
        order.sort_by(|a, b| sets[*a].len().cmp(&sets[*b].len()).then(a.cmp(b)));
        for id in order {
            let is_like = |other: &usize| {
                let common = sets[id].intersection(&sets[*other]).count();
                20 * common >= 19 * sets[id].union(&sets[*other]).count()
            };
            if !kept.iter().any(is_like) {
                kept.push(id);
            }
        }
        let kept: Vec<_> = kept.iter().map(|id| memories[*id].id.as_str()).collect();
        prop_assert_eq!(found, kept);
    }
}

#[test]
fn equal_contents_without_words_are_duplicates() {
    let mut memories = [entry("a", "👍"), entry("b", "👍"), entry("c", "🎉")];
    for memory in &mut memories {
        memory.tags = vec!["mood".to_owned()];
    }
    assert_eq!(ids(&memories, &query("mood")), ["a", "c"]);
}

#[test]
fn arguments_out_of_range_are_refused_by_name() {
    let refused = |memories: &[MemoryEntry], query: &MemoryQuery<'_>| {
        search(memories, query).unwrap_err().to_string()
    };
    let long = "a".repeat(QUERY_MAX + 1);
    assert_eq!(
        refused(&[], &query("")),
        "`query` has 0 bytes, expected 1 to 1024"
    );
    assert!(refused(&[], &query(&long)).starts_with("`query` has 1025"));
    assert!(search(&[], &query(&"a".repeat(QUERY_MAX))).is_ok());
    for limit in [0, 51, usize::MAX] {
        let limit = Some(limit);
        assert!(
            refused(
                &[],
                &MemoryQuery {
                    limit,
                    ..query("a")
                }
            )
            .starts_with("`limit`")
        );
    }
    for threshold in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
        let threshold = Some(threshold);
        let query = MemoryQuery {
            threshold,
            ..query("a")
        };
        assert!(refused(&[], &query).starts_with("`threshold`"));
    }
    let many = vec![entry("a", "a"); MEMORIES_MAX + 1];
    assert_eq!(
        search(&many, &query("a")).unwrap_err(),
        SearchError::TooMany(MEMORIES_MAX + 1)
    );
}

#[test]
fn an_importance_is_a_number_from_0_to_1() {
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.01, 1.01] {
        assert!(Importance::new(wrong).is_none());
    }
    for right in [0.0, 0.3, 1.0] {
        assert_eq!(Importance::new(right).unwrap().get(), right);
    }
}

fn entries() -> impl Strategy<Value = Vec<MemoryEntry>> {
    let content = prop_oneof![any::<String>(), "[abc ]{0,12}"];
    let one = (content, 0..3_u8, 0..3_u64, 0.0..=1.0, "[abc]?");
    prop::collection::vec(one, 0..20).prop_map(|all| {
        let entries = all.into_iter().enumerate();
        entries
            .map(
                |(id, (content, layer, created_at_ms, importance, tag))| MemoryEntry {
                    layer,
                    created_at_ms,
                    importance: Importance::new(importance).unwrap(),
                    tags: vec![tag],
                    ..entry(&format!("{id:02}"), &content)
                },
            )
            .collect()
    })
}

proptest! {
    #[test]
    fn scores_are_between_0_and_1_and_the_order_is_total(
        memories in entries(),
        text in prop_oneof!["[abc ]{1,9}", any::<String>()],
    ) {
        prop_assume!(!text.is_empty() && text.len() <= QUERY_MAX);
        let all = MemoryQuery { limit: Some(50), ..query(&text) };
        let found = search(&memories, &all).unwrap();
        prop_assert!(found.hits.len() <= found.total);
        for hit in &found.hits {
            prop_assert!(hit.score > 0.0 && hit.score < 1.0, "{}", hit.score);
        }
        let keys: Vec<_> = found.hits.iter().map(|hit| (hit.memory.layer, -hit.score)).collect();
        prop_assert!(keys.is_sorted());
    }

    #[test]
    fn the_order_of_the_list_does_not_change_the_results(memories in entries()) {
        let mut reversed = memories.clone();
        reversed.reverse();
        // Sums of floating point numbers depend on their order only in the last digits.
        prop_assert_eq!(ids(&memories, &query("a")), ids(&reversed, &query("a")));
    }

    #[test]
    fn words_of_any_text_are_not_empty_and_stay_words(text in any::<String>()) {
        words(&text, |word| {
            assert!(!word.is_empty());
            let mut again = Vec::new();
            words(word, |part| again.push(part.to_owned()));
            assert!(!again.is_empty(), "{word:?}");
        });
    }
}
