//! Runs writes and maps their outcomes to store errors.
//!
//! Only the SDK repeats requests; this module does not repeat what the SDK has given up
//! (decision 0008). A write that was throttled, or met another transaction, decided nothing.

use super::conditional_write::ConditionalWrite;
use super::item::Item;
use super::outcome::{self, Check, WriteOptions, WriteOutcome};
use super::store::DynamoStore;
use a2a_lambda_model::store::StoreError;

/// The result of a write.
#[derive(Debug)]
pub(super) enum WriteResult {
    /// It is stored.
    Done,
    /// A condition failed. Holds one check for each statement.
    Refused(Vec<Check>),
    /// It may or may not be stored; the reason why that is unknown.
    Unknown(String),
}

impl DynamoStore {
    /// Writes the statements, all or none.
    pub(super) async fn write(
        &self,
        statements: Vec<ConditionalWrite>,
    ) -> Result<WriteResult, StoreError> {
        // Boxed, since the future of a request is large, and each caller would hold it.
        let options = WriteOptions::default();
        match Box::pin(outcome::write(
            &self.client,
            &self.table,
            statements,
            options,
        ))
        .await
        {
            WriteOutcome::Done(_) => Ok(WriteResult::Done),
            WriteOutcome::Refused(checks) => Ok(WriteResult::Refused(checks)),
            WriteOutcome::Unknown(why) => Ok(WriteResult::Unknown(why)),
            WriteOutcome::Failed(error) | WriteOutcome::Undecided(error) => Err(error),
        }
    }

    /// Runs one write; `false` if its condition does not hold.
    pub(super) async fn write_once(&self, statement: ConditionalWrite) -> Result<bool, StoreError> {
        self.write_all(vec![statement]).await
    }

    /// Runs all of the writes or none; `false` if a condition does not hold.
    pub(super) async fn write_all(
        &self,
        statements: Vec<ConditionalWrite>,
    ) -> Result<bool, StoreError> {
        match self.write(statements).await? {
            WriteResult::Done => Ok(true),
            WriteResult::Refused(_) => Ok(false),
            WriteResult::Unknown(why) => Err(StoreError::Unavailable(why)),
        }
    }

    /// Deletes one item and returns it; `None` if the condition does not hold or there is no
    /// item.
    pub(super) async fn delete_returning(
        &self,
        statement: ConditionalWrite,
    ) -> Result<Option<Item>, StoreError> {
        let options = WriteOptions {
            wants_old: true,
            ..WriteOptions::default()
        };
        let statements = vec![statement];
        match outcome::write(&self.client, &self.table, statements, options).await {
            WriteOutcome::Done(old) => Ok(old),
            WriteOutcome::Refused(_) => Ok(None),
            WriteOutcome::Failed(error) | WriteOutcome::Undecided(error) => Err(error),
            WriteOutcome::Unknown(why) => Err(StoreError::Unavailable(why)),
        }
    }
}
