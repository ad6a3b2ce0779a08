//! Checks threads.

use super::Oracle;
use crate::fleet;
use a2a_lambda::store::{TaskWrite, ThreadStatus, ThreadWrite};
use a2a_lambda::task::ContextId;
use serde_json::Value;
use std::collections::BTreeSet;

/// The stored thread of a context.
#[derive(Debug, Default)]
pub(super) struct Talk {
    version: u64,
    /// The session values in it, by key.
    keys: BTreeSet<String>,
    /// Whether it is expired or deleted. A later write begins another thread.
    over: bool,
    /// The member that the next release has added.
    added: Option<Value>,
}

impl Oracle {
    /// A thread was written without a task. Its values stay, unless the write says that they
    /// have expired.
    pub(crate) fn thread_kept(&mut self, write: &ThreadWrite) {
        let record = &write.record;
        let context = record.context_id.to_string();
        self.note(|| format!("thread {context} v{} {:?}", record.version, record.status));
        let talk = self.threads.entry(context).or_default();
        if record.version <= talk.version {
            return; // A repeat of the same write.
        }
        let skipped = record.version != talk.version + 1;
        talk.version = record.version;
        if record.state_version == 0 {
            talk.keys.clear();
        }
        if self.mixed
            && let Some(fault) = self.check_added_to(write)
        {
            self.broken(fault);
        }
        if skipped {
            self.broken(format!(
                "G3: a write of thread {} is lost",
                record.context_id
            ));
        }
        self.continues(write);
    }

    /// A thread was removed.
    pub(crate) fn thread_gone(&mut self, id: &ContextId) {
        self.note(|| format!("thread {id} is gone"));
        self.threads.remove(&id.to_string());
    }

    fn continues(&mut self, write: &ThreadWrite) {
        let context = write.record.context_id.to_string();
        let talk = self.threads.entry(context).or_default();
        talk.over = write.record.status != ThreadStatus::Active;
    }

    /// Checks that no release loses or changes the member that the next release added to a
    /// thread.
    fn check_added_to(&mut self, write: &ThreadWrite) -> Option<String> {
        let record = &write.record;
        let talk = self.threads.entry(record.context_id.to_string());
        let talk = talk.or_default();
        let now = fleet::added_to_thread(record);
        let before = std::mem::replace(&mut talk.added, now.clone());
        let before = before.filter(|_| !talk.over);
        let same = fleet::follows(before.as_ref(), now.as_ref(), Some(&write.write));
        (!same && !talk.over).then(|| {
            let id = &record.context_id;
            format!("G17: the later release's member in thread {id} was {before:?} and is {now:?}")
        })
    }

    /// Session keys of a thread are added, never lost.
    pub(super) fn check_thread(&mut self, write: &TaskWrite, faults: &mut Vec<String>) {
        let Some(thread) = &write.thread else { return };
        if self.mixed {
            faults.extend(self.check_added_to(thread));
        }
        let context = thread.record.context_id.to_string();
        let talk = self.threads.entry(context.clone()).or_default();
        let session = &thread.record.state.session;
        let lost = talk.keys.iter().any(|key| !session.contains_key(key));
        let expired = thread
            .record
            .updated_at
            .since(thread.record.created_at)
            .as_secs()
            > 3000;
        if thread.record.version != talk.version + 1 || (lost && !expired && !talk.over) {
            faults.push(format!("G3: a write of thread {context} is lost"));
        }
        talk.version = thread.record.version;
        talk.keys = session.keys().cloned().collect();
        self.continues(thread);
    }
}
