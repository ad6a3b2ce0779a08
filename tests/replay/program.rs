//! Generated programs: what a turn does, as data.
//!
//! A program is a function of its input, of what it loads, and of the results of its steps.
//! What a later operation of the turn can change is therefore loaded in a step.

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
    /// A step with an effect. `asked` gives it an input. One that fails is caught.
    Step {
        name: u8,
        asked: bool,
        fails: bool,
        body: Body,
    },
    /// A scope alone.
    Scope(Body),
    /// Scopes that run at the same time.
    Join(Vec<Body>),
    Say,
    Artifact(u8),
    /// An artifact in chunks, with work after each chunk.
    Chunks {
        name: u8,
        pieces: Vec<Body>,
    },
    SaveSession(Key),
    UpdateSession(u8),
    /// Adds one to a number that all branches share.
    CountSession,
    /// Loads that number in a step.
    LoadCount,
    LoadSession(Key),
    AddEvent,
    /// Counts the events of its branch in the thread.
    CountEvents,
    SaveData(u8),
    LoadData(u8),
    /// Says so many things and saves how far it is after each; begins where it was.
    Resume(u8),
    /// A worker whose model gives these answers, and then a text.
    Worker {
        streams: bool,
        answers: Vec<Vec<Call>>,
    },
}

/// A session value of a branch.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Key {
    /// It is saved, and never updated: nothing changes it before the turn ends.
    Saved(u8),
    /// It is saved and updated, and loaded in steps alone.
    Updated(u8),
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
        self.turns.iter().flatten().any(Op::has_branches)
    }
}

impl Op {
    /// Whether it begins with a step.
    pub(super) const fn is_step(&self) -> bool {
        let loads = matches!(self, Self::LoadData(_) | Self::LoadCount);
        loads
            || matches!(self, Self::LoadSession(Key::Updated(_)))
            || matches!(self, Self::Step { .. } | Self::Worker { .. })
    }

    fn has_branches(&self) -> bool {
        matches!(self, Self::Join(_)) || self.bodies().into_iter().flatten().any(Self::has_branches)
    }

    /// The bodies in it.
    pub(super) fn bodies(&self) -> Vec<&Body> {
        match self {
            Self::Step { body, .. } | Self::Scope(body) => vec![body],
            Self::Join(bodies) | Self::Chunks { pieces: bodies, .. } => bodies.iter().collect(),
            Self::Worker { answers, .. } => {
                answers.iter().flatten().filter_map(Call::body).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same, to change them.
    pub(super) fn bodies_mut(&mut self) -> Vec<&mut Body> {
        match self {
            Self::Step { body, .. } | Self::Scope(body) => vec![body],
            Self::Join(bodies) | Self::Chunks { pieces: bodies, .. } => bodies.iter_mut().collect(),
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
