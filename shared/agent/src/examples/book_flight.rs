//! A skill that asks for missing input: it skips the question for a value it already has.

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Books a flight, and asks for what it was not told.
#[skill(
    id = "book-flight",
    name = "Flight booking",
    tags = ["example", "travel", "flight"],
    examples = ["Book a flight"],
    text = ["book a flight to {to} on {on}", "book a flight to {to}"],
    cancel_words = true,
)]
pub(crate) struct BookFlight;

/// What is known of a flight.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flight {
    /// Where to.
    to: Option<String>,
    /// When.
    on: Option<String>,
}

/// A booked flight.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Booking {
    to: String,
    on: String,
}

/// The open question, with the values that are already known.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    Where { on: Option<String> },
    When { to: String },
}

/// The slot of version 1. It always asked for the destination first, so it never had a date
/// without one.
#[derive(Deserialize)]
enum FirstAsk {
    Where,
    When(String),
}

impl SkillSlot for Ask {
    const VERSION: u32 = 2;

    fn migrate(from: u32, value: Value) -> Option<Self> {
        if from != 1 {
            return None;
        }
        Some(match serde_json::from_value(value).ok()? {
            FirstAsk::Where => Self::Where { on: None },
            FirstAsk::When(to) => Self::When { to },
        })
    }
}

impl SkillHandler<Ask> for BookFlight {
    type Input = TextOr<Flight>;
    type Output = Booking;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        input: TextOr<Flight>,
    ) -> AgentResult<OnRequestResult<Booking, Ask>> {
        let flight = match input {
            TextOr::Data(flight) => flight,
            TextOr::Text(_) => Flight::default(),
        };
        next(flight).map(Into::into)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: Ask,
        content: Content,
    ) -> AgentResult<OnInputResult<Booking, Ask>> {
        let answer = content.text()?.trim();
        let answer = (!answer.is_empty()).then(|| answer.to_owned());
        next(match slot {
            Ask::Where { on } => Flight { to: answer, on },
            Ask::When { to } => Flight {
                to: Some(to),
                on: answer,
            },
        })
    }
}

/// Asks for the next missing value, or completes with the booking.
fn next(flight: Flight) -> AgentResult<OnInputResult<Booking, Ask>> {
    match flight {
        Flight { to: None, on } => OnInputResult::ask("Where to?", Ask::Where { on }),
        Flight {
            to: Some(to),
            on: None,
        } => OnInputResult::ask("When?", Ask::When { to }),
        Flight {
            to: Some(to),
            on: Some(on),
        } => {
            let line = format!("Booked a flight to {to:.80} for {on:.80}");
            OnInputResult::done(Booking { to, on }).saying(line)
        }
    }
}
