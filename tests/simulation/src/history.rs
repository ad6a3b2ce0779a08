//! One random history: processes start, run a little, fail and die. Then faults stop,
//! everything heals and is checked.

use crate::clients::{Endpoint, Letter, after};
use crate::driver::Driver;
use crate::fleet::Release;
use crate::hub::{Features, Hub};
use crate::mutant::Mutant;
use crate::oracle::Moment;
use a2a_lambda::auth::Caller;
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::task::{ContextId, SendMode, TaskId, TaskState, Timestamp};
use std::sync::Arc;

/// Steps before faults stop.
const STEPS: u64 = 400;
/// At most this many processes die by chance.
const KILLS: u64 = 5;
/// At most this many processes live at a time.
const LIVING: usize = 8;

/// The figures and violations of one or more histories.
#[derive(Debug, Default, Clone)]
pub(crate) struct Report {
    pub(crate) histories: u64,
    /// Histories in which processes of two releases run.
    pub(crate) mixed: u64,
    /// Histories that reached a point after which no property can be checked.
    pub(crate) abandoned: u64,
    pub(crate) steps: u64,
    pub(crate) kills: u64,
    pub(crate) points: u64,
    pub(crate) tasks: u64,
    pub(crate) commits: u64,
    pub(crate) violations: Vec<(String, String)>,
    pub(crate) trace: Vec<String>,
}

impl Report {
    pub(crate) fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.mixed += other.mixed;
        self.abandoned += other.abandoned;
        self.steps += other.steps;
        self.kills += other.kills;
        self.points += other.points;
        self.tasks += other.tasks;
        self.commits += other.commits;
        self.violations.extend(other.violations);
    }
}

/// The environment of the histories.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) hub: Arc<Hub>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) caller: Caller,
    pub(crate) traced: bool,
}

impl Lab {
    pub(crate) fn driver(&self, seed: u64, mutant: Option<Mutant>) -> Driver {
        self.hub.begin(seed, mutant);
        if self.traced {
            self.hub.world().oracle.trace = Some(Vec::new());
        }
        Driver::new(Endpoint::new(&self.hub, &self.agent, &self.caller))
    }

    /// The report at the end of a history.
    pub(crate) fn report(&self, driver: &Driver, replay: &str) -> Report {
        let mut world = self.hub.world();
        let oracle = &mut world.oracle;
        let commits = oracle.tasks.values().map(|seen| seen.record.version);
        let mut report = Report {
            histories: 1,
            mixed: u64::from(driver.site.is_mixed()),
            abandoned: u64::from(oracle.abandoned),
            steps: driver.steps,
            kills: driver.kills,
            tasks: oracle.tasks.len() as u64,
            commits: commits.sum(),
            ..Report::default()
        };
        let first = oracle.violations.first().cloned();
        report
            .violations
            .extend(first.map(|it| (replay.to_owned(), it)));
        report.trace = oracle.trace.take().unwrap_or_default();
        report.points = world.points;
        report
    }

    /// Runs one history.
    pub(crate) fn history(&self, seed: u64, mutant: Option<Mutant>) -> Report {
        let mut driver = self.driver(seed, mutant);
        self.hub.world().features = Features::of_history(seed);
        driver
            .site
            .run_releases(Release::of_history(seed), &self.agent);
        let mut kills = 0;
        start(&mut driver);
        for _ in 0..STEPS {
            if driver.is_broken() {
                break;
            }
            let chance = self.hub.world().chance.below(1000);
            match chance {
                0..80 if driver.living() < LIVING => start(&mut driver),
                80..95 => jump(&mut driver),
                95..115 if kills < KILLS => {
                    kills += 1;
                    driver.kill_one();
                }
                115..125 => glitch(&mut driver),
                _ => {
                    if !driver.poll_one() {
                        driver.advance();
                        if driver.living() < 2 {
                            start(&mut driver);
                        }
                    }
                }
            }
        }
        if self.hub.world().features.outage && !driver.is_broken() {
            driver.outage();
        }
        driver.kills = kills;
        driver.kill_all();
        if !driver.is_broken() {
            driver.heal();
        }
        ask_again(&mut driver);
        if !driver.is_broken() {
            driver.check();
        }
        if !driver.is_broken() {
            driver.age();
        }
        self.report(&driver, &format!("history {seed}"))
    }
}

