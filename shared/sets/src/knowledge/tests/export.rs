//! Exports, read by the real git where it is installed.

use super::bench::{MapObjects, author};
use crate::knowledge::export::{Exported, export};
use crate::knowledge::item::{ItemHead, ItemKind, ItemStatus};
use crate::knowledge::objects::encode;
use crate::knowledge::path::{ItemLocation, ItemPath};
use crate::knowledge::repository::{NewVersion, Repository};
use crate::layer::Layer;
use gix_hash::ObjectId;
use gix_object::tree::{Entry, EntryKind};
use gix_object::{Commit, Kind, Tree, WriteTo as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of this test, which is removed with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("a2a-export-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path());
    let below = entries.flat_map(|path| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    let mut all: Vec<_> = below.collect();
    all.sort();
    all
}

/// What git prints, without settings of this machine. It has to succeed without warnings.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "git {arguments:?}: {errors}");
    for word in ["warning", "error", "dangling", "missing"] {
        assert!(!errors.contains(word), "git {arguments:?}: {errors}");
    }
    String::from_utf8(done.stdout).unwrap()
}

/// Whether git is installed. Without it the test says that it does not run.
fn has_git(test: &str) -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED {test}: git is not installed");
    }
    found
}

/// Commits an item of the company.
async fn commit_item(
    objects: &MapObjects,
    head: Option<ObjectId>,
    text: &str,
    message: &str,
    at_s: i64,
) -> Option<ObjectId> {
    let item = ItemHead {
        kind: ItemKind::Adr,
        status: ItemStatus::Accepted,
        title: "Größe".to_owned(),
        summary: String::new(),
        tags: Vec::new(),
        superseded_by: None,
    };
    let path = ItemPath::parse("adr/größe & 大小.md").unwrap();
    let place = ItemLocation::new(Layer::Company, None, path).unwrap();
    let author = author();
    let version = NewVersion {
        file: item.file(text),
        message,
        author: &author,
        at_s,
    };
    let repository = Repository::new(objects);
    repository.commit(head, &place, &version).await.unwrap()
}

/// A repository with names of several scripts.
async fn filled(objects: &MapObjects) -> ObjectId {
    let mut head = None;
    for path in ["a/x", "a.b", "a-b", "a0", "Z", "@{u}", "-rf", "#1 'q' $(x)"] {
        head = objects.commit(head, path, path, 0).await.unwrap();
    }
    let message = "Import\n\nWith a body: ö 大.";
    let head = commit_item(objects, head, "# One\n", message, 1_700_000_000).await;
    let head = commit_item(objects, head, "# Two\n", "Edit", 253_402_300_799).await;
    head.unwrap()
}

#[tokio::test]
async fn git_checks_reads_and_clones_an_export() {
    if !has_git("git_checks_reads_and_clones_an_export") {
        return;
    }
    let (folder, objects) = (Folder::new("clone"), MapObjects::default());
    let head = filled(&objects).await;
    let bare = folder.path("missing/knowledge.git");
    let written = export(Some(head), &objects, &bare).await.unwrap();
    assert_eq!(written.commits, 10);
    assert_eq!(written.objects, objects.ids().len());

    git(&bare, &["fsck", "--strict", "--full", "--no-dangling"]);
    assert_eq!(git(&bare, &["rev-parse", "main"]).trim(), head.to_string());
    let log = git(&bare, &["log", "--format=%s|%an|%ae|%at|%cn", "main"]);
    let log: Vec<_> = log.lines().collect();
    assert_eq!(
        log[..3],
        [
            "Edit|author-1|author-1@tenant|253402300799|author-1",
            "Import|author-1|author-1@tenant|1700000000|author-1",
            "Change #1 'q' $(x)|author-1|author-1@tenant|0|author-1",
        ]
    );
    git(
        &folder.0,
        &["clone", "--quiet", "missing/knowledge.git", "clone"],
    );
    let clone = folder.path("clone");
    let file = std::fs::read_to_string(clone.join("company/adr/größe & 大小.md")).unwrap();
    assert!(file.starts_with("---\nkind: \"adr\"\nstatus: \"accepted\"\ntitle: \"Größe\"\n"));
    assert!(file.ends_with("---\n# Two\n"));
    let team = clone.join("team/payments");
    assert_eq!(std::fs::read_to_string(team.join("-rf")).unwrap(), "-rf");
    assert_eq!(git(&clone, &["status", "--porcelain"]), "");
    // What git writes, this program reads.
    let listed = objects.files(Some(head)).await.len();
    assert_eq!(
        git(&clone, &["ls-files", "-z"]).matches('\0').count(),
        listed
    );
}

