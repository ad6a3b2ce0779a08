//! Reads the programs and writes the temporary packages that contain them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program in its valid and its invalid form.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) good: String,
    pub(crate) bad: String,
    /// The error code of the compiler, or a part of its text for an error without a code.
    pub(crate) error: String,
    /// A part of what the compiler prints for an error with a code.
    pub(crate) text: Option<String>,
}

impl Program {
    fn read(path: &Path) -> Self {
        let good = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let optional = |key: &str| {
            let prefix = format!("//! {key}: `");
            let line = good.lines().find_map(|line| line.strip_prefix(&prefix))?;
            Some(line.strip_suffix('`').unwrap().to_owned())
        };
        let header =
            |key: &str| optional(key).unwrap_or_else(|| panic!("{name}: no `{key}` in the header"));
        let text = optional("text");
        let (replace, with, error) = (header("replace"), header("with"), header("error"));
        let (head, body) = good.split_at(good.find("\nuse ").unwrap());
        let count = body.matches(&replace).count();
        assert_eq!(count, 1, "{name}: `{replace}` must occur once in the body");
        let bad = format!("{head}{}", body.replace(&replace, &with));
        Self {
            name,
            good,
            bad,
            error,
            text,
        }
    }
}

pub(crate) fn programs() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compile_fail/programs");
    let files = fs::read_dir(folder).unwrap();
    let paths: BTreeSet<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert!(!paths.is_empty());
    paths.iter().map(|path| Program::read(path)).collect()
}

fn below_target() -> PathBuf {
    // A directory next to cargo's own one for test files.
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("compile-fail")
}

/// Writes a file, except when it is unchanged, so that cargo does not build it again.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes a package with one library target per program. A library is not linked, so it
/// builds faster than a program.
pub(crate) fn package(name: &str, sources: &BTreeMap<&str, &str>) -> PathBuf {
    let folder = below_target().join(name);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let runtime = workspace.join("shared/runtime");
    let mut manifest = format!(
        r#"[package]
name = "{name}"
edition = "2024"
autoexamples = false
[lib]
path = "lib.rs"
[workspace]
[profile.dev]
debug = false
[dependencies]
a2a-lambda = {{ path = {runtime:?}, default-features = false }}
schemars = "1"
serde = {{ version = "1", features = ["derive"] }}
tokio = {{ version = "1", features = ["rt"] }}
"#
    );
    for (program, source) in sources {
        let entry = format!(
            "[[example]]\nname = \"{program}\"\npath = \"{program}.rs\"\ncrate-type = [\"lib\"]\n"
        );
        manifest.push_str(&entry);
        write(&folder.join(program).with_extension("rs"), source);
    }
    write(&folder.join("Cargo.toml"), &manifest);
    write(&folder.join("lib.rs"), "");
    // The versions of the workspace, so that cargo downloads nothing.
    let lock = fs::read_to_string(workspace.join("Cargo.lock")).unwrap();
    if lock_changed(&folder, &lock) {
        write(&folder.join("Cargo.lock"), &lock);
    }
    folder
}

/// Whether the workspace's lock file has changed. Cargo rewrites the lock file of a
/// package, so a copy of the original is kept beside it.
fn lock_changed(folder: &Path, lock: &str) -> bool {
    let source = folder.join("source.lock");
    let changed = fs::read_to_string(&source).is_ok_and(|old| old == lock);
    write(&source, lock);
    !changed
}

pub(crate) fn build(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO"))
        .args(["build", "--offline", "--examples", "--target-dir"])
        .arg(below_target().join("target"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The errors of one program.
#[derive(Default)]
pub(crate) struct Errors {
    /// Their codes, or the text of an error without a code.
    pub(crate) codes: BTreeSet<String>,
    /// What the compiler prints.
    pub(crate) printed: String,
}

/// The errors of each program.
pub(crate) fn errors(stdout: &[u8]) -> BTreeMap<String, Errors> {
    let mut errors: BTreeMap<String, Errors> = BTreeMap::new();
    for line in stdout.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let message = &line["message"];
        let text = message["message"].as_str().unwrap_or_default();
        if message["level"] != "error" || text.starts_with("aborting due to") {
            continue;
        }
        let program = line["target"]["name"].as_str().unwrap().to_owned();
        let code = message["code"]["code"].as_str().unwrap_or(text).to_owned();
        let of_program = errors.entry(program).or_default();
        of_program.codes.insert(code);
        let printed = message["rendered"].as_str().unwrap_or_default();
        of_program.printed.push_str(printed);
    }
    errors
}
