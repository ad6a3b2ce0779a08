//! Limits: tokens, slots and totals.

use super::{Broken, Case, SampleData};
use crate::limits::{
    DayUse, Limits, Rate, RateBucket, Reservation, Slot, SlotLease, SlotPool, Tokens, Total,
};
use a2a_lambda_model::task::{SkillId, Timestamp, TokenUse};
use futures::future::join_all;
use std::time::Duration;

/// 10 tokens at once, then one in each second.
const RATE: Rate = Rate {
    every: Duration::from_secs(1),
    burst: 10,
};

trait Names {
    fn tier(&self, name: &str) -> RateBucket;
    fn streams(&self) -> SlotPool;
    fn lease(&self, cap: u32, from: i64, to: i64) -> SlotLease;
    fn shared(&self, part: u32) -> SlotPool;
}

impl Names for SampleData {
    fn tier(&self, name: &str) -> RateBucket {
        RateBucket::Tier(self.owner.tenant.clone(), name.to_owned())
    }

    fn streams(&self) -> SlotPool {
        SlotPool::Streams(self.owner.tenant.clone())
    }

    /// A lease from `from` to `to`, in milliseconds after the time of the case.
    fn lease(&self, cap: u32, from: i64, to: i64) -> SlotLease {
        SlotLease {
            cap,
            now: self.at(from),
            until: self.at(to),
        }
    }

    /// The shared pools of this case. No other case or run uses the name.
    fn shared(&self, part: u32) -> SlotPool {
        SlotPool::AllStreams(self.owner.tenant.as_str().to_owned(), part)
    }
}

/// How many tokens a bucket gives until it is empty, and when the next one is there.
async fn drained(
    limits: &Limits,
    bucket: &RateBucket,
    lot: u32,
    now: Timestamp,
) -> Result<(u32, Timestamp), Broken> {
    let mut sum = 0;
    loop {
        match limits.take_tokens(bucket, RATE, lot, now).await? {
            Tokens::Taken(tokens) => {
                assert!((1..=lot).contains(&tokens));
                sum += tokens;
                assert!(sum <= RATE.burst, "{sum} tokens");
            }
            Tokens::NoneUntil(at) => return Ok((sum, at)),
            Tokens::Paused(pause) => return Ok((sum, pause.until)),
        }
    }
}

/// A bucket gives its burst, then one token in each interval.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_bucket_gives_its_burst_and_then_its_rate(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let bucket = sample.tier("default");
    // A lot of 4 gets the 2 tokens that are left.
    let drawn = drained(&limits, &bucket, 4, sample.now).await?;
    assert_eq!(drawn, (10, sample.at(1000)));
    let early = limits.take_tokens(&bucket, RATE, 1, sample.at(999)).await?;
    assert_eq!(early, Tokens::NoneUntil(sample.at(1000)));
    let drawn = drained(&limits, &bucket, 1, sample.at(1000)).await?;
    assert_eq!(drawn, (1, sample.at(2000)));
    let drawn = drained(&limits, &bucket, 5, sample.at(5500)).await?;
    assert_eq!(drawn, (4, sample.at(6000)));
    // An idle bucket is full again, and not fuller.
    let drawn = drained(&limits, &bucket, 10, sample.at(3_600_000)).await?;
    assert_eq!(drawn, (10, sample.at(3_601_000)));
    Ok(())
}

/// Each tier, each skill, each tag and each tenant has a bucket of its own.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn buckets_do_not_share_tokens(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let tenant = &sample.owner.tenant;
    let long = "x".repeat(300);
    for bucket in [
        sample.tier("gold"),
        sample.tier("go.ld #1, free"),
        sample.tier("ttl"),
        sample.tier(&long),
        RateBucket::Tier(sample.stranger.tenant.clone(), "gold".to_owned()),
        RateBucket::Skill(tenant.clone(), SkillId::parse("gold")?),
        RateBucket::SkillTag(tenant.clone(), "gold".to_owned()),
    ] {
        let drawn = drained(&limits, &bucket, 3, sample.now).await?;
        assert_eq!(drawn.0, RATE.burst, "{bucket:?}");
    }
    Ok(())
}

