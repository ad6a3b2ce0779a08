//! Every key of the table is made here and nowhere else.
//!
//! A partition begins with the tenant. No name that goes into a key can hold a
//! `#`, so two owners, or two kinds of item, never share a partition.

use crate::store::stored::Place;
use crate::store::{ListPosition, ThreadPosition};
use crate::task::{
    ContextId, Doc, KeyHash, Owner, PushId, TaskId, TaskKey, TenantId, ThreadKey, Timestamp,
};
use sha2::{Digest as _, Sha256};
use std::num::NonZeroU32;

/// Partition key of the table.
pub(super) const PK: &str = "PK";
/// Sort key of the table.
pub(super) const SK: &str = "SK";
/// The item that decides about its partition.
pub(super) const META: &str = "META";
/// What a task keeps, beside it; the conversation state beside a thread.
pub(super) const STATE: &str = "STATE";
/// Before every child of a task; the last is [`STATE`].
pub(super) const FIRST_CHILD: &str = "ART#";
/// What the sort key of a webhook begins with.
pub(super) const PUSH: &str = "PUSH#";
/// What the sort key of its deliveries ends with.
const DELIVERY: &str = "#SENT";
/// What an idempotency key stands for.
pub(super) const IDEM: &str = "IDEM";
/// The index of lists.
pub(super) const LISTS: &str = "GSI1";
/// Its partition key.
pub(super) const LISTS_PK: &str = "GSI1PK";
/// Its sort key.
pub(super) const LISTS_SK: &str = "GSI1SK";
/// The sparse index of what a sweep has to look at.
pub(super) const SWEEP: &str = "GSI2";
/// Its partition key.
pub(super) const SWEEP_PK: &str = "open";
/// Its sort key.
pub(super) const SWEEP_SK: &str = "open_at";

/// How many shards an owner's list has.
pub(super) const SHARDS: &str = "SHARDS";

/// Shards of the index of open tasks. A partition takes 1,000 writes a second,
/// and a task that is ever stored open costs two, whatever its tenant. A sweep
/// asks each; their number may grow once every reader knows the new one.
pub(super) const OPEN_SHARDS: u32 = 16;

/// The last time that fits into a sort key, in the year 2286.
const LAST: i64 = 9_999_999_999_999;

/// What every partition of a tenant's data begins with.
pub(super) fn tenant(tenant: &TenantId) -> String {
    format!("T#{tenant}#")
}

/// The partition of a task.
pub(super) fn task(key: &TaskKey) -> String {
    format!("T#{}#K#{}", key.tenant(), key.local())
}

/// The largest number in the name of a child.
const LARGEST: u64 = 999_999_999_999;

/// The name of a child beside its task. The batches of events are in order, and
/// stand before the task's own item, so that one read gives both.
pub(super) fn child(place: Place) -> String {
    let numbered = |kind, number: u64| format!("{kind}#{:012}", number.min(LARGEST));
    match place {
        Place::Parts(version) => numbered("ART", version),
        Place::Events(upto) => numbered("EVT", upto),
        Place::History(version) => numbered("MSG", version),
        Place::Doc(Doc::Saved) => STATE.to_owned(),
        Place::Doc(doc) => format!("DOC#{}", doc.name()),
    }
}

/// The child of this name; `None` if it is another item.
pub(super) fn place_of(sort: &str) -> Option<Place> {
    if sort == STATE {
        return Some(Place::Doc(Doc::Saved));
    }
    let (kind, name) = sort.split_once('#')?;
    if kind == "DOC" {
        let doc = Doc::ALL.into_iter().find(|doc| doc.name() == name);
        return doc.map(Place::Doc);
    }
    let number = name.parse().ok()?;
    match kind {
        "ART" => Some(Place::Parts(number)),
        "EVT" => Some(Place::Events(number)),
        "MSG" => Some(Place::History(number)),
        _ => None,
    }
}

/// The sort key of a webhook in the partition of its task.
pub(super) fn push(id: &PushId) -> String {
    format!("{PUSH}{id}")
}

/// The sort key of the deliveries of a webhook, beside it. No id holds a `#`.
pub(super) fn delivery(id: &PushId) -> String {
    delivery_beside(&push(id))
}

/// The same by the sort key of the webhook.
pub(super) fn delivery_beside(push: &str) -> String {
    format!("{push}{DELIVERY}")
}

/// Whether it is such a sort key.
pub(super) fn is_delivery(sort: &str) -> bool {
    sort.ends_with(DELIVERY)
}

/// The tenant and the id in the partition of a task; `None` if it is another's.
pub(super) fn task_of(partition: &str) -> Option<(TenantId, TaskId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    // A client-made id stands behind its subject, and holds no `~` itself.
    let id = local.split_once('~').map_or(local, |(_, id)| id);
    Some((TenantId::parse(tenant).ok()?, TaskId::parse(id).ok()?))
}

