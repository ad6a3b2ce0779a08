//! Commits to a repository, and reads items of a commit.

use super::authors::CommitAuthor;
use super::error::KnowledgeError;
use super::objects::{GitObjects, LooseObject, encode, load};
use super::path::ItemLocation;
use crate::content::check_range;
use futures::future::try_join_all;
use gix_actor::Signature;
use gix_hash::ObjectId;
use gix_object::bstr::{BString, ByteSlice as _};
use gix_object::tree::{Entry, EntryKind};
use gix_object::{Commit, CommitRef, Kind, Tree, TreeRef, WriteTo as _};
use std::collections::BTreeMap;

/// The most bytes of a message.
pub(crate) const MESSAGE_MAX: usize = 4 * 1024;
/// The headers of a commit that say who wrote it, and in which task.
pub(super) const VIA: &str = "a2a-via";
pub(super) const TASK: &str = "a2a-task";

/// A version of a file to commit.
#[derive(Debug)]
pub(crate) struct NewVersion<'a> {
    /// Its bytes.
    pub(crate) file: Vec<u8>,
    /// Why it is stored.
    pub(crate) message: &'a str,
    /// Who stores it.
    pub(crate) author: &'a CommitAuthor,
    /// When, in seconds since 1970.
    pub(crate) at_s: i64,
}

/// The repository of one tenant, without its head.
#[derive(Clone, Copy)]
pub(crate) struct Repository<'a> {
    pub(super) objects: &'a dyn GitObjects,
}

/// The entries of a folder by name.
pub(super) type Names = BTreeMap<BString, Entry>;

impl<'a> Repository<'a> {
    /// The repository with these objects.
    pub(crate) const fn new(objects: &'a dyn GitObjects) -> Self {
        Self { objects }
    }

    /// Stores a commit of a file on top of `head`, and returns its id. `None` if the file is
    /// there as it is.
    ///
    /// It moves no head: the commit is visible when the caller moves the head from `head` to
    /// the commit, on condition that it still is `head`. Two commits on one head have two
    /// ids, and the condition decides. Equal arguments have an equal id, so a repetition
    /// writes nothing new. Only the blob and the folders above it are written.
    ///
    /// # Errors
    /// [`KnowledgeError`] for a message that git does not keep, a path below an item, a
    /// damaged object, and a failed store.
    pub(crate) async fn commit(
        &self,
        head: Option<ObjectId>,
        location: &ItemLocation,
        version: &NewVersion<'_>,
    ) -> Result<Option<ObjectId>, KnowledgeError> {
        let message = check_message(version.message)?;
        let root = match head {
            Some(head) => Some(self.tree_of(head).await?),
            None => None,
        };
        // The folders from the root, each with the name of what changes in it.
        let mut folders: Vec<(&str, Names)> = Vec::new();
        let mut tree = root;
        let mut segments = location.segments().peekable();
        while let Some(name) = segments.next() {
            let names = match tree {
                Some(tree) => self.folder(tree).await?,
                None => Names::new(),
            };
            let is_file = segments.peek().is_none();
            let entry = names.get(name.as_bytes().as_bstr()).cloned();
            folders.push((name, names));
            if let Some(entry) = &entry
                && entry.mode.is_tree() == is_file
            {
                return Err(in_the_way(location, &folders, is_file));
            }
            tree = entry.map(|entry| entry.oid);
        }
        let (mut object, mut kind) = (encode(Kind::Blob, &version.file)?, EntryKind::Blob);
        let mut writes = Vec::new();
        for (name, mut names) in folders.into_iter().rev() {
            insert(&mut names, name, kind, object.id);
            writes.push(std::mem::replace(&mut object, encode_folder(&names)?));
            kind = EntryKind::Tree;
        }
        if Some(object.id) == root {
            return Ok(None);
        }
        let commit = encode_commit(head, object.id, message, version)?;
        writes.push(object);
        try_join_all(
            writes
                .into_iter()
                .map(|it| self.objects.put_if_absent(it.id, it.bytes)),
        )
        .await?;
        // Last, so that a commit in the store has all its objects.
        self.objects.put_if_absent(commit.id, commit.bytes).await?;
        Ok(Some(commit.id))
    }

