//! Reads single settings by their kind: text, URL, time, choice, size and duration.

use super::{SettingsError, Source};
use crate::auth::AuthMode;
use crate::http::{CorsOrigin, base_url};
use a2a_lambda_wire::CardSignature;
use std::time::Duration;

/// The text of [`SettingsError::Bad`] for a URL.
pub(super) const URL: &str = "an http or https URL";
/// The largest value of a size, and the text of [`SettingsError::Bad`] for it.
pub(super) type Most = (usize, &'static str);

/// The longest duration, in milliseconds: a hundred years. A longer one could lead
/// to a time that has no date in RFC 3339.
const LONGEST: u64 = 36_500 * 86_400_000;

/// Reads single settings by their kind.
pub(super) struct Read<'a>(pub(super) &'a dyn Source);

impl Read<'_> {
    pub(super) fn text(&self, name: &'static str, default: &str) -> String {
        self.0
            .get(name)
            .filter(|v| !v.is_empty())
            .unwrap_or_else(|| default.to_owned())
    }

    pub(super) fn optional_url(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        match self.text(name, "") {
            unset if unset.is_empty() => Ok(None),
            _ => self.url(name, "").map(Some),
        }
    }

    pub(super) fn url(&self, name: &'static str, default: &str) -> Result<String, SettingsError> {
        let value = self.text(name, default);
        match base_url::parse(&value) {
            Some(url) => Ok(url.to_owned()),
            None => Err(SettingsError::Bad {
                name,
                value,
                allowed: URL,
            }),
        }
    }

    pub(super) fn signatures(
        &self,
        name: &'static str,
    ) -> Result<Vec<CardSignature>, SettingsError> {
        let value = self.text(name, "");
        let read: Result<Vec<CardSignature>, _> =
            value.split_whitespace().map(str::parse).collect();
        read.map_err(|_| SettingsError::Bad {
            name,
            value,
            allowed: "what `a2a-local sign-card --print setting` prints",
        })
    }

    /// The origin whose pages may call the agent. Development identities are not for every
    /// page that the developer opens.
    pub(super) fn cors_origin(&self, auth: AuthMode) -> Result<Option<CorsOrigin>, SettingsError> {
        const NAME: &str = "A2A_CORS_ORIGIN";
        let value = self.text(NAME, "");
        if value.is_empty() {
            return Ok(None);
        }
        let origin = CorsOrigin::parse(&value).ok_or(SettingsError::Bad {
            name: NAME,
            value,
            allowed: "`*`, or an origin as `https://app.example.com`, without a path",
        })?;
        if origin.is_any() && auth == AuthMode::Dev {
            return Err(SettingsError::EveryPageInDevelopment);
        }
        Ok(Some(origin))
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &'static str,
        allowed: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, SettingsError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        let choice = choices
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, choice)| *choice);
        choice.ok_or(SettingsError::Bad {
            name,
            value,
            allowed,
        })
    }

    pub(super) fn switch(&self, name: &'static str, default: bool) -> Result<bool, SettingsError> {
        self.choice(
            name,
            "`on` or `off`",
            &[("on", true), ("off", false)],
            default,
        )
    }

    /// A size of at most `most`; `allowed` is the text of the error.
    pub(super) fn limited(
        &self,
        name: &'static str,
        default: usize,
        (most, allowed): Most,
    ) -> Result<usize, SettingsError> {
        let size = self.size(name, default)?;
        if size <= most {
            return Ok(size);
        }
        Err(SettingsError::Bad {
            name,
            value: size.to_string(),
            allowed,
        })
    }

    /// A number for which 0 means that there is none.
    pub(super) fn optional<N>(
        &self,
        name: &'static str,
        default: &str,
    ) -> Result<Option<N>, SettingsError>
    where
        N: std::str::FromStr + PartialEq + Default,
    {
        let value = self.text(name, default);
        match value.parse() {
            Ok(number) => Ok(Some(number).filter(|it| *it != N::default())),
            Err(_) => Err(SettingsError::Bad {
                name,
                value,
                allowed: "a whole number",
            }),
        }
    }

    pub(super) fn size(&self, name: &'static str, default: usize) -> Result<usize, SettingsError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        match value.parse() {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(SettingsError::Bad {
                name,
                value,
                allowed: "a whole number above 0",
            }),
        }
    }

    pub(super) fn seconds(
        &self,
        name: &'static str,
        default: f64,
    ) -> Result<Duration, SettingsError> {
        let allowed = "seconds, 0-3600";
        let value = self.text(name, &default.to_string());
        match value.parse::<f64>() {
            Ok(seconds) if (0.0..=3600.0).contains(&seconds) => {
                Ok(Duration::from_secs_f64(seconds))
            }
            _ => Err(SettingsError::Bad {
                name,
                value,
                allowed,
            }),
        }
    }

    pub(super) fn duration(
        &self,
        name: &'static str,
        default: Duration,
    ) -> Result<Duration, SettingsError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        parse_duration(&value).ok_or(SettingsError::Bad {
            name,
            value,
            allowed: "a whole number with `ms`, `s`, `m`, `h` or `d`, from 1ms to 36500d",
        })
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
