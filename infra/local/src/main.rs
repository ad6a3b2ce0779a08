//! The program that `cargo run` starts: the whole agent on this machine.

use a2a_local::cli;
use clap::Parser as _;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(a2a_local::config::Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::fail(&error),
    }
}
