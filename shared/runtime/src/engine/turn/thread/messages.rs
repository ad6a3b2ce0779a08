//! Reads the messages of a context: those of its tasks, and the events that skills added.

use super::{TurnThread, messages_of};
use crate::clock::lock;
use crate::store::{Projection, StoreError, ThreadRecord};
use crate::task::{Message, TaskId, TaskRecord, Timestamp};
use crate::thread::Thread;

/// A thread shows at most this many messages of its context.
const REBUILT: usize = 100;
/// At most this many other tasks of the context are read for it.
const TASKS: usize = 20;
/// About this many bytes are read for it outside the tasks' own DynamoDB items.
const SPOKEN: usize = 8 * 1024 * 1024;
/// At most this many pages of tasks are read for it: expired tasks make a page short.
const PAGES: usize = 10;

/// The messages of one task.
struct TaskMessages {
    task: TaskId,
    messages: Vec<Message>,
}

impl TurnThread<'_> {
    /// What was said in the context so far, oldest first: the messages of each task,
    /// followed by the events that skills added in that task.
    pub(in crate::engine) async fn thread(&self) -> Result<Thread, StoreError> {
        let record = self.load_any_thread().await?;
        let over = record.as_ref().is_some_and(ThreadRecord::is_cleared);
        let record = record.filter(|thread| self.is_own(thread));
        let began = record.as_ref().map(|thread| thread.created_at);
        let began = self.began.or(began).unwrap_or(self.created_at);
        let mut events = self.unexpired_state(record).unwrap_or_default().events;
        events.extend(lock(&self.operations).events());
        let (others, cut) = if over {
            (Vec::new(), false)
        } else {
            self.others(began).await?
        };
        let task_messages = TaskMessages {
            task: self.task.clone(),
            messages: self.messages.clone(),
        };
        let tasks = others.into_iter().chain([task_messages]);
        let (messages, surplus) = merge_events(tasks, events);
        let thread: Thread = messages.into_iter().collect();
        Ok(if cut || surplus { thread.cut() } else { thread })
    }

    /// The messages of the other tasks of the context that began at `began`, oldest
    /// first, and whether some may be missing. The rest of a task is dropped before the
    /// next one is read.
    async fn others(&self, began: Timestamp) -> Result<(Vec<TaskMessages>, bool), StoreError> {
        let now = self.commits.reader.clock.now();
        let (heads, mut cut) = self.other_tasks(began, now).await?;
        let (mut messages, mut bytes) = (REBUILT, SPOKEN);
        let mut tasks = Vec::new();
        for head in heads {
            let projection = Projection {
                history_length: messages,
                artifacts: false,
                bytes,
            };
            cut |= count_messages(&head) > messages;
            let excerpt = self.commits.records.project(head, projection, now).await?;
            let Some(excerpt) = excerpt else { continue };
            cut |= !excerpt.complete;
            bytes = bytes.saturating_sub(excerpt.read);
            let task_messages = TaskMessages {
                messages: messages_of(&excerpt.record),
                task: excerpt.record.id.clone(),
            };
            messages = messages.saturating_sub(task_messages.messages.len());
            tasks.push(task_messages);
        }
        tasks.reverse();
        Ok((tasks, cut))
    }

    /// The heads of the newest other tasks of the context that began at `began`, newest
    /// first, and whether there may be more.
    async fn other_tasks(
        &self,
        began: Timestamp,
        now: Timestamp,
    ) -> Result<(Vec<TaskRecord>, bool), StoreError> {
        let (owner, context) = (&self.owner, &self.context);
        let (mut tasks, mut after, mut message_count) = (Vec::new(), None, 0);
        for _ in 0..PAGES {
            // One task more than needed shows whether there are more. The pointer to this task
            // may be there already, before the task.
            let records = &self.commits.records;
            let page = records.tasks_in(owner, context, Some(&self.task), after, TASKS + 2);
            let (heads, next) = page.await?;
            for task in heads {
                if self.commits.is_earlier(context, task.created_at, began) {
                    // All tasks after this one are older still.
                    return Ok(cut(tasks, false));
                }
                if !task.is_expired(now) {
                    message_count += count_messages(&task);
                    tasks.push(task);
                }
            }
            after = next;
            if after.is_none() || tasks.len() > TASKS || message_count >= REBUILT {
                break;
            }
        }
        Ok(cut(tasks, after.is_some()))
    }
}

/// At most [`TASKS`] of these tasks, and whether there may be more.
fn cut(mut tasks: Vec<TaskRecord>, more: bool) -> (Vec<TaskRecord>, bool) {
    let more = more || tasks.len() > TASKS;
    tasks.truncate(TASKS);
    (tasks, more)
}

/// The messages of tasks, at most [`REBUILT`], and whether there were more. The events
/// of a task follow its messages. Events of tasks that are not in the list come first.
fn merge_events(
    tasks: impl Iterator<Item = TaskMessages>,
    mut events: Vec<Message>,
) -> (Vec<Message>, bool) {
    let mut all = Vec::new();
    for TaskMessages { task, messages } in tasks {
        let of_task = |event: &Message| event.task_id.as_ref() == Some(&task);
        let (mine, rest) = events.into_iter().partition(of_task);
        events = rest;
        all.push((messages, mine));
    }
    let count: usize = all.iter().map(|(messages, _)| messages.len()).sum();
    let mut surplus = count.saturating_sub(REBUILT);
    let more = surplus > 0;
    let mut sequence: Vec<Message> = events;
    for (messages, mine) in all {
        let skip = surplus.min(messages.len());
        surplus -= skip;
        sequence.extend(messages.into_iter().skip(skip));
        sequence.extend::<Vec<Message>>(mine);
    }
    (sequence, more)
}

/// How many messages a task has, by its head.
fn count_messages(head: &TaskRecord) -> usize {
    let apart = if head.is_partial {
        head.layout.messages_moved()
    } else {
        0
    };
    apart + head.history.len() + usize::from(head.status.message.is_some())
}
