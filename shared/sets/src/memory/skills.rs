//! The operations on memories, each a skill.

use super::search::{MemorySearch, search};
use super::store::{self, MEMORY_MAX, Memory, MemoryKey, StoredMemory};
use crate::access::{Access, Denial, Scope, Verb, or_reject};
use crate::content::{check_content, check_length, check_tags, data_or};
use crate::layer::Layer;
use crate::lines::{list, quote};
use crate::origin::Origin;
use crate::pages;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::SkillSet;
use a2a_lambda::task::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// The most bytes of a memory.
const CONTENT_MAX: usize = 32 * 1024;
/// The most bytes of the metadata of a memory, as JSON.
const METADATA_MAX: usize = 4 * 1024;
/// How long memories of a conversation and of the agent live, if the caller does not say.
const SHORT: Duration = Duration::from_secs(24 * 3600);

/// The nouns of a line.
pub(crate) const NOUNS: [&str; 2] = ["memory", "memories"];

/// The importance of a memory if the caller does not say: the middle.
const IMPORTANCE: f64 = 0.5;

/// Remembers something, in a layer of the organisation.
#[skill(
    id = "memory_add",
    name = "Add a memory",
    tags = ["memory", "remember"],
    examples = ["Remember that I like tea"],
    text = ["remember that {content}", "please remember that {content}"],
    cancel_words = true,
    output_modes = ["application/json"],
)]
pub(crate) struct MemoryAdd;

/// A memory to add.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewMemory {
    /// What to remember, at most 32 KB.
    content: String,
    /// The layer. Without it the skill takes the default layer of the agent, if it has one, or
    /// asks.
    #[serde(default)]
    layer: Option<Layer>,
    /// The project, team or organisation, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// At most 16 tags.
    #[serde(default)]
    tags: Vec<String>,
    /// Anything else, at most 4 KB.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// From 0 to 1.
    #[serde(default)]
    importance: Option<f64>,
    /// How long to remember it.
    #[serde(default)]
    ttl_seconds: Option<u32>,
}

/// A memory that was added.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddedMemory {
    id: String,
    layer: Layer,
    scope_id: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// How it can be found.
    indexed: &'static str,
}

/// The layer of a memory for which the caller names none.
struct DefaultLayer(Layer);

/// Settings of the set [`memory`](crate::memory).
pub trait MemorySettings {
    /// Sets the layer of memories for which the caller names none. Without it the skill asks.
    ///
    /// ```
    /// use a2a_lambda::prelude::*;
    /// use a2a_lambda_sets::{Layer, MemorySettings as _, memory};
    ///
    /// let agent = Agent::builder("notes")
    ///     .description("Remembers what you tell it.")
    ///     .skills(memory::set().default_layer(Layer::User))
    ///     .build()?;
    /// # Ok::<(), BuildError>(())
    /// ```
    #[must_use]
    fn default_layer(self, layer: Layer) -> Self;
}

impl MemorySettings for SkillSet {
    fn default_layer(self, layer: Layer) -> Self {
        self.state_value(DefaultLayer(layer))
    }
}

/// The memory that waits for its layer.
#[derive(Serialize, Deserialize)]
pub(crate) struct WhichLayer(NewMemory);

impl SkillSlot for WhichLayer {}

impl SkillHandler<WhichLayer> for MemoryAdd {
    type Input = TextOr<NewMemory>;
    type Output = AddedMemory;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: TextOr<NewMemory>,
    ) -> AgentResult<OnRequestResult<AddedMemory, WhichLayer>> {
        let memory = data_or(input, |content| NewMemory {
            content,
            ..NewMemory::default()
        });
        memory.check()?;
        let default = State::<DefaultLayer>::made(cx).map(|it| it.0);
        let layer = memory.layer.or(default);
        memory.add_or_ask(cx, layer).await
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        WhichLayer(memory): WhichLayer,
        answer: Content,
    ) -> AgentResult<OnInputResult<AddedMemory, WhichLayer>> {
        let layer = Layer::from_name(&answer.text()?.trim().to_lowercase());
        memory.add_or_ask(cx, layer).await
    }
}

impl NewMemory {
    fn check(&self) -> AgentResult<()> {
        check_content(&self.content, CONTENT_MAX)?;
        let metadata = serde_json::to_string(&self.metadata).map_err(AgentError::serialization)?;
        check_length("metadata", metadata.len(), METADATA_MAX)?;
        // A search reads as many memories at a time as certainly fit into what it may read.
        let json = serde_json::to_string(&self.content).map_err(AgentError::serialization)?;
        check_length("content", json.len(), MEMORY_MAX - 2 * METADATA_MAX)?;
        check_tags(&self.tags)?;
        match self.importance {
            Some(importance) if !(0.0..=1.0).contains(&importance) => Err(
                AgentError::invalid_input("`importance` is a number from 0 to 1"),
            ),
            _ => Ok(()),
        }
    }

