//! Spreads an owner's tasks and threads over several partitions of the list index.
//!
//! An index partition takes 1,000 writes a second, and a throttled index throttles the
//! writes to the table. An owner with more writes gets more shards. The number of shards
//! only grows, so an outdated number is safe:
//!
//! - A writer with an outdated number writes to a shard that every reader reads.
//! - A reader with an outdated number would miss writes to a new shard. So writers use a new
//!   number only [`SETTLE`] later. By then every reader's copy is older than [`FRESH`] and
//!   no longer used. The margin also covers clocks that differ by minutes.
//!
//! A process reads the number before it lists. Before a write it reads the number only if
//! it writes much for the owner. An owner with few tasks costs no read beside the write.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::key;
use super::store::DynamoStore;
use super::write::WriteResult;
use a2a_lambda_model::store::{StoreError, TaskWrite, ThreadRecord};
use a2a_lambda_model::task::{Owner, Timestamp};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The largest number of shards of one list. Each shard costs one request a page.
pub const MAX_SHARDS: u32 = 128;
/// How long a process uses a number that it has read.
const FRESH: Duration = Duration::from_secs(60);
/// How long writers still use the previous number after the list has grown.
const SETTLE: Duration = Duration::from_secs(300);
/// A process reads the number after this many writes for one owner within [`FRESH`]. A
/// thousand processes that stay below it write at most 130 times a second.
const BUSY: u32 = 8;
/// Largest number of owners that a process remembers.
const KEPT: usize = 10_000;

const SHARDS: &str = "shards";
const BEFORE: &str = "before";
const SINCE: &str = "since";

/// The stored number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShardCount {
    /// The number for readers.
    shards: NonZeroU32,
    /// The number for writers until the new number has settled.
    before: NonZeroU32,
    /// When it grew.
    since: Timestamp,
}

impl Default for ShardCount {
    fn default() -> Self {
        Self {
            shards: NonZeroU32::MIN,
            before: NonZeroU32::MIN,
            since: Timestamp::default(),
        }
    }
}

impl ShardCount {
    /// How many shards a reader has to read.
    pub(super) const fn to_read(self) -> NonZeroU32 {
        self.shards
    }

    /// Over how many shards a writer spreads its writes.
    fn to_write(self, now: Timestamp) -> NonZeroU32 {
        if self.is_settled(now) {
            self.shards
        } else {
            self.before
        }
    }

    fn is_settled(self, now: Timestamp) -> bool {
        now >= self.since.plus(SETTLE)
    }

    /// Grows this number to `shards`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if `shards` is not larger than the current number, is too large,
    /// or if the last change has not settled.
    fn grown(self, shards: u32, now: Timestamp) -> Result<Self, StoreError> {
        let refused = |why: String| Err(StoreError::Refused(why));
        let Some(wanted) = NonZeroU32::new(shards).filter(|n| n.get() <= MAX_SHARDS) else {
            return refused(format!("a list has 1 to {MAX_SHARDS} shards"));
        };
        if wanted <= self.shards {
            return refused(format!(
                "the list has {} shards, which only grow",
                self.shards
            ));
        }
        if !self.is_settled(now) {
            let until = self.since.plus(SETTLE).to_rfc3339();
            return refused(format!("the list grew just now; again from {until} on"));
        }
        Ok(Self {
            shards: wanted,
            before: self.shards,
            since: now,
        })
    }

    /// The time from which writers use all shards.
    fn settles_at(self) -> Timestamp {
        self.since.plus(SETTLE)
    }

    fn attributes(self) -> [(&'static str, aws_sdk_dynamodb::types::AttributeValue); 3] {
        [
            (SHARDS, item::number(self.shards.get())),
            (BEFORE, item::number(self.before.get())),
            (SINCE, item::number(self.since.as_millis())),
        ]
    }

    /// Decodes the stored number.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    fn of_item(item: &Item) -> Result<Self, StoreError> {
        Ok(Self {
            shards: item::integer(item, SHARDS)?,
            before: item::integer(item, BEFORE)?,
            since: Timestamp::from_millis(item::integer(item, SINCE)?),
        })
    }
}

