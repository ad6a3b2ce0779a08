//! Makes the keys of tasks and threads; `a2a_lambda_store::keys` makes the others.
//!
//! A partition key begins with the tenant. No name in a key can contain a `#`, so two owners,
//! or two kinds of item, never share a partition.

use a2a_lambda_model::store::{ListPosition, ThreadPosition};
use a2a_lambda_model::stored::ChildName;
use a2a_lambda_model::task::{
    ContextId, KeyHash, Owner, PushId, SubjectKey, TaskId, TaskKey, TaskRecord, TenantId,
    ThreadKey, Timestamp, WriteId,
};
pub(super) use a2a_lambda_store::keys::{
    LISTS, LISTS_PK, LISTS_SK, PK, SK, SWEEP, SWEEP_PK, SWEEP_SK,
};
use sha2::{Digest as _, Sha256};

/// Sort key of the main item of a task or a thread, which holds the version.
pub(super) const META: &str = "META";
/// Sort key of a task's large values, and of a thread's state.
pub(super) const STATE: &str = "STATE";
/// Lower bound of the sort keys of a task's children; the upper bound is [`STATE`].
pub(super) const FIRST_CHILD: &str = "EVT#";
/// Prefix of the sort key of a push config.
pub(super) const PUSH: &str = "PUSH#";
/// Suffix of the sort key of a push config's delivery item.
const DELIVERY: &str = "#SENT";
/// Sort key of an idempotency key.
pub(super) const IDEM: &str = "IDEM";
/// Shards of the index of open tasks. An index partition takes 1,000 writes a second over
/// all tenants, and a task that is stored open costs two. A sweep queries each shard. The
/// number may grow once every reader knows the new one.
pub(super) const OPEN_SHARDS: u32 = 16;

/// The last time that fits into a sort key, in milliseconds; it is in the year 2286.
const LAST: i64 = 9_999_999_999_999;

/// The prefix of all partition keys of a tenant.
pub(super) fn tenant(tenant: &TenantId) -> String {
    format!("T#{tenant}#")
}

/// The partition of a task.
pub(super) fn task(key: &TaskKey) -> String {
    format!("T#{}#K#{}", key.tenant(), key.local())
}

/// The largest number in the sort key of a child.
const LARGEST: u64 = 999_999_999_999;

/// The sort key of a child of a task. What commits have moved is in order and directly before
/// the `META` item, so that one query returns both. The version makes the key unique where a
/// commit moves no event.
pub(super) fn child(name: ChildName) -> String {
    match name {
        ChildName::Moved {
            last_event,
            version,
        } => format!("{}{}", events_from(last_event), digits(version)),
        ChildName::State => STATE.to_owned(),
    }
}

/// A sort key before the children that have events from number `first` on. Those with this last
/// event begin with it.
pub(super) fn events_from(first: u64) -> String {
    format!("{FIRST_CHILD}{}#", digits(first))
}

/// 12 digits, so that text order is numeric order.
fn digits(number: u64) -> String {
    format!("{:012}", number.min(LARGEST))
}

/// The child with this sort key; `None` if it is another item.
pub(super) fn child_of(sort: &str) -> Option<ChildName> {
    if sort == STATE {
        return Some(ChildName::State);
    }
    let (last_event, version) = sort.strip_prefix(FIRST_CHILD)?.split_once('#')?;
    Some(ChildName::Moved {
        last_event: last_event.parse().ok()?,
        version: version.parse().ok()?,
    })
}

/// The sort key of a push config in the partition of its task.
pub(super) fn push(id: &PushId) -> String {
    format!("{PUSH}{id}")
}

/// The sort key of the delivery item of a push config. No id contains a `#`.
pub(super) fn delivery(id: &PushId) -> String {
    delivery_beside(&push(id))
}

/// The same, from the sort key of the push config.
pub(super) fn delivery_beside(push: &str) -> String {
    format!("{push}{DELIVERY}")
}

/// Whether this is the sort key of a delivery item.
pub(super) fn is_delivery(sort: &str) -> bool {
    sort.ends_with(DELIVERY)
}

/// The address of the task of a partition; `None` for another kind.
pub(super) fn task_key_of(partition: &str) -> Option<TaskKey> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    TaskKey::stored(tenant, local)
}