    /// Stores the memory in a layer; without one it asks for it.
    async fn add_or_ask<M>(
        self,
        cx: &TaskContext<'_>,
        layer: Option<Layer>,
    ) -> AgentResult<OnRequestResult<AddedMemory, WhichLayer, M>> {
        let Some(layer) = layer else {
            let layers = Layer::ALL.map(Layer::as_str).join(", ");
            return OnRequestResult::ask(format!("In which layer: {layers}?"), WhichLayer(self));
        };
        let scope_id = self.scope_id.as_deref();
        let scope = or_reject!(Access::in_turn(cx).scope(Verb::MemoryAdd, layer, scope_id));
        OnRequestResult::done(self.add(cx, &scope).await?)
            .saying(format!("Remembered for {scope}: {}", quote(&self.content)))
    }

    /// Stores the memory. A turn that runs again stores the same one.
    async fn add(&self, cx: &TaskContext<'_>, scope: &Scope) -> AgentResult<AddedMemory> {
        let short = matches!(scope.layer(), Layer::Agent | Layer::Session);
        let lifetime = match self.ttl_seconds {
            Some(seconds) => Some(Duration::from_secs(seconds.into())),
            None => short.then_some(SHORT),
        };
        let now = cx.now();
        let memory = StoredMemory {
            content: self.content.clone(),
            tags: self.tags.clone(),
            metadata: self.metadata.clone(),
            importance: self.importance.unwrap_or(IMPORTANCE),
            created_at: now.as_millis(),
            origin: Some(Origin::in_turn(cx)),
        };
        let id = id(cx, &self.content);
        store::put(cx, scope, &id, &memory, lifetime).await?;
        Ok(AddedMemory {
            id,
            layer: scope.layer(),
            scope_id: scope.id().to_owned(),
            created_at: now.to_rfc3339(),
            expires_at: lifetime.map(|lifetime| now.plus(lifetime).to_rfc3339()),
            indexed: "lexical",
        })
    }
}

/// The id of a memory: the same in each run of a turn, and another one in each task. Ids are in
/// the order of their times.
fn id(cx: &TaskContext<'_>, content: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(cx.task_id().as_str());
    hash.update([0]);
    hash.update(content);
    let hash = hex::encode(hash.finalize());
    let (millis, hash) = (cx.now().as_millis(), hash.get(..16).unwrap_or_default());
    // Ids without a time begin with `mem-`, which is lower.
    format!("mem_{millis:013}-{hash}")
}

/// The results of a search: narrow layers first, then high scores.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundMemories {
    results: Vec<FoundMemory>,
    /// How many memories match.
    total: usize,
    /// How they were found.
    mode: &'static str,
    /// Whether older memories were not searched: a search reads the newest 512 KB of each scope.
    partial: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundMemory {
    #[serde(flatten)]
    memory: ShownMemory,
    /// How well it fits, from 0 to 1.
    score: f64,
}

/// A memory as callers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownMemory {
    id: String,
    content: String,
    layer: Layer,
    scope_id: String,
    tags: Vec<String>,
    metadata: Map<String, Value>,
    created_at: String,
    /// Who stored it; absent if an earlier version did.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
}

/// Finds memories by their words.
#[skill(
    id = "memory_search",
    name = "Find memories",
    tags = ["memory", "recall", "remember"],
    examples = ["What do you remember about tea"],
    text = "what do you remember about {query}",
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn memory_search(
    cx: &mut TaskContext<'_>,
    input: TextOr<MemorySearch>,
) -> AgentResult<OnRequestResult<FoundMemories>> {
    let options = data_or(input, |query| MemorySearch {
        query,
        ..MemorySearch::default()
    });
    let memories = find_memories(cx, &options).await?;
    let about = quote(&options.query);
    let nouns = NOUNS.map(|noun| format!("{noun} about {about}"));
    let texts = memories.results.iter().map(|it| &it.memory.content);
    let line = list(memories.total, nouns, texts);
    let rest = match memories.partial {
        true => " (older memories were not searched)",
        false => "",
    };
    OnRequestResult::done(memories).saying(format!("Found {line}{rest}"))
}

/// The memories that fit a text, as JSON, at most `limit`, and whether older ones were not
/// searched.
pub(crate) async fn recall(
    cx: &TaskContext<'_>,
    text: &str,
    limit: usize,
) -> AgentResult<(Vec<Value>, bool)> {
    let options = MemorySearch {
        query: text.to_owned(),
        limit: Some(limit),
        ..MemorySearch::default()
    };
    let memories = find_memories(cx, &options).await?;
    let json = memories.results.iter().map(serde_json::to_value);
    let json = json.collect::<Result<_, _>>();
    Ok((json.map_err(AgentError::serialization)?, memories.partial))
}

/// The memories that a caller finds.
async fn find_memories(cx: &TaskContext<'_>, options: &MemorySearch) -> AgentResult<FoundMemories> {
    let (memories, partial) = store::newest(cx, &scopes(cx, &options.layers)).await?;
    let hits = search(&memories, options)?;
    let results = hits.hits.into_iter().map(|hit| FoundMemory {
        memory: hit.memory.clone().into(),
        score: hit.score,
    });
    Ok(FoundMemories {
        results: results.collect(),
        total: hits.total,
        mode: "lexical",
        partial,
    })
}

