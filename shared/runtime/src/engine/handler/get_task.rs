//! `GetTask`, and the conversion of a record to a response.

use crate::auth::Caller;
use crate::engine::error::EngineError;
use crate::engine::files::mark;
use crate::engine::reader::Reader;
use crate::engine::turn::event_sink::EventSink;
use crate::store::Projection;
use crate::task::{A2aError, GetQuery, LoggedEvent, Part, Task, TaskId, TaskRecord};

impl Reader {
    /// The current task.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] if it is absent, expired or another caller's.
    pub async fn get(&self, caller: &Caller, query: &GetQuery) -> Result<Task, EngineError> {
        let now = self.clock.now();
        let head = self.records.head(&caller.owner, &query.id, now).await?;
        let mut budget = self.response_budget(1);
        let projection = Projection {
            history_length: query.history_length,
            artifacts: true,
            bytes: budget.remaining,
        };
        let head = head.ok_or(A2aError::TaskNotFound)?;
        // The store does not read what the response cannot hold.
        let excerpt = self.records.project(head, projection, now).await?;
        let excerpt = excerpt.ok_or(A2aError::TaskNotFound)?;
        let mut task = excerpt.record.view(query.history_length, true);
        let result = self.fit(&mut task, &mut budget).await;
        self.or_not_found(&excerpt.record, result).await?;
        if !excerpt.complete {
            mark(&mut task.metadata);
        }
        Ok(task)
    }

    /// The stored task. Another caller's task looks absent.
    pub(in crate::engine) async fn load(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<TaskRecord, EngineError> {
        let now = self.clock.now();
        let record = self.records.load(&caller.owner, id, now).await?;
        Ok(record.ok_or(A2aError::TaskNotFound)?)
    }

    /// The task that a client sees of a record.
    pub(in crate::engine) async fn answer(
        &self,
        record: &TaskRecord,
        history_length: usize,
    ) -> Result<Task, EngineError> {
        let mut task = record.view(history_length, true);
        let result = self.fit(&mut task, &mut self.response_budget(1)).await;
        self.or_not_found(record, result).await?;
        Ok(task)
    }

    /// Returns `result`, or [`A2aError::TaskNotFound`] if the task was deleted meanwhile. A
    /// deletion removes the task's objects too, so a response in flight may miss one.
    async fn or_not_found(
        &self,
        record: &TaskRecord,
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if result.as_ref().is_err_and(EngineError::is_unreadable) {
            let (owner, now) = (&record.owner, self.clock.now());
            let head = self.records.head(owner, &record.id, now).await?;
            if !head.is_some_and(|head| head.is_same_task(record)) {
                return Err(A2aError::TaskNotFound.into());
            }
        }
        result
    }

    /// Sends a stream what it has not shown of a record: the task if it has shown
    /// nothing, else the later events.
    pub(in crate::engine) async fn show(
        &self,
        record: &TaskRecord,
        sink: &mut EventSink,
    ) -> Result<(), EngineError> {
        if !sink.is_stream() {
            return Ok(());
        }
        // A2A 1.0 §3.1.2: the first event of a stream is the task.
        let Some(last_seq) = sink.last_seq() else {
            let task = self.answer(record, sink.history_length).await?;
            sink.task(task, record.last_seq);
            return Ok(());
        };
        let events = record.events_after(last_seq).cloned().collect();
        self.show_events(record, record.reads_text_alone, events, sink)
            .await
    }

    /// Sends a stream the next events of the task of `record`. `as_text`: the client of its
    /// last send reads text alone.
    pub(in crate::engine) async fn show_events(
        &self,
        record: &TaskRecord,
        as_text: bool,
        events: Vec<LoggedEvent>,
        sink: &mut EventSink,
    ) -> Result<(), EngineError> {
        for mut event in events {
            if sink.is_over() {
                break;
            }
            if as_text {
                event.event.parts_mut().for_each(Part::show_as_text);
            }
            let result = self.fit_event(&mut event.event).await;
            self.or_not_found(record, result).await?;
            sink.event(&record.id, &record.context_id, event);
        }
        Ok(())
    }
}
