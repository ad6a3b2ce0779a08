//! Memories as documents, in one collection for each scope.

use crate::access::Scope;
use crate::layer::Layer;
use crate::origin::Origin;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::Document;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The most bytes of a scope that a search reads.
pub(crate) const SEARCH_MAX: usize = 512 * 1024;
/// The most bytes of a memory, as JSON.
pub(super) const MEMORY_MAX: usize = 48 * 1024;
/// The collections of memories.
pub(super) const KIND: &str = "memory";

/// A memory as it is stored, under its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredMemory {
    pub(super) content: String,
    pub(super) tags: Vec<String>,
    pub(super) metadata: Map<String, Value>,
    /// From 0 to 1.
    pub(super) importance: f64,
    /// Milliseconds since 1970.
    pub(super) created_at: i64,
    /// Where it comes from; `None` if an earlier version stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<Origin>,
}

/// A memory, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// The id, unique in its layer and scope.
    pub(super) id: String,
    pub(super) layer: Layer,
    pub(super) scope_id: String,
    pub(super) record: StoredMemory,
}

/// The place of a memory in the order of all memories: narrow layers first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct MemoryKey(Layer, String, String);

impl Memory {
    fn new(scope: &Scope, document: Document<StoredMemory>) -> Self {
        Self {
            id: document.key,
            layer: scope.layer(),
            scope_id: scope.id().to_owned(),
            record: document.value,
        }
    }

    pub(super) fn key(&self) -> MemoryKey {
        MemoryKey(self.layer, self.scope_id.clone(), self.id.clone())
    }
}

/// Stores a memory, for `lifetime` or until it is deleted. It goes with its author.
pub(super) async fn put(
    cx: &TaskContext<'_>,
    scope: &Scope,
    id: &str,
    memory: &StoredMemory,
    lifetime: Option<Duration>,
) -> AgentResult<()> {
    let memories = scope.documents(cx, KIND)?;
    let mut memories = memories.written_by(&cx.caller().owner.subject);
    if let Some(lifetime) = lifetime {
        memories = memories.expiring(lifetime);
    }
    memories.put(id, memory).await
}

/// The newest memories of these scopes, as many as a search reads, and whether there are more.
pub(super) async fn newest(
    cx: &TaskContext<'_>,
    scopes: &[Scope],
) -> AgentResult<(Vec<Memory>, bool)> {
    let reads = scopes.iter().map(async |scope| {
        let documents = scope.documents(cx, KIND)?;
        let (documents, next) = documents.last(None, SEARCH_MAX, MEMORY_MAX).await?;
        let memories = documents.into_iter();
        let memories: Vec<_> = memories.map(|it| Memory::new(scope, it)).collect();
        AgentResult::Ok((memories, next.is_some()))
    });
    let scopes = try_join_all(reads).await?;
    let is_partial = scopes.iter().any(|(_, has_more)| *has_more);
    let memories = scopes.into_iter().flat_map(|(memories, _)| memories);
    Ok((memories.collect(), is_partial))
}

/// At most `limit` memories of these scopes behind a place. The scopes are in the order of
/// layers and ids.
pub(super) async fn page(
    cx: &TaskContext<'_>,
    scopes: &[Scope],
    after: Option<&MemoryKey>,
    limit: usize,
) -> AgentResult<Vec<Memory>> {
    let mut memories: Vec<Memory> = Vec::new();
    for scope in scopes {
        let here = (scope.layer(), scope.id());
        let mut after = match after {
            Some(MemoryKey(layer, id, _)) if here < (*layer, id) => continue,
            Some(MemoryKey(layer, id, key)) if here == (*layer, id) => Some(key.clone()),
            Some(_) | None => None,
        };
        let documents = scope.documents(cx, KIND)?;
        while memories.len() < limit {
            let space = limit - memories.len();
            let page = documents.list(after.as_deref(), space).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            memories.extend(
                page.into_iter()
                    .map(|document| Memory::new(scope, document)),
            );
        }
    }
    Ok(memories)
}
