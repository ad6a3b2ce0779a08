//! The program that `cargo run` starts: the agents of this repository on this machine.

use a2a_local::{Agents, LocalAgent};
use std::process::ExitCode;

fn main() -> ExitCode {
    let reference = LocalAgent::new("reference", |_| reference_agent::agent());
    let conformance = LocalAgent::new("conformance", |settings| {
        conformance_agent::agent(settings.tck_streaming_timeout)
    });
    let models = LocalAgent::new("models", |_| reference_agent::models::agent());
    // The webhooks of the conformance kits are plain HTTP on this machine.
    let agents = Agents::new(reference).with(models);
    agents.with(conformance.calling_loopback()).serve()
}
