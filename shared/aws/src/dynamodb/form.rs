//! Notes the stored form of the table.
//!
//! The item has the highest form that a release in force may write. Before a release serves it
//! calls [`DynamoTable::claim_form`], so it never meets items that it cannot read.

use super::outcome;
use super::store::DynamoTable;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::stored::{SCHEMA, check_form};
use a2a_lambda_store::item;
use a2a_lambda_store::keys;
use a2a_lambda_store::table::{Comparison, Condition, ItemChange, ReadTable as _};
use a2a_lambda_store::table::{Statement, Table as _};
use aws_sdk_dynamodb::types::Select;

/// Why a program must not use a table.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The table does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It notes a form that this program does not read.
    #[error(
        "it has the stored form {0}, and this release reads {SCHEMA}: create it again, or use a release that reads {0}"
    )]
    Unknown(u32),
    /// It has items, and no program has noted their form.
    #[error(
        "it has items of a build before the stored form {SCHEMA}: create it again, or use that build"
    )]
    Unnoted,
}

impl DynamoTable {
    /// Notes that this program may write its form from now on. A higher form stays noted, since
    /// its items are still there after a rollback.
    ///
    /// # Errors
    /// [`FormError::Unknown`] and [`FormError::Unnoted`] if the table may have items that this
    /// program does not read. Then the item stays as it is.
    pub async fn claim_form(&self) -> Result<(), FormError> {
        let key = keys::form();
        // Another process may note a form between the read and the write, so it reads again.
        loop {
            match self.get(std::slice::from_ref(&key)).await?.first() {
                Some(item) => {
                    let form = item::number(item, item::SCHEMA)?;
                    check_form(form).map_err(|_| FormError::Unknown(form))?;
                    if form >= SCHEMA {
                        return Ok(());
                    }
                }
                None if self.has_items().await? => return Err(FormError::Unnoted),
                None => {}
            }
            let form = i64::from(SCHEMA);
            let rises = Condition::Any(vec![
                Condition::absent(item::SCHEMA),
                Condition::is(item::SCHEMA, Comparison::Below, form),
            ]);
            let note = Statement::update(key.clone(), [ItemChange::set(item::SCHEMA, form)]);
            self.write(note.when(rises).into()).await?.is_done()?;
        }
    }

    /// Whether the table has an item. It counts, so its right shows no content.
    async fn has_items(&self) -> Result<bool, StoreError> {
        let scan = self.client.scan().table_name(&self.name);
        let scan = scan.consistent_read(true).select(Select::Count).limit(1);
        let output = Box::pin(scan.send()).await;
        let output = output.map_err(|error| outcome::read_error(&error))?;
        Ok(output.scanned_count > 0)
    }
}