impl From<Memory> for ShownMemory {
    fn from(memory: Memory) -> Self {
        Self {
            id: memory.id,
            content: memory.record.content,
            layer: memory.layer,
            scope_id: memory.scope_id,
            tags: memory.record.tags,
            metadata: memory.record.metadata,
            created_at: Timestamp::from_millis(memory.record.created_at).to_rfc3339(),
            origin: memory.record.origin,
        }
    }
}

/// Which memories to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct MemoryList {
    /// The layers; all that the caller has by default.
    layers: Vec<Layer>,
    /// The most memories, 1 to 50; 10 by default.
    limit: Option<usize>,
    /// Where to continue.
    cursor: Option<String>,
}

/// A page of memories: narrow layers first, then by scope and id.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedMemories {
    memories: Vec<ShownMemory>,
    /// Where to continue, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// Lists memories.
#[skill(
    id = "memory_list",
    name = "List memories",
    tags = ["memory", "list"],
    text = ["list my memories", "what do you remember"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn memory_list(
    cx: &mut TaskContext<'_>,
    input: TextOr<MemoryList>,
) -> AgentResult<OnRequestResult<ListedMemories>> {
    let options = data_or(input, |_| MemoryList::default());
    let limit = pages::limit(options.limit)?;
    let after: Option<MemoryKey> = pages::position(options.cursor.as_deref())?;
    let scopes = scopes(cx, &options.layers);
    let mut memories = store::page(cx, &scopes, after.as_ref(), limit + 1).await?;
    let has_more = memories.len() > limit;
    memories.truncate(limit);
    let last = memories.last().filter(|_| has_more).map(Memory::key);
    let cursor = pages::cursor(last)?;
    let texts = memories.iter().map(|it| &it.record.content);
    let line = list(memories.len(), NOUNS, texts);
    let more = if has_more { " (there are more)" } else { "" };
    OnRequestResult::done(ListedMemories {
        memories: memories.into_iter().map(ShownMemory::from).collect(),
        cursor,
    })
    .saying(format!("Found {line}{more}"))
}

/// The scopes of some layers in which the caller may read; of all without layers.
fn scopes(cx: &TaskContext<'_>, layers: &[Layer]) -> Vec<Scope> {
    let is_wanted = |layer: &Layer| layers.is_empty() || layers.contains(layer);
    let layers = Layer::ALL.into_iter().filter(is_wanted);
    Access::in_turn(cx).scopes(Verb::MemorySearch, layers)
}

/// A memory to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ForgottenMemory {
    /// The id that `memory_add` returned.
    id: String,
    /// Its layer.
    layer: Layer,
    /// Its project, team or organisation, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct DeletedMemory {
    /// Whether there was such a memory, which is gone now. One of others looks absent.
    deleted: bool,
    /// What still has its text, and until when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remains: Vec<Remainder>,
}

/// A place that outlives a deletion.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Remainder {
    place: &'static str,
    until: &'static str,
}

/// What outlives the deletion of a memory, with the times of a deployment that sets no others.
/// `docs/erasure.md` says the same.
const REMAINS: [(&str, &str); 5] = [
    (
        "tasks that added or showed it",
        "they are deleted, or 30 days after their last write",
    ),
    (
        "contexts that began with it",
        "an hour after their last activity",
    ),
    ("the stream of the table", "24 hours from now"),
    ("backups of the table", "35 days from now"),
    (
        "clients, webhooks and model services that got it",
        "they delete it",
    ),
];

/// Forgets a memory.
#[skill(
    id = "memory_delete",
    name = "Forget",
    tags = ["memory", "forget"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
)]
pub(crate) async fn memory_delete(
    cx: &mut TaskContext<'_>,
    memory: ForgottenMemory,
) -> AgentResult<OnRequestResult<DeletedMemory>> {
    let scope = memory.scope_id.as_deref();
    let scope = match Access::in_turn(cx).scope(Verb::MemoryDelete, memory.layer, scope) {
        Ok(scope) => scope,
        Err(Denial::Foreign) => return absent(),
        Err(denial) => return denial.rejection(),
    };
    // A step: another run of this turn finds the memory gone that this run deletes.
    let memories = scope.documents(cx, store::KIND)?;
    let has = async { Ok(memories.get::<StoredMemory>(&memory.id).await?.is_some()) };
    if !cx.step("memory", has).await? {
        return absent();
    }
    memories.remove(&memory.id).await?;
    OnRequestResult::done(DeletedMemory {
        deleted: true,
        remains: REMAINS
            .map(|(name, until)| Remainder { place: name, until })
            .into(),
    })
    .saying("Forgotten, but copies remain for a while, such as in earlier tasks and in backups")
}

fn absent() -> AgentResult<OnRequestResult<DeletedMemory>> {
    OnRequestResult::done(DeletedMemory::default()).saying("There is no such memory")
}
