//! The agent on this machine: `cargo run`.

fn main() -> std::process::ExitCode {
    a2a_local::serve(agent::agent)
}
