//! What a task and its caller have stored: the open slot, values, session values with the turn
//! that wrote each, and documents.
//!
//! The page shows no more of it than a trace does: what a turn has saved that began with
//! credentials, or with a message that its skill does not keep, is a name without its value.

use crate::traces::Traces;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::runtime::stores;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::model::ModelRequest;
use a2a_lambda::skill::{AgentDefinition, TraceRow};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::documents::{DocumentCollection, DocumentOwner, Documents};
use a2a_lambda::store::keys::{self, PK};
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::task::{Owner, SkillId, SubjectKey, TaskId, TaskRecord, TaskState, Timestamp};
use a2a_lambda_page::rows::tasks_after;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Documents of an answer.
const DOCUMENTS: usize = 100;
/// Reads of the table that look for collections of documents, each of at most 1 MB.
const READS: usize = 64;

/// Reads what tasks and their callers have stored.
#[derive(Debug)]
pub(super) struct StateReader {
    tasks: RecordReader,
    documents: Documents,
    clients: AwsClients,
    table: String,
    traces: Arc<Traces>,
    /// The skills that keep no input.
    unkept: BTreeSet<&'static str>,
}

/// The turn that wrote a session value.
struct Writer {
    end: i64,
    is_hidden: bool,
    turn: Value,
}

impl StateReader {
    pub(super) fn new(
        agent: &AgentDefinition,
        settings: &Settings,
        clients: &AwsClients,
        traces: &Arc<Traces>,
    ) -> Self {
        let records = stores(clients, settings).0;
        let skills = agent.manifest().skills.iter().map(|it| it.metadata);
        Self {
            tasks: records.reader().clone(),
            documents: Documents::new(records.table()),
            clients: clients.clone(),
            table: settings.table.clone(),
            traces: Arc::clone(traces),
            unkept: skills
                .filter(|it| !it.keeps_input)
                .map(|it| it.id)
                .collect(),
        }
    }

