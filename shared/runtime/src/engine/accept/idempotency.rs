//! Recognises repeated sends by their idempotency key. `repeat` recognises a message without
//! one.
//!
//! A keyed send looks up its key before everything else, and stores the key in one
//! transaction with the task. So the second of two sends finds the first one's task,
//! even if both arrive together, and the skill runs once.

use crate::auth::Caller;
use crate::engine::accept::Accept;
use crate::engine::budget::CallBudget;
use crate::engine::commit::task_of_key;
use crate::engine::error::EngineError;
use crate::engine::repeat::request_hash;
use crate::engine::turn::spec::{Acceptance, TurnInput};
use crate::store::KeyWrite;
use crate::task::{IdempotencyKey, SendCommand, TaskRecord};

impl Accept {
    /// The key of a send: the one its client gave, or the message id if the policy says
    /// so.
    pub(in crate::engine) fn send_key(
        &self,
        caller: &Caller,
        command: &SendCommand,
    ) -> Option<KeyWrite> {
        let client_key = command.idempotency_key.clone();
        let id = &command.message.id;
        let by_message = self.reader.policy.idempotent_message_id && !id.is_empty();
        let key = client_key.or_else(|| by_message.then(|| IdempotencyKey::of_message(id)))?;
        Some(KeyWrite {
            key: key.hash(&caller.owner),
            content: key.seal(&request_hash(command)),
        })
    }

    /// Accepts a keyed send once, however often it is repeated.
    pub(in crate::engine) async fn accept_keyed(
        &self,
        caller: &Caller,
        command: SendCommand,
        budget: CallBudget,
        key: KeyWrite,
    ) -> Result<Acceptance, EngineError> {
        // Comes first, because the first send may have changed what the next check
        // reads.
        if let Some(record) = self.find_duplicate(caller, &key).await? {
            return Ok(Acceptance::Repeat(record));
        }
        match self.accept_unkeyed(caller, command, budget).await {
            Ok(Acceptance::Run(mut work)) => {
                let spec = match &mut work.input {
                    // The key is that of the task which gets the message, so that its question
                    // is not begun for a message that cannot be passed on.
                    TurnInput::Forward(inner, _) => match &mut **inner {
                        Acceptance::Run(spec) => spec,
                        Acceptance::Cancel(_, inner_key) => {
                            *inner_key = Some(key);
                            return Ok(Acceptance::Run(work));
                        }
                        Acceptance::Repeat(_) => &mut work,
                    },
                    _ => &mut work,
                };
                // A keyed send is never deferred. It makes a task, also if its skill answers
                // with a message.
                spec.key = Some(key);
                spec.force = true;
                Ok(Acceptance::Run(work))
            }
            Ok(Acceptance::Cancel(record, _)) => Ok(Acceptance::Cancel(record, Some(key))),
            // The first send may have stored its task after the lookup above, and this
            // send may have found that task or been refused because of it.
            found_or_refused => match self.find_duplicate(caller, &key).await? {
                Some(record) => Ok(Acceptance::Repeat(record)),
                None => found_or_refused,
            },
        }
    }

    /// The task that an earlier send under this key created or continued.
    async fn find_duplicate(
        &self,
        caller: &Caller,
        key: &KeyWrite,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let (records, now) = (&self.commits.records, self.reader.clock.now());
        let entry = records.load_key(&caller.owner, &key.key, now).await?;
        Ok(entry.map(|entry| task_of_key(key, entry)).transpose()?)
    }
}

#[cfg(test)]
mod tests;
