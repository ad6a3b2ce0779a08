//! `dev`: an edit is served by a new program; what fails leaves the old one in service.
//!
//! A script takes the place of cargo, so that a build takes no time: it does what the edited
//! file says. The step `author` edits a real agent, with the real cargo.

use crate::agent::{Folder, Running, ended, program, refusal_in};
use crate::background::{OPEN, after, begun};
use crate::calls::Call;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// A file with this text compiles to a program that serves.
const GOOD: &str = "good";

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, all).unwrap();
}

/// The options of `dev` in each test.
const DEV: [&str; 5] = ["dev", "--port", "0", "--agent", "conformance"];
/// Those of a `dev` that keeps nothing.
const MEMORY: [&str; 4] = ["dev", "--port", "0", "--memory"];

/// A workspace with one file of code, and the cargo that builds it.
fn workspace() -> (Folder, String) {
    let folder = Folder::new();
    let here = folder.path().display().to_string();
    std::fs::create_dir_all(folder.path().join("target/debug")).unwrap();
    let cargo = folder.path().join(".cargo-of-test");
    script(
        &cargo,
        &format!(
            r#"#!/bin/sh
cd {here}
built=target/debug/a2a-local
if [ $1 = metadata ]; then
    more=$(sed 's|.*|, {{"source": null, "manifest_path": "&"}}|' Cargo.toml 2>/dev/null)
    echo '{{"packages": [{{"source": null, "manifest_path": "{here}/Cargo.toml"}}, {{"source": "registry", "manifest_path": "/Cargo.toml"}}'$more'], "workspace_root": "{here}", "target_directory": "{here}/target"}}'
    exit
fi
text=$(cat agent.rs)
echo "$*" > .arguments
serve='echo $$ > .pid; exec {program} "$@"'
# As a linker does it: the program that runs keeps its file.
[ "$text" = same ] || rm -f $built
case $text in
    bad*)
        printf '%s\n' '{{"reason": "compiler-message", "message": {{"rendered": "error: mismatched <b>types</b>\n"}}}}'
        exit 101 ;;
    hang*)
        mkfifo .open
        sleep 1000 > .open ;;
    panics*) serve='echo "panicked at agent.rs" >&2; exit 101' ;;
    leaves*) serve='echo "panicked at agent.rs" >&2; sleep 400 & exit 101' ;;
    waits*) serve='exec sleep 1000' ;;
    renames*) serve='export STEP_OF_TEST=another; '$serve ;;
    talks*) serve='echo "from the agent"; printf "\377\n"; printf "\377\n" >&2; '$serve ;;
esac
[ "$text" = same ] || printf '#!/bin/sh\n%s\n# %s' "$serve" "$text" > $built
[ "$text" = stays ] || chmod +x $built
[ "$text" = lost ] && rm $built
echo '{{"reason": "compiler-artifact", "executable": "{here}/target/debug/another"}}'
echo '{{"reason": "compiler-artifact", "executable": "{here}/'$built'"}}'
"#,
            program = program().display(),
        ),
    );
    std::fs::write(folder.path().join("agent.rs"), GOOD).unwrap();
    (folder, cargo.display().to_string())
}

/// How many programs `dev` keeps.
fn programs(folder: &Folder) -> usize {
    let files = std::fs::read_dir(folder.path().join("target/debug")).unwrap();
    let names = files.map(|file| file.unwrap().file_name());
    names
        .filter(|name| name.as_encoded_bytes().starts_with(b"dev-"))
        .count()
}

/// A workspace whose one file is edited, under `dev`.
struct Developed {
    running: Running,
    token: String,
    folder: Folder,
    cargo: String,
}

