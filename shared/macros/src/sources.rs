//! Hashes the sources of the crate that is compiled, and of all that it depends on.
//!
//! Cargo compiles a crate again after each change of its sources or of a crate that it depends
//! on, and rustc expands its attributes each time. So the hash is that of the program, and
//! nothing has to watch files. `Cargo.lock` names the dependencies. A package without a source
//! there is in a folder of the workspace; of another one the lock has the revision or the
//! checksum. Neither features nor paths are hashed, so the hash is the same in programs that use
//! a crate differently, and on each machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the hash begins with in a program, so that it can be found there.
const MARK: &str = "a2a-lambda-sources:";

/// The hash of the crate that is compiled; empty if its files cannot be read.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo describes the crate in the environment; it is no setting of an agent"
)]
pub(crate) fn of_this_crate() -> &'static str {
    // An attribute is expanded for each skill of the crate, and the files are the same.
    static SOURCES: OnceLock<Option<String>> = OnceLock::new();
    let make = || {
        let folder = std::env::var("CARGO_MANIFEST_DIR").ok()?;
        let name = std::env::var("CARGO_PKG_NAME").ok()?;
        let hash = hash(Path::new(&folder), &name).ok()?;
        Some(format!("{MARK}{hash:016x}"))
    };
    SOURCES.get_or_init(make).as_deref().unwrap_or_default()
}

/// The hash of the package `name` in `folder`.
fn hash(folder: &Path, name: &str) -> io::Result<u64> {
    let root = folder
        .ancestors()
        .find(|it| it.join("Cargo.lock").is_file());
    let (root, lock) = match root {
        Some(root) => (root, fs::read_to_string(root.join("Cargo.lock"))?),
        None => (folder, String::new()),
    };
    let packages = packages(&lock, name);
    let mut folders = BTreeSet::from([folder.to_owned()]);
    find_packages(root, &packages, &mut folders);
    let mut files = BTreeMap::new();
    for folder in &folders {
        let package = package_of(folder).unwrap_or_default();
        for name in ["Cargo.toml", "build.rs", "src"] {
            add_files(&folder.join(name), &format!("{package}/{name}"), &mut files)?;
        }
    }
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    packages.values().for_each(|entry| add(entry.as_bytes()));
    for (name, file) in files {
        add(name.as_bytes());
        add(&fs::read(file)?);
    }
    Ok(hash)
}

/// The entries of the lock for `name` and all that it depends on, by name.
fn packages(lock: &str, name: &str) -> BTreeMap<String, String> {
    let mut packages = BTreeMap::new();
    let mut names = vec![name.to_owned()];
    while let Some(name) = names.pop() {
        let line = format!("name = \"{name}\"");
        let is_of = |entry: &&str| entry.lines().any(|it| it == line);
        let entry: String = lock.split("[[package]]").filter(is_of).collect();
        // A dependency is ` "name",` or, of two versions, ` "name 1.0.0",`.
        let quotes = entry.lines().filter_map(|it| it.strip_prefix(" \""));
        let all = quotes.filter_map(|it| it.split([' ', '"']).next());
        names.extend(
            all.filter(|it| !packages.contains_key(*it))
                .map(str::to_owned),
        );
        packages.insert(name, entry);
    }
    packages
}

/// Adds the folders below `folder` of `packages` that have no source elsewhere. One that cannot
/// be read, as that of a database, has no packages.
fn find_packages(
    folder: &Path,
    packages: &BTreeMap<String, String>,
    folders: &mut BTreeSet<PathBuf>,
) {
    // What cargo writes has this file, whatever its name.
    if folder.join("CACHEDIR.TAG").exists() {
        return;
    }
    let entry = package_of(folder).and_then(|name| packages.get(&name));
    if entry.is_some_and(|entry| !entry.contains("\nsource = ")) {
        folders.insert(folder.to_owned());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".") || name == "node_modules";
        if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_packages(&entry.path(), packages, folders);
        }
    }
}

/// The name of the package in a folder.
fn package_of(folder: &Path) -> Option<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let package = manifest.split("[package]").nth(1)?;
    let names = package.lines().filter_map(|line| line.split_once('='));
    let mut names = names.filter(|(key, _)| key.trim() == "name");
    Some(names.next()?.1.trim().trim_matches('"').to_owned())
}

/// Adds the files at `path`, by their names in the package.
fn add_files(path: &Path, name: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            add_files(&entry.path(), &name, files)?;
        }
    } else if path.is_file() {
        files.insert(name.to_owned(), path.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
