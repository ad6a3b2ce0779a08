//! `dev`: an edit is served by a new program; what fails leaves the old one in service.
//!
//! A script takes the place of cargo, so that a build takes no time: it does what the edited
//! file says. The step `author` edits a real agent, with the real cargo.

use crate::agent::{Folder, Running, ended, program};
use crate::background::{OPEN, after, begun};
use crate::calls::Call;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio::net::TcpStream;

/// A file with this text compiles to a program that serves.
const GOOD: &str = "good";

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, all).unwrap();
}

/// A workspace whose one file is edited, under `dev`.
struct Developed {
    running: Running,
    token: String,
    folder: Folder,
}

impl Developed {
    async fn start() -> Self {
        let folder = Folder::new();
        let here = folder.path().display().to_string();
        std::fs::create_dir_all(folder.path().join("target/debug")).unwrap();
        script(
            &folder.path().join(".cargo-of-test"),
            &format!(
                r#"#!/bin/sh
cd {here}
built=target/debug/a2a-local
if [ $1 = metadata ]; then
    echo '{{"packages": [{{"source": null, "manifest_path": "{here}/Cargo.toml"}}, {{"source": "registry", "manifest_path": "/Cargo.toml"}}], "workspace_root": "{here}", "target_directory": "{here}/target"}}'
    exit
fi
text=$(cat agent.rs)
# As a linker does it: the program that runs keeps its file.
rm -f $built
case $text in
    bad*)
        printf '%s\n' '{{"reason": "compiler-message", "message": {{"rendered": "error: mismatched <b>types</b>\n"}}}}'
        exit 101 ;;
    hang*) exec sleep 1000 ;;
    panics*) printf '#!/bin/sh\necho "panicked at agent.rs" >&2\nexit 101\n# %s' "$text" > $built ;;
    *) printf '#!/bin/sh\nexec {program} "$@"\n# %s' "$text" > $built ;;
esac
chmod +x $built
echo '{{"reason": "compiler-artifact", "executable": "{here}/'$built'"}}'
"#,
                program = program().display(),
            ),
        );
        std::fs::write(folder.path().join("agent.rs"), GOOD).unwrap();
        let cargo = folder.path().join(".cargo-of-test");
        let arguments = ["dev", "--port", "0", "--agent", "conformance"];
        let settings = [("CARGO", cargo.to_str().unwrap())];
        let running = Running::start(&folder, &arguments, &settings, "listening on ").await;
        let (_, token) = running.said.split_once("#token=").unwrap();
        let token = token.lines().next().unwrap().to_owned();
        Self {
            running,
            token,
            folder,
        }
    }

    fn edit(&self, text: &str) {
        std::fs::write(self.folder.path().join("agent.rs"), text).unwrap();
    }

    /// What the page asks for each second, once its build is in `state`.
    async fn build(&self, number: u32, state: &str) -> Value {
        let url = format!("{}/a2a-local/page/changes", self.running.base());
        let call = Call::get(&url).header("X-A2A-Local-Token", &self.token);
        loop {
            // Between two programs nothing listens.
            if let Some(changes) = call.clone().json_if_served().await {
                let build = &changes["build"];
                if build["number"] == number && build["state"] == state {
                    return build.clone();
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn process(&self) -> Value {
        let url = format!("{}/a2a-local/page/facts", self.running.base());
        let call = Call::get(&url).header("X-A2A-Local-Token", &self.token);
        call.json().await["process"].clone()
    }
}

#[tokio::test]
async fn an_edit_is_served_at_the_same_address_with_the_same_token() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    let first = dev.process().await;
    dev.edit("good, and other");
    assert_eq!(dev.build(2, "serves").await["serving"], 2);
    assert_ne!(dev.process().await, first);
}

#[tokio::test]
async fn a_build_that_fails_leaves_the_old_program_and_the_page_shows_the_error() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    let first = dev.process().await;
    dev.edit("bad");
    let build = dev.build(2, "failed").await;
    assert_eq!(build["serving"], 1);
    assert_eq!(build["output"], "error: mismatched <b>types</b>\n");
    assert_eq!(dev.process().await, first);
    dev.edit("good again");
    assert_eq!(dev.build(3, "serves").await["serving"], 3);
}

#[tokio::test]
async fn a_program_that_does_not_start_gives_way_to_the_one_before() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("panics");
    let build = dev.build(2, "not-started").await;
    assert_eq!(build["serving"], 1);
    assert_eq!(build["output"], "panicked at agent.rs\n");
    let answer = Call::say(dev.running.base(), "echo still here")
        .json()
        .await;
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    dev.edit("good again");
    assert_eq!(dev.build(3, "serves").await["serving"], 3);
}

#[tokio::test]
async fn an_edit_ends_a_build_that_hangs() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("hang");
    assert_eq!(dev.build(2, "building").await["serving"], 1);
    dev.edit("good again");
    assert_eq!(dev.build(3, "serves").await["serving"], 3);
}

#[tokio::test]
async fn a_task_in_the_middle_of_an_edit_goes_on_with_the_new_program() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    let id = begun(dev.running.base(), "wait 3").await;
    let task = after(dev.running.base(), &id, &["TASK_STATE_SUBMITTED"]).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{task}");
    dev.edit("good, and other");
    dev.build(2, "serves").await;
    let task = after(dev.running.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn a_kill_by_the_page_keeps_the_build() {
    let dev = Developed::start().await;
    dev.edit("bad");
    dev.build(2, "failed").await;
    let url = format!("{}/a2a-local/page/kill", dev.running.base());
    let kill = Call::get(&url).header("X-A2A-Local-Token", &dev.token);
    kill.method(http::Method::POST).send().await;
    assert_eq!(dev.build(2, "failed").await["serving"], 1);
}

#[tokio::test]
async fn the_program_ends_with_dev() {
    let dev = Developed::start().await;
    let address = dev.running.base().replace("http://", "");
    // Even SIGKILL, after which `dev` says nothing.
    dev.running.kill().await;
    while TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn dev_says_what_cargo_says_of_a_folder_without_a_package() {
    let output = ended(&["dev"], &[("CARGO", env!("CARGO"))]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("could not find `Cargo.toml`"), "{said}");
}
