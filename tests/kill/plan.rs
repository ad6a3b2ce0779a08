//! What is done to which store call.

use std::fmt;

/// A store call of a scenario: the running number of its kind. Calls of
/// different kinds run beside each other, and a poll more or less of one kind
/// must not move the numbers of the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// The operation, as DynamoDB names it or as `PUT object`.
    pub(crate) operation: String,
    /// From 1.
    pub(crate) number: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.number)
    }
}

/// What is done at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The program dies; the call does not reach the store.
    KillBefore,
    /// The program dies; the store has done it, and nobody hears.
    KillAfter,
    /// Planted: the store says that it has done it, and has not.
    Forget,
    /// Planted: the store does it whatever its condition says.
    Unconditional,
    /// Planted: of a transaction only the first part is done.
    Torn,
    /// Planted: the store answers with what it answered this question first.
    Stale,
}

impl Deed {
    /// Whether the program dies of it.
    pub(crate) const fn kills(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter)
    }
}

/// One deed at one point.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) point: Point,
    pub(crate) deed: Deed,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.deed, self.point)
    }
}
