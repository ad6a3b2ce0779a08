//! The repository of a tenant in documents: git objects, the head, and a list of the items.
//!
//! A commit is visible once the document `head` names it. The list of items follows: it is
//! what queries read, and each entry can be made again from the repository. The head also names
//! the file of its commit, because its writer may die before it lists that file. Readers look
//! at that file too, and the next writer lists it before it moves the head.

use super::authors::CommitAuthor;
use super::error::KnowledgeError;
use super::export::export;
use super::item::{ItemHead, StoredItem};
use super::objects::GitObjects;
use super::path::ItemLocation;
use super::repository::{NewVersion, Repository};
use crate::access::{OperationError, Scope};
use crate::memory::SEARCH_MAX;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::{Collection, Document, DocumentVersion, TenantDocuments};
use a2a_lambda::store::StoreError;
use async_trait::async_trait;
use gix_hash::ObjectId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::error::Error;
use std::path::Path;

/// The collections of a tenant.
const OBJECTS: &str = "knowledge/objects";
const HEAD: &str = "knowledge/head";
const ITEMS: &str = "knowledge/items";
/// The most bytes of a document, and of the quotes around a text.
const DOCUMENT_MAX: usize = 256 * 1024;
const QUOTES: usize = 2;
/// The key of the head.
const MAIN: &str = "main";
/// How often a write is tried while others are faster.
const ATTEMPTS: usize = 8;
/// Entries of the list in one read.
const PAGE: usize = 250;
/// The most bytes of an entry, as JSON.
const ENTRY_MAX: usize = 8 * 1024;
/// The most items of a tenant, since a check of the policies reads the whole list. Tests have fewer.
pub(super) const ITEMS_MAX: usize = if cfg!(test) { 20 } else { 5_000 };

/// The head of the repository, as a document.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Head {
    commit: String,
    /// How many commits there are.
    number: u64,
    /// How many items there are.
    items: usize,
    /// The file of the commit; the list has all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// An entry of the list of items.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The file of the item.
    file: String,
    pub(super) head: ItemHead,
    /// The last commit that changed the item, and its number.
    pub(crate) commit: String,
    number: u64,
}

/// What is read of the repository.
pub(crate) struct KnowledgeStore<'a> {
    objects: Objects<'a>,
    heads: Collection<'a>,
    items: Collection<'a>,
}

struct Objects<'a>(Collection<'a>);

#[async_trait]
impl GitObjects for Objects<'_> {
    async fn get(&self, id: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        let document = self.0.get::<String>(&id.to_string()).await;
        let document = document.map_err(|error| unavailable(&error))?;
        let corrupt = |_| StoreError::Corrupt("a git object is not hexadecimal".to_owned());
        document
            .map(|document| hex::decode(document.value).map_err(corrupt))
            .transpose()
    }

    async fn put_if_absent(&self, id: ObjectId, loose: Vec<u8>) -> Result<(), StoreError> {
        let text = hex::encode(&loose);
        if text.len() + QUOTES > DOCUMENT_MAX {
            let bytes = loose.len();
            return Err(StoreError::Refused(format!("an object has {bytes} bytes")));
        }
        self.0
            .create(&id.to_string(), &text)
            .await
            .map_err(|error| unavailable(&error))?;
        Ok(())
    }
}

fn unavailable(error: &AgentError) -> StoreError {
    StoreError::Unavailable(error.text().to_owned())
}

/// An item on the list.
pub(crate) struct Listed {
    pub(crate) location: ItemLocation,
    pub(crate) entry: Entry,
}

/// Writes the knowledge of a tenant as a bare git repository, into a folder that is empty or
/// missing. Returns what it wrote, as a line for the operator.
///
/// # Errors
/// When the documents cannot be read, an object is damaged, or the folder cannot be written.
pub(crate) async fn export_knowledge(
    documents: &TenantDocuments,
    folder: &Path,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let text = |error: AgentError| format!("{error:?}");
    let store = KnowledgeStore::with(|name| documents.documents(name)).map_err(text)?;
    let head = store.head().await.map_err(text)?;
    let head = head.map(|(_, commit, _)| commit);
    let report = export(head, &store.objects, folder).await?;
    Ok(format!(
        "wrote the knowledge of the tenant {} to {} (commits: {}, objects: {})",
        documents.tenant(),
        folder.display(),
        report.commits,
        report.objects
    ))
}

impl<'a> KnowledgeStore<'a> {
    /// The repository of the caller's tenant.
    pub(crate) fn of(cx: &'a TaskContext<'_>) -> AgentResult<Self> {
        Self::with(|name| cx.documents(name))
    }

