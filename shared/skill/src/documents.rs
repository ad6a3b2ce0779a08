//! What skills keep beside their tasks: JSON documents that outlive tasks and contexts.

use super::turn_host::DocumentHost;
use super::{AgentError, AgentResult};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{Subject, WriteId};
use a2a_lambda_store::documents::{
    DOCUMENT_MAX, DocumentCollection, DocumentExpect, DocumentKey, DocumentNameError,
    DocumentOwner, DocumentWrite, StoredDocument,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The most bytes of an item beside the text of its document: two keys, a subject and names.
const ITEM: usize = 2 * 1024;

/// A collection of documents: see [`TaskContext::documents`](super::TaskContext::documents).
///
/// A document has at most 256 KB as JSON. A write is stored when its call returns, and it is
/// not part of the commits of the task: a turn that runs again writes again. So use keys that
/// are the same in each run, such as ones made of the task id.
#[derive(Debug)]
pub struct Collection<'a> {
    host: &'a dyn DocumentHost,
    collection: DocumentCollection,
    lifetime: Option<Duration>,
    author: Option<Subject>,
}

/// A document with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<T> {
    /// Its key.
    pub key: String,
    /// Its content.
    pub value: T,
    /// The version that [`Collection::replace`] takes.
    pub version: DocumentVersion,
}

/// The version of a document. Each write makes another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentVersion(WriteId);

impl<'a> Collection<'a> {
    /// The documents `name` of their owner.
    pub(super) fn of(
        host: &'a dyn DocumentHost,
        owner: DocumentOwner,
        name: &str,
    ) -> AgentResult<Self> {
        Ok(Self {
            host,
            collection: DocumentCollection::new(owner, name).map_err(bad_name)?,
            lifetime: None,
            author: None,
        })
    }

    /// The same collection, whose writes expire after `lifetime`.
    #[must_use]
    pub const fn expiring(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// The same collection, whose writes name their author, a subject of its tenant. Such a
    /// document goes when an operator erases the subject, also from a collection that all share.
    #[must_use]
    pub fn written_by(mut self, author: &Subject) -> Self {
        self.author = Some(author.clone());
        self
    }

    /// Reads a document; `None` if there is none.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a bad key, `STATE_INCOMPATIBLE` when the document does not decode
    /// as `T`. Also when it cannot be read.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> AgentResult<Option<Document<T>>> {
        let (store, (now, _)) = (self.host.documents()?, self.host.write_stamp());
        let document = store
            .document(&self.collection, &parse_key(key)?, now)
            .await;
        let document = self.value_or_end_turn(document).await?;
        document.map(decode).transpose()
    }

    /// Writes a document, over one with this key. A request whose response was lost is sent
    /// again, and can then replace a later document of another turn. Where turns share a key,
    /// use [`Collection::create`] and [`Collection::replace`], which never do.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a bad key, `SERIALIZATION`, `STATE_TOO_LARGE`. Also when it cannot
    /// be stored.
    pub async fn put(&self, key: &str, value: &impl Serialize) -> AgentResult<()> {
        let text = Some(encode(value)?);
        self.write(key, text, DocumentExpect::Any).await.map(drop)
    }

    /// Writes a document if there is none with this key. Returns whether it did.
    ///
    /// # Errors
    /// As for [`Collection::put`].
    pub async fn create(&self, key: &str, value: &impl Serialize) -> AgentResult<bool> {
        let text = Some(encode(value)?);
        self.write(key, text, DocumentExpect::Absent).await
    }

    /// Writes a document over the one of this version. Returns `false` if another write was
    /// faster: then read it again.
    ///
    /// # Errors
    /// As for [`Collection::put`].
    pub async fn replace(
        &self,
        key: &str,
        value: &impl Serialize,
        version: &DocumentVersion,
    ) -> AgentResult<bool> {
        let expect = DocumentExpect::Version(version.0.clone());
        self.write(key, Some(encode(value)?), expect).await
    }

