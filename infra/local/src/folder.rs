//! The data folder: what lies in it is its owner's alone.

use std::io;
use std::path::Path;

/// Makes `path` and what is missing above it; nobody else can look into what
/// is made here. A folder that exists stays as it is.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::make_private;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn nobody_else_can_look_into_the_data_folder() {
        let top = std::env::temp_dir().join(format!("a2a-private-{}", std::process::id()));
        let deep = top.join("tables");
        make_private(&deep).unwrap();
        make_private(&deep).unwrap();
        for folder in [&top, &deep] {
            let mode = folder.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
        std::fs::remove_dir_all(top).unwrap();
    }
}
