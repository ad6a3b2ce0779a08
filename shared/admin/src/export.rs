//! The command `SET export`: writes what a set of an agent keeps for a tenant into a folder.

use crate::deployment::{DataFolders, FolderUse, Table};
use crate::output::{CommandError, print};
use a2a_lambda::runtime::tenant_documents;
use a2a_lambda::skill::{AgentDefinition, SetExport};
use a2a_lambda::task::TenantId;
use clap::{ArgMatches, Args as _, FromArgMatches as _};
use std::path::PathBuf;
use std::sync::Arc;

/// The command `SET export --tenant T DIR`, for what a set of an agent keeps in the documents of
/// a tenant.
#[derive(Debug, Clone)]
pub struct Export {
    name: String,
    export: SetExport,
}

impl Export {
    /// The command for each set of the agent that has an export.
    #[must_use]
    pub fn all(agent: &AgentDefinition) -> Vec<Self> {
        let exports = agent.exports().iter().cloned();
        exports
            .map(|(name, export)| Self { name, export })
            .collect()
    }

    /// Its name: the id of the set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command line.
    #[must_use]
    pub fn command(&self) -> clap::Command {
        let export = ExportOptions::augment_args(clap::Command::new("export"));
        let export = export.about(self.export.about());
        let help = format!("Commands on the {} of a tenant.", self.name);
        clap::Command::new(self.name.clone())
            .about(help)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(export)
    }

    /// Does what the command line says.
    ///
    /// # Errors
    /// When the table cannot be read or the folder cannot be written.
    pub async fn run(
        &self,
        matches: &ArgMatches,
        folders: &dyn DataFolders,
    ) -> Result<(), CommandError> {
        let options = matches.subcommand_matches("export").unwrap_or(matches);
        let mut options = ExportOptions::from_arg_matches(options)?;
        let tenant = TenantId::parse(options.tenant)?;
        if options.table.data.is_none() {
            options.table.data = options.table.deployment().usual(folders);
        }
        let table = options.table.reach(FolderUse::Alone, folders).await?;
        let documents = tenant_documents(Arc::new(table.table.clone()), tenant);
        let report = self.export.write(&documents, &options.folder).await;
        table.stop().await;
        let report = report.map_err(|error| format!("failed to export: {error}"))?;
        print(&format!("{report}\n"))
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
