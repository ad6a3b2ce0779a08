//! Reads what the callers of one tenant may use.

use super::read::Read;
use super::{SettingsError, deployed};
use crate::engine::{CallRate, LimitPolicy, RatePolicy, SharedStreams};
use std::collections::BTreeMap;

/// The text of [`SettingsError::Bad`] for rates by name.
const RATES: &str = "names with calls a minute, as `gold=1000,free=20`";

/// The limits of a deployed function that its settings do not change: calls a minute, streams,
/// and by day stored bytes (10 GiB) and tokens of models.
const DEPLOYED: (u32, u32, u64, u64) = (100, 20, 10_737_418_240, 20_000_000);
/// The tokens of models that a task may use, also on the machine of a developer.
const TASK_TOKENS: u64 = 1_000_000;

/// The part of the workers that the turns of one tenant may use, in percent.
const WORKER_SHARE: u32 = 80;

impl Read<'_> {
    /// The limits of a tenant.
    pub(super) fn limits(&self) -> Result<LimitPolicy, SettingsError> {
        let is_deployed = deployed(self.0);
        let off = (0, 0, 0, 0);
        let (calls, streams, bytes, tokens) = if is_deployed { DEPLOYED } else { off };
        let calls = self.optional("A2A_RATE_LIMIT", calls)?;
        let tiers = self.rates("A2A_RATE_TIERS")?;
        // Of a deployed function the calls of the first key.
        let first = || [("first".to_owned(), CallRate::per_minute(6_000))].into();
        let default = || is_deployed.then(first).unwrap_or_default();
        Ok(LimitPolicy {
            rates: RatePolicy {
                calls: calls.map(CallRate::per_minute),
                tiers: tiers.unwrap_or_else(default),
                skills: self.rates("A2A_RATE_SKILLS")?.unwrap_or_default(),
            },
            streams_per_tenant: self.optional("A2A_STREAMS_PER_TENANT", streams)?,
            shared_streams: self.shared_streams()?,
            turns_per_tenant: self.turns_per_tenant()?,
            stored_bytes_per_day: self.optional("A2A_STORED_PER_DAY", bytes)?,
            tokens_per_day: self.optional("A2A_TOKENS_PER_DAY", tokens)?,
            tokens_per_task: self.optional("A2A_TASK_TOKENS", TASK_TOKENS)?,
        })
    }

    /// The most turns of a tenant that workers run at once: its share, rounded up.
    fn turns_per_tenant(&self) -> Result<Option<u32>, SettingsError> {
        let workers: Option<u32> = self.optional("A2A_WORKERS", 0)?;
        let rule = "a whole number from 1 to 100";
        let share = self.parsed("A2A_WORKER_SHARE", rule, |text| {
            text.parse().ok().filter(|share| (1..=100).contains(share))
        })?;
        let share: u32 = share.unwrap_or(WORKER_SHARE);
        let turns = |workers: u32| workers.saturating_mul(share).div_ceil(100);
        Ok(workers.filter(|_| share < 100).map(turns))
    }

    /// The pool of streams of this function, from the concurrency of the pool: `account=10`.
    fn shared_streams(&self) -> Result<Option<SharedStreams>, SettingsError> {
        let rule = "a stream pool with its concurrency, as `account=10`; 0 is off";
        let pool = self.parsed("A2A_CONCURRENCY", rule, |text| {
            let (pool, calls) = text.split_once('=')?;
            Some((pool.to_owned(), calls.parse::<u32>().ok()?))
        })?;
        let pool = pool.filter(|(_, calls)| *calls > 0);
        Ok(pool.map(|(pool, calls)| SharedStreams {
            pool,
            // The other half stays free for calls that end soon.
            cap: (calls / 2).max(1),
        }))
    }

    /// Rates by name: `gold=1000,free=20`.
    fn rates(
        &self,
        name: &'static str,
    ) -> Result<Option<BTreeMap<String, CallRate>>, SettingsError> {
        self.parsed(name, RATES, |text| {
            let mut rates = BTreeMap::new();
            for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                let (of, rate) = rate(entry)?;
                let is_new = rates.insert(of.to_owned(), rate).is_none();
                is_new.then_some(())?;
            }
            Some(rates)
        })
    }
}

/// A name and its rate, from `gold=1000`.
fn rate(entry: &str) -> Option<(&str, CallRate)> {
    let (of, calls) = entry.split_once('=')?;
    let (of, calls) = (of.trim(), calls.trim().parse().ok()?);
    (!of.is_empty() && calls > 0).then_some((of, CallRate::per_minute(calls)))
}
