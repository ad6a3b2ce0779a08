//! The table in memory does what DynamoDB does: random writes, reads and queries have the same
//! outcomes, items and pages.

use crate::lists::watched;
use a2a_lambda::store::documents::{DocumentCollection, DocumentKey, DocumentOwner};
use a2a_lambda::store::keys::{self, Key, Partition};
use a2a_lambda::store::memory::MemoryTable;
use a2a_lambda::store::table::{
    Action, Comparison, Condition, Item, ItemChange, Path, Position, Query, QuerySource, Range,
    Statement, Table, Value, Write, WriteResult,
};
use a2a_lambda::store::{StoreError, contract::SampleData};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, outside, run};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Tables that begin empty, each with this many steps.
const SEEDS: u64 = 24;
const STEPS: usize = 160;

/// Attributes that no index has as a key.
const NAMES: [&str; 6] = ["n", "m", "map", "state", "expires_at", "owner_subject"];
const COMPARISONS: [Comparison; 5] = [
    Comparison::Equal,
    Comparison::Differs,
    Comparison::Below,
    Comparison::AtMost,
    Comparison::Above,
];

/// Random choices (`SplitMix64`), and the names of one run.
struct Random {
    state: u64,
    collections: Vec<DocumentCollection>,
    indexes: [Partition; 2],
}

impl Random {
    fn new(seed: u64) -> Self {
        let sample = SampleData::new(run(), &format!("table {seed}")).unwrap();
        let owner = || DocumentOwner::Tenant(sample.owner.tenant.clone());
        let named = |name| DocumentCollection::new(owner(), name).unwrap();
        let shard = u32::try_from(run() % 1_000_000_000).unwrap();
        Self {
            state: seed,
            collections: ["a", "b"].map(named).into(),
            indexes: [keys::contexts(&sample.owner), keys::expiring(shard)],
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    fn is(&mut self, chance_in_10: usize) -> bool {
        self.below(10) < chance_in_10
    }

    fn some<T>(&mut self, chance_in_10: usize, make: fn(&mut Self) -> T) -> Option<T> {
        self.is(chance_in_10).then(|| make(self))
    }

    fn many<T>(&mut self, most: usize, make: fn(&mut Self) -> T) -> Vec<T> {
        (0..1 + self.below(most)).map(|_| make(self)).collect()
    }

    fn number(&mut self) -> i64 {
        self.one_of(&[-3, 0, 1, 2, 10, 100])
    }

    fn text(&mut self) -> String {
        self.one_of(&["", "a", "ab", "b"]).to_owned()
    }

    fn scalar(&mut self) -> Value {
        match self.is(6) {
            true => self.number().into(),
            false => self.text().into(),
        }
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Bool(self.is(5)),
            1 => Value::Bytes(self.text().into_bytes()),
            2 => Value::Map(self.item_of(&["x", "y"])),
            _ => self.scalar(),
        }
    }

    fn item_of(&mut self, names: &[&str]) -> BTreeMap<String, Value> {
        let picked = names
            .iter()
            .filter(|_| self.is(5))
            .copied()
            .collect::<Vec<_>>();
        picked
            .into_iter()
            .map(|name| (name.to_owned(), self.scalar()))
            .collect()
    }

    /// A key of an index, mostly with the type that it needs.
    fn indexed(&mut self) -> (String, Value) {
        let at = self.below(2);
        let (partition, sort) = self.indexes[at].source().keys();
        let wrong = self.is(1);
        match (self.is(5), at) {
            _ if wrong => (sort.to_owned(), Value::Bool(true)),
            (true, _) => (partition.to_owned(), self.indexes[at].key().into()),
            (false, 0) => (sort.to_owned(), self.one_of(&["1", "2", "3", "31"]).into()),
            (false, _) => (sort.to_owned(), self.one_of(&[1, 2, 3]).into()),
        }
    }

    fn name(&mut self) -> String {
        self.one_of(&NAMES).to_owned()
    }

    fn path(&mut self) -> Path {
        match self.below(8) {
            0 => Path::member(&self.name(), "x"),
            1 | 2 => Path::member("map", self.one_of(&["x", "y"])),
            3 => self.one_of(&["PK", "GSI1SK", "open_at"]).into(),
            _ => self.name().as_str().into(),
        }
    }

    fn key(&mut self) -> Key {
        let collection = self.one_of(&self.collections.clone());
        let name = self.one_of(&["a", "b", "c", "d", "e", "bc"]);
        keys::document(&collection, &DocumentKey::parse(name).unwrap())
    }

    fn condition(&mut self) -> Condition {
        match self.below(10) {
            0 => Condition::Exists(self.path()),
            1 | 2 => Condition::Absent(self.path()),
            3 => Condition::Between(self.path(), self.scalar(), self.scalar()),
            4 => Condition::SizeBelow(self.path(), self.number()),
            5 => Condition::All(self.many(3, Self::condition)),
            6 => Condition::Any(self.many(3, Self::condition)),
            _ => {
                let comparison = self.one_of(&COMPARISONS);
                Condition::Is(self.path(), comparison, self.value())
            }
        }
    }

    fn change(&mut self) -> ItemChange {
        match self.below(9) {
            0 => ItemChange::Remove(self.path()),
            1 => ItemChange::Add(self.name(), self.number()),
            2 => ItemChange::Copy {
                to: self.name(),
                from: self.name(),
                or: self.value(),
            },
            3 => ItemChange::Plus {
                at: self.name(),
                start: self.some(5, Self::number),
                amount: self.number(),
            },
            4..=6 => {
                let (name, value) = self.indexed();
                ItemChange::set(&name, value)
            }
            _ => ItemChange::Set(self.path(), self.value()),
        }
    }

    fn statement(&mut self) -> Statement {
        let action = match self.below(5) {
            0 => Action::Delete,
            1 | 2 => {
                let mut item: Item = self.item_of(&NAMES);
                item.extend(self.many(4, Self::indexed));
                item.extend(self.some(5, |it| ("map".to_owned(), it.value())));
                Action::Put(item)
            }
            _ => Action::Update(self.many(3, Self::change)),
        };
        Statement {
            key: self.key(),
            action,
            condition: self.some(5, Self::condition),
        }
    }

    fn write(&mut self) -> Write {
        let several = self.is(3);
        let statements = self.many(if several { 4 } else { 1 }, Self::statement);
        Write {
            wants_old: !several && self.is(3),
            ..statements.into()
        }
    }

    fn query(&mut self) -> Query {
        let partition = match self.below(4) {
            0 => self.indexes[0].clone(),
            1 => self.indexes[1].clone(),
            _ => keys::documents(&self.one_of(&self.collections.clone())),
        };
        let sort = |it: &mut Self| match partition.source() {
            QuerySource::Sweep => it.one_of(&[0, 1, 2, 3]).into(),
            QuerySource::Lists => it.one_of(&["1", "2", "3"]).into(),
            QuerySource::Table => it.one_of(&["a", "b", "c", "e"]).into(),
        };
        let range = match self.below(5) {
            0 => Range::Prefix(self.one_of(&["b", "3"]).to_owned()),
            1 => Range::Between(sort(self), sort(self)),
            2 => Range::Below(sort(self)),
            _ => Range::All,
        };
        let count = self.is(2);
        let names = self
            .item_of(&["state", "expires_at", "n", "SK"])
            .into_keys();
        Query {
            range,
            newest_first: self.is(5),
            limit: self.some(5, |it| 1 + it.below(4)),
            start: self.some(2, |it| Position(it.key().item())),
            filter: self.some(4, Self::condition),
            only: if count || self.is(5) {
                Vec::new()
            } else {
                names.collect()
            },
            count,
            ..partition.into()
        }
    }
}

/// The result of a call, with the kind of its error alone.
fn kind<T>(result: Result<T, StoreError>) -> Result<T, &'static str> {
    result.map_err(|error| match error {
        StoreError::Refused(_) => "refused",
        StoreError::TooLarge(_) => "too large",
        _ => "another error",
    })
}

