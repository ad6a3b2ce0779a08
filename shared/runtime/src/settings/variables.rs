//! Reads the variables into a struct with serde: the name of a field in capitals is that of its
//! variable, and its type decides what is allowed.
//!
//! A variable that is empty counts as one that is not set. An `A2A_…` variable that is no field is
//! reported: most are misspelt.

use super::{Environment, ModelProvider, Routing, SettingsError, Source};
use crate::auth::AuthMode;
use crate::engine::CallRate;
use crate::origin::{CorsOrigin, parse_url};
use crate::task::{Owner, Subject, TenantId};
use crate::telemetry::metrics::MetricsMode;
use a2a_lambda_wire::{CardShape, CardSignature};
use serde::de::value::MapDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// The beginning of every name, except those of other programs.
const PREFIX: &str = "A2A_";
/// The settings that are read elsewhere: by the functions, the local agent and the providers of
/// models.
const ELSEWHERE: [&str; 5] = [
    "A2A_FUNCTION",
    "A2A_LOG",
    "A2A_MODEL_KEY",
    "A2A_SETTINGS",
    "A2A_SKILL_SECRET",
];
/// The rule of a URL.
pub(super) const URL: &str = "an http or https URL";
/// The longest duration, in milliseconds: a hundred years. A longer one could lead
/// to a time that has no date in RFC 3339.
const LONGEST: u64 = 36_500 * 86_400_000;
/// 5 GiB: the largest object that S3 takes in one PUT.
const UPLOAD_MOST: usize = 5 * 1024 * 1024 * 1024;

/// Every variable that [`Settings`](super::Settings) has a value of.
#[derive(Clone, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) struct Variables {
    pub(super) a2a_table: Option<String>,
    pub(super) a2a_bucket: Option<String>,
    pub(super) a2a_public_url: Option<Url>,
    pub(super) a2a_auth: Option<AuthMode>,
    pub(super) a2a_cors_origin: Option<Origin>,
    pub(super) a2a_jwt_issuer: Option<String>,
    pub(super) a2a_jwt_audience: Option<String>,
    pub(super) a2a_jwt_types: Option<Words>,
    pub(super) a2a_jwt_tenant_claim: Option<String>,
    pub(super) a2a_jwt_scope_claims: Option<Words>,
    pub(super) a2a_jwt_tier_claim: Option<String>,
    pub(super) a2a_first_key: Option<String>,
    pub(super) a2a_first_key_tenant: Option<FirstOwner>,
    pub(super) a2a_secret_key_id: Option<String>,
    pub(super) a2a_secret_key: Option<String>,
    pub(super) a2a_card: Option<CardShape>,
    pub(super) a2a_card_signatures: Option<Signatures>,
    pub(super) a2a_task_ttl: Option<Span>,
    pub(super) a2a_thread_ttl: Option<Span>,
    pub(super) a2a_state_ttl: Option<Span>,
    pub(super) a2a_work_queue_url: Option<Url>,
    pub(super) a2a_workers: Option<Number>,
    pub(super) a2a_worker_share: Option<Percent>,
    pub(super) a2a_streaming: Option<Switch>,
    pub(super) a2a_push: Option<Switch>,
    pub(super) a2a_push_queue_url: Option<Url>,
    pub(super) a2a_dead_letters_url: Option<Url>,
    pub(super) a2a_push_allow_private: Option<Switch>,
    pub(super) a2a_metrics: Option<MetricsMode>,
    pub(super) a2a_sweep_interval: Option<Span>,
    pub(super) a2a_blocking_budget: Option<Span>,
    pub(super) a2a_task_run_max: Option<Span>,
    pub(super) a2a_lease: Option<Span>,
    pub(super) a2a_flush_interval: Option<Span>,
    pub(super) a2a_upload_max: Option<UploadSize>,
    pub(super) a2a_stored_per_day: Option<LargeNumber>,
    pub(super) a2a_tokens_per_day: Option<LargeNumber>,
    pub(super) a2a_task_tokens: Option<LargeNumber>,
    pub(super) a2a_rate_limit: Option<Number>,
    pub(super) a2a_rate_tiers: Option<Rates>,
    pub(super) a2a_rate_skills: Option<Rates>,
    pub(super) a2a_streams_per_tenant: Option<Number>,
    pub(super) a2a_concurrency: Option<Pool>,
    pub(super) a2a_idempotent_message_id: Option<Switch>,
    pub(super) a2a_model_id: Option<String>,
    pub(super) a2a_model_provider: Option<ModelProvider>,
    pub(super) a2a_model_endpoint_url: Option<Url>,
    pub(super) a2a_routing: Option<Routing>,
    pub(super) a2a_router_model_id: Option<String>,
    pub(super) a2a_model_options: Option<Object>,
    pub(super) tck_streaming_timeout: Option<Seconds>,
}

