//! Test harness.

pub mod emulator;
