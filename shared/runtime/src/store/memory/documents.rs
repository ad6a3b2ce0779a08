//! The documents of skills in memory.

use super::MemoryStore;
use super::tables::DocumentEntry;
use crate::store::StoreError;
use crate::store::documents::{
    DocumentCollection, DocumentExpect, DocumentKey, DocumentPage, DocumentWrite, Documents,
    StoredDocument, check_document,
};
use crate::task::Timestamp;
use async_trait::async_trait;

#[async_trait]
impl Documents for MemoryStore {
    async fn document(
        &self,
        collection: &DocumentCollection,
        key: &DocumentKey,
        now: Timestamp,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let tables = self.tables();
        let found = tables.documents.get(&(collection.clone(), key.clone()));
        Ok(found.and_then(|entry| entry.at(key, now)))
    }

    async fn write_document(&self, write: &DocumentWrite) -> Result<bool, StoreError> {
        check_document(write)?;
        let mut tables = self.tables();
        let place = (write.collection.clone(), write.key.clone());
        let known = tables.documents.get(&place);
        if known.is_some_and(|entry| entry.version == write.id) {
            return Ok(true);
        }
        let live = known.and_then(|entry| entry.at(&write.key, write.now));
        let expected = match &write.expect {
            DocumentExpect::Any => true,
            DocumentExpect::Absent => live.is_none(),
            DocumentExpect::Version(version) => live.is_some_and(|it| it.version == *version),
        };
        if expected {
            let entry = DocumentEntry {
                text: write.text.clone(),
                version: write.id.clone(),
                expires_at: write.expires_at.filter(|_| write.text.is_some()),
            };
            tables.documents.insert(place, entry);
        }
        Ok(expected)
    }

    async fn documents(
        &self,
        collection: &DocumentCollection,
        after: Option<&DocumentKey>,
        limit: usize,
        now: Timestamp,
    ) -> Result<DocumentPage, StoreError> {
        let tables = self.tables();
        let behind = |((of, key), _): &(&(DocumentCollection, DocumentKey), _)| {
            of == collection && after.is_none_or(|after| key > after)
        };
        let all = tables.documents.iter().filter(behind);
        let mut live = all.filter_map(|((_, key), entry)| entry.at(key, now));
        let documents: Vec<_> = live.by_ref().take(limit).collect();
        let next = live.next().and(documents.last());
        Ok(DocumentPage {
            next: next.map(|document| document.key.clone()),
            documents,
        })
    }
}
