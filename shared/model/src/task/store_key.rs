//! The addresses of a task, a thread and a subject in a store.

use super::id::short_hash;
use super::{ContextId, Owner, TaskId, TenantId};

/// The address of a task in a store. Every address contains a tenant, so a read
/// across tenants is impossible. A client-made id is also per subject, so no caller
/// can occupy the ids of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    tenant: TenantId,
    local: String,
}

impl TaskKey {
    /// The address of task `id` for `owner`.
    #[must_use]
    pub fn new(owner: &Owner, id: &TaskId) -> Self {
        let local = if id.is_server_made() {
            id.to_string()
        } else {
            format!("{}~{id}", owner.subject.hash())
        };
        Self {
            tenant: owner.tenant.clone(),
            local,
        }
    }

    /// The address from the two parts that a store keeps; `None` if they are
    /// malformed.
    #[must_use]
    pub fn from_stored(tenant: &str, local: &str) -> Option<Self> {
        let tenant = TenantId::parse(tenant).ok()?;
        let id = match local.split_once('~') {
            Some((subject, id)) if subject.len() == 32 => id,
            Some(_) => return None,
            None => local,
        };
        let is_server_made = TaskId::parse(id).ok()?.is_server_made();
        (is_server_made != local.contains('~')).then(|| Self {
            tenant,
            local: local.to_owned(),
        })
    }

    /// The folder of the task in an object store. The tenant and a client-made id are
    /// hashed, so that the folder is short and has a restricted alphabet.
    #[must_use]
    pub fn folder(&self) -> String {
        let tenant = short_hash(self.tenant.as_str());
        if self.local.contains('~') {
            format!("{tenant}/{}", short_hash(&self.local))
        } else {
            format!("{tenant}/{}", self.local)
        }
    }

    /// The tenant of the task.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The name of the task inside its tenant, as keys contain it.
    #[must_use]
    pub fn local(&self) -> &str {
        &self.local
    }
}

/// The address of a thread in a store. It contains only the hash of the subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    tenant: TenantId,
    subject: String,
    context: ContextId,
}

impl ThreadKey {
    /// The address of the thread of `context` for `owner`.
    #[must_use]
    pub fn new(owner: &Owner, context: &ContextId) -> Self {
        Self {
            tenant: owner.tenant.clone(),
            subject: owner.subject.hash(),
            context: context.clone(),
        }
    }

    /// The address from the parts that a store keeps; `None` if they are malformed.
    #[must_use]
    pub fn from_stored(tenant: &str, subject: &str, context: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (subject.len() == 32 && subject.bytes().all(hex)).then_some(())?;
        Some(Self {
            tenant: TenantId::parse(tenant).ok()?,
            subject: subject.to_owned(),
            context: ContextId::parse(context).ok()?,
        })
    }

    /// The folder of the thread in an object store. The `.` in it separates it from
    /// the folder of any task.
    #[must_use]
    pub fn folder(&self) -> String {
        let (tenant, context) = (self.tenant.folder(), short_hash(self.context.as_str()));
        format!("{tenant}/C.{}.{context}", self.subject)
    }

    /// The tenant of the thread.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The hash of the subject.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The context.
    #[must_use]
    pub const fn context(&self) -> &ContextId {
        &self.context
    }
}

impl TenantId {
    /// The folder of the tenant in an object store: a hash, so that it is short and
    /// has a restricted alphabet.
    #[must_use]
    pub fn folder(&self) -> String {
        short_hash(self.as_str())
    }
}

/// A subject of a tenant, as keys of a store name it: by the hash of its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubjectKey {
    tenant: TenantId,
    hash: String,
}

impl SubjectKey {
    /// The address of the subject of `owner`.
    #[must_use]
    pub fn of(owner: &Owner) -> Self {
        Self {
            tenant: owner.tenant.clone(),
            hash: owner.subject.hash(),
        }
    }

    /// The tenant.
    #[must_use]
    pub const fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The hash of the subject: 32 hex digits.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether this is the address of `owner`.
    #[must_use]
    pub fn is_of(&self, owner: &Owner) -> bool {
        self.tenant == owner.tenant && self.hash == owner.subject.hash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Subject, TaskId, TaskKey};
    use a2a_lambda_rows::each_row;

    fn owner(subject: &str) -> Owner {
        Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse(subject).unwrap(),
        }
    }

    #[test]
    fn a_thread_key_reads_back_from_its_stored_parts() {
        let owner = Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann@example.com").unwrap(),
        };
        for id in ["mine:1", ".", "C"] {
            let key = ThreadKey::new(&owner, &ContextId::parse(id).unwrap());
            let again = ThreadKey::from_stored("acme", key.subject(), key.context().as_str());
            assert_eq!(again.as_ref(), Some(&key));
            let task = TaskKey::new(&owner, &TaskId::parse(id).unwrap());
            assert_ne!(key.folder(), task.folder());
            let tenant = format!("{}/", owner.tenant.folder());
            assert!(key.folder().starts_with(&tenant) && task.folder().starts_with(&tenant));
        }
        let hash = owner.subject.hash();
        let rows = [
            ("", hash.as_str(), "c"),
            ("acme", "ann@example.com", "c"),
            ("acme", &"A".repeat(32), "c"),
            ("acme", &hash, "a/b"),
        ];
        each_row(rows, |(tenant, subject, context)| {
            let key = ThreadKey::from_stored(tenant, subject, context);
            assert_eq!(key, None, "{tenant} {subject} {context}");
        });
    }

    #[test]
    fn a_subject_key_is_of_one_owner() {
        let owner = |tenant: &str, subject: &str| Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse(subject).unwrap(),
        };
        let ann = SubjectKey::of(&owner("acme", "ann"));
        assert!(ann.is_of(&owner("acme", "ann")));
        assert!(!ann.is_of(&owner("acme", "bob")) && !ann.is_of(&owner("other", "ann")));
    }

    #[test]
    fn two_subjects_can_use_the_same_client_made_task_id() {
        let id = TaskId::parse("order:1").unwrap();
        assert_ne!(
            TaskKey::new(&owner("ann"), &id),
            TaskKey::new(&owner("bob"), &id)
        );
        let made = TaskId::made_of(1);
        assert_eq!(
            TaskKey::new(&owner("ann"), &made),
            TaskKey::new(&owner("bob"), &made)
        );
    }

    #[test]
    fn a_client_made_id_never_takes_the_place_of_a_server_made_one() {
        // A client-made id has a `~` in its local name, which no id may contain.
        let id = TaskId::parse("x").unwrap();
        assert!(TaskKey::new(&owner("ann"), &id).local().contains('~'));
        assert!(TaskId::parse("a~b").is_err());
    }
}
