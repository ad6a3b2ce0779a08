//! The operations on knowledge, each a skill.

use super::authors::subject_of;
use super::error::KnowledgeError;
use super::history::FileCommit;
use super::item::{ItemHead, ItemKind, ItemStatus, StoredItem, describe};
use super::path::{ItemLocation, ItemPath};
use super::store::{Entry, KnowledgeStore, Listed, parse_commit_id};
use crate::access::{Access, Denial, Scope, Verb, or_reject};
use crate::content::{check_content, check_count, check_tags, data_or};
use crate::governance::compile::{CompiledPolicy, ConstraintError};
use crate::layer::{KnowledgeLayer, Layer};
use crate::lines::{list, quote};
use crate::origin::WrittenBy;
use crate::pages;
use crate::words::{fold, runs};
use a2a_lambda::prelude::*;
use a2a_lambda::task::Timestamp;
use futures::future::try_join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most bytes of a content. As an object it has to fit into a document.
pub(crate) const CONTENT_MAX: usize = 64 * 1024;
/// The commits that `knowledge_show` lists.
const HISTORY: usize = 20;
/// The most commits that a history looks at.
const WALK_MAX: usize = 256;
/// The most bytes of a query.
const QUERY_MAX: usize = 1024;

/// A version of an item to store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewItem {
    /// The path in its layer, such as `adr/0001-use-dynamodb.md`.
    path: String,
    /// Its layer.
    layer: KnowledgeLayer,
    /// Its project, team or organisation, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// What it is.
    kind: ItemKind,
    /// Its content, at most 64 KB.
    content: String,
    /// `draft` or `proposed`; `draft` by default.
    #[serde(default)]
    status: Option<NewStatus>,
    /// Its tags.
    #[serde(default)]
    tags: Vec<String>,
    /// The commit of the version that this one replaces.
    #[serde(default)]
    expect: Option<String>,
    /// Why it is stored.
    message: String,
}

impl NewItem {
    /// Checks what can be checked without the store.
    fn check(&self) -> AgentResult<()> {
        check_content(&self.content, CONTENT_MAX)?;
        check_tags(&self.tags)?;
        if self.kind == ItemKind::Policy {
            let policy = CompiledPolicy::parse(&self.content);
            let policy = policy.map_err(ConstraintError::agent_error)?;
            if policy.layer != self.layer {
                let text = format!(
                    "the policy is of the layer `{}`, and the item of `{}`",
                    policy.layer, self.layer
                );
                return Err(AgentError::domain("INVALID_LAYER", text));
            }
        }
        Ok(())
    }

    /// The head of its file at a location.
    fn head(&self, location: &ItemLocation) -> ItemHead {
        let (title, summary) = describe(location, &self.content);
        ItemHead {
            kind: self.kind,
            status: match self.status {
                Some(NewStatus::Proposed) => ItemStatus::Proposed,
                Some(NewStatus::Draft) | None => ItemStatus::Draft,
            },
            title,
            summary,
            tags: self.tags.clone(),
            superseded_by: None,
        }
    }
}

/// A status that a caller may give to a new version.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NewStatus {
    /// Being written.
    Draft,
    /// Waits for a decision.
    Proposed,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredVersion {
    path: String,
    /// The commit of the version.
    commit: String,
}

/// Stores a version of an item of knowledge.
#[skill(
    id = "knowledge_store",
    name = "Write knowledge",
    tags = ["knowledge", "store"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
)]
pub(crate) async fn knowledge_store(
    cx: &mut TaskContext<'_>,
    item: NewItem,
) -> AgentResult<OnRequestResult<StoredVersion>> {
    item.check()?;
    let access = Access::in_turn(cx);
    let (layer, scope_id) = (item.layer.layer(), item.scope_id.as_deref());
    let scope = or_reject!(access.scope(Verb::KnowledgeShow, layer, scope_id));
    let location = locate(&scope, &item.path)?;
    let head = item.head(&location);
    let decide = |before: Option<&StoredItem>| {
        let is_decided = before.is_some_and(|before| !is_open(before.head.status));
        let kinds = [Some(item.kind), before.map(|before| before.head.kind)];
        let verb = Verb::of_write(kinds.contains(&Some(ItemKind::Policy)), is_decided);
        access.scope(verb, layer, scope.membership())?;
        let is_mine =
            before.is_some_and(|before| before.content == item.content && before.head == head);
        let commit = before.map(|before| before.commit.to_string());
        if !is_mine && item.expect.is_some() && item.expect != commit {
            let text = "the item has changed since the commit in `expect`";
            return Err(AgentError::domain("STALE_COMMIT", text).into());
        }
        if let Some(before) = before.filter(|_| !is_mine && is_decided) {
            let status = before.head.status;
            let text = format!("the item is {status}; only drafts and proposals can be replaced");
            return Err(AgentError::domain("INVALID_STATUS", text).into());
        }
        Ok(head.file(&item.content))
    };
    let store = KnowledgeStore::of(cx)?;
    let commit = or_reject!(store.commit(cx, &location, &item.message, decide).await);
    let status = match item.status {
        Some(NewStatus::Proposed) => "proposal",
        Some(NewStatus::Draft) | None => "draft",
    };
    OnRequestResult::done(StoredVersion {
        path: item.path.clone(),
        commit: commit.to_string(),
    })
    .saying(format!("Stored {} for {scope} as a {status}", item.path))
}

