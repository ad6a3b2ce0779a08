//! Keeps the API keys of a deployment, all in one partition with the id as the sort key.
//!
//! The authorizer reads items by their keys alone, through [`ApiKeyReader`].

use crate::item::{self, EXPIRES_AT, OWNER_SUBJECT, TTL};
use crate::keys::{self, SK};
use crate::table::{self, Condition, Item, Query, Range, ReadTable, Statement, Table};
use a2a_lambda_model::store::StoreError;
pub use a2a_lambda_model::store::api_keys::{ApiKeyId, ApiKeyRecord, KeyCheck};
use a2a_lambda_model::task::{Owner, Subject, TenantId};
use std::sync::Arc;

/// The attribute with the tenant of the callers.
pub const TENANT: &str = "tenant";
const HASH: &str = "hash";
const TIER: &str = "tier";
const SCOPES: &str = "scopes";
const CREATED_AT: &str = "created_at";
const NOTE: &str = "note";
const SECRET: &str = "secret";

/// Reads API keys: all that the authorizer may do.
#[derive(Debug, Clone)]
pub struct ApiKeyReader(Arc<dyn ReadTable>);

impl ApiKeyReader {
    /// The keys in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn ReadTable>) -> Self {
        Self(table)
    }

    /// The key with this id, read consistently. It may have expired.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn api_key(&self, id: &ApiKeyId) -> Result<Option<ApiKeyRecord>, StoreError> {
        let item = table::item(&*self.0, keys::api_key(id)).await?;
        item.as_ref().map(record).transpose()
    }

    /// The check of the deployment; `None` before its first key is made.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn key_check(&self) -> Result<Option<KeyCheck>, StoreError> {
        let item = table::item(&*self.0, keys::key_check()).await?;
        item.as_ref().map(check).transpose()
    }
}

/// Makes and withdraws API keys, for operators.
#[derive(Debug, Clone)]
pub struct ApiKeys(Arc<dyn Table>);

impl ApiKeys {
    /// The keys in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self(table)
    }

    /// Reads the same keys.
    #[must_use]
    pub fn reader(&self) -> ApiKeyReader {
        ApiKeyReader::new(self.0.clone())
    }

    /// All keys, or those of one tenant, by id. Expired keys are included while the table has
    /// them.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn api_keys(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let query = Query {
            // Behind the check, up to the last letter that an id can begin with.
            range: Range::Between("0".into(), "~".into()),
            ..keys::api_keys().into()
        };
        let items = table::query_all(&*self.0, query).await?;
        let mut keys: Vec<_> = items.iter().map(record).collect::<Result<_, _>>()?;
        keys.retain(|it| tenant.is_none_or(|tenant| it.owner.tenant == *tenant));
        Ok(keys)
    }

    /// Stores a key. Returns `false` if there is one with this id, which stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then the key may be stored.
    pub async fn create_api_key(&self, new: &ApiKeyRecord) -> Result<bool, StoreError> {
        let put = Statement::put(keys::api_key(&new.id), attributes(new));
        let put = put.when(Condition::absent(keys::PK));
        let is_stored = self.0.try_write(put).await?;
        // A repeated attempt may have met our own write. The stored key decides.
        Ok(is_stored || self.reader().api_key(&new.id).await?.as_ref() == Some(new))
    }

    /// Stores the check, unless there is one.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then the check may be stored.
    pub async fn create_check(&self, check: &KeyCheck) -> Result<(), StoreError> {
        let item = Item::from([(SECRET.to_owned(), check.secret.as_str().into())]);
        let put = Statement::put(keys::key_check(), item).when(Condition::absent(keys::PK));
        self.0.try_write(put).await.map(drop)
    }

    /// Removes a key. Returns `false` if there is none with this id.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then the key may be removed.
    pub async fn withdraw_api_key(&self, id: &ApiKeyId) -> Result<bool, StoreError> {
        let removal = Statement::delete(keys::api_key(id)).when(Condition::exists(keys::PK));
        self.0.try_write(removal).await
    }
}

fn attributes(key: &ApiKeyRecord) -> Item {
    let scopes: Vec<&str> = key.scopes.iter().map(String::as_str).collect();
    item::of(vec![
        (HASH, Some(hex::encode(key.hash).into())),
        (TENANT, Some(key.owner.tenant.as_str().into())),
        (OWNER_SUBJECT, Some(key.owner.subject.as_str().into())),
        (SCOPES, Some(scopes.join(" ").into())),
        (CREATED_AT, Some(item::millis(key.created_at))),
        (TIER, key.tier.as_deref().map(Into::into)),
        (NOTE, key.note.as_deref().map(Into::into)),
        (EXPIRES_AT, key.expires_at.map(item::millis)),
        (TTL, key.expires_at.map(item::seconds)),
    ])
}

fn check(item: &Item) -> Result<KeyCheck, StoreError> {
    let secret = item::text(item, SECRET)?.to_owned();
    Ok(KeyCheck { secret })
}

fn record(item: &Item) -> Result<ApiKeyRecord, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt(format!("an API key has no valid `{what}`"));
    let optional = |name: &str| match item.get(name) {
        Some(_) => item::text(item, name).map(|text| Some(text.to_owned())),
        None => Ok(None),
    };
    let mut hash = [0; 32];
    hex::decode_to_slice(item::text(item, HASH)?, &mut hash).map_err(|_| corrupt(HASH))?;
    let tenant = TenantId::parse(item::text(item, TENANT)?).map_err(|_| corrupt(TENANT))?;
    let subject = item::text(item, OWNER_SUBJECT)?;
    let subject = Subject::parse(subject).map_err(|_| corrupt(OWNER_SUBJECT))?;
    let scopes = item::text(item, SCOPES)?.split_ascii_whitespace();
    Ok(ApiKeyRecord {
        id: ApiKeyId::parse(item::text(item, SK)?).ok_or_else(|| corrupt(SK))?,
        hash,
        owner: Owner { tenant, subject },
        tier: optional(TIER)?,
        scopes: scopes.map(str::to_owned).collect(),
        created_at: item::time(item, CREATED_AT)?,
        expires_at: item::optional_time(item, EXPIRES_AT)?,
        note: optional(NOTE)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::distinct::Values;

    #[test]
    fn an_api_key_reads_back_from_its_item_unchanged() {
        let mut values = Values::default();
        let key = ApiKeyRecord {
            id: ApiKeyId::parse(&values.make::<u32>().to_string()).unwrap(),
            hash: [7; 32],
            owner: values.make(),
            tier: values.make(),
            scopes: values.make(),
            created_at: values.make(),
            expires_at: values.make(),
            note: values.make(),
        };
        let mut item = keys::api_key(&key.id).item();
        item.extend(attributes(&key));
        assert_eq!(record(&item).unwrap(), key);
    }
}
