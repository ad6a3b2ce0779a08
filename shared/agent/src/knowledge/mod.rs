//! Knowledge.
