//! The test harness: agents, clients, clocks and faulty services for the test suites.

pub mod dialect;
pub mod emulator;
pub mod error_rows;
pub mod faulty;
pub mod fixture;
pub mod frames;
pub mod line;
pub mod log_lines;
pub mod recorder;
pub mod remote;
pub mod scenarios;
pub mod tester;
pub mod watched_store;
pub mod world;

/// The examples of the README and of the guide. The documentation tests compile them.
#[cfg(doctest)]
pub mod documents {
    #![doc = include_str!("../../README.md")]
    #[doc = include_str!("../../docs/guide/first-skill.md")]
    pub mod first_skill {}
    #[doc = include_str!("../../docs/guide/state.md")]
    pub mod state {}
    #[doc = include_str!("../../docs/guide/conversation.md")]
    pub mod conversation {}
    #[doc = include_str!("../../docs/guide/steps.md")]
    pub mod steps {}
    #[doc = include_str!("../../docs/guide/time.md")]
    pub mod time {}
    #[doc = include_str!("../../docs/guide/files.md")]
    pub mod files {}
    #[doc = include_str!("../../docs/guide/sets.md")]
    pub mod sets {}
    #[doc = include_str!("../../docs/guide/tests.md")]
    pub mod tests {}
    #[doc = include_str!("../../docs/guide/walk.md")]
    pub mod walk {}
    #[doc = include_str!("../../docs/guide/logs.md")]
    pub mod logs {}
    #[doc = include_str!("../../docs/guide/models.md")]
    pub mod models {}
    #[doc = include_str!("../../docs/guide/choice.md")]
    pub mod choice {}
    #[doc = include_str!("../../docs/guide/cost.md")]
    pub mod cost {}
    #[doc = include_str!("../../docs/guide/ship.md")]
    pub mod ship {}
    #[doc = include_str!("../../docs/guide/store.md")]
    pub mod store {}
}
