//! Memories as documents, in one collection for each scope.

use super::search::{Importance, MEMORIES_MAX, MemoryEntry};
use crate::access::{AddMemory, DeleteMemory, GrantedScope, Permit, SearchMemory};
use a2a_lambda::prelude::*;
use a2a_lambda::skill::Document;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

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
    pub(super) importance: f64,
    /// Milliseconds since 1970.
    pub(super) created_at: i64,
}

/// A memory that was found, and where it is.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) entry: MemoryEntry,
    pub(super) metadata: Map<String, Value>,
}

/// Stores a memory, for `lifetime` or until it is deleted.
pub(super) async fn put(
    cx: &TaskContext<'_>,
    permit: &Permit<AddMemory>,
    id: &str,
    memory: &StoredMemory,
    lifetime: Option<Duration>,
) -> AgentResult<()> {
    let mut memories = permit.scope().documents(cx, KIND)?;
    if let Some(lifetime) = lifetime {
        memories = memories.expiring(lifetime);
    }
    memories.put(id, memory).await
}

/// Removes a memory, if there is one.
pub(super) async fn remove(
    cx: &TaskContext<'_>,
    permit: &Permit<DeleteMemory>,
    id: &str,
) -> AgentResult<()> {
    permit.scope().documents(cx, KIND)?.remove(id).await
}

/// The memories of these scopes, at most as many as one search reads. The scopes are read in
/// their order.
pub(super) async fn all(
    cx: &TaskContext<'_>,
    permits: &[Permit<SearchMemory>],
) -> AgentResult<Vec<Known>> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for permit in permits {
        let memories = permit.scope().documents(cx, KIND)?;
        let mut after: Option<String> = None;
        loop {
            let room = PAGE.min(MEMORIES_MAX.saturating_sub(entries.len()));
            if room == 0 || bytes >= BYTES_MAX {
                return Ok(entries);
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
                entries.push(known(permit.scope(), document));
            }
        }
    }
    Ok(entries)
}

fn known(scope: &GrantedScope, document: Document<StoredMemory>) -> Known {
    let memory = document.value;
    Known {
        entry: MemoryEntry {
            id: document.key,
            content: memory.content,
            layer: scope.layer().rank(),
            scope_id: scope.id().to_owned(),
            tags: memory.tags,
            created_at_ms: u64::try_from(memory.created_at).unwrap_or_default(),
            importance: Importance::new(memory.importance).unwrap_or_default(),
        },
        metadata: memory.metadata,
    }
}
