//! Writes, and what they came to.
//!
//! What the SDK has given up is not made again here. A throttled write, or one
//! that only met other transactions, has decided nothing.

use super::calls::{self, Check, Outcome};
use super::item::Item;
use super::statement::Statement;
use super::{DynamoStore, StoreError};

/// What a write came to.
#[derive(Debug)]
pub(super) enum Decided {
    /// It is stored.
    Done,
    /// Conditions did not hold: for each statement, whether its own did.
    Refused(Vec<Check>),
    /// It may or may not be stored: why that is not known.
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

    /// Makes one write; `false` if its condition does not hold.
    pub(super) async fn settle(&self, statement: Statement) -> Result<bool, StoreError> {
        self.settle_all(std::slice::from_ref(&statement)).await
    }

    /// Makes all of the writes or none; `false` if a condition does not hold.
    pub(super) async fn settle_all(&self, statements: &[Statement]) -> Result<bool, StoreError> {
        match self.decide(statements).await? {
            Decided::Done => Ok(true),
            Decided::Refused(_) => Ok(false),
            Decided::Unknown(why) => Err(StoreError::Unavailable(why)),
        }
    }

    /// Makes one removal, and gives what stood there: nothing where its condition
    /// does not hold.
    pub(super) async fn take_away(&self, statement: Statement) -> Result<Option<Item>, StoreError> {
        match calls::take(&self.client, &self.table, statement).await {
            Ok(old) => Ok(old),
            Err(Outcome::Done | Outcome::Refused(_)) => Ok(None),
            Err(Outcome::Failed(error) | Outcome::Undecided(error)) => Err(error),
            Err(Outcome::Unknown(why)) => Err(StoreError::Unavailable(why)),
        }
    }
}
