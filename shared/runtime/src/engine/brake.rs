//! Reads the brake for this process.
//!
//! A process reads it at most every 5 s, while a call or a turn runs in it. At an entry and at a
//! claim an older answer is awaited. Without any answer nothing begins; later the last answer
//! counts while the table does not give one.

use crate::clock::lock;
use crate::store::StoreError;
use crate::store::brake::{Brake, Brakes};
use crate::task::Timestamp;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long an answer counts as fresh.
pub(in crate::engine) const FRESH: Duration = Duration::from_secs(5);

/// What a process knows of the brake.
#[derive(Debug)]
pub(in crate::engine) struct BrakeView {
    brakes: Brakes,
    /// The last answer, and when it was asked for.
    last: Mutex<Option<(Timestamp, Arc<Brake>)>>,
}

impl BrakeView {
    pub(in crate::engine) fn new(brakes: Brakes) -> Self {
        let last = Mutex::default();
        Self { brakes, last }
    }

    /// The brake at `now`.
    ///
    /// # Errors
    /// [`StoreError`] when the table has never answered.
    pub(in crate::engine) async fn read(&self, now: Timestamp) -> Result<Arc<Brake>, StoreError> {
        let last = lock(&self.last).clone();
        if let Some((at, brake)) = &last
            && now.since(*at) < FRESH
        {
            return Ok(Arc::clone(brake));
        }
        let brake = match (self.brakes.read().await, last) {
            (Ok(brake), _) => Arc::new(brake),
            (Err(error), Some((_, brake))) => {
                tracing::warn!("the last answer about the brake counts: {error}");
                brake
            }
            (Err(error), None) => return Err(error),
        };
        *lock(&self.last) = Some((now, Arc::clone(&brake)));
        Ok(brake)
    }

    /// The brake as the process knows it.
    pub(in crate::engine) fn last(&self) -> Arc<Brake> {
        let last = lock(&self.last).clone();
        last.map_or_else(Arc::default, |(_, brake)| brake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::brake::BrakeTarget;
    use crate::store::contract::{Fault, WatchedTable};
    use crate::task::TenantId;
    use futures::FutureExt as _;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn without_any_answer_nothing_begins_and_later_the_last_one_counts() {
        let table = Arc::new(WatchedTable::with(Fault::Down));
        let brakes = Brakes::new(table.clone());
        let view = BrakeView::new(brakes.clone());
        let look = |seconds| {
            let brake = view.read(at(seconds)).now_or_never().unwrap();
            let tenant = TenantId::parse("acme").unwrap();
            brake.map(|brake| brake.refusal(&tenant, None).is_some())
        };
        assert!(look(0).is_err());
        table.set(Fault::None);
        let target = BrakeTarget::Everything;
        assert!(!look(0).unwrap());
        let set = brakes.change(&target, true, at(0)).now_or_never();
        set.unwrap().unwrap();
        assert_eq!((look(4).unwrap(), look(5).unwrap()), (false, true));
        table.set(Fault::Down);
        assert_eq!((look(60).unwrap(), look(3600).unwrap()), (true, true));
    }
}
