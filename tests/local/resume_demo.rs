//! Runs the demonstration of `docs/flow.md` as a reader would.

use crate::agent::program;
use std::process::Stdio;
use tokio::process::Command;

/// The lines without what differs between runs: event ids become `id`, and
/// process ids become numbers in the order of their appearance.
fn blank(text: &str) -> Vec<String> {
    let mut processes: Vec<String> = Vec::new();
    let mut word = |word: &str| {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return "id".to_owned();
        }
        let Some((process, run)) = word
            .strip_prefix("run-")
            .and_then(|rest| rest.split_once('-'))
        else {
            return word.to_owned();
        };
        let known = processes.iter().position(|one| one == process);
        let place = known.unwrap_or_else(|| {
            processes.push(process.to_owned());
            processes.len() - 1
        });
        format!("run-{place}-{run}")
    };
    let mut line = |line: &str| {
        let words: Vec<String> = line.split(' ').map(&mut word).collect();
        words.join(" ")
    };
    text.lines().map(&mut line).collect()
}

#[tokio::test]
async fn the_stream_of_a_killed_program_resumes_as_the_document_shows() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/resume.sh");
    let mut run = Command::new("bash");
    run.arg(script).arg(program()).kill_on_drop(true);
    let ended = run.stderr(Stdio::inherit()).output().await.unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(
        said.ends_with("== both together are the log of the task\n"),
        "{said}"
    );
    let paper = include_str!("../../docs/flow.md");
    let (_, shown) = paper.split_once("```text\n== a stream\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert_eq!(
        blank(&said),
        blank(&format!("== a stream\n{shown}")),
        "{said}"
    );
}
