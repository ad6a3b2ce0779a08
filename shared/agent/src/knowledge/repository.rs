//! Commits to a repository, and reads items of a commit.

use super::error::KnowledgeError;
use super::objects::{GitObjects, LooseObject, encode, load};
use super::path::ItemPlace;
use futures::future::try_join_all;
use gix_actor::Signature;
use gix_hash::ObjectId;
use gix_object::bstr::{BString, ByteSlice as _};
use gix_object::tree::{Entry, EntryKind};
use gix_object::{Commit, CommitRef, Kind, Tree, TreeRef, WriteTo as _};
use std::collections::BTreeMap;

/// The most bytes of a file: a content with its head.
pub(crate) const FILE_MAX: usize = 512 * 1024;
/// The most bytes of a message.
pub(crate) const MESSAGE_MAX: usize = 4 * 1024;
/// The most bytes of a name, and of the part of an author that looks like an e-mail address.
const AUTHOR_MAX: usize = 256;
/// How many objects of a commit are written at the same time.
const PARALLEL_WRITES: usize = 8;
/// The last second of the year 9999, in seconds since 1970.
const TIME_MAX: u64 = 253_402_300_799;

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitAuthor {
    name: String,
    email: String,
}

impl CommitAuthor {
    /// An author. `email` only has the form that git expects, as `subject@tenant`.
    ///
    /// # Errors
    /// [`KnowledgeError::Argument`] for an empty part or one with a character that git does
    /// not allow there.
    pub(crate) fn new(name: &str, email: &str) -> Result<Self, KnowledgeError> {
        let is_part = |text: &str| {
            let is_allowed = |letter: char| !letter.is_control() && !"<>".contains(letter);
            // Only a space at the edge would be lost.
            !text.is_empty() && text.trim() == text && text.chars().all(is_allowed)
        };
        let field = "author";
        for text in [name, email] {
            if text.len() > AUTHOR_MAX {
                let (bytes, most) = (text.len(), AUTHOR_MAX);
                return Err(KnowledgeError::TooLong { field, bytes, most });
            }
        }
        if !is_part(name) || !is_part(email) || email.contains(char::is_whitespace) {
            let reason = "is not a name and an address without `<`, `>` and control characters";
            return Err(KnowledgeError::Argument { field, reason });
        }
        let (name, email) = (name.to_owned(), email.to_owned());
        Ok(Self { name, email })
    }
}

/// One file to write or to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// Where it is.
    pub(crate) place: ItemPlace,
    /// Its bytes. `None` deletes it.
    pub(crate) content: Option<Vec<u8>>,
}

/// A file that a commit has.
#[cfg(test)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    /// Where it is.
    pub(crate) place: ItemPlace,
    /// The id of its bytes: equal bytes have an equal id.
    pub(crate) blob: ObjectId,
}

/// The repository of one tenant, without its head.
#[derive(Clone, Copy)]
pub(crate) struct Repository<'a> {
    pub(super) objects: &'a dyn GitObjects,
}

impl std::fmt::Debug for Repository<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repository").finish_non_exhaustive()
    }
}

impl<'a> Repository<'a> {
    /// The repository with these objects.
    pub(crate) const fn new(objects: &'a dyn GitObjects) -> Self {
        Self { objects }
    }

    /// Stores a commit on top of `head`, and returns its id. `None` if the changes change
    /// nothing.
    ///
    /// It moves no head: the commit is visible when the caller moves the head from `head` to
    /// the commit, on condition that it still is `head`. Two commits on one head have two
    /// ids, and the condition decides. Equal arguments have an equal id, so a repetition
    /// writes nothing new. Of each path only the blob and the folders above it are written.
    ///
    /// # Errors
    /// [`KnowledgeError`] for an argument out of range, a path below an item, a damaged
    /// object, and a failed store.
    pub(crate) async fn commit(
        &self,
        head: Option<ObjectId>,
        changes: &[FileChange],
        message: &str,
        author: &CommitAuthor,
        at_s: u64,
    ) -> Result<Option<ObjectId>, KnowledgeError> {
        let message = check_message(message)?;
        let signature = sign(author, at_s)?;
        let mut folders = Folders::of(self, head).await?;
        let mut writes = Vec::new();
        for change in changes {
            writes.extend(folders.apply(self, change).await?);
        }
        let (tree, trees) = folders.write()?;
        let before = folders.root;
        if Some(tree) == before || (before.is_none() && tree.is_empty_tree()) {
            return Ok(None);
        }
        writes.extend(trees);
        for some in writes.chunks(PARALLEL_WRITES) {
            try_join_all(some.iter().map(|object| self.put(object))).await?;
        }
        let commit = Commit {
            tree,
            parents: head.into_iter().collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message,
            extra_headers: Vec::new(),
        };
        let mut data = Vec::new();
        commit.write_to(&mut data).map_err(KnowledgeError::Encode)?;
        let commit = encode(Kind::Commit, &data)?;
        // Last, so that a commit in the store has all its objects.
        self.put(&commit).await?;
        Ok(Some(commit.id))
    }

