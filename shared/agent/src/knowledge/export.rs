//! Writes the objects of a repository into a folder that git reads and clones.
//!
//! The names of files come from ids of objects only. So no path of an item, however hostile,
//! decides where something is written. The branch is written last: a folder that an export
//! did not finish has no branch.

use super::error::KnowledgeError;
use super::objects::{GitObjects, decode};
use gix_hash::ObjectId;
use gix_object::{CommitRef, Kind, TreeRef};
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";
const HEAD: &str = "ref: refs/heads/main\n";

/// What an export wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    /// The commits.
    pub(crate) commits: usize,
    /// The objects, commits included.
    pub(crate) objects: usize,
}

/// An export failed. The folder then has no branch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// The folder has files already.
    #[error("`{}` is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The file system failed.
    #[error("failed to write `{}`", .path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why it failed.
        #[source]
        cause: io::Error,
    },
    /// An object is missing or damaged, or the store failed.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

/// Writes a bare repository with the branch `main` at `head` into an empty or missing folder.
/// Without a head the repository has no commit.
///
/// It reads one object after the other and checks each. It blocks its thread while it writes:
/// it is for a command, not for a function that serves calls.
///
/// # Errors
/// [`ExportError`] says what failed.
pub(crate) async fn export(
    head: Option<ObjectId>,
    objects: &dyn GitObjects,
    folder: &Path,
) -> Result<Exported, ExportError> {
    prepare(folder)?;
    let mut report = Exported::default();
    let mut ids: HashSet<ObjectId> = head.into_iter().collect();
    let mut open: Vec<(ObjectId, Kind)> =
        head.map(|head| (head, Kind::Commit)).into_iter().collect();
    while let Some((id, kind)) = open.pop() {
        let loose = objects.get(id).await.map_err(KnowledgeError::Store)?;
        let loose = loose.ok_or(KnowledgeError::Missing(id))?;
        let below = check(id, kind, &loose)?;
        write_object(folder, id, &loose)?;
        report.objects += 1;
        report.commits += usize::from(kind == Kind::Commit);
        open.extend(below.into_iter().filter(|(id, _)| ids.insert(*id)));
    }
    if let Some(head) = head {
        write(
            &folder.join("refs/heads/main"),
            format!("{head}\n").as_bytes(),
        )?;
    }
    Ok(report)
}

/// Makes the folders of a bare repository.
fn prepare(folder: &Path) -> Result<(), ExportError> {
    make(folder)?;
    let mut entries = fs::read_dir(folder).map_err(|cause| failed(folder, cause))?;
    if entries.next().is_some() {
        return Err(ExportError::NotEmpty(folder.to_owned()));
    }
    for name in ["objects", "refs/heads", "refs/tags"] {
        make(&folder.join(name))?;
    }
    write(&folder.join("config"), CONFIG.as_bytes())?;
    write(&folder.join("HEAD"), HEAD.as_bytes())
}

/// Checks an object, and returns the objects that it names, with the kinds they must have.
fn check(id: ObjectId, kind: Kind, loose: &[u8]) -> Result<Vec<(ObjectId, Kind)>, KnowledgeError> {
    let corrupt = |reason| KnowledgeError::Corrupt { id, reason };
    let (actual, data) = decode(id, loose)?;
    if actual != kind {
        return Err(corrupt("it has another kind"));
    }
    let sha1 = gix_hash::Kind::Sha1;
    match kind {
        Kind::Commit => {
            let commit = CommitRef::from_bytes(&data, sha1);
            let commit = commit.map_err(|_| corrupt("it is not a commit"))?;
            let parents = commit.parents().map(|parent| (parent, Kind::Commit));
            Ok(parents.chain([(commit.tree(), Kind::Tree)]).collect())
        }
        Kind::Tree => {
            let tree = TreeRef::from_bytes(&data, sha1);
            let tree = tree.map_err(|_| corrupt("it is not a tree"))?;
            let entries = tree.entries.iter().map(|entry| {
                let is_tree = entry.mode.is_tree();
                let kind = if is_tree { Kind::Tree } else { Kind::Blob };
                (entry.oid.to_owned(), kind)
            });
            Ok(entries.collect())
        }
        Kind::Blob | Kind::Tag => Ok(Vec::new()),
    }
}

fn write_object(folder: &Path, id: ObjectId, loose: &[u8]) -> Result<(), ExportError> {
    let name = id.to_hex().to_string();
    let (first, rest) = name.split_at_checked(2).unwrap_or((&name, ""));
    let below = folder.join("objects").join(first);
    make(&below)?;
    write(&below.join(rest), loose)
}

fn make(folder: &Path) -> Result<(), ExportError> {
    fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))
}

/// Writes a file that does not exist yet.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(bytes))
        .map_err(|cause| failed(path, cause))
}

fn failed(path: &Path, cause: io::Error) -> ExportError {
    let path = path.to_owned();
    ExportError::Write { path, cause }
}
