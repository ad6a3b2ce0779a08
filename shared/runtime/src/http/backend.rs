//! The part of the engine that a function has.

use super::ops::Ops;
use crate::engine::{Engine, Reader};
use crate::task::A2aError;
use std::sync::Arc;

/// The part of the engine that a function has.
#[derive(Debug, Clone)]
pub enum Backend {
    /// None of it: the function serves cards only.
    Cards,
    /// The part that reads.
    Reader(Reader),
    /// All of it.
    Engine(Box<Engine>),
    /// None of it: the function serves health and metrics only.
    Ops(Arc<Ops>),
}

impl Backend {
    pub(super) fn engine(&self) -> Result<&Engine, A2aError> {
        match self {
            Self::Engine(engine) => Ok(engine),
            Self::Cards | Self::Reader(_) | Self::Ops(_) => Err(A2aError::MethodNotFound),
        }
    }

    pub(super) fn reader(&self) -> Result<&Reader, A2aError> {
        match self {
            Self::Engine(engine) => Ok(engine.reader()),
            Self::Reader(reader) => Ok(reader),
            Self::Cards | Self::Ops(_) => Err(A2aError::MethodNotFound),
        }
    }
}
