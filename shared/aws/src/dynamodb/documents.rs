//! Keeps the documents of skills: one item each, in the partition of their collection.
//!
//! A removal leaves an item without content, which DynamoDB's TTL removes. So the functions
//! that run skills need no right to delete items.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes, Item};
use super::{key, outcome, store::DynamoStore};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::documents::{
    DocumentCollection, DocumentExpect, DocumentKey, DocumentPage, DocumentWrite, Documents,
    StoredDocument, check_document,
};
use a2a_lambda_model::task::{Timestamp, WriteId};
use async_trait::async_trait;

/// The id of the write that made the item.
const WRITE: &str = item::WRITES[0];

#[async_trait]
impl Documents for DynamoStore {
    async fn document(
        &self,
        collection: &DocumentCollection,
        key: &DocumentKey,
        now: Timestamp,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let found = self.item(&key::documents(collection), key.as_str()).await?;
        found.map_or(Ok(None), |item| document(&item, now))
    }

    async fn write_document(&self, write: &DocumentWrite) -> Result<bool, StoreError> {
        check_document(write)?;
        let partition = key::documents(&write.collection);
        let sort = write.key.as_str();
        if self.write_once(statement(&partition, write)).await? {
            return Ok(true);
        }
        // A repeated attempt may have met our own write.
        let found = self.item(&partition, sort).await?;
        let maker = found.as_ref().map(|item| item::string(item, WRITE));
        Ok(maker.transpose()? == Some(write.id.as_str()))
    }

    async fn documents(
        &self,
        collection: &DocumentCollection,
        after: Option<&DocumentKey>,
        limit: usize,
        now: Timestamp,
    ) -> Result<DocumentPage, StoreError> {
        let partition = key::documents(collection);
        let start = after.map(|after| item::key_of(&partition, after.as_str()));
        let page = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", item::text(&partition))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let mut documents = Vec::new();
        for item in page.items() {
            documents.extend(document(item, now)?);
        }
        let next = page.last_evaluated_key();
        let next = next.map(|last| parsed(item::string(last, key::SK)?));
        Ok(DocumentPage {
            documents,
            next: next.transpose()?,
        })
    }
}

fn statement(partition: &str, write: &DocumentWrite) -> ConditionalWrite {
    let mut attributes = Attributes::from([(WRITE, item::text(write.id.as_str()))]);
    let expires_at = match &write.text {
        Some(text) => {
            attributes.insert(item::BODY, item::text(text));
            write.expires_at
        }
        None => Some(write.now),
    };
    if let Some(end) = expires_at {
        attributes.insert(item::EXPIRES_AT, item::number(end.as_millis()));
        attributes.insert(item::TTL, item::number(end.ttl_seconds()));
    }
    let mut put = ConditionalWrite::put_at(partition, write.key.as_str(), attributes);
    match &write.expect {
        DocumentExpect::Any => put,
        DocumentExpect::Absent => {
            put.name(item::EXPIRES_AT);
            put.value(":now", item::number(write.now.as_millis()));
            put.when("attribute_not_exists(PK) OR #expires_at <= :now")
        }
        DocumentExpect::Version(version) => {
            put.name(item::EXPIRES_AT);
            put.value(":now", item::number(write.now.as_millis()));
            put.name(WRITE);
            put.value(":was", item::text(version.as_str()));
            let live = "(attribute_not_exists(#expires_at) OR #expires_at > :now)";
            put.when(&format!("#{WRITE} = :was AND {live}"))
        }
    }
}

/// The document in an item; `None` if it was removed or has expired.
fn document(item: &Item, now: Timestamp) -> Result<Option<StoredDocument>, StoreError> {
    if item.contains_key(item::EXPIRES_AT) {
        let end = Timestamp::from_millis(item::integer(item, item::EXPIRES_AT)?);
        if end <= now {
            return Ok(None);
        }
    }
    Ok(Some(StoredDocument {
        key: parsed(item::string(item, key::SK)?)?,
        text: item::string(item, item::BODY)?.to_owned(),
        version: WriteId::stored(item::string(item, WRITE)?),
    }))
}

fn parsed(sort: &str) -> Result<DocumentKey, StoreError> {
    let corrupt = |_| StoreError::Corrupt("a document has no valid key".to_owned());
    DocumentKey::parse(sort).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::super::conditional_write::WriteKind;
    use super::*;
    use a2a_lambda_model::store::documents::DocumentOwner;
    use a2a_lambda_model::task::distinct::Values;

    #[test]
    fn a_document_reads_back_from_its_item_unchanged() {
        let mut values = Values::default();
        let owner = DocumentOwner::Tenant(values.make());
        let now = Timestamp::from_millis(0);
        let write = DocumentWrite {
            collection: DocumentCollection::new(owner, values.make::<String>()).unwrap(),
            key: DocumentKey::parse(values.make::<String>()).unwrap(),
            text: values.make(),
            expires_at: values.make(),
            expect: DocumentExpect::Any,
            id: values.make(),
            now,
        };
        let WriteKind::Put(item) = statement("partition", &write).kind else {
            panic!("a document is put");
        };
        let expected = StoredDocument {
            key: write.key,
            text: write.text.unwrap(),
            version: write.id,
        };
        assert_eq!(document(&item, now).unwrap(), Some(expected));
        let end = write.expires_at.unwrap();
        assert_eq!(item.get(item::TTL), Some(&item::number(end.ttl_seconds())));
        assert_eq!(document(&item, end).unwrap(), None);
    }
}
