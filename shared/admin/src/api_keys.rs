//! The command `keys`: makes, lists and withdraws the API keys of a deployment or of a data
//! folder.

use crate::deployment::{DataFolders, FolderUse, Table};
use crate::output::{CommandError, print};
use a2a_lambda::auth::{ApiKey, NoRandomError, is_word};
use a2a_lambda::engine::{Clock as _, Ids as _, RandomIds, SystemClock};
use a2a_lambda::settings::parse_duration;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::api_keys::{ApiKeyId, ApiKeyRecord, ApiKeys, KeyCheck};
use a2a_lambda::task::{IdError, Owner, Subject, TenantId, Timestamp};
use clap::Subcommand;
use std::sync::Arc;
use std::time::Duration;

/// What is done with the API keys.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and prints it. It is printed this once and stored nowhere.
    Create(CreateKey),
    /// Lists the keys, without their secrets.
    List {
        /// Only those of this tenant.
        #[arg(long)]
        tenant: Option<String>,
        /// Where they are.
        #[command(flatten)]
        table: Table,
    },
    /// Withdraws a key. A deployment accepts it for at most `ReauthorizeEvery` seconds more.
    Withdraw {
        /// The id of the key: the part between `a2a_` and the secret.
        id: String,
        /// Where it is.
        #[command(flatten)]
        table: Table,
    },
}

/// Whose key, and for what.
#[derive(Debug, Clone, clap::Args)]
pub struct CreateKey {
    /// The tenant of its callers.
    #[arg(long)]
    pub tenant: String,
    /// The subject of its callers.
    #[arg(long)]
    pub subject: String,
    /// The rate tier; else the default tier.
    #[arg(long, value_name = "NAME", value_parser = tier)]
    pub tier: Option<String>,
    /// A scope of its callers, for example `ops`; may be repeated.
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
    pub scopes: Vec<String>,
    /// How long it is valid, for example `90d`; else until it is withdrawn.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub expires: Option<Duration>,
    /// A note for the list of keys.
    #[arg(long, value_name = "TEXT", value_parser = note)]
    pub note: Option<String>,
    /// Where it is stored.
    #[command(flatten)]
    pub table: Table,
}

/// Why a command on keys failed.
#[derive(Debug, thiserror::Error)]
enum KeysError {
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("failed to use the table of keys: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    NoRandom(#[from] NoRandomError),
    #[error("the id of the new key is taken; run this again")]
    Taken,
    #[error("there is no key with the id `{0}`")]
    Unknown(String),
}

/// Runs a command on keys.
///
/// # Errors
/// When the table cannot be used. The operator can repeat the command.
pub(crate) async fn run(
    command: &KeysCommand,
    folders: &dyn DataFolders,
) -> Result<(), CommandError> {
    let (table, folder_use) = match command {
        KeysCommand::Create(options) => (&options.table, FolderUse::Make),
        KeysCommand::List { table, .. } | KeysCommand::Withdraw { table, .. } => {
            (table, FolderUse::Alone)
        }
    };
    let connection = table.reach(folder_use, folders).await?;
    let keys = ApiKeys::new(Arc::new(connection.table.clone()));
    let report = report(command, &keys).await;
    connection.stop().await;
    print(&report?)
}

/// Does what the command says, and returns what it prints.
async fn report(command: &KeysCommand, keys: &ApiKeys) -> Result<String, KeysError> {
    match command {
        KeysCommand::Create(options) => {
            let key = ApiKey::random(&check(keys).await?)?;
            let record = record(&key, options, SystemClock.now())?;
            if !keys.create_api_key(&record).await? {
                return Err(KeysError::Taken);
            }
            Ok(format!("{}\n", key.reveal()))
        }
        KeysCommand::List { tenant, .. } => {
            let tenant = tenant.as_ref().map(TenantId::parse).transpose()?;
            let list = keys.api_keys(tenant.as_ref()).await?;
            let title = "id\ttenant\tsubject\ttier\tscopes\tcreated\texpires\tnote\n".to_owned();
            Ok(list.iter().map(line).fold(title, |all, line| all + &line))
        }
        KeysCommand::Withdraw { id, .. } => {
            let unknown = || KeysError::Unknown(id.clone());
            let key_id = ApiKeyId::parse(id).ok_or_else(unknown)?;
            if !keys.withdraw_api_key(&key_id).await? {
                return Err(unknown());
            }
            Ok(format!("withdrawn: {key_id}\n"))
        }
    }
}

/// The secret of the check that new keys pass. The first new key makes it.
async fn check(keys: &ApiKeys) -> Result<String, StoreError> {
    let missing = || StoreError::Unavailable("the check of the keys is not stored".to_owned());
    let reader = keys.reader();
    if let Some(check) = reader.key_check().await? {
        return Ok(check.secret);
    }
    let secret = format!("{:032x}{:032x}", RandomIds.next(), RandomIds.next());
    keys.create_check(&KeyCheck { secret }).await?;
    // Another command may have been first.
    let check = reader.key_check().await?.ok_or_else(missing)?;
    Ok(check.secret)
}

fn record(key: &ApiKey, options: &CreateKey, now: Timestamp) -> Result<ApiKeyRecord, IdError> {
    Ok(ApiKeyRecord {
        id: key.id().clone(),
        hash: key.hash(),
        owner: Owner {
            tenant: TenantId::parse(&options.tenant)?,
            subject: Subject::parse(&options.subject)?,
        },
        tier: options.tier.clone(),
        scopes: options.scopes.iter().cloned().collect(),
        created_at: now,
        expires_at: options.expires.map(|time| now.plus(time)),
        note: options.note.clone(),
    })
}

/// One line of the list.
fn line(key: &ApiKeyRecord) -> String {
    let or_none = |text: Option<&String>| text.map_or("-", String::as_str).to_owned();
    let scopes: Vec<&str> = key.scopes.iter().map(String::as_str).collect();
    let fields = [
        key.id.to_string(),
        key.owner.tenant.to_string(),
        key.owner.subject.as_str().to_owned(),
        or_none(key.tier.as_ref()),
        or_none(Some(scopes.join(" ")).filter(|it| !it.is_empty()).as_ref()),
        key.created_at.to_rfc3339(),
        or_none(key.expires_at.map(Timestamp::to_rfc3339).as_ref()),
        or_none(key.note.as_ref()),
    ];
    format!("{}\n", fields.join("\t"))
}

fn tier(text: &str) -> Result<String, &'static str> {
    let valid = is_word(text).then(|| text.to_owned());
    valid.ok_or("1 to 64 letters, digits, `.`, `_` or `-`")
}

