//! The table of a run.

use crate::figures::Figures;
use crate::meter::Counts;
use crate::targets::{CHUNKS, Kind, TARGETS, Target};
use crate::{Failure, Options, Row};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const BEGIN: &str = "<!-- measured: written by tests/bench -->";
const END: &str = "<!-- end of measured -->";

/// The bytes of a program, and of its zip archive (deflate, as `gzip` makes it).
pub(crate) fn sizes(program: &Path) -> Result<(u64, u64), Failure> {
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-c"]).arg(program).stdout(Stdio::piped());
    let zipped = gzip.output()?.stdout.len() as u64;
    Ok((std::fs::metadata(program)?.len(), zipped))
}

/// The machine of this run.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model
        .and_then(|line| line.split(": ").nth(1))
        .unwrap_or("unknown");
    let cores = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!("{cores} cores of {model}")
}

/// The median of the ratios of the rounds. The speed of a machine changes within a run, and less
/// between two programs that take turns.
fn ratio(ours: &Figures, floor: &Figures) -> String {
    format!("{:.2} ×", ours.ratios(floor).median())
}

/// The figures of a target and those of its floor. A floor is compared with nothing.
fn of<'r>(rows: &'r BTreeMap<&str, Row>, target: &Target) -> Option<(&'r Row, Option<&'r Row>)> {
    let floor = (target.floor != target.name).then_some(target.floor);
    Some((
        rows.get(target.name)?,
        floor.and_then(|name| rows.get(name)),
    ))
}

/// A median, with the ratio to the floor.
fn with(row: &Row, floor: Option<&Row>, figures: fn(&Row) -> &Figures) -> String {
    let ours = figures(row);
    let ratio = floor.map(|floor| format!(" ({})", ratio(ours, figures(floor))));
    format!("{:.2}{}", ours.median(), ratio.unwrap_or_default())
}

/// The tables of a run, with ratios to the floors of the same run.
pub(crate) fn table(rows: &BTreeMap<&str, Row>, options: &Options, spin: (f64, f64)) -> String {
    let began = format!(
        "Measured on {}, in {} fresh processes of each program with {} warm calls. The programs took \
         turns. A fixed piece of work took {:.0} ms before and {:.0} ms after. Times and CPU are in milliseconds. \
         Each process gives one value: the median time of its warm calls, or their mean CPU. The table has the medians \
         of all processes. In brackets is the ratio to the floor above: the median of the ratios of all rounds. p99 is \
         that of all warm calls.\n\n",
        machine(),
        options.rounds,
        options.calls,
        spin.0,
        spin.1,
    );
    began + &times(rows) + &counts(rows) + &stream(rows)
}

fn times(rows: &BTreeMap<&str, Row>) -> String {
    let mut text = "| program | init | cold start to first answer | CPU of a cold start | warm call p50 | p99 | \
                    CPU of a warm call | first byte |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for target in &TARGETS {
        let Some((row, floor)) = of(rows, target) else {
            continue;
        };
        // Infallible: a `String` takes any text.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.2} | {} | {} |",
            target.name,
            with(row, floor, |row| &row.init),
            with(row, floor, |row| &row.cold),
            with(row, floor, |row| &row.cold_cpu),
            with(row, floor, |row| &row.warm),
            row.calls.at(0.99),
            with(row, floor, |row| &row.warm_cpu),
            with(row, floor, |row| &row.first),
        );
    }
    text + "\n" + &buffered_get(rows)
}

/// A get beside the buffered floor, which waits for no acknowledgement.
fn buffered_get(rows: &BTreeMap<&str, Row>) -> String {
    let get = rows.get("`tasks-get`: get").zip(rows.get("floor: get"));
    let ratio = get.map(|(get, floor)| ratio(&get.warm_cpu, &floor.warm_cpu));
    ratio.map_or_else(String::new, |ratio| {
        format!("Beside `floor: get`, which is buffered, a warm call of `tasks-get` takes {ratio} the CPU.\n\n")
    })
}

/// What is the same on every machine, but for the memory.
fn counts(rows: &BTreeMap<&str, Row>) -> String {
    let mut text = "What a warm call asks of DynamoDB, counted in other processes behind a proxy (medians). A wave is a round \
                    trip: requests under way at the same time are one. Units include those of the indexes; bytes are \
                    the bodies of requests.\n\n\
                    | program | requests | waves | write units | read units | bytes | peak memory, MB | binary, MB | \
                    zip, MB |\n|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for target in &TARGETS {
        let Some((row, floor)) = of(rows, target) else {
            continue;
        };
        let Counts {
            requests,
            waves,
            write_units,
            read_units,
            sent,
        } = row.asked;
        let asked = [requests, waves, write_units, read_units].map(plain);
        let _ = writeln!(
            text,
            "| {} | {} | {sent:.0} | {} | {:.1} | {:.2} |",
            target.name,
            asked.join(" | "),
            with(row, floor, |row| &row.peak),
            row.binary as f64 / 1e6,
            row.zip as f64 / 1e6,
        );
    }
    text + "\n"
}

/// A count with as many digits as it needs, at most one.
fn plain(count: f64) -> String {
    let digits = usize::from((count - count.round()).abs() > 0.05);
    format!("{count:.digits$}")
}

/// First byte and cost per event of the streams.
fn stream(rows: &BTreeMap<&str, Row>) -> String {
    let mut text = String::new();
    for target in TARGETS.iter().filter(|it| it.kind == Kind::Stream) {
        let Some((row, floor)) = of(rows, target) else {
            continue;
        };
        let each = |row: &Row| row.warm_cpu.median() * 1000.0 / CHUNKS as f64;
        let Some(floor) = floor else { continue };
        let _ = write!(
            text,
            "**An event of a stream of {CHUNKS} chunks** costs {:.1} µs of CPU, and {:.1} µs with `lambda_http` alone. \
             The first byte arrives after {:.2} ms, the last after {:.2} ms.\n\n",
            each(row),
            each(floor),
            row.first.median(),
            row.warm.median(),
        );
    }
    text
}

/// Writes the text of this run between the marks of a document.
pub(crate) fn write(document: &Path, text: &str) -> Result<(), Failure> {
    let whole = std::fs::read_to_string(document)?;
    let marks = || Failure::Program(format!("{} has no marks", document.display()));
    let (before, rest) = whole.split_once(BEGIN).ok_or_else(marks)?;
    let (_, after) = rest.split_once(END).ok_or_else(marks)?;
    let whole = format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim_end());
    std::fs::write(document, whole)?;
    Ok(())
}
