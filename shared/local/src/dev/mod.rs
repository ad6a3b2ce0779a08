//! `dev`: builds the program after each edit, and serves the newest build that starts.
//!
//! This process runs no skill. It watches the files of the workspace, calls cargo, and runs
//! each build as a process of its own. A build that fails, or does not start, leaves the one
//! before in service.
//!
//! - `cargo`: what cargo says of the workspace, and its builds
//! - `files`: the watched files
//! - `report`: which build serves, as the page shows it
//! - `service`: a build that runs

mod cargo;
mod files;
mod report;
mod service;

pub(crate) use report::{Builds, builds};

use crate::config::{Cli, Dev};
use crate::process::{RunError, interrupted};
use cargo::{Build, Cargo};
use clap::Parser as _;
use files::WatchedFiles;
use report::BuildReport;
use service::{Launch, Service};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(200);

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
    let cargo = Cargo::new(options);
    let files = WatchedFiles::read(&cargo, &cli.serve.data).await?;
    let mut dev = DevLoop {
        cargo,
        files,
        service: None,
        report: BuildReport::default(),
        serve: options.serve.clone(),
    };
    let mut interruption = Box::pin(interrupted());
    tokio::select! {
        result = dev.run() => result?,
        () = &mut interruption => {}
    }
    if let Some(service) = dev.service {
        service.stop().await?.remove();
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
    /// Builds and serves; it returns only with an error.
    async fn run(&mut self) -> io::Result<()> {
        loop {
            self.report.building();
            self.tell();
            let began = Instant::now();
            let build = tokio::select! {
                build = self.cargo.build() => Some(build?),
                // A newer edit ends the build: dropping it ends cargo.
                () = changed(&mut self.files) => None,
            };
            match build {
                None => continue,
                Some(Build::Failed(output)) => {
                    self.report.failed(&output);
                    self.tell();
                    say(&self.report.line(began.elapsed()));
                }
                Some(Build::Done(program)) => self.replace(&program, began).await?,
            }
            self.idle().await;
        }
    }

    /// Waits for the next edit.
    async fn idle(&mut self) {
        loop {
            let end = async {
                match &mut self.service {
                    Some(service) => service.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed(&mut self.files) => return,
                status = end => {
                    self.service = None;
                    say(&format!("the program ended ({status}); it starts again after the next edit"));
                }
            }
        }
    }

    /// Serves `program` instead of the build before, if it is another one and starts.
    async fn replace(&mut self, program: &Path, began: Instant) -> io::Result<()> {
        let next = service::keep(program, self.report.number())?;
        if let Some(old) = &self.service
            && old.is(&next)
        {
            next.remove();
            self.report.unchanged();
            self.tell();
            return Ok(());
        }
        // Only one process has the data folder, so the old one ends first.
        let old = match self.service.take() {
            Some(old) => Some(old.stop().await?),
            None => None,
        };
        match Service::start(next, &self.serve, &self.report).await? {
            Launch::Serves(service) => {
                self.serve = service.arguments(&self.serve);
                self.service = Some(*service);
                self.report.serves();
                if let Some(old) = old {
                    old.remove();
                }
            }
            Launch::Failed(output) => {
                self.report.not_started(&output);
                if let Some(old) = old
                    && let Launch::Serves(service) =
                        Service::start(old, &self.serve, &self.report).await?
                {
                    self.service = Some(*service);
                } else {
                    self.report.none_serves();
                }
            }
        }
        self.tell();
        say(&self.report.line(began.elapsed()));
        Ok(())
    }

    /// Tells the program that serves how the builds are.
    fn tell(&mut self) {
        if let Some(service) = &mut self.service {
            service.tell(&self.report);
        }
    }
}

/// Ready when a file has another content than at the last look. It waits until the files rest,
/// since editors and version control write many at once.
async fn changed(files: &mut WatchedFiles) {
    let mut has_changed = false;
    loop {
        sleep(LOOK).await;
        match files.look() {
            Some(path) if !has_changed => {
                say(&format!("{path} changed"));
                has_changed = true;
            }
            Some(_) => {}
            None if has_changed => return,
            None => {}
        }
    }
}

/// Says a sentence to the user.
fn say(text: &str) {
    // If standard error is closed, nobody reads it.
    let _told = writeln!(io::stderr(), "dev: {text}");
}
