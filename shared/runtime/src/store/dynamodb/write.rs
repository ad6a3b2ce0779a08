//! Runs writes and maps their outcomes to store errors.
//!
//! Only the SDK repeats requests; this module does not repeat what the SDK has given up
//! (decision 0021). A write that was throttled, or met another transaction, decided nothing.

use super::calls::{self, Check, Outcome};
use super::item::Item;
use super::statement::Statement;
use super::{DynamoStore, StoreError};

/// The result of a write.
#[derive(Debug)]
pub(super) enum Decided {
    /// It is stored.
    Done,
    /// A condition failed. Holds one check for each statement.
    Refused(Vec<Check>),
    /// It may or may not be stored; the reason why that is unknown.
    Unknown(String),
}

impl DynamoStore {
    /// Writes the statements, all or none.
    pub(super) async fn decide(&self, statements: &[Statement]) -> Result<Decided, StoreError> {
        match calls::write(&self.client, &self.table, statements).await {
            Outcome::Done => Ok(Decided::Done),
            Outcome::Refused(checks) => Ok(Decided::Refused(checks)),
            Outcome::Unknown(why) => Ok(Decided::Unknown(why)),
            Outcome::Failed(error) | Outcome::Undecided(error) => Err(error),
        }
    }

    /// Runs one write; `false` if its condition does not hold.
    pub(super) async fn settle(&self, statement: Statement) -> Result<bool, StoreError> {
        self.settle_all(std::slice::from_ref(&statement)).await
    }

    /// Runs all of the writes or none; `false` if a condition does not hold.
    pub(super) async fn settle_all(&self, statements: &[Statement]) -> Result<bool, StoreError> {
        match self.decide(statements).await? {
            Decided::Done => Ok(true),
            Decided::Refused(_) => Ok(false),
            Decided::Unknown(why) => Err(StoreError::Unavailable(why)),
        }
    }

    /// Deletes one item and returns it; `None` if the condition does not hold or there is no
    /// item.
    pub(super) async fn take_away(&self, statement: Statement) -> Result<Option<Item>, StoreError> {
        match calls::take(&self.client, &self.table, statement).await {
            Ok(old) => Ok(old),
            Err(Outcome::Done | Outcome::Refused(_)) => Ok(None),
            Err(Outcome::Failed(error) | Outcome::Undecided(error)) => Err(error),
            Err(Outcome::Unknown(why)) => Err(StoreError::Unavailable(why)),
        }
    }
}
