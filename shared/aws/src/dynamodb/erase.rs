//! Removes everything of a tenant, or of one of its subjects. An operator runs this job; no
//! function does.
//!
//! The table has no index by tenant, so the job reads the whole table. It removes every
//! item of the tenant or subject, then the objects, and repeats this until a round finds
//! nothing. A later round finds what was written during an earlier one. The job keeps no
//! position; an interrupted job starts again from the beginning.
//!
//! Contexts and lists name a subject in their partition keys; API keys, and shared documents
//! that go with their author, in an attribute. Of a task only the `META` item names it. So that
//! item goes last, after everything that can be found by it: an interrupted job finds the task
//! again.

use super::expression::{self, SdkItem};
use super::outcome;
use super::store::DynamoTable;
use crate::outcome::incomplete;
use crate::s3::S3Blobs;
use a2a_lambda_model::store::{Blobs, StoreError};
use a2a_lambda_model::task::{Owner, Subject, SubjectKey, TaskKey, TenantId};
use a2a_lambda_store::api_keys;
use a2a_lambda_store::item::{self, OWNER_SUBJECT};
use a2a_lambda_store::keys::{self, API_KEYS, Key, META, PK, SK};
use a2a_lambda_store::records::{self, ROOT, UPLOADS};
use a2a_lambda_store::table::{Item, Query, ReadTable as _, Table as _};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, WriteRequest};
use std::time::Duration;

/// If this many rounds all find something, a client still writes.
const ROUNDS: u32 = 5;
/// Deletes in one request: the limit of `BatchWriteItem`.
const BATCH: usize = 25;
/// Objects of one list, and of one delete request.
const LISTED: usize = 1000;
/// Attempts of one request. No client waits for the job, and it uses the capacity that
/// the table has left.
const PATIENCE: u32 = 10;
/// Time for all attempts of one request.
const LONGEST: Duration = Duration::from_secs(120);

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erasure {
    /// Items read from the whole table, of any tenant.
    pub read: u64,
    /// Items of the tenant or subject, removed or counted.
    pub items: u64,
    /// Objects of the tenant or subject, removed or counted.
    pub objects: u64,
    /// Rounds that have started.
    pub rounds: u32,
}

/// Why data may be left.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The table or the bucket does not answer. The job can be run again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Every round has found new data.
    #[error("there is still new data: take the credentials away, then run this again")]
    StillWritten,
}

/// Receives the progress after each request.
type OnProgress<'a> = &'a (dyn Fn(&Erasure) + Sync);

impl DynamoTable {
    /// Removes everything of `tenant` from the table and from `blobs`, until a round finds
    /// nothing. Turns that run meanwhile find their tasks gone and cannot write to them.
    /// A client that still has credentials of the tenant can create new tasks.
    ///
    /// # Errors
    /// [`EraseError`]. What was removed before the error stays removed; run the job again.
    pub async fn erase_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, EraseError> {
        EraseJob::new(self, tenant, None, blobs, report)
            .erase()
            .await
    }

