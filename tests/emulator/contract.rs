//! Runs the store contract against DynamoDB and S3, one test per case.

use a2a_lambda::store::contract::{self, World};
use a2a_lambda_tests::emulator::{Emulator, run};

macro_rules! on_the_emulator {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let emulator = Emulator::start().await.unwrap();
            let world = World::new(run(), stringify!($case)).unwrap();
            contract::$case(&emulator.stores(), &world).await.unwrap();
        }
    )*};
}
a2a_lambda::store_contract_cases!(on_the_emulator);

#[tokio::test]
async fn api_keys_follow_their_contract() {
    let emulator = Emulator::start().await.unwrap();
    let world = World::new(run(), "api keys").unwrap();
    let kept = contract::an_api_key_reads_back_until_it_is_withdrawn(&emulator.records, &world);
    kept.await.unwrap();
    // A table has one check. Other tests may make keys in a shared table.
    let emulator = Emulator::alone().await.unwrap();
    let kept = contract::the_first_check_of_keys_stays(&emulator.records, &world);
    kept.await.unwrap();
}

#[tokio::test]
async fn documents_follow_their_contract() {
    let emulator = Emulator::start().await.unwrap();
    let kept = contract::every_case_of_documents(&emulator.records, run());
    kept.await.unwrap();
}
