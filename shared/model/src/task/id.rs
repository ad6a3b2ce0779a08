//! Ids and names, parsed once where they enter and valid from then on.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt;

/// A name that does not have the form of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {rule}")]
pub struct IdError {
    /// The kind of name, in the protocol's words.
    pub kind: &'static str,
    /// The required form.
    pub rule: &'static str,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        #[cfg(any(test, feature = "contract-tests"))]
        impl super::distinct::Distinct for $name {
            fn distinct(values: &mut super::distinct::Values) -> Self {
                let kind = stringify!($name).to_lowercase();
                Self(format!("{kind}-{}", values.make::<u32>()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        })*
    };
}

names! {
    /// The tenant, which is billed and owns the data: 1-64 of `A-Za-z0-9._-`, and not
    /// a reserved first path segment. So no `#` or `/` can reach a key or a route.
    TenantId;
    /// A user or machine inside a tenant; any text of 1-256 bytes.
    Subject;
    /// A task id: 1-128 of `A-Za-z0-9._:-`. Ids made by the server start with
    /// `task-`; 0.1 clients make their own.
    TaskId;
    /// A context (thread) id: 1-128 of `A-Za-z0-9._:-`. Ids made by the server
    /// start with `ctx-`.
    ContextId;
    /// The id of a push config of a task: 1-128 of `A-Za-z0-9._:-`. Ids made by the
    /// server start with `push-`.
    PushId;
    /// A skill id: `[a-z0-9][a-z0-9._-]{0,63}`.
    SkillId;
    /// The id of one write. A writer recognises by it whether its write was applied.
    WriteId;
    /// The identity of a build: 16 hexadecimal digits. All functions of a deployment have the
    /// same, and each change of the sources of the agent or of the library gives another.
    BuildId;
    /// The address of an idempotency key: 64 hex digits over caller and key.
    KeyHash;
}

macro_rules! parsed {
    ($($name:ident: $kind:literal must be $rule:literal, as $fits:expr;)*) => {
        $(impl $name {
            /// Parses the name where it enters.
            ///
            /// # Errors
            /// When the text does not have the form of its kind.
            pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
                let (text, fits): (String, fn(&str) -> bool) = (text.into(), $fits);
                if fits(&text) {
                    Ok(Self(text))
                } else {
                    Err(IdError { kind: $kind, rule: $rule })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(text)
            }
        })*
    };
}

parsed! {
    TenantId: "tenant" must be "1-64 of `A-Za-z0-9._-` and no reserved word",
        as |text| all_of(text, 64, b"._-") && !RESERVED.contains(&text);
    Subject: "subject" must be "1-256 bytes", as |text| (1..=256).contains(&text.len());
    TaskId: "task id" must be "1-128 of `A-Za-z0-9._:-`", as is_on_the_wire;
    ContextId: "context id" must be "1-128 of `A-Za-z0-9._:-`", as is_on_the_wire;
    PushId: "push configuration id" must be "1-128 of `A-Za-z0-9._:-`", as is_on_the_wire;
    SkillId: "skill id" must be "`[a-z0-9][a-z0-9._-]{0,63}`", as is_skill_id;
}

macro_rules! any_text {
    ($($name:ident)*) => {
        $(impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        })*
    };
}

any_text! { BuildId KeyHash WriteId }

/// First path segments that cannot be a tenant, because routes begin with them.
const RESERVED: [&str; 12] = [
    "v1",
    "tasks",
    "message:send",
    "message:stream",
    "extendedAgentCard",
    ".well-known",
    "agent.json",
    "health",
    "metrics",
    "agent",
    "a2a",
    "a2a-lambda",
];

const TASK_PREFIX: &str = "task-";
const CONTEXT_PREFIX: &str = "ctx-";
const OFFERED_PREFIX: &str = "new-";

fn all_of(text: &str, max: usize, extra: &[u8]) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || extra.contains(&b))
}

/// An id that clients send.
fn is_on_the_wire(text: &str) -> bool {
    all_of(text, 128, b"._:-")
}

fn is_skill_id(text: &str) -> bool {
    let has_upper = text.bytes().any(|b| b.is_ascii_uppercase());
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && !has_upper && all_of(text, 64, b"._-")
}

impl Subject {
    /// The hash used in keys: 32 hex digits of the SHA-256.
    #[must_use]
    pub fn hash(&self) -> String {
        short_hash(&self.0)
    }
}

pub(super) fn short_hash(text: &str) -> String {
    let mut digits = hex::encode(Sha256::digest(text.as_bytes()));
    digits.truncate(32);
    digits
}

impl TaskId {
    /// The server-made id of the random number `id`.
    #[must_use]
    pub fn made_of(id: u128) -> Self {
        Self(format!("{TASK_PREFIX}{id:032x}"))
    }

    /// Whether the server made this id.
    #[must_use]
    pub fn is_server_made(&self) -> bool {
        server_made(&self.0, TASK_PREFIX).is_some()
    }
}

