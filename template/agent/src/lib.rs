//! The agent and its skills.

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the skills share: here go clients, configuration and secrets.
pub struct Menu {
    /// The dishes, with their prices in cents.
    pub dishes: Vec<(&'static str, u32)>,
}

impl Menu {
    /// Reads the menu. A function that runs skills calls this once, at its start.
    async fn load() -> Result<Self, std::io::Error> {
        Ok(Self {
            dishes: vec![("soup", 450), ("pasta", 1150), ("cake", 600)],
        })
    }
}

/// Says what a dish costs.
#[skill(id = "price", tags = ["menu"], examples = ["pasta"], effect = "read")]
pub async fn price(menu: State<Menu>, dish: String) -> AgentResult<String> {
    let found = menu.dishes.iter().find(|(name, _)| *name == dish.trim());
    let (name, cents) = found.ok_or_else(|| {
        AgentError::domain("NOT_ON_THE_MENU", format!("there is no `{}`", dish.trim()))
    })?;
    Ok(format!("{name}: {}.{:02} EUR", cents / 100, cents % 100))
}

/// A table to book.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The day and the time.
    pub when: String,
    /// The number of guests. The skill asks if it is not given.
    pub guests: Option<u32>,
}

/// A booked table.
#[derive(Serialize, JsonSchema)]
pub struct Booking {
    /// The day and the time.
    pub when: String,
    /// The number of guests.
    pub guests: u32,
}

/// The question that waits for its answer.
#[derive(Serialize, Deserialize)]
pub struct HowMany {
    when: String,
}

impl SkillSlot for HowMany {}

// It writes. So if a language model chooses it and writes its input, the user is asked first. A skill
// that only reads is declared `effect = "read"`; `accepts_routed = true` is for one that writes and may
// run on the words of a model without that question.
/// Books a table, and asks for the number of guests.
#[skill(id = "book", tags = ["table"], cancel_words = true)]
pub struct Book;

impl SkillHandler<HowMany> for Book {
    type Input = Table;
    type Output = Booking;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        table: Table,
    ) -> AgentResult<OnRequestResult<Booking, HowMany>> {
        let Table { when, guests } = table;
        match guests {
            Some(guests) => book(cx, when, guests).await.map(Into::into),
            None => OnRequestResult::ask("How many guests?", HowMany { when }),
        }
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        asked: HowMany,
        answer: Content,
    ) -> AgentResult<OnInputResult<Booking, HowMany>> {
        match answer.text()?.trim().parse() {
            Ok(guests) => book(cx, asked.when, guests).await,
            Err(_) => OnInputResult::ask("Please answer with a number.", asked),
        }
    }
}

/// Books in a step: after a crash the turn runs again, and the step does not. Programs get the
/// booking, and people a line.
async fn book(
    cx: &TaskContext<'_>,
    when: String,
    guests: u32,
) -> AgentResult<OnInputResult<Booking, HowMany>> {
    cx.step("book", async { Ok(()) }).await?;
    let line = format!("Booked a table for {guests}: {when:.80}");
    OnInputResult::done(Booking { when, guests }).saying(line)
}

/// The agent.
///
/// # Errors
/// [`BuildError`] when it cannot be published.
pub fn agent() -> Result<AgentDefinition, BuildError> {
    Agent::builder("restaurant")
        .description("Tells prices and books tables.")
        .state(Menu::load)
        .skill(price)
        .skill(Book)
        .build()
}
