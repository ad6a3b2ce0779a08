//! Memories as documents, in one collection for each scope.

use crate::access::Scope;
use crate::layer::Layer;
use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The most memories that one search reads.
const MEMORIES_MAX: usize = 2_000;
/// The most bytes of content that one search reads.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Memories of one read.
const PAGE: usize = 200;
/// The collections of memories.
const KIND: &str = "memory";

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

/// Stores a memory, for `lifetime` or until it is deleted.
pub(super) async fn put(
    cx: &TaskContext<'_>,
    scope: &Scope,
    id: &str,
    memory: &StoredMemory,
    lifetime: Option<Duration>,
) -> AgentResult<()> {
    let mut memories = scope.documents(cx, KIND)?;
    if let Some(lifetime) = lifetime {
        memories = memories.expiring(lifetime);
    }
    memories.put(id, memory).await
}

/// Whether there is a memory of this id.
pub(super) async fn has(cx: &TaskContext<'_>, scope: &Scope, id: &str) -> AgentResult<bool> {
    let memory = scope.documents(cx, KIND)?.get::<StoredMemory>(id).await?;
    Ok(memory.is_some())
}

/// Removes a memory, if there is one.
pub(super) async fn remove(cx: &TaskContext<'_>, scope: &Scope, id: &str) -> AgentResult<()> {
    scope.documents(cx, KIND)?.remove(id).await
}

/// The memories of these scopes, at most as many as one search reads. The scopes are read in
/// their order.
pub(super) async fn all(cx: &TaskContext<'_>, scopes: &[Scope]) -> AgentResult<Vec<Memory>> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for scope in scopes {
        let memories = scope.documents(cx, KIND)?;
        let mut after: Option<String> = None;
        loop {
            let room = PAGE.min(MEMORIES_MAX.saturating_sub(all.len()));
            if room == 0 || bytes >= BYTES_MAX {
                return Ok(all);
            }
            let page = memories
                .list::<StoredMemory>(after.as_deref(), room)
                .await?;
            after = page.last().map(|document| document.key.clone());
            if after.is_none() {
                break;
            }
            for document in page {
                bytes += document.value.content.len();
                all.push(Memory {
                    id: document.key,
                    layer: scope.layer(),
                    scope_id: scope.id().to_owned(),
                    record: document.value,
                });
            }
        }
    }
    Ok(all)
}
