//! Makes the changes of a turn from what its skill does: messages, artifacts, saved values
//! and steps.

use super::WriteBuffer;
use crate::engine::turn::Turns;
use crate::engine::turn::command::{SkillCommand, artifact_update};
use crate::task::{ArtifactUpdate, Change, ContextId, Message, TaskId, is_below};
use a2a_lambda_skill::{Artifact as SkillArtifact, Content};
use tokio::sync::oneshot;

impl WriteBuffer<'_> {
    /// Adds a request of the skill to the next group.
    pub(in crate::engine) fn note(&mut self, command: SkillCommand) {
        match command {
            SkillCommand::Emit(scope, change, permit) => {
                drop(permit);
                self.has_output = true;
                if let Some(scope) = scope {
                    *self.outputs.entry(scope.to_string()).or_default() += 1;
                }
                self.push(*change);
            }
            SkillCommand::Save {
                key,
                value,
                save_place,
                order,
                reads,
                ack,
            } => {
                self.waiters.push(ack);
                self.note_build();
                self.push(Change::Save {
                    key,
                    value,
                    save_place,
                    order,
                    outputs: self.outputs.clone(),
                    reads,
                });
            }
            // The event loop has taken it, or is about to end.
            SkillCommand::Stop => {}
            SkillCommand::Flush(ack) => self.wait_for_write(ack),
            SkillCommand::Step {
                key,
                result,
                updates,
                reads,
                ack,
            } => {
                self.waiters.extend(ack);
                self.updates.extend(updates.into_some());
                self.note_build();
                // No run of the turn says again what a completed step has said.
                self.outputs
                    .retain(|scope, _| *scope != key && !is_below(scope, &key));
                self.push(Change::Step {
                    key,
                    result,
                    outputs: self.outputs.clone(),
                    reads,
                });
            }
        }
    }

    /// Notes that this build stores a result of the turn.
    fn note_build(&mut self) {
        let build = self.turns.agent.build_id();
        if self.build.as_ref() != build {
            self.build = build.cloned();
            self.push(Change::Build(build.cloned()));
        }
    }

    /// Acknowledges when all changes so far are stored.
    fn wait_for_write(&mut self, ack: oneshot::Sender<()>) {
        if !self.pending.is_empty() {
            self.waiters.push(ack);
        } else if self.is_writing {
            self.in_flight.push(ack);
        } else {
            let _gone = ack.send(());
        }
    }

    /// The number of the turn, also while the message that opens it is not stored.
    pub(super) fn turn(&self) -> u32 {
        let opens = self
            .pending
            .iter()
            .any(|change| matches!(change, Change::Resume { .. }));
        self.record.turn + u32::from(opens)
    }

    /// A complete artifact of this task.
    pub(in crate::engine) fn update(&self, artifact: SkillArtifact) -> ArtifactUpdate {
        artifact_update(&self.record.incarnation, artifact, false, true)
    }

    /// A message of the agent in this task.
    pub(in crate::engine) fn agent_message(&self, content: Content) -> Message {
        let record = &self.record;
        self.turns
            .agent_message(&record.id, &record.context_id, content)
    }
}

impl Turns {
    /// A message of the agent in a task.
    pub(in crate::engine) fn agent_message(
        &self,
        task: &TaskId,
        context: &ContextId,
        content: Content,
    ) -> Message {
        let id = format!("msg-{:032x}", self.reader.ids.next());
        let mut message = Message::from_agent(id, content.into_parts());
        message.task_id = Some(task.clone());
        message.context_id = Some(context.clone());
        message
    }
}
