//! Keeps the documents of skills: one item each, in the partition of their collection.
//!
//! A removal leaves an item without content, which the TTL of the table removes. So the
//! functions that run skills need no right to delete items.

use crate::item::{self, BODY, EXPIRES_AT, OWNER_SUBJECT, TTL, WRITE, size};
use crate::keys::{self, PK, SK};
use crate::table::{self, Comparison, Condition, Item, Position, Query, Statement, Table};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::documents::check_document;
pub use a2a_lambda_model::store::documents::{
    DOCUMENT_MAX, DocumentCollection, DocumentExpect, DocumentKey, DocumentNameError,
    DocumentOwner, DocumentPage, DocumentWrite, StoredDocument,
};
use a2a_lambda_model::task::{Timestamp, WriteId};
use std::sync::Arc;

/// Keeps the documents of skills.
#[derive(Debug, Clone)]
pub struct Documents(Arc<dyn Table>);

impl Documents {
    /// The documents in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self(table)
    }

    /// A document, read consistently; `None` if there is none at `now`.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn document(
        &self,
        collection: &DocumentCollection,
        key: &DocumentKey,
        now: Timestamp,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let item = table::item(&*self.0, keys::document(collection, key)).await?;
        item.map_or(Ok(None), |item| document(&item, now))
    }

    /// Writes a document, or removes it. Returns `false`, and writes nothing, if another one
    /// is found than expected.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a text above [`DOCUMENT_MAX`]. Otherwise the write may be
    /// stored.
    pub async fn write_document(&self, write: &DocumentWrite) -> Result<bool, StoreError> {
        check_document(write)?;
        if self.0.try_write(statement(write)).await? {
            return Ok(true);
        }
        // A repeated attempt may have met our own write.
        let key = keys::document(&write.collection, &write.key);
        let item = table::item(&*self.0, key).await?;
        let maker = item.as_ref().map(|item| item::text(item, WRITE));
        Ok(maker.transpose()? == Some(write.id.as_str()))
    }

    /// At most `limit` documents behind the key `after`, read consistently. A page can be
    /// shorter, and even empty, before the last one.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn documents(
        &self,
        collection: &DocumentCollection,
        after: Option<&DocumentKey>,
        limit: usize,
        now: Timestamp,
    ) -> Result<DocumentPage, StoreError> {
        let query = query(collection, after, limit);
        self.page(query, now).await
    }

    /// At most `limit` documents before the key `before`, the highest key first. The read may
    /// lag a second behind the writes, and costs half of one that does not.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn last_documents(
        &self,
        collection: &DocumentCollection,
        before: Option<&DocumentKey>,
        limit: usize,
        now: Timestamp,
    ) -> Result<DocumentPage, StoreError> {
        let query = Query {
            newest_first: true,
            lags: true,
            ..query(collection, before, limit)
        };
        self.page(query, now).await
    }

    async fn page(&self, query: Query, now: Timestamp) -> Result<DocumentPage, StoreError> {
        let page = self.0.query(&query).await?;
        let mut documents = Vec::new();
        for item in &page.items {
            documents.extend(document(item, now)?);
        }
        let next = page.next.map(|last| parse_key(item::text(&last.0, SK)?));
        Ok(DocumentPage {
            documents,
            bytes: page.items.iter().map(size).sum(),
            next: next.transpose()?,
        })
    }
}

fn query(collection: &DocumentCollection, start: Option<&DocumentKey>, limit: usize) -> Query {
    Query {
        limit: Some(limit),
        start: start.map(|key| Position(keys::document(collection, key).item())),
        ..keys::documents(collection).into()
    }
}

fn statement(write: &DocumentWrite) -> Statement {
    let (author, end) = match &write.text {
        Some(_) => (write.author.as_ref(), write.expires_at),
        None => (None, Some(write.now)),
    };
    let item = item::of(vec![
        (WRITE, Some(write.id.as_str().into())),
        (BODY, write.text.as_deref().map(Into::into)),
        (OWNER_SUBJECT, author.map(|it| it.as_str().into())),
        (EXPIRES_AT, end.map(item::millis)),
        (TTL, end.map(item::seconds)),
    ]);
    let put = Statement::put(keys::document(&write.collection, &write.key), item);
    let is_over = Condition::is(EXPIRES_AT, Comparison::AtMost, write.now.as_millis());
    match &write.expect {
        DocumentExpect::Any => put,
        DocumentExpect::Absent => put.when(Condition::Any(vec![Condition::absent(PK), is_over])),
        DocumentExpect::Version(version) => put.when(Condition::All(vec![
            Condition::is(WRITE, Comparison::Equal, version.as_str()),
            item::is_live(write.now),
        ])),
    }
}

/// The document in an item; `None` if it was removed or has expired.
fn document(item: &Item, now: Timestamp) -> Result<Option<StoredDocument>, StoreError> {
    let end = item::optional_time(item, EXPIRES_AT)?;
    if end.is_some_and(|end| end <= now) {
        return Ok(None);
    }
    Ok(Some(StoredDocument {
        key: parse_key(item::text(item, SK)?)?,
        text: item::text(item, BODY)?.to_owned(),
        version: WriteId::from_stored(item::text(item, WRITE)?),
    }))
}

fn parse_key(sort: &str) -> Result<DocumentKey, StoreError> {
    let corrupt = |_| StoreError::Corrupt("a document has no valid key".to_owned());
    DocumentKey::parse(sort).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Action;
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
            author: values.make(),
            expires_at: values.make(),
            expect: DocumentExpect::Any,
            id: values.make(),
            now,
        };
        let put = statement(&write);
        let mut item = put.key.item();
        let Action::Put(attributes) = put.action else {
            panic!("a document is put");
        };
        item.extend(attributes);
        let author = write.author.as_ref().unwrap();
        assert_eq!(item.get(OWNER_SUBJECT), Some(&author.as_str().into()));
        let removal = statement(&DocumentWrite {
            text: None,
            ..write.clone()
        });
        assert!(matches!(removal.action, Action::Put(left) if !left.contains_key(OWNER_SUBJECT)));
        let expected = StoredDocument {
            key: write.key,
            text: write.text.unwrap(),
            version: write.id,
        };
        assert_eq!(document(&item, now).unwrap(), Some(expected));
        let end = write.expires_at.unwrap();
        assert_eq!(item.get(item::TTL), Some(&end.ttl_seconds().into()));
        assert_eq!(document(&item, end).unwrap(), None);
    }
}
