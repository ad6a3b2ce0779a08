use super::{MemorySearch, QUERY_MAX, search};
use crate::layer::Layer;
use crate::memory::store::{Memory, StoredMemory};
use crate::pages::LIMIT_MAX;
use crate::words::words;
use proptest::prelude::*;
use serde_json::Map;

fn entry(id: &str, content: &str) -> Memory {
    Memory {
        id: id.to_owned(),
        layer: Layer::User,
        scope_id: "scope".to_owned(),
        record: StoredMemory {
            origin: None,
            content: content.to_owned(),
            tags: Vec::new(),
            metadata: Map::new(),
            importance: 0.5,
            created_at: 0,
        },
    }
}

fn query(text: &str) -> MemorySearch {
    MemorySearch {
        query: text.to_owned(),
        ..MemorySearch::default()
    }
}

fn ids<'a>(memories: &'a [Memory], query: &MemorySearch) -> Vec<&'a str> {
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
    memories[0].layer = Layer::Company;
    assert_eq!(ids(&memories, &query("rust lambda")), ["partly", "exact"]);
}

#[test]
fn equal_matches_come_newest_first_and_then_by_id() {
    let mut memories = [
        entry("b", "rust one"),
        entry("a", "rust two"),
        entry("c", "rust six"),
    ];
    memories[2].record.created_at = 5;
    assert_eq!(ids(&memories, &query("rust")), ["c", "a", "b"]);
}

#[test]
fn a_word_in_a_tag_counts_more_than_in_the_content() {
    let mut memories = [
        entry("content", "rust is here"),
        entry("tag", "something is here"),
    ];
    memories[1].record.tags = vec!["Rust".to_owned()];
    assert_eq!(ids(&memories, &query("rust")), ["tag", "content"]);
}

#[test]
fn an_important_memory_comes_before_an_equal_one() {
    let mut memories = [entry("a", "rust one"), entry("b", "rust two")];
    memories[1].record.importance = 1.0;
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
fn tags_select_memories() {
    let mut memories = [entry("team", "rust two"), entry("org", "rust six")];
    memories[0].record.tags = vec!["Backend".to_owned(), "x".to_owned()];
    memories[1].record.tags = vec!["frontend".to_owned()];
    let tagged = MemorySearch {
        tags: vec!["backend".to_owned(), "unknown".to_owned()],
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
    let most = MemorySearch {
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
    let strict = MemorySearch {
        threshold: Some(0.25),
        ..query("green tea japan")
    };
    assert_eq!(ids(&memories, &strict), ["all"]);
    let never = MemorySearch {
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
    memories[0].layer = Layer::Company;
    memories[1].layer = Layer::Session;
    memories[2].layer = Layer::Project;
    let found = search(&memories, &query("deploy")).unwrap();
    let kept: Vec<_> = found.hits.iter().map(|it| it.memory.id.as_str()).collect();
    assert_eq!((kept, found.total), (vec!["narrow", "other"], 2));
}

#[test]
fn equal_contents_without_words_are_duplicates() {
    let mut memories = [entry("a", "👍"), entry("b", "👍"), entry("c", "🎉")];
    for memory in &mut memories {
        memory.record.tags = vec!["mood".to_owned()];
    }
    assert_eq!(ids(&memories, &query("mood")), ["a", "c"]);
}

#[test]
fn arguments_out_of_range_are_refused_by_name() {
    let refused = |query: &MemorySearch| search(&[], query).unwrap_err().text().to_owned();
    let long = "a".repeat(QUERY_MAX + 1);
    assert_eq!(
        refused(&query("")),
        "`query` has 0 bytes, expected 1 to 1024"
    );
    assert!(refused(&query(&long)).starts_with("`query` has 1025"));
    assert!(search(&[], &query(&"a".repeat(QUERY_MAX))).is_ok());
    for limit in [0, 51, usize::MAX] {
        let limit = Some(limit);
        let query = MemorySearch {
            limit,
            ..query("a")
        };
        assert!(refused(&query).starts_with("`limit`"));
    }
    for threshold in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
        let threshold = Some(threshold);
        let query = MemorySearch {
            threshold,
            ..query("a")
        };
        assert!(refused(&query).starts_with("`threshold`"));
    }
}

fn entries() -> impl Strategy<Value = Vec<Memory>> {
    let content = prop_oneof![any::<String>(), "[abc ]{0,12}"];
    let one = (content, 0..3_usize, 0..3_i64, 0.0..=1.0, "[abc]?");
    prop::collection::vec(one, 0..20).prop_map(|all| {
        let entries = all.into_iter().enumerate();
        entries
            .map(|(id, (content, layer, created_at, importance, tag))| {
                let mut memory = entry(&format!("{id:02}"), &content);
                memory.layer = Layer::ALL[layer];
                memory.record.created_at = created_at;
                memory.record.importance = importance;
                memory.record.tags = vec![tag];
                memory
            })
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
        let all = MemorySearch { limit: Some(50), ..query(&text) };
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
        for word in words(&text) {
            assert!(!word.is_empty());
            assert!(!words(&word).is_empty(), "{word:?}");
        }
    }
}
