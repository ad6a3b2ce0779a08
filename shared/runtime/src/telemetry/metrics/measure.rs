//! Turns the events of calls, turns, sweeps and starts into measured amounts.

use super::family::Family;
use super::registry::UNROUTED;
use crate::telemetry::events::{CALL, LEFT_OUT, MODEL, START, SWEEP, TURN};
use std::fmt::Debug;
use tracing::field::{Field, Visit};

/// An amount of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Measurement<'a> {
    pub(super) family: Family,
    /// The label values in the order of the metric's labels.
    pub(super) labels: Vec<&'a str>,
    /// The amount to add, or the value of a histogram in milliseconds.
    pub(super) amount: u64,
}

/// The fields of one event that metrics need.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields {
    pub(super) method: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) skill: Option<String>,
    pub(super) route: Option<String>,
    pub(super) state: Option<String>,
    pub(super) error: Option<String>,
    pub(super) function: Option<String>,
    pub(super) status: Option<String>,
    pub(super) ms: Option<u64>,
    /// The attempt of a turn. A call without it has run none.
    pub(super) attempt: Option<u64>,
    pub(super) turn_ms: Option<u64>,
    pub(super) tokens: Option<u64>,
    pub(super) states_cleaned: Option<u64>,
    pub(super) tasks_cleaned: Option<u64>,
    pub(super) turns_resent: Option<u64>,
    pub(super) unknown_settings: Option<u64>,
    pub(super) read_units: Option<f64>,
    pub(super) write_units: Option<f64>,
}

impl Fields {
    fn text(&mut self, name: &str, value: String) {
        match name {
            "a2a.method" => self.method = Some(value),
            "a2a.tenant" => self.tenant = Some(value),
            "a2a.skill" => self.skill = Some(value),
            "a2a.route" => self.route = Some(value),
            "a2a.state" => self.state = Some(value),
            "a2a.error" => self.error = Some(value),
            "function" => self.function = Some(value),
            _ => {}
        }
    }

    /// The skill, or the word for none.
    pub(super) fn skill(&self) -> &str {
        self.skill.as_deref().unwrap_or(UNROUTED)
    }

    /// What an event with this target measured.
    pub(super) fn measured(&self, target: &str) -> Vec<Measurement<'_>> {
        match target {
            CALL | LEFT_OUT => self.call(),
            TURN => self.turn(self.ms).chain(self.units()).collect(),
            MODEL => self.model().collect(),
            SWEEP => self.sweep(),
            START => self.start(),
            _ => Vec::new(),
        }
    }

    fn call(&self) -> Vec<Measurement<'_>> {
        let method = self.method.as_deref().unwrap_or("none");
        let status = self.status.as_deref().unwrap_or("0");
        let mut all = vec![Measurement {
            family: Family::Requests,
            labels: vec![method, self.skill(), status],
            amount: 1,
        }];
        all.extend(self.ms.map(|ms| Measurement {
            family: Family::RequestDuration,
            labels: vec![method, self.skill()],
            amount: ms,
        }));
        if let Some(reason) = &self.error {
            all.push(Measurement {
                family: Family::Errors,
                labels: vec![self.skill(), reason],
                amount: 1,
            });
            if reason == "RATE_LIMITED" {
                let tenant = self.tenant.as_deref().unwrap_or("none");
                all.push(Measurement {
                    family: Family::RateLimited,
                    labels: vec![tenant, self.skill()],
                    amount: 1,
                });
            }
        }
        all.extend(self.route.as_deref().map(|how| Measurement {
            family: Family::Routes,
            labels: vec![how, self.skill()],
            amount: 1,
        }));
        if self.attempt.is_some() {
            all.extend(self.turn(self.turn_ms));
        }
        all.extend(self.units());
        all
    }

    fn model(&self) -> impl Iterator<Item = Measurement<'_>> {
        let tokens = self.tokens.map(|tokens| Measurement {
            family: Family::ModelTokens,
            labels: vec![self.skill()],
            amount: tokens,
        });
        tokens.into_iter()
    }

    fn turn(&self, ms: Option<u64>) -> impl Iterator<Item = Measurement<'_>> {
        let state = self.state.as_deref().unwrap_or("none");
        let turns = Measurement {
            family: Family::Turns,
            labels: vec![self.skill(), state],
            amount: 1,
        };
        let took = ms.map(|ms| Measurement {
            family: Family::TurnDuration,
            labels: vec![self.skill()],
            amount: ms,
        });
        [turns].into_iter().chain(took)
    }

    fn sweep(&self) -> Vec<Measurement<'_>> {
        let cleaned = [
            (Family::StatesCleaned, self.states_cleaned),
            (Family::TasksCleaned, self.tasks_cleaned),
            (Family::TurnsResent, self.turns_resent),
        ];
        let measured = |(family, amount): (_, Option<u64>)| Measurement {
            family,
            labels: Vec::new(),
            amount: amount.unwrap_or_default(),
        };
        cleaned.map(measured).into()
    }

    fn start(&self) -> Vec<Measurement<'_>> {
        let labels = vec![self.function.as_deref().unwrap_or("none")];
        let mut all = vec![Measurement {
            family: Family::ColdStarts,
            labels: labels.clone(),
            amount: 1,
        }];
        all.extend(self.unknown_settings.map(|unknown| Measurement {
            family: Family::UnknownSettings,
            labels: labels.clone(),
            amount: unknown,
        }));
        all.extend(self.ms.map(|ms| Measurement {
            family: Family::ColdStart,
            labels,
            amount: ms,
        }));
        all
    }

    fn units(&self) -> impl Iterator<Item = Measurement<'_>> {
        let kinds = [("read", self.read_units), ("write", self.write_units)];
        kinds.into_iter().filter_map(|(kind, units)| {
            let amount = thousandths(units?)?;
            Some(Measurement {
                family: Family::Units,
                labels: vec![kind],
                amount,
            })
        })
    }
}

/// A number of units in thousandths; `None` if there are none.
fn thousandths(units: f64) -> Option<u64> {
    // The text of a number that is not finite does not parse.
    let rounded = format!("{:.0}", units * 1_000.0);
    rounded.parse().ok().filter(|amount| *amount > 0)
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field.name(), format!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match field.name() {
            "units.read" => self.read_units = Some(value),
            "units.write" => self.write_units = Some(value),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "http.response.status_code" => self.status = Some(value.to_string()),
            "ms" => self.ms = Some(value),
            "a2a.attempt" => self.attempt = Some(value),
            "a2a.turn_ms" => self.turn_ms = Some(value),
            "gen_ai.usage.input_tokens" | "gen_ai.usage.output_tokens" => {
                let before = self.tokens.unwrap_or_default();
                self.tokens = Some(before.saturating_add(value));
            }
            "a2a_states_cleaned_total" => self.states_cleaned = Some(value),
            "sweep.tasks_removed" => self.tasks_cleaned = Some(value),
            "sweep.resent" => self.turns_resent = Some(value),
            "settings.unknown" => self.unknown_settings = Some(value),
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if let Ok(value) = u64::try_from(value) {
            self.record_u64(field, value);
        }
    }
}
