//! The background work of a deployment, in this process.
//!
//! - `pumps`: the loops in the place of the event sources on AWS
//! - `queue`: the work queue and the push queue, in memory

pub mod pumps;
pub mod queue;
