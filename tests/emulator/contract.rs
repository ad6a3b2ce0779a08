//! Runs the store contract against DynamoDB and S3, one test per case.

use a2a_lambda::store::contract::{self, Case, SampleData};
use a2a_lambda_tests::emulator::{Emulator, run};

macro_rules! on_the_emulator {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let emulator = Emulator::start().await.unwrap();
            let sample = SampleData::new(run(), stringify!($case)).unwrap();
            contract::$case(&emulator.stores(), &sample).await.unwrap();
        }
    )*};
}
a2a_lambda::store_contract_cases!(on_the_emulator);

macro_rules! on_the_table {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let emulator = match stringify!($case) {
                // A table has one check. Other tests may make keys in a shared table.
                "the_first_check_of_keys_stays" => Emulator::alone().await.unwrap(),
                _ => Emulator::start().await.unwrap(),
            };
            let table = emulator.records.table();
            let case = Case::new(table, run(), stringify!($case)).unwrap();
            contract::$case(&case).await.unwrap();
        }
    )*};
}
a2a_lambda::table_contract_cases!(on_the_table);
