//! The watched files: those of the packages, without what builds and runs write.

use super::cargo::Cargo;
use crate::process::RunError;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where the files are.
#[derive(Debug, Clone, Default)]
pub(super) struct Folders {
    /// The folders of the packages.
    pub(super) packages: Vec<PathBuf>,
    /// The folder of the workspace: its manifest and its lock are watched.
    pub(super) workspace: PathBuf,
    /// What cargo writes.
    pub(super) target: PathBuf,
}

/// When each file was written, and its size in bytes.
type Stamps = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The watched files, as they were at the last look. It asks the file system again and again,
/// which works on each of them, also in containers.
pub(super) struct WatchedFiles {
    folders: Folders,
    data: PathBuf,
    stamps: Stamps,
}

impl WatchedFiles {
    /// The files as they are now. `data` is the data folder.
    ///
    /// # Errors
    /// [`RunError`] when cargo does not know the workspace.
    pub(super) async fn read(cargo: &Cargo, data: &Path) -> Result<Self, RunError> {
        let folders = cargo.folders().await?;
        let data = std::path::absolute(data)?;
        let stamps = stamps(&folders, &data);
        Ok(Self {
            folders,
            data,
            stamps,
        })
    }

    /// The name of a file that was written, made or removed since the last look.
    pub(super) fn look(&mut self) -> Option<String> {
        let now = stamps(&self.folders, &self.data);
        let other = now
            .iter()
            .find(|(path, stamp)| self.stamps.get(*path) != Some(*stamp))
            .or_else(|| {
                self.stamps
                    .iter()
                    .find(|(path, _)| !now.contains_key(*path))
            });
        let name = other.map(|(path, _)| {
            let short = path.strip_prefix(&self.folders.workspace).unwrap_or(path);
            short.display().to_string()
        });
        self.stamps = now;
        name
    }
}

fn stamps(folders: &Folders, data: &Path) -> Stamps {
    let mut stamps = Stamps::new();
    for name in ["Cargo.toml", "Cargo.lock"] {
        stamp(&folders.workspace.join(name), &mut stamps);
    }
    let mut folders_to_read = folders.packages.clone();
    while let Some(folder) = folders_to_read.pop() {
        // A folder that is gone, or cannot be read, has no files.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_hidden => {
                    let is_output = path == folders.target || path == data;
                    folders_to_read.extend((!is_output).then_some(path));
                }
                // Editors keep their own files under hidden names.
                Ok(kind) if kind.is_file() && !is_hidden => stamp(&path, &mut stamps),
                _ => {}
            }
        }
    }
    stamps
}

fn stamp(path: &Path, stamps: &mut Stamps) {
    if let Ok(metadata) = fs::metadata(path) {
        stamps.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
    }
}
