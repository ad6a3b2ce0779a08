//! Runs the store contract against LocalStack in a container.

use a2a_lambda::store::contract;
use a2a_lambda_tests::emulator::{Emulator, outside, run};
use std::io::Write as _;
use testcontainers::runners::AsyncRunner as _;
use testcontainers_modules::localstack::LocalStack;

/// Prints the reason to stderr directly, past the output capture of the test.
///
/// # Panics
/// With `DOCKER_TESTS=required`, so that a job for this suite cannot pass without it.
#[expect(
    clippy::disallowed_methods,
    reason = "the settings of the product do not name its tests"
)]
fn skip(why: &str) {
    let required = std::env::var("DOCKER_TESTS").is_ok_and(|value| value == "required");
    assert!(!required, "the LocalStack suite cannot run: {why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED: LocalStack suite: {why}");
}

#[tokio::test]
async fn the_contract_holds_on_localstack() {
    if outside().is_some() {
        skip("AWS_ENDPOINT_URL names another emulator");
        return;
    }
    let container = match LocalStack::default().start().await {
        Ok(container) => container,
        Err(error) => {
            skip(&format!("no container can be started: {error}"));
            return;
        }
    };
    let host = container.get_host().await.unwrap();
    let port = container.get_host_port_ipv4(4566).await.unwrap();
    let emulator = Emulator::at(&format!("http://{host}:{port}"))
        .await
        .unwrap();
    contract::all(&emulator.stores(), run()).await.unwrap();
}
