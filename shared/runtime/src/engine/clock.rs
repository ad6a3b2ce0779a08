//! Time and ids: the only doors through which either enters.

use crate::task::Timestamp;
use futures::future::BoxFuture;

/// Time. A simulation replaces it.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Returns at `at`, or at once if that is past.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;
}

/// Fresh numbers for ids. A simulation replaces it.
pub trait Ids: Send + Sync {
    /// A number nobody has used.
    fn next(&self) -> u128;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one clock behind the trait"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.map_or(0, |d| d.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// Random ids (UUID version 4: 122 random bits).
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one source of ids behind the trait"
    )]
    fn next(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}