/// Many processes together get the tokens of one bucket, not one more.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn concurrent_takers_share_a_bucket(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let bucket = sample.tier("default");
    let takes = (0..12).map(|_| limits.take_tokens(&bucket, RATE, 1, sample.now));
    let mut taken = 0;
    for tokens in join_all(takes).await {
        taken += u32::from(matches!(tokens?, Tokens::Taken(1)));
    }
    assert_eq!(taken, RATE.burst);
    Ok(())
}

/// A rate that was raised applies at once, also to a bucket that was emptied before.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_raised_rate_does_not_wait_for_the_old_one(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let bucket = sample.tier("default");
    let slow = Rate {
        every: Duration::from_secs(60),
        burst: 100,
    };
    let all = limits.take_tokens(&bucket, slow, 100, sample.now).await?;
    assert_eq!(all, Tokens::Taken(100));
    let none = limits.take_tokens(&bucket, RATE, 1, sample.now).await?;
    assert_eq!(none, Tokens::NoneUntil(sample.at(1000)));
    let one = limits
        .take_tokens(&bucket, RATE, 5, sample.at(1000))
        .await?;
    assert_eq!(one, Tokens::Taken(1));
    Ok(())
}

/// A pool leases its cap, counts no lease that has ended, and knows its holders.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_pool_leases_its_cap_and_forgets_ended_leases(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let turns = SlotPool::Turns(sample.owner.tenant.clone(), 0);
    for pool in [sample.streams(), sample.shared(0), turns] {
        let [a, b, c] = [(); 3].map(|()| sample.write_id());
        let lease = |from, to| sample.lease(2, from, to);
        assert!(!limits.renew_slot(&pool, &a, sample.at(90)).await?);
        for (holder, until) in [(&a, 90), (&b, 100), (&a, 110)] {
            let slot = limits.lease_slot(&pool, holder, lease(0, until)).await?;
            assert_eq!(slot, Slot::Leased);
        }
        let slot = limits.lease_slot(&pool, &c, lease(99, 200)).await?;
        assert_eq!(slot, Slot::NoneUntil(sample.at(100)));
        assert_eq!(limits.live_slots(&pool, sample.at(99)).await?, 2);
        assert_eq!(limits.live_slots(&pool, sample.at(100)).await?, 1);
        assert!(limits.renew_slot(&pool, &a, sample.at(300)).await?);
        // The lease of `b` has ended, so `c` gets its slot.
        let slot = limits.lease_slot(&pool, &c, lease(100, 200)).await?;
        assert_eq!(slot, Slot::Leased);
        assert!(!limits.renew_slot(&pool, &b, sample.at(300)).await?);
        let slot = limits.lease_slot(&pool, &b, lease(100, 200)).await?;
        assert_eq!(slot, Slot::NoneUntil(sample.at(200)));
        for _ in 0..2 {
            limits.free_slot(&pool, &a).await?;
        }
        let slot = limits.lease_slot(&pool, &b, lease(100, 200)).await?;
        assert_eq!(slot, Slot::Leased);
    }
    let (other, holder) = (sample.shared(1), sample.write_id());
    let slot = limits.lease_slot(&other, &holder, sample.lease(1, 0, 9));
    assert_eq!(slot.await?, Slot::Leased);
    Ok(())
}

/// Many processes together lease the cap of a pool, not one more, also where all leases
/// have ended.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn concurrent_streams_never_exceed_the_cap(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let pool = sample.streams();
    for (from, to) in [(0, 100), (100, 200)] {
        let lease = sample.lease(3, from, to);
        let holders: Vec<_> = (0..8).map(|_| sample.write_id()).collect();
        let leases = holders.iter().map(|id| limits.lease_slot(&pool, id, lease));
        let mut leased = 0;
        for slot in join_all(leases).await {
            leased += u32::from(slot? == Slot::Leased);
        }
        assert_eq!(leased, 3);
    }
    Ok(())
}

