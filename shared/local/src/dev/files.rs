//! The watched files: those of the packages, without what builds and runs write.

use super::cargo::Cargo;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, mem};
use tokio::time::sleep;

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

/// The configuration file of the program, in the folder where `dev` runs.
pub(super) const SETTINGS: &str = "a2a.json";
/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// When a file was written, and its size in bytes.
pub(super) type Stamp = (Option<SystemTime>, u64);
type Stamps = BTreeSet<(PathBuf, Stamp)>;

/// The watched files, as they were at the last look. It asks the file system again and again,
/// which works on each of them, also in containers.
pub(super) struct WatchedFiles {
    folders: Folders,
    data: PathBuf,
    stamps: Stamps,
    /// What was written, made or removed since the last build began.
    edits: Vec<PathBuf>,
}

impl WatchedFiles {
    /// The files as they are now. `data` is the data folder.
    pub(super) fn read(folders: Folders, data: &Path) -> Self {
        let data = real(data);
        let stamps = stamps(&folders, &data);
        Self {
            folders,
            data,
            stamps,
            edits: Vec::new(),
        }
    }

    /// Ready when there was an edit since the last build began. It waits until the files rest,
    /// since editors and version control write many at once. A wait that is dropped loses no edit.
    pub(super) async fn wait_for_edit(&mut self) {
        loop {
            sleep(LOOK).await;
            if !self.look() && !self.edits.is_empty() {
                return;
            }
        }
    }

    /// Whether a file has another content than at the last look.
    fn look(&mut self) -> bool {
        let now = stamps(&self.folders, &self.data);
        let others = self.stamps.symmetric_difference(&now);
        let edits = others.map(|(path, _)| path.clone());
        let before = self.edits.len();
        self.edits.extend(edits);
        self.stamps = now;
        self.edits.len() > before
    }

    /// Before a build: the name of a file that was edited, if there was an edit. A manifest can
    /// bring other packages.
    pub(super) async fn begin(&mut self, cargo: &Cargo) -> Option<String> {
        let edits = mem::take(&mut self.edits);
        if edits.iter().any(|path| path.ends_with("Cargo.toml"))
            // The build says what is wrong with it.
            && let Ok(folders) = cargo.folders().await
        {
            self.folders = folders;
            self.stamps = stamps(&self.folders, &self.data);
        }
        let path = edits.first()?;
        let short = path.strip_prefix(&self.folders.workspace).unwrap_or(path);
        Some(short.display().to_string())
    }
}

/// The one path of a file or folder: without `..` and symbolic links, if it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    fs::canonicalize(path).unwrap_or_else(|_| absolute())
}

fn stamps(folders: &Folders, data: &Path) -> Stamps {
    let mut stamps = Stamps::new();
    let mut add = |path: PathBuf| stamps.extend(stamp(&path).map(|stamp| (path, stamp)));
    for name in ["Cargo.toml", "Cargo.lock"] {
        add(folders.workspace.join(name));
    }
    add(real(Path::new(SETTINGS)));
    let mut folders_to_read = folders.packages.clone();
    // A link can lead to a folder above it.
    let mut linked = BTreeSet::new();
    while let Some(folder) = folders_to_read.pop() {
        // A folder that is gone, or cannot be read, has no files.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Editors keep their own files under hidden names.
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let path = match is_link {
                true => real(&entry.path()),
                false => entry.path(),
            };
            match fs::metadata(&path) {
                Ok(kind) if kind.is_dir() && !is_hidden => {
                    let is_output = path == folders.target || path == data;
                    let is_new = !is_link || linked.insert(path.clone());
                    folders_to_read.extend((is_new && !is_output).then_some(path));
                }
                Ok(kind) if kind.is_file() && !is_hidden => add(path),
                _ => {}
            }
        }
    }
    stamps
}

/// `None` for a file that is gone.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    /// The watched files of a package with the data folder `data/../data`.
    fn package(name: &str) -> (PathBuf, WatchedFiles) {
        let path = std::env::temp_dir().join(format!("a2a-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("data")).unwrap();
        let folders = Folders {
            packages: vec![real(&path)],
            ..Folders::default()
        };
        let files = WatchedFiles::read(folders, &path.join("data/../data"));
        (path, files)
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_is_not_lost_with_the_wait_that_saw_it() {
        let (path, mut files) = package("edit");
        fs::write(path.join("agent.rs"), "").unwrap();
        // It has looked once, and waits until the files rest.
        timeout(LOOK * 3 / 2, files.wait_for_edit())
            .await
            .unwrap_err();
        timeout(LOOK * 3 / 2, files.wait_for_edit()).await.unwrap();
        fs::remove_dir_all(path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn linked_files_and_folders_are_watched() {
        let (path, mut files) = package("link");
        let (other, _) = package("linked");
        fs::write(other.join("lib.rs"), "").unwrap();
        std::os::unix::fs::symlink(other.join("lib.rs"), path.join("lib.rs")).unwrap();
        std::os::unix::fs::symlink(&other, path.join("more")).unwrap();
        std::os::unix::fs::symlink(&path, other.join("back")).unwrap();
        assert!(files.look());
        for name in ["lib.rs", "new.rs"] {
            files.edits.clear();
            fs::write(other.join(name), "new").unwrap();
            assert!(files.look(), "{name}");
        }
        fs::remove_dir_all(path).unwrap();
        fs::remove_dir_all(other).unwrap();
    }

    #[test]
    fn the_data_folder_is_not_watched_under_another_path_of_it() {
        let (path, mut files) = package("data");
        fs::write(path.join("data/table"), "").unwrap();
        assert!(!files.look(), "{:?}", files.edits);
        fs::remove_dir_all(path).unwrap();
    }
}