impl Variables {
    pub(super) fn read(source: &dyn Source) -> Result<Self, SettingsError> {
        let last = Cell::default();
        let variables = Self::names().iter().filter_map(|name| {
            let value = source.get(name).filter(|value| !value.is_empty())?;
            last.set((*name, value.clone()));
            Some((*name, Value::String(value)))
        });
        Self::deserialize(MapDeserializer::new(variables)).map_err(|error| {
            // Serde reads a value before it asks for the next one, and stops at the first error.
            let (name, value) = last.take();
            let rule = error.to_string();
            // Serde's list of choices, without the value.
            let choice = rule.strip_prefix(&format!("unknown variant `{value}`, expected "));
            let rule = choice.unwrap_or(&rule).to_owned();
            SettingsError::Bad { name, rule }
        })
    }

    /// The names of all variables.
    pub(super) fn names() -> &'static [&'static str] {
        let mut names: &[&str] = &[];
        // An error ends it as soon as the names are known.
        drop(Self::deserialize(FieldNames(&mut names)));
        names
    }
}

/// Keeps the names of the fields that a struct asks for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there are no values here"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Declares forms of text: the type of the value, the rule for the error, and what reads it.
macro_rules! forms {
    ($($form:ident($value:ty): $rule:expr, $parse:expr;)*) => {$(
        #[derive(Clone)]
        pub(super) struct $form($value);

        impl<'de> Deserialize<'de> for $form {
            fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
                let parse: fn(&str) -> Option<$value> = $parse;
                let value = parse(&String::deserialize(text)?);
                value.map(Self).ok_or_else(|| D::Error::custom($rule))
            }
        }

        impl From<$form> for $value {
            fn from($form(value): $form) -> Self {
                value
            }
        }
    )*};
}

forms! {
    Switch(bool): "`on` or `off`", |text| match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    Span(Duration): "a whole number with `ms`, `s`, `m`, `h` or `d`, from 1ms to 36500d",
        parse_duration;
    Seconds(Duration): "seconds, 0-3600", |text| {
        let seconds = text.parse().ok().filter(|it| (0.0..=3600.0).contains(it));
        seconds.map(Duration::from_secs_f64)
    };
    Number(u32): "a whole number", |text| text.parse().ok();
    LargeNumber(u64): "a whole number", |text| text.parse().ok();
    Percent(u32): "a whole number from 1 to 100",
        |text| text.parse().ok().filter(|it| (1..=100).contains(it));
    UploadSize(usize): "a whole number from 1 to 5368709120",
        |text| text.parse().ok().filter(|it| (1..=UPLOAD_MOST).contains(it));
    Words(Vec<String>): "words with commas", |text| Some(words(text));
    Object(Map<String, Value>): "a JSON object", |text| serde_json::from_str(text).ok();
    Url(String): URL, |text| parse_url(text).map(str::to_owned);
    Origin(CorsOrigin): "`*`, or an origin as `https://app.example.com`, without a path",
        CorsOrigin::parse;
    Signatures(Vec<CardSignature>): "what `a2a-local sign-card --print setting` prints",
        |text| text.split_whitespace().map(|it| it.parse().ok()).collect();
    FirstOwner(Owner): "a tenant", first_owner;
    Rates(BTreeMap<String, CallRate>): "names with calls a minute, as `gold=1000,free=20`", rates;
    Pool((String, u32)): "a stream pool with its concurrency, as `account=10`; 0 is off", |text| {
        let (pool, calls) = text.split_once('=')?;
        Some((pool.to_owned(), calls.parse().ok()?))
    };
}

