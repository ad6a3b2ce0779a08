//! The operations on knowledge, each a skill.

use super::item::{ItemHead, ItemKind, ItemStatus, StoredItem, describe};
use super::path::{ItemPath, ItemPlace};
use super::repository::CommitAuthor;
use super::store::{Entry, KnowledgeStore, NewVersion, error, parsed};
use crate::access::{Denial, Permit, Verb, permit, permits};
use crate::governance::policy::Policy;
use crate::governance::skills::knowledge_check;
use crate::layer::Layer;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::SkillSet;
use a2a_lambda::task::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of a content. As an object it has to fit into a document.
const CONTENT_MAX: usize = 64 * 1024;
/// The commits that `knowledge_show` lists.
const HISTORY: usize = 20;
/// The items of one page, and the most of one page.
const LIMIT: usize = 10;
const LIMIT_MAX: usize = 50;
/// The most bytes of a query.
const QUERY_MAX: usize = 1024;
/// The layers that have knowledge.
pub(crate) const LAYERS: [Layer; 4] = [Layer::Project, Layer::Team, Layer::Org, Layer::Company];

/// The skills of the set `knowledge`.
pub(crate) fn set() -> SkillSet {
    let set = SkillSet::new("knowledge").skill(knowledge_query);
    let set = set.skill(knowledge_show).skill(knowledge_check);
    set.skill(knowledge_store).skill(knowledge_status)
}

/// The layers that have knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KnowledgeLayer {
    /// A project.
    Project,
    /// A team.
    Team,
    /// An organisation.
    Org,
    /// The whole tenant.
    Company,
}

