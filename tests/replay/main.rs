//! A turn that runs again is the same turn. Generated programs, interrupted at every point, lead
//! to what they lead to undisturbed: the task, the effects, what the next message of the context
//! sees, and the events of a stream.
//!
//! A step that was open at an interruption may repeat its effect. Order is compared within a
//! branch of the program. What a program meets may depend on the interruption: then it is
//! compared with an undisturbed run that meets the same. What it met before something was stored
//! each later run meets again. What a branch did that was dropped is not compared.
//!
//! - `program`, `generate`, `shrink`: programs as data
//! - `skills`, `model`, `log`: run a program and note what it does
//! - `run`, `compare`: interrupt it, and compare
//! - `deploy`: deployments between two runs of a turn
//!
//! `A2A_REPLAY_SEED=<seed>` runs one program, `A2A_REPLAY_PROGRAMS=<number>` more or fewer.
#![cfg(test)]

mod compare;
mod deploy;
mod generate;
mod log;
mod model;
mod program;
mod run;
mod shrink;
mod skills;

use compare::differences;
use program::{Fails, Op, Program};
use run::{Observed, Point, observe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The programs that are tried if nothing else is said.
const PROGRAMS: u64 = 100;

/// A point at which a program makes a difference: its turn, and the differences in words.
type Difference = (usize, Point, Vec<String>);

/// A program with its undisturbed run.
struct Case {
    program: Arc<Program>,
    undisturbed: Observed,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name programs of a test"
)]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A runtime whose clock is stopped.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

impl Case {
    async fn new(program: Arc<Program>) -> Self {
        let undisturbed = observe(&program, 0, Point::Undisturbed, None).await;
        let undisturbed = undisturbed.unwrap().unwrap();
        let states = undisturbed.turns.iter().map(|turn| &*turn.status);
        let own = |status: &str| !status.contains("error");
        assert!(states.clone().all(own), "{program:?}: {undisturbed:?}");
        Self {
            program,
            undisturbed,
        }
    }

    /// Runs the program; returns what is different. `None` if there is no such point.
    async fn judge(&self, turn: usize, point: Point) -> Option<Vec<String>> {
        let observed = match observe(&self.program, turn, point, None).await {
            Ok(observed) => observed?,
            Err(error) => return Some(vec![format!("no reply: {error}")]),
        };
        let branches = self.program.has_branches();
        if !self.program.is_free() || observed.facts == self.undisturbed.facts {
            return Some(differences(&self.undisturbed, &observed, branches));
        }
        let chosen = Some(Arc::new(observed.facts.clone()));
        match observe(&self.program, turn, Point::Undisturbed, chosen).await {
            Ok(expected) => Some(differences(&expected?, &observed, branches)),
            Err(error) => Some(vec![format!("no reply with what it met: {error}")]),
        }
    }

    /// Interrupts a turn everywhere; adds the number of points. Returns the first difference.
    async fn interrupt(&self, turn: usize, seed: u64, points: &mut u64) -> Option<Difference> {
        let mut crashes = 0;
        'crashes: loop {
            for point in [Point::Crash(crashes), Point::CrashBefore(crashes + 1)] {
                match self.judge(turn, point).await {
                    None => break 'crashes,
                    Some(found) if !found.is_empty() => return Some((turn, point, found)),
                    Some(_) => *points += 1,
                }
            }
            crashes += 1;
        }
        let (places, mut random) = (self.undisturbed.places, generate::Random::new(seed));
        let steps = &self.undisturbed.before_steps;
        let mut others = vec![Point::HandOvers];
        others.extend(
            (1..=places)
                .filter(|place| !steps.contains(place))
                .map(Point::HandOver),
        );
        others.extend(steps.iter().copied().map(Point::HandOverAtStep));
        for _ in 0..2 {
            let place = 1 + random.below(places + 1);
            others.push(Point::Both(random.below(crashes + 1), place));
        }
        for point in others {
            let found = self.judge(turn, point).await.unwrap_or_default();
            if !found.is_empty() {
                return Some((turn, point, found));
            }
            *points += 1;
        }
        None
    }
}

