//! The command `brake`: stops a tenant, a skill or everything, and lets it go on.

use crate::deployment::{DataFolders, FolderUse, Table};
use crate::output::{CommandError, print};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::settings::parse_duration;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::brake::{BrakeTarget, Brakes};
use a2a_lambda::store::records::Records;
use a2a_lambda::task::{IdError, SkillId, TaskRecord, TenantId};
use clap::Subcommand;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Until when every process has read a change: each reads every 5 s, and a read may lack the
/// last second.
const SEEN: Duration = Duration::from_secs(7);
/// How often the command looks what still runs.
const LOOK: Duration = Duration::from_secs(2);
/// Tasks read at a time.
const PAGE: usize = 100;

/// What is done with the brake.
#[derive(Debug, Clone, Subcommand)]
pub enum BrakeCommand {
    /// Stops the work of a target. Waits until its turns have ended, and prints them.
    Set {
        /// What is stopped.
        #[command(flatten)]
        target: TargetOptions,
        /// How long to wait for running turns at most.
        #[arg(long, value_name = "TIME", default_value = "90s", value_parser = wait)]
        wait: Duration,
        /// Where the brake is.
        #[command(flatten)]
        table: Table,
    },
    /// Lets the target go on. The next sweeps start what has waited.
    Lift {
        /// What goes on.
        #[command(flatten)]
        target: TargetOptions,
        /// Where the brake is.
        #[command(flatten)]
        table: Table,
    },
    /// Lists what is braked, and since when.
    List {
        /// Where the brake is.
        #[command(flatten)]
        table: Table,
    },
}

/// One target.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct TargetOptions {
    /// All that this tenant does.
    #[arg(long)]
    pub tenant: Option<String>,
    /// This skill, for all tenants.
    #[arg(long)]
    pub skill: Option<String>,
    /// All skills for all tenants.
    #[arg(long)]
    pub everything: bool,
}

/// The table failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to use the brake: {0}; run this again")]
struct BrakeError(StoreError);

impl TargetOptions {
    fn target(&self) -> Result<BrakeTarget, IdError> {
        Ok(match (&self.tenant, &self.skill) {
            (Some(tenant), _) => BrakeTarget::Tenant(TenantId::parse(tenant.as_str())?),
            (None, Some(skill)) => BrakeTarget::Skill(SkillId::parse(skill.as_str())?),
            (None, None) => BrakeTarget::Everything,
        })
    }
}

fn wait(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("a whole number with `s`, `m` or `h`")
}

/// Changes or lists the brake.
///
/// # Errors
/// When the table cannot be used. The operator can repeat the command.
pub(crate) async fn run(
    command: &BrakeCommand,
    folders: &dyn DataFolders,
) -> Result<(), CommandError> {
    let (BrakeCommand::Set { table, .. }
    | BrakeCommand::Lift { table, .. }
    | BrakeCommand::List { table }) = command;
    let connection = table.reach(FolderUse::Beside, folders).await?;
    let table = Arc::new(connection.table.clone());
    let (brakes, records) = (Brakes::new(table.clone()), Records::new(table));
    // Nobody else uses a folder that this command has opened.
    let is_used = connection.folder.is_none();
    let result = act(command, &brakes, &records, is_used).await;
    connection.stop().await;
    result
}

async fn act(
    command: &BrakeCommand,
    brakes: &Brakes,
    records: &Records,
    is_used: bool,
) -> Result<(), CommandError> {
    let now = SystemClock.now();
    match command {
        BrakeCommand::Set { target, wait, .. } => {
            let target = target.target()?;
            brakes
                .change(&target, true, now)
                .await
                .map_err(BrakeError)?;
            print(&format!("braked: {target}\n"))?;
            if is_used {
                watch(records, &target, *wait).await?;
            }
        }
        BrakeCommand::Lift { target, .. } => {
            let target = target.target()?;
            brakes
                .change(&target, false, now)
                .await
                .map_err(BrakeError)?;
            print(&format!("lifted: {target}\n"))?;
        }
        BrakeCommand::List { .. } => {
            for entry in brakes.read().await.map_err(BrakeError)?.in_force() {
                print(&format!("{}\t{}\n", entry.since.to_rfc3339(), entry.target))?;
            }
        }
    }
    Ok(())
}

/// Waits until no turn of the target runs, and prints those that end and those that are left.
async fn watch(
    records: &Records,
    target: &BrakeTarget,
    wait: Duration,
) -> Result<(), CommandError> {
    let began = SystemClock.now();
    let mut before = BTreeSet::new();
    loop {
        let now = running(records, target).await.map_err(BrakeError)?;
        for task in before.difference(&now) {
            print(&format!("ended: {task}\n"))?;
        }
        let wait_time = SystemClock.now().since(began);
        if (now.is_empty() && wait_time >= SEEN) || wait_time >= wait {
            let mut rest = now.iter();
            return rest.try_for_each(|task| print(&format!("still runs: {task}\n")));
        }
        before = now;
        SystemClock.sleep_until(SystemClock.now().plus(LOOK)).await;
    }
}

/// A line for each task of the target whose turn runs.
async fn running(records: &Records, target: &BrakeTarget) -> Result<BTreeSet<String>, StoreError> {
    let (mut running, sweep) = (BTreeSet::new(), records.sweep());
    for shard in 0..sweep.open_shards() {
        let mut after = None;
        loop {
            let (open, next) = sweep.open_tasks(shard, after, PAGE).await?;
            let now = SystemClock.now();
            let heads = records.heads(&open, now).await?;
            let runs = |head: &TaskRecord| {
                let skill = head.skill_name();
                head.lease_until.is_some_and(|until| until > now)
                    && target.covers(&head.owner.tenant, skill)
            };
            for head in heads.into_iter().filter(runs) {
                let (task, tenant) = (&head.id, &head.owner.tenant);
                let skill = head.skill_name().unwrap_or("none");
                running.insert(format!("{task}\ttenant {tenant}\tskill {skill}"));
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(running)
}
