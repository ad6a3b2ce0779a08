//! Measures the functions as Lambda starts them, beside programs that do the least.
//!
//! Each program is a bootstrap with a Runtime API of its own. It gets events of API Gateway,
//! one at a time, and its DynamoDB is the embedded one. All programs take turns, each in a
//! fresh process, so that a slow minute of the machine meets all of them. Ratios of one run
//! count; times of two machines do not compare.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command")]
#![expect(
    clippy::indexing_slicing,
    reason = "a member of JSON that is absent is `null`"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a deadline is a time of this machine"
)]

mod curves;
mod events;
mod figures;
mod full_table;
mod meter;
mod parts;
mod program;
mod report;
mod runtime_api;
mod site;
mod targets;
mod tokens;

use figures::{Figures, millis};
use meter::Counts;
use site::{Known, Site};
use std::collections::BTreeMap;
use std::path::PathBuf;
use targets::{TARGETS, Target};

/// Calls after the first one and before the measured ones: then the pools have their sizes.
const WARM: usize = 5;
/// Calls behind the meter.
const COUNTED: usize = 9;

/// Why the benchmark ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Program(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the embedded services: {0}")]
    Embedded(#[from] a2a_local::embedded::EmbeddedError),
    #[error("a response is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// What the command line says.
#[derive(Debug)]
struct Options {
    programs: PathBuf,
    rounds: usize,
    calls: usize,
    only: String,
    curves: bool,
    parts: bool,
    write: Option<PathBuf>,
}

const HELP: &str = "\
usage: bench --programs DIR [--rounds N] [--calls N] [--only NAME] [--no-curves] [--no-parts] [--write DIR]

Measures the programs in DIR, in N fresh processes each (20), with N warm calls (50).
--only measures what has NAME in its name, and its floor. --no-curves leaves the curves out, and --no-parts the
steps of a call alone.
--write DIR writes DIR/performance.md between its marks, and DIR/performance.svg.";

fn options() -> Result<Options, String> {
    let mut options = Options {
        programs: PathBuf::new(),
        rounds: 20,
        calls: 50,
        only: String::new(),
        curves: true,
        parts: true,
        write: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(HELP);
        let number = |text: String| text.parse().map_err(|_| HELP);
        match name.as_str() {
            "--programs" => options.programs = value()?.into(),
            "--rounds" => options.rounds = number(value()?)?,
            "--calls" => options.calls = number(value()?)?,
            "--only" => options.only = value()?,
            "--no-curves" => options.curves = false,
            "--no-parts" => options.parts = false,
            "--write" => options.write = Some(value()?.into()),
            _ => return Err(HELP.to_owned()),
        }
    }
    if options.programs.as_os_str().is_empty() {
        return Err(HELP.to_owned());
    }
    Ok(options)
}

/// The figures of one target: a value for each round, of `warm` and `first` the median.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) init: Figures,
    pub(crate) cold: Figures,
    pub(crate) cold_cpu: Figures,
    pub(crate) warm: Figures,
    pub(crate) warm_cpu: Figures,
    pub(crate) first: Figures,
    pub(crate) peak: Figures,
    /// The times of all warm calls of all rounds.
    pub(crate) calls: Figures,
    /// What one warm call asks of DynamoDB.
    pub(crate) asked: Counts,
    pub(crate) binary: u64,
    pub(crate) zip: u64,
}

/// Checks the response to an event of a target.
fn check(target: &Target, body: &[u8]) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(body);
    if text.contains(target.kind.says()) {
        return Ok(());
    }
    Err(Failure::Program(format!("{}: {text}", target.name)))
}

/// The number of an event, different for each target.
fn number(target: &Target, round: &str, n: usize) -> String {
    let target = target.name.len() * 1000 + target.kind as usize;
    format!("{target}-{round}-{n}")
}