/// The shard numbers that this process knows, by owner.
#[derive(Debug, Default)]
pub(super) struct KnownOwners {
    owners: Mutex<BTreeMap<Owner, Memory>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    count: ShardCount,
    /// When the count was read.
    read_at: Option<Timestamp>,
    /// Writes since `counted_from`.
    writes: u32,
    counted_from: Timestamp,
}

impl Memory {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.read_at
            .is_some_and(|at| at <= now && now.since(at) < FRESH)
    }
}

impl KnownOwners {
    /// The number that a reader may use without a read.
    fn to_read(&self, owner: &Owner, now: Timestamp) -> Option<NonZeroU32> {
        let owners = self.owners();
        let memory = owners.get(owner).filter(|memory| memory.is_fresh(now));
        memory.map(|memory| memory.count.to_read())
    }

    /// The number that a writer uses, and whether it should read the stored number first.
    /// `lists` says whether this write moves the task in its list.
    fn to_write(&self, owner: &Owner, now: Timestamp, lists: bool) -> (NonZeroU32, bool) {
        let mut owners = self.owners();
        if owners.len() >= KEPT && !owners.contains_key(owner) {
            // Forgetting is safe: the writer starts with one shard again.
            owners.clear();
        }
        let memory = owners.entry(owner.clone()).or_default();
        if now.since(memory.counted_from) >= FRESH || memory.counted_from > now {
            memory.counted_from = now;
            memory.writes = 0;
        }
        memory.writes = memory.writes.saturating_add(u32::from(lists));
        let ask = lists && memory.writes >= BUSY && !memory.is_fresh(now);
        (memory.count.to_write(now), ask)
    }