/// Interrupts each turn of a program everywhere.
fn interrupt(program: &Arc<Program>, seed: u64, points: &mut u64) -> Option<Difference> {
    runtime().block_on(async {
        let case = Case::new(Arc::clone(program)).await;
        for turn in 0..case.undisturbed.turns.len() {
            let difference = case.interrupt(turn, seed, points).await;
            if difference.is_some() {
                return difference;
            }
        }
        None
    })
}

/// Fails with the smallest program that is found to make a difference.
fn report(seed: u64, mut program: Arc<Program>, mut difference: Difference) -> ! {
    'smaller: loop {
        for smaller in shrink::smaller(&program) {
            let smaller = Arc::new(smaller);
            if let Some(wrong) = interrupt(&smaller, seed, &mut 0) {
                (program, difference) = (smaller, wrong);
                continue 'smaller;
            }
        }
        break;
    }
    let (turn, point, found) = difference;
    let found = found.join("\n");
    panic!(
        "seed {seed}, made smaller, turn {turn}, {point:?}:\n{found}\n{program:?}\n\
         replay: A2A_REPLAY_SEED={seed} cargo test --locked --profile proof -p a2a-lambda-replay"
    );
}

/// A branch may be at its end at once in a later run: behind its saved place, or with outputs that
/// are sent. It wins its race again, and the other one may have a result.
#[test]
fn a_race_that_a_branch_has_won_before_is_the_same_race() {
    let step = |time| Op::Step {
        name: 0,
        asked: true,
        time,
        fails: Fails::Never,
        body: Vec::new(),
    };
    let continues = vec![Op::Resume(1, vec![step(2)])];
    let sends = vec![Op::Artifact(0), Op::Artifact(1)];
    for (bare, winner, time) in [(false, continues, 2), (true, sends, 0)] {
        let join = Op::Join {
            races: true,
            bare,
            branches: vec![winner, vec![step(time)]],
        };
        let program = Arc::new(Program {
            turns: vec![vec![join]],
            fails: false,
        });
        if let Some(difference) = interrupt(&program, 0, &mut 0) {
            report(0, program, difference);
        }
    }
}

/// A value that is saved while the time is over is stored, but the skill has gone on without it.
/// A later run loads it, and still the time is over.
#[test]
fn a_timeout_that_was_over_is_over_in_each_run() {
    let step = Op::Step {
        name: 0,
        asked: true,
        time: 1,
        fails: Fails::Never,
        body: Vec::new(),
    };
    let timeout = Op::Timeout(0, vec![Op::Resume(2, Vec::new())]);
    let program = Arc::new(Program {
        turns: vec![vec![timeout, step]],
        fails: false,
    });
    if let Some(difference) = interrupt(&program, 0, &mut 0) {
        report(0, program, difference);
    }
}

#[test]
fn a_turn_that_runs_again_is_the_same_turn() {
    let began = Instant::now();
    let chosen = setting("A2A_REPLAY_SEED");
    let count = setting("A2A_REPLAY_PROGRAMS").unwrap_or(PROGRAMS);
    let (first, last) = chosen.map_or((1, count), |seed| (seed, seed));
    let (next, all_points) = (AtomicU64::new(first), AtomicU64::new(0));
    let lane = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                return;
            }
            let (program, mut points) = (Arc::new(generate::program(seed)), 0);
            if let Some(difference) = interrupt(&program, seed, &mut points) {
                // The other lanes end.
                next.store(last + 1, Ordering::Relaxed);
                report(seed, program, difference);
            }
            all_points.fetch_add(points, Ordering::Relaxed);
            if seed.is_multiple_of(1000) {
                println!("seed {seed} after {:.0} s", began.elapsed().as_secs_f64());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(lane);
        }
    });
    let (programs, points) = (last + 1 - first, all_points.into_inner());
    let time = began.elapsed().as_secs_f64();
    println!("replay: {programs} programs, {points} points, {time:.1} s, 0 differences");
}
