//! What the features of the crate decide about skills.

/// Whether this build runs skills. Without the feature `turns` nothing reaches the code of a
/// skill, so the linker leaves it out.
pub(super) const RUNS_TURNS: bool = cfg!(feature = "turns");

/// Stops the compiler at a function that runs skills, in a program built without them.
#[expect(
    clippy::assertions_on_constants,
    reason = "the constant is the point: it differs from build to build"
)]
pub const fn check_turns() {
    assert!(
        RUNS_TURNS,
        "this function runs skills: add the feature `turns` of a2a-lambda"
    );
}