/// The tenant and the id in the partition key of a task; `None` for another kind.
pub(super) fn task_of(partition: &str) -> Option<(TenantId, TaskId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#K#")?;
    // A client-made id follows the hash of its subject and a `~`; no id contains a `~`.
    let id = local.split_once('~').map_or(local, |(_, id)| id);
    Some((TenantId::parse(tenant).ok()?, TaskId::parse(id).ok()?))
}

/// The index partition of the open tasks of all tenants, in one shard.
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

/// The same, from the thread's key.
pub(super) fn thread_at(key: &ThreadKey) -> String {
    let (tenant, subject, context) = (key.tenant(), key.subject(), key.context());
    format!("T#{tenant}#C#{subject}#{context}")
}

/// The partition for the state that sweeps share. It holds no data of a tenant.
pub(super) const SWEEPS: &str = "S#sweep";
/// Sort key of the position that the check of all objects has reached.
pub(super) const OBJECTS: &str = "OBJECTS";

/// The partition of an idempotency key. The hash covers the subject.
pub(super) fn idempotency(tenant: &TenantId, key: &KeyHash) -> String {
    format!("T#{tenant}#I#{key}")
}

/// The tenant and the context in the partition key of a thread; `None` for another
/// kind.
pub(super) fn thread_of(partition: &str) -> Option<(TenantId, ContextId)> {
    let (tenant, local) = partition.strip_prefix("T#")?.split_once("#C#")?;
    let (_, context) = local.split_once('#')?;
    Some((
        TenantId::parse(tenant).ok()?,
        ContextId::parse(context).ok()?,
    ))
}

/// Shards of the index of expiring threads. An index partition takes 1,000 writes a second,
/// and a thread with state costs one or two an hour.
pub(super) const EXPIRY_SHARDS: u32 = 64;

/// The index partition of the expiring threads of all tenants, in one shard.
pub(super) fn expiry(shard: u32) -> String {
    format!("expiry#{shard}")
}

/// The shard of the thread in `partition`.
pub(super) fn expiry_of(partition: &str) -> String {
    expiry(hashed(partition) % EXPIRY_SHARDS)
}

/// The partition of the list index for an owner's threads.
pub(super) fn contexts(owner: &Owner) -> String {
    format!("T#{}#X#{}", owner.tenant, owner.subject.hash())
}

/// The sort key of a thread in its list; text order is list order.
pub(super) fn context_place(at: Timestamp, context: &ContextId) -> String {
    format!("{}#{context}", millis(at))
}

/// The position that [`context_place`] encoded as `text`.
pub(super) fn context_position(text: &str) -> Option<ThreadPosition> {
    let (at, context) = text.split_once('#')?;
    Some(ThreadPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        context: ContextId::parse(context).ok()?,
    })
}

/// A sort key after all threads of this time.
pub(super) fn end_of(at: Timestamp) -> String {
    format!("{}#~", millis(at))
}

/// The partition of the list index for an owner's tasks.
pub(super) fn list(owner: &Owner) -> String {
    format!("T#{}#L#{}", owner.tenant, owner.subject.hash())
}

/// Whether this is the partition of a context or of documents of a subject. A
/// task's partition may not show its subject: the `META` item in it does.
pub(super) fn is_of_subject(partition: &str, subject: &SubjectKey) -> bool {
    let (tenant, hash) = (subject.tenant(), subject.hash());
    let of_tenant = partition.strip_prefix("T#").and_then(|rest| {
        let rest = rest.strip_prefix(tenant.as_str())?;
        rest.strip_prefix('#')
    });
    of_tenant.is_some_and(|local| match local.split_once('#') {
        Some(("C" | "O", rest)) => rest.split('#').next() == Some(hash),
        _ => false,
    })
}

fn hashed(name: &str) -> u32 {
    let hash = Sha256::digest(name);
    let first = hash.iter().take(4);
    first.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte))
}

/// Prefix of the sort key of a task pointer in the partition of a context. Pointers sort
/// after [`STATE`].
pub(super) const TASKS: &str = "TASK#";
/// A sort key after every pointer.
pub(super) const AFTER_TASKS: &str = "TASK#~";