    fn with(documents: impl Fn(&str) -> AgentResult<Collection<'a>>) -> AgentResult<Self> {
        Ok(Self {
            objects: Objects(documents(OBJECTS)?),
            heads: documents(HEAD)?,
            items: documents(ITEMS)?,
        })
    }

    pub(super) const fn repository(&self) -> Repository<'_> {
        Repository::new(&self.objects)
    }

    async fn head(&self) -> AgentResult<Option<(Head, ObjectId, DocumentVersion)>> {
        let Some(document) = self.heads.get::<Head>(MAIN).await? else {
            return Ok(None);
        };
        let commit = parse_commit_id(&document.value.commit)?;
        Ok(Some((document.value, commit, document.version)))
    }

    /// The item as an entry of the list has it; `None` if its commit is missing.
    pub(crate) async fn load_entry(&self, entry: &Listed) -> AgentResult<Option<StoredItem>> {
        let commit = parse_commit_id(&entry.entry.commit)?;
        self.item(&entry.location, Some(commit)).await
    }

    /// The item as it is at `commit`, or at the head; `None` if it is not there.
    pub(crate) async fn item(
        &self,
        location: &ItemLocation,
        commit: Option<ObjectId>,
    ) -> AgentResult<Option<StoredItem>> {
        let at = match (commit, self.head().await?) {
            (Some(commit), Some(_)) => commit,
            (None, Some((_, head, _))) => head,
            (_, None) => return Ok(None),
        };
        match self.repository().item(at, location).await {
            // A commit that the tenant does not have, or an object that is no commit.
            Err(KnowledgeError::Missing(id) | KnowledgeError::Corrupt { id, .. })
                if Some(id) == commit =>
            {
                Ok(None)
            }
            result => result.map_err(KnowledgeError::agent_error),
        }
    }

    /// Commits a file of the caller, and moves the head. `decide` gets the item as it is, and
    /// returns the file; it is asked again if another writer was faster.
    ///
    /// # Errors
    /// That of `decide`, `STALE_COMMIT` if others were faster each time, or a failure of the
    /// store.
    pub(super) async fn commit(
        &self,
        cx: &TaskContext<'_>,
        location: &ItemLocation,
        message: &str,
        decide: impl Fn(Option<&StoredItem>) -> Result<Vec<u8>, OperationError>,
    ) -> Result<ObjectId, OperationError> {
        let repository = self.repository();
        let author = CommitAuthor::in_turn(cx).await?;
        for _ in 0..ATTEMPTS {
            let head = self.head().await?;
            let parent = head.as_ref().map(|(_, commit, _)| *commit);
            let before = match parent {
                Some(commit) => repository
                    .item(commit, location)
                    .await
                    .map_err(KnowledgeError::agent_error)?,
                None => None,
            };
            let version = NewVersion {
                file: decide(before.as_ref())?,
                message,
                author: &author,
                at_s: cx.now().as_millis() / 1000,
            };
            let commit = repository.commit(parent, location, &version).await;
            let number = head.as_ref().map_or(0, |(head, _, _)| head.number);
            let Some(commit) = commit.map_err(KnowledgeError::agent_error)? else {
                // The file is there as it is, perhaps by an earlier run of this turn.
                let none = ObjectId::null(gix_hash::Kind::Sha1);
                let commit = before.map_or(none, |it| it.commit);
                self.list(location, commit, number).await?;
                return Ok(commit);
            };
            // The writer of the head may have died before it listed its item.
            if let Some((head, commit, _)) = &head
                && let Some(location) = head.location()
            {
                self.list(&location, *commit, head.number).await?;
            }
            let number = number + 1;
            let items = head.as_ref().map_or(0, |(head, _, _)| head.items);
            if before.is_none() && items >= ITEMS_MAX {
                let text = format!("the knowledge has {items} items, expected at most {ITEMS_MAX}");
                return Err(AgentError::domain("TOO_MANY_ITEMS", text).into());
            }
            let next = Head {
                commit: commit.to_string(),
                number,
                items: items + usize::from(before.is_none()),
                file: Some(location.file()),
            };
            let is_moved = match &head {
                Some((_, _, version)) => self.heads.replace(MAIN, &next, version).await?,
                None => self.heads.create(MAIN, &next).await?,
            };
            if is_moved {
                self.list(location, commit, number).await?;
                return Ok(commit);
            }
        }
        let text = "others were faster; please try again";
        Err(AgentError::domain("STALE_COMMIT", text).into())
    }

    /// Puts the item of a commit on the list, unless a later one is there.
    ///
    /// # Errors
    /// When others were faster each time: then no writer may move the head.
    async fn list(
        &self,
        location: &ItemLocation,
        commit: ObjectId,
        number: u64,
    ) -> AgentResult<()> {
        let key = hex::encode(Sha256::digest(location.file()));
        for _ in 0..ATTEMPTS {
            let document = self.items.get::<Entry>(&key).await?;
            if document
                .as_ref()
                .is_some_and(|it| it.value.number >= number)
            {
                return Ok(());
            }
            let Some(entry) = self.entry(location, commit, number).await? else {
                return Ok(());
            };
            let is_written = match document {
                Some(document) => self.items.replace(&key, &entry, &document.version).await?,
                None => self.items.create(&key, &entry).await?,
            };
            if is_written {
                return Ok(());
            }
        }
        Err(AgentError::internal(
            "others wrote the entry of the list each time",
        ))
    }

    /// The entry of an item as it is at a commit, which has this number.
    async fn entry(
        &self,
        location: &ItemLocation,
        commit: ObjectId,
        number: u64,
    ) -> AgentResult<Option<Entry>> {
        let item = self
            .repository()
            .item(commit, location)
            .await
            .map_err(KnowledgeError::agent_error)?;
        Ok(item.map(|item| Entry {
            file: location.file(),
            head: item.head,
            commit: item.commit.to_string(),
            number,
        }))
    }

    /// The wanted items of the scopes, by their location: all of them, as they are now.
    pub(crate) async fn items(
        &self,
        scopes: &[Scope],
        admits: impl Fn(&ItemLocation, &ItemHead) -> bool,
    ) -> AgentResult<Vec<Listed>> {
        // Before the list: what earlier commits changed is on it.
        let newest = self.head().await?;
        let (mut list, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.items.list::<Entry>(after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            list.extend(page);
        }
        self.select(newest, list, scopes, admits).await
    }

    /// The wanted items of the part of the list that a query reads, by their location, and where
    /// the next part begins. A part has no order in time: entries are in that of their hashes.
    pub(crate) async fn part(
        &self,
        scopes: &[Scope],
        before: Option<&str>,
        admits: impl Fn(&ItemLocation, &ItemHead) -> bool,
    ) -> AgentResult<(Vec<Listed>, Option<String>)> {
        let mut newest = self.head().await?;
        let list = self.items.last::<Entry>(before, SEARCH_MAX, ENTRY_MAX);
        let (mut list, next) = list.await?;
        if before.is_some() {
            // The first part has the item of the newest commit.
            let file = newest.take().and_then(|(head, ..)| head.file);
            list.retain(|it| Some(&it.value.file) != file.as_ref());
        }
        Ok((self.select(newest, list, scopes, admits).await?, next))
    }

    /// The wanted entries of a list, with that of the newest commit, which it may not have yet.
    async fn select(
        &self,
        mut newest: Option<(Head, ObjectId, DocumentVersion)>,
        list: Vec<Document<Entry>>,
        scopes: &[Scope],
        admits: impl Fn(&ItemLocation, &ItemHead) -> bool,
    ) -> AgentResult<Vec<Listed>> {
        let mut entries = Vec::new();
        for document in list {
            let entry = document.value;
            if let Some((head, ..)) = &newest
                && head.file.as_ref() == Some(&entry.file)
            {
                if entry.number < head.number {
                    continue;
                }
                newest = None;
            }
            entries.extend(filter_entry(scopes, entry, &admits));
        }
        if let Some((head, commit, _)) = newest
            && let Some(location) = head.location()
            && let Some(entry) = self.entry(&location, commit, head.number).await?
        {
            entries.extend(filter_entry(scopes, entry, &admits));
        }
        // By the text that a cursor names, so that pages join to all items.
        entries.sort_by_cached_key(|entry| entry.location.file());
        Ok(entries)
    }
}

impl Head {
    /// The location of the item that its commit changed.
    fn location(&self) -> Option<ItemLocation> {
        ItemLocation::of_file(self.file.as_ref()?)
    }
}

/// The item of an entry, if it is wanted and in one of the scopes.
fn filter_entry(
    scopes: &[Scope],
    entry: Entry,
    admits: impl Fn(&ItemLocation, &ItemHead) -> bool,
) -> Option<Listed> {
    let location = ItemLocation::of_file(&entry.file)?;
    let is_seen =
        scopes.iter().any(|scope| location.is_in(scope)) && admits(&location, &entry.head);
    is_seen.then_some(Listed { location, entry })
}

/// The id of a commit that a document or a caller names.
pub(super) fn parse_commit_id(commit: &str) -> AgentResult<ObjectId> {
    ObjectId::from_hex(commit.as_bytes())
        .map_err(|_| AgentError::invalid_input("a commit is 40 hexadecimal digits"))
}
