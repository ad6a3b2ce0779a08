//! Why a cassette cannot be used, or has no answer.

use crate::skill::AgentError;
use std::path::Path;

/// Why a [`Cassette`](super::Cassette) cannot be used, or has no answer. Each error names the
/// file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CassetteError {
    /// There is no such file.
    #[error("there is no cassette `{0}`; record it with `CassetteMode::Record`")]
    Missing(String),
    /// The file is not a cassette, or cannot be read.
    #[error("`{cassette}` cannot be used as a cassette: {why}")]
    Foreign {
        /// The file.
        cassette: String,
        /// What is wrong.
        why: String,
    },
    /// The file cannot be written.
    #[error("failed to write the cassette `{cassette}`: {why}")]
    Unwritable {
        /// The file.
        cassette: String,
        /// The error of the operating system.
        why: String,
    },
    /// A secret cannot be taken out of a text.
    #[error(
        "the cassette `{0}` cannot be kept free of a secret given to `redact`: it is a part of a \
         number, or a word of the file's form"
    )]
    Secret(String),
    /// The model to record cannot be made.
    #[error("there is no model for the cassette `{cassette}`: {why}")]
    NoModel {
        /// The file.
        cassette: String,
        /// The error of the function that makes the model.
        why: String,
    },
    /// There is no recording of a request.
    #[error(
        "the cassette `{cassette}` has no recording of this request; {nearest}; if the change is \
         intended, record it again with `CassetteMode::Record`"
    )]
    Miss {
        /// The file.
        cassette: String,
        /// The nearest recording and the first differences from it.
        nearest: String,
    },
}

impl CassetteError {
    pub(super) fn foreign(path: &Path, why: &impl ToString) -> Self {
        Self::Foreign {
            cassette: path.display().to_string(),
            why: why.to_string(),
        }
    }

    pub(super) fn unwritable(path: &Path, why: &impl ToString) -> Self {
        Self::Unwritable {
            cassette: path.display().to_string(),
            why: why.to_string(),
        }
    }

    /// A test shows this error to its author alone, so it has the private cause.
    pub(super) fn no_model(path: &Path, error: &AgentError) -> Self {
        Self::NoModel {
            cassette: path.display().to_string(),
            why: error.cause().unwrap_or_else(|| error.text()).to_owned(),
        }
    }
}
