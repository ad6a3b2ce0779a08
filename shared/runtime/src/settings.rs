//! Reads all settings, once, at the start. `docs/operations.md` lists them.
//!
//! A value that is not allowed stops the start with the setting's name, the value
//! and what is allowed. No other module reads the environment.

use crate::auth::AuthMode;
use crate::engine::Policy;
use crate::http::Hosts;
use crate::outbound::Reach;
use crate::task::Timestamp;
use a2a_lambda_wire::{CardShape, CardSignature};
use std::time::Duration;

mod names;

pub use names::warn_of_unknown;

/// How often the local agent sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(300);

/// 2020-01-01T00:00:00Z: an executable with an earlier file time has a false one.
const OLDEST_BUILD: Timestamp = Timestamp::from_millis(1_577_836_800_000);

/// The text of [`SettingsError::Bad`] for a URL.
const URL: &str = "an http or https URL";
/// The largest value of a size, and the text of [`SettingsError::Bad`] for it.
type Most = (usize, &'static str);
/// 5 GiB: the largest object that S3 takes in one PUT.
const UPLOAD_MOST: Most = (
    5 * 1024 * 1024 * 1024,
    "a whole number from 1 to 5368709120",
);
/// 200 KiB: the engine reads up to this much of each file that a skill makes into
/// memory, to see whether the file stays inline.
const INLINE_MOST: Most = (200 * 1024, "a whole number from 1 to 204800");
/// A response of a Lambda function has at most 6 MB. The JSON around a body
/// escapes each of its quotes with a second byte, which counts too.
const RESPONSE_MOST: Most = (5_900_000, "a whole number from 1 to 5900000");
/// The longest duration, in milliseconds: a hundred years. A longer one could lead
/// to a time that has no date in RFC 3339.
const LONGEST: u64 = 36_500 * 86_400_000;

/// The settings of a function or of the local agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `A2A_TABLE`: the DynamoDB table.
    pub table: String,
    /// `A2A_BUCKET`: the S3 bucket.
    pub bucket: String,
    /// `A2A_PUBLIC_URL`: the base URL on the card. It never comes from a request.
    pub public_url: String,
    /// The hosts under which an agent with `A2A_AUTH=dev` answers: those of this
    /// machine and of the public URL.
    pub hosts: Hosts,
    /// `A2A_AUTH`: `gateway` or `dev`.
    pub auth: AuthMode,
    /// `A2A_CARD`: `union` or `v1`.
    pub card: CardShape,
    /// `A2A_CARD_SIGNATURES`: signatures of the cards, from `a2a-local sign-card`.
    pub card_signatures: Vec<CardSignature>,
    /// `A2A_DEPLOYED_AT`: when the cards last changed; else the file time of the
    /// executable, if that is 2020 or later.
    pub deployed_at: Option<Timestamp>,
    /// `A2A_MAX_BODY`: most bytes of a request body.
    pub max_body: usize,
    /// `A2A_WORK_QUEUE_URL`: the work queue, which holds the turns for the workers.
    pub work_queue_url: Option<String>,
    /// `A2A_PUSH`: whether clients may register webhooks.
    pub push: bool,
    /// `A2A_PUSH_QUEUE_URL`: the push queue, which holds the push deliveries.
    pub push_queue_url: Option<String>,
    /// `A2A_SWEEP_INTERVAL`: how often the local agent sweeps: it looks for turns
    /// whose process died.
    pub sweep_interval: Duration,
    /// The durations and sizes of the engine, and `A2A_SECRET_KEY`.
    pub policy: Policy,
    /// `TCK_STREAMING_TIMEOUT`: in seconds; the conformance kit sets it.
    pub tck_streaming_timeout: Duration,
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting has a value that is not allowed.
    #[error("setting `{name}` is `{value}`: {allowed}")]
    Bad {
        /// The name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A required setting is not set.
    #[error("setting `{name}` is missing: {allowed}")]
    Missing {
        /// The name of the setting.
        name: &'static str,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A deployed function does not accept development identities.
    #[error("setting `A2A_AUTH` is `dev`: a deployed function accepts `gateway` only")]
    DevDeployed,
    /// A deployed function connects to public addresses only.
    #[error("setting `A2A_PUSH_ALLOW_PRIVATE` is `on`: a deployed function accepts `off` only")]
    PrivateDeployed,
    /// The thread's state would live longer than the thread.
    #[error("setting `A2A_STATE_TTL` is `{state}`: at most `A2A_THREAD_TTL`, which is `{thread}`")]
    StateOutlivesThread {
        /// The value of `A2A_STATE_TTL`.
        state: String,
        /// The value of `A2A_THREAD_TTL`.
        thread: String,
    },
}

/// Where settings come from.
pub trait Source {
    /// The value of the setting `name`, if it is set.
    fn get(&self, name: &str) -> Option<String>;

    /// The file time of the executable, if it is known and credible.
    fn built_at(&self) -> Option<Timestamp> {
        None
    }
}

/// The process environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment;

impl Environment {
    /// The names of all variables that are set.
    fn names() -> impl Iterator<Item = String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
    }
}

impl Source for Environment {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one reader of the environment"
    )]
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn built_at(&self) -> Option<Timestamp> {
        let made = std::env::current_exe()
            .ok()?
            .metadata()
            .ok()?
            .modified()
            .ok()?;
        let age = made.duration_since(std::time::UNIX_EPOCH).ok()?;
        // A zip archive without file times unpacks to 1980.
        let at = Timestamp::default().plus(age);
        Some(at).filter(|at| *at > OLDEST_BUILD)
    }
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`SettingsError`] for the first setting that cannot be used.
    pub fn read(source: &dyn Source) -> Result<Self, SettingsError> {
        let mut settings = Self::read_public(source)?;
        settings.policy.secret = Read(source).secret(settings.auth)?;
        Ok(settings)
    }

    /// Reads the settings without `A2A_SECRET_KEY`, for functions that do not have
    /// it: they neither make nor read page tokens and sealed secrets.
    ///
    /// # Errors
    /// [`SettingsError`] for the first setting that cannot be used.
    pub fn read_public(source: &dyn Source) -> Result<Self, SettingsError> {
        let read = Read(source);
        let auth = read.choice(
            "A2A_AUTH",
            "`gateway` or `dev`",
            &[("gateway", AuthMode::Gateway), ("dev", AuthMode::Dev)],
            AuthMode::Gateway,
        )?;
        if auth == AuthMode::Dev && deployed(source) {
            return Err(SettingsError::DevDeployed);
        }
        let reach = if read.switch("A2A_PUSH_ALLOW_PRIVATE", false)? {
            Reach::Anything
        } else {
            Reach::Public
        };
        if reach == Reach::Anything && deployed(source) {
            return Err(SettingsError::PrivateDeployed);
        }
        let public_url = read.url("A2A_PUBLIC_URL", "http://127.0.0.1:8080")?;
        Ok(Self {
            table: read.text("A2A_TABLE", "a2a-lambda-local"),
            bucket: read.text("A2A_BUCKET", "a2a-lambda-local"),
            hosts: Hosts::local(&public_url),
            public_url,
            auth,
            card: read.choice(
                "A2A_CARD",
                "`union` or `v1`",
                &[("union", CardShape::Union), ("v1", CardShape::V1)],
                CardShape::Union,
            )?,
            card_signatures: read.signatures("A2A_CARD_SIGNATURES")?,
            deployed_at: read.time("A2A_DEPLOYED_AT")?.or_else(|| source.built_at()),
            max_body: read.size("A2A_MAX_BODY", 1024 * 1024)?,
            work_queue_url: read.optional_url("A2A_WORK_QUEUE_URL")?,
            push: read.switch("A2A_PUSH", true)?,
            push_queue_url: read.optional_url("A2A_PUSH_QUEUE_URL")?,
            sweep_interval: read.duration("A2A_SWEEP_INTERVAL", SWEEP_INTERVAL)?,
            policy: read.policy(reach)?,
            tck_streaming_timeout: read.seconds("TCK_STREAMING_TIMEOUT", 2.0)?,
        })
    }

    /// The URL of the push queue, for the functions that require it.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when it is not set.
    pub fn push_queue(&self) -> Result<&str, SettingsError> {
        self.push_queue_url
            .as_deref()
            .ok_or(SettingsError::Missing {
                name: "A2A_PUSH_QUEUE_URL",
                allowed: URL,
            })
    }

    /// The URL of the work queue, for the functions that require it.
    ///
    /// # Errors
    /// [`SettingsError::Missing`] when it is not set.
    pub fn work_queue(&self) -> Result<&str, SettingsError> {
        self.work_queue_url
            .as_deref()
            .ok_or(SettingsError::Missing {
                name: "A2A_WORK_QUEUE_URL",
                allowed: URL,
            })
    }
}

