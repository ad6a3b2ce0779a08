//! Generates programs from seeds.

use super::program::{Body, Call, Fails, Op, Program};

/// A seeded xorshift generator: the only source of randomness.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // Seeds that follow each other must not begin alike, and the state must not be 0.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn small(&mut self, end: u8) -> u8 {
        u8::try_from(self.below(u64::from(end))).unwrap()
    }

    /// Whether one of `times` cases is there.
    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// The kinds of operations.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Say,
    Artifact,
    Chunks,
    SaveSession,
    UpdateSession,
    LoadSession,
    CountSession,
    LoadCount,
    AddEvent,
    CountEvents,
    SaveData,
    LoadData,
    Resume,
    Step,
    StepOfSteps,
    Scope,
    Join,
    Race,
    Timeout,
    Sleep,
    Now,
    Worker,
}

/// Kinds that belong together. A program has few of them beside its steps, and therefore often
/// several operations of each.
const THEMES: [&[Kind]; 10] = [
    &[Kind::Say, Kind::Artifact, Kind::Chunks],
    &[Kind::SaveSession, Kind::UpdateSession, Kind::LoadSession],
    &[Kind::CountSession, Kind::LoadCount],
    &[Kind::AddEvent, Kind::CountEvents],
    &[Kind::SaveData, Kind::LoadData],
    &[Kind::Say, Kind::Resume],
    &[Kind::Scope, Kind::Join],
    &[Kind::Scope, Kind::Join, Kind::Race],
    &[Kind::Timeout, Kind::Sleep, Kind::Now],
    &[Kind::Worker],
];

/// How deep operations are in each other.
const DEPTH: u64 = 4;

/// What a generated program may still have.
struct Limits {
    kinds: Vec<Kind>,
    /// How many names there are of each kind.
    names: u8,
    operations: u64,
    depth: u64,
    /// Whether a branch around it may be dropped.
    races: bool,
    /// Whether a step is around it.
    is_in_step: bool,
    /// Whether it is in a branch that is no scope of its own.
    is_bare: bool,
    /// Whether it is in a repetition.
    is_repeated: bool,
    /// The last value that is saved, and whether it is loaded.
    saved: (u8, bool),
}

impl Limits {
    /// Whether a turn that runs again does not repeat such an operation here.
    const fn forbids(&self, kind: Kind) -> bool {
        match kind {
            // A run that continues behind a saved value does not know the operations before it.
            Kind::SaveSession | Kind::UpdateSession | Kind::CountSession | Kind::AddEvent => {
                self.is_repeated
            }
            // What a step saves has no place in the order, so a race in it may end otherwise when
            // its work is done again.
            Kind::SaveData | Kind::Resume => self.is_in_step && self.races,
            _ => false,
        }
    }
}

/// The program of a seed.
pub(super) fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    for _ in 0..8 {
        random.next();
    }
    let turns = 1 + random.below(5) / 4;
    let mut kinds = vec![Kind::Step, Kind::StepOfSteps];
    for _ in 0..1 + random.below(3) {
        kinds.extend(THEMES[usize::try_from(random.below(10)).unwrap()]);
    }
    let mut limits = Limits {
        kinds,
        names: 1 + random.small(2),
        operations: match random.below(8) {
            0 => 16,
            _ => 3 + random.below(5),
        },
        depth: 0,
        races: false,
        is_in_step: false,
        is_bare: false,
        is_repeated: false,
        saved: (0, false),
    };
    let turns = (0..turns).map(|_| body(&mut random, &mut limits, 6));
    Program {
        turns: turns.collect(),
        fails: random.one_in(8),
    }
}

fn body(random: &mut Random, limits: &mut Limits, most: u64) -> Body {
    limits.depth += 1;
    let many = 1 + random.below(most);
    let mut ops = Body::new();
    for _ in 0..many {
        if limits.operations == 0 {
            break;
        }
        limits.operations -= 1;
        ops.push(op(random, limits));
    }
    limits.depth -= 1;
    ops
}

