//! Turns the events of calls, turns, sweeps and starts into measured amounts.

use super::family::Family;
use super::registry::UNROUTED;
use crate::telemetry::events::{CALL, LEFT_OUT, SCARCE, START, SWEEP, TURN};
use a2a_lambda_skill::MODEL;
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
    pub(super) model: Option<String>,
    pub(super) route: Option<String>,
    pub(super) state: Option<String>,
    pub(super) error: Option<String>,
    /// The error code of the task that a call has failed.
    pub(super) task_error: Option<String>,
    pub(super) class: Option<String>,
    pub(super) turn_class: Option<String>,
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
            "gen_ai.request.model" => self.model = Some(value),
            "a2a.route" => self.route = Some(value),
            "a2a.state" => self.state = Some(value),
            "a2a.error" => self.error = Some(value),
            "a2a.task_error" => self.task_error = Some(value),
            "class" => self.class = Some(value),
            "turn_class" => self.turn_class = Some(value),
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
            TURN => {
                let errors = self.errors(self.error.as_deref(), self.class.as_deref());
                self.turn(self.ms)
                    .chain(errors)
                    .chain(self.units())
                    .collect()
            }
            MODEL => self.model().collect(),
            SWEEP => self.sweep(),
            START => self.start(),
            SCARCE => {
                let tenant = self.tenant.as_deref().unwrap_or("none");
                vec![measured(Family::ScarceDays, [tenant], 1)]
            }
            _ => Vec::new(),
        }
    }

    fn call(&self) -> Vec<Measurement<'_>> {
        let (method, skill) = (self.method.as_deref().unwrap_or("none"), self.skill());
        let status = self.status.as_deref().unwrap_or("0");
        let mut all = vec![measured(Family::Requests, [method, skill, status], 1)];
        let took = |ms| measured(Family::RequestDuration, [method, skill], ms);
        all.extend(self.ms.map(took));
        // A refusal, and the failure of the task.
        all.extend(self.errors(self.error.as_deref(), self.class.as_deref()));
        all.extend(self.errors(self.task_error.as_deref(), self.turn_class.as_deref()));
        if self.error.as_deref() == Some("RATE_LIMITED") {
            let tenant = self.tenant.as_deref().unwrap_or("none");
            all.push(measured(Family::RateLimited, [tenant, skill], 1));
        }
        let how = self.route.as_deref();
        all.extend(how.map(|how| measured(Family::Routes, [how, skill], 1)));
        if self.attempt.is_some() {
            all.extend(self.turn(self.turn_ms));
        }
        all.extend(self.units());
        all
    }

    fn model(&self) -> impl Iterator<Item = Measurement<'_>> {
        let model = self.model.as_deref().filter(|model| !model.is_empty());
        let labels = [model.unwrap_or("unknown"), self.skill()];
        let tokens = move |tokens| measured(Family::ModelTokens, labels, tokens);
        self.tokens.map(tokens).into_iter()
    }

    fn errors<'a>(
        &'a self,
        reason: Option<&'a str>,
        class: Option<&'a str>,
    ) -> Option<Measurement<'a>> {
        let (reason, class) = (reason?, class.unwrap_or("none"));
        Some(measured(Family::Errors, [self.skill(), reason, class], 1))
    }

    fn turn(&self, ms: Option<u64>) -> impl Iterator<Item = Measurement<'_>> {
        let state = self.state.as_deref().unwrap_or("none");
        let turns = measured(Family::Turns, [self.skill(), state], 1);
        let took = ms.map(|ms| measured(Family::TurnDuration, [self.skill()], ms));
        [turns].into_iter().chain(took)
    }

    fn sweep(&self) -> Vec<Measurement<'_>> {
        let counts = [
            (Family::StatesCleaned, self.states_cleaned),
            (Family::TasksCleaned, self.tasks_cleaned),
            (Family::TurnsResent, self.turns_resent),
        ];
        let amounts =
            |(family, amount): (_, Option<u64>)| measured(family, [], amount.unwrap_or_default());
        counts.map(amounts).into()
    }

    fn start(&self) -> Vec<Measurement<'_>> {
        let function = self.function.as_deref().unwrap_or("none");
        let mut all = vec![measured(Family::ColdStarts, [function], 1)];
        let unknown = |unknown| measured(Family::UnknownSettings, [function], unknown);
        all.extend(self.unknown_settings.map(unknown));
        let took = |ms| measured(Family::ColdStart, [function], ms);
        all.extend(self.ms.map(took));
        all
    }

    fn units(&self) -> impl Iterator<Item = Measurement<'_>> {
        let kinds = [("read", self.read_units), ("write", self.write_units)];
        kinds
            .into_iter()
            .filter_map(|(kind, units)| Some(measured(Family::Units, [kind], thousandths(units?)?)))
    }
}

fn measured<'a, const N: usize>(
    family: Family,
    labels: [&'a str; N],
    amount: u64,
) -> Measurement<'a> {
    Measurement {
        family,
        labels: labels.into(),
        amount,
    }
}

/// A number of units in thousandths; `None` if there are none.
fn thousandths(units: f64) -> Option<u64> {
    // The text of a number that is not finite does not parse.
    let text = format!("{:.0}", units * 1_000.0);
    text.parse().ok().filter(|amount| *amount > 0)
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
