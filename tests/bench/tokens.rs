//! A stream of 1,000 tokens over 20 seconds: what it costs, and how far it is behind.

use crate::figures::Figures;
use crate::program::{Call, Program};
use crate::{Failure, Site, events};
use std::time::Duration;

const TOKENS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);

/// The write units of all calls until now, as the program logs them.
pub(crate) async fn units(program: &Program) -> Result<f64, Failure> {
    let calls = program.lines_of_calls().await?;
    let units = calls.iter().filter_map(|line| line["units.write"].as_f64());
    Ok(units.sum())
}

/// When each event of a stream arrived.
pub(crate) fn arrivals(call: &Call) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut read = 0;
    for (at, length) in &call.pieces {
        let piece = call.body.get(read..read + length).unwrap_or_default();
        read += length;
        let text = String::from_utf8_lossy(piece);
        times.extend(text.matches("artifactUpdate").map(|_| *at));
    }
    times
}

/// Measures one stream.
pub(crate) async fn measure(site: &Site) -> Result<String, Failure> {
    eprintln!("a stream of {TOKENS} tokens");
    let mut program = site.start("stack-agent", "tasks-stream").await?;
    program.call(events::stream("warm", "chunks 3")).await?;
    let before = units(&program).await?;
    let cpu = program.cpu()?;
    let text = format!("chunks {TOKENS} {}", PAUSE.as_millis());
    let call = program.call(events::stream("tokens", &text)).await?;
    let cpu = program.cpu()? - cpu;
    let cost = units(&program).await? - before;
    let times = arrivals(&call);
    let mut behind = Figures::default();
    // The skill makes the last token when the stream ends, and the others at even times before.
    let made = call.whole.as_secs_f64() / TOKENS as f64;
    for (n, at) in times.iter().enumerate() {
        behind.add(at.as_secs_f64() * 1000.0 - made * n as f64 * 1000.0);
    }
    Ok(format!(
        "**A stream of {} tokens in {:.1} s** costs {cost} write units and {:.0} ms of CPU. A token arrives {:.0} ms after \
         the skill has made it (median; p99 {:.0} ms).\n\n",
        times.len(),
        call.whole.as_secs_f64(),
        cpu.as_secs_f64() * 1000.0,
        behind.median(),
        behind.at(0.99),
    ))
}
