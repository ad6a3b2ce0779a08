//! The table of a run.

use crate::figures::Figures;
use crate::targets::TARGETS;
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

fn ratio(ours: &Figures, floor: &Figures) -> String {
    let (ours, floor) = (ours.median(), floor.median());
    if floor == 0.0 {
        return String::new();
    }
    format!(" ({:.2} ×)", ours / floor)
}

/// The table, with ratios to the floors of the same run.
pub(crate) fn table(rows: &BTreeMap<&str, Row>, options: &Options, spin: (f64, f64)) -> String {
    let mut text = format!(
        "Measured on {}, in {} fresh processes of each program with {} warm calls. The programs took \
         turns. A fixed piece of work took {:.0} ms before and {:.0} ms after. Times and CPU are medians in \
         milliseconds; in brackets the ratio to the floor above.\n\n\
         | program | init | cold start to first answer | CPU of a cold start | warm call p50 | p99 | CPU of a warm call | first byte | peak memory, MB | binary, MB | zip, MB |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
        machine(),
        options.rounds,
        options.calls,
        spin.0,
        spin.1,
    );
    let none = Row::default();
    for target in TARGETS {
        let Some(row) = rows.get(target.name) else {
            continue;
        };
        let own = target.floor == target.name;
        let floor = rows.get(target.floor).filter(|_| !own).unwrap_or(&none);
        let with =
            |ours: &Figures, floor: &Figures| format!("{:.2}{}", ours.median(), ratio(ours, floor));
        // Infallible: a `String` takes any text.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {:.1} | {:.2} |",
            target.name,
            with(&row.init, &floor.init),
            with(&row.cold, &floor.cold),
            with(&row.cold_cpu, &floor.cold_cpu),
            with(&row.warm, &floor.warm),
            row.warm.at(0.99),
            with(&row.warm_cpu, &floor.warm_cpu),
            with(&row.first, &floor.first),
            with(&row.peak, &floor.peak),
            row.binary as f64 / 1e6,
            row.zip as f64 / 1e6,
        );
    }
    text.push('\n');
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
