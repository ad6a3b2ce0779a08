//! Decides when a host gets the next request of a tenant, whichever task or push config it is for.
//!
//! - At most 1,200 requests a minute, whatever the host answers.
//! - A host that refuses one is left alone: growing pauses, after which one delivery tries.
//! - A host to which a process cannot connect gets no request of any tenant from this process
//!   for a short time.

use super::pacing::{self, SKEW};
use super::{PushDeliveryError, PushDispatcher};
use crate::clock::lock;
use crate::engine::error::EngineError;
use crate::outbound::OutboundUrl;
use crate::store::limits::{BucketPause, Rate, RateBucket, Tokens};
use crate::task::{PushRecord, Timestamp};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// At most 1,200 requests in any minute: 400 at once, and the tokens of 65 s, since one may be used
/// up to [`GRANT`] after it was taken. Whoever gets none returns within 40 s, so that few lapse.
const RATE: Rate = Rate {
    every: Duration::from_micros(81_300),
    burst: 400,
};
/// The most tokens that a delivery takes at once.
const LOT: usize = 60;
/// How long a token can be used.
const GRANT: Duration = Duration::from_secs(5);
/// How long the delivery that tries a paused host has it for itself: the longest attempt.
const TRIAL: Duration = Duration::from_secs(10);
/// How long a process calls no host to which it could not connect. The wait of a delivery is up to
/// a third longer, so that not all come at once.
const UNCONNECTED: Duration = Duration::from_secs(45);
/// The most hosts that a process remembers.
const KEPT: usize = 1_000;

/// The hosts to which a process could not connect, and until when it calls none of them.
#[derive(Debug, Default)]
pub(super) struct UnconnectedHosts(Mutex<HashMap<String, Timestamp>>);

/// The right to call a host.
pub(super) struct HostGrant {
    /// How many requests.
    pub(super) requests: usize,
    /// Until when a further one may begin.
    pub(super) until: Timestamp,
    /// The host, unless the URL names none that may be called.
    host: Option<(RateBucket, String)>,
    /// What this request tries to end.
    trial: Option<BucketPause>,
}

impl PushDispatcher {
    /// Asks whether the host of a webhook may get its next `requests` requests; otherwise returns
    /// how long the push config waits. A long wait for a host that refuses is an attempt.
    pub(super) async fn ask_host(
        &self,
        push: &mut PushRecord,
        requests: usize,
    ) -> Result<Result<HostGrant, Duration>, EngineError> {
        let (now, random) = (self.to.clock.now(), self.to.ids.next());
        let grant = |requests, host, trial| {
            Ok(HostGrant {
                requests,
                until: now.plus(GRANT),
                host,
                trial,
            })
        };
        let Ok(url) = OutboundUrl::parse(&push.registration.url, self.policy.reach) else {
            return Ok(grant(1, None, None));
        };
        if let Some(until) = self.hosts.until(url.authority(), now) {
            return Ok(Err(until.since(now) + pacing::part(UNCONNECTED, random)));
        }
        let bucket = RateBucket::Host(push.owner.tenant.clone(), url.host().to_owned());
        let lot = u32::try_from(requests.min(LOT)).unwrap_or(1);
        let pause = match self.limits.take_tokens(&bucket, RATE, lot, now).await? {
            Tokens::Taken(tokens) => {
                let host = Some((bucket, url.authority().to_owned()));
                return Ok(grant(usize::try_from(tokens).unwrap_or(1), host, None));
            }
            Tokens::NoneUntil(_) => return Ok(Err(pacing::turned_away(random))),
            Tokens::Paused(pause) => pause,
        };
        let trial = BucketPause {
            until: now.plus(TRIAL),
            number: pause.number,
        };
        if pause.until > now {
            let rest = pause.until.since(now);
            let wait = rest + pacing::part(rest, random);
            return Ok(Err(match rest > SKEW {
                true => wait.max(self.count_failure(push, &PushDeliveryError::Paused)),
                false => wait,
            }));
        }
        if !self
            .limits
            .replace_pause(&bucket, Some(pause), Some(trial))
            .await?
        {
            // Another delivery tries.
            return Ok(Err(TRIAL + pacing::part(TRIAL, random)));
        }
        let host = Some((bucket, url.authority().to_owned()));
        Ok(grant(1, host, Some(trial)))
    }

    /// Notes that the host has accepted a request.
    pub(super) async fn note_accepted(&self, grant: &mut HostGrant) -> Result<(), EngineError> {
        let (Some((bucket, _)), Some(trial)) = (&grant.host, grant.trial.take()) else {
            return Ok(());
        };
        self.limits.replace_pause(bucket, Some(trial), None).await?;
        Ok(())
    }

    /// Notes a failed request; returns how long the host is left alone. Of requests that fail at
    /// the same time one counts.
    pub(super) async fn note_refusal(
        &self,
        grant: &HostGrant,
        why: &PushDeliveryError,
    ) -> Result<Duration, EngineError> {
        let Some((bucket, authority)) = grant.host.as_ref().filter(|_| why.is_of_host()) else {
            return Ok(Duration::ZERO);
        };
        let now = self.to.clock.now();
        if matches!(why, PushDeliveryError::Unconnected(_)) {
            self.hosts.note(authority, now);
        }
        let number = grant.trial.map_or(0, |it| it.number).saturating_add(1);
        let wait = pacing::back_off(number, self.to.ids.next());
        let pause = BucketPause {
            until: now.plus(wait),
            number,
        };
        self.limits
            .replace_pause(bucket, grant.trial, Some(pause))
            .await?;
        Ok(wait)
    }
}

impl UnconnectedHosts {
    fn until(&self, authority: &str, now: Timestamp) -> Option<Timestamp> {
        let until = lock(&self.0).get(authority).copied();
        until.filter(|until| *until > now)
    }

    fn note(&self, authority: &str, now: Timestamp) {
        let mut hosts = lock(&self.0);
        if hosts.len() >= KEPT {
            // A process that forgets one tries it once more.
            hosts.clear();
        }
        hosts.insert(authority.to_owned(), now.plus(UNCONNECTED));
    }
}
