use super::*;
use crate::task::{ContextId, Generation, Metadata, Subject, TaskId, TenantId, WriteId};
use a2a_lambda_rows::each_row;

fn record(tenant: &str, subject: &str, id: TaskId) -> TaskRecord {
    TaskRecord::create(
        id,
        Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        },
        ContextId::made_of(1),
        WriteId::made_of(7),
        Generation::V01,
        Metadata::new(),
        Timestamp::from_millis(0),
    )
}

/// `v1/<32 hex>/<32 hex, or task-<32 hex>>/<16 hex>-<epoch>-<hex>-<rest>`.
fn is_plain_key(key: &str) -> bool {
    let hex = |text: &str, digits: usize| {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        text.len() == digits && text.bytes().all(digit)
    };
    let parts: Vec<&str> = key.split('/').collect();
    let [root, tenant, task, name] = parts.as_slice() else {
        return false;
    };
    *root == "v1"
        && hex(tenant, 32)
        && hex(task.strip_prefix("task-").unwrap_or(task), 32)
        && name.bytes().all(|b| b.is_ascii_hexdigit() || b"-.f".contains(&b))
        && name.split('-').next().is_some_and(|of| hex(of, 16))
        // The local object store makes one file name, in base64, of a key and an upload
        // id.
        && key.len() <= 118
}

#[test]
fn object_keys_keep_their_form_for_any_client_made_task_id() {
    let now = Timestamp::from_millis(4_102_444_800_000);
    let bits = [
        "..", ".", "a", "_", ":", "-", "0", "Z", "%2e", "~", "/", "\0", "\u{202e}", "\r\n",
    ];
    let (mut seed, mut taken) = (0x0b1e_c75e_u64, 0);
    for round in 0..10_000 {
        // Every second name has only characters that a client may use.
        let bits = if round % 2 == 0 {
            &bits[..8]
        } else {
            &bits[..]
        };
        let mut name = String::new();
        for _ in 0..=(seed % 90) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            name.push_str(bits[usize::try_from(seed >> 33).unwrap() % bits.len()]);
        }
        let Ok(id) = TaskId::parse(name.clone()) else {
            continue;
        };
        taken += 1;
        let attempt = ObjectKeys::of(&record("..", &name, id), now);
        let key = attempt.key(&WriteId::made_of(u128::MAX), 64);
        assert!(is_plain_key(&key), "{name:?} gives {key}");
        let early = attempt.early_key(u128::MAX);
        assert!(early.len() <= 118, "{early}");
        assert!(ObjectName::of(&early).is_some(), "{early}");
    }
    assert!(taken > 4_000, "only {taken} names are valid ids");
}

#[test]
fn no_two_attempts_commits_or_places_share_a_key() {
    let (at, later) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
    let first = record("acme", "ann", TaskId::made_of(5));
    let (mut taken_over, mut another) = (first.clone(), first.clone());
    taken_over.fields().epoch += 1;
    another.fields().incarnation = WriteId::made_of(8);
    let mut keys = Vec::new();
    for record in [&first, &taken_over, &another] {
        for now in [at, later] {
            let attempt = ObjectKeys::of(record, now);
            let key = |(write, n)| attempt.key(&WriteId::made_of(write), n);
            keys.extend([(1, 1), (1, 2), (2, 1)].map(key));
            // The writes of two turns, which count on from their first ones.
            let writes = |first| {
                let next = |write: &WriteId| write.following();
                std::iter::successors(Some(WriteId::made_of(first)), next).skip(1)
            };
            for first in [1, 2] {
                keys.extend(writes(first).take(20).map(|write| attempt.key(&write, 1)));
            }
            keys.extend([1 << 96, 2 << 96].map(|number| attempt.early_key(number)));
        }
    }
    let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
}

#[test]
fn object_key_names_its_task_incarnation_and_time() {
    let now = Timestamp::from_millis(1_700_000_000_123);
    for id in [TaskId::made_of(5), TaskId::parse("order:1").unwrap()] {
        let record = record("acme", "ann", id);
        let attempt = ObjectKeys::of(&record, now);
        let below = below(&record.key());
        for key in [
            attempt.key(&WriteId::made_of(3), 2),
            attempt.early_key(9 << 96),
        ] {
            let name = ObjectName::of(&key).unwrap();
            assert_eq!((name.below, name.at), (below.as_str(), now));
            assert!(record.incarnation.as_str().ends_with(name.incarnation));
            assert!(attempt.is_ours(&key));
        }
    }
    let rows = [
        "",
        "v1",
        "v1/a/b/c",
        "v1/a/b/c-1-x-1.1",
        "v1/a/b/c-1-1",
        "v1/a/b/-1-1-1",
    ];
    each_row(rows, |other| {
        assert_eq!(ObjectName::of(other), None, "{other}");
    });
}

#[test]
fn key_without_a_write_id_is_still_read() {
    let key = "v1/a/b/0123456789abcdef-4-18bcfe5687b-12.1";
    let name = ObjectName::of(key).unwrap();
    assert_eq!(
        (name.below, name.incarnation),
        ("v1/a/b/", "0123456789abcdef")
    );
    assert_eq!(name.at, Timestamp::from_millis(1_700_000_000_123));
}

#[test]
fn upload_key_stays_below_the_prefix_of_its_owner() {
    let owner = |subject: &str| Owner {
        tenant: TenantId::parse("..").unwrap(),
        subject: Subject::parse(subject).unwrap(),
    };
    let key = upload(&owner("../../x"), "ID");
    let parts: Vec<&str> = key.split('/').collect();
    assert_eq!((parts.len(), parts[0], parts[3]), (4, "up", "ID"));
    assert_ne!(key, upload(&owner("y"), "ID"));
}