impl ContextId {
    /// The server-made context of the task with the number `first_task`. The record
    /// of that task serves as the thread until one is stored.
    #[must_use]
    pub fn made_of(first_task: u128) -> Self {
        Self(format!("{CONTEXT_PREFIX}{first_task:032x}"))
    }

    /// The server-made context named after `task`; `None` for a client-made task id.
    #[must_use]
    pub fn named_after(task: &TaskId) -> Option<Self> {
        server_made(&task.0, TASK_PREFIX).map(|hex| Self(format!("{CONTEXT_PREFIX}{hex}")))
    }

    /// The id to offer for a server-made context in which nothing is stored. A message with it
    /// begins a context, as with any id of the client's own. Other ids stay as they are.
    #[must_use]
    pub fn into_offer(self) -> Self {
        match server_made(&self.0, CONTEXT_PREFIX) {
            Some(hex) => Self(format!("{OFFERED_PREFIX}{hex}")),
            None => self,
        }
    }

    /// Whether the server made this id.
    #[must_use]
    pub fn is_server_made(&self) -> bool {
        self.first_task().is_some()
    }

    /// The first task of a server-made context; `None` for a client-made id.
    #[must_use]
    pub fn first_task(&self) -> Option<TaskId> {
        server_made(&self.0, CONTEXT_PREFIX).map(|hex| TaskId(format!("{TASK_PREFIX}{hex}")))
    }
}

/// The 32 lower-case hex digits after `prefix`.
fn server_made<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let hex = text.strip_prefix(prefix)?;
    let digits = hex
        .bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (hex.len() == 32 && digits).then_some(hex)
}

impl PushId {
    /// The server-made id of the random number `id`.
    #[must_use]
    pub fn made_of(id: u128) -> Self {
        Self(format!("push-{id:032x}"))
    }

    /// The id of the only push config that a task of A2A 0.1 can have.
    #[must_use]
    pub fn only() -> Self {
        Self("default".to_owned())
    }
}

impl BuildId {
    /// The identity of the sources with these hashes; `None` if there is none.
    #[must_use]
    pub fn of(sources: &BTreeSet<&str>) -> Option<Self> {
        let mut hash = Sha256::new();
        sources.iter().for_each(|it| hash.update(format!("{it}\n")));
        let text = hex::encode(hash.finalize());
        let id = text.get(..16).filter(|_| !sources.is_empty())?;
        Some(Self(id.to_owned()))
    }
}

impl WriteId {
    /// The write id of the random number `id`.
    #[must_use]
    pub fn made_of(id: u128) -> Self {
        Self(format!("{id:032x}"))
    }

    /// The id of the next write of the same turn; `None` if it has no number that follows.
    ///
    /// The upper half of the number counts. So the ids of two turns differ even if their first
    /// numbers follow each other, as those of a test do.
    #[must_use]
    pub fn following(&self) -> Option<Self> {
        let number = u128::from_str_radix(&self.0, 16).ok()?;
        let next = Self::made_of(number.checked_add(1 << 64)?);
        (next.0.len() == self.0.len()).then_some(next)
    }

    /// A write id read back from the store.
    #[must_use]
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The owner of a task or thread. It comes from the authorizer only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// The tenant, part of every key.
    pub tenant: TenantId,
    /// The subject inside the tenant.
    pub subject: Subject,
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn an_offered_context_counts_as_one_of_the_clients_own() {
        let offered = ContextId::made_of(7).into_offer();
        assert_eq!(offered.as_str(), "new-00000000000000000000000000000007");
        assert!(!offered.is_server_made());
        assert_eq!(ContextId::parse(offered.as_str()), Ok(offered.clone()));
        assert_eq!(offered.clone().into_offer(), offered);
    }

    #[test]
    fn a_tenant_has_no_separator_and_is_not_reserved() {
        let rows = [
            "",
            "v1",
            "tasks",
            "a2a-lambda",
            "a#b",
            "a/b",
            "a b",
            &"x".repeat(65),
        ];
        each_row(rows, |bad| {
            assert!(TenantId::parse(bad).is_err(), "{bad}");
        });
        assert!(TenantId::parse("acme.eu-1_x").is_ok());
    }

    #[test]
    fn a_server_made_context_names_its_first_task() {
        let context = ContextId::made_of(7);
        assert_eq!(context.first_task(), Some(TaskId::made_of(7)));
        assert_eq!(ContextId::named_after(&TaskId::made_of(7)), Some(context));
        let own = TaskId::parse("order:1").unwrap();
        assert_eq!(ContextId::named_after(&own), None);
        assert!(!ContextId::parse("ctx-mine").unwrap().is_server_made());
        assert!(
            !ContextId::parse("ctx-0000000000000000000000000000000G")
                .unwrap()
                .is_server_made()
        );
    }
}
