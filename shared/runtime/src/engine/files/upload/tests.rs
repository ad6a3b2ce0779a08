use super::*;
use crate::engine::doubles::services;
use crate::engine::{Engine, LimitPolicy, Policy, Services};
use crate::prelude::{Agent, AgentResult, skill};
use crate::store::contract::{Fault, WatchedTable};
use crate::store::limits::Limits;
use crate::store::memory::MemoryStore;
use crate::task::{Owner, Subject, TenantId};
use a2a_lambda_rows::each_row;
use std::sync::Arc;

const SHA: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

fn reference() -> UploadReference {
    UploadReference {
        id: ulid(Timestamp::from_millis(1_700_000_000_123), u128::MAX),
        size: 3,
        sha256: SHA.to_owned(),
    }
}

#[test]
fn a_reference_reads_back_with_its_time() {
    let made = reference();
    let url = made.url();
    assert_eq!(UploadReference::of(&url), Some(Ok(made.clone())));
    assert_eq!(
        time_of(&made.id),
        Some(Timestamp::from_millis(1_700_000_000_123))
    );
    assert_eq!(UploadReference::of("https://example.com/a"), None);
}

#[test]
fn a_reference_expires_after_a_day() {
    let made = Timestamp::from_millis(1_700_000_000_123);
    let reference = reference();
    let day = 24 * 3600 * 1000;
    let rows = [(0, false), (day - 1, false), (day, true), (2 * day, true)];
    each_row(rows, |(after, over)| {
        let now = made.plus(Duration::from_millis(after));
        assert_eq!(reference.is_over(now), over, "after {after} ms");
    });
}

#[test]
fn a_malformed_reference_is_refused() {
    let good = reference().url();
    let id = reference().id;
    let bad = [
        SCHEME.to_owned(),
        good.replace(&id, "../../../v1/x"),
        good.replace(&id, &id.to_lowercase()),
        good.replace(&id, &format!("Z{}", id.get(1..).unwrap())),
        good.replace(&id, id.get(1..).unwrap()),
        good.replace(":3:", ":-3:"),
        good.replace(":3:", ":+3:"),
        good.replace(":3:", "::"),
        good.replace(":3:", &format!(":{}:", u128::MAX)),
        good.to_uppercase()
            .replace("URN:A2A-LAMBDA:UPLOAD:", SCHEME),
        format!("{good}0"),
        format!("{good}:x"),
        format!("{good}\0"),
    ];
    each_row(bad, |url| {
        assert!(matches!(UploadReference::of(&url), Some(Err(_))), "{url}");
    });
}

#[test]
fn later_ids_sort_later_and_use_only_ulid_digits() {
    let mut last = String::new();
    for n in 0..1_000_u64 {
        let now = Timestamp::from_millis(1_700_000_000_000 + i64::try_from(n).unwrap());
        let id = ulid(now, u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 64);
        assert!(id > last && id.len() == 26, "{id} after {last}");
        assert!(id.bytes().all(|b| DIGITS.contains(&b)), "{id}");
        last = id;
    }
}

/// Says it.
#[skill(id = "say", tags = ["test"], input_modes = ["text/plain"])]
async fn say(text: String) -> AgentResult<String> {
    Ok(text)
}

/// An upload of this many bytes by a tenant; returns why it is refused. The memory store
/// has no upload URLs, so each order that is counted ends with that.
async fn ordered(engine: &Engine, tenant: &str, size: u64) -> A2aError {
    let owner = Owner {
        tenant: TenantId::parse(tenant).unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    let order = UploadOrder {
        size,
        sha256: SHA.to_owned(),
        filename: None,
        media_type: None,
    };
    let caller = Caller::behind(&owner, None);
    let granted = engine.files.create_upload(&caller, order).await;
    granted.unwrap_err().a2a_error
}

#[tokio::test(start_paused = true)]
async fn uploads_above_the_day_of_a_tenant_are_refused_until_midnight() {
    let store = Arc::new(MemoryStore::new());
    let policy = Policy {
        limits: LimitPolicy {
            stored_bytes_per_day: Some(100),
            ..LimitPolicy::default()
        },
        ..Policy::default()
    };
    let agent = Agent::builder("test").skill(say).build().unwrap();
    let table = Arc::new(WatchedTable::default());
    let services = Services {
        limits: Some(Limits::new(table.clone())),
        ..services(&store)
    };
    let engine = Engine::new(Arc::new(agent), services, policy);
    let counted = |refused| matches!(refused, A2aError::UnsupportedOperation { .. });
    assert!(counted(ordered(&engine, "acme", 60).await));
    // The clock shows 22:13:20 UTC.
    let retry_after = 6400;
    let refused = ordered(&engine, "acme", 41).await;
    assert_eq!(refused, A2aError::RateLimited { retry_after });
    assert!(
        counted(ordered(&engine, "acme", 40).await),
        "a smaller one fits"
    );
    assert!(
        counted(ordered(&engine, "other", 100).await),
        "tenants are apart"
    );
    tokio::time::sleep(Duration::from_secs(retry_after)).await;
    assert!(counted(ordered(&engine, "acme", 100).await), "the next day");
    table.set(Fault::Down);
    assert!(
        counted(ordered(&engine, "acme", 100).await),
        "no count, no refusal"
    );
}
