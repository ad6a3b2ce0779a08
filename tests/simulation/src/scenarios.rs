//! Eleven short scenarios with fixed requests. Each runs once to count its points, and then
//! again with a crash at each of them.

use crate::clients::{Letter, after};
use crate::driver::Driver;
use crate::history::{Lab, Report, ask_again};
use crate::hub::Late;
use crate::mutant::Mutant;
use crate::skills::{SCRIPT, SLOW};
use a2a_lambda::task::{ContextId, SendMode, TaskId, TaskState};

/// The names of the scenarios, as the report prints them.
pub(crate) const SCENARIOS: [&str; 11] = [
    "deferred send",
    "send under a client's id",
    "background with a hand-over",
    "stream with group commits",
    "question, answer and session",
    "cancel during work with a blob",
    "answer while a stream waits",
    "keyed send, twice in parallel",
    "keyed answer, twice in parallel",
    "answer while the question's write is repeated",
    "id deleted and reused during work",
];

/// More rounds than any scenario needs.
const ROUNDS: usize = 20_000;

impl Lab {
    /// Runs one scenario with crashes at these points. Its stream is cut after `frames`
    /// frames.
    pub(crate) fn scenario(
        &self,
        number: usize,
        kills: &[u64],
        frames: u64,
        mutant: Option<Mutant>,
    ) -> Report {
        let mut driver = self.driver(number as u64, mutant);
        {
            let mut world = self.hub.world();
            world.faulty = false;
            world.kill_at = kills.to_vec();
        }
        act(&mut driver, number, frames);
        driver.kill_all();
        let points = self.hub.world().points;
        driver.heal();
        ask_again(&mut driver);
        read_singly(&mut driver);
        if !driver.is_broken() {
            driver.check();
        }
        let kills: Vec<String> = kills.iter().map(u64::to_string).collect();
        let replay = format!("scenario {number} {frames} {}", kills.join(" "));
        let mut report = self.report(&driver, &replay);
        report.points = points;
        report
    }

    /// Runs every scenario with a crash at each of its points, and the two shortest with each
    /// pair of crashes.
    pub(crate) fn kill_sweep(&self) -> Vec<(&'static str, Report)> {
        let mut all = Vec::new();
        for (number, name) in SCENARIOS.into_iter().enumerate() {
            let mut report = self.scenario(number, &[], u64::MAX, None);
            let points = report.points;
            for first in 1..=points {
                report.add(self.scenario(number, &[first], u64::MAX, None));
                if number < 2 {
                    // After a crash other processes continue, so there are more points.
                    for second in first + 1..=points + 20 {
                        report.add(self.scenario(number, &[first, second], u64::MAX, None));
                    }
                }
            }
            report.points = points;
            all.push((name, report));
        }
        all
    }

    /// Runs every scenario without a crash and with this fault planted.
    pub(crate) fn all_scenarios(&self, mutant: Mutant) -> Report {
        let mut all = Report::default();
        for number in 0..SCENARIOS.len() {
            all.add(self.scenario(number, &[], u64::MAX, Some(mutant)));
        }
        all
    }

    /// Runs the stream scenario, cut after each of its frames. The reader then resumes with
    /// one event per connection.
    pub(crate) fn cut_sweep(&self) -> Report {
        let mut report = Report::default();
        for frames in 1..=FRAMES {
            report.add(self.scenario(3, &[], frames, None));
        }
        report
    }
}

/// More frames than the stream of the scenario has.
const FRAMES: u64 = 20;

