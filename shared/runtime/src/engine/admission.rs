//! Decides by the brake and by the rates whether work may begin: a call, a turn, a step.

use super::brake::FRESH;
use super::error::EngineError;
use super::limit_policy::CallRate;
use super::reader::Reader;
use crate::auth::Caller;
use crate::store::brake::Brake;
use crate::store::limits::RateBucket;
use crate::task::{A2aError, SkillId, TaskRecord, TenantId, Timestamp};
use a2a_lambda_skill::SkillMetadata;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl Reader {
    /// The brake, asked for at most 5 s ago.
    ///
    /// # Errors
    /// An outage, when the table has never answered.
    pub(in crate::engine) async fn brake(&self) -> Result<Arc<Brake>, EngineError> {
        match &self.brake {
            Some(view) => Ok(view.read(self.clock.now()).await?),
            None => Ok(Arc::default()),
        }
    }

    /// The brake as the process knows it.
    pub(in crate::engine) fn known_brake(&self) -> Arc<Brake> {
        let view = self.brake.as_ref();
        view.map_or_else(Arc::default, |view| view.last())
    }

    /// Why the turn of a task must not run now.
    pub(in crate::engine) fn refusal(&self, record: &TaskRecord) -> Option<A2aError> {
        let (tenant, skill) = work_of(record);
        self.known_brake().refusal(tenant, skill)
    }

    /// How long a task has made no progress while nothing braked it.
    pub(in crate::engine) fn idle_time(&self, record: &TaskRecord) -> Duration {
        let (since, now) = (record.progress_at(), self.clock.now());
        let time = self.known_brake().time(work_of(record), since, now);
        now.since(since).saturating_sub(time)
    }

    /// Whether a task that has waited since `waits_since` may have waited for a brake that was
    /// lifted shortly before.
    pub(in crate::engine) fn has_released(
        &self,
        record: &TaskRecord,
        waits_since: Timestamp,
    ) -> bool {
        let now = self.clock.now();
        self.known_brake()
            .has_released(work_of(record), waits_since, now)
    }

    /// Admits a call: its tenant must not be braked, and have calls left of its rate.
    ///
    /// # Errors
    /// [`A2aError::Forbidden`], [`A2aError::RateLimited`], or an outage.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), EngineError> {
        let (brake, charge) = futures::join!(self.brake(), self.charge_call(caller));
        match brake?.refusal(&caller.owner.tenant, None) {
            Some(refusal @ A2aError::Forbidden) => Err(refusal.into()),
            _ => Ok(charge?),
        }
    }

    /// Checks that a message may start work: that of `skill`, if its skill is known.
    ///
    /// # Errors
    /// [`A2aError::Unavailable`] with the time to wait.
    pub(in crate::engine) fn check_brake(
        &self,
        tenant: &TenantId,
        skill: Option<&str>,
    ) -> Result<(), A2aError> {
        let refusal = self.known_brake().refusal(tenant, skill);
        refusal.map_or(Ok(()), Err)
    }

    /// Charges a call to the tier of its caller.
    ///
    /// # Errors
    /// [`A2aError::RateLimited`] when the tier has no call left.
    pub(in crate::engine) async fn charge_call(&self, caller: &Caller) -> Result<(), A2aError> {
        let rates = &self.policy.limits.rates;
        let rate = rates.tiers.get(&caller.tier).copied().or(rates.calls);
        let (Some(limits), Some(rate)) = (&self.limits, rate) else {
            return Ok(());
        };
        let bucket = RateBucket::Tier(caller.owner.tenant.clone(), caller.tier.clone());
        let now = self.clock.now();
        self.lots.charge(limits, &bucket, rate, now).await
    }

    /// Charges a message to the skill that it runs, and to each tag of the skill that has a
    /// rate, before anything is written.
    ///
    /// # Errors
    /// [`A2aError::Unavailable`] when the skill is braked, [`A2aError::RateLimited`] when one of
    /// them has no call left.
    pub(in crate::engine) async fn charge_skill(
        &self,
        caller: &Caller,
        skill: Option<SkillMetadata>,
    ) -> Result<(), EngineError> {
        self.check_brake(&caller.owner.tenant, skill.map(|skill| skill.id))?;
        let (Some(limits), Some(skill)) = (&self.limits, skill) else {
            return Ok(());
        };
        let now = self.clock.now();
        let mut buckets = Vec::new();
        for (bucket, rate) in self.skill_rates(caller, &skill)? {
            if let Err(error) = self.lots.charge(limits, &bucket, rate, now).await {
                // A bucket that refuses must not empty the others.
                for bucket in &buckets {
                    self.lots.give_back(bucket, now);
                }
                return Err(error.into());
            }
            buckets.push(bucket);
        }
        Ok(())
    }

    /// The buckets of a skill that have a rate.
    fn skill_rates(
        &self,
        caller: &Caller,
        skill: &SkillMetadata,
    ) -> Result<Vec<(RateBucket, CallRate)>, EngineError> {
        let rates = &self.policy.limits.rates.skills;
        let tenant = &caller.owner.tenant;
        let mut buckets = Vec::new();
        if let Some(rate) = rates.get(skill.id) {
            let id =
                SkillId::parse(skill.id).map_err(|it| EngineError::internal(it.to_string()))?;
            buckets.push((RateBucket::Skill(tenant.clone(), id), *rate));
        }
        let tags: BTreeSet<&str> = skill.tags.iter().copied().collect();
        for tag in tags {
            if let Some(rate) = rates.get(&format!("#{tag}")) {
                let bucket = RateBucket::SkillTag(tenant.clone(), tag.to_owned());
                buckets.push((bucket, *rate));
            }
        }
        Ok(buckets)
    }

    /// Waits until this work is braked, and returns why. A refusal must pass `counts`. The timer
    /// reads the brake also for a call without a lease.
    pub(in crate::engine) async fn wait_for_brake(
        &self,
        tenant: &TenantId,
        skill: Option<&str>,
        counts: impl Fn(&A2aError) -> bool,
    ) -> A2aError {
        if self.brake.is_none() {
            return std::future::pending().await;
        }
        loop {
            self.clock.sleep_until(self.clock.now().plus(FRESH)).await;
            if let Ok(brake) = self.brake().await
                && let Some(refusal) = brake.refusal(tenant, skill).filter(&counts)
            {
                return refusal;
            }
        }
    }
}

/// The tenant and the skill of a task.
fn work_of(record: &TaskRecord) -> (&TenantId, Option<&str>) {
    (&record.owner.tenant, record.skill_name())
}
