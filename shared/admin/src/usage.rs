//! The command `usage`: prints the tokens of models, and what they cost.

use crate::deployment::{DataFolders, FolderUse, Table};
use crate::output::CommandError;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::limits::{DayUse, Limits};
use a2a_lambda::task::TokenUse;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

/// Which days, and for what prices.
#[derive(Debug, Clone, clap::Args)]
pub struct UsageOptions {
    /// The last days (UTC), with today.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=400))]
    pub days: i64,
    /// Prices of a million tokens, as JSON: {"MODEL": {"in": 3, "out": 15, "cached": 0.3}}.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Where the days are.
    #[command(flatten)]
    pub table: Table,
}

/// What the calls of a model cost; `None` without its prices. Cached tokens may have one.
#[expect(clippy::cast_precision_loss, reason = "money is rounded anyway")]
fn money(prices: &Value, model: &str, tokens: TokenUse) -> Option<f64> {
    let price = |name| prices.get(model)?.get(name)?.as_f64();
    let (input, output) = (price("in")?, price("out")?);
    let cache = price("cached").unwrap_or(input) * tokens.cached as f64;
    let input = input * tokens.input.saturating_sub(tokens.cached) as f64;
    Some((cache + input + output * tokens.output as f64) / 1e6)
}

/// Prints a line for each tenant and model.
///
/// # Errors
/// When the prices or the days cannot be read.
pub(crate) async fn run(
    options: &UsageOptions,
    folders: &dyn DataFolders,
) -> Result<(), CommandError> {
    let prices = match &options.prices {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)
            .map_err(|error| format!("failed to read the prices: {error}"))?,
        None => Value::Null,
    };
    let connection = options.table.reach(FolderUse::Beside, folders).await?;
    let today = SystemClock.now().day();
    let limits = Limits::new(Arc::new(connection.table.clone()));
    let uses = limits
        .day_uses(None, today - options.days + 1..=today)
        .await;
    connection.stop().await;
    let uses = uses.map_err(|error| format!("failed to read the days: {error}"))?;
    let mut out = io::stdout();
    writeln!(out, "tenant\tmodel\tcalls\tin\tout\tcached\tmoney")?;
    for ((tenant, model), tokens) in sums(&uses) {
        let money = money(&prices, &model, tokens);
        let money = money.map_or_else(|| "-".to_owned(), |money| format!("{money:.2}"));
        let TokenUse {
            calls,
            input,
            output,
            cached,
        } = tokens;
        writeln!(
            out,
            "{tenant}\t{model}\t{calls}\t{input}\t{output}\t{cached}\t{money}"
        )?;
    }
    Ok(())
}

/// The sums of all days by tenant and model. A reservation of a call that still runs, or that died,
/// has no model.
fn sums(uses: &[DayUse]) -> BTreeMap<(String, String), TokenUse> {
    let mut sums: BTreeMap<_, TokenUse> = BTreeMap::new();
    for day_use in uses {
        let mut add = |model: &str, tokens| {
            let key = (day_use.tenant.to_string(), model.to_owned());
            sums.entry(key).or_default().add(tokens);
        };
        let mut sum = 0;
        for (model, tokens) in &day_use.models {
            sum += tokens.tokens();
            add(model, *tokens);
        }
        let input = day_use.tokens.saturating_sub(sum);
        if input > 0 {
            let tokens = TokenUse::default();
            add("(reserved)", TokenUse { input, ..tokens });
        }
    }
    sums
}
