//! Removes everything of one subject of a tenant. An operator runs this job; no function does.
//!
//! The job reads the whole table, as the erasure of a tenant does. Contexts and lists name
//! the subject in their partition keys; API keys, and shared documents that go with their author,
//! in an attribute. Of a task only the `META` item names it. So that item goes last, after everything that can be found by it: an
//! interrupted job finds the task again.

use super::erase_tenant::{EraseError, EraseMode, Erasure, OnProgress, ROUNDS, erase_objects};
use super::store::DynamoTable;
use crate::s3::S3Blobs;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{Owner, Subject, SubjectKey, TaskKey};
use a2a_lambda_store::item::{self, OWNER_SUBJECT};
use a2a_lambda_store::keys::{self, API_KEYS, META, PK, SK};
use a2a_lambda_store::records::{self, ROOT, UPLOADS};
use a2a_lambda_store::table::{Item, Query, ReadTable as _, Table as _};

/// A job and what it does.
struct SubjectJob<'a> {
    subject: &'a SubjectKey,
    blobs: &'a S3Blobs,
    does: EraseMode,
    report: OnProgress<'a>,
}

/// What a page of the table holds of a subject.
#[derive(Default)]
struct Found {
    /// Items that can go in any order.
    items: Vec<Item>,
    tasks: Vec<TaskKey>,
}

impl DynamoTable {
    /// Removes everything of `subject` from the table and from `blobs`, old versions of its
    /// objects included, until a round finds nothing. Turns that run meanwhile find their
    /// tasks gone and cannot write to them: the life of a task ends before its items go. What a tenant's subjects share stays: rates,
    /// slots and totals.
    ///
    /// # Errors
    /// [`EraseError`]. What was removed before the error stays removed; run the job again.
    pub async fn erase_subject(
        &self,
        subject: &SubjectKey,
        blobs: &S3Blobs,
        report: OnProgress<'_>,
    ) -> Result<Erasure, EraseError> {
        let job = SubjectJob {
            subject,
            blobs,
            does: EraseMode::Remove,
            report,
        };
        let (table, mut so_far) = (self.patient(), Erasure::default());
        while so_far.rounds < ROUNDS {
            let (items, objects) = (so_far.items, so_far.objects);
            table.subject_round(&job, &mut so_far).await?;
            if (so_far.items, so_far.objects) == (items, objects) {
                return Ok(so_far);
            }
        }
        Err(EraseError::StillWritten)
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
        let job = SubjectJob {
            subject,
            blobs,
            does: EraseMode::Count,
            report,
        };
        let mut so_far = Erasure::default();
        self.patient().subject_round(&job, &mut so_far).await?;
        Ok(so_far)
    }

    async fn subject_round(
        &self,
        job: &SubjectJob<'_>,
        so_far: &mut Erasure,
    ) -> Result<(), StoreError> {
        so_far.rounds += 1;
        let mut start = None;
        loop {
            let page = self.tenant_page(job.subject.tenant(), start).await?;
            so_far.read += page.read;
            let contents = Found::in_page(page.keys, job.subject);
            self.erase_items(&contents.items, job.does, so_far).await?;
            for task in &contents.tasks {
                self.erase_task(job, task, so_far).await?;
                (job.report)(so_far);
            }
            (job.report)(so_far);
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        let (tenant, hash) = (job.subject.tenant().folder(), job.subject.hash());
        let contexts = format!("{}{tenant}/C.{hash}.", ROOT);
        let uploads = format!("{}{tenant}/{hash}/", UPLOADS);
        for below in [contexts, uploads] {
            job.erase_below(&below, so_far).await?;
            (job.report)(so_far);
        }
        Ok(())
    }

    /// Removes or counts a task: its objects, its idempotency keys, its items, and `META` last.
    /// Its life ends first: a turn that runs could add an item behind the list otherwise.
    async fn erase_task(
        &self,
        job: &SubjectJob<'_>,
        task: &TaskKey,
        so_far: &mut Erasure,
    ) -> Result<(), StoreError> {
        let [end, removal] = records::end_of_life(task);
        if job.does == EraseMode::Remove {
            self.write(end.into()).await?.is_done()?;
        }
        let below = format!("{}{}/", ROOT, task.folder());
        job.erase_below(&below, so_far).await?;
        let mut items = Vec::new();
        if let Some(meta) = self.get(&[keys::task(task)]).await?.first() {
            match records::to_task(meta) {
                Ok(record) => items.extend(record.held_keys().iter().map(|address| {
                    let key = keys::idempotency(task.tenant(), address);
                    key.item()
                })),
                // A damaged task goes too. Native TTL removes its idempotency keys.
                Err(error) => tracing::warn!(%error, "erasing a damaged task"),
            }
        }
        let all = self.every_key_of(task).await?.into_iter();
        items.extend(all.filter(|it| item::text(it, SK).is_ok_and(|sort| sort != META)));
        self.erase_items(&items, job.does, so_far).await?;
        let is_one = job.does == EraseMode::Count || self.write(removal.into()).await?.is_done()?;
        so_far.items += u64::from(is_one);
        Ok(())
    }

    /// The keys of all items of a task.
    async fn every_key_of(&self, task: &TaskKey) -> Result<Vec<Item>, StoreError> {
        let mut query = Query {
            only: [PK, SK].map(str::to_owned).into(),
            ..keys::task_items(task).into()
        };
        let mut items = Vec::new();
        loop {
            let page = self.query(&query).await?;
            items.extend(page.items);
            query.start = page.next;
            if query.start.is_none() {
                return Ok(items);
            }
        }
    }
}

impl SubjectJob<'_> {
    /// Removes the objects below `below` with all their versions, or counts the objects.
    async fn erase_below(&self, below: &str, so_far: &mut Erasure) -> Result<(), StoreError> {
        erase_objects(below, self.blobs, self.does, so_far).await?;
        if self.does == EraseMode::Remove {
            self.blobs.purge_below(below).await?;
        }
        Ok(())
    }
}

impl Found {
    /// What belongs to `subject` among the items of its tenant.
    fn in_page(page: Vec<Item>, subject: &SubjectKey) -> Self {
        let mut contents = Self::default();
        for item in page {
            let (Ok(partition), Ok(sort)) = (item::text(&item, PK), item::text(&item, SK)) else {
                continue;
            };
            if partition == API_KEYS || keys::is_of_shared_documents(partition) {
                if names(&item, subject) {
                    contents.items.push(item);
                }
            } else if keys::is_of_subject(partition, subject) {
                contents.items.push(item);
            } else if sort == META && names(&item, subject) {
                contents.tasks.extend(keys::task_key_of(partition));
            }
        }
        contents
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