    /// Counts what [`DynamoTable::erase_tenant`] would remove, at the cost of one
    /// of its rounds.
    ///
    /// # Errors
    /// [`StoreError`] when the table or the bucket does not answer.
    pub async fn count_tenant(
        &self,
        tenant: &TenantId,
        blobs: &dyn Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, StoreError> {
        EraseJob::new(self, tenant, None, blobs, report)
            .count()
            .await
    }

    /// Removes everything of `subject` from the table and from `blobs`, old versions of its
    /// objects included, until a round finds nothing. Turns that run meanwhile find their
    /// tasks gone and cannot write to them: the life of a task ends before its items go. What
    /// a tenant's subjects share stays: rates, slots and totals.
    ///
    /// # Errors
    /// [`EraseError`]. What was removed before the error stays removed; run the job again.
    pub async fn erase_subject(
        &self,
        subject: &SubjectKey,
        blobs: &S3Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, EraseError> {
        let one = Some((subject, blobs));
        EraseJob::new(self, subject.tenant(), one, blobs, report)
            .erase()
            .await
    }

    /// Counts what [`DynamoTable::erase_subject`] would remove, at the cost of one of its
    /// rounds.
    ///
    /// # Errors
    /// [`StoreError`] when the table or the bucket does not answer.
    pub async fn count_subject(
        &self,
        subject: &SubjectKey,
        blobs: &S3Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, StoreError> {
        let one = Some((subject, blobs));
        EraseJob::new(self, subject.tenant(), one, blobs, report)
            .count()
            .await
    }

    /// The table for a job that can wait.
    fn patient(&self) -> Self {
        let config = self.client.config();
        let retries = config.retry_config().cloned();
        let retries = retries.unwrap_or_else(RetryConfig::standard);
        let times = TimeoutConfig::builder().operation_timeout(LONGEST).build();
        let config = config.to_builder().timeout_config(times);
        let config = config.retry_config(retries.with_max_attempts(PATIENCE));
        Self {
            client: Client::from_conf(config.build()),
            name: self.name.clone(),
        }
    }

    /// Deletes at most [`BATCH`] items.
    async fn remove_batch(&self, items: &[Item]) -> Result<(), StoreError> {
        let mut requests = Vec::new();
        for item in items {
            let key = expression::attributes(Key::of(item)?.item());
            let removal = DeleteRequest::builder().set_key(Some(key)).build();
            let removal = removal.map_err(incomplete)?;
            requests.push(WriteRequest::builder().delete_request(removal).build());
        }
        while !requests.is_empty() {
            let count = requests.len();
            let output = self
                .client
                .batch_write_item()
                .request_items(&self.name, requests)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            let mut rest = output.unprocessed_items.unwrap_or_default();
            requests = rest.remove(&self.name).unwrap_or_default();
            if requests.len() == count {
                let why = "the table processed none of the deletes of a batch".to_owned();
                return Err(StoreError::Unavailable(why));
            }
        }
        Ok(())
    }
}

/// A job, and what it has found.
struct EraseJob<'a> {
    table: DynamoTable,
    tenant: &'a TenantId,
    /// The subject if not the whole tenant goes, and the bucket with the old versions of its
    /// objects.
    subject: Option<(&'a SubjectKey, &'a S3Blobs)>,
    blobs: &'a dyn Blobs,
    report: OnProgress<'a>,
    /// Whether the job removes what it finds, and does not only count it.
    removes: bool,
    so_far: Erasure,
}

impl<'a> EraseJob<'a> {
    fn new(
        table: &DynamoTable,
        tenant: &'a TenantId,
        subject: Option<(&'a SubjectKey, &'a S3Blobs)>,
        blobs: &'a dyn Blobs,
        report: OnProgress<'a>,
    ) -> Self {
        Self {
            table: table.patient(),
            tenant,
            subject,
            blobs,
            report,
            removes: false,
            so_far: Erasure::default(),
        }
    }

    async fn erase(mut self) -> Result<Erasure, EraseError> {
        self.removes = true;
        while self.so_far.rounds < ROUNDS {
            let (items, objects) = (self.so_far.items, self.so_far.objects);
            self.round().await?;
            if (self.so_far.items, self.so_far.objects) == (items, objects) {
                return Ok(self.so_far);
            }
        }
        Err(EraseError::StillWritten)
    }

    async fn count(mut self) -> Result<Erasure, StoreError> {
        self.round().await?;
        Ok(self.so_far)
    }

    /// Removes items before objects: then no item can refer to a removed object.
    async fn round(&mut self) -> Result<(), StoreError> {
        self.so_far.rounds += 1;
        let mut start = None;
        loop {
            let page = self.page(start).await?;
            self.so_far.read += u64::try_from(page.scanned_count).unwrap_or_default();
            let (items, tasks) = self.choose(page.items.unwrap_or_default());
            self.erase_items(&items).await?;
            for task in &tasks {
                self.erase_task(task).await?;
                (self.report)(&self.so_far);
            }
            (self.report)(&self.so_far);
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        let tenant = self.tenant.folder();
        let folders = match self.subject.map(|(subject, _)| subject.hash()) {
            None => [format!("{ROOT}{tenant}/"), format!("{UPLOADS}{tenant}/")],
            Some(hash) => [
                format!("{ROOT}{tenant}/C.{hash}."),
                format!("{UPLOADS}{tenant}/{hash}/"),
            ],
        };
        for below in folders {
            self.erase_objects(&below).await?;
            (self.report)(&self.so_far);
        }
        Ok(())
    }

    /// A page of the table: the keys of the tenant's items and API keys, with the subject if an
    /// attribute names it.
    async fn page(&self, start: Option<SdkItem>) -> Result<ScanOutput, StoreError> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        self.table
            .client
            .scan()
            .table_name(&self.table.name)
            .consistent_read(true)
            .filter_expression(
                "begins_with(PK, :below) OR (PK = :keys AND #tenant = :tenant) \
                 OR (begins_with(PK, :days) AND SK = :tenant)",
            )
            .expression_attribute_values(":days", text(keys::DAY_USES))
            .expression_attribute_values(":below", AttributeValue::S(keys::tenant(self.tenant)))
            .expression_attribute_values(":keys", text(API_KEYS))
            .expression_attribute_values(":tenant", text(self.tenant.as_str()))
            .projection_expression("PK, SK, #subject")
            .expression_attribute_names("#tenant", api_keys::TENANT)
            .expression_attribute_names("#subject", OWNER_SUBJECT)
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))
    }

