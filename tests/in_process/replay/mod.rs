//! A turn that runs again is the same turn: generated programs, interrupted at every point,
//! lead to what they lead to undisturbed.

mod compare;
mod generate;
mod log;
mod model;
mod program;
mod run;
mod shrink;
mod skills;

use compare::differences;
use log::Effects;
use program::Program;
use run::{Observed, Point, observe};
use std::sync::Arc;
use std::time::Instant;

/// The programs of the default run.
const PROGRAMS: u64 = 40;

/// What was tried.
#[derive(Debug, Default)]
struct Figures {
    programs: u64,
    points: u64,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name programs of a test"
)]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Runs a program at a point; returns what is different. `None` if there is no such point.
async fn judge(
    program: &Arc<Program>,
    turn: usize,
    point: Point,
    expected: &(Observed, Arc<Effects>),
) -> Option<Vec<String>> {
    let (undisturbed, effects) = expected;
    match observe(program, turn, point, Some(Arc::clone(effects))).await {
        Ok(observed) => Some(differences(undisturbed, &observed?, program.has_branches())),
        Err(error) => Some(vec![format!("no reply: {error}")]),
    }
}

/// Interrupts a program everywhere; returns the number of points, and the first that makes a
/// difference.
async fn interrupt(program: &Arc<Program>, seed: u64) -> (u64, Option<Difference>) {
    let undisturbed = observe(program, 0, Point::Undisturbed, None)
        .await
        .unwrap()
        .unwrap();
    let (turns, places) = (undisturbed.turns.len(), undisturbed.places);
    let effects = Arc::new(undisturbed.effects.clone());
    let expected = (undisturbed, effects);
    let mut random = generate::Random::new(seed);
    let mut points = 0;
    for turn in 0..turns {
        let crashes = (0..).map(Point::Crash);
        let mut ends = 0;
        for point in crashes {
            match judge(program, turn, point, &expected).await {
                None => break,
                Some(found) if found.is_empty() => {}
                Some(found) => return (points, Some((turn, point, found))),
            }
            ends += 1;
            points += 1;
        }
        let mut others = vec![Point::HandOvers];
        for place in 1..=places {
            others.extend([Point::HandOver(place), Point::HandOverAtStep(place)]);
        }
        for _ in 0..2 {
            others.push(Point::Both(
                random.below(ends + 1),
                1 + random.below(places + 1),
            ));
        }
        for point in others {
            match judge(program, turn, point, &expected).await {
                Some(found) if !found.is_empty() => return (points, Some((turn, point, found))),
                _ => points += 1,
            }
        }
    }
    (points, None)
}

type Difference = (usize, Point, Vec<String>);

/// Fails with the smallest program that is found to show a difference.
fn report(seed: u64, mut program: Arc<Program>, mut difference: Difference) {
    'smaller: loop {
        for smaller in shrink::smaller(&program) {
            let smaller = Arc::new(smaller);
            let (_, wrong) = runtime().block_on(interrupt(&smaller, seed));
            if let Some(wrong) = wrong {
                (program, difference) = (smaller, wrong);
                continue 'smaller;
            }
        }
        break;
    }
    let (turn, point, found) = difference;
    let found = found.join("\n");
    panic!(
        "seed {seed}, turn {turn}, {point:?}:\n{found}\n{program:?}\nreplay: A2A_REPLAY_SEED={seed} cargo test --locked --workspace --test in_process replay"
    );
}

#[test]
fn a_turn_that_runs_again_is_the_same_turn() {
    let began = Instant::now();
    let chosen = setting("A2A_REPLAY_SEED");
    let count = setting("A2A_REPLAY_PROGRAMS").unwrap_or(PROGRAMS);
    let seeds = chosen.map_or(1..=count, |seed| seed..=seed);
    let mut figures = Figures::default();
    for seed in seeds {
        let program = Arc::new(generate::program(seed));
        let (points, wrong) = runtime().block_on(interrupt(&program, seed));
        figures.programs += 1;
        figures.points += points;
        if let Some(difference) = wrong {
            report(seed, program, difference);
        }
    }
    println!(
        "replay: {} programs, {} points, {:.1} s",
        figures.programs,
        figures.points,
        began.elapsed().as_secs_f64()
    );
}