/// Whether this process is a function on AWS, not on a developer's machine. AWS
/// Lambda sets `AWS_LAMBDA_INITIALIZATION_TYPE` and unpacks code to `/var/task`.
fn deployed(source: &dyn Source) -> bool {
    source.get("AWS_LAMBDA_INITIALIZATION_TYPE").is_some()
        || source
            .get("LAMBDA_TASK_ROOT")
            .is_some_and(|root| root == "/var/task")
}

/// Reads single settings by their kind.
struct Read<'a>(&'a dyn Source);

impl Read<'_> {
    fn text(&self, name: &'static str, default: &str) -> String {
        self.0
            .get(name)
            .filter(|v| !v.is_empty())
            .unwrap_or_else(|| default.to_owned())
    }

    fn optional_url(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        match self.text(name, "") {
            unset if unset.is_empty() => Ok(None),
            _ => self.url(name, "").map(Some),
        }
    }

    fn url(&self, name: &'static str, default: &str) -> Result<String, SettingsError> {
        let value = self.text(name, default);
        let trimmed = value.trim_end_matches('/');
        let host = trimmed
            .strip_prefix("https://")
            .or_else(|| trimmed.strip_prefix("http://"));
        if host.is_some_and(|h| !h.is_empty() && !h.contains(char::is_whitespace)) {
            Ok(trimmed.to_owned())
        } else {
            Err(SettingsError::Bad {
                name,
                value,
                allowed: URL,
            })
        }
    }

    fn time(&self, name: &'static str) -> Result<Option<Timestamp>, SettingsError> {
        let value = self.text(name, "");
        match Timestamp::parse_rfc3339(&value) {
            Some(at) => Ok(Some(at)),
            None if value.is_empty() => Ok(None),
            None => Err(SettingsError::Bad {
                name,
                value,
                allowed: "a time as `2026-05-28T10:00:00Z`",
            }),
        }
    }

    fn signatures(&self, name: &'static str) -> Result<Vec<CardSignature>, SettingsError> {
        let value = self.text(name, "");
        let read: Result<Vec<CardSignature>, _> =
            value.split_whitespace().map(str::parse).collect();
        read.map_err(|_| SettingsError::Bad {
            name,
            value,
            allowed: "what `a2a-local sign-card --print setting` prints",
        })
    }

    fn choice<T: Copy>(
        &self,
        name: &'static str,
        allowed: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, SettingsError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        let found = choices
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, choice)| *choice);
        found.ok_or(SettingsError::Bad {
            name,
            value,
            allowed,
        })
    }

    fn switch(&self, name: &'static str, default: bool) -> Result<bool, SettingsError> {
        self.choice(
            name,
            "`on` or `off`",
            &[("on", true), ("off", false)],
            default,
        )
    }

    fn size(&self, name: &'static str, default: usize) -> Result<usize, SettingsError> {
        self.above_zero(name, default)
    }

    /// A size of at most `most`; `allowed` is the text of the error.
    fn limited(
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

    fn count(&self, name: &'static str, default: u32) -> Result<u32, SettingsError> {
        self.above_zero(name, default)
    }

    fn above_zero<N>(&self, name: &'static str, default: N) -> Result<N, SettingsError>
    where
        N: std::str::FromStr + PartialOrd + Default,
    {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        match value.parse() {
            Ok(number) if number > N::default() => Ok(number),
            _ => Err(SettingsError::Bad {
                name,
                value,
                allowed: "a whole number above 0",
            }),
        }
    }

    fn seconds(&self, name: &'static str, default: f64) -> Result<Duration, SettingsError> {
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

    fn duration(&self, name: &'static str, default: Duration) -> Result<Duration, SettingsError> {
        let Some(value) = self.0.get(name) else {
            return Ok(default);
        };
        parse_duration(&value).ok_or(SettingsError::Bad {
            name,
            value,
            allowed: "a whole number with `ms`, `s`, `m`, `h` or `d`, from 1ms to 36500d",
        })
    }

    /// The engine's durations and sizes, without the secret.
    fn policy(&self, reach: Reach) -> Result<Policy, SettingsError> {
        let defaults = Policy::default();
        let (thread_ttl, state_ttl) = self.conversation(&defaults)?;
        let (of_answer, answer) = ("A2A_RESPONSE_MAX", defaults.response_max);
        Ok(Policy {
            task_ttl: self.duration("A2A_TASK_TTL", defaults.task_ttl)?,
            thread_ttl,
            state_ttl,
            thread_tombstone: self.duration("A2A_THREAD_TOMBSTONE", defaults.thread_tombstone)?,
            lease: self.duration("A2A_LEASE", defaults.lease)?,
            blocking_budget: self.duration("A2A_BLOCKING_BUDGET", defaults.blocking_budget)?,
            max_attempts: self.count("A2A_MAX_ATTEMPTS", defaults.max_attempts)?,
            flush_interval: self.duration("A2A_FLUSH_INTERVAL", defaults.flush_interval)?,
            stream_max_age: self.duration("A2A_STREAM_MAX_AGE", defaults.stream_max_age)?,
            inline_max: self.limited("A2A_INLINE_MAX", defaults.inline_max, INLINE_MOST)?,
            response_max: self.limited(of_answer, answer, RESPONSE_MOST)?,
            upload_max: self.limited("A2A_UPLOAD_MAX", defaults.upload_max, UPLOAD_MOST)?,
            state_max_bytes: self.size("A2A_STATE_MAX_BYTES", defaults.state_max_bytes)?,
            list_count_max: self.size("A2A_LIST_COUNT_MAX", defaults.list_count_max)?,
            reach,
            idempotent_message_id: self.switch("A2A_IDEMPOTENT_MESSAGE_ID", false)?,
            ..defaults
        })
    }

    /// The lifetime of a thread, and that of its state.
    fn conversation(&self, defaults: &Policy) -> Result<(Duration, Duration), SettingsError> {
        let (of_thread, of_state) = ("A2A_THREAD_TTL", "A2A_STATE_TTL");
        let thread = self.duration(of_thread, defaults.thread_ttl)?;
        let state = self.duration(of_state, defaults.state_ttl)?;
        if state > thread {
            return Err(SettingsError::StateOutlivesThread {
                state: self.text(of_state, &format!("{:?}", defaults.state_ttl)),
                thread: self.text(of_thread, &format!("{:?}", defaults.thread_ttl)),
            });
        }
        Ok((thread, state))
    }

    fn secret(&self, auth: AuthMode) -> Result<Vec<u8>, SettingsError> {
        let (name, allowed) = (
            "A2A_SECRET_KEY",
            "at least 32 characters, the same for all functions",
        );
        match self.0.get(name) {
            Some(value) if value.len() >= 32 => Ok(value.into_bytes()),
            // The error ends in the log, so it must not hold the secret.
            Some(_) => Err(SettingsError::Bad {
                name,
                value: "(too short)".to_owned(),
                allowed,
            }),
            None if auth == AuthMode::Dev => {
                Ok(b"a2a-lambda development key, not a secret".to_vec())
            }
            None => Err(SettingsError::Missing { name, allowed }),
        }
    }
}

/// Reads a whole number with its unit: `250ms`, `2s`, `5m`, `24h`, `30d`.
fn parse_duration(text: &str) -> Option<Duration> {
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

#[cfg(test)]
mod tests;
