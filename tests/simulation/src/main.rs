//! Runs random histories of the real engine. Every call of a service is a point at which
//! other processes run, and at which the process can die.

mod clients;
mod driver;
mod fleet;
mod history;
mod hub;
mod mutant;
mod oracle;
mod outage;
mod queue;
mod scenarios;
mod skills;
mod store;
mod watch;
mod webhooks;

use crate::history::{Lab, Report};
use crate::hub::Hub;
use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: a2a-lambda-simulation [histories N [SEED]] | survey N SEED | history SEED [NAME] | kills | scenario N FRAMES [POINT]... [NAME] | mutants [NAME]";

fn lab(traced: bool) -> Result<Lab, Box<dyn Error + Send + Sync>> {
    let hub = Arc::new(Hub::default());
    let agent = Arc::new(skills::agent(&hub)?);
    let caller = clients::caller().ok_or("the caller is none")?;
    Ok(Lab {
        hub,
        agent,
        caller,
        traced,
    })
}

/// Runs one history. A panic outside a skill is a violation too.
fn caught(lab: &Lab, seed: u64, mutant: Option<Mutant>) -> Report {
    let run = AssertUnwindSafe(|| lab.history(seed, mutant));
    std::panic::catch_unwind(run).unwrap_or_else(|_| Report {
        histories: 1,
        violations: vec![(format!("history {seed}"), "the engine panicked".to_owned())],
        ..Report::default()
    })
}

/// Runs histories with these seeds on two threads, until one has a violation.
fn histories(
    first: u64,
    count: u64,
    mutant: Option<Mutant>,
) -> Result<Report, Box<dyn Error + Send + Sync>> {
    let is_found = Arc::new(AtomicBool::new(false));
    let half = move |offset: u64| {
        let is_found = Arc::clone(&is_found);
        std::thread::spawn(move || {
            let lab = lab(false)?;
            let mut all = Report::default();
            for seed in (first + offset..first + count).step_by(2) {
                all.add(caught(&lab, seed, mutant));
                if !all.violations.is_empty() {
                    is_found.store(true, Ordering::Relaxed);
                }
                if is_found.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(all)
        })
    };
    let mut all = Report::default();
    for thread in [half(0), half(1)] {
        let done = thread.join().map_err(|_| "a history panicked")?;
        all.add(done?);
    }
    Ok(all)
}

fn show(out: &mut impl Write, name: &str, report: &Report, time: Duration) -> std::io::Result<()> {
    writeln!(
        out,
        "{name}: {} histories ({} of two releases, {} abandoned), {} steps, {} kills, {} tasks, {} commits, {:.1} s, {} violations",
        report.histories,
        report.mixed,
        report.abandoned,
        report.steps,
        report.kills,
        report.tasks,
        report.commits,
        time.as_secs_f64(),
        report.violations.len(),
    )?;
    for (replay, violation) in &report.violations {
        writeln!(out, "  {violation}")?;
        writeln!(
            out,
            "  replay: cargo run --profile proof -p a2a-lambda-simulation -- {replay}"
        )?;
    }
    Ok(())
}

fn many(
    out: &mut impl Write,
    first: u64,
    count: u64,
) -> Result<Report, Box<dyn Error + Send + Sync>> {
    writeln!(out, "seeds from {first}, {count} of them")?;
    histories(first, count, None)
}

fn run(arguments: &[String]) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = stdout().lock();
    let began = Instant::now();
    let report = match *words.as_slice() {
        ["histories", count] => many(&mut out, 1, count.parse()?)?,
        ["histories", count, seed] => many(&mut out, seed.parse()?, count.parse()?)?,
        ["survey", count, seed] => return survey(&mut out, seed.parse()?, count.parse()?),
        ["history", seed, ref planted @ ..] => {
            let planted = planted.first().and_then(|name| Mutant::named(name));
            let report = lab(true)?.history(seed.parse()?, planted);
            for line in &report.trace {
                writeln!(out, "{line}")?;
            }
            report
        }
        ["scenario", number, frames, ref rest @ ..] => {
            let planted = rest.iter().find_map(|name| Mutant::named(name));
            let kills = rest.iter().filter(|word| Mutant::named(word).is_none());
            let kills: Result<Vec<u64>, _> = kills.map(|at| at.parse()).collect();
            let (number, frames) = (number.parse()?, frames.parse()?);
            let report = lab(true)?.scenario(number, &kills?, frames, planted);
            for line in &report.trace {
                writeln!(out, "{line}")?;
            }
            report
        }
        ["kills"] => return kills(&mut out),
        ["mutants"] => return mutants(&mut out, &Mutant::ALL),
        ["mutants", name] => {
            let chosen = Mutant::named(name).ok_or(USAGE)?;
            return mutants(&mut out, &[chosen]);
        }
        _ => return Err(USAGE.into()),
    };
    show(&mut out, "simulation", &report, began.elapsed())?;
    Ok(report.violations.is_empty())
}

