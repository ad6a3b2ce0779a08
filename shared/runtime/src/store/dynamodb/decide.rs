//! Writes that are tried until something is decided.
//!
//! A throttled write, or one that met another transaction, has decided nothing:
//! it is made again, with the same write id.

use super::calls::{self, Check, Outcome, TRIES};
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
        let mut tries = 0;
        loop {
            match calls::write(&self.client, &self.table, statements).await {
                Outcome::Done => return Ok(Decided::Done),
                Outcome::Refused(checks) => return Ok(Decided::Refused(checks)),
                Outcome::Unknown(why) => return Ok(Decided::Unknown(why)),
                Outcome::Failed(error) => return Err(error),
                Outcome::Undecided(error) if tries + 1 == TRIES => return Err(error),
                Outcome::Undecided(_) => calls::pause(tries).await,
            }
            tries += 1;
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

    /// Makes one write that may be made twice; `false` if its condition does not
    /// hold.
    pub(super) async fn settle_again(&self, statement: Statement) -> Result<bool, StoreError> {
        self.settle_all_again(std::slice::from_ref(&statement))
            .await
    }

    /// Makes all of the writes, which may be made twice, or none; `false` if a
    /// condition does not hold.
    pub(super) async fn settle_all_again(
        &self,
        statements: &[Statement],
    ) -> Result<bool, StoreError> {
        let mut tries = 0;
        loop {
            match self.decide(statements).await? {
                Decided::Done => return Ok(true),
                Decided::Refused(_) => return Ok(false),
                Decided::Unknown(why) if tries + 1 == TRIES => {
                    return Err(StoreError::Unavailable(why));
                }
                Decided::Unknown(_) => calls::pause(tries).await,
            }
            tries += 1;
        }
    }

    /// Makes one removal, which may be made twice, and gives what stood there:
    /// nothing where an earlier try has removed it, or where its condition does
    /// not hold.
    pub(super) async fn take_away(&self, statement: Statement) -> Result<Option<Item>, StoreError> {
        let mut tries = 0;
        loop {
            match calls::take(&self.client, &self.table, statement.clone()).await {
                Ok(old) => return Ok(old),
                Err(Outcome::Done | Outcome::Refused(_)) => return Ok(None),
                Err(Outcome::Failed(error)) => return Err(error),
                Err(Outcome::Undecided(error)) if tries + 1 == TRIES => return Err(error),
                Err(Outcome::Unknown(why)) if tries + 1 == TRIES => {
                    return Err(StoreError::Unavailable(why));
                }
                Err(Outcome::Undecided(_) | Outcome::Unknown(_)) => calls::pause(tries).await,
            }
            tries += 1;
        }
    }
}
