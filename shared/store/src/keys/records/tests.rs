use super::*;
use crate::keys::{self, API_KEYS};
use a2a_lambda_model::store::documents::{DocumentCollection, DocumentOwner};
use a2a_lambda_model::task::{IdempotencyKey, Subject};
use a2a_lambda_rows::each_row;

fn task(key: &TaskKey) -> String {
    super::task(key).partition().to_owned()
}

fn thread(owner: &Owner, id: &ContextId) -> String {
    let key = super::thread(&ThreadKey::new(owner, id));
    key.partition().to_owned()
}

fn list(owner: &Owner) -> String {
    super::list(owner).key().to_owned()
}

fn contexts(owner: &Owner) -> String {
    super::contexts(owner).key().to_owned()
}

fn idempotency(tenant: &TenantId, key: &KeyHash) -> String {
    super::idempotency(tenant, key).partition().to_owned()
}

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
    each_row(["a", "a.C", "K", "C", "T"], |tenant| {
        each_row(["x", "K#x", "C", "#"], |subject| {
            let owner = owner(tenant, subject);
            each_row(["x", "K", "C", "META", ".."], |name| {
                let id = TaskId::parse(name).unwrap();
                assert!(seen.insert(task(&TaskKey::new(&owner, &id))));
                let id = ContextId::parse(name).unwrap();
                assert!(seen.insert(thread(&owner, &id)));
            });
            assert!(seen.insert(list(&owner)));
            assert!(seen.insert(contexts(&owner)));
            let hash = IdempotencyKey::parse("x").unwrap().hash(&owner);
            assert!(seen.insert(idempotency(&owner.tenant, &hash)));
            let own = DocumentOwner::Subject(SubjectKey::of(&owner));
            assert!(seen.insert(documents(&collection(own, "C"))));
        });
        let tenant = TenantId::parse(tenant).unwrap();
        each_row(["C", "R", "limits"], |name| {
            let shared = DocumentOwner::Tenant(tenant.clone());
            assert!(seen.insert(documents(&collection(shared, name))));
        });
    });
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
        let is_shared = partition.contains("#D#");
        assert_eq!(is_of_shared_documents(&partition), is_shared, "{partition}");
    }
}

#[test]
fn only_limits_have_keys_that_match_the_right_of_tasks_get() {
    // The pattern `T#*#R#limits`, where `*` also matches `#`.
    let matches = |key: &str| key.starts_with("T#") && key.ends_with("#R#limits");
    let names = ["R", "limits", "R#limits", "x#R#limits", "~R#limits"];
    let ids = || names.iter().filter_map(|name| TaskId::parse(*name).ok());
    assert_eq!(ids().count(), 2, "an id can contain `#`");
    each_row(["R", "limits", "T"], |tenant| {
        each_row(names, |subject| {
            let owner = owner(tenant, subject);
            let ids_of_contexts = names.iter().filter_map(|name| ContextId::parse(*name).ok());
            let mut keys: Vec<String> = ids_of_contexts.map(|id| thread(&owner, &id)).collect();
            keys.extend(ids().map(|id| task(&TaskKey::new(&owner, &id))));
            let keyed = IdempotencyKey::parse(subject).unwrap().hash(&owner);
            keys.extend([idempotency(&owner.tenant, &keyed), list(&owner)]);
            keys.extend([contexts(&owner), objects_place().partition().to_owned()]);
            assert!(keys.iter().all(|key| !matches(key)), "{keys:?}");
            assert!(matches(&limits(&owner.tenant)));
        });
    });
    each_row(["R", "R#limits", "a#b"], |name| {
        assert!(TenantId::parse(format!("x#{name}")).is_err());
    });
}

#[test]
fn a_partition_key_names_one_task_or_one_thread() {
    each_row(["a", "K", "T", "a.K"], |tenant| {
        let owner = owner(tenant, "x#K#y~z");
        each_row(["x", "K", ".", &TaskId::made_of(7).to_string()], |id| {
            let id = TaskId::parse(id).unwrap();
            let key = TaskKey::new(&owner, &id);
            assert_eq!(task_key_of(&task(&key)), Some(key.clone()));
            let found = task_of(&task(&key));
            assert_eq!(found, Some((owner.tenant.clone(), id)));
        });
        let context = ContextId::parse("K").unwrap();
        assert_eq!(task_of(&thread(&owner, &context)), None);
        let found = thread_of(&thread(&owner, &context));
        assert_eq!(found, Some((owner.tenant.clone(), context)));
        assert_eq!(thread_of(&list(&owner)), None);
        assert_eq!(task_of(&list(&owner)), None);
    });
    let rows = ["", "T#", "T##K#x", "T#a#K#", "T#a#K#x#y", "X#a#K#x"];
    each_row(rows, |text| {
        assert_eq!(task_of(text), None, "{text}");
    });
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
        let sort = child_sort(*name);
        assert_eq!(child_of(&sort), Some(*name), "{sort}");
        assert!(
            sort.as_str() >= FIRST_CHILD && sort.as_str() <= STATE,
            "{sort}"
        );
    }
    let sorts: Vec<String> = names.into_iter().map(child_sort).collect();
    assert!(sorts.is_sorted(), "{sorts:?}");
    each_row([META, "PUSH#1", "EVT#x", "EVT#1", "DOC#", "EVT"], |other| {
        assert_eq!(child_of(other), None, "{other}");
    });
    assert!(child_sort(moved((u64::MAX, u64::MAX))).as_str() < META);
    assert!(events_from(9) > child_sort(moved((8, LARGEST))));
    assert!(events_from(9) < child_sort(moved((9, 0))));
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
        let text = list_sort(one.at, &one.task);
        assert_eq!(ListPosition::parse(&text).ok().as_ref(), Some(one));
        assert!(text > list_sort(one.at, "") && text < after_all());
        for other in &positions {
            assert_eq!(text.cmp(&list_sort(other.at, &other.task)), one.cmp(other));
        }
    }
}
