//! The command `NAME export`: writes what an agent keeps for a tenant into a folder.

use crate::deployment::{DataFolders, DeploymentError, Table};
use a2a_lambda::runtime::TenantDocuments;
use a2a_lambda::settings::{Environment, Source as _};
use a2a_lambda::task::{IdError, TenantId};
use clap::{ArgMatches, Args as _, FromArgMatches as _};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

type ExportResult = Result<String, Box<dyn Error + Send + Sync>>;
type Exporting<'a> = Pin<Box<dyn Future<Output = ExportResult> + Send + 'a>>;
type ExportFn = Box<dyn for<'a> Fn(&'a TenantDocuments, &'a Path) -> Exporting<'a> + Send + Sync>;

/// A command `NAME export --tenant T DIR` of a program, for what its agent keeps in the
/// documents of a tenant.
///
/// ```no_run
/// use a2a_lambda_admin::Export;
///
/// let export = Export::new("notes", "Writes the notes of a tenant.", |documents, folder| {
///     Box::pin(async move {
///         let notes = documents.documents("notes").map_err(|error| error.to_string())?;
///         let newest = notes.get::<String>("newest").await.map_err(|error| error.to_string())?;
///         std::fs::write(folder.join("newest.txt"), newest.map_or_else(String::new, |it| it.value))?;
///         Ok("wrote newest.txt".to_owned())
///     })
/// });
/// # let _ = export;
/// ```
pub struct Export {
    name: &'static str,
    about: &'static str,
    run: ExportFn,
}

impl Export {
    /// The command `name export`. `about` is its help. `run` writes into the folder that the
    /// operator names, and returns what to print.
    pub fn new<F>(name: &'static str, about: &'static str, run: F) -> Self
    where
        F: for<'a> Fn(&'a TenantDocuments, &'a Path) -> Exporting<'a> + Send + Sync + 'static,
    {
        let run = Box::new(run);
        Self { name, about, run }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The command line.
    #[must_use]
    pub fn command(&self) -> clap::Command {
        let export = ExportOptions::augment_args(clap::Command::new("export"));
        let export = export.about(self.about);
        let help = format!("Commands on the {} of a tenant.", self.name);
        clap::Command::new(self.name)
            .about(help)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(export)
    }

    /// Does what the command line says.
    ///
    /// # Errors
    /// [`ExportError`] when the table cannot be read or the folder cannot be written.
    pub async fn run(
        &self,
        matches: &ArgMatches,
        folders: &dyn DataFolders,
    ) -> Result<(), ExportError> {
        let options = matches.subcommand_matches("export").unwrap_or(matches);
        let options = ExportOptions::from_arg_matches(options)?;
        let tenant = TenantId::parse(options.tenant.clone())?;
        let table = options.table(folders).reach(false, folders).await?;
        let documents = TenantDocuments::new(Arc::new(table.table.clone()), tenant);
        let report = (self.run)(&documents, &options.folder).await;
        table.stop().await;
        let report = report.map_err(ExportError::Export)?;
        Ok(writeln!(io::stdout(), "{report}")?)
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Whose documents, and where to.
#[derive(Debug, Clone, clap::Args)]
struct ExportOptions {
    /// The tenant.
    #[arg(long)]
    tenant: String,
    /// The folder to write, which is empty or does not exist.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where the documents are. Without an option and without `A2A_TABLE` it is the data
    /// folder `.a2a`.
    #[command(flatten)]
    table: Table,
}

impl ExportOptions {
    fn table(&self, folders: &dyn DataFolders) -> Table {
        let mut table = self.table.clone();
        let is_named = table.table.is_some() || Environment.get("A2A_TABLE").is_some();
        if !is_named && table.endpoint.is_none() && table.data.is_none() {
            table.data = Some(folders.usual());
        }
        table
    }
}

/// Why nothing, or not everything, was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The command line cannot be used.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    /// The name of the tenant is not valid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The table cannot be opened.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The export failed.
    #[error("failed to export: {0}")]
    Export(Box<dyn Error + Send + Sync>),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}