/// One fresh process of a target: its cold start, and its warm calls.
async fn measure(
    site: &Site,
    target: &Target,
    (round, calls): (usize, usize),
    known: &str,
    row: &mut Row,
) -> Result<(), Failure> {
    let id = |n: usize| number(target, &round.to_string(), n);
    let mut program = site.start(target.program, "tasks-stream").await?;
    let first = program.call(target.kind.event(&id(0), known)).await?;
    check(target, &first.body)?;
    row.init.add_time(program.init);
    row.cold.add_time(first.since_start);
    row.cold_cpu.add_time(program.cpu()?);
    for n in 1..=WARM {
        program.call(target.kind.event(&id(n), known)).await?;
    }
    let (mut warm, mut first) = (Figures::default(), Figures::default());
    let before = program.cpu()?;
    for n in 0..calls {
        let call = program
            .call(target.kind.event(&id(n + WARM + 1), known))
            .await?;
        check(target, &call.body)?;
        warm.add_time(call.whole);
        first.add_time(call.first);
        row.calls.add_time(call.whole);
    }
    let cpu = program.cpu()? - before;
    row.warm.add(warm.median());
    row.first.add(first.median());
    row.warm_cpu.add(millis(cpu) / calls as f64);
    row.peak.add(program.peak()? as f64 / 1e6);
    Ok(())
}

/// What a warm call of a target asks of DynamoDB. The process has no other use: the meter's
/// proxy would change its times.
async fn count(site: &Site, target: &Target, known: &str) -> Result<Counts, Failure> {
    let (mut program, meter, _line) = site.start_metered(target.program, "tasks-stream").await?;
    for n in 0..WARM {
        let event = target.kind.event(&number(target, "warm", n), known);
        check(target, &program.call(event).await?.body)?;
    }
    meter.take();
    let mut calls = Vec::new();
    for n in 0..COUNTED {
        let event = target.kind.event(&number(target, "counted", n), known);
        check(target, &program.call(event).await?.body)?;
        calls.push(meter.take());
    }
    Ok(Counts::median(&calls))
}

/// Milliseconds of CPU for a fixed piece of work, to compare machines.
fn calibration() -> f64 {
    let began = std::time::Instant::now();
    let mut state = 1_u64;
    for _ in 0..20_000_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7) ^ 0x9E37;
    }
    std::hint::black_box(state);
    millis(began.elapsed())
}

/// Measures all chosen targets, and what they ask of DynamoDB.
async fn rows(options: &Options) -> Result<BTreeMap<&'static str, Row>, Failure> {
    let named = |target: &Target| target.name.contains(&options.only);
    let floor_of = |name: &str| TARGETS.iter().any(|it| named(it) && it.floor == name);
    let chosen = |target: &&Target| named(target) || floor_of(target.name);
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for round in 0..options.rounds {
        // Each round has a table of its own, so that no round meets a fuller one.
        let (site, known) = stored(options).await?;
        for target in TARGETS.iter().filter(chosen) {
            let row = rows.entry(target.name).or_default();
            let known = known.of(target.kind);
            measure(&site, target, (round, options.calls), known, row).await?;
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    let (site, known) = stored(options).await?;
    for target in TARGETS.iter().filter(chosen) {
        let row = rows.entry(target.name).or_default();
        row.asked = count(&site, target, known.of(target.kind)).await?;
        (row.binary, row.zip) = report::sizes(&site.program(target.program))?;
    }
    Ok(rows)
}

/// A site with what the reads read.
async fn stored(options: &Options) -> Result<(Site, Known), Failure> {
    let site = Site::open(&options.programs, None).await?;
    let known = site.store().await?;
    Ok((site, known))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program waits for the measurement, which needs a thread of its own"
)]
async fn run(options: Options) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let before = calibration();
    let rows = rows(&options).await?;
    let mut text = report::table(&rows, &options, (before, calibration()));
    if options.parts {
        let parts = tokio::task::spawn_blocking(parts::measure).await;
        text += &parts.map_err(|died| Failure::Program(died.to_string()))??;
    }
    if options.curves {
        let site = Site::open(&options.programs, None).await?;
        text += &tokens::measure(&site).await?;
        let curves = curves::measure(&site, &options.programs, &folder).await?;
        text += &curves.text();
        if let Some(folder) = &options.write {
            std::fs::write(folder.join("performance.svg"), curves.svg())?;
        }
    }
    println!("{text}");
    if let Some(docs) = &options.write {
        report::write(&docs.join("performance.md"), &text)?;
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = match options() {
        Ok(options) => options,
        Err(help) => {
            eprintln!("{help}");
            std::process::exit(2);
        }
    };
    if let Err(failure) = run(options).await {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}
