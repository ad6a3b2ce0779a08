//! Opens the data folder: only its owner can read it, and only one program at a time
//! uses it.

use a2a_lambda::store::dynamodb::FormError;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// A data folder. No other program can open it while this value lives.
#[derive(Debug)]
pub(crate) struct DataFolder {
    /// A lock of the operating system, which also releases it when the process dies.
    lock: File,
}

/// Why a folder cannot hold the data.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system returned an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another user owns it, and could change its mode.
    #[error("it belongs to another user")]
    Foreign,
    /// All users share it, as the folder for temporary files.
    #[error("it is shared by all users; choose one of your own")]
    Shared,
    /// Another program uses it.
    #[error("in use by {0}; stop that first, or choose another folder with --data")]
    InUse(String),
    /// Another release has stored what it has.
    #[error("{0}, or choose another folder with --data")]
    Form(FormError),
}

impl DataFolder {
    /// Makes the folder if it is missing, takes the rights of other users away, and locks
    /// it.
    ///
    /// # Errors
    /// [`FolderError`] when it belongs to another user, is shared, or is in use.
    pub(crate) fn take(path: &Path) -> Result<Self, FolderError> {
        Self::lock(path, "lock")
    }

    /// Like [`DataFolder::take`], with the lock file `name`: it keeps out only those who take the
    /// same one.
    ///
    /// # Errors
    /// Those of [`DataFolder::take`].
    pub(crate) fn lock(path: &Path, name: &str) -> Result<Self, FolderError> {
        make_private(path)?;
        shut(path)?;
        let mut lock = private_file(&path.join(name))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse(holder(&mut lock))),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        lock.set_len(0)?;
        write!(lock, "{}", std::process::id())?;
        Ok(Self { lock })
    }

    /// Leaves a note for other programs of this user, as long as the folder is locked.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn leave_note(&mut self, note: &str) -> io::Result<()> {
        write!(self.lock, "\n{note}")
    }

    /// The note of the program that has locked the folder; `None` if none has.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn note(path: &Path) -> io::Result<Option<String>> {
        let path = path.join("lock");
        if !path.exists() {
            return Ok(None);
        }
        let mut lock = private_file(&path)?;
        if lock.try_lock().is_ok() {
            return Ok(None);
        }
        let mut text = String::new();
        lock.read_to_string(&mut text)?;
        Ok(text.split_once('\n').map(|(_, note)| note.to_owned()))
    }
}

/// The process that holds the lock: it has written its id into the file.
fn holder(lock: &mut File) -> String {
    let mut id = String::new();
    match lock.read_to_string(&mut id) {
        Ok(_) if !id.is_empty() => format!("pid {}", id.lines().next().unwrap_or_default()),
        // The holder has the lock, but has not written its id yet.
        _ => "another program".to_owned(),
    }
}

/// Makes `path` and its missing parents, readable for this user alone. It does not
/// change a folder that exists.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    private().recursive(true).create(path)
}

/// Makes the folder `path`, readable for this user alone. An existing folder could
/// belong to another user.
///
/// # Errors
/// When it cannot be made, or exists.
pub(crate) fn make_new(path: &Path) -> io::Result<()> {
    private().create(path)
}

fn private() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "other systems have no mode"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder
}

/// Opens a file that only its owner can read, and makes it if it is missing.
///
/// # Errors
/// When it cannot be opened, or belongs to another user.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Takes the rights of other users on the folder away. Then its files are private too,
/// whatever their own modes.
#[cfg(unix)]
fn shut(path: &Path) -> Result<(), FolderError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    /// The sticky bit marks folders that all users share, like `/tmp`.
    const STICKY: u32 = 0o1000;
    let folder = fs::metadata(path)?;
    if folder.uid() != rustix::process::geteuid().as_raw() {
        return Err(FolderError::Foreign);
    }
    if folder.mode() & STICKY != 0 {
        return Err(FolderError::Shared);
    }
    if folder.mode() & 0o077 != 0 {
        tracing::warn!("removed the rights of other users on `{}`", path.display());
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn shut(_path: &Path) -> Result<(), FolderError> {
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::{DataFolder, FolderError, make_new, make_private};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("a2a-{name}-{}", std::process::id()))
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_folders_are_private() {
        let top = scratch("private");
        let deep = top.join("tables");
        make_private(&deep).unwrap();
        make_private(&deep).unwrap();
        for folder in [&top, &deep] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert!(make_new(&deep).is_err(), "an existing folder was accepted");
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn opening_a_folder_removes_the_rights_of_others() {
        let folder = scratch("open");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let taken = DataFolder::take(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("lock")), 0o600);
        drop(taken);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_shared_folder_is_refused() {
        let folder = scratch("shared");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
        let taken = DataFolder::take(&folder);
        assert!(matches!(taken, Err(FolderError::Shared)), "{taken:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_one_program_at_a_time_opens_a_folder() {
        let folder = scratch("locked");
        let first = DataFolder::take(&folder).unwrap();
        let second = DataFolder::take(&folder).unwrap_err().to_string();
        let holder = format!("in use by pid {}", std::process::id());
        assert!(second.contains(&holder), "{second}");
        drop(first);
        drop(DataFolder::take(&folder).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
