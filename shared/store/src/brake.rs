//! Keeps the brake: one item for the whole deployment.

use crate::item::{self, BODY};
use crate::keys::{self, PK};
use crate::table::{self, Comparison, Condition, Item, Statement, Table};
use a2a_lambda_model::store::StoreError;
pub use a2a_lambda_model::store::brake::{Brake, BrakeEntry, BrakeTarget};
use a2a_lambda_model::task::Timestamp;
use std::sync::Arc;

/// How often a change is tried again after another operator came first.
const ROUNDS: u32 = 8;

/// Keeps the brake.
#[derive(Debug, Clone)]
pub struct Brakes(Arc<dyn Table>);

impl Brakes {
    /// The brake in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self(table)
    }

    /// The brake. It may lack a change of the last second.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn read(&self) -> Result<Brake, StoreError> {
        let item = self.0.glance(keys::brake()).await?;
        item.as_ref().map_or(Ok(Brake::default()), brake)
    }

    /// Sets or lifts the brake of a target. Nothing changes if it is so already.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if there is no room. Otherwise it may be changed: repeat the call.
    pub async fn change(
        &self,
        target: &BrakeTarget,
        is_set: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            let item = table::item(&*self.0, keys::brake()).await?;
            let mut brake = item.as_ref().map_or(Ok(Brake::default()), brake)?;
            match is_set {
                true => brake.set(target, now)?,
                false => _ = brake.lift(target, now),
            }
            let text = brake.to_text();
            let same = match &item {
                Some(item) => Condition::is(BODY, Comparison::Equal, item::text(item, BODY)?),
                None => Condition::absent(PK),
            };
            let item = Item::from([(BODY.to_owned(), text.into())]);
            let put = Statement::put(keys::brake(), item);
            if self.0.try_write(put.when(same)).await? {
                return Ok(());
            }
        }
        let text = "other operators changed the brake in every round".to_owned();
        Err(StoreError::Contended(text))
    }
}

fn brake(item: &Item) -> Result<Brake, StoreError> {
    Brake::parse(item::text(item, BODY)?)
}