    /// What goes of the tenant's items: items that can go in any order, and tasks.
    fn choose(&self, page: Vec<SdkItem>) -> (Vec<Item>, Vec<TaskKey>) {
        let page = page.into_iter().map(expression::item);
        let Some((subject, _)) = self.subject else {
            return (page.collect(), Vec::new());
        };
        let (mut items, mut tasks) = (Vec::new(), Vec::new());
        for item in page {
            let (Ok(partition), Ok(sort)) = (item::text(&item, PK), item::text(&item, SK)) else {
                continue;
            };
            if partition == API_KEYS || keys::is_of_shared_documents(partition) {
                if names(&item, subject) {
                    items.push(item);
                }
            } else if keys::is_of_subject(partition, subject) {
                items.push(item);
            } else if sort == META && names(&item, subject) {
                tasks.extend(keys::task_key_of(partition));
            }
        }
        (items, tasks)
    }

    /// Removes or counts the items with the keys of `items`.
    async fn erase_items(&mut self, items: &[Item]) -> Result<(), StoreError> {
        for keys in items.chunks(BATCH) {
            if self.removes {
                self.table.remove_batch(keys).await?;
            }
            self.so_far.items += keys.len() as u64;
        }
        Ok(())
    }

    /// Removes or counts a task: its objects, its idempotency keys, its items, and `META` last.
    /// Its life ends first: a turn that runs could add an item behind the list otherwise.
    async fn erase_task(&mut self, task: &TaskKey) -> Result<(), StoreError> {
        let [end, removal] = records::end_of_life(task);
        if self.removes {
            self.table.write(end.into()).await?.is_done()?;
        }
        self.erase_objects(&format!("{ROOT}{}/", task.folder()))
            .await?;
        let mut items = Vec::new();
        if let Some(meta) = self.table.get(&[keys::task(task)]).await?.first() {
            match records::to_task(meta) {
                Ok(record) => items.extend(record.keys.iter().map(|address| {
                    let key = keys::idempotency(task.tenant(), address);
                    key.item()
                })),
                // A damaged task goes too. Native TTL removes its idempotency keys.
                Err(error) => tracing::warn!(%error, "erasing a damaged task"),
            }
        }
        let mut query = Query {
            only: [PK, SK].map(str::to_owned).into(),
            ..keys::task_items(task).into()
        };
        loop {
            let page = self.table.query(&query).await?;
            let is_other = |it: &Item| item::text(it, SK).is_ok_and(|sort| sort != META);
            items.extend(page.items.into_iter().filter(is_other));
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        self.erase_items(&items).await?;
        let is_one = !self.removes || self.table.write(removal.into()).await?.is_done()?;
        self.so_far.items += u64::from(is_one);
        Ok(())
    }

    /// Removes the objects below `below`, those of a subject with all their versions, or counts
    /// the objects.
    async fn erase_objects(&mut self, below: &str) -> Result<(), StoreError> {
        let mut after: Option<String> = None;
        loop {
            let names = self.blobs.keys(below, after.as_deref(), LISTED).await?;
            if self.removes && !names.is_empty() {
                self.blobs.remove(&names).await?;
            }
            self.so_far.objects += names.len() as u64;
            if names.len() < LISTED {
                break;
            }
            after = names.last().cloned();
        }
        match self.subject {
            Some((_, blobs)) if self.removes => blobs.purge_below(below).await.map(|_| ()),
            _ => Ok(()),
        }
    }
}

/// Whether an attribute of the item names the subject. The item is of its tenant.
fn names(item: &Item, subject: &SubjectKey) -> bool {
    item::text(item, OWNER_SUBJECT)
        .ok()
        .and_then(|name| Subject::parse(name).ok())
        .is_some_and(|name| {
            subject.is_of(&Owner {
                tenant: subject.tenant().clone(),
                subject: name,
            })
        })
}