/// Runs histories past the first violation: reports how often each property is violated,
/// and the first history that violates it.
fn survey(
    out: &mut impl Write,
    first: u64,
    count: u64,
) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let lab = lab(false)?;
    let mut found: BTreeMap<String, (u64, u64, String)> = BTreeMap::new();
    for seed in first..first + count {
        if let Some((_, text)) = caught(&lab, seed, None).violations.first() {
            let kind: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
            let kind = kind
                .split_whitespace()
                .take(6)
                .collect::<Vec<_>>()
                .join(" ");
            let entry = found.entry(kind);
            entry.or_insert_with(|| (0, seed, text.clone())).0 += 1;
        }
    }
    for (times, seed, text) in found.values() {
        writeln!(out, "{times} of {count}, first in history {seed}: {text}")?;
    }
    Ok(found.is_empty())
}

/// Kills a process at each point of the scenarios, and cuts the stream after each frame.
fn kills(out: &mut impl Write) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let began = Instant::now();
    let lab = lab(false)?;
    let mut violations = 0;
    for (name, report) in lab.kill_sweep() {
        writeln!(out, "{name}: {} points", report.points)?;
        show(out, "  killed at each", &report, began.elapsed())?;
        violations += report.violations.len();
    }
    let report = lab.cut_sweep();
    show(out, "stream cut after each frame", &report, began.elapsed())?;
    Ok(violations + report.violations.len() == 0)
}

/// Runs every planted fault. Each must cause a violation.
fn mutants(out: &mut impl Write, planted: &[Mutant]) -> Result<bool, Box<dyn Error + Send + Sync>> {
    let mut missed = 0;
    for &mutant in planted {
        let mut report = lab(false)?.all_scenarios(mutant);
        if report.violations.is_empty() {
            report.add(histories(1, 20_000, Some(mutant))?);
        }
        let seen = report.violations.first();
        missed += u32::from(seen.is_none());
        let what = seen.map_or("NOT SEEN", |(_, what)| what);
        writeln!(
            out,
            "{mutant:?}: after {} histories: {what}",
            report.histories
        )?;
    }
    writeln!(out, "mutants: {} planted, {missed} missed", planted.len())?;
    Ok(missed == 0)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // The terminal may be gone; then there is no place left to report to.
            let _gone = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{USAGE, histories, kills, lab, run};
    use crate::mutant::Mutant;
    use a2a_lambda_rows::each_row;

    #[test]
    fn random_histories_have_no_violations() {
        let report = histories(1, 60, None).unwrap();
        assert_eq!(report.violations, []);
        assert!(report.histories == 60 && report.kills > 60 && report.commits > 600);
    }

    #[test]
    fn a_crash_at_any_point_of_a_scenario_loses_nothing() {
        let mut out = Vec::new();
        assert!(
            kills(&mut out).unwrap(),
            "{}",
            String::from_utf8_lossy(&out)
        );
    }

    #[test]
    fn planted_faults_cause_violations() {
        let rows = [
            Mutant::BlindCommit,
            Mutant::EarlyDelete,
            Mutant::LostBlob,
            Mutant::KeyAfterTask,
            Mutant::KeyUnchecked,
            Mutant::UnknownDropped,
            Mutant::PointerAfterTask,
            Mutant::NothingProlonged,
        ];
        each_row(rows, |mutant| {
            let report = histories(1, 600, Some(mutant)).unwrap();
            assert_ne!(report.violations, [], "{mutant:?}");
        });
    }

    #[test]
    fn a_seed_determines_the_whole_history() {
        let lab = lab(true).unwrap();
        let (first, again) = (lab.history(7, None), lab.history(7, None));
        assert_eq!(first.trace, again.trace);
        assert!(first.trace.len() > 20);
    }

    #[test]
    fn unknown_arguments_fail_with_the_usage() {
        let refused = run(&["nonsense".to_owned()]).unwrap_err();
        assert_eq!(refused.to_string(), USAGE);
    }
}