#[tokio::test]
async fn an_export_without_a_head_is_an_empty_repository() {
    if !has_git("an_export_without_a_head_is_an_empty_repository") {
        return;
    }
    let folder = Folder::new("empty");
    let written = export(None, &MapObjects::default(), &folder.0)
        .await
        .unwrap();
    assert_eq!(written, Exported::default());
    git(&folder.0, &["fsck", "--strict"]);
    assert_eq!(
        git(&folder.0, &["symbolic-ref", "HEAD"]).trim(),
        "refs/heads/main"
    );
}

#[tokio::test]
async fn a_folder_with_files_is_refused_and_unchanged() {
    let (folder, objects) = (Folder::new("full"), MapObjects::default());
    let head = objects.write(None, "a.md", "x").await;
    std::fs::write(folder.path("mine"), "mine").unwrap();
    let refused = export(head, &objects, &folder.0).await.unwrap_err();
    assert!(refused.to_string().ends_with("is not empty"), "{refused}");
    assert_eq!(files(&folder.0), [folder.path("mine")]);
    let refused = export(head, &objects, &folder.path("mine"))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().starts_with("failed to write"),
        "{refused}"
    );
    let bare = folder.path("bare");
    export(head, &objects, &bare).await.unwrap();
    let again = export(head, &objects, &bare).await.unwrap_err();
    assert!(again.to_string().ends_with("is not empty"), "{again}");
}

#[tokio::test]
async fn hostile_names_in_a_tree_never_become_names_of_files() {
    let (folder, objects) = (Folder::new("hostile"), MapObjects::default());
    let blob = objects.insert(encode(Kind::Blob, b"evil").unwrap());
    let mut entries: Vec<_> = [
        "../../evil",
        "..",
        ".git",
        "/etc/evil",
        "hooks/post-checkout",
    ]
    .map(|name| Entry {
        mode: EntryKind::Blob.into(),
        filename: name.into(),
        oid: blob,
    })
    .into();
    entries.sort();
    let mut data = Vec::new();
    Tree { entries }.write_to(&mut data).unwrap();
    let tree = objects.insert(encode(Kind::Tree, &data).unwrap());
    let signature = gix_actor::Signature {
        name: "a".into(),
        email: "b".into(),
        time: gix_object::date::Time::new(0, 0),
    };
    let commit = Commit {
        tree,
        parents: Default::default(),
        author: signature.clone(),
        committer: signature,
        encoding: None,
        message: "m\n".into(),
        extra_headers: Vec::new(),
    };
    let mut data = Vec::new();
    commit.write_to(&mut data).unwrap();
    let commit = objects.insert(encode(Kind::Commit, &data).unwrap());

    let bare = folder.path("bare");
    export(Some(commit), &objects, &bare).await.unwrap();
    let mut wanted: Vec<_> = objects
        .ids()
        .into_iter()
        .map(|id| {
            let name = id.to_string();
            let (first, rest) = name.split_at(2);
            bare.join("objects").join(first).join(rest)
        })
        .chain(["HEAD", "config", "refs/heads/main"].map(|name| bare.join(name)))
        .collect();
    wanted.sort();
    assert_eq!(files(&folder.0), wanted);
    // No item can have such a name, and none of them is listed.
    assert!(objects.files(Some(commit)).await.is_empty());
}

#[tokio::test]
async fn an_export_of_a_damaged_repository_has_no_branch() {
    let objects = MapObjects::default();
    let head = objects.write(None, "a/b.md", "x").await;
    for (number, id) in objects.ids().into_iter().enumerate() {
        let folder = Folder::new(&format!("damaged{number}"));
        let whole = objects.remove(id);
        let lost = export(head, &objects, &folder.path("lost"))
            .await
            .unwrap_err();
        assert!(lost.to_string().ends_with("is missing"), "{lost}");
        let mut wrong = whole.clone();
        wrong.push(0);
        objects.replace(id, wrong);
        let damaged = export(head, &objects, &folder.path("damaged"))
            .await
            .unwrap_err();
        assert!(damaged.to_string().contains("is corrupt"), "{damaged}");
        objects.replace(id, whole);
        let all = files(&folder.0);
        assert!(!all.iter().any(|file| file.ends_with("refs/heads/main")));
    }
}