/// The sort key of a task's pointer in the partition of its context. Text order is the
/// order in which the tasks were created.
pub(super) fn pointer(task: &TaskRecord) -> String {
    let (made, id, incarnation) = (millis(task.created_at()), task.id(), &task.incarnation());
    format!("{TASKS}{made}#{id}#{incarnation}")
}

/// A sort key after every pointer to a task created by `at`.
pub(super) fn pointers_by(at: Timestamp) -> String {
    format!("{TASKS}{}#~", millis(at))
}

/// The task and the incarnation that [`pointer`] encoded as `sort`.
pub(super) fn pointed(sort: &str) -> Option<(TaskId, WriteId)> {
    let (_, task) = sort.strip_prefix(TASKS)?.split_once('#')?;
    let (task, incarnation) = task.split_once('#')?;
    Some((TaskId::parse(task).ok()?, WriteId::stored(incarnation)))
}

/// The sort key of a task in its list; text order is list order.
pub(super) fn place(at: Timestamp, task: &TaskId) -> String {
    format!("{}#{task}", millis(at))
}

/// A sort key before every task with this status time.
pub(super) fn before_all_at(at: Timestamp) -> String {
    format!("{}#", millis(at))
}

/// A sort key after every task.
pub(super) fn after_all() -> String {
    format!("{LAST}~")
}

/// The position that [`place`] encoded as `text`.
pub(super) fn position(text: &str) -> Option<ListPosition> {
    let (at, task) = text.split_once('#')?;
    Some(ListPosition {
        at: Timestamp::from_millis(at.parse().ok()?),
        task: TaskId::parse(task).ok()?,
    })
}

