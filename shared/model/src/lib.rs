//! The tasks and threads of a2a-lambda, and how they are stored.
//!
//! - [`task`]: the types of a task, its state machine and its record, as pure values
//! - [`thread`]: the messages of a context, as an immutable value
//! - [`stored`]: the stored form of tasks and threads
//! - [`redact`]: removes quoted values from error texts
//! - [`store`]: the storage traits, and the contract that every store passes
//!
//! Nothing here does I/O, reads a clock or names an AWS type: time and ids are
//! arguments, and a store trait only awaits its own methods. The crate `a2a-lambda`
//! re-exports what authors of skills and stores need.

pub mod redact;
pub mod store;
pub mod stored;
pub mod task;
pub mod thread;
