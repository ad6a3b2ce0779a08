//! The policies in force: read by the list of items, compiled, and kept for the next check.

use super::compile::CompiledPolicy;
use crate::access::Scope;
use crate::knowledge::item::{ItemKind, ItemStatus, StoredItem};
use crate::knowledge::store::{KnowledgeStore, Listed};
use a2a_lambda::prelude::*;
use a2a_lambda::task::TenantId;
use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The most policies that one check reads.
const POLICIES_MAX: usize = 100;
/// How many of them are read at the same time.
const PARALLEL_READS: usize = 8;
/// The most versions that a process keeps, and the most bytes of all that it keeps.
const VERSIONS_MAX: usize = 16;
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The accepted policies of some scopes.
#[derive(Debug, Default)]
pub(crate) struct ActivePolicies {
    pub(crate) policies: Vec<CompiledPolicy>,
    /// Policies that cannot be evaluated, for the caller.
    pub(super) warnings: Vec<String>,
    /// A hash of the files and commits of the policies. It does not change with other items.
    pub(crate) version: String,
    /// About how many bytes all of it has.
    size: usize,
}

/// Compiled policies, by tenant and version: the last ones that were used.
#[derive(Debug, Default)]
pub(crate) struct PolicyCache(Mutex<VecDeque<(TenantId, Arc<ActivePolicies>)>>);

impl PolicyCache {
    /// The policies of a version.
    fn get(&self, tenant: &TenantId, version: &str) -> Option<Arc<ActivePolicies>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |(of, it): &(TenantId, Arc<ActivePolicies>)| of == tenant && it.version == version;
        let entry = all
            .iter()
            .position(is_it)
            .and_then(|index| all.remove(index))?;
        let in_force = Arc::clone(&entry.1);
        all.push_back(entry);
        Some(in_force)
    }

    /// Keeps a version, and drops those that were not used for the longest time.
    fn keep(&self, tenant: TenantId, in_force: Arc<ActivePolicies>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back((tenant, in_force));
        loop {
            let bytes: usize = all.iter().map(|(_, it)| it.size).sum();
            if all.len() <= VERSIONS_MAX && bytes <= BYTES_MAX {
                return;
            }
            all.pop_front();
        }
    }
}

/// Loads the accepted policies of these scopes.
///
/// # Errors
/// `TOO_MANY_POLICIES` rather than a check that leaves some out.
pub(crate) async fn load(
    cx: &TaskContext<'_>,
    scopes: &[Scope],
) -> AgentResult<Arc<ActivePolicies>> {
    let store = KnowledgeStore::of(cx)?;
    let entries = store.items(scopes, |_, head| {
        head.kind == ItemKind::Policy && head.status == ItemStatus::Accepted
    });
    let entries = entries.await?;
    if entries.len() > POLICIES_MAX {
        let text = format!(
            "{} policies are in force, expected at most {POLICIES_MAX}",
            entries.len()
        );
        return Err(AgentError::domain("TOO_MANY_POLICIES", text));
    }
    let (tenant, version) = (&cx.caller().owner.tenant, version(&entries));
    // An agent without the set `governance` keeps none.
    let cache = State::<PolicyCache>::made(cx);
    if let Some(in_force) = cache.as_ref().and_then(|it| it.get(tenant, &version)) {
        return Ok(in_force);
    }
    let in_force = Arc::new(compile_policies(&store, &entries, version).await?);
    if let Some(cache) = cache {
        cache.keep(tenant.clone(), Arc::clone(&in_force));
    }
    Ok(in_force)
}

/// The version of the policies on a list.
fn version(entries: &[Listed]) -> String {
    let mut hash = Sha256::new();
    for entry in entries {
        hash.update(entry.location.file());
        hash.update([0]);
        hash.update(&entry.entry.commit);
        hash.update([0]);
    }
    hex::encode(hash.finalize())
}

/// Reads and compiles the policies as they are in their commits, which never change.
async fn compile_policies(
    store: &KnowledgeStore<'_>,
    entries: &[Listed],
    version: String,
) -> AgentResult<ActivePolicies> {
    let reads = entries.iter().map(|entry| store.load_entry(entry).boxed());
    let reads = stream::iter(reads.collect::<Vec<_>>()).buffered(PARALLEL_READS);
    let items: Vec<Option<StoredItem>> = reads.try_collect().await?;
    let mut in_force = ActivePolicies {
        version,
        ..ActivePolicies::default()
    };
    for (entry, item) in entries.iter().zip(items) {
        let Some(item) = item else {
            in_force.warn_unused(entry, "its commit is missing");
            continue;
        };
        match CompiledPolicy::parse(&item.content) {
            Ok(policy) if policy.layer.layer() == entry.location.layer() => {
                in_force.size += policy.size() + item.content.len();
                in_force.policies.push(policy);
            }
            Ok(_) => in_force.warn_unused(entry, "it names another layer"),
            Err(error) => in_force.warn_unused(entry, &error.to_string()),
        }
        tokio::task::yield_now().await;
    }
    Ok(in_force)
}

impl ActivePolicies {
    fn warn_unused(&mut self, entry: &Listed, why: &str) {
        let text = format!("the policy {} is not used: {why}", entry.location.file());
        self.warnings.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_force(version: usize, size: usize) -> Arc<ActivePolicies> {
        Arc::new(ActivePolicies {
            version: version.to_string(),
            size,
            ..ActivePolicies::default()
        })
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    #[test]
    fn the_versions_used_last_stay_within_number_and_bytes() {
        let cache = PolicyCache::default();
        let acme = tenant("acme");
        for version in 0..2 * VERSIONS_MAX {
            cache.keep(acme.clone(), in_force(version, 1));
            assert!(cache.get(&acme, "0").is_some(), "it is used each time");
        }
        let has = |version: usize| cache.get(&acme, &version.to_string()).is_some();
        assert!(!has(1) && !has(VERSIONS_MAX));
        assert!(has(VERSIONS_MAX + 1) && has(2 * VERSIONS_MAX - 1));
        cache.keep(acme.clone(), in_force(100, BYTES_MAX));
        assert!(has(100) && !has(0) && !has(2 * VERSIONS_MAX - 1));
        cache.keep(acme.clone(), in_force(101, BYTES_MAX + 1));
        assert!(!has(100) && !has(101));
    }

    #[test]
    fn a_tenant_gets_its_own_policies() {
        let cache = PolicyCache::default();
        cache.keep(tenant("acme"), in_force(1, 1));
        assert!(cache.get(&tenant("other"), "1").is_none());
        assert!(cache.get(&tenant("acme"), "1").is_some());
    }
}
