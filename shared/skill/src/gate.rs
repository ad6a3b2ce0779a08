//! The gate in front of each skill: who wrote the input of a turn, and whether the user agreed to
//! what a model wrote.
//!
//! A skill runs with a [`TurnStart`] only, and only this module makes the [`Consent`] that one with
//! the input of a model needs.
//!
//! - here: the start of a turn, and the consent
//! - `question`: the question to the user, and what an answer to it means

mod question;

pub use question::{
    ConsentCall, Verdict, ask_consent, ask_consent_again, is_invisible, is_refusal, verdict,
};

use super::{AgentResult, Content, SkillEffect, SkillMetadata, TaskContext, TurnFacts};
use a2a_lambda_model::task::{InputWriter, SavedSlot, SkillRoute};
use question::digest_of;
use std::any::Any;

/// A decoded input of a skill, without its type.
#[derive(Debug)]
pub struct Decoded(pub(super) Box<dyn Any + Send>);

/// What a turn gives its skill.
#[derive(Debug)]
pub enum StartInput {
    /// The first message of a task.
    Request(Decoded),
    /// The answer to an open question.
    Answer(SavedSlot, Content),
}

/// The start of a turn: the input, and who wrote it.
#[derive(Debug)]
pub struct TurnStart {
    pub(super) input: StartInput,
    pub(super) writer: InputWriter,
}

impl TurnStart {
    /// A turn with words of the caller.
    #[must_use]
    pub const fn by_caller(input: StartInput) -> Self {
        Self {
            input,
            writer: InputWriter::Caller,
        }
    }

    /// A turn with an input that a model wrote.
    ///
    /// ```compile_fail
    /// use a2a_lambda_skill::{Consent, TurnStart};
    ///
    /// fn start(input: a2a_lambda_skill::StartInput) -> TurnStart {
    ///     TurnStart::by_model(input, Consent(()))
    /// }
    /// ```
    #[must_use]
    pub const fn by_model(input: StartInput, _: Consent) -> Self {
        Self {
            input,
            writer: InputWriter::Model,
        }
    }
}

/// Leave to start a skill with an input that a model wrote.
#[derive(Debug, Clone, Copy)]
pub struct Consent(());

impl Consent {
    /// For a skill that the model of the router chose with an input that it wrote: if the skill
    /// reads, if its author accepts such inputs, or if the user has agreed to this `call`.
    ///
    /// # Errors
    /// `SERIALIZATION`.
    pub fn for_route(
        skill: &SkillMetadata,
        facts: &TurnFacts,
        call: ConsentCall<'_>,
    ) -> AgentResult<Option<Self>> {
        if skill.effect == SkillEffect::Read || skill.accepts_routed {
            return Ok(Some(Self(())));
        }
        Self::of_answer(facts, &[call])
    }

    /// For the calls to which the message of a turn agrees, if it is these. Their schemas may have
    /// changed since the question.
    fn of_answer(facts: &TurnFacts, calls: &[ConsentCall<'_>]) -> AgentResult<Option<Self>> {
        let digest = digest_of(facts, facts.consents, calls)?;
        Ok((facts.consent.as_ref() == Some(&digest)).then_some(Self(())))
    }

    /// For a turn that runs again: its task has this route since the first run was let through.
    #[must_use]
    pub fn of_stored(_: &SkillRoute) -> Self {
        Self(())
    }

    /// For a tool that needs no confirmation: it reads, or its author trusts the model.
    pub(super) fn for_tool(skill: &SkillMetadata, is_trusted: bool) -> Option<Self> {
        let is_free = is_trusted || skill.effect == SkillEffect::Read;
        is_free.then_some(Self(()))
    }
}

impl TaskContext<'_> {
    /// The question whether these calls may run. A skill sends it as it is.
    ///
    /// # Errors
    /// `SERIALIZATION`.
    pub fn ask_consent(&self, calls: &[ConsentCall<'_>]) -> AgentResult<Content> {
        ask_consent(self.facts, calls)
    }

    /// The consent to these calls, if the message of this turn gives it.
    ///
    /// # Errors
    /// `SERIALIZATION`.
    pub fn consent(&self, calls: &[ConsentCall<'_>]) -> AgentResult<Option<Consent>> {
        Consent::of_answer(self.facts, calls)
    }
}
