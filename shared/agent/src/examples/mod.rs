//! One small skill for each thing a skill can do.

pub(crate) mod add;
pub(crate) mod book_flight;
pub(crate) mod echo;
pub(crate) mod format_report;
pub(crate) mod generate_report;
pub(crate) mod logo;

#[cfg(test)]
mod tests;