/// The address of the task in this partition; `None` if it is another's.
pub(super) fn task_key(partition: &str) -> Option<TaskKey> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    TaskKey::stored(tenant, local)
}

/// The partition of the tasks, over all tenants, which a sweep looks at.
pub(super) fn open(shard: u32) -> String {
    format!("open#{shard}")
}

/// The same for the task in `partition`.
pub(super) fn open_of(partition: &str) -> String {
    open(hashed(partition) % OPEN_SHARDS)
}

/// The partition of a thread.
pub(super) fn thread(owner: &Owner, id: &ContextId) -> String {
    thread_at(&ThreadKey::new(owner, id))
}

/// The same by its address.
pub(super) fn thread_at(key: &ThreadKey) -> String {
    let (tenant, subject, context) = (key.tenant(), key.subject(), key.context());
    format!("T#{tenant}#C#{subject}#{context}")
}

/// The partition of what sweeps note for each other. It holds nothing of a
/// tenant.
pub(super) const SWEEPS: &str = "S#sweep";
/// How far the objects have been looked through.
pub(super) const OBJECTS: &str = "OBJECTS";

/// The partition of an idempotency key. The subject is in the hash.
pub(super) fn idempotency(tenant: &TenantId, key: &KeyHash) -> String {
    format!("T#{tenant}#I#{key}")
}

/// The tenant and the context in the partition of a thread; `None` if it is
/// another's.
pub(super) fn thread_of(partition: &str) -> Option<(TenantId, ContextId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#C#")?;
    let (_, context) = local.split_once('#')?;
    Some((
        TenantId::parse(tenant).ok()?,
        ContextId::parse(context).ok()?,
    ))
}

/// The address of the thread in this partition; `None` if it is another's.
pub(super) fn thread_key(partition: &str) -> Option<ThreadKey> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#C#")?;
    let (subject, context) = local.split_once('#')?;
    ThreadKey::stored(tenant, subject, context)
}

/// Parts of the index of what expires.
pub(super) const EXPIRY_SHARDS: u32 = 4;

/// The partition of the conversations, over all tenants, whose expiry is noted
/// in one shard.
pub(super) fn expiry(shard: u32) -> String {
    format!("expiry#{shard}")
}

/// The shard of the thread in `partition`.
pub(super) fn expiry_of(partition: &str) -> String {
    let sum = partition.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    expiry(sum % EXPIRY_SHARDS)
}

/// The partition, in the index of lists, of a shard of an owner's conversations.
/// They have as many shards as the owner's tasks.
pub(super) fn contexts(owner: &Owner, shard: u32) -> String {
    format!("T#{}#X#{}#{shard}", owner.tenant, owner.subject.hash())
}

/// The place of a thread in its list; text order is list order.
pub(super) fn context_place(at: Timestamp, context: &ContextId) -> String {
    format!("{}#{context}", millis(at))
}

/// The position that [`context_place`] made `text` of.
pub(super) fn context_position(text: &str) -> Option<ThreadPosition> {
    let (at, context) = text.split_once('#')?;
    Some(ThreadPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        context: ContextId::parse(context).ok()?,
    })
}

/// A place after everything of this time.
pub(super) fn end_of(at: Timestamp) -> String {
    format!("{}#~", millis(at))
}

/// The partition, in the table, of what there is to know of an owner's list.
pub(super) fn list(owner: &Owner) -> String {
    format!("T#{}#L#{}", owner.tenant, owner.subject.hash())
}

/// The partition, in the index, of a shard of an owner's list.
pub(super) fn list_shard(owner: &Owner, shard: u32) -> String {
    format!("{}#{shard}", list(owner))
}

/// The shard of a task or a conversation by its id, of `shards`. It is the same
/// everywhere.
pub(super) fn shard_of(id: &str, shards: NonZeroU32) -> u32 {
    hashed(id) % shards
}

fn hashed(name: &str) -> u32 {
    let hash = Sha256::digest(name);
    let first = hash.iter().take(4);
    first.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte))
}

/// The partition, in the index of lists, of the hidden tasks of a conversation: in
/// no list, but found when it is deleted.
pub(super) fn hidden(owner: &Owner, context: &ContextId) -> String {
    format!("T#{}#H#{}#{context}", owner.tenant, owner.subject.hash())
}

/// The place of a task in its list; text order is list order.
pub(super) fn place(at: Timestamp, task: &TaskId) -> String {
    format!("{}#{task}", millis(at))
}

/// A place before every task with this status time.
pub(super) fn before_all_at(at: Timestamp) -> String {
    format!("{}#", millis(at))
}

/// A place after every task.
pub(super) fn after_all() -> String {
    format!("{LAST}~")
}

/// The position that [`place`] made `text` of.
pub(super) fn position(text: &str) -> Option<ListPosition> {
    let (at, task) = text.split_once('#')?;
    Some(ListPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        task: TaskId::parse(task).ok()?,
    })
}