    /// The root folder of a commit.
    pub(super) async fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, KnowledgeError> {
        let data = load(self.objects, commit, Kind::Commit).await?;
        Ok(parse_commit(commit, &data)?.tree())
    }

    /// The entries of a folder by name.
    pub(super) async fn folder(&self, id: ObjectId) -> Result<Names, KnowledgeError> {
        let data = load(self.objects, id, Kind::Tree).await?;
        let entries = Tree::from(parse_tree(id, &data)?).entries.into_iter();
        Ok(entries
            .map(|entry| (entry.filename.clone(), entry))
            .collect())
    }
}

/// Reads the data of a commit.
pub(super) fn parse_commit(id: ObjectId, data: &[u8]) -> Result<CommitRef<'_>, KnowledgeError> {
    CommitRef::from_bytes(data, gix_hash::Kind::Sha1).map_err(|_| KnowledgeError::Corrupt {
        id,
        reason: "it is not a commit",
    })
}

/// Reads the data of a folder.
pub(super) fn parse_tree(id: ObjectId, data: &[u8]) -> Result<TreeRef<'_>, KnowledgeError> {
    TreeRef::from_bytes(data, gix_hash::Kind::Sha1).map_err(|_| KnowledgeError::Corrupt {
        id,
        reason: "it is not a tree",
    })
}

/// The message as git keeps it: with a line end.
fn check_message(message: &str) -> Result<BString, KnowledgeError> {
    check_range("bytes", message.len(), 0..=MESSAGE_MAX)
        .map_err(|fault| KnowledgeError::Input(format!("`message` {fault}")))?;
    let message = message.trim();
    let is_refused = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if message.is_empty() || message.contains(is_refused) {
        let text = "`message` is empty or has control characters";
        return Err(KnowledgeError::Input(text.to_owned()));
    }
    Ok(format!("{message}\n").into())
}

fn encode_commit(
    head: Option<ObjectId>,
    tree: ObjectId,
    message: BString,
    version: &NewVersion<'_>,
) -> Result<LooseObject, KnowledgeError> {
    let author = version.author;
    let signature = Signature {
        email: format!("{}@{}", author.name, author.tenant).into(),
        name: author.name.as_str().into(),
        time: gix_object::date::Time::new(version.at_s, 0),
    };
    let commit = Commit {
        tree,
        parents: head.into_iter().collect(),
        author: signature.clone(),
        committer: signature,
        encoding: None,
        message,
        extra_headers: vec![
            (VIA.into(), author.via.to_string().into()),
            (TASK.into(), author.task.as_str().into()),
        ],
    };
    let mut data = Vec::new();
    commit.write_to(&mut data).map_err(KnowledgeError::Encode)?;
    encode(Kind::Commit, &data)
}

fn encode_folder(names: &Names) -> Result<LooseObject, KnowledgeError> {
    let mut entries: Vec<Entry> = names.values().cloned().collect();
    // The order of git: a folder is compared as if its name ended in `/`.
    entries.sort();
    let mut data = Vec::new();
    Tree { entries }
        .write_to(&mut data)
        .map_err(KnowledgeError::Encode)?;
    encode(Kind::Tree, &data)
}

fn insert(names: &mut Names, name: &str, kind: EntryKind, oid: ObjectId) {
    let filename = BString::from(name);
    let entry = Entry {
        mode: kind.into(),
        filename: filename.clone(),
        oid,
    };
    names.insert(filename, entry);
}

/// The path has a folder where an item is, or is itself a folder.
fn in_the_way(
    location: &ItemLocation,
    folders: &[(&str, Names)],
    is_folder: bool,
) -> KnowledgeError {
    let what = if is_folder { "a folder" } else { "an item" };
    let names: Vec<&str> = folders.iter().map(|(name, _)| *name).collect();
    let (path, other) = (location.file(), names.join("/"));
    KnowledgeError::Input(format!("`path` is `{path}`, but `{other}` is {what}"))
}
