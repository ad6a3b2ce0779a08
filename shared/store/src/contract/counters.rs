//! The contract of counters.

use super::{Broken, Case};
use crate::counters::{COUNTER_SHARDS, Counter};
use futures::future::join_all;
use std::collections::BTreeMap;

fn counter(series: &str, amounts: &[(&str, u64)]) -> Counter {
    let amounts = amounts.iter();
    let amounts = amounts.map(|(name, amount)| ((*name).to_owned(), *amount));
    Counter {
        series: series.to_owned(),
        amounts: amounts.collect(),
    }
}

/// What many processes add at the same time is counted once each, under its series.
///
/// # Errors
/// [`Broken`] when the table fails.
pub async fn counters_of_many_processes_add_up(case: &Case) -> Result<(), Broken> {
    let tenant = case.sample.owner.tenant.as_str();
    let one = format!(r#"["a2a_turns_total","{tenant} \"b\"","failed"]"#);
    let two = format!(r#"["{tenant}"]"#);
    let counters = case.counters();
    let adds = (0..24_u32).map(|process| {
        let added = [
            counter(&one, &[("n", 1), ("b14", process.into())]),
            counter(&two, &[("s", 2)]),
            counter("nothing", &[]),
        ];
        let counters = counters.clone();
        async move {
            counters
                .add_counters(process % COUNTER_SHARDS, &added)
                .await
        }
    });
    for added in join_all(adds).await {
        added?;
    }
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    let counted = counters.read_counters().await?;
    for counter in counted.into_iter().filter(|it| it.series.contains(tenant)) {
        for (name, amount) in counter.amounts {
            *sums.entry((counter.series.clone(), name)).or_default() += amount;
        }
    }
    let expected = [((&one, "b14"), 276), ((&one, "n"), 24), ((&two, "s"), 48)];
    let expected = expected.map(|((series, name), sum)| ((series.clone(), name.to_owned()), sum));
    assert_eq!(sums, expected.into());
    Ok(())
}