fn act(driver: &mut Driver, number: usize, frames: u64) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    match number {
        0 => {
            let letter = Letter::new(SCRIPT, "C");
            driver.start("send", deadline, site.send(letter, deadline));
        }
        1 => {
            let letter = Letter {
                client_id: TaskId::parse("client-1").ok(),
                ..Letter::new(SCRIPT, "SU")
            };
            driver.start(
                "send",
                deadline,
                site.clone().send(letter.clone(), deadline),
            );
            driver.start("send", deadline, site.send(letter, deadline));
        }
        2 => {
            let deadline = Some(after(&site.hub, 29));
            let letter = Letter {
                mode: SendMode::Immediate,
                ..Letter::new(SLOW, "SWCLSD")
            };
            driver.start("send", deadline, site.send(letter, deadline));
        }
        3 => {
            let letter = Letter::new(SCRIPT, "UCGUSCUB");
            driver.start("stream", deadline, site.stream(letter, deadline, frames));
        }
        4 => answered_twice(driver),
        5 => canceled(driver, frames),
        6 => gone_on(driver, frames),
        7 => {
            let letter = site.keyed(Letter::new(SCRIPT, "CU"));
            twice(driver, &letter);
        }
        8 => keyed_answer(driver),
        9 => answered_early(driver),
        _ => used_again(driver),
    }
    pump(driver);
}

/// Two processes send the same letter at the same time.
fn twice(driver: &mut Driver, letter: &Letter) {
    let deadline = Some(after(&driver.site.hub, 900));
    for _ in 0..2 {
        let send = driver.site.clone().send(letter.clone(), deadline);
        driver.start("keyed send", deadline, send);
    }
}

/// A skill asks a question, and its answer is sent twice under one key.
fn keyed_answer(driver: &mut Driver) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    let letter = Letter::new(SCRIPT, "UQC");
    driver.start("send", deadline, site.clone().send(letter, deadline));
    pump(driver);
    if let Some(task) = found(driver, TaskState::is_interrupted) {
        let letter = site.keyed(Letter {
            task: Some(task),
            ..Letter::new("", "go")
        });
        twice(driver, &letter);
    }
}

/// A skill asks a question in a context, and two clients answer it at the same time.
fn answered_twice(driver: &mut Driver) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    let letter = Letter {
        context: ContextId::parse("ctx-1").ok(),
        ..Letter::new(SCRIPT, "CTQCT")
    };
    driver.start("send", deadline, site.send(letter, deadline));
    pump(driver);
    if let Some(task) = found(driver, TaskState::is_interrupted) {
        for _ in 0..2 {
            let letter = Letter {
                task: Some(task.clone()),
                ..Letter::new("", "go")
            };
            let answer = driver.site.clone().send(letter, deadline);
            driver.start("continue", deadline, answer);
        }
    }
}

/// A cancel arrives while a stream makes artifacts.
fn canceled(driver: &mut Driver, frames: u64) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    let letter = Letter::new(SCRIPT, "BCUCBU");
    driver.start("stream", deadline, site.stream(letter, deadline, frames));
    for _ in 0..40 {
        driver.poll_one();
    }
    if let Some(task) = found(driver, |state| !state.is_at_rest()) {
        let cancel = driver.site.clone().cancel(task);
        driver.start("cancel", deadline, cancel);
    }
}

/// A worker asks a question. The reply to its write is lost, and it repeats the write after
/// the turn of the answer has made some commits.
fn answered_early(driver: &mut Driver) {
    let site = driver.site.clone();
    let short = Some(after(&site.hub, 29));
    let letter = Letter {
        mode: SendMode::Immediate,
        ..Letter::new(SCRIPT, "QSSSSSSSSSS")
    };
    driver.start("send", short, site.clone().send(letter, short));
    site.hub.world().late = Late::Next;
    pump_until(driver, TaskState::is_interrupted);
    if let Some(task) = found(driver, TaskState::is_interrupted) {
        let letter = Letter {
            task: Some(task),
            ..Letter::new("", "go")
        };
        let deadline = Some(after(&site.hub, 900));
        driver.start("continue", deadline, site.clone().send(letter, deadline));
        // A process that waits for its reply is always ready, so this loop needs a limit.
        for _ in 0..ROUNDS / 20 {
            if version(driver) >= 10 || !pump_once(driver) {
                break;
            }
        }
    }
    site.hub.world().late = Late::Never;
}

