//! Limits how often the same refusal is logged, so that a flood of calls is not a flood of
//! lines.

use crate::task::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// The most lines of one kind in each [`WINDOW`].
const LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(1);
/// The most kinds that are remembered.
const KINDS: usize = 1024;

/// A reason, and the tenant of its callers if it is known.
type Kind = (&'static str, Option<String>);

/// Decides which refusals of a process are logged.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    kinds: HashMap<Kind, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Timestamp,
    lines: u32,
    left_out: u64,
}

impl Sampler {
    /// Whether to log a refusal with `reason` now: the number of lines left out since the
    /// last one, or `None` to leave this one out too.
    pub(crate) fn admit(
        &mut self,
        reason: &'static str,
        tenant: Option<&str>,
        now: Timestamp,
    ) -> Option<u64> {
        if self.kinds.len() >= KINDS {
            self.kinds.retain(|_, window| !window.is_over(now));
        }
        // More kinds than that in one second: a tenant no longer has a share of its own.
        let tenant = tenant.filter(|_| self.kinds.len() < KINDS);
        let fresh = Window {
            began: now,
            lines: 0,
            left_out: 0,
        };
        let kind = (reason, tenant.map(str::to_owned));
        let window = self.kinds.entry(kind).or_insert(fresh);
        if window.is_over(now) {
            (window.began, window.lines) = (now, 0);
        }
        if window.lines >= LINES {
            window.left_out += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

impl Window {
    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.began) >= WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_refusal_is_ten_lines_a_second() {
        let mut sampler = Sampler::default();
        let at = Timestamp::from_millis;
        let mut admit = |reason, tenant, millis| sampler.admit(reason, tenant, at(millis));
        let lines = (0..100).filter_map(|_| admit("RATE_LIMITED", Some("acme"), 5));
        assert_eq!(lines.collect::<Vec<_>>(), [0; 10]);
        assert_eq!(admit("RATE_LIMITED", Some("other"), 6), Some(0));
        assert_eq!(admit("PARSE_ERROR", Some("acme"), 6), Some(0));
        assert_eq!(admit("RATE_LIMITED", Some("acme"), 1004), None);
        assert_eq!(admit("RATE_LIMITED", Some("acme"), 1005), Some(91));
        assert_eq!(admit("RATE_LIMITED", Some("acme"), 1006), Some(0));
    }

    #[test]
    fn many_tenants_use_bounded_memory() {
        let mut sampler = Sampler::default();
        for number in 0..10_000 {
            let tenant = format!("t{number}");
            sampler.admit("RATE_LIMITED", Some(&tenant), Timestamp::from_millis(7));
        }
        assert!(sampler.kinds.len() <= KINDS + 1, "{}", sampler.kinds.len());
    }
}