fn millis(at: Timestamp) -> String {
    // 13 digits, so that text order is time order.
    format!("{:013}", at.as_millis().clamp(0, LAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::store::documents::{DocumentCollection, DocumentOwner};
    use a2a_lambda_model::task::{IdempotencyKey, Subject};
    use a2a_lambda_store::keys::{self, API_KEYS};

    fn owner(tenant: &str, subject: &str) -> Owner {
        Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        }
    }

    fn documents(collection: &DocumentCollection) -> String {
        keys::documents(collection).key().to_owned()
    }

    fn limits(tenant: &TenantId) -> String {
        keys::tiers(tenant).partition().to_owned()
    }

    fn collection(owner: DocumentOwner, name: &str) -> DocumentCollection {
        DocumentCollection::new(owner, name).unwrap()
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
                }
                assert!(seen.insert(list(&owner)));
                assert!(seen.insert(contexts(&owner)));
                let hash = IdempotencyKey::parse("x").unwrap().hash(&owner);
                assert!(seen.insert(idempotency(&owner.tenant, &hash)));
                let own = DocumentOwner::Subject(SubjectKey::of(&owner));
                assert!(seen.insert(documents(&collection(own, "C"))));
            }
            let tenant = TenantId::parse(tenant).unwrap();
            for name in ["C", "R", "limits"] {
                let shared = DocumentOwner::Tenant(tenant.clone());
                assert!(seen.insert(documents(&collection(shared, name))));
            }
        }
    }

    #[test]
    fn a_partition_of_a_subject_is_of_no_other_subject() {
        let [ann, bob, far] = [("acme", "ann"), ("acme", "bob"), ("acme.2", "ann")]
            .map(|(tenant, subject)| owner(tenant, subject));
        let named = TaskId::parse("order:1").unwrap();
        let context = ContextId::parse("C").unwrap();
        let own = |of: &Owner| collection(DocumentOwner::Subject(SubjectKey::of(of)), "x");
        let partitions = |of: &Owner| [thread(of, &context), documents(&own(of))];
        let subject = SubjectKey::of(&ann);
        for partition in partitions(&ann) {
            assert!(is_of_subject(&partition, &subject), "{partition}");
        }
        let others = [&bob, &far].into_iter().flat_map(partitions);
        let hash = IdempotencyKey::parse("x").unwrap().hash(&ann);
        let shared = [
            task(&TaskKey::new(&ann, &TaskId::made_of(7))),
            task(&TaskKey::new(&ann, &named)),
            idempotency(&ann.tenant, &hash),
            limits(&ann.tenant),
            documents(&collection(DocumentOwner::Tenant(ann.tenant.clone()), "x")),
            API_KEYS.to_owned(),
            keys::counters(0).key().to_owned(),
        ];
        for partition in others.chain(shared) {
            assert!(!is_of_subject(&partition, &subject), "{partition}");
        }
    }

    #[test]
    fn only_limits_have_keys_that_match_the_right_of_tasks_get() {
        // The pattern `T#*#R#limits`, where `*` also matches `#`.
        let matches = |key: &str| key.starts_with("T#") && key.ends_with("#R#limits");
        let names = ["R", "limits", "R#limits", "x#R#limits", "~R#limits"];
        let ids = || names.iter().filter_map(|name| TaskId::parse(*name).ok());
        assert_eq!(ids().count(), 2, "an id can contain `#`");
        for tenant in ["R", "limits", "T"] {
            for subject in names {
                let owner = owner(tenant, subject);
                let contexts = names.iter().filter_map(|name| ContextId::parse(*name).ok());
                let mut keys: Vec<String> = contexts.map(|id| thread(&owner, &id)).collect();
                keys.extend(ids().map(|id| task(&TaskKey::new(&owner, &id))));
                let keyed = IdempotencyKey::parse(subject).unwrap().hash(&owner);
                keys.extend([idempotency(&owner.tenant, &keyed), list(&owner)]);
                keys.extend([super::contexts(&owner), SWEEPS.to_owned()]);
                assert!(keys.iter().all(|key| !matches(key)), "{keys:?}");
                assert!(matches(&limits(&owner.tenant)));
            }
        }
        for name in ["R", "R#limits", "a#b"] {
            assert!(TenantId::parse(format!("x#{name}")).is_err());
        }
    }

    #[test]
    fn a_partition_key_names_one_task_or_one_thread() {
        for tenant in ["a", "K", "T", "a.K"] {
            let owner = owner(tenant, "x#K#y~z");
            for id in ["x", "K", ".", &TaskId::made_of(7).to_string()] {
                let id = TaskId::parse(id).unwrap();
                let key = TaskKey::new(&owner, &id);
                assert_eq!(task_key_of(&task(&key)), Some(key.clone()));
                let found = task_of(&task(&key));
                assert_eq!(found, Some((owner.tenant.clone(), id)));
            }
            let context = ContextId::parse("K").unwrap();
            assert_eq!(task_of(&thread(&owner, &context)), None);
            let found = thread_of(&thread(&owner, &context));
            assert_eq!(found, Some((owner.tenant.clone(), context)));
            assert_eq!(thread_of(&list(&owner)), None);
            assert_eq!(task_of(&list(&owner)), None);
        }
        for text in ["", "T#", "T##K#x", "T#a#K#", "T#a#K#x#y", "X#a#K#x"] {
            assert_eq!(task_of(text), None, "{text}");
        }
    }

    #[test]
    fn the_sort_key_of_a_child_reads_back_and_is_within_the_bounds() {
        let numbers = [0, 1, 9, 10, 4_000_000, LARGEST];
        let moved = |(last_event, version)| ChildName::Moved {
            last_event,
            version,
        };
        let pairs = numbers.map(|event| numbers.map(|version| (event, version)));
        let names = pairs.into_iter().flatten().map(moved);
        let names: Vec<ChildName> = names.chain([ChildName::State]).collect();
        for name in &names {
            let sort = child(*name);
            assert_eq!(child_of(&sort), Some(*name), "{sort}");
            assert!(
                sort.as_str() >= FIRST_CHILD && sort.as_str() <= STATE,
                "{sort}"
            );
        }
        let sorts: Vec<String> = names.into_iter().map(child).collect();
        assert!(sorts.is_sorted(), "{sorts:?}");
        for other in [META, "PUSH#1", "EVT#x", "EVT#1", "DOC#", "EVT"] {
            assert_eq!(child_of(other), None, "{other}");
        }
        assert!(child(moved((u64::MAX, u64::MAX))).as_str() < META);
        assert!(events_from(9) > child(moved((8, LARGEST))));
        assert!(events_from(9) < child(moved((9, 0))));
    }

    #[test]
    fn sort_keys_have_the_order_of_their_positions() {
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
