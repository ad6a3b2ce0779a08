//! What the features of the crate decide about skills.

/// Whether this build runs skills. Without the feature `turns` nothing reaches the code of a
/// skill, so the linker leaves it out.
pub(super) const RUNS_TURNS: bool = cfg!(feature = "turns");
