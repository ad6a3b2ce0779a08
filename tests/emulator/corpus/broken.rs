//! A damaged item causes an error, never a panic.

use super::{Corpus, Endpoint, NOW, owner, releases, tasks_of, text};
use a2a_lambda::store::StoreError;
use a2a_lambda::task::{ContextId, IdempotencyKey, TaskId, Timestamp};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// A damage of one attribute.
#[derive(Debug, Clone)]
enum Damage {
    /// The attribute is missing.
    Gone,
    /// The attribute has another value.
    Other(Value),
    /// The text ends here, counted in characters from its start and modulo its length.
    Cut(usize),
    /// One character of the text is replaced.
    Letter(usize, char),
}

fn damage() -> impl Strategy<Value = Damage> {
    let others = prop::sample::select(vec![
        json!({"S": ""}),
        json!({"S": "\u{0}#/"}),
        json!({"S": "{}"}),
        json!({"S": "[]"}),
        json!({"S": "{\"schema\":3}"}),
        json!({"N": "-1"}),
        json!({"N": "0"}),
        json!({"N": "9223372036854775807"}),
        json!({"N": "1.5"}),
        json!({"BOOL": true}),
    ]);
    prop_oneof![
        1 => Just(Damage::Gone),
        2 => others.prop_map(Damage::Other),
        2 => any::<usize>().prop_map(Damage::Cut),
        6 => (any::<usize>(), prop::sample::select("0189-#\"{}[],:sx\\ ".chars().collect::<Vec<_>>()))
            .prop_map(|(place, letter)| Damage::Letter(place, letter)),
    ]
}

fn damaged(item: &Value, name: &str, damage: &Damage) -> Value {
    let mut item = item.clone();
    if let Some(bytes) = item[name]["B"].as_str() {
        let mut bytes = STANDARD.decode(bytes).unwrap();
        let len = bytes.len();
        match damage {
            Damage::Cut(at) => bytes.truncate(at % len),
            Damage::Letter(at, letter) => bytes[at % len] = u8::try_from(*letter).unwrap(),
            Damage::Gone | Damage::Other(_) => bytes.clear(),
        }
        item[name] = json!({"B": STANDARD.encode(bytes)});
        return item;
    }
    let letters: Vec<char> = text(&item, name).chars().collect();
    let place = |at: usize| at.checked_rem(letters.len()).unwrap_or(0);
    let now = match damage {
        Damage::Gone => {
            item.as_object_mut().unwrap().remove(name);
            return item;
        }
        Damage::Other(value) => value.clone(),
        Damage::Cut(at) => json!({"S": letters[..place(*at)].iter().collect::<String>()}),
        Damage::Letter(_, letter) if letters.is_empty() => json!({"S": letter.to_string()}),
        Damage::Letter(at, letter) => {
            let mut letters = letters.clone();
            letters[place(*at)] = *letter;
            json!({"S": letters.into_iter().collect::<String>()})
        }
    };
    item[name] = now;
    item
}

fn fits<T>(read: Result<T, StoreError>, what: &str) -> bool {
    match read {
        Ok(_) => false,
        Err(StoreError::Corrupt(_) | StoreError::Form(_)) => true,
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Reads everything that the item is part of. Returns how many reads failed.
async fn read_all(site: &Endpoint, item: &Value, what: &str) -> usize {
    let (owner, now) = (owner(), Timestamp::from_millis(NOW));
    let mut refused = 0;
    let partition = text(item, "PK");
    if let Some((_, local)) = partition.split_once("#K#") {
        let id = TaskId::parse(local.rsplit('~').next().unwrap()).unwrap();
        refused += usize::from(fits(site.records.load(&owner, &id, now).await, what));
        refused += usize::from(fits(site.records.tail(&owner, &id, 1, now).await, what));
        refused += usize::from(fits(site.records.pushes(&owner, &id).await, what));
    }
    if let Some((_, context)) = partition.split_once("#C#") {
        let (_, name) = context.split_once('#').unwrap();
        let id = ContextId::parse(name).unwrap();
        refused += usize::from(fits(site.records.load_thread(&owner, &id).await, what));
        refused += usize::from(fits(site.records.load_thread_head(&owner, &id).await, what));
    }
    if text(item, "SK") == "IDEM" {
        for key in ["key-1", "key-2", "key-3"] {
            let key = IdempotencyKey::parse(key).unwrap().hash(&owner);
            refused += usize::from(fits(site.records.load_key(&owner, &key, now).await, what));
        }
    }
    if item.get("open").is_some() {
        for shard in 0..site.records.sweep().open_shards() {
            let open = site.records.sweep().open_tasks(shard, None, 100).await;
            refused += usize::from(fits(open, what));
        }
    }
    refused
}

#[tokio::test]
async fn a_damaged_item_is_an_error_and_never_a_panic() {
    const EACH: usize = 3;
    let mut runner = TestRunner::deterministic();
    let (mut tried, mut refused) = (0, 0);
    for release in releases() {
        let corpus = Corpus::read(&release);
        let site = Endpoint::with(&corpus).await;
        assert!(!tasks_of(&corpus.items).is_empty());
        for item in &corpus.items {
            let names = item.as_object().unwrap().keys();
            // Damaged keys are excluded: another key is another item, and the service
            // enforces the type of index keys. The name of an object is excluded too: the
            // store requests any name as it is stored.
            let keys = ["PK", "SK", "GSI1PK", "GSI1SK", "open", "open_at", "object"];
            for name in names.filter(|name| !keys.contains(&name.as_str())) {
                let times = if name == "body" { EACH * 3 } else { EACH };
                for _ in 0..times {
                    let damage = damage().new_tree(&mut runner).unwrap().current();
                    let what = format!("{release} {} {} {name} {damage:?}", item["PK"], item["SK"]);
                    let bad = damaged(item, name, &damage);
                    site.put(&bad).await;
                    tried += 1;
                    refused += usize::from(read_all(&site, &bad, &what).await > 0);
                }
            }
            site.put(item).await;
        }
    }
    assert!(
        tried > 1_000 && refused > tried / 10,
        "{refused} of {tried}"
    );
}