const fn is_open(status: ItemStatus) -> bool {
    matches!(status, ItemStatus::Draft | ItemStatus::Proposed)
}

/// An item to look at.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ItemName {
    /// The path in its layer.
    path: String,
    /// Its layer.
    layer: KnowledgeLayer,
    /// Its project, team or organisation, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// A commit; the newest one by default.
    #[serde(default)]
    at: Option<String>,
}

/// An item without its content.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemSummary {
    path: String,
    layer: Layer,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope_id: Option<String>,
    kind: ItemKind,
    status: ItemStatus,
    title: String,
    summary: String,
    tags: Vec<String>,
    /// The path of the item that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
    /// The last commit that changed it.
    commit: String,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ShownItem {
    /// `null` if there is none, or none that the caller may see.
    item: Option<ItemSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The commits that changed it, the newest first.
    history: Vec<ItemVersion>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemVersion {
    commit: String,
    message: String,
    /// The subject that committed; a pseudonym if the subject was erased.
    author: String,
    /// Whether a person or a model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<WrittenBy>,
    /// The task that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    at: String,
}

impl ItemVersion {
    async fn of(cx: &TaskContext<'_>, commit: FileCommit) -> AgentResult<Self> {
        Ok(Self {
            author: subject_of(cx, &commit.author).await?,
            commit: commit.commit.to_string(),
            message: commit.message,
            via: commit.via,
            task: commit.task,
            at: Timestamp::from_millis(commit.at_s.saturating_mul(1000)).to_rfc3339(),
        })
    }
}

/// Shows an item of knowledge with its history.
#[skill(
    id = "knowledge_show",
    name = "Show knowledge",
    tags = ["knowledge", "show"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn knowledge_show(
    cx: &mut TaskContext<'_>,
    name: ItemName,
) -> AgentResult<OnRequestResult<ShownItem>> {
    let (layer, scope_id) = (name.layer.layer(), name.scope_id.as_deref());
    let scope = match Access::in_turn(cx).scope(Verb::KnowledgeShow, layer, scope_id) {
        Ok(scope) => scope,
        Err(Denial::Foreign) => return absent(),
        Err(denial) => return denial.rejection(),
    };
    let location = locate(&scope, &name.path)?;
    let at = name.at.as_deref().map(parse_commit_id).transpose()?;
    let store = KnowledgeStore::of(cx)?;
    let Some(item) = store.item(&location, at).await? else {
        return absent();
    };
    let repository = store.repository();
    let commits = repository.history(item.commit, &location, HISTORY, WALK_MAX);
    let commits = commits.await.map_err(KnowledgeError::agent_error)?;
    let commits = commits.into_iter();
    let history = try_join_all(commits.map(|commit| ItemVersion::of(cx, commit)));
    let commit = item.commit.to_string();
    let (path, head) = (item.location.path().as_str(), &item.head);
    let (title, about) = (quote(&head.title), quote(&head.summary));
    let line = match head.summary.is_empty() {
        true => format!("{path} ({}): {title}", head.status),
        false => format!("{path} ({}): {title}, {about}", head.status),
    };
    OnRequestResult::done(ShownItem {
        item: Some(summary(&item.location, item.head, commit.clone())),
        content: Some(item.content),
        commit: Some(commit),
        history: history.await?,
    })
    .saying(line)
}

fn absent() -> AgentResult<OnRequestResult<ShownItem>> {
    OnRequestResult::done(ShownItem::default()).saying("There is no such item")
}

/// A query.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KnowledgeQuery {
    /// Words of which title, summary, path or tags have one. The words of a question, such as
    /// `what`, do not count.
    query: Option<String>,
    /// The kinds; all by default.
    kind: Vec<ItemKind>,
    /// The layers; all that the caller has by default.
    layers: Vec<KnowledgeLayer>,
    /// The status; `accepted` by default.
    status: Vec<ItemStatus>,
    /// An item needs one of these tags.
    tags: Vec<String>,
    /// The most items, 1 to 50; 10 by default.
    limit: Option<usize>,
    /// Where to continue.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundItems {
    items: Vec<ItemSummary>,
    /// How many items match.
    total: usize,
    /// Whether items were not read: a query reads 512 KB of the list of items, and the cursor
    /// continues behind them. Then `total` counts what it has read.
    partial: bool,
    /// How many more items match but have another status than the query asks for, such as drafts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    also_matching: BTreeMap<ItemStatus, usize>,
    /// Where to continue, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// Finds items of knowledge.
#[skill(
    id = "knowledge_query",
    name = "Find knowledge",
    tags = ["knowledge", "find"],
    examples = ["What is our decision on storage"],
    text = [
        "what is our decision on {query}",
        "what does our knowledge base say about {query}",
    ],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn knowledge_query(
    cx: &mut TaskContext<'_>,
    input: TextOr<KnowledgeQuery>,
) -> AgentResult<OnRequestResult<FoundItems>> {
    let query = data_or(input, |text| KnowledgeQuery {
        query: Some(text),
        ..KnowledgeQuery::default()
    });
    let limit = pages::limit(query.limit)?;
    let text = query.query.as_deref().unwrap_or_default();
    check_count("query", "bytes", text.len(), 0..=QUERY_MAX)?;
    let words = asked_for(text);
    let is_in_query =
        |layer: &KnowledgeLayer| query.layers.is_empty() || query.layers.contains(layer);
    let layers = KnowledgeLayer::ALL.into_iter().filter(is_in_query);
    let layers = layers.map(KnowledgeLayer::layer);
    let scopes = Access::in_turn(cx).scopes(Verb::KnowledgeQuery, layers);
    let store = KnowledgeStore::of(cx)?;
    let cursor: QueryCursor = pages::position(query.cursor.as_deref())?.unwrap_or_default();
    let fits = |location: &_, head: &_| query.fits(&words, location, head);
    let (entries, next) = store.part(&scopes, cursor.part.as_deref(), fits).await?;
    let (mut entries, others): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|item| query.shows(item.entry.head.status));
    let mut also_matching = BTreeMap::new();
    for item in others {
        *also_matching.entry(item.entry.head.status).or_default() += 1;
    }
    let total = entries.len();
    let partial = cursor.part.is_some() || next.is_some();
    entries.retain(|entry| entry.location.file() > cursor.file);
    let cursor = cursor.behind(&entries, limit, next)?;
    entries.truncate(limit);
    let items = entries.into_iter().map(|item| {
        let Entry { head, commit, .. } = item.entry;
        summary(&item.location, head, commit)
    });
    let output = FoundItems {
        items: items.collect(),
        total,
        also_matching,
        partial,
        cursor,
    };
    let line = output.line(query.status.is_empty());
    OnRequestResult::done(output).saying(line)
}

impl FoundItems {
    fn line(&self, is_accepted: bool) -> String {
        let nouns = match is_accepted {
            true => ["accepted item", "accepted items"],
            false => ["item", "items"],
        };
        let texts = self
            .items
            .iter()
            .map(|it| format!("{}: {}", it.path, it.title));
        let mut line = format!("Found {}", list(self.total, nouns, texts));
        for (status, count) in &self.also_matching {
            line.push_str(&format!("; also {count} {status}"));
        }
        if self.partial {
            line.push_str(" (not all items were searched)");
        }
        line
    }
}

/// Where a query continues.
#[derive(Debug, Default, Serialize, Deserialize)]
struct QueryCursor {
    /// Where the part of the list begins; `None` for the first part.
    part: Option<String>,
    /// The file behind which the part continues.
    file: String,
}

impl QueryCursor {
    /// Where the query continues: behind `limit` of these items, or in the part at `next`.
    fn behind(
        self,
        entries: &[Listed],
        limit: usize,
        next: Option<String>,
    ) -> AgentResult<Option<String>> {
        let cursor = match entries.get(limit - 1).filter(|_| entries.len() > limit) {
            Some(last) => Some(Self {
                part: self.part,
                file: last.location.file(),
            }),
            None => next.map(|part| Self {
                part: Some(part),
                file: String::new(),
            }),
        };
        pages::cursor(cursor)
    }
}

impl KnowledgeQuery {
    /// Whether the query asks for items of this status.
    fn shows(&self, status: ItemStatus) -> bool {
        match self.status.as_slice() {
            [] => status == ItemStatus::Accepted,
            statuses => statuses.contains(&status),
        }
    }

    /// Whether an item matches, whatever its status is.
    fn fits(&self, words: &[String], location: &ItemLocation, head: &ItemHead) -> bool {
        let text = [
            location.path().as_str(),
            &head.title,
            &head.summary,
            &head.tags.join(" "),
        ];
        let text = fold(&text.join(" "));
        let has = |word: &String| text.contains(word.as_str());
        (self.kind.is_empty() || self.kind.contains(&head.kind))
            && (self.tags.is_empty() || self.tags.iter().any(|tag| head.tags.contains(tag)))
            && (words.is_empty() || words.iter().any(has))
    }
}

/// Words of a question that no item is about.
const ASKING: &str = "a about all an and any are decision decisions do find for give how in is know \
                      knowledge me my of on our show tell the to us we what which why";

/// The words of a question that an item can be about.
fn asked_for(question: &str) -> Vec<String> {
    let mut words = runs(question);
    words.retain(|word| !ASKING.split_whitespace().any(|asking| asking == word));
    words
}

/// A new status of an item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NewItemStatus {
    /// The path in its layer.
    path: String,
    /// Its layer.
    layer: KnowledgeLayer,
    /// Its project, team or organisation, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// The new status.
    to: ItemStatus,
    /// The path of the item of the same layer and scope that replaces it, if `to` is
    /// `superseded`. It has to exist.
    #[serde(default)]
    superseded_by: Option<String>,
    /// Why.
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedStatus {
    path: String,
    from: ItemStatus,
    to: ItemStatus,
    commit: String,
}

/// Decides on an item of knowledge.
#[skill(
    id = "knowledge_status",
    name = "Decide on knowledge",
    tags = ["knowledge", "status"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
)]
pub(crate) async fn knowledge_status(
    cx: &mut TaskContext<'_>,
    change: NewItemStatus,
) -> AgentResult<OnRequestResult<ChangedStatus>> {
    let successor = change.successor()?;
    let access = Access::in_turn(cx);
    let (layer, scope_id) = (change.layer.layer(), change.scope_id.as_deref());
    let scope = or_reject!(access.scope(Verb::KnowledgeShow, layer, scope_id));
    let location = locate(&scope, &change.path)?;
    let store = KnowledgeStore::of(cx)?;
    if let Some(path) = &successor
        && (*path == location.path().as_str()
            || store.item(&locate(&scope, path)?, None).await?.is_none())
    {
        let text = "`supersededBy` names no other item of the same layer and scope";
        return Err(AgentError::domain("NOT_FOUND", text));
    }
    let not_found = || AgentError::domain("NOT_FOUND", "there is no such item");
    // A step: another run of this turn finds the item as this run leaves it.
    let old_status = async {
        let before = store.item(&location, None).await?;
        Ok(before.ok_or_else(not_found)?.head.status)
    };
    let from = cx.step("status", old_status).await?;
    let decide = |before: Option<&StoredItem>| {
        let before = before.ok_or_else(not_found)?;
        let status = before.head.status;
        let is_decided = !is_open(status) || !is_open(change.to);
        let verb = Verb::of_write(before.head.kind == ItemKind::Policy, is_decided);
        access.scope(verb, layer, scope.membership())?;
        // A run of this turn may have stored it.
        if status != change.to && !status.may_become(change.to) {
            let text = format!("an item that is {status} cannot become {}", change.to);
            return Err(AgentError::domain("INVALID_STATUS", text).into());
        }
        let head = ItemHead {
            status: change.to,
            superseded_by: successor.clone(),
            ..before.head.clone()
        };
        Ok(head.file(&before.content))
    };
    let commit = or_reject!(store.commit(cx, &location, &change.message, decide).await);
    let (path, to) = (&change.path, change.to);
    OnRequestResult::done(ChangedStatus {
        path: path.clone(),
        from,
        to,
        commit: commit.to_string(),
    })
    .saying(format!("{path} is now {to} (was {from})"))
}