fn op(random: &mut Random, limits: &mut Limits) -> Op {
    let kinds = u64::try_from(limits.kinds.len()).unwrap();
    let kind = limits.kinds[usize::try_from(random.below(kinds)).unwrap()];
    let name = random.small(limits.names);
    if limits.forbids(kind) {
        return step(random, name, Body::new());
    }
    match kind {
        Kind::Say => Op::Say,
        Kind::Artifact => Op::Artifact(name),
        Kind::SaveSession => Op::SaveSession(name),
        Kind::UpdateSession => Op::UpdateSession(name),
        // What a branch did that is dropped is not compared.
        Kind::CountSession if !limits.races => Op::CountSession,
        Kind::LoadCount => Op::LoadCount,
        Kind::LoadSession => Op::LoadSession(name),
        Kind::AddEvent => Op::AddEvent,
        Kind::CountEvents => Op::CountEvents,
        Kind::SaveData => {
            if limits.saved.1 || random.one_in(2) {
                limits.saved = (limits.saved.0 + 1, false);
            }
            Op::SaveData(limits.saved.0)
        }
        // A value is loaded only while nothing is open beside the load.
        Kind::LoadData if !limits.is_bare => {
            limits.saved.1 = true;
            Op::LoadData(limits.saved.0.saturating_sub(name))
        }
        Kind::Resume if !limits.is_bare && limits.depth < DEPTH => {
            let is_repeated = std::mem::replace(&mut limits.is_repeated, true);
            let body = match random.one_in(3) {
                true => Body::new(),
                false => body(random, limits, 3),
            };
            limits.is_repeated = is_repeated;
            Op::Resume(1 + random.small(3), body)
        }
        Kind::StepOfSteps if limits.depth < DEPTH => {
            let body = inner_of_step(random, limits, 4);
            step(random, name, body)
        }
        Kind::Scope if limits.depth < DEPTH => Op::Scope(inner(random, limits, 3)),
        Kind::Join if limits.depth < DEPTH => join(random, limits),
        Kind::Race if limits.depth < DEPTH => race(random, limits),
        Kind::Timeout if limits.depth < DEPTH => {
            let races = std::mem::replace(&mut limits.races, true);
            let body = inner(random, limits, 3);
            limits.races = races;
            Op::Timeout(random.small(6), body)
        }
        Kind::Sleep => Op::Sleep(random.small(6)),
        Kind::Now => Op::Now,
        // Who drops a writer leaves its artifact unfinished.
        Kind::Chunks if !limits.races && limits.depth < DEPTH => chunks(random, limits, name),
        Kind::Worker if limits.depth < DEPTH => Op::Worker {
            streams: random.one_in(3),
            busy: random.one_in(3),
            answers: answers(random, limits),
        },
        _ => step(random, name, Body::new()),
    }
}

/// What is in a scope of its own.
fn inner(random: &mut Random, limits: &mut Limits, most: u64) -> Body {
    let is_bare = std::mem::replace(&mut limits.is_bare, false);
    let body = body(random, limits, most);
    limits.is_bare = is_bare;
    body
}

/// What is in a step.
fn inner_of_step(random: &mut Random, limits: &mut Limits, most: u64) -> Body {
    let is_in_step = std::mem::replace(&mut limits.is_in_step, true);
    let body = inner(random, limits, most);
    limits.is_in_step = is_in_step;
    body
}

fn chunks(random: &mut Random, limits: &mut Limits, name: u8) -> Op {
    let pieces = (0..=random.below(3)).map(|_| match random.one_in(2) {
        true => body(random, limits, 2),
        false => Body::new(),
    });
    Op::Chunks {
        name,
        pieces: pieces.collect(),
    }
}

fn step(random: &mut Random, name: u8, body: Body) -> Op {
    Op::Step {
        name,
        asked: random.one_in(2),
        time: random.small(4),
        fails: match random.below(12) {
            0 => Fails::Always,
            1 => Fails::Once,
            2 => Fails::Busy {
                times: 1 + random.small(3),
                tries: 2 + random.small(2),
            },
            _ => Fails::Never,
        },
        body,
    }
}

fn join(random: &mut Random, limits: &mut Limits) -> Op {
    let many = match random.below(24) {
        0 => 20,
        number => 2 + number % 3,
    };
    branches(random, limits, many)
}

fn race(random: &mut Random, limits: &mut Limits) -> Op {
    let before = std::mem::replace(&mut limits.races, true);
    let mut race = branches(random, limits, 2);
    limits.races = before;
    if let Op::Join { races, .. } = &mut race {
        *races = true;
    }
    race
}

fn branches(random: &mut Random, limits: &mut Limits, many: u64) -> Op {
    let bare = random.one_in(3);
    let branches = (0..many).map(|number| match limits.operations {
        0 => vec![step(random, 0, Body::new())],
        _ if bare && number == 0 => {
            let is_bare = std::mem::replace(&mut limits.is_bare, true);
            let body = body(random, limits, 3);
            limits.is_bare = is_bare;
            body
        }
        _ => inner(random, limits, 3),
    });
    Op::Join {
        races: false,
        branches: branches.collect(),
        bare,
    }
}

/// The answers of a model that call tools.
fn answers(random: &mut Random, limits: &mut Limits) -> Vec<Vec<Call>> {
    let mut number = 0;
    let mut answers = Vec::new();
    for _ in 0..random.below(3) {
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..=random.below(3) {
            match calls.last() {
                Some(last @ Call::Function { .. }) if random.one_in(2) => calls.push(last.clone()),
                _ => calls.push(call(random, limits, number)),
            }
            number += 1;
        }
        answers.push(calls);
    }
    answers
}

fn call(random: &mut Random, limits: &mut Limits, number: u8) -> Call {
    match random.one_in(3) {
        true => Call::Function { number },
        false => Call::Skill {
            number,
            fails: random.one_in(6),
            body: inner_of_step(random, limits, 3),
        },
    }
}
