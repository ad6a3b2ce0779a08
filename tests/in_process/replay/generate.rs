//! Generates programs from seeds.

use super::program::{Body, Call, Key, Op, Program};

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

/// What a generated body may still have.
struct Limits {
    operations: u64,
    depth: u64,
}

/// The program of a seed.
pub(super) fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    for _ in 0..8 {
        random.next();
    }
    let turns = 1 + random.below(5) / 3;
    let mut limits = Limits {
        operations: 3 + random.below(12),
        depth: 0,
    };
    let turns = (0..turns).map(|_| body(&mut random, &mut limits, 5));
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
    let kind = match limits.depth {
        0..=3 => random.below(30),
        _ => random.below(20),
    };
    match kind {
        0..=2 => Op::Say,
        3 => Op::Artifact(random.small(2)),
        4..=5 => Op::SaveSession(key(random)),
        6..=7 => Op::UpdateSession(random.small(2)),
        8 => Op::CountSession,
        9..=10 => Op::LoadSession(key(random)),
        11..=12 => Op::AddEvent,
        13 => Op::CountEvents,
        14 => Op::SaveData(random.small(2)),
        15 => Op::LoadData(random.small(2)),
        16..=19 => step(random, Body::new()),
        20..=23 => {
            let body = body(random, limits, 4);
            step(random, body)
        }
        24 => Op::Scope(body(random, limits, 3)),
        25..=26 => join(random, limits),
        27 => Op::Chunks {
            name: random.small(2),
            pieces: (0..=random.below(3))
                .map(|_| match random.one_in(2) {
                    true => body(random, limits, 2),
                    false => Body::new(),
                })
                .collect(),
        },
        _ => Op::Worker {
            streams: random.one_in(3),
            answers: answers(random, limits),
        },
    }
}

fn key(random: &mut Random) -> Key {
    match random.one_in(2) {
        true => Key::Saved(random.small(2)),
        false => Key::Updated(random.small(2)),
    }
}

fn step(random: &mut Random, body: Body) -> Op {
    Op::Step {
        name: random.small(3),
        asked: random.one_in(2),
        fails: random.one_in(6),
        body,
    }
}

fn join(random: &mut Random, limits: &mut Limits) -> Op {
    let many = match random.below(16) {
        0 => 20,
        number => 2 + number % 3,
    };
    let branches = (0..many).map(|_| match limits.operations {
        0 => vec![step(random, Body::new())],
        _ => body(random, limits, 3),
    });
    Op::Join(branches.collect())
}

/// The answers of a model that call tools.
fn answers(random: &mut Random, limits: &mut Limits) -> Vec<Vec<Call>> {
    let mut number = 0;
    let mut answers = Vec::new();
    for _ in 0..random.below(3) {
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..=random.below(3) {
            match calls.last() {
                Some(last) if random.one_in(4) => calls.push(last.clone()),
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
            body: body(random, limits, 3),
        },
    }
}
