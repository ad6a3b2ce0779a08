//! One small skill for each feature that a skill can use.

pub(crate) mod add;
pub(crate) mod book_flight;
pub(crate) mod create_report;
pub(crate) mod echo;
pub(crate) mod fingerprint;
pub(crate) mod format_report;
pub(crate) mod generate_report;
pub(crate) mod logo;
mod pdf;
mod png;

#[cfg(test)]
mod tests;
