//! `dev`: builds the program after each edit, and serves the newest build that starts.
//!
//! This process runs no skill. It watches the files of the workspace, calls cargo, and runs
//! each build as a process of its own. A build that fails, or does not start, leaves the one
//! before in service.
//!
//! - `cargo`: what cargo says of the workspace, and its builds
//! - `files`: the watched files
//! - `output`: what cargo and the program write
//! - `report`: which build serves, as the page shows it
//! - `service`: a build that runs

mod cargo;
mod files;
mod output;
mod report;
mod service;

pub(crate) use report::{Builds, builds, own_number};

use crate::config::{Cli, Dev};
use crate::folder::DataFolder;
use crate::process::{RunError, wait_for_signal, with_port};
use cargo::Cargo;
use clap::Parser as _;
use files::WatchedFiles;
use report::BuildReport;
use service::{KeptBuild, Service, keep};
use std::ffi::OsString;
use std::future::pending;
use std::io::{self, Write as _};
use std::time::Instant;

/// Serves the newest build that starts, until the user stops this process.
///
/// # Errors
/// [`RunError`] when the options of serving are not valid, or cargo does not know the workspace.
pub(crate) async fn run(options: &Dev) -> Result<(), RunError> {
    let serve = options.serve.iter().map(OsString::as_os_str);
    let program = OsString::from("a2a-local");
    let arguments = std::iter::once(program.as_os_str()).chain(serve);
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| error.exit());
    if cli.command.is_some() {
        return Err("`dev` serves the agent; it takes no other command".into());
    }
    // Another `dev` would take the data between two programs.
    let folder = cli.serve.folder().filter(|_| cli.serve.endpoint.is_none());
    let lock = folder.map(|path| DataFolder::lock(path, "dev.lock"));
    let _lock = lock
        .transpose()
        .map_err(|error| format!("failed to use the data folder: {error}"))?;
    let cargo = Cargo::new(options);
    let files = WatchedFiles::read(cargo.folders().await?, &cli.serve.data);
    let mut dev = DevLoop {
        cargo,
        files,
        service: None,
        report: BuildReport::default(),
        serve: options.serve.clone(),
    };
    let mut interruption = Box::pin(wait_for_signal());
    tokio::select! {
        () = dev.run() => {}
        () = &mut interruption => {}
    }
    if let Some(service) = dev.service {
        service.stop().await;
    }
    Ok(())
}

/// The state of the command.
struct DevLoop {
    cargo: Cargo,
    files: WatchedFiles,
    service: Option<Service>,
    report: BuildReport,
    /// The options of serving.
    serve: Vec<OsString>,
}

impl DevLoop {
    /// Builds and serves; it does not return.
    async fn run(&mut self) {
        loop {
            if let Some(name) = self.files.begin(&self.cargo).await {
                say(&format!("{name} changed"));
            }
            self.report.building();
            self.tell();
            let began = Instant::now();
            let build = tokio::select! {
                build = self.cargo.build() => build,
                // A newer edit ends the build: dropping it ends cargo.
                () = self.files.wait_for_edit() => continue,
            };
            let number = self.report.number;
            let build = build.and_then(|program| {
                keep(&program, number)
                    .map_err(|error| format!("failed to keep the program: {error}\n"))
            });
            match build {
                Ok(next) => self.replace(next).await,
                Err(output) => self.report.fail(output),
            }
            self.tell();
            say(&self.report.line(began.elapsed()));
            self.idle().await;
        }
    }

    /// Waits for the next edit.
    async fn idle(&mut self) {
        loop {
            let end = async {
                match &mut self.service {
                    Some(service) => service.wait().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = self.files.wait_for_edit() => return,
                status = end => {
                    self.service = None;
                    self.report.none_serves();
                    say(&format!("the program ended ({status}); it starts again after the next edit"));
                }
            }
        }
    }

    /// Serves `next` instead of the build before, if it is another one and starts.
    async fn replace(&mut self, next: KeptBuild) {
        if self.service.as_ref().is_some_and(|old| old.is(&next)) {
            self.report.mark_unchanged();
            say("the program is the same");
            return;
        }
        // Only one process has the data folder, so the old one ends first.
        let old = match self.service.take() {
            Some(old) => Some(old.stop().await),
            None => None,
        };
        let start = tokio::select! {
            start = Service::start(next, &self.serve, &self.report) => start,
            // It is built after this one is back.
            () = self.files.wait_for_edit() => Err("a newer edit ended the start\n".to_owned()),
        };
        let service = match start {
            Ok(service) => {
                self.report.serves();
                Some(service)
            }
            Err(output) => {
                self.report.not_started(output);
                match old {
                    Some(old) => Service::start(old, &self.serve, &self.report).await.ok(),
                    None => None,
                }
            }
        };
        match &service {
            // The next program listens on the same port.
            Some(service) => self.serve = with_port(self.serve.iter().cloned(), service.port),
            None => self.report.none_serves(),
        }
        self.service = service;
    }

    /// Tells the program that serves how the builds are.
    fn tell(&self) {
        if let Some(service) = &self.service {
            service.reports.send_replace(self.report.clone());
        }
    }
}

/// Says a sentence to the user.
fn say(text: &str) {
    // If standard error is closed, nobody reads it.
    let _told = writeln!(io::stderr(), "dev: {text}");
}
