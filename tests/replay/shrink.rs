//! Makes a program smaller, to show what a difference needs.

use super::program::{Body, Op, Program};

/// The programs with one operation less.
pub(super) fn smaller(program: &Program) -> Vec<Program> {
    let mut smaller: Vec<Program> = Vec::new();
    for turn in 0..program.turns.len() {
        if program.turns.len() > 1 {
            let mut without = program.clone();
            without.turns.remove(turn);
            smaller.push(without);
        }
    }
    for number in 0.. {
        let mut without = program.clone();
        let mut left = number;
        let mut turns = without.turns.iter_mut();
        if turns.any(|body| remove(body, &mut left)) {
            smaller.push(without);
        } else {
            break;
        }
    }
    smaller
}

/// Removes the operation number `left` of a body, counted with those in it; `false` if it has
/// fewer.
fn remove(body: &mut Body, left: &mut usize) -> bool {
    let mut place = 0;
    while place < body.len() {
        if *left == 0 {
            body.remove(place);
            return true;
        }
        *left -= 1;
        if let Op::Join { branches, .. } = &mut body[place]
            && branches.len() > 1
        {
            if *left == 0 {
                branches.pop();
                return true;
            }
            *left -= 1;
        }
        if body[place]
            .bodies_mut()
            .into_iter()
            .any(|inner| remove(inner, left))
        {
            return true;
        }
        place += 1;
    }
    false
}