    /// The bytes of a file in a commit. `None` if the commit does not have it.
    ///
    /// # Errors
    /// [`KnowledgeError`] when an object is missing or damaged, or the store fails.
    pub(crate) async fn read(
        &self,
        commit: ObjectId,
        place: &ItemPlace,
    ) -> Result<Option<Vec<u8>>, KnowledgeError> {
        let mut id = self.tree_of(commit).await?;
        let mut names = place.segments().peekable();
        while let Some(name) = names.next() {
            let kind = if names.peek().is_some() {
                EntryKind::Tree
            } else {
                EntryKind::Blob
            };
            match self.folder(id).await?.get(name.as_bytes().as_bstr()) {
                Some(entry) if entry.mode.kind() == kind => id = entry.oid,
                _ => return Ok(None),
            }
        }
        load(self.objects, id, Kind::Blob).await.map(Some)
    }

    /// All items of a commit, ordered by their place.
    #[cfg(test)]
    pub(crate) async fn list(&self, commit: ObjectId) -> Result<Vec<ListedFile>, KnowledgeError> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), self.tree_of(commit).await?)];
        while let Some((above, tree)) = open.pop() {
            for (name, entry) in self.folder(tree).await? {
                let file = format!("{above}{name}");
                if entry.mode.is_tree() {
                    open.push((format!("{file}/"), entry.oid));
                } else if let Some(place) = ItemPlace::of_file(&file) {
                    let blob = entry.oid;
                    found.push(ListedFile { place, blob });
                }
            }
        }
        found.sort_by(|left, right| left.place.cmp(&right.place));
        Ok(found)
    }

    async fn put(&self, object: &LooseObject) -> Result<(), KnowledgeError> {
        let bytes = object.bytes.clone();
        Ok(self.objects.put_if_absent(object.id, bytes).await?)
    }

    /// The root folder of a commit.
    async fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, KnowledgeError> {
        let data = load(self.objects, commit, Kind::Commit).await?;
        Ok(parse_commit(commit, &data)?.tree())
    }

    /// The entries of a folder by name.
    pub(super) async fn folder(&self, id: ObjectId) -> Result<Names, KnowledgeError> {
        let data = load(self.objects, id, Kind::Tree).await?;
        let tree = TreeRef::from_bytes(&data, gix_hash::Kind::Sha1).map_err(|_| {
            let reason = "it is not a tree";
            KnowledgeError::Corrupt { id, reason }
        })?;
        let entries = Tree::from(tree).entries.into_iter();
        Ok(entries
            .map(|entry| (entry.filename.clone(), entry))
            .collect())
    }
}

/// The entries of a folder by name.
pub(super) type Names = BTreeMap<BString, Entry>;

/// Reads the data of a commit.
pub(super) fn parse_commit(id: ObjectId, data: &[u8]) -> Result<CommitRef<'_>, KnowledgeError> {
    CommitRef::from_bytes(data, gix_hash::Kind::Sha1).map_err(|_| KnowledgeError::Corrupt {
        id,
        reason: "it is not a commit",
    })
}

/// The message as git keeps it: with a line end.
fn check_message(message: &str) -> Result<BString, KnowledgeError> {
    let field = "message";
    if message.len() > MESSAGE_MAX {
        let (bytes, most) = (message.len(), MESSAGE_MAX);
        return Err(KnowledgeError::TooLong { field, bytes, most });
    }
    let message = message.trim();
    let is_refused = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if message.is_empty() || message.contains(is_refused) {
        let reason = "is empty or has control characters";
        return Err(KnowledgeError::Argument { field, reason });
    }
    Ok(format!("{message}\n").into())
}

fn sign(author: &CommitAuthor, at_s: u64) -> Result<Signature, KnowledgeError> {
    let seconds = i64::try_from(at_s.min(TIME_MAX)).unwrap_or_default();
    if at_s > TIME_MAX {
        let (field, reason) = ("time", "is after the year 9999");
        return Err(KnowledgeError::Argument { field, reason });
    }
    Ok(Signature {
        name: author.name.as_str().into(),
        email: author.email.as_str().into(),
        time: gix_object::date::Time::new(seconds, 0),
    })
}

/// The folders that a commit changes, by their path; the root has the empty path.
struct Folders {
    /// The root of the head.
    root: Option<ObjectId>,
    open: BTreeMap<String, OpenFolder>,
}

