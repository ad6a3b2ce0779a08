//! The address of a subject in a store.

use super::{Owner, TenantId};

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
    use crate::task::Subject;

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
}