fn scope(text: &str) -> Result<String, &'static str> {
    let valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    valid
        .then(|| text.to_owned())
        .ok_or("printable ASCII characters without a space")
}

fn note(text: &str) -> Result<String, &'static str> {
    let valid = text.len() <= 256 && !text.chars().any(char::is_control);
    valid
        .then(|| text.to_owned())
        .ok_or("at most 256 bytes without control characters")
}

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("a whole number with `ms`, `s`, `m`, `h` or `d`")
}

#[cfg(test)]
mod tests {
    use super::{KeysCommand, KeysError, report};
    use crate::AdminCommand;
    use a2a_lambda::auth::AuthError;
    use a2a_lambda::auth::Credentials;
    use a2a_lambda::engine::SystemClock;
    use a2a_lambda::store::api_keys::ApiKeys;
    use a2a_lambda::store::memory::MemoryTable;
    use a2a_lambda_rows::each_row;
    use clap::Parser as _;
    use std::sync::Arc;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(subcommand)]
        command: AdminCommand,
    }

    async fn said(table: &Arc<MemoryTable>, args: &[&str]) -> Result<String, KeysError> {
        let parsed = Cli::try_parse_from([&["a2a-local", "keys"], args].concat()).unwrap();
        let AdminCommand::Keys(command) = parsed.command else {
            panic!("another command");
        };
        report(&command, &ApiKeys::new(table.clone())).await
    }

    #[tokio::test]
    async fn a_key_is_printed_once_and_refused_after_its_withdrawal() {
        let table = Arc::new(MemoryTable::default());
        let owner = ["create", "--tenant", "acme", "--subject", "ann"];
        let rest = ["--scope", "ops", "--expires", "90d", "--note", "for the CI"];
        let key = said(&table, &[owner.as_slice(), &rest].concat())
            .await
            .unwrap();
        let key = key.trim();
        let credentials = Credentials::new(table.clone(), Arc::new(SystemClock));
        let admitted = credentials.admit(Some(key)).await.unwrap();
        assert_eq!(admitted.caller.owner.tenant.as_str(), "acme");
        let list = said(&table, &["list", "--tenant", "acme"]).await.unwrap();
        let (start, secret) = key.rsplit_once('_').unwrap();
        let id = start.strip_prefix("a2a_").unwrap();
        assert!(list.contains(id) && list.contains("for the CI"), "{list}");
        assert!(!list.contains(secret), "{list}");
        assert!(
            !said(&table, &["list", "--tenant", "beta"])
                .await
                .unwrap()
                .contains(id)
        );
        said(&table, &["withdraw", id]).await.unwrap();
        let refused = credentials.admit(Some(key)).await;
        assert!(matches!(refused, Err(AuthError::Refused(_))), "{refused:?}");
        let again = said(&table, &["withdraw", id]).await;
        assert!(matches!(again, Err(KeysError::Unknown(_))));
    }

    #[test]
    fn a_tier_a_scope_and_a_time_that_are_not_valid_are_refused() {
        let rows = [
            ["--tier", "a#b"],
            ["--scope", "a b"],
            ["--expires", "soon"],
            ["--note", "a\nb"],
        ];
        each_row(rows, |bad| {
            let owner = [
                "a2a-local",
                "keys",
                "create",
                "--tenant",
                "a",
                "--subject",
                "b",
            ];
            assert!(Cli::try_parse_from([owner.as_slice(), &bad].concat()).is_err());
        });
        let withdrawn = Cli::try_parse_from(["a2a-local", "keys", "withdraw", "x"]).unwrap();
        assert!(matches!(
            withdrawn.command,
            AdminCommand::Keys(KeysCommand::Withdraw { .. })
        ));
    }
}