/// Sends every keyed message once more, after faults have stopped.
pub(crate) fn ask_again(driver: &mut Driver) {
    let letters = driver.site.hub.world().keyed.clone();
    if driver.is_broken() || letters.is_empty() {
        return;
    }
    for letter in letters {
        let site = driver.site.on_any_machine();
        driver.start("again", None, site.send(letter, None));
    }
    driver.finish();
    if !driver.is_broken() {
        driver.heal();
    }
}

/// Time jumps: a lease may end during a live turn.
fn jump(driver: &mut Driver) {
    let (now, far) = {
        let mut world = driver.site.hub.world();
        let far = match world.chance.below(4) {
            0 => 90_000,
            1 => 400,
            _ => 9_000,
        };
        (world.now, world.chance.below(far))
    };
    driver.advance_to(now + i64::try_from(far).unwrap_or(0));
}

/// The table removes what has expired. A message is shown again early, or the index stops being
/// updated or catches up.
fn glitch(driver: &mut Driver) {
    let table = &driver.site.store.memory.table;
    driver.site.store.clean_up();
    let mut world = driver.site.hub.world();
    match world.chance.below(3) {
        0 => {
            table.lag_indexes();
            // The index lags until it catches up, which is later than now.
            world.oracle.lagged = Moment::LAST;
        }
        1 => {
            table.catch_up_indexes();
            if world.oracle.lagged == Moment::LAST {
                world.oracle.lagged = world.oracle.passes();
            }
        }
        _ => {
            let work = &world.messages.work;
            let numbers: Vec<u64> = work.queued.keys().copied().collect();
            let now = world.now;
            let chosen = world.chance.pick(&numbers).copied();
            if let Some(queued) = chosen.and_then(|n| world.messages.work.queued.get_mut(&n)) {
                queued.visible_at = now;
            }
        }
    }
}

/// A random task that clients know, interrupted if `interrupted` is set.
fn known(driver: &Driver, interrupted: bool) -> Option<TaskId> {
    let mut world = driver.site.hub.world();
    let fits = |state: TaskState| !interrupted || state.is_interrupted();
    let ids: Vec<TaskId> = world
        .oracle
        .living()
        .filter(|(_, seen)| seen.acknowledged && fits(seen.record.state()))
        .map(|(life, _)| life.task.clone())
        .collect();
    world.chance.pick(&ids).cloned()
}

/// Starts a random process.
fn start(driver: &mut Driver) {
    let site = driver.site.on_any_machine();
    let hub = Arc::clone(&site.hub);
    let (kind, short, until) = {
        let mut world = hub.world();
        let kind = world.chance.below(100);
        let until = if world.chance.below(3) == 0 {
            world.chance.below(6) + 1
        } else {
            u64::MAX
        };
        (kind, world.chance.below(2) == 0, until)
    };
    let deadline = short.then(|| after(&hub, 29));
    let deletes = hub.world().features.deletes;
    match kind {
        0..6 if deletes => delete(driver),
        0..12 => {
            let letter = site.letter();
            driver.start("send", deadline, site.send(letter, deadline));
        }
        12..17 => keyed(driver, deadline, until),
        17..32 => {
            let letter = site.letter();
            driver.start("stream", deadline, site.stream(letter, deadline, until));
        }
        32..44 => {
            if let Some(id) = known(driver, true) {
                for _ in 0..2 {
                    answer(driver, &id, until);
                }
            }
        }
        44..48 => {
            if let Some(id) = known(driver, false) {
                answer(driver, &id, until);
            }
        }
        48..55 => cancel(driver),
        55..58 => read(driver),
        58..64 => {
            let readers = hub.world().oracle.positions.len() as u64;
            let place = usize::try_from(hub.world().chance.below(readers + 1)).ok();
            if let Some(id) = known(driver, false) {
                driver.start("subscribe", None, site.subscribe(id, place, until));
            }
        }
        64..78 if !driver.is_running("relay") => driver.start("relay", None, site.relay()),
        64..97 => receive(driver, short),
        _ => driver.start("sweep", None, site.sweep()),
    }
}

