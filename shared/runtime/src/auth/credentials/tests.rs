use super::Credentials;
use crate::auth::{ApiKey, AuthError, FirstKey, FirstSecret};
use crate::store::StoreError;
use crate::store::api_keys::{ApiKeyRecord, ApiKeys, KeyCheck};
use crate::store::contract::WatchedTable;
use crate::store::keys;
use crate::task::{Owner, Subject, TenantId, Timestamp};
use crate::testing::TestClock;
use a2a_lambda_rows::each_row_async;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn owner(tenant: &str, subject: &str) -> Owner {
    Owner {
        tenant: TenantId::parse(tenant).unwrap(),
        subject: Subject::parse(subject).unwrap(),
    }
}

/// The secret of the check.
const CHECK: &str = "the secret of the check";

fn check() -> KeyCheck {
    KeyCheck {
        secret: CHECK.to_owned(),
    }
}

async fn issue(store: &ApiKeys, tenant: &str, expires_at: Option<Timestamp>) -> ApiKey {
    let key = ApiKey::random(CHECK).unwrap();
    let record = ApiKeyRecord {
        id: key.id().clone(),
        hash: key.hash(),
        owner: owner(tenant, "ann"),
        tier: None,
        scopes: ["read".to_owned()].into(),
        created_at: Timestamp::default(),
        expires_at,
        note: None,
    };
    keep(store, &record, CHECK).await;
    key
}

/// Stores a key, and the check with this secret.
pub(crate) async fn keep(store: &ApiKeys, record: &ApiKeyRecord, secret: &str) {
    let secret = secret.to_owned();
    store.create_check(&KeyCheck { secret }).await.unwrap();
    assert!(store.create_api_key(record).await.unwrap());
}

async fn tenant(credentials: &Credentials, header: &str) -> Result<String, AuthError> {
    let admitted = credentials.admit(Some(header)).await?;
    Ok(admitted.caller.owner.tenant.as_str().to_owned())
}

async fn is_refused(credentials: &Credentials, header: &str) {
    let refused = credentials.admit(Some(header)).await.unwrap_err();
    assert!(matches!(refused, AuthError::Refused(_)), "{refused}");
}

/// A store, credentials over it, and their clock.
fn agent() -> (ApiKeys, Credentials, Arc<TestClock>) {
    let table = Arc::new(WatchedTable::default());
    let clock = Arc::new(TestClock::without_timers(Timestamp::default()));
    let credentials = Credentials::new(table.clone(), clock.clone());
    (ApiKeys::new(table), credentials, clock)
}