impl Developed {
    async fn start() -> Self {
        let (folder, cargo) = workspace();
        let settings = [("CARGO", cargo.as_str())];
        let running = Running::start(&folder, &DEV, &settings, "listening on ").await;
        let (_, token) = running.said.split_once("#token=").unwrap();
        let token = token.lines().next().unwrap().to_owned();
        Self {
            running,
            token,
            folder,
            cargo,
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

/// The pipe that a process of the hanging build has open. Its end is the end of the process.
async fn pipe(folder: &Folder) -> File {
    let pipe = folder.path().join(".open");
    while !pipe.exists() {
        tokio::task::yield_now().await;
    }
    File::open(pipe).await.unwrap()
}

#[tokio::test]
async fn an_edit_ends_a_build_that_hangs_with_all_that_it_started() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("hang");
    assert_eq!(dev.build(2, "building").await["serving"], 1);
    let mut pipe = pipe(&dev.folder).await;
    dev.edit("good again");
    assert_eq!(dev.build(3, "serves").await["serving"], 3);
    pipe.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test]
async fn ctrl_c_ends_a_build_that_hangs_with_all_that_it_started() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("hang");
    let mut pipe = pipe(&dev.folder).await;
    dev.running.interrupt().await;
    pipe.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_gone_after_its_build_leaves_the_old_one() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("lost");
    assert_eq!(dev.build(2, "failed").await["serving"], 1);
}

#[tokio::test]
async fn a_program_that_cannot_be_run_gives_way_to_the_one_before() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("stays");
    assert_eq!(dev.build(2, "not-started").await["serving"], 1);
}

#[tokio::test]
async fn an_edit_ends_a_start_that_hangs() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("waits");
    // Between two programs nobody answers.
    let url = format!("{}/a2a-local/page/changes", dev.running.base());
    while Call::get(&url).json_if_served().await.is_some() {
        tokio::task::yield_now().await;
    }
    dev.edit("good again");
    // A start may take a minute.
    let build = timeout(Duration::from_secs(45), dev.build(3, "serves")).await;
    assert_eq!(build.unwrap()["serving"], 3);
}

#[tokio::test]
async fn a_start_that_leaves_a_process_ends_with_its_own() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("leaves");
    let build = dev.build(2, "not-started").await;
    assert_eq!(build["output"], "panicked at agent.rs\n");
}

#[tokio::test]
async fn the_output_of_a_later_start_is_shown_without_the_banner() {
    let mut dev = Developed::start().await;
    dev.build(1, "serves").await;
    dev.edit("talks");
    dev.build(2, "serves").await;
    dev.edit("talks again");
    dev.build(3, "serves").await;
    // What is not UTF-8 does not end the reader.
    for line in ["from the agent", "\u{fffd}", "from the agent", "\u{fffd}"] {
        assert_eq!(dev.running.next_line("", "").await, line);
    }
}

#[tokio::test]
async fn the_page_of_an_agent_that_keeps_nothing_has_a_new_address_after_an_edit() {
    let (folder, cargo) = workspace();
    let (arguments, settings) = (MEMORY, [("CARGO", cargo.as_str())]);
    let mut dev = Running::start(&folder, &arguments, &settings, "listening on ").await;
    std::fs::write(folder.path().join("agent.rs"), "good, and other").unwrap();
    let line = dev.next_line("", "#token=").await;
    let token = line.rsplit_once('=').unwrap().1;
    let url = format!("{}/a2a-local/page/changes", dev.base());
    let call = Call::get(&url).header("X-A2A-Local-Token", token);
    while call.clone().json_if_served().await.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(call.send().await.0, 200);
}

#[tokio::test]
async fn two_commands_in_a_workspace_keep_programs_of_their_own() {
    let dev = Developed::start().await;
    let settings = [("CARGO", dev.cargo.as_str())];
    let _second = Running::start(&dev.folder, &MEMORY, &settings, "listening on ").await;
    assert_eq!(programs(&dev.folder), 2);
}

#[tokio::test]
async fn a_second_command_with_the_same_data_is_refused() {
    let dev = Developed::start().await;
    let refusal = refusal_in(&dev.folder, &DEV, &[("CARGO", &dev.cargo)]).await;
    let holder = format!("in use by pid {}", dev.running.id());
    assert!(refusal.contains(&holder), "{refusal}");
}

/// `dev` as a file beside its builds, as `cargo run` has it, and what it says.
struct Terminal {
    lines: Lines<BufReader<ChildStderr>>,
    folder: Folder,
    _dev: Child,
}

impl Terminal {
    fn open() -> Self {
        let (folder, cargo) = workspace();
        let this: PathBuf = folder.path().join("target/debug/a2a-local");
        std::fs::copy(program(), &this).unwrap();
        let mut dev = Command::new(this)
            .args(DEV)
            .current_dir(folder.path())
            .env_clear()
            .env("CARGO", cargo)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            lines: BufReader::new(dev.stderr.take().unwrap()).lines(),
            folder,
            _dev: dev,
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The next line of `dev` that has `text`.
    async fn says(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap();
            if line.starts_with("dev: ") && line.contains(text) {
                return line;
            }
        }
    }
}