struct OpenFolder {
    /// Its id in the head. `None` for a new folder.
    before: Option<ObjectId>,
    names: Names,
}

impl Folders {
    async fn of(
        repository: &Repository<'_>,
        head: Option<ObjectId>,
    ) -> Result<Self, KnowledgeError> {
        let (root, names) = match head {
            None => (None, Names::new()),
            Some(head) => {
                let root = repository.tree_of(head).await?;
                (Some(root), repository.folder(root).await?)
            }
        };
        let open = BTreeMap::from([(
            String::new(),
            OpenFolder {
                before: root,
                names,
            },
        )]);
        Ok(Self { root, open })
    }

    /// Applies a change, and returns the blob to write.
    async fn apply(
        &mut self,
        repository: &Repository<'_>,
        change: &FileChange,
    ) -> Result<Option<LooseObject>, KnowledgeError> {
        let file = change.place.file();
        let mut above = String::new();
        let mut names = change.place.segments().peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return self.set(&above, name, &file, change.content.as_deref());
            }
            let folder = join(&above, name);
            if !self.open.contains_key(&folder) {
                let open_folder = match self.entry(&above, name) {
                    Some(entry) if entry.mode.is_tree() => OpenFolder {
                        before: Some(entry.oid),
                        names: repository.folder(entry.oid).await?,
                    },
                    // There is nothing to delete below an item or in a missing folder.
                    _ if change.content.is_none() => return Ok(None),
                    Some(_) => return Err(in_the_way(&file, &folder, "an item")),
                    None => OpenFolder {
                        before: None,
                        names: Names::new(),
                    },
                };
                self.open.insert(folder.clone(), open_folder);
            }
            above = folder;
        }
        Ok(None)
    }

    fn entry(&self, above: &str, name: &str) -> Option<&Entry> {
        let names = &self.open.get(above)?.names;
        names.get(name.as_bytes().as_bstr())
    }

    /// Sets or deletes a file in a folder that is open.
    fn set(
        &mut self,
        above: &str,
        name: &str,
        file: &str,
        content: Option<&[u8]>,
    ) -> Result<Option<LooseObject>, KnowledgeError> {
        let is_folder = self.open.contains_key(file)
            || self.entry(above, name).is_some_and(|it| it.mode.is_tree());
        match content {
            None if is_folder => return Ok(None),
            Some(_) if is_folder => return Err(in_the_way(file, file, "a folder")),
            _ => {}
        }
        let Some(folder) = self.open.get_mut(above) else {
            return Ok(None);
        };
        let Some(content) = content else {
            folder.names.remove(name.as_bytes().as_bstr());
            return Ok(None);
        };
        if content.len() > FILE_MAX {
            let (field, bytes, most) = ("content", content.len(), FILE_MAX);
            return Err(KnowledgeError::TooLong { field, bytes, most });
        }
        let blob = encode(Kind::Blob, content)?;
        insert(&mut folder.names, name, EntryKind::Blob, blob.id);
        Ok(Some(blob))
    }

    /// The id of the new root, and the folders to write. A folder without entries is removed
    /// from the folder above it, since git has no empty folders.
    fn write(&mut self) -> Result<(ObjectId, Vec<LooseObject>), KnowledgeError> {
        let mut writes = Vec::new();
        let mut paths: Vec<String> = self.open.keys().cloned().collect();
        // The deepest first, because a folder contains the ids of those below it.
        paths.sort_by_key(|path| std::cmp::Reverse(depth(path)));
        for path in paths {
            let Some(folder) = self.open.get(&path) else {
                continue;
            };
            let tree = encode_folder(&folder.names)?;
            let (id, is_empty) = (tree.id, folder.names.is_empty());
            if folder.before != Some(id) && (!is_empty || path.is_empty()) {
                writes.push(tree);
            }
            if path.is_empty() {
                return Ok((id, writes));
            }
            let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
            if let Some(parent) = self.open.get_mut(above) {
                if is_empty {
                    parent.names.remove(name.as_bytes().as_bstr());
                } else {
                    insert(&mut parent.names, name, EntryKind::Tree, id);
                }
            }
        }
        let root = encode_folder(&Names::new())?;
        Ok((root.id, writes))
    }
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

fn in_the_way(path: &str, other: &str, what: &'static str) -> KnowledgeError {
    KnowledgeError::InTheWay {
        path: path.to_owned(),
        other: other.to_owned(),
        what,
    }
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() {
        name.to_owned()
    } else {
        format!("{above}/{name}")
    }
}

/// The folders above and including a folder; 0 for the root.
fn depth(path: &str) -> usize {
    if path.is_empty() {
        0
    } else {
        path.split('/').count()
    }
}
