//! Reads what the callers of one tenant may use.

use super::read::Read;
use super::{SettingsError, deployed};
use crate::engine::{CallRate, LimitPolicy, RatePolicy, SharedStreams};
use std::collections::BTreeMap;

/// The text of [`SettingsError::Bad`] for rates by name.
const RATES: &str = "names with calls a minute, as `gold=1000,free=20`";

/// The limits of a deployed function that its settings do not change: calls a minute, those of
/// the first key, streams, and bytes of uploads (10 GiB).
const DEPLOYED: [&str; 4] = ["100", "first=6000", "20", "10737418240"];
/// Those of other programs: none.
const ELSEWHERE: [&str; 4] = ["0", "", "0", "0"];

impl Read<'_> {
    /// The limits of a tenant.
    pub(super) fn limits(&self) -> Result<LimitPolicy, SettingsError> {
        let is_deployed = deployed(self.0);
        let [calls, tiers, streams, uploads] = if is_deployed { DEPLOYED } else { ELSEWHERE };
        let burst = self.optional("A2A_RATE_BURST", "0")?;
        let calls = self.optional("A2A_RATE_LIMIT", calls)?;
        let calls = calls.map(|per_minute| CallRate {
            per_minute,
            burst: burst.unwrap_or(per_minute),
        });
        let pool = self.text("A2A_STREAM_POOL", "streams");
        let concurrency: Option<u32> = self.optional("A2A_CONCURRENCY", "0")?;
        Ok(LimitPolicy {
            rates: RatePolicy {
                calls,
                tiers: self.rates("A2A_RATE_TIERS", tiers)?,
                skills: self.rates("A2A_RATE_SKILLS", "")?,
            },
            streams_per_tenant: self.optional("A2A_STREAMS_PER_TENANT", streams)?,
            // The other half stays free for calls that end soon.
            shared_streams: concurrency.map(|calls| SharedStreams {
                pool,
                cap: (calls / 2).max(1),
            }),
            upload_bytes_per_day: self.optional("A2A_UPLOAD_PER_DAY", uploads)?,
        })
    }

    /// Rates by name: `gold=1000,free=20`.
    fn rates(
        &self,
        name: &'static str,
        default: &str,
    ) -> Result<BTreeMap<String, CallRate>, SettingsError> {
        let value = self.text(name, default);
        let entries = value.split(',').map(str::trim).filter(|it| !it.is_empty());
        let mut rates = BTreeMap::new();
        for entry in entries {
            match rate(entry) {
                Some((of, rate)) if rates.insert(of.to_owned(), rate).is_none() => {}
                _ => {
                    let allowed = RATES;
                    return Err(SettingsError::Bad {
                        name,
                        value,
                        allowed,
                    });
                }
            }
        }
        Ok(rates)
    }
}

/// A name and its rate, from `gold=1000`.
fn rate(entry: &str) -> Option<(&str, CallRate)> {
    let (of, calls) = entry.split_once('=')?;
    let (of, calls) = (of.trim(), calls.trim().parse().ok()?);
    (!of.is_empty() && calls > 0).then_some((of, CallRate::per_minute(calls)))
}