    /// The state of a task; `None` if the owner has no such task.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub(super) async fn read(
        &self,
        owner: &Owner,
        id: &TaskId,
    ) -> Result<Option<Value>, StoreError> {
        let now = SystemClock.now();
        let Some(record) = self.tasks.load(owner, id, now).await? else {
            return Ok(None);
        };
        let is_hidden = self.hides(&record);
        let slot = record.saved.slot.as_ref();
        let slot = slot.map(|slot| entry("slot", &slot.value, is_hidden));
        let values = record.saved.data.iter();
        let values = values.map(|(name, value)| entry(name, value, is_hidden));
        let (session, hides_any) = self.session(&record, now).await?;
        // A document does not say which turn wrote it.
        let hides_any = hides_any || !self.unkept.is_empty();
        let (documents, is_cut) = self.documents(owner, hides_any, now).await?;
        Ok(Some(json!({
            "slot": slot,
            "values": values.collect::<Vec<_>>(),
            "session": session,
            "documents": documents,
            "isCut": is_cut,
        })))
    }

    /// Whether a turn of the task began with credentials, or with a message that is not kept.
    fn hides(&self, record: &TaskRecord) -> bool {
        let is_unkept = |skill: &SkillId| self.unkept.contains(skill.as_str());
        let mut before = record.transitions.iter().rev().skip(1);
        record.skill.as_ref().is_some_and(is_unkept)
            || record.fingerprint.is_some()
            || before.any(|it| it.state == TaskState::AuthRequired)
    }

    /// The session values of the context of `record`, with their writers among its newest tasks, and whether a task of it hides its values.
    async fn session(
        &self,
        record: &TaskRecord,
        now: Timestamp,
    ) -> Result<(Vec<Value>, bool), StoreError> {
        let (owner, context) = (&record.owner, &record.context_id);
        let page = tasks_after(&self.tasks, owner, Some(context), None, now);
        let (mut writers, mut hides_any) = (BTreeMap::new(), false);
        for task in page.await?.records {
            let is_hidden = self.hides(&task);
            hides_any |= is_hidden;
            self.add_writers(&task, is_hidden, &mut writers).await;
        }
        let thread = self.tasks.load_thread(owner, context).await?;
        let thread = thread.filter(|it| it.lives(now) && now < it.state_expires_at);
        let session = thread.map(|it| it.state.session).unwrap_or_default();
        let values = session.iter().map(|(name, value)| {
            let writer = writers.get(name);
            let is_hidden = writer.map_or(hides_any, |it| it.is_hidden);
            let mut value = entry(name, value, is_hidden);
            value.insert("writer".to_owned(), json!(writer.map(|it| &it.turn)));
            value
        });
        Ok((values.map(Value::Object).collect(), hides_any))
    }

    /// Adds the turns of a task that wrote session values, as its trace says.
    async fn add_writers(
        &self,
        task: &TaskRecord,
        is_hidden: bool,
        writers: &mut BTreeMap<String, Writer>,
    ) {
        let key = (task.key(), task.incarnation.clone());
        let rows = self.traces.of(key).await;
        let id =
            |row: &Map<String, Value>| row.get("id").and_then(Value::as_str).map(str::to_owned);
        let turns = rows
            .iter()
            .filter_map(|row| Some((id(row)?, row.get("turn")?)));
        let turns: BTreeMap<String, &Value> = turns.collect();
        for row in &rows {
            let names = row.get("session").and_then(Value::as_array);
            let end = row.get("end").and_then(Value::as_i64).unwrap_or_default();
            let run = id(row).unwrap_or_default();
            let run = run.split('.').next().unwrap_or_default();
            for name in names.into_iter().flatten().filter_map(Value::as_str) {
                if writers.get(name).is_some_and(|other| other.end > end) {
                    continue;
                }
                let turn = json!({"task": task.id.as_str(), "turn": turns.get(run), "at": end});
                let writer = Writer {
                    end,
                    is_hidden,
                    turn,
                };
                writers.insert(name.to_owned(), writer);
            }
        }
    }

    /// The documents of the caller and those of the tenant, and whether there are more.
    async fn documents(
        &self,
        owner: &Owner,
        is_hidden: bool,
        now: Timestamp,
    ) -> Result<(Vec<Value>, bool), StoreError> {
        let owners = [
            (DocumentOwner::Subject(SubjectKey::of(owner)), false),
            (DocumentOwner::Tenant(owner.tenant.clone()), true),
        ];
        let (partitions, mut is_cut) = self.partitions().await?;
        let mut documents = Vec::new();
        for (owner, is_shared) in owners {
            let collection = |name: &str| {
                let collection = DocumentCollection::new(owner.clone(), name);
                collection.map_err(|error| StoreError::Corrupt(error.to_string()))
            };
            let prefix = keys::documents(&collection("*")?);
            let prefix = prefix.key().trim_end_matches('*');
            for name in partitions.iter().filter_map(|it| it.strip_prefix(prefix)) {
                let limit = DOCUMENTS.saturating_sub(documents.len());
                let collection = collection(name)?;
                let page = self
                    .documents
                    .documents(&collection, None, limit.max(1), now);
                let page = page.await?;
                is_cut |= page.next.is_some() || page.documents.len() > limit;
                documents.extend(page.documents.into_iter().take(limit).map(|document| {
                    let value = serde_json::from_str(&document.text).unwrap_or_default();
                    let mut value = entry(document.key.as_str(), &value, is_hidden);
                    value.insert("collection".to_owned(), name.into());
                    value.insert("isShared".to_owned(), is_shared.into());
                    Value::Object(value)
                }));
            }
        }
        Ok((documents, is_cut))
    }

    /// The partitions of the table, and whether it may have more. Nothing lists the collections of
    /// an owner, since no skill has to know them.
    async fn partitions(&self) -> Result<(BTreeSet<String>, bool), StoreError> {
        let (mut partitions, mut start) = (BTreeSet::new(), None);
        for _ in 0..READS {
            let scan = self.clients.dynamodb.scan().table_name(&self.table);
            let scan = scan
                .projection_expression(PK)
                .set_exclusive_start_key(start);
            let page = scan.send().await;
            let page = page.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let keys = page
                .items()
                .iter()
                .filter_map(|item| item.get(PK)?.as_s().ok());
            partitions.extend(keys.cloned());
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok((partitions, false));
            }
        }
        Ok((partitions, true))
    }
}

/// A value with its name, cut as in a trace, without what is a secret by its name.
fn entry(name: &str, value: &Value, is_hidden: bool) -> Map<String, Value> {
    let request = ModelRequest {
        options: Map::from_iter([(name.to_owned(), value.clone())]),
        ..ModelRequest::default()
    };
    let mut row = TraceRow::default();
    if !is_hidden {
        let options = request.without_secrets().options;
        row.add("value", &options.get(name));
    }
    let mut entry = row.content;
    entry.insert("name".to_owned(), name.into());
    entry.insert("isHidden".to_owned(), is_hidden.into());
    entry.insert("isCut".to_owned(), row.facts.contains_key("cut").into());
    entry
}
