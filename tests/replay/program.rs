//! Generated programs: what a turn does, as data.
//!
//! A program is a function of its input and of what it meets: the results of its steps, what it
//! loads, the order in which its branches end.

use serde::{Deserialize, Serialize};

/// A program: one task with one or more turns. Every turn but the last ends with a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) turns: Vec<Body>,
    /// Whether its task fails at its end.
    pub(super) fails: bool,
}

/// What runs in order.
pub(super) type Body = Vec<Op>;

/// One operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Op {
    /// A step with an effect, which takes this many tenths of a second. `asked` gives it an
    /// input. One that fails is caught.
    Step {
        name: u8,
        asked: bool,
        time: u8,
        fails: Fails,
        body: Body,
    },
    /// A scope alone.
    Scope(Body),
    /// Branches that run at the same time. Each is a scope, but if it is `bare` the first one.
    /// If it `races` the others are dropped when one has ended.
    Join {
        races: bool,
        bare: bool,
        branches: Vec<Body>,
    },
    /// Does this for at most so many tenths of a second.
    Timeout(u8, Body),
    /// Waits so many tenths of a second.
    Sleep(u8),
    /// Reads the time.
    Now,
    Say,
    Artifact(u8),
    /// An artifact in chunks, with work after each chunk.
    Chunks {
        name: u8,
        pieces: Vec<Body>,
    },
    SaveSession(u8),
    UpdateSession(u8),
    /// Adds one to a number that all branches share.
    CountSession,
    /// Loads that number.
    LoadCount,
    LoadSession(u8),
    AddEvent,
    /// Counts the events of its branch in the thread.
    CountEvents,
    SaveData(u8),
    /// Loads a value that is not saved after this.
    LoadData(u8),
    /// Does this so many times, and says and saves how far it is after each; begins where it was.
    Resume(u8, Body),
    /// A worker whose model gives these answers, and then a text. The model of a busy one refuses
    /// each call once.
    Worker {
        streams: bool,
        busy: bool,
        answers: Vec<Vec<Call>>,
    },
}

/// How a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fails {
    Never,
    Always,
    /// The first time that it is done.
    Once,
    /// So many times, for a moment; it may be tried so often.
    Busy {
        times: u8,
        tries: u8,
    },
}

/// A tool call of the model. Calls with the same number in a worker are the same call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Call {
    Function { number: u8 },
    Skill { number: u8, fails: bool, body: Body },
}

impl Call {
    pub(super) const fn number(&self) -> u8 {
        match self {
            Self::Function { number } | Self::Skill { number, .. } => *number,
        }
    }
}

impl Program {
    /// Whether parts of it run at the same time, so that their order depends on time.
    pub(super) fn has_branches(&self) -> bool {
        let is_branched = |op: &Op| matches!(op, Op::Join { .. } | Op::Timeout(..));
        self.turns.iter().flatten().any(|op| op.has(&is_branched))
    }

    /// Whether what it meets depends on when it is interrupted.
    pub(super) fn is_free(&self) -> bool {
        let once = |op: &Op| {
            matches!(
                op,
                Op::Step {
                    fails: Fails::Once | Fails::Busy { .. },
                    ..
                }
            )
        };
        self.has_branches() || self.turns.iter().flatten().any(|op| op.has(&once))
    }
}

impl Op {
    /// Whether a later run continues in it behind a saved value.
    pub(super) fn continues(&self) -> bool {
        self.has(&|op| matches!(op, Self::Resume(..)))
    }

    /// Whether it, or an operation in it, is such a one.
    fn has(&self, is_such: &dyn Fn(&Self) -> bool) -> bool {
        is_such(self)
            || self
                .bodies()
                .into_iter()
                .flatten()
                .any(|op| op.has(is_such))
    }

    /// The bodies in it.
    pub(super) fn bodies(&self) -> Vec<&Body> {
        match self {
            Self::Step { body, .. }
            | Self::Scope(body)
            | Self::Resume(_, body)
            | Self::Timeout(_, body) => vec![body],
            Self::Join {
                branches: bodies, ..
            }
            | Self::Chunks { pieces: bodies, .. } => bodies.iter().collect(),
            Self::Worker { answers, .. } => {
                answers.iter().flatten().filter_map(Call::body).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same, to change them.
    pub(super) fn bodies_mut(&mut self) -> Vec<&mut Body> {
        match self {
            Self::Step { body, .. }
            | Self::Scope(body)
            | Self::Resume(_, body)
            | Self::Timeout(_, body) => vec![body],
            Self::Join {
                branches: bodies, ..
            }
            | Self::Chunks { pieces: bodies, .. } => bodies.iter_mut().collect(),
            Self::Worker { answers, .. } => {
                let skill = |call| match call {
                    &mut Call::Skill { ref mut body, .. } => Some(body),
                    Call::Function { .. } => None,
                };
                answers.iter_mut().flatten().filter_map(skill).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Call {
    /// The program of a tool skill.
    const fn body(&self) -> Option<&Body> {
        match self {
            Self::Skill { body, .. } => Some(body),
            Self::Function { .. } => None,
        }
    }
}
