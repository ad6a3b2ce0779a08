//! Lots of many processes over one store, in virtual time.

use super::*;
use crate::store::contract::{Fault, WatchedTable};
use crate::store::limits::Limits;
use crate::task::TenantId;
use futures::FutureExt as _;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

const START: Timestamp = Timestamp::from_millis(4_102_444_800_000);
const PROCESSES: usize = 20;

fn tenant() -> TenantId {
    TenantId::parse("acme").unwrap()
}

fn bucket() -> RateBucket {
    RateBucket::Tier(tenant(), "default".to_owned())
}

/// The processes of one agent, each with what it remembers, and their table.
struct Fleet {
    table: Arc<WatchedTable>,
    processes: Vec<(TokenCache, Limits)>,
    rate: CallRate,
}

impl Fleet {
    fn of(processes: usize, rate: CallRate) -> Self {
        let table = Arc::new(WatchedTable::default());
        let process = |_| (TokenCache::default(), Limits::new(table.clone()));
        Self {
            processes: (0..processes).map(process).collect(),
            table,
            rate,
        }
    }

    /// One call at `now`, in milliseconds after the start.
    fn call(&self, process: usize, now: u64) -> Result<(), A2aError> {
        let now = START.plus(Duration::from_millis(now));
        let (lots, limits) = &self.processes[process % self.processes.len()];
        let bucket = bucket();
        let charged = lots.charge(limits, &bucket, self.rate, now);
        charged.now_or_never().expect("the store does not wait")
    }

    fn asked(&self) -> u32 {
        self.table.writes()
    }
}

/// Calls at a time after the one before, in milliseconds, each in a process.
fn calls() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let apart = prop_oneof![
        Just(0_u64),
        0_u64..50,
        0_u64..3_000,
        Just(60_000),
        50_000_u64..70_000
    ];
    prop::collection::vec((apart, 0..PROCESSES), 1..1_500)
}

/// How calls choose their process.
#[derive(Debug, Clone, Copy)]
enum Spread {
    Random,
    /// Each call in the next process: every process holds a lot that it hardly uses.
    InTurn,
    /// Most calls in one process, now and then one in another.
    Skewed,
}

fn spread() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::Random),
        Just(Spread::InTurn),
        Just(Spread::Skewed)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_caller_at_80_percent_of_its_rate_is_never_refused(
        per_minute in 1_u32..2_500,
        calls in calls(),
        spread in spread(),
    ) {
        let fleet = Fleet::of(PROCESSES, CallRate::per_minute(per_minute));
        let most = usize::try_from(u64::from(per_minute) * 8 / 10).unwrap();
        let (mut now, mut minute) = (0, VecDeque::new());
        for (number, (apart, random)) in calls.into_iter().enumerate() {
            now += apart;
            while minute.front().is_some_and(|at| at + 60_000 <= now) {
                minute.pop_front();
            }
            let process = match spread {
                Spread::Random => random,
                Spread::InTurn => number,
                Spread::Skewed => if number % 7 == 0 { random } else { 0 },
            };
            if minute.len() < most {
                minute.push_back(now);
                prop_assert_eq!(fleet.call(process, now), Ok(()), "call {} at {} ms", number, now);
            }
        }
    }

    #[test]
    fn calls_never_exceed_burst_rate_and_lots(
        per_minute in 1_u32..2_500,
        burst in 1_u32..500,
        calls in calls(),
    ) {
        let rate = CallRate { per_minute, burst };
        let fleet = Fleet::of(PROCESSES, rate);
        let (mut now, mut admitted) = (0, Vec::new());
        for (apart, process) in calls.into_iter().take(400) {
            now += apart;
            if fleet.call(process, now).is_ok() {
                admitted.push(now);
            }
        }
        let every = u64::try_from(rate.rate().every.as_micros()).unwrap();
        let lots = u64::from(rate.lot()) * u64::try_from(PROCESSES).unwrap();
        for (first, from) in admitted.iter().enumerate() {
            for (last, to) in admitted.iter().enumerate().skip(first) {
                let most = u64::from(burst) + (to - from) * 1000 / every + lots;
                let found = u64::try_from(last - first + 1).unwrap();
                prop_assert!(found <= most, "{} calls in {} ms", found, to - from);
            }
        }
    }

    #[test]
    fn a_lone_caller_is_admitted_after_its_retry_after(
        per_minute in 1_u32..2_500,
        burst in 1_u32..300,
        apart in 0_u64..500,
    ) {
        let fleet = Fleet::of(1, CallRate { per_minute, burst });
        let mut now = 0;
        for _ in 0..5_000 {
            now += apart;
            if let Err(refused) = fleet.call(0, now) {
                let A2aError::RateLimited { retry_after } = refused else {
                    panic!("{refused}");
                };
                prop_assert_eq!(fleet.call(0, now + retry_after * 1000), Ok(()));
                return Ok(());
            }
        }
    }
}

#[test]
fn a_flood_of_refused_calls_asks_the_store_once() {
    let fleet = Fleet::of(1, CallRate::per_minute(2));
    assert_eq!(fleet.call(0, 0), Ok(()));
    assert_eq!(fleet.call(0, 0), Ok(()));
    let before = fleet.asked();
    for now in 0..29_999 {
        let retry_after = (30_000_u64 - now).div_ceil(1000);
        let refused = Err(A2aError::RateLimited { retry_after });
        assert_eq!(fleet.call(0, now), refused, "at {now} ms");
    }
    assert_eq!(fleet.asked(), before + 1);
    assert_eq!(fleet.call(0, 30_000), Ok(()));
}

#[test]
fn a_lot_is_one_write_and_lapses_after_a_minute() {
    let fleet = Fleet::of(1, CallRate::per_minute(1_000));
    for now in 0..10 {
        assert_eq!(fleet.call(0, now), Ok(()));
    }
    assert_eq!(fleet.asked(), 1);
    assert_eq!(fleet.call(0, 10), Ok(()));
    assert_eq!(fleet.asked(), 2);
    assert_eq!(fleet.call(0, 60_009), Ok(()));
    assert_eq!(fleet.asked(), 2);
    assert_eq!(fleet.call(0, 60_010), Ok(()));
    assert_eq!(fleet.asked(), 3);
}

#[test]
fn calls_are_admitted_while_the_store_does_not_answer() {
    let fleet = Fleet::of(1, CallRate::per_minute(1));
    fleet.table.set(Fault::Down);
    for now in 0..4_999 {
        assert_eq!(fleet.call(0, now), Ok(()));
    }
    // A store out of order is not asked for each call.
    assert_eq!(fleet.asked(), 1);
    fleet.table.set(Fault::None);
    assert_eq!(fleet.call(0, 5_000), Ok(()));
    let refused = fleet.call(0, 5_000);
    assert!(
        matches!(refused, Err(A2aError::RateLimited { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_process_remembers_a_bounded_number_of_lots() {
    let lots = TokenCache::default();
    let lot = CachedBucket {
        until: START,
        holds: BucketState::Tokens(1),
    };
    for number in 0..KEPT * 2 + 1 {
        let bucket = RateBucket::Tier(tenant(), number.to_string());
        lots.keep(&bucket, lot, Timestamp::from_millis(0));
    }
    assert!(lock(&lots.0).len() <= KEPT);
}