struct Both {
    memory: MemoryTable,
    dynamodb: Arc<dyn Table>,
}

impl Both {
    async fn write(&self, write: Write) -> bool {
        let stored = kind(self.dynamodb.write(write.clone()).await);
        let expected = kind(self.memory.write(write.clone()).await);
        same(&expected, &stored, &write);
        expected.is_ok()
    }

    /// Reads all pages of a query.
    async fn query(&self, mut query: Query) -> usize {
        use a2a_lambda::store::table::ReadTable as _;
        let mut pages = 0;
        loop {
            let stored = kind(self.dynamodb.query(&query).await);
            let expected = kind(self.memory.query(&query).await);
            same(&expected, &stored, &query);
            pages += usize::from(expected.is_ok());
            query.start = expected.ok().and_then(|page| page.next);
            if query.start.is_none() {
                return pages;
            }
        }
    }
}

#[track_caller]
fn same<T: PartialEq + Debug>(memory: &T, dynamodb: &T, call: &impl Debug) {
    assert!(
        memory == dynamodb,
        "{call:#?}\nmemory: {memory:#?}\nDynamoDB: {dynamodb:#?}"
    );
}

#[tokio::test]
async fn the_table_in_memory_does_what_dynamodb_does() {
    if outside().is_some() {
        println!("SKIPPED: the second emulator accepts a path into a map that is not there");
        return;
    }
    let emulator = Emulator::start().await.unwrap();
    let (mut writes, mut pages) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let both = Both {
            memory: MemoryTable::default(),
            dynamodb: emulator.records.table(),
        };
        for _ in 0..STEPS {
            match random.is(7) {
                true => writes += usize::from(both.write(random.write()).await),
                false => pages += both.query(random.query()).await,
            }
        }
    }
    // Most of the generated calls are valid.
    let steps = usize::try_from(SEEDS).unwrap() * STEPS;
    assert!(writes > steps / 4 && pages > steps / 8, "{writes} {pages}");
}

#[tokio::test]
async fn each_call_of_a_table_is_the_request_of_its_right() {
    let emulator = Emulator::start().await.unwrap();
    let (store, calls) = watched(&emulator);
    let table = store.table();
    let random = Random::new(0);
    let [one, other] = ["a", "b"].map(|name| {
        let key = DocumentKey::parse(name).unwrap();
        keys::document(&random.collections[0], &key)
    });
    let put = |key: &Key| Statement::put(key.clone(), Item::new());
    let update = Statement::update(one.clone(), [ItemChange::set("n", 1)]);
    let writes = [
        (put(&one).into(), "PutItem"),
        (update.into(), "UpdateItem"),
        (Statement::delete(one.clone()).into(), "DeleteItem"),
        (vec![put(&one), put(&other)].into(), "TransactWriteItems"),
    ];
    let names = || {
        calls
            .taken()
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    each_row_async(writes, async |(write, name)| {
        let _done: WriteResult = table.write(write).await.unwrap();
        assert_eq!(names(), [name]);
    })
    .await;
    for (keys, name) in [
        (vec![one.clone()], "GetItem"),
        (vec![one, other], "BatchGetItem"),
    ] {
        assert_eq!(table.get(&keys).await.unwrap().len(), keys.len());
        assert_eq!(names(), [name]);
    }
    let all = keys::documents(&random.collections[0]);
    table.query(&all.into()).await.unwrap();
    assert_eq!(names(), ["Query"]);
}