impl NewItemStatus {
    /// The path of the item that replaces this one.
    fn successor(&self) -> AgentResult<Option<String>> {
        let Some(text) = &self.superseded_by else {
            return Ok(None);
        };
        if self.to != ItemStatus::Superseded {
            let text = "`supersededBy` is for the status `superseded`";
            return Err(AgentError::invalid_input(text));
        }
        ItemPath::parse(text).map_err(|wrong| {
            AgentError::invalid_input(format!("`supersededBy` {}", wrong.fault))
        })?;
        Ok(Some(text.clone()))
    }
}

/// The location of a path in a scope.
fn locate(scope: &Scope, path: &str) -> AgentResult<ItemLocation> {
    let path = ItemPath::parse(path);
    let location = path.and_then(|path| ItemLocation::new(scope.layer(), scope.membership(), path));
    location.map_err(|wrong| AgentError::invalid_input(wrong.to_string()))
}

fn summary(location: &ItemLocation, head: ItemHead, commit: String) -> ItemSummary {
    ItemSummary {
        path: location.path().as_str().to_owned(),
        layer: location.layer(),
        scope_id: location.scope_id().map(str::to_owned),
        kind: head.kind,
        status: head.status,
        title: head.title,
        summary: head.summary,
        tags: head.tags,
        superseded_by: head.superseded_by,
        commit,
    }
}