    /// Removes a document, if there is one; a later one too, as [`Collection::put`] replaces it.
    ///
    /// # Errors
    /// `INVALID_INPUT` for a bad key. Also when it cannot be removed.
    pub async fn remove(&self, key: &str) -> AgentResult<()> {
        self.write(key, None, DocumentExpect::Any).await.map(drop)
    }

    /// At most `limit` documents behind the key `after`, in the order of their keys. They may
    /// be fewer: the last page alone is empty.
    ///
    /// # Errors
    /// As for [`Collection::get`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> AgentResult<Vec<Document<T>>> {
        let (store, (now, _)) = (self.host.documents()?, self.host.write_stamp());
        let mut after = after.map(parse_key).transpose()?;
        loop {
            let page = store.documents(&self.collection, after.as_ref(), limit, now);
            let page = self.value_or_end_turn(page.await).await?;
            // What was removed is read, and not shown.
            if !page.documents.is_empty() || page.next.is_none() || limit == 0 {
                return page.documents.into_iter().map(decode).collect();
            }
            after = page.next;
        }
    }

    /// The documents before the key `before`, the highest key first, until the next one might
    /// not fit into `bytes`. Each may have `largest` bytes as JSON. What counts is what the
    /// store read, also of documents that are gone. The read may miss the writes of the last
    /// second. Beside the documents is the key before which it ended, if there may be more.
    ///
    /// # Errors
    /// As for [`Collection::get`].
    pub async fn last<T: DeserializeOwned>(
        &self,
        before: Option<&str>,
        bytes: usize,
        largest: usize,
    ) -> AgentResult<(Vec<Document<T>>, Option<String>)> {
        let (store, (now, _)) = (self.host.documents()?, self.host.write_stamp());
        let mut before = before.map(parse_key).transpose()?;
        let (mut documents, mut rest) = (Vec::new(), bytes);
        // A first page has a document, whatever its size.
        let mut limit = (rest / (largest + ITEM)).max(1);
        while limit > 0 {
            let page = store.last_documents(&self.collection, before.as_ref(), limit, now);
            let page = self.value_or_end_turn(page.await).await?;
            let read = page.documents.into_iter().map(decode);
            documents.extend(read.collect::<AgentResult<Vec<_>>>()?);
            before = page.next;
            if before.is_none() {
                break;
            }
            rest = rest.saturating_sub(page.bytes);
            limit = rest / (largest + ITEM);
        }
        Ok((documents, before.map(|key| key.as_str().to_owned())))
    }

    async fn write(
        &self,
        key: &str,
        text: Option<String>,
        expect: DocumentExpect,
    ) -> AgentResult<bool> {
        let (store, (now, id)) = (self.host.documents()?, self.host.write_stamp());
        let write = DocumentWrite {
            collection: self.collection.clone(),
            key: parse_key(key)?,
            text,
            author: self.author.clone(),
            expires_at: self.lifetime.map(|lifetime| now.plus(lifetime)),
            expect,
            id,
            now,
        };
        self.value_or_end_turn(store.write_document(&write).await)
            .await
    }

    /// The value, or the error that the skill gets. After an outage this never returns.
    async fn value_or_end_turn<T>(&self, result: Result<T, StoreError>) -> AgentResult<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.host.store_failed(error).await),
        }
    }
}

fn bad_name(error: DocumentNameError) -> AgentError {
    AgentError::invalid_input(error.to_string())
}

fn parse_key(key: &str) -> AgentResult<DocumentKey> {
    DocumentKey::parse(key).map_err(bad_name)
}

fn encode(value: &impl Serialize) -> AgentResult<String> {
    let text = serde_json::to_string(value).map_err(AgentError::serialization)?;
    if text.len() > DOCUMENT_MAX {
        let (size, most) = (text.len() as u64, DOCUMENT_MAX as u64);
        return Err(AgentError::state_too_large(size, most));
    }
    Ok(text)
}

fn decode<T: DeserializeOwned>(document: StoredDocument) -> AgentResult<Document<T>> {
    let value = serde_json::from_str(&document.text).map_err(AgentError::state_incompatible)?;
    Ok(Document {
        key: document.key.as_str().to_owned(),
        value,
        version: DocumentVersion(document.version),
    })
}
