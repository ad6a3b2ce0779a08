//! `GetTask`, and how a record becomes an answer.

use super::blob::mark;
use super::sink::Sink;
use super::{EngineError, Reader};
use crate::auth::Caller;
use crate::store::Wanted;
use crate::task::{GetQuery, LoggedEvent, Refusal, Task, TaskId, TaskRecord};

impl Reader {
    /// The task as it stands.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if it is absent, expired or another's.
    pub async fn get(&self, caller: &Caller, query: &GetQuery) -> Result<Task, EngineError> {
        let now = self.clock.now();
        let head = self.tasks.head(&caller.owner, &query.id, now).await?;
        let head = head.filter(|head| !head.hidden);
        let mut room = self.room(1);
        let wanted = Wanted {
            history_length: query.history_length,
            artifacts: true,
            bytes: room.left(),
        };
        let head = head.ok_or(Refusal::TaskNotFound)?;
        // What the answer cannot hold is not read.
        let found = self.tasks.excerpt(head, wanted, now).await?;
        let found = found.ok_or(Refusal::TaskNotFound)?;
        let mut task = found.record.view(query.history_length, true);
        let fitted = self.fit(&mut task, &mut room).await;
        self.unless_deleted(&found.record, fitted).await?;
        if !found.complete {
            mark(&mut task.metadata);
        }
        Ok(task)
    }

    /// The stored task; foreign looks absent.
    pub(super) async fn load(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<TaskRecord, EngineError> {
        let found = self.load_any(caller, id).await?;
        if found.hidden {
            return Err(Refusal::TaskNotFound.into());
        }
        Ok(found)
    }

    /// The same, and also a task that only keeps a reply.
    pub(super) async fn load_any(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<TaskRecord, EngineError> {
        let found = self.tasks.load(&caller.owner, id, self.clock.now()).await?;
        Ok(found.ok_or(Refusal::TaskNotFound)?)
    }

    /// What a client sees of a record.
    pub(super) async fn answer(
        &self,
        record: &TaskRecord,
        history_length: usize,
    ) -> Result<Task, EngineError> {
        let mut task = record.view(history_length, true);
        let fitted = self.fit(&mut task, &mut self.room(1)).await;
        self.unless_deleted(record, fitted).await?;
        Ok(task)
    }

    /// What came of showing `record`. A deletion removes a task's objects too, so
    /// an answer on its way may miss one: then the task is not found.
    async fn unless_deleted(
        &self,
        record: &TaskRecord,
        shown: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if shown.as_ref().is_err_and(EngineError::is_corrupt) {
            let (owner, now) = (record.owner(), self.clock.now());
            let head = self.tasks.head(owner, record.id(), now).await?;
            if !head.is_some_and(|head| head.is_same_task(record)) {
                return Err(Refusal::TaskNotFound.into());
            }
        }
        shown
    }

    /// Shows a stream what it has not seen of a stored record: the task if it
    /// has seen nothing, else the events that followed.
    pub(super) async fn show(
        &self,
        record: &TaskRecord,
        sink: &mut Sink,
    ) -> Result<(), EngineError> {
        if !sink.is_stream() || record.hidden {
            return Ok(());
        }
        let Some(shown) = sink.shown() else {
            let task = self.answer(record, sink.history_length()).await?;
            sink.task(task, record.last_seq);
            return Ok(());
        };
        let events = record.events_after(shown).cloned().collect();
        self.show_events(record, events, sink).await
    }

    /// Shows the next events of `record`'s task.
    pub(super) async fn show_events(
        &self,
        record: &TaskRecord,
        events: Vec<LoggedEvent>,
        sink: &mut Sink,
    ) -> Result<(), EngineError> {
        for mut event in events {
            if sink.is_over() {
                break;
            }
            let fitted = self.fit_event(&mut event.event).await;
            self.unless_deleted(record, fitted).await?;
            sink.event(record.id(), record.context_id(), event);
        }
        Ok(())
    }
}