    /// Remembers a number that was read, and returns the one that a writer uses.
    fn learn(&self, owner: &Owner, count: ShardCount, now: Timestamp) -> NonZeroU32 {
        let mut owners = self.owners();
        let memory = owners.entry(owner.clone()).or_default();
        memory.count = count;
        memory.read_at = Some(now);
        count.to_write(now)
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<Owner, Memory>> {
        // Nothing that can panic runs between the changes under the lock.
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DynamoStore {
    /// The number of shards that a reader of `owner`'s list has to read.
    pub(super) async fn shards_to_read(
        &self,
        owner: &Owner,
        now: Timestamp,
    ) -> Result<NonZeroU32, StoreError> {
        if let Some(shards) = self.lists.to_read(owner, now) {
            return Ok(shards);
        }
        let count = self.shard_count(owner).await?;
        self.lists.learn(owner, count, now);
        Ok(count.to_read())
    }

    /// The number of shards over which this write spreads. A write that does not change the
    /// status does not change the list, and does not count.
    pub(super) async fn shards_to_write(&self, write: &TaskWrite) -> NonZeroU32 {
        let (owner, now) = (write.record.owner(), write.now);
        let lists = write.record.status().timestamp == now;
        let (known, ask) = self.lists.to_write(owner, now, lists);
        if !ask {
            return known;
        }
        match Box::pin(self.shard_count(owner)).await {
            Ok(count) => self.lists.learn(owner, count, now),
            // The write uses the known number, which is never too large.
            Err(error) => {
                tracing::warn!("failed to read how many shards a list has: {error}");
                known
            }
        }
    }

    /// The same for the write of a thread alone, without a read. An owner with many threads
    /// has even more task writes, and those read the number.
    pub(super) fn shards_for_thread(&self, thread: &ThreadRecord) -> NonZeroU32 {
        let (owner, at) = (&thread.owner, thread.updated_at);
        self.lists.to_write(owner, at, false).0
    }

    /// Spreads the lists of `owner`'s tasks and threads over `shards` partitions of the
    /// index. Readers read all of them immediately. Returns the time from which writers use
    /// them.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if `shards` is not larger than the current number, is above
    /// [`MAX_SHARDS`], or if the last change has not settled; another [`StoreError`] when the
    /// table does not answer.
    pub async fn grow_list(
        &self,
        owner: &Owner,
        shards: u32,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let before = self.shard_count(owner).await?;
        let grown = before.grown(shards, now)?;
        let attributes = Attributes::from(grown.attributes());
        let mut put = ConditionalWrite::put_at(&key::list(owner), key::SHARDS, attributes);
        put.name(SHARDS);
        put.value(":before", item::number(before.shards.get()));
        let put = put.when("attribute_not_exists(PK) OR #shards = :before");
        let decided = self.write(vec![put]).await?;
        // The response may be lost, or a repeated attempt may have met our own write. The
        // stored number decides.
        if !matches!(decided, WriteResult::Done) && self.shard_count(owner).await? != grown {
            return Err(match decided {
                WriteResult::Unknown(why) => StoreError::Unavailable(why),
                WriteResult::Done | WriteResult::Refused(_) => {
                    StoreError::Refused("another process has just grown the list".to_owned())
                }
            });
        }
        Ok(grown.settles_at())
    }

    pub(super) async fn shard_count(&self, owner: &Owner) -> Result<ShardCount, StoreError> {
        let found = self.item(&key::list(owner), key::SHARDS).await?;
        let count = found.as_ref().map(ShardCount::of_item).transpose()?;
        Ok(count.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::{Subject, TenantId};

    const START: Timestamp = Timestamp::from_millis(4_102_444_800_000);

    fn after(seconds: u64) -> Timestamp {
        START.plus(Duration::from_secs(seconds))
    }

    fn owner() -> Owner {
        Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        }
    }

    fn count(shards: u32) -> NonZeroU32 {
        NonZeroU32::new(shards).unwrap()
    }

    #[test]
    fn writers_use_a_new_shard_count_after_every_copy_has_expired() {
        let grown = ShardCount::default().grown(15, START).unwrap();
        assert_eq!(grown.to_read(), count(15));
        for (seconds, written) in [(0, 1), (60, 1), (299, 1), (300, 15), (9_999, 15)] {
            assert_eq!(
                grown.to_write(after(seconds)),
                count(written),
                "{seconds} s"
            );
        }
        // By then no reader uses a copy of the previous number.
        assert!(SETTLE >= FRESH * 2);
    }

    #[test]
    fn a_shard_count_only_grows_and_settles_in_between() {
        let grown = ShardCount::default().grown(15, START).unwrap();
        for bad in [0, 1, 14, 15, MAX_SHARDS + 1, u32::MAX] {
            assert!(grown.grown(bad, after(900)).is_err(), "{bad}");
        }
        assert!(grown.grown(16, after(299)).is_err());
        let again = grown.grown(16, after(300)).unwrap();
        assert_eq!(again.to_write(after(301)), count(15));
        assert_eq!(again.to_write(after(600)), count(16));
    }

    #[test]
    fn a_stored_shard_count_reads_back() {
        let grown = ShardCount::default().grown(15, START).unwrap();
        let item: Item = grown
            .attributes()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        assert_eq!(ShardCount::of_item(&item).unwrap(), grown);
        assert!(ShardCount::of_item(&Item::new()).is_err());
    }

    #[test]
    fn only_a_busy_writer_reads_the_shard_count_once_a_minute() {
        let known = KnownOwners::default();
        let asks = |from: u64, writes: u64| -> Vec<u64> {
            (0..writes)
                .filter(|write| known.to_write(&owner(), after(from + write), true).1)
                .collect()
        };
        assert_eq!(asks(0, u64::from(BUSY) - 1), [0_u64; 0]);
        assert_eq!(known.to_write(&owner(), after(20), true), (count(1), true));
        let grown = ShardCount::default().grown(4, START).unwrap();
        assert_eq!(known.learn(&owner(), grown, after(400)), count(4));
        assert_eq!(asks(400, 59), [0_u64; 0]);
        // The copy is too old, and the owner is busy.
        assert!(asks(460, 20).contains(&7));
        // Without a read the writer uses the number that it knows.
        assert_eq!(
            known.to_write(&owner(), after(9_000), true),
            (count(4), false)
        );
    }

    #[test]
    fn a_reader_reads_the_shard_count_again_after_a_minute() {
        let known = KnownOwners::default();
        assert_eq!(known.to_read(&owner(), START), None);
        known.learn(&owner(), ShardCount::default(), START);
        assert_eq!(known.to_read(&owner(), after(59)), Some(count(1)));
        assert_eq!(known.to_read(&owner(), after(60)), None);
        // If the clock went back, the age of the copy is unknown.
        assert_eq!(known.to_read(&owner(), Timestamp::from_millis(5)), None);
    }
}