#[tokio::test]
async fn a_key_names_its_tenant_with_or_without_bearer() {
    let (store, credentials, _) = agent();
    let key = issue(&store, "acme", None).await;
    let rows = ["", "Bearer ", "bearer ", "BEARER   ", " "];
    each_row_async(rows, async |scheme| {
        let header = format!("{scheme}{}", key.reveal());
        assert_eq!(
            tenant(&credentials, &header).await.unwrap(),
            "acme",
            "{header}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_not_exactly_an_issued_one_is_refused() {
    let (store, credentials, _) = agent();
    let (key, other) = (
        issue(&store, "acme", None).await,
        issue(&store, "beta", None).await,
    );
    let (_, secret) = other.reveal().rsplit_once('_').unwrap();
    let crossed = format!("a2a_{}_{secret}", key.id());
    let unknown = ApiKey::random("").unwrap();
    let upper = key.reveal().replacen("a2a_", "A2A_", 1);
    let rows = [
        crossed.as_str(),
        unknown.reveal(),
        &upper,
        &format!("Basic {}", key.reveal()),
        &format!("{} {}", key.reveal(), key.reveal()),
        &format!("{},{}", key.reveal(), key.reveal()),
        key.reveal().get(..key.reveal().len() - 1).unwrap(),
        &format!("Bearer Bearer {}", key.reveal()),
        "a2a_",
        "Bearer",
        "",
        "dev:acme:ann",
    ];
    each_row_async(rows, async |bad| {
        let refused = tenant(&credentials, bad).await;
        assert!(matches!(refused, Err(AuthError::Refused(_))), "{bad}");
    })
    .await;
    assert!(matches!(
        credentials.admit(None).await,
        Err(AuthError::Refused(_))
    ));
}

#[tokio::test]
async fn a_key_ends_at_its_time_though_its_item_is_stored() {
    let (store, credentials, clock) = agent();
    let end = Timestamp::from_millis(1_000);
    let key = issue(&store, "acme", Some(end)).await;
    clock.set(Timestamp::from_millis(999));
    let admitted = credentials.admit(Some(key.reveal())).await.unwrap();
    assert_eq!(admitted.ends, Some(end));
    clock.set(Timestamp::from_millis(1_000));
    is_refused(&credentials, key.reveal()).await;
}

#[tokio::test]
async fn a_withdrawn_key_is_refused_at_once() {
    let (store, credentials, _) = agent();
    let key = issue(&store, "acme", None).await;
    assert!(tenant(&credentials, key.reveal()).await.is_ok());
    assert!(store.withdraw_api_key(key.id()).await.unwrap());
    is_refused(&credentials, key.reveal()).await;
    assert!(!store.withdraw_api_key(key.id()).await.unwrap());
}

/// How many keys, and how many checks, are read for 1,000 made-up keys in 20 s.
async fn reads(table: &Arc<WatchedTable>) -> (usize, usize) {
    let clock = Arc::new(TestClock::without_timers(Timestamp::default()));
    let credentials = Credentials::new(table.clone(), clock.clone());
    for _ in 0..1_000 {
        clock.advance(Duration::from_millis(20));
        let made_up = ApiKey::random("").unwrap();
        let refused = credentials.admit(Some(made_up.reveal())).await;
        assert!(matches!(refused, Err(AuthError::Refused(_))));
    }
    let is_check = |key: &keys::Key| *key == keys::key_check();
    let (checks, keys): (Vec<_>, Vec<_>) = table.take_reads().into_iter().partition(is_check);
    (keys.len(), checks.len())
}

#[tokio::test]
async fn made_up_keys_do_not_use_up_the_reads_of_tenants() {
    let table = Arc::new(WatchedTable::default());
    assert_eq!(reads(&table).await, (0, 4), "a table without a check");
    let keys = ApiKeys::new(table.clone());
    keys.create_check(&check()).await.unwrap();
    assert_eq!(reads(&table).await, (0, 1));
}

#[tokio::test]
async fn the_first_key_of_a_table_is_accepted_after_five_seconds() {
    let (keys, credentials, clock) = agent();
    is_refused(&credentials, "a2a_x_y").await;
    let made_up = ApiKey::random("").unwrap();
    is_refused(&credentials, made_up.reveal()).await;
    keys.create_check(&check()).await.unwrap();
    let key = issue(&keys, "acme", None).await;
    is_refused(&credentials, key.reveal()).await;
    clock.set(Timestamp::from_millis(5_000));
    assert_eq!(tenant(&credentials, key.reveal()).await.unwrap(), "acme");
}

/// A secret that counts how often it is read.
#[derive(Default)]
struct CountedSecret(AtomicU32);

const SECRET: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

#[async_trait]
impl FirstSecret for CountedSecret {
    async fn secret(&self) -> Result<String, StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(format!("{SECRET}\n"))
    }
}

#[tokio::test]
async fn the_first_key_is_read_once_in_five_minutes() {
    let (_, credentials, clock) = agent();
    let secret = Arc::new(CountedSecret::default());
    let first = FirstKey::new(owner("main", "owner"), secret.clone());
    let key = format!("a2a_first_{SECRET}");
    is_refused(&credentials, &key).await;
    let credentials = credentials.with_first_key(first);
    let wrong = key.replace("01", "10");
    for _ in 0..10 {
        is_refused(&credentials, &wrong).await;
        let admitted = credentials.admit(Some(&key)).await.unwrap();
        assert_eq!(admitted.caller.owner, owner("main", "owner"));
        assert!(admitted.caller.scopes.contains("ops"));
    }
    assert_eq!(secret.0.load(Ordering::SeqCst), 1);
    clock.set(Timestamp::from_millis(300_000));
    assert!(tenant(&credentials, &key).await.is_ok());
    assert_eq!(secret.0.load(Ordering::SeqCst), 2);
}