/// The value of a variable, or the default of one that is not set.
pub(super) fn or<V>(variable: Option<impl Into<V>>, default: V) -> V {
    variable.map_or(default, Into::into)
}

/// Words with commas between them.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(',').map(|it| it.trim().to_owned()).collect()
}

/// The callers with the first key of this tenant.
pub(super) fn first_owner(tenant: &str) -> Option<Owner> {
    let (tenant, subject) = (TenantId::parse(tenant).ok()?, Subject::parse("owner").ok()?);
    Some(Owner { tenant, subject })
}

/// Rates by name, from `gold=1000,free=20`.
fn rates(text: &str) -> Option<BTreeMap<String, CallRate>> {
    let mut rates = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (of, rate) = rate(entry)?;
        let is_new = rates.insert(of.to_owned(), rate).is_none();
        is_new.then_some(())?;
    }
    Some(rates)
}

/// A name and its rate, from `gold=1000`.
fn rate(entry: &str) -> Option<(&str, CallRate)> {
    let (of, calls) = entry.split_once('=')?;
    let (of, calls) = (of.trim(), calls.trim().parse().ok()?);
    (!of.is_empty() && calls > 0).then_some((of, CallRate::per_minute(calls)))
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

/// Whether a variable is a setting, also one of the local agent.
pub(super) fn is_setting(name: &str) -> bool {
    Variables::names().contains(&name) || ELSEWHERE.contains(&name)
}

/// Logs a warning with the `A2A_…` variables that are not settings. The start
/// continues, since they may belong to another program.
pub fn warn_of_unknown() {
    let names = unknown(Environment::names());
    if !names.is_empty() {
        tracing::warn!("ignored unknown settings: {}", names.join(", "));
    }
}

/// Those of `names` that begin with [`PREFIX`] and are no settings, sorted.
fn unknown(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_unknown = |name: &String| name.starts_with(PREFIX) && !is_setting(name);
    let mut unknown: Vec<String> = names.filter(is_unknown).collect();
    unknown.sort();
    unknown
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Source};
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// A source with development identities only, which records the names it is
    /// asked for.
    #[derive(Default)]
    struct Asked(RefCell<BTreeSet<String>>);

    impl Source for Asked {
        fn get(&self, name: &str) -> Option<String> {
            self.0.borrow_mut().insert(name.to_owned());
            (name == "A2A_AUTH").then(|| "dev".to_owned())
        }
    }

    #[test]
    fn only_misspelt_settings_are_reported() {
        let set = [
            "A2A_LEAES",
            "A2A_LEASE",
            "TCK_STREAMING_TIMEOUT",
            "PATH",
            "A2A_",
        ];
        let names = unknown(set.into_iter().map(str::to_owned));
        assert_eq!(names, ["A2A_", "A2A_LEAES"]);
    }

    #[test]
    fn the_list_of_names_is_exactly_what_the_code_reads() {
        let asked = Asked::default();
        Settings::read(&asked).unwrap();
        let mut read = asked.0.into_inner();
        read.retain(|name| name.starts_with(PREFIX));
        read.extend(ELSEWHERE.map(str::to_owned));
        let names = Variables::names().iter().chain(&ELSEWHERE);
        let names = names.filter(|name| name.starts_with(PREFIX));
        assert_eq!(
            read,
            names.map(ToString::to_string).collect::<BTreeSet<_>>()
        );
    }
}
