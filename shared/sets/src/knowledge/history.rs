//! Reads files of a commit, the commits that changed one, and items with their last commit.

use super::error::KnowledgeError;
use super::item::{ItemHead, StoredItem};
use super::objects::load;
use super::path::ItemLocation;
use super::repository::{Repository, TASK, VIA, parse_commit};
use crate::origin::WrittenBy;
use gix_hash::ObjectId;
use gix_object::bstr::ByteSlice as _;
use gix_object::{CommitRef, Kind};

/// A commit that changed a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCommit {
    /// Its id.
    pub(crate) commit: ObjectId,
    /// Its message, without the line end.
    pub(crate) message: String,
    /// The pseudonym of who committed.
    pub(crate) author: String,
    /// Whether a person or a model wrote it; `None` in commits of earlier versions.
    pub(crate) via: Option<WrittenBy>,
    /// The id of the task that wrote it; `None` in commits of earlier versions.
    pub(crate) task: Option<String>,
    /// When, in seconds since 1970.
    pub(crate) at_s: i64,
}

impl Repository<'_> {
    /// The bytes of a file in a commit. `None` if the commit does not have it.
    pub(crate) async fn read(
        &self,
        commit: ObjectId,
        location: &ItemLocation,
    ) -> Result<Option<Vec<u8>>, KnowledgeError> {
        let names: Vec<&str> = location.segments().collect();
        let (_, trail) = self.load_trail(commit, &names, &Ancestry::new()).await?;
        match trail.get(names.len()) {
            Some(id) => load(self.objects, *id, Kind::Blob).await.map(Some),
            None => Ok(None),
        }
    }

    /// The last `limit` commits up to `commit` that changed the file, the latest first. It
    /// looks at `walk` commits at most.
    pub(crate) async fn history(
        &self,
        commit: ObjectId,
        location: &ItemLocation,
        limit: usize,
        walk: usize,
    ) -> Result<Vec<FileCommit>, KnowledgeError> {
        let names: Vec<&str> = location.segments().collect();
        // The last id of a complete trail is the file.
        let file = |trail: &Ancestry| trail.get(names.len()).copied();
        let mut commits = Vec::new();
        let mut next = Some(commit);
        let mut next_trail: Option<(Vec<u8>, Ancestry)> = None;
        for _ in 0..walk {
            let Some(id) = next.filter(|_| commits.len() < limit) else {
                break;
            };
            let (data, trail) = match next_trail.take() {
                Some(next_trail) => next_trail,
                None => self.load_trail(id, &names, &Ancestry::new()).await?,
            };
            let current = parse_commit(id, &data)?;
            // A repository of this program has no merges.
            next = current.parents().next();
            let before = match next {
                Some(parent) => self.load_trail(parent, &names, &trail).await?,
                None => Default::default(),
            };
            if file(&trail) != file(&before.1) {
                commits.push(describe(id, &current));
            }
            next_trail = Some(before);
        }
        Ok(commits)
    }

    /// An item of a commit, with the last commit that changed it. `None` if the commit does
    /// not have it. Everything comes from the repository, so that a lost list of items can be
    /// made again.
    pub(crate) async fn item(
        &self,
        commit: ObjectId,
        location: &ItemLocation,
    ) -> Result<Option<StoredItem>, KnowledgeError> {
        let Some(file) = self.read(commit, location).await? else {
            return Ok(None);
        };
        let (head, content) = ItemHead::parse(&file)?;
        let last = self.history(commit, location, 1, usize::MAX).await?;
        // A file that is there was written by some commit.
        let last = last.first().ok_or(KnowledgeError::Missing(commit))?;
        Ok(Some(StoredItem {
            location: location.clone(),
            head,
            content: content.to_owned(),
            commit: last.commit,
        }))
    }

    /// The data of a commit, and its trail.
    async fn load_trail(
        &self,
        commit: ObjectId,
        names: &[&str],
        like: &Ancestry,
    ) -> Result<(Vec<u8>, Ancestry), KnowledgeError> {
        let data = load(self.objects, commit, Kind::Commit).await?;
        let tree = parse_commit(commit, &data)?.tree();
        let trail = self.trail(tree, names, like).await?;
        Ok((data, trail))
    }

    /// The ids from the root to the file, as far as they exist. Below a folder that `like`
    /// has as well nothing is read.
    async fn trail(
        &self,
        root: ObjectId,
        names: &[&str],
        like: &Ancestry,
    ) -> Result<Ancestry, KnowledgeError> {
        let mut trail = vec![root];
        let mut folder = root;
        for (depth, name) in names.iter().enumerate() {
            if like.get(depth) == Some(&folder) {
                trail.extend(like.iter().skip(depth + 1));
                break;
            }
            let is_file = depth + 1 == names.len();
            let entries = self.folder(folder).await?;
            match entries.get(name.as_bytes().as_bstr()) {
                Some(entry) if entry.mode.is_tree() != is_file => folder = entry.oid,
                _ => break,
            }
            trail.push(folder);
        }
        Ok(trail)
    }
}

/// The ids from a root folder to a file.
type Ancestry = Vec<ObjectId>;

fn describe(commit: ObjectId, data: &CommitRef<'_>) -> FileCommit {
    let author = data.author().ok();
    let header = |name: &str| {
        let mut headers = data.extra_headers.iter();
        let (_, value) = headers.find(|(header, _)| *header == name)?;
        // Of a header with several lines, the parser keeps the line break at the end.
        Some(value.trim_end().to_str_lossy().into_owned())
    };
    FileCommit {
        commit,
        message: data.message.trim_end().to_str_lossy().into_owned(),
        author: author.map_or_else(String::new, |it| it.name.to_str_lossy().into_owned()),
        via: header(VIA).and_then(|via| serde_json::from_value(via.into()).ok()),
        task: header(TASK),
        at_s: author.map_or(0, |it| it.seconds()),
    }
}