/// A worker gets a work queue message, or a push delivery worker a push queue message.
fn receive(driver: &mut Driver, short: bool) {
    let (work, push_message) = {
        let mut world = driver.site.hub.world();
        let (now, messages) = (world.now, &world.messages);
        let (work, push_messages) = (
            messages.work.visible(now),
            messages.push_messages.visible(now),
        );
        // Without a push queue message no random number is used up.
        let rings = !push_messages.is_empty() && world.chance.below(2) == 0;
        if rings {
            (None, world.chance.pick(&push_messages).copied())
        } else {
            (world.chance.pick(&work).copied(), None)
        }
    };
    if let Some(number) = work {
        driver.work(number, if short { 30 } else { 900 });
    }
    if let Some(number) = push_message {
        driver.bring(number);
    }
}

/// A client cancels a task. Where tasks are deleted, it prefers an id that can be reused.
fn cancel(driver: &mut Driver) {
    let site = driver.site.on_any_machine();
    let own = {
        let mut world = site.hub.world();
        world.features.deletes && world.chance.below(2) == 0
    };
    let id = TaskId::parse("client-0").ok().filter(|_| own);
    if let Some(id) = id.or_else(|| known(driver, false)) {
        driver.start("cancel", None, site.cancel(id));
    }
}

/// A client reads a task, or a list.
fn read(driver: &mut Driver) {
    let site = driver.site.on_any_machine();
    let (context, task) = (known_context(driver), known(driver, false));
    let way = site.hub.world().chance.below(4);
    match (way, task) {
        (0, _) => driver.start("list", None, site.list(context)),
        (1, _) => driver.start("list", None, site.list(None)),
        (_, Some(id)) => driver.start("get", None, site.get(id)),
        (_, None) => {}
    }
}

/// A client deletes a task, or a context.
fn delete(driver: &mut Driver) {
    let site = driver.site.on_any_machine();
    let (whole, own) = {
        let chance = &mut site.hub.world().chance;
        (chance.below(4) == 0, chance.below(2) == 0)
    };
    if whole {
        if let Some(id) = known_context(driver) {
            driver.start("clear", None, site.clear(id));
        }
        return;
    }
    // Ids that are reused are the ones worth deleting.
    let id = TaskId::parse("client-0").ok().filter(|_| own);
    if let Some(id) = id.or_else(|| known(driver, false)) {
        driver.start("delete", None, site.delete(id));
    }
}

/// The context of a task that clients know.
fn known_context(driver: &Driver) -> Option<ContextId> {
    let mut world = driver.site.hub.world();
    let known = world.oracle.living().filter(|(_, seen)| seen.acknowledged);
    let ids: Vec<ContextId> = known
        .map(|(_, seen)| seen.record.context_id.clone())
        .collect();
    world.chance.pick(&ids).cloned()
}

/// Sends a message under a new key, as a first message or an answer; or repeats an
/// earlier one, with one or two processes.
fn keyed(driver: &mut Driver, deadline: Option<Timestamp>, until: u64) {
    let site = driver.site.clone();
    let before = site.hub.world().keyed.clone();
    let known = known(driver, true);
    let way = site.hub.world().chance.below(6);
    let old = site.hub.world().chance.pick(&before).cloned();
    let letter = match (way, old, known) {
        (0..3, Some(letter), _) => letter,
        (3..5, _, Some(task)) => site.keyed(Letter {
            task: Some(task),
            ..Letter::new("", "go")
        }),
        _ => site.keyed(site.letter()),
    };
    let (times, streams) = {
        let mut world = site.hub.world();
        (world.chance.below(2), world.chance.below(4) == 0)
    };
    for _ in 0..=times {
        let (site, letter) = (site.on_any_machine(), letter.clone());
        if streams {
            driver.start(
                "keyed stream",
                deadline,
                site.stream(letter, deadline, until),
            );
        } else {
            driver.start("keyed send", deadline, site.send(letter, deadline));
        }
    }
}

/// A client answers the question of a task.
fn answer(driver: &mut Driver, id: &TaskId, until: u64) {
    let site = driver.site.on_any_machine();
    let way = site.hub.world().chance.below(3);
    let letter = Letter {
        task: Some(id.clone()),
        mode: if way == 0 {
            SendMode::Immediate
        } else {
            SendMode::Blocking
        },
        ..Letter::new("", "go")
    };
    if way == 2 {
        driver.start("continue", None, site.stream(letter, None, until));
    } else {
        driver.start("continue", None, site.send(letter, None));
    }
}
