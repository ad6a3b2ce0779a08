//! What the page of the local agent consists of. The program `a2a-local` serves it.
//!
//! - `assets`: the files of the page and their headers
//! - `inside`: what a task keeps that A2A does not show
//! - `rows`: the tasks as rows of a list, and the search in them
//! - `verdicts`: the checks of the agent
//! - `webhooks`: the push configs of all tasks

pub mod assets;
pub mod inside;
pub mod rows;
pub mod verdicts;
pub mod webhooks;
