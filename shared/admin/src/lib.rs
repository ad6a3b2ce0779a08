//! The commands of an operator, for a deployment and for the data folder of a local agent.
//!
//! An operator runs them with rights that no function has. [`AdminCommand`] has them all; the
//! program `a2a-local` shows them beside its own.
//!
//! - `api_keys`: makes, lists and withdraws API keys
//! - `brake`: stops a tenant, a skill or everything
//! - `erase`: removes a tenant
//! - `task`: prints a stored task, and ends one
//! - `export`: writes what an agent keeps for a tenant
//! - `sign`: signs the cards of a deployment
//! - `usage`: prints the tokens of models
//! - `deployment`: where the data is
//! - `output`: what commands print
//!
//! Two more need no data of a deployment:
//!
//! - `check`: walks a running server as its clients do
//! - `eval`: compares the skills and answers of an agent with those that a file expects

mod api_keys;
mod brake;
mod check;
mod deployment;
mod erase;
mod eval;
mod export;
mod output;
mod sign;
mod task;
mod usage;

pub use check::CheckServer;
pub use deployment::{DataFolders, Deployment, DeploymentError, OpenFolder, endpoints};
pub use erase::{EraseTenant, EraseTenantError};
pub use eval::Eval;
pub use export::Export;
pub use output::CommandError;

use a2a_lambda::settings::Settings;
use a2a_lambda::skill::{AgentBuildError, AgentDefinition};

/// The values of `A2A_CARD`.
pub const CARD: [&str; 2] = ["union", "v1"];

/// What an operator can do.
#[derive(Debug, clap::Subcommand)]
pub enum AdminCommand {
    /// Signs the agent card of a deployment (A2A 1.0 §8.4: ES256).
    ///
    /// Without --in the card is that of the agent in this program under the
    /// settings of the environment, as a deployed function makes it. Give the
    /// signatures to the functions as `A2A_CARD_SIGNATURES`.
    SignCard(sign::SignCard),
    /// Makes, lists and withdraws API keys.
    ///
    /// Its role needs dynamodb:PutItem, dynamodb:GetItem, dynamodb:Query and
    /// dynamodb:DeleteItem on the partition `A#keys` of the table.
    #[command(subcommand)]
    Keys(api_keys::KeysCommand),
    /// Removes everything of one tenant: items, objects, uploads.
    ///
    /// First take the tenant's credentials away. The job reads the whole table,
    /// at least twice: it ends when it finds nothing any more. It can be cut and
    /// run again at any time. Its role needs dynamodb:Scan and
    /// dynamodb:BatchWriteItem on the table, s3:ListBucket, s3:ListBucketVersions,
    /// s3:DeleteObject and s3:DeleteObjectVersion on the bucket.
    EraseTenant(EraseTenant),
    /// Stops a tenant, a skill or everything, and lets it go on.
    ///
    /// New calls are refused within 5 s. Running turns begin no step and no call of a
    /// model any more, and wait; so do queued ones and webhooks. It also works beside
    /// a running local agent. Its role needs dynamodb:GetItem and dynamodb:PutItem on
    /// the partition `B#brake` of the table, and for the list of running turns
    /// dynamodb:BatchGetItem, and dynamodb:Query on the index GSI2.
    #[command(subcommand)]
    Brake(brake::BrakeCommand),
    /// Prints a stored task as JSON, with its history, its events and what its skill keeps.
    ///
    /// In the table its content is compressed. It needs dynamodb:GetItem and dynamodb:Query on the
    /// table, and s3:GetObject on the bucket for a large task.
    Task(task::TaskOptions),
    /// Ends a task: cancels it as its owner would.
    ///
    /// It also works beside a running local agent. Its role needs dynamodb:GetItem,
    /// dynamodb:PutItem, dynamodb:Query and dynamodb:UpdateItem on the table, and
    /// s3:GetObject and s3:PutObject on the bucket for a large task.
    EndTask(task::TaskOptions),
    /// Prints the tokens of models by tenant and model, and with prices what they cost.
    ///
    /// It also works beside a running local agent. Its role needs dynamodb:Query on the
    /// partitions `U#*` of the table.
    Usage(usage::UsageOptions),
}

/// Builds the agent with a name, or the first one of a program.
pub type BuildNamed<'a> =
    &'a (dyn Fn(Option<&str>, &Settings) -> Result<AgentDefinition, AgentBuildError> + Sync);

impl AdminCommand {
    /// Does what the command says, and prints what it returns.
    ///
    /// # Errors
    /// When it fails.
    pub async fn run(
        &self,
        folders: &dyn DataFolders,
        agent: BuildNamed<'_>,
    ) -> Result<(), CommandError> {
        match self {
            Self::SignCard(options) => sign::run(options, agent).await,
            Self::Keys(command) => api_keys::run(command, folders).await,
            Self::EraseTenant(options) => Ok(options.run(folders).await?),
            Self::Brake(command) => brake::run(command, folders).await,
            Self::Task(options) => task::run(options, folders).await,
            Self::Usage(options) => usage::run(options, folders).await,
            Self::EndTask(options) => task::end(options, folders, agent).await,
        }
    }
}
