//! The brake: what an operator has stopped, and when.
//!
//! Each brake is an entry of its own. An entry that was lifted stays for a while, because the time
//! of a brake counts neither as the running time of a turn nor as an attempt.

use super::StoreError;
use crate::task::{A2aError, SkillId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The most entries that are in force, and the most that were lifted.
const ENTRIES_MAX: usize = 200;
/// Lifted entries go when nothing was braked for so long.
const KEPT: Duration = Duration::from_secs(31 * 24 * 3600);
/// After how many seconds the client of a refused call may try again.
const RETRY_AFTER: u64 = 60;
/// For how long after a brake was lifted the sweep sends the turns that waited for it.
const WAKING: Duration = Duration::from_secs(15 * 60);
/// How long after the lift a process may still have refused a turn: its answer is a few seconds
/// old, and its clock may differ.
const LAG: Duration = Duration::from_secs(60);

/// What is braked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrakeTarget {
    /// All skills for all tenants.
    Everything,
    /// All that one tenant does.
    Tenant(TenantId),
    /// One skill, for all tenants.
    Skill(SkillId),
}

impl BrakeTarget {
    /// Whether work of this tenant is of the target. `skill` is the skill that runs, if one does.
    #[must_use]
    pub fn covers(&self, tenant: &TenantId, skill: Option<&str>) -> bool {
        match self {
            Self::Everything => true,
            Self::Tenant(it) => it == tenant,
            Self::Skill(it) => Some(it.as_str()) == skill,
        }
    }
}

impl fmt::Display for BrakeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Tenant(tenant) => write!(f, "tenant {tenant}"),
            Self::Skill(skill) => write!(f, "skill {skill}"),
        }
    }
}

/// One brake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrakeEntry {
    /// What it stops.
    pub target: BrakeTarget,
    /// Since when.
    pub since: Timestamp,
    /// When it was lifted; `None` while it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// All entries, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Brake(Vec<BrakeEntry>);

