//! Writes the objects of a repository into a folder that git reads and clones.
//!
//! The names of files come from ids of objects only. So no path of an item, however hostile,
//! decides where something is written. The branch is written last: a folder that an export
//! did not finish has no branch.

use super::error::KnowledgeError;
use super::objects::{GitObjects, load_loose};
use super::repository::{parse_commit, parse_tree};
use gix_hash::ObjectId;
use gix_object::Kind;
use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;

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

/// Why an export failed, for the operator. The folder then has no branch.
pub(crate) type ExportError = Box<dyn Error + Send + Sync>;

/// Writes a bare repository with the branch `main` at `head` into an empty or missing folder.
/// Without a head the repository has no commit.
///
/// It reads one object after the other and checks each. It blocks its thread while it writes:
/// it is for a command, not for a function that serves calls.
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
        let (loose, data) = load_loose(objects, id, kind).await?;
        let below = references(id, kind, &data)?;
        let name = id.to_hex().to_string();
        let (first, rest) = name.split_at_checked(2).unwrap_or((&name, ""));
        write(&folder.join("objects").join(first).join(rest), &loose)?;
        report.objects += 1;
        report.commits += usize::from(kind == Kind::Commit);
        open.extend(below.into_iter().filter(|(id, _)| ids.insert(*id)));
    }
    if let Some(head) = head {
        let branch = format!("{head}\n");
        write(&folder.join("refs/heads/main"), branch.as_bytes())?;
    }
    Ok(report)
}

/// Makes the folders of a bare repository.
fn prepare(folder: &Path) -> Result<(), ExportError> {
    make(folder)?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(format!("`{}` is not empty", folder.display()).into());
    }
    for name in ["objects", "refs/heads", "refs/tags"] {
        make(&folder.join(name))?;
    }
    write(&folder.join("config"), CONFIG.as_bytes())?;
    write(&folder.join("HEAD"), HEAD.as_bytes())
}

/// The objects that an object names, with the kinds they must have.
fn references(
    id: ObjectId,
    kind: Kind,
    data: &[u8],
) -> Result<Vec<(ObjectId, Kind)>, KnowledgeError> {
    match kind {
        Kind::Commit => {
            let commit = parse_commit(id, data)?;
            let parents = commit.parents().map(|parent| (parent, Kind::Commit));
            Ok(parents.chain([(commit.tree(), Kind::Tree)]).collect())
        }
        Kind::Tree => {
            let tree = parse_tree(id, data)?;
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

fn make(folder: &Path) -> Result<(), ExportError> {
    let error = |cause| format!("failed to write `{}`: {cause}", folder.display());
    Ok(fs::create_dir_all(folder).map_err(error)?)
}

/// Writes a file, and the folder that it is in.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    path.parent().map_or(Ok(()), make)?;
    let error = |cause| format!("failed to write `{}`: {cause}", path.display());
    Ok(fs::write(path, bytes).map_err(error)?)
}
