//! A repository over a map, and short forms of its calls.

use crate::knowledge::error::KnowledgeError;
use crate::knowledge::objects::{GitObjects, LooseObject};
use crate::knowledge::path::{ItemPath, ItemPlace};
use crate::knowledge::repository::{CommitAuthor, FileChange, Repository};
use a2a_lambda::store::StoreError;
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

    /// Commits one change to a file of the team, at second `at_s`.
    pub(super) async fn commit(
        &self,
        head: Option<ObjectId>,
        path: &str,
        content: Option<&str>,
        at_s: u64,
    ) -> Result<Option<ObjectId>, KnowledgeError> {
        let changes = [change(path, content)];
        let message = format!("Change {path}");
        let repository = Repository::new(self);
        repository
            .commit(head, &changes, &message, &author(), at_s)
            .await
    }

    /// Commits one file, which must change something.
    pub(super) async fn write(
        &self,
        head: Option<ObjectId>,
        path: &str,
        content: &str,
    ) -> Option<ObjectId> {
        let commit = self.commit(head, path, Some(content), 1_700_000_000).await;
        Some(commit.unwrap().unwrap())
    }

    pub(super) async fn read(&self, commit: Option<ObjectId>, path: &str) -> Option<String> {
        let (repository, place) = (Repository::new(self), place(path));
        let bytes = repository.read(commit.unwrap(), &place).await.unwrap()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// The files of a commit.
    pub(super) async fn files(&self, commit: Option<ObjectId>) -> Vec<String> {
        let list = Repository::new(self).list(commit.unwrap()).await.unwrap();
        list.iter().map(|it| it.place.file()).collect()
    }
}

pub(super) fn author() -> CommitAuthor {
    CommitAuthor::new("Ann Smith", "ann@tenant").unwrap()
}

pub(super) fn place(path: &str) -> ItemPlace {
    ItemPlace::new("team", Some("payments"), ItemPath::parse(path).unwrap()).unwrap()
}

pub(super) fn change(path: &str, content: Option<&str>) -> FileChange {
    FileChange {
        place: place(path),
        content: content.map(|text| text.as_bytes().to_vec()),
    }
}
