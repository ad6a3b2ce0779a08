//! Makes every key of the table.
//!
//! A partition key begins with the tenant. No name in a key can contain a `#`, so two owners,
//! or two kinds of item, never share a partition. The fields of a key are private to this
//! module, so no other code makes one.
//!
//! - here: keys, partitions, and the names of all but records
//! - `records`: tasks, threads, and what is stored beside them

mod records;

// What `records` makes for this crate alone needs no list.
pub(crate) use self::records::*;
pub use self::records::{
    META, contexts, expiring, idempotency, is_of_shared_documents, is_of_subject, task, task_items,
    task_key_of, tenant, thread,
};

use crate::table::{Item, QuerySource, Value};
use a2a_lambda_model::store::api_keys::ApiKeyId;
use a2a_lambda_model::store::documents::{DocumentCollection, DocumentKey, DocumentOwner};
use a2a_lambda_model::store::limits::{RateBucket, SlotPool};
use a2a_lambda_model::task::TenantId;
use sha2::{Digest as _, Sha256};

/// Partition key of the table.
pub const PK: &str = "PK";
/// Sort key of the table.
pub const SK: &str = "SK";
/// The index of lists.
pub const LISTS: &str = "GSI1";
/// Its partition key.
pub const LISTS_PK: &str = "GSI1PK";
/// Its sort key.
pub const LISTS_SK: &str = "GSI1SK";
/// The sparse index of the tasks and threads that a sweep has to look at.
pub const SWEEP: &str = "GSI2";
/// Its partition key.
pub const SWEEP_PK: &str = "open";
/// Its sort key, a number.
pub const SWEEP_SK: &str = "open_at";

impl QuerySource {
    /// The name of the index; `None` for the table itself.
    #[must_use]
    pub const fn index(self) -> Option<&'static str> {
        match self {
            Self::Table => None,
            Self::Lists => Some(LISTS),
            Self::Sweep => Some(SWEEP),
        }
    }

    /// The attributes that are its partition key and its sort key.
    #[must_use]
    pub const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Table => (PK, SK),
            Self::Lists => (LISTS_PK, LISTS_SK),
            Self::Sweep => (SWEEP_PK, SWEEP_SK),
        }
    }

    /// The attributes that an index has beside the keys of the index and of the table.
    #[must_use]
    pub const fn projection(self) -> &'static [&'static str] {
        match self {
            Self::Table => &[],
            // What a filter or a count of a list needs. They change only with the state,
            // which also changes the sort key, so they cost no extra write.
            Self::Lists => &["state", "context", "expires_at"],
            // It names the owner and never changes. So a commit that leaves the task open does
            // not write to the index.
            Self::Sweep => &["owner_subject"],
        }
    }
}

/// The key of one item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    partition: String,
    sort: String,
}

impl Key {
    fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self {
            partition: partition.into(),
            sort: sort.into(),
        }
    }

    /// The partition key.
    #[must_use]
    pub fn partition(&self) -> &str {
        &self.partition
    }

    /// The sort key.
    #[must_use]
    pub fn sort(&self) -> &str {
        &self.sort
    }

    /// The two attributes.
    #[must_use]
    pub fn item(&self) -> Item {
        let attributes = [(PK, &self.partition), (SK, &self.sort)];
        let attributes = attributes.map(|(name, text)| (name.to_owned(), Value::from(&**text)));
        Item::from(attributes)
    }
}

/// What a query reads: a partition of the table or of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    source: QuerySource,
    key: String,
}

impl Partition {
    fn new(source: QuerySource, key: impl Into<String>) -> Self {
        let key = key.into();
        Self { source, key }
    }

    /// Where it is.
    #[must_use]
    pub const fn source(&self) -> QuerySource {
        self.source
    }

    /// The partition key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The first key of a partition of the table.
    pub(crate) fn first(&self) -> Key {
        Key::new(&*self.key, "")
    }
}

/// The partition of all API keys. It holds no data of a tenant, and no role but the
/// authorizer's is limited to it.
pub const API_KEYS: &str = "A#keys";

/// An API key.
#[must_use]
pub fn api_key(id: &ApiKeyId) -> Key {
    Key::new(API_KEYS, id.as_str())
}

/// The check of the API keys. It sorts before every id: an id begins with `0` or above.
#[must_use]
pub fn key_check() -> Key {
    Key::new(API_KEYS, "#check")
}

/// All API keys, and their check.
#[must_use]
pub fn api_keys() -> Partition {
    Partition::new(QuerySource::Table, API_KEYS)
}

