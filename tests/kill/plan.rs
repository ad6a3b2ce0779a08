//! Which store call gets which fault.

use std::fmt;

/// A store call of a scenario: its operation, and its number among the calls of that
/// operation. Calls of different operations run in parallel, so one more poll of one
/// operation must not change the numbers of the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// The DynamoDB operation, or the method and `object` for S3 (`PUT object`).
    pub(crate) operation: String,
    /// The number, from 1.
    pub(crate) number: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.number)
    }
}

/// The fault of a store call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// The program dies before the call reaches the store.
    KillBefore,
    /// The program dies after the store has executed the call, before the response.
    KillAfter,
    /// Planted: the store reports success and does not execute the call.
    Forget,
    /// Planted: the store ignores the condition of the call.
    Unconditional,
    /// Planted: the store executes only the first part of a transaction.
    Torn,
    /// Planted: the store returns its first response to the same read.
    Stale,
}

impl Deed {
    /// Whether the program dies.
    pub(crate) const fn kills(self) -> bool {
        matches!(self, Self::KillBefore | Self::KillAfter)
    }
}

/// One fault at one call.
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
