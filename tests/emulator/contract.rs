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
