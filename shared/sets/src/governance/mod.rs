//! Whether content is acceptable: policies, their merge over the layers, and drift.
//!
//! `access` decides who may act. This module decides about content:
//!
//! ```text
//! PolicyDocument ── compile ──► CompiledPolicy ─┐
//!   (as stored)    refuses what                 ├─ merge ──► MergedPolicies ─┐
//!                  cannot be evaluated   … ─────┘  company → target          ├─ Check ──► CheckResult
//! CheckContext ─── CheckFacts::of ───────────────────────────────────────────┘
//! ```
//!
//! `policy` has the document, `glob` the globs, `compile` the rules that can be
//! evaluated, `facts` what is known about the content, `merge` the layers, `check` the
//! slices in which a turn searches, `validate` the violations and `drift` the score.
//! `skills` are the operations.

mod check;
pub(crate) mod compile;
pub(crate) mod drift;
pub(crate) mod facts;
mod glob;
pub(crate) mod in_force;
pub(crate) mod merge;
pub(crate) mod policy;
pub(crate) mod skills;
pub(crate) mod validate;

use crate::session::A2aAdapter;
use a2a_lambda::skill::SkillSet;

/// The set `governance`. Policies are items of the set [`knowledge`](crate::knowledge), which the
/// agent needs too.
#[must_use]
pub fn set() -> SkillSet {
    skills::set().keeps("policies").session_context(A2aAdapter)
}

#[cfg(test)]
mod tests;
