//! Medians, percentiles and ratios.

use std::time::Duration;

/// Measured values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn add_time(&mut self, time: Duration) {
        self.add(millis(time));
    }

    /// The value below which this part of the values is; 0 without values.
    pub(crate) fn at(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index between 0 and the length"
        )]
        let index = (last as f64 * part).round() as usize;
        sorted.get(index).copied().unwrap_or_default()
    }

    /// Each value divided by the one of `floor` of the same round. Both have one value a round.
    pub(crate) fn ratios(&self, floor: &Self) -> Self {
        let pairs = self.0.iter().zip(&floor.0);
        let pairs = pairs.filter(|(_, floor)| **floor > 0.0);
        Self(pairs.map(|(own, floor)| own / floor).collect())
    }

    /// The middle value, or the mean of the two in the middle; 0 without values.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let upper = sorted.get(sorted.len() / 2);
        let lower = sorted.get(sorted.len().saturating_sub(1) / 2);
        let middle = lower
            .zip(upper)
            .map(|(lower, upper)| f64::midpoint(*lower, *upper));
        middle.unwrap_or_default()
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