impl From<KnowledgeLayer> for Layer {
    fn from(layer: KnowledgeLayer) -> Self {
        match layer {
            KnowledgeLayer::Project => Self::Project,
            KnowledgeLayer::Team => Self::Team,
            KnowledgeLayer::Org => Self::Org,
            KnowledgeLayer::Company => Self::Company,
        }
    }
}

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
    /// The head of its file at a place.
    fn head(&self, place: &ItemPlace) -> ItemHead {
        let (title, summary) = describe(place, &self.content);
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
#[skill(id = "knowledge_store", name = "Write knowledge", tags = ["knowledge", "store"])]
pub(crate) async fn knowledge_store(
    cx: &mut TaskContext<'_>,
    item: NewItem,
) -> AgentResult<OnRequestResult<StoredVersion>> {
    if item.content.len() > CONTENT_MAX {
        let text = format!(
            "`content` has {} bytes, expected at most {CONTENT_MAX}",
            item.content.len()
        );
        return Err(AgentError::domain("CONTENT_TOO_LONG", text));
    }
    let verb = match item.kind {
        ItemKind::Policy => Verb::StorePolicy,
        ItemKind::Adr | ItemKind::Pattern | ItemKind::Spec | ItemKind::Hindsight => {
            Verb::StoreKnowledge
        }
    };
    let permit = match permit(cx, verb, item.layer.into(), item.scope_id.as_deref()) {
        Ok(permit) => permit,
        Err(denial) => return rejected(&denial),
    };
    if item.kind == ItemKind::Policy {
        Policy::parse(&item.content)?;
    }
    let place = place(&permit, &item.path)?;
    let head = item.head(&place);
    let file = head.file(&item.content).map_err(error)?;
    let author = author(cx)?;
    let decide = |before: Option<&StoredItem>| {
        let commit = before.map(|before| before.commit.to_string());
        let is_mine =
            before.is_some_and(|before| before.content == item.content && before.head == head);
        if !is_mine && item.expect.is_some() && item.expect != commit {
            return Err(stale());
        }
        let decided = before.filter(|before| !is_mine && !is_open(before.head.status));
        if let Some(before) = decided {
            let status = before.head.status;
            let text = format!("the item is {status:?}; only drafts and proposals can be replaced");
            return Err(AgentError::domain("INVALID_STATUS", text));
        }
        Ok(NewVersion {
            file: file.clone(),
            message: &item.message,
            author: &author,
        })
    };
    let store = KnowledgeStore::of(cx)?;
    let commit = store.commit(&place, seconds(cx.now()), decide).await?;
    OnRequestResult::done(StoredVersion {
        path: place.path().as_str().to_owned(),
        commit: commit.to_string(),
    })
}

const fn is_open(status: ItemStatus) -> bool {
    matches!(status, ItemStatus::Draft | ItemStatus::Proposed)
}

fn stale() -> AgentError {
    AgentError::domain(
        "STALE_COMMIT",
        "the item has changed since the commit in `expect`",
    )
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
    author: String,
    at: String,
}

/// Shows an item of knowledge with its history.
#[skill(id = "knowledge_show", name = "Show knowledge", tags = ["knowledge", "show"])]
pub(crate) async fn knowledge_show(
    cx: &mut TaskContext<'_>,
    name: ItemName,
) -> AgentResult<ShownItem> {
    let scope = name.scope_id.as_deref();
    let permit = match permit(cx, Verb::ReadKnowledge, name.layer.into(), scope) {
        Ok(permit) => permit,
        Err(Denial::Unnamed(layer)) => return Err(unnamed(&Denial::Unnamed(layer))),
        Err(_) => return Ok(ShownItem::default()),
    };
    let place = place(&permit, &name.path)?;
    let at = name.at.as_deref().map(parsed).transpose()?;
    let store = KnowledgeStore::of(cx)?;
    let Some(item) = store.item(&place, at).await? else {
        return Ok(ShownItem::default());
    };
    let history = store.history(&place, item.commit, HISTORY).await?;
    let commit = item.commit.to_string();
    Ok(ShownItem {
        item: Some(summary(&place, item.head, commit.clone())),
        content: Some(item.content),
        commit: Some(commit),
        history: history
            .into_iter()
            .map(|version| ItemVersion {
                commit: version.commit.to_string(),
                message: version.message,
                author: version.author,
                at: Timestamp::from_millis(version.at_s.saturating_mul(1000)).to_rfc3339(),
            })
            .collect(),
    })
}

/// A query.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KnowledgeQuery {
    /// Words that title, summary, path or tags have.
    #[serde(default)]
    query: Option<String>,
    /// The kinds; all by default.
    #[serde(default)]
    kind: Vec<ItemKind>,
    /// The layers; all that the caller has by default.
    #[serde(default)]
    layers: Vec<KnowledgeLayer>,
    /// The status; `accepted` by default.
    #[serde(default)]
    status: Vec<ItemStatus>,
    /// An item needs one of these tags.
    #[serde(default)]
    tags: Vec<String>,
    /// The most items, 1 to 50; 10 by default.
    #[serde(default)]
    limit: Option<usize>,
    /// Where to continue.
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundItems {
    items: Vec<ItemSummary>,
    /// How many items match.
    total: usize,
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
)]
pub(crate) async fn knowledge_query(
    cx: &mut TaskContext<'_>,
    input: TextOr<KnowledgeQuery>,
) -> AgentResult<FoundItems> {
    let query = match input {
        TextOr::Data(query) => query,
        TextOr::Text(text) => KnowledgeQuery {
            query: Some(text),
            ..KnowledgeQuery::default()
        },
    };
    let limit = query.limit.unwrap_or(LIMIT);
    if limit == 0 || limit > LIMIT_MAX {
        let text = format!("`limit` is {limit}, expected 1 to {LIMIT_MAX}");
        return Err(AgentError::invalid_input(text));
    }
    let words = words(query.query.as_deref())?;
    let layers: Vec<Layer> = match query.layers.as_slice() {
        [] => LAYERS.to_vec(),
        named => named.iter().copied().map(Layer::from).collect(),
    };
    let seen: Vec<Permit> = layers
        .into_iter()
        .flat_map(|layer| permits(cx, Verb::ReadKnowledge, layer))
        .collect();
    let store = KnowledgeStore::of(cx)?;
    let mut found = store
        .items(|place, head| query.admits(&seen, &words, place, head))
        .await?;
    let total = found.len();
    if let Some(cursor) = &query.cursor {
        found.retain(|(place, _)| place.file() > *cursor);
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().map(|(place, _)| place.file());
    let items = found.into_iter().map(|(place, entry)| {
        let Entry { head, commit, .. } = entry;
        summary(&place, head, commit)
    });
    Ok(FoundItems {
        items: items.collect(),
        total,
        cursor: last.filter(|_| more),
    })
}

impl KnowledgeQuery {
    fn admits(
        &self,
        seen: &[Permit],
        words: &[String],
        place: &ItemPlace,
        head: &ItemHead,
    ) -> bool {
        let allowed = seen.iter().any(|permit| permit.covers(place));
        let status = match self.status.as_slice() {
            [] => head.status == ItemStatus::Accepted,
            named => named.contains(&head.status),
        };
        let text = [
            place.path().as_str(),
            &head.title,
            &head.summary,
            &head.tags.join(" "),
        ];
        let text = text.join(" ").to_lowercase();
        allowed
            && status
            && (self.kind.is_empty() || self.kind.contains(&head.kind))
            && (self.tags.is_empty() || self.tags.iter().any(|tag| head.tags.contains(tag)))
            && words.iter().all(|word| text.contains(word.as_str()))
    }
}

fn words(query: Option<&str>) -> AgentResult<Vec<String>> {
    let query = query.unwrap_or_default();
    if query.len() > QUERY_MAX {
        let text = format!(
            "`query` has {} bytes, expected at most {QUERY_MAX}",
            query.len()
        );
        return Err(AgentError::invalid_input(text));
    }
    let query = query.to_lowercase();
    let words = query.split(|letter: char| !letter.is_alphanumeric());
    Ok(words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect())
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
    /// The path of the item that replaces it, if `to` is `superseded`.
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
#[skill(id = "knowledge_status", name = "Decide on knowledge", tags = ["knowledge", "status"])]
pub(crate) async fn knowledge_status(
    cx: &mut TaskContext<'_>,
    change: NewItemStatus,
) -> AgentResult<OnRequestResult<ChangedStatus>> {
    let scope = change.scope_id.as_deref();
    let permit = match permit(cx, Verb::DecideKnowledge, change.layer.into(), scope) {
        Ok(permit) => permit,
        Err(denial) => return rejected(&denial),
    };
    let place = place(&permit, &change.path)?;
    let store = KnowledgeStore::of(cx)?;
    let not_found = || AgentError::domain("NOT_FOUND", "there is no such item");
    let before = store.item(&place, None).await?.ok_or_else(not_found)?;
    let from = before.head.status;
    let author = author(cx)?;
    let decide = |before: Option<&StoredItem>| {
        let before = before.ok_or_else(not_found)?;
        let status = before.head.status;
        // A run of this turn may have stored it.
        if status != change.to && !status.may_become(change.to) {
            let text = format!("an item that is {status:?} cannot become {:?}", change.to);
            return Err(AgentError::domain("INVALID_STATUS", text));
        }
        let head = ItemHead {
            status: change.to,
            superseded_by: change.superseded_by.clone(),
            ..before.head.clone()
        };
        Ok(NewVersion {
            file: head.file(&before.content).map_err(error)?,
            message: &change.message,
            author: &author,
        })
    };
    let commit = store.commit(&place, seconds(cx.now()), decide).await?;
    OnRequestResult::done(ChangedStatus {
        path: place.path().as_str().to_owned(),
        from,
        to: change.to,
        commit: commit.to_string(),
    })
}

fn rejected<T>(denial: &Denial) -> AgentResult<OnRequestResult<T>> {
    match denial {
        Denial::Unnamed(_) => Err(unnamed(denial)),
        denied => Ok(OnRequestResult::Rejected {
            reason: denied.to_string(),
        }),
    }
}

fn unnamed(denial: &Denial) -> AgentError {
    AgentError::domain("MISSING_IDENTIFIER", denial.to_string())
}

fn place(permit: &Permit, path: &str) -> AgentResult<ItemPlace> {
    let path = ItemPath::parse(path).map_err(|wrong| error(wrong.into()))?;
    let scope = (permit.layer() != Layer::Company).then(|| permit.scope());
    ItemPlace::new(permit.layer().name(), scope, path).map_err(|wrong| error(wrong.into()))
}

fn summary(place: &ItemPlace, head: ItemHead, commit: String) -> ItemSummary {
    ItemSummary {
        path: place.path().as_str().to_owned(),
        layer: Layer::named(place.layer()).unwrap_or(Layer::Company),
        scope_id: place.scope_id().map(str::to_owned),
        kind: head.kind,
        status: head.status,
        title: head.title,
        summary: head.summary,
        tags: head.tags,
        commit,
    }
}

/// The caller as git names an author. What git does not allow becomes `_`.
fn author(cx: &TaskContext<'_>) -> AgentResult<CommitAuthor> {
    let owner = &cx.caller().owner;
    let subject = owner.subject.as_str();
    let allowed =
        |letter: char| !letter.is_control() && !letter.is_whitespace() && !"<>".contains(letter);
    let clean: String = subject
        .chars()
        .take(64)
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect();
    CommitAuthor::new(&clean, &format!("{clean}@{}", owner.tenant)).map_err(error)
}

fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.as_millis() / 1000).unwrap_or_default()
}