/// A client cancels and deletes a running task, and sends another one under its id. The
/// first run continues when the second has reached the same version.
fn used_again(driver: &mut Driver) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    let letter = Letter {
        client_id: TaskId::parse("client-1").ok(),
        ..Letter::new(SCRIPT, "SSSSSSSSSS")
    };
    let first = site.clone().send(letter.clone(), deadline);
    driver.start("first send", deadline, first);
    while version(driver) < 3 && driver.poll_named("first send") {}
    let Some(task) = found(driver, |state| !state.is_at_rest()) else {
        return;
    };
    driver.start("cancel", deadline, site.clone().cancel(task.clone()));
    while driver.poll_named("cancel") {}
    driver.start("delete", deadline, site.clone().delete(task));
    while driver.poll_named("delete") {}
    driver.start("second send", deadline, site.send(letter, deadline));
    while version(driver) < 3 && driver.poll_named("second send") {}
}

/// The version of the living task; 0 without one.
fn version(driver: &Driver) -> u64 {
    let world = driver.site.hub.world();
    let living = world.oracle.living().next();
    living.map_or(0, |(_, seen)| seen.record.version)
}

/// A stream reads its task when the next turn has already begun.
fn gone_on(driver: &mut Driver, frames: u64) {
    let site = driver.site.clone();
    let deadline = Some(after(&site.hub, 900));
    let letter = Letter::new(SLOW, "Q");
    driver.start(
        "stream",
        deadline,
        site.clone().stream(letter, deadline, frames),
    );
    while driver.poll_one() {}
    driver.start("relay", None, site.clone().relay());
    while driver.poll_one() {}
    let visible = site.hub.world().messages.work.visible(i64::MAX);
    for number in visible {
        driver.work(number, 900);
    }
    while driver.poll_one() {}
    if let Some(task) = found(driver, TaskState::is_interrupted) {
        let letter = Letter {
            task: Some(task),
            mode: SendMode::Immediate,
            ..Letter::new("", "go")
        };
        driver.start("continue", deadline, site.send(letter, deadline));
    }
    while driver.poll_one() {}
}

fn found(driver: &Driver, which: impl Fn(TaskState) -> bool) -> Option<TaskId> {
    let world = driver.site.hub.world();
    let mut tasks = world.oracle.living();
    let found = tasks.find(|(_, seen)| which(seen.record.state()));
    found.map(|(life, _)| life.task.clone())
}

/// Runs all processes, with relay and workers, until nothing is left to do.
fn pump(driver: &mut Driver) {
    for _ in 0..ROUNDS {
        if !pump_once(driver) {
            return;
        }
    }
}

/// Runs all processes until a task is in this state.
fn pump_until(driver: &mut Driver, which: impl Fn(TaskState) -> bool) {
    for _ in 0..ROUNDS {
        if found(driver, &which).is_some() || !pump_once(driver) {
            return;
        }
    }
}

/// Takes one step. Returns whether there was anything to do.
fn pump_once(driver: &mut Driver) -> bool {
    if driver.is_broken() {
        return false;
    }
    if driver.poll_one() {
        return true;
    }
    let (images, visible) = {
        let world = driver.site.hub.world();
        let messages = &world.messages;
        (messages.has_images(), messages.work.visible(world.now))
    };
    if images && !driver.is_running("relay") {
        let relay = driver.site.clone().relay();
        driver.start("relay", None, relay);
    } else if let Some(number) = visible.first() {
        driver.work(*number, 40);
    } else if driver.living() > 0 {
        driver.advance();
    } else {
        return false;
    }
    true
}

/// The last reader resumes for one event at a time.
fn read_singly(driver: &mut Driver) {
    for _ in 0..FRAMES * 2 {
        let world = driver.site.hub.world();
        let place = world.oracle.positions.len().checked_sub(1);
        let position = place.and_then(|n| world.oracle.positions.get(n)).cloned();
        drop(world);
        let Some(position) = position.filter(|it| it.last.is_some() && !it.ended) else {
            return;
        };
        // Two frames: the resume frame and one event.
        let reader = driver.site.clone().subscribe(position.life.task, place, 2);
        driver.start("reader", None, reader);
        driver.finish();
    }
}
