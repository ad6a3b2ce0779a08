//! The test harness: agents, clients, clocks and faulty services for the test suites.

pub mod dialect;
pub mod emulator;
pub mod error_rows;
pub mod faulty;
pub mod fixture;
pub mod frames;
pub mod log_lines;
pub mod recorder;
pub mod remote;
pub mod scenarios;
pub mod tester;
pub mod virtual_clock;
pub mod watched_store;
pub mod world;
