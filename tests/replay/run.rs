//! Runs a program, with or without an interruption, and notes what its clients see.

use super::log::{Effects, Facts, Log, Wait, text_of};
use super::model::PromptedModel;
use super::program::Program;
use super::skills::{ProgramRun, agent};
use a2a_lambda::SkillTest;
use a2a_lambda::task::{Artifact, Event, PartContent, Task};
use a2a_lambda::testing::SkillTestError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The time of each invocation that has to hand its turn over.
const SHORT: Duration = Duration::from_secs(10);
/// The time of the others.
const LONG: Duration = Duration::from_secs(24 * 3600);
/// A wait after which the next step may not start.
const PAST_THE_STOP: Duration = Duration::from_millis(6500);
/// A wait in which the engine drops the skill.
const PAST_THE_END: Duration = Duration::from_secs(60);

/// What happens to a turn while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// Nothing.
    Undisturbed,
    /// Its process dies after so many things are stored.
    Crash(u64),
    /// Its process dies before it stores so many things.
    CrashBefore(u64),
    /// It is handed over at this place.
    HandOver(u64),
    /// It is handed over at the first step after this place.
    HandOverAtStep(u64),
    /// It is handed over in each step.
    HandOvers,
    /// Its process dies after so many things; it is also handed over at the place.
    Both(u64, u64),
}

/// Something that a stream or a task shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// An event that takes back what came since the last stored base.
    Restarted,
    Status {
        state: String,
        text: String,
    },
    Artifact {
        name: String,
        append: bool,
        last: bool,
        texts: Vec<String>,
    },
}

/// What a client saw of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnView {
    pub(super) events: Vec<Item>,
    pub(super) state: String,
    pub(super) status: String,
    pub(super) history: Vec<String>,
    pub(super) artifacts: Vec<(String, Vec<String>)>,
}

/// What a run of a program led to.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) turns: Vec<TurnView>,
    pub(super) effects: Effects,
    pub(super) facts: Facts,
    /// The branches that were dropped.
    pub(super) dropped: BTreeSet<String>,
    pub(super) session: BTreeMap<String, String>,
    pub(super) thread: Vec<String>,
    pub(super) sealed: BTreeMap<String, usize>,
    pub(super) places: u64,
    pub(super) before_steps: BTreeSet<u64>,
    pub(super) begun: u64,
    pub(super) violations: Vec<String>,
}

impl Point {
    fn wait(self) -> Wait {
        match self {
            Self::Undisturbed | Self::Crash(_) | Self::CrashBefore(_) => Wait::Never,
            Self::HandOver(place) | Self::Both(_, place) => Wait::At(place, PAST_THE_END),
            Self::HandOverAtStep(place) => Wait::At(place, PAST_THE_STOP),
            Self::HandOvers => Wait::InSteps(PAST_THE_END),
        }
    }

    fn apply(self, client: &mut SkillTest) {
        if let Self::Crash(things) | Self::Both(things, _) = self {
            client.crash_after(things);
        }
        if let Self::CrashBefore(things) = self {
            client.crash_before(things);
        }
        let is_short = !matches!(
            self,
            Self::Undisturbed | Self::Crash(_) | Self::CrashBefore(_)
        );
        client.time_left(if is_short { SHORT } else { LONG });
    }
}

/// Runs a program. `None` if the turn ends before the crash.
///
/// # Errors
/// When a message has no reply.
pub(super) async fn observe(
    program: &Arc<Program>,
    turn: usize,
    point: Point,
    chosen: Option<Arc<Facts>>,
) -> Result<Option<Observed>, SkillTestError> {
    let log = Arc::new(Log::new(point.wait(), chosen));
    let run = ProgramRun {
        program: Arc::clone(program),
        log: Arc::clone(&log),
    };
    let mut client = SkillTest::new(&agent(&run), "run");
    client.model(PromptedModel(Arc::clone(&log)));
    let mut turns = Vec::new();
    for number in 0..program.turns.len() {
        let here = if number == turn {
            point
        } else {
            Point::Undisturbed
        };
        here.apply(&mut client);
        let reply = match client.send(format!("go {number}")).await {
            Err(SkillTestError::NoCrash { .. }) => return Ok(None),
            reply => reply?,
        };
        let task = reply.task().unwrap();
        let mut view = turn_view(client.events(), task);
        view.status.extend(client.cause());
        turns.push(view);
        if task.status.state.is_terminal() {
            break;
        }
    }
    client.skill("probe").send("read").await?;
    let notes = std::mem::take(&mut *log.notes());
    Ok(Some(Observed {
        turns,
        effects: notes.effects,
        facts: notes.facts,
        dropped: notes.dropped.into_values().flatten().collect(),
        session: notes.session,
        thread: notes.thread,
        sealed: notes.sealed,
        places: notes.places,
        before_steps: notes.before_steps,
        begun: notes.begun,
        violations: notes.violations,
    }))
}

impl Item {
    /// The begin of the work: the task at the head of a stream shows it too.
    fn is_start(&self) -> bool {
        matches!(self, Self::Status { state, text } if state == "working" && text.is_empty())
    }
}

fn turn_view(events: &[Event], task: &Task) -> TurnView {
    let status = task.status.message.as_ref();
    let history = task.history.iter().flatten();
    let artifacts = task.artifacts.iter().flatten();
    TurnView {
        events: events
            .iter()
            .map(item)
            .filter(|it| !it.is_start())
            .collect(),
        state: task.status.state.to_string(),
        status: status.map(text_of).unwrap_or_default(),
        history: history.map(text_of).collect(),
        artifacts: artifacts.map(|it| (name_of(it), parts_of(it))).collect(),
    }
}

fn item(event: &Event) -> Item {
    match event {
        Event::Status(update) if update.metadata.contains_key("a2a-lambda/restarted") => {
            Item::Restarted
        }
        Event::Status(update) => Item::Status {
            state: update.status.state.to_string(),
            text: update
                .status
                .message
                .as_ref()
                .map(text_of)
                .unwrap_or_default(),
        },
        Event::Artifact(update) => Item::Artifact {
            name: name_of(&update.artifact),
            append: update.append,
            last: update.last_chunk,
            texts: parts_of(&update.artifact),
        },
    }
}

fn name_of(artifact: &Artifact) -> String {
    artifact.name.clone().unwrap_or_default()
}

fn parts_of(artifact: &Artifact) -> Vec<String> {
    let parts = artifact.parts.iter();
    parts
        .map(|part| match &part.content {
            PartContent::Text(text) => text.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}
