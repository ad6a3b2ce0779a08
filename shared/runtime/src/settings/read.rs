//! Reads single settings by their kind: text, URL, time, choice, size and duration.
//!
//! A setting that is empty counts as one that is not set.

use super::{SettingsError, Source};
use crate::http::base_url;
use std::time::Duration;

/// The text of [`SettingsError::Bad`] for a URL.
pub(super) const URL: &str = "an http or https URL";

/// The longest duration, in milliseconds: a hundred years. A longer one could lead
/// to a time that has no date in RFC 3339.
const LONGEST: u64 = 36_500 * 86_400_000;

/// Reads single settings by their kind.
pub(super) struct Read<'a>(pub(super) &'a dyn Source);

impl Read<'_> {
    pub(super) fn given(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_empty())
    }

    pub(super) fn text(&self, name: &str, default: &str) -> String {
        self.given(name).unwrap_or_else(|| default.to_owned())
    }

    /// What `parse` makes of a setting; `None` if it is not set. `rule` is the text of the
    /// error.
    pub(super) fn parsed<T>(
        &self,
        name: &'static str,
        rule: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.given(name) else {
            return Ok(None);
        };
        match parse(&value) {
            Some(setting) => Ok(Some(setting)),
            None => Err(SettingsError::Bad { name, value, rule }),
        }
    }

    pub(super) fn url(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        self.parsed(name, URL, |text| base_url::parse(text).map(str::to_owned))
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        rule: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, SettingsError> {
        let choice = self.parsed(name, rule, |text| {
            let choice = choices.iter().find(|(word, _)| *word == text);
            choice.map(|(_, choice)| *choice)
        })?;
        Ok(choice.unwrap_or(default))
    }

    pub(super) fn switch(&self, name: &'static str, default: bool) -> Result<bool, SettingsError> {
        let words = [("on", true), ("off", false)];
        self.choice(name, "`on` or `off`", &words, default)
    }

    /// A number for which 0 means that there is none.
    pub(super) fn optional<N>(
        &self,
        name: &'static str,
        default: N,
    ) -> Result<Option<N>, SettingsError>
    where
        N: std::str::FromStr + PartialEq + Default,
    {
        let number = self.parsed(name, "a whole number", |text| text.parse().ok())?;
        Ok(Some(number.unwrap_or(default)).filter(|it| *it != N::default()))
    }

    pub(super) fn duration(
        &self,
        name: &'static str,
        default: Duration,
    ) -> Result<Duration, SettingsError> {
        let rule = "a whole number with `ms`, `s`, `m`, `h` or `d`, from 1ms to 36500d";
        let duration = self.parsed(name, rule, parse_duration)?;
        Ok(duration.unwrap_or(default))
    }
}

/// Reads a whole number with its unit: `250ms`, `2s`, `5m`, `24h`, `30d`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let millis = number
        .checked_mul(millis)
        .filter(|millis| (1..=LONGEST).contains(millis))?;
    Some(Duration::from_millis(millis))
}