/// A series of one shard of the counters of all processes. It holds no content of a tenant.
/// The role of the function `ops` reads these partitions alone.
#[must_use]
pub fn counter(shard: u32, series: &str) -> Key {
    Key::new(format!("M#{shard}"), series)
}

/// One shard of the counters.
#[must_use]
pub fn counters(shard: u32) -> Partition {
    Partition::new(QuerySource::Table, format!("M#{shard}"))
}

/// The stored form of the table. The role of the function `ops` writes this item, and no other.
#[must_use]
pub fn form() -> Key {
    Key::new("F#form", "FORM")
}

/// The brake. It has the names of tenants and skills, and no content.
#[must_use]
pub fn brake() -> Key {
    Key::new("B#brake", "BRAKE")
}

/// A key among the counters under which there is never an item.
#[must_use]
pub fn absent() -> Key {
    counter(0, "ABSENT")
}

/// A document.
#[must_use]
pub fn document(collection: &DocumentCollection, key: &DocumentKey) -> Key {
    Key::new(documents(collection).key, key.as_str())
}

/// A collection of documents; the sort key is the key of a document.
#[must_use]
pub fn documents(collection: &DocumentCollection) -> Partition {
    let (tenant, name) = (collection.owner().tenant(), collection.name());
    let key = match collection.owner() {
        DocumentOwner::Tenant(_) => format!("T#{tenant}#D#{name}"),
        DocumentOwner::Subject(subject) => format!("T#{tenant}#O#{}#{name}", subject.hash()),
    };
    Partition::new(QuerySource::Table, key)
}

/// What limits count for a tenant. The role of `tasks-get` may update items in partitions that
/// end with `#R#limits`, and in no other: no other key ends so.
fn limits(tenant: &TenantId, sort: impl Into<String>) -> Key {
    Key::new(format!("T#{tenant}#R#limits"), sort)
}

/// The longest name of a tier in the name of an attribute; a longer one is hashed.
const LONGEST_TIER: usize = 64;

/// The rate buckets of all tiers of a tenant.
#[must_use]
pub fn tiers(tenant: &TenantId) -> Key {
    limits(tenant, "TIERS")
}

/// The key and the attribute of a rate bucket.
#[must_use]
pub fn bucket(bucket: &RateBucket) -> (Key, String) {
    let key_of = |tenant, kind: &str, name: &str| {
        let key = limits(tenant, format!("{kind}#{name}"));
        (key, "tat".to_owned())
    };
    match bucket {
        RateBucket::Tier(tenant, tier) if tier.len() <= LONGEST_TIER => {
            (tiers(tenant), format!("tat_{tier}"))
        }
        RateBucket::Tier(tenant, tier) => {
            let hash = hex::encode(Sha256::digest(tier));
            (tiers(tenant), format!("tat_#{hash}"))
        }
        RateBucket::Skill(tenant, skill) => key_of(tenant, "SKILL", skill.as_str()),
        RateBucket::SkillTag(tenant, tag) => key_of(tenant, "TAG", tag),
        RateBucket::Host(tenant, host) => key_of(tenant, "HOST", host),
    }
}

/// A pool of slots. A shared pool holds no data of a tenant.
#[must_use]
pub fn pool(pool: &SlotPool) -> Key {
    match pool {
        SlotPool::Streams(tenant) => limits(tenant, "STREAMS"),
        SlotPool::Turns(tenant, part) => limits(tenant, format!("TURNS#{part}")),
        SlotPool::AllStreams(name, part) => Key::new(format!("S#streams#{name}#{part}"), "STREAMS"),
    }
}

/// How the partition of a day begins.
pub const DAY_USES: &str = "U#";

/// The tokens of models on one day, by tenant: an operator reads the day, a tenant its own items.
/// No role writes such a partition but those that run turns; `ops` reads them.
#[must_use]
pub fn day_use(tenant: &TenantId, day: i64) -> Key {
    Key::new(format!("{DAY_USES}{day}"), tenant.as_str())
}

/// The tokens of all tenants on one day.
#[must_use]
pub fn day_uses(day: i64) -> Partition {
    Partition::new(QuerySource::Table, format!("{DAY_USES}{day}"))
}

/// The bytes that a tenant stores on one day.
#[must_use]
pub fn stored_bytes(tenant: &TenantId, day: i64) -> Key {
    limits(tenant, format!("BYTES#{day}"))
}
