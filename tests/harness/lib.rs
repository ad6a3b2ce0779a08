//! Test harness.

pub mod emulator;
pub mod faulty;