/// A total grows up to its limit and does not change beyond it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_total_never_exceeds_its_limit(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let total = |day| Total::StoredBytes(sample.owner.tenant.clone(), day);
    let clean_at = sample.at(86_400_000);
    for (day, amount, added) in [
        (1, 60, true),
        (1, 41, false),
        (1, 40, true),
        (1, 1, false),
        (2, 101, false),
        (2, 100, true),
    ] {
        let done = limits.add(&total(day), amount, 100, clean_at).await?;
        assert_eq!(done, added, "{amount} on day {day}");
    }
    Ok(())
}

trait Calls {
    fn call(&self, tokens: u64) -> Reservation;
}

impl Calls for SampleData {
    fn call(&self, tokens: u64) -> Reservation {
        Reservation {
            tenant: self.owner.tenant.clone(),
            day: 20_000,
            id: self.write_id(),
            tokens,
        }
    }
}

/// Calls reserve up to the limit of a day, and their ends replace that by what they used. A call
/// that has died stays counted, and gives its place to another one.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_day_counts_each_call_with_what_it_used(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let reserve = async |call: &Reservation, now| {
        let rest = limits.reserve_tokens(call, 500_000, sample.at(now)).await;
        rest.map(|rest| rest.map(|rest| (rest.rest, rest.is_first_above)))
    };
    let calls = [300_000, 150_000, 50_000, 20_000].map(|tokens| sample.call(tokens));
    let [first, second, third, dead] = &calls;
    assert_eq!(reserve(&sample.call(500_001), 0).await?, None);
    assert_eq!(reserve(first, 0).await?, Some((None, false)));
    // A reply was lost.
    assert_eq!(reserve(first, 0).await?, Some((None, false)));
    assert_eq!(reserve(second, 0).await?, Some((Some(50_000), true)));
    assert_eq!(reserve(third, 0).await?, Some((Some(0), false)));
    assert_eq!(reserve(&sample.call(1), 0).await?, None);
    let used = TokenUse {
        calls: 1,
        input: 9,
        output: 3,
        cached: 2,
    };
    for call in [first, first, second] {
        limits.settle_tokens(call, "m", used).await?;
    }
    limits
        .settle_tokens(third, "m", TokenUse::default())
        .await?;
    assert_eq!(reserve(dead, 0).await?, Some((None, false)));
    let tenant = Some(&sample.owner.tenant);
    let day = limits.day_uses(tenant, 20_000..=20_001).await?;
    let mut both = used;
    both.add(used);
    let expected = DayUse {
        tenant: sample.owner.tenant.clone(),
        day: 20_000,
        tokens: 2 * 12 + 20_000,
        models: [("m".to_owned(), both)].into(),
    };
    assert_eq!(day, std::slice::from_ref(&expected));
    let all = limits.day_uses(None, 20_000..=20_000).await?;
    assert!(all.contains(&expected));
    // Another call has to look at the item after 20 minutes, and removes the dead one.
    let later = 20 * 60_000;
    assert!(reserve(&sample.call(470_000), later).await?.is_some());
    limits.settle_tokens(dead, "m", TokenUse::default()).await?;
    let day = limits.day_uses(tenant, 20_000..=20_000).await?;
    assert_eq!(
        day.iter().map(|it| it.tokens).sum::<u64>(),
        24 + 20_000 + 470_000
    );
    Ok(())
}

/// Of the calls that together spend the last of a day, no more begin than it has tokens for.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn concurrent_calls_never_exceed_a_day(case: &Case) -> Result<(), Broken> {
    let (limits, sample) = (case.limits(), &case.sample);
    let calls: Vec<_> = (0..6).map(|_| sample.call(400)).collect();
    let rooms = calls
        .iter()
        .map(|call| limits.reserve_tokens(call, 1_000, sample.now));
    let mut begun = 0;
    for rest in join_all(rooms).await {
        begun += usize::from(rest?.is_some());
    }
    assert_eq!(begun, 2);
    Ok(())
}
