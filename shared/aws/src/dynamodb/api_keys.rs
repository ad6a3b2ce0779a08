//! Keeps API keys, all in one partition with the id as the sort key.
//!
//! The authorizer reads items by their keys alone.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::{key, outcome, store::DynamoStore};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::api_keys::{
    ApiKeyId, ApiKeyRecord, KeyCheck, ReadApiKeys, WriteApiKeys,
};
use a2a_lambda_model::task::{Owner, Subject, TenantId, Timestamp};
use async_trait::async_trait;
use std::collections::BTreeSet;

const HASH: &str = "hash";
/// The tenant of the callers.
pub(super) const TENANT: &str = "tenant";
const TIER: &str = "tier";
const SCOPES: &str = "scopes";
const CREATED_AT: &str = "created_at";
const NOTE: &str = "note";
/// The sort key of the check. It sorts before every id: an id begins with `0` or above.
const CHECK: &str = "#check";
const SECRET: &str = "secret";

#[async_trait]
impl ReadApiKeys for DynamoStore {
    async fn api_key(&self, id: &ApiKeyId) -> Result<Option<ApiKeyRecord>, StoreError> {
        let found = self.item(key::API_KEYS, id.as_str()).await?;
        found.as_ref().map(record).transpose()
    }

    async fn key_check(&self) -> Result<Option<KeyCheck>, StoreError> {
        let found = self.item(key::API_KEYS, CHECK).await?;
        found.as_ref().map(check).transpose()
    }
}

#[async_trait]
impl WriteApiKeys for DynamoStore {
    async fn api_keys(&self, tenant: Option<&TenantId>) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let mut keys = Vec::new();
        let mut start = None;
        loop {
            let page = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("PK = :pk AND SK >= :first")
                .expression_attribute_values(":pk", item::text(key::API_KEYS))
                .expression_attribute_values(":first", item::text("0"))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            let read: Result<Vec<_>, _> = page.items().iter().map(record).collect();
            keys.extend(read?);
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        keys.retain(|it| tenant.is_none_or(|tenant| it.owner.tenant == *tenant));
        Ok(keys)
    }

    async fn create_api_key(&self, new: &ApiKeyRecord) -> Result<bool, StoreError> {
        let put = ConditionalWrite::put_at(key::API_KEYS, new.id.as_str(), attributes(new));
        let put = put.when("attribute_not_exists(PK)");
        // A repeated attempt may have met our own write. The stored key decides.
        Ok(self.write_once(put).await? || self.api_key(&new.id).await?.as_ref() == Some(new))
    }

    async fn create_check(&self, check: &KeyCheck) -> Result<(), StoreError> {
        let attributes = Attributes::from([(SECRET, item::text(check.secret.as_str()))]);
        let put = ConditionalWrite::put_at(key::API_KEYS, CHECK, attributes);
        let _first = self
            .write_once(put.when("attribute_not_exists(PK)"))
            .await?;
        Ok(())
    }

    async fn withdraw_api_key(&self, id: &ApiKeyId) -> Result<bool, StoreError> {
        let gone = ConditionalWrite::gone(item::key_of(key::API_KEYS, id.as_str()));
        Ok(self.delete_returning(gone).await?.is_some())
    }
}

fn attributes(key: &ApiKeyRecord) -> Attributes {
    let scopes: Vec<&str> = key.scopes.iter().map(String::as_str).collect();
    let mut item = Attributes::from([
        (HASH, item::text(hex::encode(key.hash))),
        (TENANT, item::text(key.owner.tenant.as_str())),
        (item::OWNER_SUBJECT, item::text(key.owner.subject.as_str())),
        (SCOPES, item::text(scopes.join(" "))),
        (CREATED_AT, item::number(key.created_at.as_millis())),
    ]);
    if let Some(tier) = &key.tier {
        item.insert(TIER, item::text(tier));
    }
    if let Some(note) = &key.note {
        item.insert(NOTE, item::text(note));
    }
    if let Some(end) = key.expires_at {
        item.insert(item::EXPIRES_AT, item::number(end.as_millis()));
        item.insert(item::TTL, item::number(end.ttl_seconds()));
    }
    item
}

fn check(item: &Item) -> Result<KeyCheck, StoreError> {
    let secret = item::string(item, SECRET)?.to_owned();
    Ok(KeyCheck { secret })
}

fn record(item: &Item) -> Result<ApiKeyRecord, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt(format!("an API key has no valid `{what}`"));
    let optional = |name: &str| match item.get(name) {
        Some(_) => item::string(item, name).map(|text| Some(text.to_owned())),
        None => Ok(None),
    };
    let mut hash = [0; 32];
    hex::decode_to_slice(item::string(item, HASH)?, &mut hash).map_err(|_| corrupt(HASH))?;
    let id = ApiKeyId::parse(item::string(item, key::SK)?).ok_or_else(|| corrupt(key::SK))?;
    let tenant = TenantId::parse(item::string(item, TENANT)?).map_err(|_| corrupt(TENANT))?;
    let subject = item::string(item, item::OWNER_SUBJECT)?;
    let subject = Subject::parse(subject).map_err(|_| corrupt(item::OWNER_SUBJECT))?;
    let scopes: BTreeSet<String> = item::string(item, SCOPES)?
        .split_ascii_whitespace()
        .map(str::to_owned)
        .collect();
    let expires_at = match item.get(item::EXPIRES_AT) {
        Some(_) => Some(Timestamp::from_millis(item::integer(
            item,
            item::EXPIRES_AT,
        )?)),
        None => None,
    };
    Ok(ApiKeyRecord {
        id,
        hash,
        owner: Owner { tenant, subject },
        tier: optional(TIER)?,
        scopes,
        created_at: Timestamp::from_millis(item::integer(item, CREATED_AT)?),
        expires_at,
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
        let mut item = item::key_of(key::API_KEYS, key.id.as_str());
        let named = attributes(&key).into_iter();
        item.extend(named.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(record(&item).unwrap(), key);
    }
}