impl Brake {
    /// The brake in its stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    /// The stored form.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::json!(self.0).to_string()
    }

    /// The entries in force.
    pub fn in_force(&self) -> impl Iterator<Item = &BrakeEntry> {
        self.0.iter().filter(|entry| entry.until.is_none())
    }

    /// Why work must not begin now: the error that a new call gets. A tenant that is braked is
    /// refused whatever it does, so it is named first.
    #[must_use]
    pub fn refusal(&self, tenant: &TenantId, skill: Option<&str>) -> Option<A2aError> {
        let mut refusal = None;
        for entry in self.in_force().filter(|it| it.target.covers(tenant, skill)) {
            if matches!(entry.target, BrakeTarget::Tenant(_)) {
                return Some(A2aError::Forbidden);
            }
            let retry_after = RETRY_AFTER;
            refusal = Some(A2aError::Unavailable { retry_after });
        }
        refusal
    }

    /// How long the work was braked between two times. Where entries overlap, it counts once.
    #[must_use]
    pub fn time(
        &self,
        (tenant, skill): (&TenantId, Option<&str>),
        from: Timestamp,
        to: Timestamp,
    ) -> Duration {
        let entries = self.0.iter();
        let entries = entries.filter(|entry| entry.target.covers(tenant, skill));
        let mut spans: Vec<_> = entries
            .map(|entry| (entry.since, entry.until.unwrap_or(to).min(to)))
            .collect();
        spans.sort_unstable();
        let (mut time, mut counted_to) = (Duration::ZERO, from);
        for (since, until) in spans {
            time += until.since(since.max(counted_to));
            counted_to = counted_to.max(until);
        }
        time
    }

    /// Whether work that has waited since `waits_since` may have waited for a brake that was
    /// lifted shortly before `now`.
    #[must_use]
    pub fn has_released(
        &self,
        (tenant, skill): (&TenantId, Option<&str>),
        waits_since: Timestamp,
        now: Timestamp,
    ) -> bool {
        let mut entries = self.0.iter();
        entries.any(|entry| {
            entry.target.covers(tenant, skill)
                && entry
                    .until
                    .is_some_and(|until| now < until.plus(WAKING) && waits_since < until.plus(LAG))
        })
    }

    /// Brakes the target, unless it is braked.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if there is no room for another one.
    pub fn set(&mut self, target: &BrakeTarget, now: Timestamp) -> Result<(), StoreError> {
        let is_same = |entry: &&mut BrakeEntry| entry.target == *target;
        // The clock of another operator may have ended the last one later than now.
        let is_open = |entry: &&mut BrakeEntry| entry.until.is_none_or(|until| now <= until);
        if let Some(entry) = self.0.iter_mut().filter(is_same).find(is_open) {
            entry.until = None;
            return Ok(());
        }
        if self.in_force().count() >= ENTRIES_MAX {
            let text = format!("{ENTRIES_MAX} brakes are in force, and there can be no more");
            return Err(StoreError::Refused(text));
        }
        self.drop_old_entries(now);
        self.0.push(BrakeEntry {
            target: target.clone(),
            since: now,
            until: None,
        });
        Ok(())
    }

    /// Lifts the brake of the target; `false` if it has none.
    pub fn lift(&mut self, target: &BrakeTarget, now: Timestamp) -> bool {
        let mut entries = self.0.iter_mut();
        let entry = entries.find(|it| it.target == *target && it.until.is_none());
        let Some(entry) = entry else {
            return false;
        };
        entry.until = Some(now.max(entry.since));
        self.drop_old_entries(now);
        true
    }

    /// Forgets entries that were lifted: all of them when nothing was braked for long, and
    /// otherwise the oldest beyond the limit.
    fn drop_old_entries(&mut self, now: Timestamp) {
        let ends = self.0.iter().map(|entry| entry.until.unwrap_or(now));
        if ends.max().is_some_and(|last| last.plus(KEPT) <= now) {
            self.0.clear();
        }
        let mut extra = (self.0.len() - self.in_force().count()).saturating_sub(ENTRIES_MAX);
        self.0.retain(|entry| {
            let goes = entry.until.is_some() && extra > 0;
            extra -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn acme() -> TenantId {
        TenantId::parse("acme").unwrap()
    }

    fn echo() -> BrakeTarget {
        BrakeTarget::Skill(SkillId::parse("echo").unwrap())
    }

    fn seconds(brake: &Brake, skill: &str, from: i64, to: i64) -> u64 {
        brake
            .time((&acme(), Some(skill)), at(from), at(to))
            .as_secs()
    }

    #[test]
    fn a_braked_tenant_is_forbidden_and_other_work_is_told_when_to_try_again() {
        let mut brake = Brake::default();
        let other = TenantId::parse("other").unwrap();
        assert_eq!(brake.refusal(&acme(), Some("echo")), None);
        let later = Some(A2aError::Unavailable { retry_after: 60 });
        brake.set(&echo(), at(0)).unwrap();
        assert_eq!(brake.refusal(&acme(), Some("echo")), later);
        assert_eq!(brake.refusal(&acme(), Some("ask")), None);
        assert_eq!(brake.refusal(&acme(), None), None);
        brake.set(&BrakeTarget::Everything, at(0)).unwrap();
        brake.set(&BrakeTarget::Tenant(acme()), at(0)).unwrap();
        assert_eq!(
            brake.refusal(&acme(), Some("echo")),
            Some(A2aError::Forbidden)
        );
        assert_eq!(brake.refusal(&other, None), later);
    }

    #[test]
    fn the_time_of_brakes_that_overlap_counts_once() {
        let mut brake = Brake::default();
        brake.set(&echo(), at(10)).unwrap();
        brake.set(&BrakeTarget::Everything, at(20)).unwrap();
        assert!(brake.lift(&echo(), at(30)));
        assert!(brake.lift(&BrakeTarget::Everything, at(40)));
        brake.set(&echo(), at(60)).unwrap();
        assert_eq!(seconds(&brake, "echo", 0, 100), 30 + 40);
        assert_eq!(seconds(&brake, "ask", 0, 100), 20);
        assert_eq!(seconds(&brake, "echo", 25, 65), 15 + 5);
        assert_eq!(Brake::parse(&brake.to_text()).unwrap(), brake);
    }

    #[test]
    fn a_lift_releases_what_waited_for_it_and_for_a_quarter_of_an_hour() {
        let mut brake = Brake::default();
        brake.set(&echo(), at(100)).unwrap();
        assert!(brake.lift(&echo(), at(200)));
        let releases =
            |skill, since, now| brake.has_released((&acme(), Some(skill)), at(since), at(now));
        assert!(releases("echo", 150, 200) && releases("echo", 0, 1099));
        assert!(!releases("echo", 150, 1100) && !releases("ask", 150, 200));
        // It was queued after all processes had seen the lift.
        assert!(!releases("echo", 260, 261));
    }

    #[test]
    fn an_entry_is_in_force_once_and_at_most_200_are() {
        let mut brake = Brake::default();
        let skill = |n: usize| BrakeTarget::Skill(SkillId::parse(format!("s{n}")).unwrap());
        for n in 0..200 {
            brake.set(&skill(n), at(0)).unwrap();
            brake.set(&skill(n), at(1)).unwrap();
        }
        assert_eq!(brake.in_force().count(), 200);
        assert!(brake.set(&echo(), at(2)).is_err());
        assert!(brake.lift(&skill(0), at(3)) && !brake.lift(&skill(0), at(4)));
        brake.set(&echo(), at(5)).unwrap();
    }

    #[test]
    fn lifted_entries_stay_while_something_is_braked_and_never_fill_the_item() {
        let mut brake = Brake::default();
        brake.set(&BrakeTarget::Tenant(acme()), at(0)).unwrap();
        for day in 1..=300 {
            brake.set(&echo(), at(day * 86_400)).unwrap();
            assert!(brake.lift(&echo(), at(day * 86_400 + 60)));
        }
        assert_eq!(brake.0.len(), 201);
        assert_eq!(seconds(&brake, "ask", 0, 300 * 86_400), 300 * 86_400);
        assert!(brake.lift(&BrakeTarget::Tenant(acme()), at(301 * 86_400)));
        brake.set(&echo(), at(331 * 86_400)).unwrap();
        assert!(brake.lift(&echo(), at(331 * 86_400)));
        assert_eq!(brake.0.len(), 200);
        brake.set(&echo(), at(362 * 86_400)).unwrap();
        assert_eq!(brake.0.len(), 1);
    }

    #[test]
    fn a_second_brake_within_the_first_continues_it() {
        let mut brake = Brake::default();
        brake.set(&echo(), at(10)).unwrap();
        assert!(brake.lift(&echo(), at(5)));
        brake.set(&echo(), at(8)).unwrap();
        assert_eq!(brake.0.len(), 1);
        assert_eq!(brake.in_force().count(), 1);
    }
}
