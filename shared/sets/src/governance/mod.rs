//! Whether content is acceptable: policies, and their merge over the layers.
//!
//! `access` decides who may act. This module decides about content:
//!
//! ```text
//! PolicyDocument ── compile ──► CompiledPolicy ─┐
//!   (as stored)    refuses what                 ├─ merge ──► MergedPolicies ─┐
//!                  cannot be evaluated   … ─────┘  company → target          ├─ Check ──► Violation
//! CheckContext ─── CheckFacts::of ───────────────────────────────────────────┘
//! ```
//!
//! `policy` has the document, `glob` the globs, `compile` the rules that can be
//! evaluated, `in_force` those of a caller, `facts` what is known about the content, `merge` the
//! layers, `check` the searches of a turn and their violations. `skills` are the
//! operations.

mod check;
pub(crate) mod compile;
pub(crate) mod facts;
mod glob;
pub(crate) mod in_force;
pub(crate) mod merge;
pub(crate) mod policy;
pub(crate) mod skills;

pub use crate::sets::governance as set;

#[cfg(test)]
mod tests;
