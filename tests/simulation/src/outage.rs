//! A store that is away for longer than five leases, while everything else works.
//!
//! G20: an outage, however long, costs a turn at most one attempt, and fails no task that
//! had another one left. A run that was dead when the outage began has cost one of its own.

use crate::clients::ATTEMPTS;
use crate::driver::Driver;
use crate::hub::Service;
use crate::oracle::Life;
use a2a_lambda::task::{TaskRecord, TaskState, metadata_keys};
use std::collections::BTreeMap;

/// Milliseconds between two sweeps.
const SWEEP: i64 = 300_000;
/// The shortest outage: six leases of a minute.
const SHORTEST: u64 = 360_000;
/// The longest outage is longer by this.
const LONGER: u64 = 1_800_000;

/// The turn and the attempts of an open task, and how often it was handed over.
struct Before {
    turn: u32,
    attempt: u32,
    hand_overs: u32,
    /// Whether it has the lease of a run that is dead.
    is_dead: bool,
}

impl Driver {
    /// A store is away. Relay, workers and sweep run all the time.
    pub(crate) fn outage(&mut self) {
        let before = self.open_turns();
        let until = {
            let mut world = self.site.hub.world();
            world.faulty = false;
            world.away = match world.chance.below(2) {
                0 => Some(Service::Table),
                _ => Some(Service::Bucket),
            };
            let lasts = SHORTEST + world.chance.below(LONGER);
            world.now + i64::try_from(lasts).unwrap_or(i64::MAX)
        };
        self.runs_until(until);
        self.site.hub.world().away = None;
        self.check_attempts(&before);
    }

    fn open_turns(&self) -> BTreeMap<Life, Before> {
        let world = self.site.hub.world();
        let open = world.oracle.living();
        let open = open.filter(|(_, seen)| !seen.record.state().is_at_rest());
        open.map(|(life, seen)| {
            let before = Before {
                turn: seen.record.turn,
                attempt: seen.record.attempt,
                hand_overs: seen.hand_overs,
                is_dead: seen.record.lease_until.is_some() && !self.is_alive(seen.runner),
            };
            (life.clone(), before)
        })
        .collect()
    }

    fn runs_until(&mut self, until: i64) {
        let mut sweep_at = self.site.hub.world().now;
        loop {
            self.finish();
            if self.is_broken() || self.site.hub.world().now >= until {
                return;
            }
            let (now, work, images, next) = {
                let world = self.site.hub.world();
                let (now, messages) = (world.now, &world.messages);
                let next = messages.work.next_visible();
                (now, messages.work.visible(now), messages.has_images(), next)
            };
            if images {
                self.start("relay", None, self.site.clone().relay());
            } else if now >= sweep_at {
                sweep_at = now + SWEEP;
                self.start("sweep", None, self.site.on_any_machine().sweep());
            } else if work.is_empty() {
                let next = next.unwrap_or(until).min(sweep_at).min(until);
                self.advance_to(next);
            } else {
                for number in work {
                    self.work(number, 900);
                }
            }
        }
    }

    fn check_attempts(&self, before: &BTreeMap<Life, Before>) {
        let mut world = self.site.hub.world();
        let mut faults = Vec::new();
        for (life, seen) in world.oracle.living() {
            let record = &seen.record;
            let began = before.get(life).filter(|it| it.turn == record.turn);
            let (attempt, hand_overs) = began.map_or((1, 0), |it| (it.attempt, it.hand_overs));
            let attempt = attempt.max(1) + u32::from(began.is_some_and(|it| it.is_dead));
            // A hand-over without progress is an attempt too.
            let most = attempt + 1 + seen.hand_overs.saturating_sub(hand_overs);
            if !record.state().is_at_rest() && record.attempt > most {
                let now = record.attempt;
                faults.push(format!(
                    "G20: an outage brings task {life} to attempt {now}"
                ));
            }
            if is_given_up(record) && began.is_some() && most <= ATTEMPTS {
                faults.push(format!("G20: an outage fails task {life}"));
            }
        }
        for fault in faults {
            world.oracle.broken(fault);
        }
    }
}

/// Whether the runtime has failed the task, and not its skill.
fn is_given_up(record: &TaskRecord) -> bool {
    let message = record.status.message.as_ref();
    let code = message.and_then(|it| it.metadata.get(metadata_keys::ERROR_CODE));
    let code = code.and_then(|code| code.as_str());
    record.state() == TaskState::Failed
        && matches!(code, Some("ATTEMPTS_EXHAUSTED" | "RUN_LIMIT_EXCEEDED"))
}
