//! Which build serves, and what became of the newest one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, BufRead as _};
use std::time::Duration;
use tokio::sync::watch;

/// What became of the newest build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BuildState {
    /// Cargo works on it.
    #[default]
    Building,
    /// It does not compile.
    Failed,
    /// The program ended before it served.
    NotStarted,
    /// It serves.
    Serves,
}

/// How the builds are, as the page shows it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildReport {
    /// The number of the newest build, from 1.
    pub(super) number: u32,
    state: BuildState,
    /// The number of the build that serves; 0 before the first one.
    serving: u32,
    /// What cargo or the program said, if it failed. It has no escape sequences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    output: String,
}

impl BuildReport {
    /// What the page gets from the build `current`; nothing before `dev` has reported.
    pub(crate) fn to_json(&self, current: u32) -> Option<Value> {
        let mut report = self.clone();
        // Who reads this is served by it, perhaps before `dev` has noticed.
        if report.number == current {
            report.serves();
        }
        (self.number > 0).then(|| json!(report))
    }

    /// Whether no build serves yet.
    pub(super) const fn is_first(&self) -> bool {
        self.serving == 0
    }

    /// The next build begins.
    pub(super) fn building(&mut self) {
        self.number += 1;
        self.state = BuildState::Building;
    }

    pub(super) fn fail(&mut self, output: String) {
        self.state = BuildState::Failed;
        self.output = output;
    }

    pub(super) fn not_started(&mut self, output: String) {
        self.state = BuildState::NotStarted;
        self.output = output;
    }

    pub(super) fn serves(&mut self) {
        self.state = BuildState::Serves;
        self.serving = self.number;
        self.output.clear();
    }

    /// The program that served has ended, or does not start again.
    pub(super) const fn none_serves(&mut self) {
        self.serving = 0;
    }

    /// The newest build is the program that serves.
    pub(super) fn mark_unchanged(&mut self) {
        self.number = self.serving;
        self.serves();
    }

    /// The sentence for the terminal.
    pub(super) fn line(&self, took: Duration) -> String {
        let (number, seconds) = (self.number, took.as_secs_f64());
        let serving = match self.serving {
            0 => "; the next edit builds again".to_owned(),
            serving => format!("; build {serving} serves"),
        };
        match self.state {
            BuildState::Building => format!("build {number} begins"),
            BuildState::Failed => format!("build {number} failed after {seconds:.1} s{serving}"),
            BuildState::NotStarted => format!("build {number} did not start{serving}"),
            BuildState::Serves => format!("build {number} serves after {seconds:.1} s"),
        }
    }
}

/// How the builds are, in a program that `dev` runs.
pub(crate) type Builds = watch::Receiver<BuildReport>;

/// Reads the reports of `dev` from standard input. The channel closes when `dev` has ended, or
/// wants the program to end.
pub(crate) fn builds() -> Builds {
    let (sender, receiver) = watch::channel(BuildReport::default());
    // A task of Tokio that reads standard input would keep the program from ending.
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Ok(report) = serde_json::from_str(&line) {
                sender.send_replace(report);
            }
        }
    });
    receiver
}

/// The number of this build, as `dev` reports it; 0 outside of `dev`.
pub(crate) async fn own_number(builds: &mut Option<Builds>) -> u32 {
    let Some(builds) = builds else { return 0 };
    let report = builds.wait_for(|report| report.number > 0).await;
    let number = |report: &BuildReport| match report.state {
        BuildState::Building => report.number,
        _ => report.serving,
    };
    report.map_or(0, |report| number(&report))
}
