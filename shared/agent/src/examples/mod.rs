//! One small skill for each thing a skill can do.

pub(crate) mod add;
pub(crate) mod echo;