fn millis(at: Timestamp) -> String {
    format!("{:013}", at.as_millis().clamp(0, LAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{IdempotencyKey, Subject};

    fn owner(tenant: &str, subject: &str) -> Owner {
        Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        }
    }

    #[test]
    fn no_two_owners_or_kinds_share_a_partition() {
        let mut seen = std::collections::BTreeSet::new();
        for tenant in ["a", "a.C", "K", "C", "T"] {
            for subject in ["x", "K#x", "C", "#"] {
                let owner = owner(tenant, subject);
                for name in ["x", "K", "C", "META", ".."] {
                    let id = TaskId::parse(name).unwrap();
                    assert!(seen.insert(task(&TaskKey::new(&owner, &id))));
                    let id = ContextId::parse(name).unwrap();
                    assert!(seen.insert(thread(&owner, &id)));
                    assert!(seen.insert(hidden(&owner, &id)));
                }
                assert!(seen.insert(list(&owner)));
                assert!(seen.insert(list_shard(&owner, 0)));
                assert!(seen.insert(contexts(&owner, 0)));
                let hash = IdempotencyKey::parse("x").unwrap().hash(&owner);
                assert!(seen.insert(idempotency(&owner.tenant, &hash)));
            }
        }
    }

    #[test]
    fn a_task_is_found_again_in_its_partition_and_nothing_else_is() {
        for tenant in ["a", "K", "T", "a.K"] {
            let owner = owner(tenant, "x#K#y~z");
            for id in ["x", "K", ".", &TaskId::made_of(7).to_string()] {
                let id = TaskId::parse(id).unwrap();
                let found = task_of(&task(&TaskKey::new(&owner, &id)));
                assert_eq!(found, Some((owner.tenant.clone(), id)));
            }
            let context = ContextId::parse("K").unwrap();
            assert_eq!(task_of(&thread(&owner, &context)), None);
            let found = thread_of(&thread(&owner, &context));
            assert_eq!(found, Some((owner.tenant.clone(), context)));
            assert_eq!(thread_of(&list(&owner)), None);
            assert_eq!(task_of(&list(&owner)), None);
        }
        for subject in ["x", "K#x"] {
            let owner = owner("acme", subject);
            let context = ContextId::parse("C:1").unwrap();
            let found = thread_key(&thread(&owner, &context));
            assert_eq!(found, Some(ThreadKey::new(&owner, &context)));
            let task = TaskKey::new(&owner, &TaskId::made_of(1));
            assert_eq!(thread_key(&super::task(&task)), None);
        }
        for text in ["", "T#", "T##K#x", "T#a#K#", "T#a#K#x#y", "X#a#K#x"] {
            assert_eq!(task_of(text), None, "{text}");
        }
    }

    #[test]
    fn tasks_are_spread_over_all_shards_alike() {
        let shards = NonZeroU32::new(8).unwrap();
        let mut counts = [0; 8];
        for number in 0..8_000 {
            counts[shard_of(TaskId::made_of(number).as_str(), shards) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1_200).contains(count)),
            "{counts:?}"
        );
        let one = TaskId::made_of(1);
        assert_eq!(shard_of(one.as_str(), NonZeroU32::MIN), 0);
    }

    #[test]
    fn a_child_is_found_again_under_its_name_and_lies_among_the_children() {
        let docs = Doc::ALL.map(Place::Doc);
        let numbers = [0, 1, 9, 10, 4_000_000, LARGEST];
        let numbered = numbers.map(|n| [Place::Parts(n), Place::Events(n), Place::History(n)]);
        for place in docs.into_iter().chain(numbered.into_iter().flatten()) {
            let name = child(place);
            assert_eq!(place_of(&name), Some(place), "{name}");
            assert!(
                name.as_str() >= FIRST_CHILD && name.as_str() <= STATE,
                "{name}"
            );
        }
        for name in [META, "PUSH#1", "EVT#x", "DOC#", "EVT"] {
            assert_eq!(place_of(name), None, "{name}");
        }
        assert!(child(Place::Events(9)) < child(Place::Events(10)));
        assert!(child(Place::Events(u64::MAX)).as_str() < META);
    }

    #[test]
    fn places_are_ordered_as_positions_are() {
        let mut positions = Vec::new();
        for at in [0, 9, 10, 1_000, 4_102_444_800_000, LAST] {
            for id in ["-", ".", "A", "task-1", "task-10", "z:"] {
                positions.push(ListPosition {
                    at: Timestamp::from_millis(at),
                    task: TaskId::parse(id).unwrap(),
                });
            }
        }
        for one in &positions {
            let text = place(one.at, &one.task);
            assert_eq!(position(&text).as_ref(), Some(one));
            assert!(text > before_all_at(one.at) && text < after_all());
            for other in &positions {
                assert_eq!(text.cmp(&place(other.at, &other.task)), one.cmp(other));
            }
        }
    }
}
