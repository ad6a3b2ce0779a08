//! A repository over a map, and short forms of its calls.

use crate::knowledge::authors::CommitAuthor;
use crate::knowledge::error::KnowledgeError;
use crate::knowledge::objects::{GitObjects, LooseObject};
use crate::knowledge::path::{ItemLocation, ItemPath};
use crate::knowledge::repository::{NewVersion, Repository};
use crate::layer::Layer;
use crate::origin::WrittenBy;
use a2a_lambda::store::StoreError;
use a2a_lambda::task::TenantId;
use async_trait::async_trait;
use gix_hash::ObjectId;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The objects of a tenant in a map, with the calls that were made.
#[derive(Debug, Default)]
pub(super) struct MapObjects {
    stored: Mutex<BTreeMap<ObjectId, Vec<u8>>>,
    calls: Mutex<Vec<(&'static str, ObjectId)>>,
    is_down: Mutex<bool>,
}

#[async_trait]
impl GitObjects for MapObjects {
    async fn get(&self, id: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        self.called("get", id)?;
        Ok(self.stored.lock().unwrap().get(&id).cloned())
    }

    async fn put_if_absent(&self, id: ObjectId, loose: Vec<u8>) -> Result<(), StoreError> {
        self.called("put", id)?;
        self.stored.lock().unwrap().entry(id).or_insert(loose);
        Ok(())
    }
}

impl MapObjects {
    fn called(&self, call: &'static str, id: ObjectId) -> Result<(), StoreError> {
        self.calls.lock().unwrap().push((call, id));
        if *self.is_down.lock().unwrap() {
            return Err(StoreError::Unavailable("down".to_owned()));
        }
        Ok(())
    }

    pub(super) fn go_down(&self) {
        *self.is_down.lock().unwrap() = true;
    }

    pub(super) fn ids(&self) -> Vec<ObjectId> {
        self.stored.lock().unwrap().keys().copied().collect()
    }

    /// How often a call was made since the last question.
    pub(super) fn count(&self, call: &str) -> usize {
        let mut calls = self.calls.lock().unwrap();
        let count = calls.iter().filter(|(name, _)| *name == call).count();
        calls.clear();
        count
    }

    pub(super) fn last_put(&self) -> Option<ObjectId> {
        let calls = self.calls.lock().unwrap();
        let mut puts = calls.iter().rev().filter(|(name, _)| *name == "put");
        puts.next().map(|(_, id)| *id)
    }

    pub(super) fn replace(&self, id: ObjectId, bytes: Vec<u8>) {
        self.stored.lock().unwrap().insert(id, bytes);
    }

    pub(super) fn insert(&self, object: LooseObject) -> ObjectId {
        self.replace(object.id, object.bytes);
        object.id
    }

    pub(super) fn remove(&self, id: ObjectId) -> Vec<u8> {
        self.stored.lock().unwrap().remove(&id).unwrap()
    }

    /// Commits a file of the team, at second `at_s`.
    pub(super) async fn commit(
        &self,
        head: Option<ObjectId>,
        path: &str,
        content: &str,
        at_s: i64,
    ) -> Result<Option<ObjectId>, KnowledgeError> {
        let message = format!("Change {path}");
        let (file, author) = (content.as_bytes().to_vec(), author());
        let version = NewVersion {
            file,
            message: &message,
            author: &author,
            at_s,
        };
        let repository = Repository::new(self);
        repository.commit(head, &place(path), &version).await
    }

    /// Commits one file, which must change something.
    pub(super) async fn write(
        &self,
        head: Option<ObjectId>,
        path: &str,
        content: &str,
    ) -> Option<ObjectId> {
        let commit = self.commit(head, path, content, 1_700_000_000).await;
        Some(commit.unwrap().unwrap())
    }

    pub(super) async fn read(&self, commit: Option<ObjectId>, path: &str) -> Option<String> {
        let (repository, place) = (Repository::new(self), place(path));
        let bytes = repository.read(commit.unwrap(), &place).await.unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The files of a commit that are items, ordered by their location.
    pub(super) async fn files(&self, commit: Option<ObjectId>) -> Vec<String> {
        let repository = Repository::new(self);
        let mut places = Vec::new();
        let mut open = vec![(
            String::new(),
            repository.tree_of(commit.unwrap()).await.unwrap(),
        )];
        while let Some((above, tree)) = open.pop() {
            for (name, entry) in repository.folder(tree).await.unwrap() {
                let file = format!("{above}{name}");
                if entry.mode.is_tree() {
                    open.push((format!("{file}/"), entry.oid));
                } else {
                    places.extend(ItemLocation::of_file(&file));
                }
            }
        }
        places.sort();
        places.iter().map(ItemLocation::file).collect()
    }
}

pub(super) fn author() -> CommitAuthor {
    CommitAuthor {
        name: "author-1".to_owned(),
        tenant: TenantId::parse("tenant").unwrap(),
        via: WrittenBy::Model,
        task: "task 1".to_owned(),
    }
}

pub(super) fn place(path: &str) -> ItemLocation {
    ItemLocation::new(
        Layer::Team,
        Some("payments"),
        ItemPath::parse(path).unwrap(),
    )
    .unwrap()
}