#[tokio::test]
async fn the_program_with_the_name_of_this_one_is_served_though_cargo_replaces_it() {
    let mut terminal = Terminal::open();
    let line = terminal.says("build 1").await;
    assert!(line.contains("serves"), "{line}");
}

#[tokio::test]
async fn a_program_that_ended_by_itself_no_longer_serves() {
    let mut dev = Terminal::open();
    dev.says("build 1 serves").await;
    let id = std::fs::read_to_string(dev.folder.path().join(".pid")).unwrap();
    let kill = format!("kill -9 {id}");
    let kill = Command::new("sh").args(["-c", &kill]).status().await;
    assert!(kill.unwrap().success());
    dev.says("the program ended").await;
    assert_eq!(programs(&dev.folder), 0);
    dev.write("agent.rs", "bad");
    let line = dev.says("build 2").await;
    assert!(!line.contains("serves"), "{line}");
}

#[tokio::test]
async fn a_changed_configuration_file_is_in_force_though_the_program_is_the_same() {
    let mut dev = Terminal::open();
    dev.says("build 1 serves").await;
    dev.write("agent.rs", "same");
    dev.says("the program is the same").await;
    dev.write("a2a.json", "{}");
    dev.says("build 2 serves").await;
}

#[tokio::test]
async fn a_package_that_an_edit_adds_is_watched() {
    let mut dev = Terminal::open();
    dev.says("build 1 serves").await;
    let other = Folder::new();
    let manifest = other.path().join("Cargo.toml");
    std::fs::write(&manifest, "").unwrap();
    dev.write("Cargo.toml", manifest.to_str().unwrap());
    dev.says("build 2 serves").await;
    std::fs::write(other.path().join("lib.rs"), "").unwrap();
    dev.says("lib.rs changed").await;
    dev.says("build 3 serves").await;
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
    let url = format!("{}/a2a-local/page/tasks/{id}", dev.running.base());
    let inside = Call::get(&url).header("X-A2A-Local-Token", &dev.token);
    let inside = inside.json().await;
    let rows = inside["trace"].as_array().unwrap();
    let turns: Vec<_> = rows.iter().filter(|row| row["kind"] == "turn").collect();
    assert!(turns.len() > 1, "{inside}");
    assert!(turns.iter().all(|turn| turn["attempt"] == 1), "{inside}");
}

#[tokio::test]
async fn a_task_whose_step_an_edit_renames_waits_until_another_edit_puts_it_back() {
    let dev = Developed::start().await;
    dev.build(1, "serves").await;
    let id = begun(dev.running.base(), "steps 9 500").await;
    let url = format!("{}/a2a-local/page/tasks/{id}", dev.running.base());
    let inside = Call::get(&url).header("X-A2A-Local-Token", &dev.token);
    let is_kept = |row: &Value| row["kind"] == "step" && row["end"].is_u64();
    while !rows_of(&inside).await.iter().any(is_kept) {}
    dev.edit("renames");
    dev.build(2, "serves").await;
    let failed = |row: &Value| row["kind"] == "failure";
    let row = loop {
        if let Some(row) = rows_of(&inside).await.into_iter().find(failed) {
            break row;
        }
    };
    assert_eq!(row["name"], "STEP_CHANGED");
    let cause = row["content"]["cause"].as_str().unwrap();
    assert!(
        cause.contains("`step#1`") && cause.contains("`another#1`"),
        "{cause}"
    );
    let task = after(dev.running.base(), &id, &["TASK_STATE_SUBMITTED"]).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING", "{task}");
    dev.edit("good, and other");
    dev.build(3, "serves").await;
    let task = after(dev.running.base(), &id, &OPEN).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

/// The rows of a trace.
async fn rows_of(inside: &Call) -> Vec<Value> {
    inside.clone().json().await["trace"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_build_is_that_of_the_package_and_the_features_that_dev_is_told() {
    let (folder, cargo) = workspace();
    let options = ["dev", "-p", "mine", "--features", "one,two", "-F", "three"];
    let arguments: Vec<_> = options.into_iter().chain(DEV.into_iter().skip(1)).collect();
    let settings = [("CARGO", cargo.as_str())];
    let _running = Running::start(&folder, &arguments, &settings, "listening on ").await;
    let call = std::fs::read_to_string(folder.path().join(".arguments")).unwrap();
    let expected = "--package mine --features one,two --features three";
    assert!(call.contains(expected), "{call}");
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
