//! A skill with two functions and two workers of a model, each with tools.

use a2a_lambda::llm::{LlmBudget, LlmFunction, LlmTool, LlmWorker};
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order, as the letter says it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    customer: String,
    lines: Vec<Line>,
}

/// One line of an order.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Line {
    /// The number of the article, such as `A-1`.
    sku: String,
    pieces: u32,
}

/// Whether an order can be processed.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Verdict {
    valid: bool,
    /// What is wrong, for the customer.
    reason: Option<String>,
}

/// An order with prices.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Priced {
    lines: Vec<PricedLine>,
}

/// A line with its price.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PricedLine {
    sku: String,
    pieces: u32,
    /// The price of one piece, in cents.
    cents: u32,
    on_stock: bool,
}

/// The offer to the customer.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Offer {
    text: String,
    total_cents: u32,
}

/// An article.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Article {
    /// The number of the article, such as `A-1`.
    sku: String,
}

/// The articles: number, price in cents, pieces on stock.
const ARTICLES: [(&str, u32, u32); 2] = [("A-1", 250, 100), ("B-2", 1200, 0)];

fn article(sku: &str) -> AgentResult<(u32, u32)> {
    let entry = ARTICLES.iter().find(|(article, ..)| *article == sku);
    match entry {
        Some((_, cents, pieces)) => Ok((*cents, *pieces)),
        None => Err(AgentError::invalid_input(format!(
            "there is no article `{sku}`"
        ))),
    }
}

pub(super) fn price() -> LlmTool {
    LlmTool::new(
        "price",
        "The price of one piece, in cents.",
        |of: Article| async move { article(&of.sku).map(|(cents, _)| cents) },
    )
}

pub(super) fn stock() -> LlmTool {
    LlmTool::new(
        "stock",
        "How many pieces are on stock.",
        |of: Article| async move { article(&of.sku).map(|(_, pieces)| pieces) },
    )
}

/// Converts cents to euros.
#[skill(id = "euros", tags = ["tool"], effect = "read")]
async fn euros(cents: u32) -> AgentResult<String> {
    Ok(format!("{}.{:02} €", cents / 100, cents % 100))
}

fn extract_data() -> LlmFunction<Order> {
    LlmFunction::new("Extract the order from the letter.")
}

fn validate_data() -> LlmFunction<Verdict> {
    LlmFunction::new("Is this a complete order of at least one piece?")
}

fn enrich_with_tools() -> LlmWorker<Priced> {
    let worker = LlmWorker::new("Look up price and stock of each line.");
    worker.tool(price()).tool(stock())
}

fn generate_output() -> LlmWorker<Offer> {
    let worker = LlmWorker::new("Write a short offer. Write sums in euros.").skill(euros);
    worker.budget(LlmBudget::default().turns(6))
}

/// Makes an offer from the letter of a customer.
#[skill(
    id = "process_order",
    name = "Order desk",
    tags = ["orders", "offer"],
    examples = ["Dear shop, please send three pieces of A-1. Ann"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(super) async fn process_order(
    cx: &mut TaskContext<'_>,
    letter: String,
) -> AgentResult<OnRequestResult<()>> {
    let order = extract_data().run(cx, &letter).await?;
    let verdict = validate_data().run(cx, &order).await?;
    if !verdict.valid {
        let reason = verdict.reason;
        return OnRequestResult::reject(reason.unwrap_or_else(|| "it is no order".to_owned()));
    }
    let quote = enrich_with_tools().run(cx, &order).await?;
    let offer = generate_output().run(cx, (&order.customer, &quote)).await?;
    Ok(OnRequestResult::Completed {
        message: Some("Processing complete".into()),
        output: (),
        artifacts: vec![Artifact::from_json("result.json", &offer)?],
    })
}
