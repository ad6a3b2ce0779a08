use super::{hash, of_this_crate};
use std::fs;
use std::path::PathBuf;

const LOCK: &str = r#"version = 4

[[package]]
name = "agent"
version = "0.1.0"
dependencies = [
 "helper",
 "library 1.0.0",
]

[[package]]
name = "function"
version = "0.1.0"
dependencies = [
 "agent",
]

[[package]]
name = "helper"
version = "0.1.0"

[[package]]
name = "library"
version = "1.0.0"
source = "git+https://example.com/library#1"

[[package]]
name = "other"
version = "1.0.0"
source = "git+https://example.com/other#1"
"#;

/// A workspace: an agent that depends on a helper and on a library, and a function.
struct Workspace(PathBuf);

impl Workspace {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("a2a-sources-{name}-{}", std::process::id()));
        let workspace = Self(root);
        workspace.write("Cargo.lock", LOCK);
        workspace.write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
        for package in ["agent", "helper", "function"] {
            let manifest = format!("[package]\nname = \"{package}\"\n");
            workspace.write(&format!("crates/{package}/Cargo.toml"), &manifest);
            workspace.write(&format!("crates/{package}/src/lib.rs"), "mod a;");
            workspace.write(&format!("crates/{package}/src/a/mod.rs"), "");
        }
        workspace
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn hash(&self) -> u64 {
        hash(&self.0.join("crates/agent"), "agent").unwrap()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_same_sources_in_another_folder_have_the_same_hash() {
    let (one, other) = (Workspace::new("one"), Workspace::new("other"));
    assert_eq!(one.hash(), other.hash());
}

#[test]
fn each_change_of_the_agent_or_a_dependency_changes_the_hash() {
    let workspace = Workspace::new("changes");
    let mut hashes = vec![workspace.hash()];
    let lock = LOCK.replace("library#1", "library#2");
    for (path, text) in [
        ("crates/agent/src/a/mod.rs", "// changed"),
        ("crates/agent/src/prompt.txt", "You are a waiter."),
        (
            "crates/agent/Cargo.toml",
            "[package]\nname = \"agent\"\nedition = \"2024\"\n",
        ),
        ("crates/agent/build.rs", "fn main() {}"),
        ("crates/helper/src/lib.rs", "// changed"),
        ("crates/helper/src/b.rs", "// changed"),
        ("Cargo.lock", &lock),
    ] {
        workspace.write(path, text);
        let hash = workspace.hash();
        assert!(!hashes.contains(&hash), "{path}");
        hashes.push(hash);
    }
}

#[test]
fn what_the_agent_does_not_depend_on_does_not_change_the_hash() {
    let workspace = Workspace::new("others");
    let before = workspace.hash();
    let lock = LOCK.replace("other#1", "other#2");
    for (path, text) in [
        ("crates/function/src/lib.rs", "// changed"),
        ("crates/agent/tests/skills.rs", "// changed"),
        ("target/CACHEDIR.TAG", ""),
        (
            "target/package/helper/Cargo.toml",
            "[package]\nname = \"helper\"\n",
        ),
        ("target/package/helper/src/lib.rs", "// a copy"),
        ("README.md", "changed"),
        ("Cargo.lock", &lock),
    ] {
        workspace.write(path, text);
        assert_eq!(workspace.hash(), before, "{path}");
    }
}

#[test]
fn a_crate_without_a_lock_has_the_hash_of_its_own_sources() {
    let workspace = Workspace::new("alone");
    fs::remove_file(workspace.0.join("Cargo.lock")).unwrap();
    let before = workspace.hash();
    workspace.write("crates/helper/src/lib.rs", "// changed");
    assert_eq!(workspace.hash(), before);
    workspace.write("crates/agent/src/lib.rs", "// changed");
    assert_ne!(workspace.hash(), before);
}

#[test]
fn the_crate_that_is_compiled_has_a_hash() {
    assert_eq!(of_this_crate().len(), "a2a-lambda-sources:".len() + 16);
}
