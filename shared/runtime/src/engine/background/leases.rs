//! How a sweep treats the leases of turns.

/// How a sweep treats leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leases {
    /// As stored.
    Respect,
    /// As expired: the processes that held them died with the process before this one.
    CountAsExpired,
}
