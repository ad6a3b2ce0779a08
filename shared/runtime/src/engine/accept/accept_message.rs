//! Accepts a message: decides which turn it starts, before anything is written. That is
//! the task it opens or continues, the skill and the decoded input.
//!
//! - here: the task of the message, and the turn with its opening
//! - `routing`: the skill of a message, by rules or by a model
//! - `turn_input`: the skill of the turn and its decoded input

mod routing;
mod turn_input;

use crate::auth::Caller;
use crate::engine::accept::Accept;
use crate::engine::budget::{CallBudget, TurnBudget};
use crate::engine::commit::context_status::ContextStatus;
use crate::engine::error::EngineError;
use crate::engine::repeat::MessagePrint;
use crate::engine::seal::check_answer;
use crate::engine::turn::spec::{Acceptance, TurnInput, TurnSpec, facts_of};
use crate::task::{
    A2aError, Change, ContextId, Message, SendCommand, SendMode, TaskId, TaskRecord, TaskState,
    Timestamp, WriteId,
};
use crate::telemetry::scope::{self, CallScope};
use a2a_lambda_model::stored;
use a2a_lambda_skill::TurnFacts;
use a2a_lambda_skill::gate::{self, Verdict};
use a2a_lambda_skill::route::{self, Decision, Routed};
use futures::future::BoxFuture;
pub use routing::RoutePreview;
use turn_input::{ConsentAnswer, routing_message};

/// Bytes of a message above which its task is stored before its skill runs.
const LARGE: usize = stored::OPEN_MAX_BYTES / 2;

impl Accept {
    /// Accepts a message: loads, routes and decodes. An error means that nothing was
    /// written.
    pub(in crate::engine) async fn accept(
        &self,
        caller: &Caller,
        command: SendCommand,
        budget: CallBudget,
    ) -> Result<Acceptance, EngineError> {
        // The router may ask a model.
        self.commits.trace();
        match self.send_key(caller, &command) {
            Some(key) => Box::pin(self.accept_keyed(caller, command, budget, key)).await,
            None => self.accept_unkeyed(caller, command, budget).await,
        }
    }

    /// Accepts a message without reading its idempotency key.
    pub(in crate::engine) async fn accept_unkeyed(
        &self,
        caller: &Caller,
        mut command: SendCommand,
        budget: CallBudget,
    ) -> Result<Acceptance, EngineError> {
        // Where push delivery is off, a push config is refused and not ignored.
        if command.push.is_some() && !self.reader.push {
            return Err(A2aError::PushNotSupported.into());
        }
        let print = MessagePrint::of(&command);
        // Messages of A2A 0.1 have no id.
        if command.message.id.is_empty() {
            command.message.id = format!("msg-{:032x}", self.reader.ids.next());
        }
        match (self.target(caller, &command).await?, print) {
            (Some(record), Some(print)) => {
                self.accept_for_task(caller, record, command, None, print, budget)
                    .await
            }
            (_, print) => self.new_turn(caller, command, print, budget).await,
        }
    }

    /// Accepts a message to an open task. With a `question` the router asks about it.
    fn accept_for_task<'a>(
        &'a self,
        caller: &'a Caller,
        record: TaskRecord,
        command: SendCommand,
        question: Option<Routed>,
        print: MessagePrint,
        budget: CallBudget,
    ) -> BoxFuture<'a, Result<Acceptance, EngineError>> {
        Box::pin(async move {
            if self.secrets.is_repeat(&record, &print).await? {
                return Ok(Acceptance::Repeat(record));
            }
            // A question of consent is canceled as one of the router, whichever skill asks it.
            let skill = record
                .skill
                .as_ref()
                .filter(|_| record.consent_question().is_none());
            let mut cancels = route::cancels(&self.agent, skill, &command.message);
            let question = match self.read_consent(&record, &command).await? {
                ConsentAnswer::Unclear(_) if cancels => question,
                ConsentAnswer::Unclear(question) => Some(question),
                ConsentAnswer::Refused => {
                    cancels |= record.skill.is_none();
                    question
                }
                ConsentAnswer::NotAsked | ConsentAnswer::Given => question,
            };
            match record.state() {
                // A2A 1.0 §3.3.1: multiple cancellation requests have the same effect.
                TaskState::Canceled if cancels => return Ok(Acceptance::Repeat(record)),
                state if state.is_terminal() => {
                    return Err(A2aError::TaskFinished { state }.into());
                }
                state if !state.is_interrupted() => return Err(A2aError::TaskBusy.into()),
                _ if cancels => return Ok(Acceptance::Cancel(Box::new(record), None)),
                _ => {}
            }
            let spec = self.resume(caller, record, command, question, print, budget);
            Ok(Acceptance::Run(Box::new(spec.await?)))
        })
    }

    /// The stored task that a message names; `None` if it opens one.
    async fn target(
        &self,
        caller: &Caller,
        command: &SendCommand,
    ) -> Result<Option<TaskRecord>, EngineError> {
        let now = self.reader.clock.now();
        // A2A 1.0 §3.4.2: a task id that a client sends names an existing task.
        if let Some(id) = &command.message.task_id {
            let record = self.reader.load(caller, id).await?;
            return named_task(record, command);
        }
        if let Some(id) = &command.client_task_id {
            let record = self.commits.records.load(&caller.owner, id, now).await?;
            if let Some(record) = record {
                return named_task(record, command);
            }
            // A client cannot create a task under an id that has the form of server-made
            // ids.
            if id.is_server_made() {
                return Err(A2aError::TaskNotFound.into());
            }
        }
        Ok(None)
    }

    /// Makes the record of a new task and reads the state of its context.
    async fn new_record(
        &self,
        caller: &Caller,
        command: &SendCommand,
        now: Timestamp,
    ) -> Result<(TaskRecord, ContextStatus), EngineError> {
        let number = self.reader.ids.next();
        let owner = &caller.owner;
        let context_status = match &command.message.context_id {
            Some(id) => self.commits.context_status(owner, id, now).await?,
            None => {
                let replaces = command.client_task_id.as_ref().map(|_| 0);
                self.commits
                    .fresh_context(owner, ContextId::made_of(number), replaces, now, now)
            }
        };
        let record = TaskRecord::create(
            command
                .client_task_id
                .clone()
                .unwrap_or_else(|| TaskId::made_of(number)),
            owner.clone(),
            context_status.id.clone(),
            WriteId::made_of(self.reader.ids.next()),
            command.generation,
            command.metadata.clone(),
            now,
        );
        Ok((record, context_status))
    }

    /// Prepares the first turn of a new task, or the next turn of a task that the message continues
    /// by its context.
    async fn new_turn(
        &self,
        caller: &Caller,
        mut command: SendCommand,
        print: Option<MessagePrint>,
        budget: CallBudget,
    ) -> Result<Acceptance, EngineError> {
        let now = self.reader.clock.now();
        let (record, mut context_status) = self.new_record(caller, &command, now).await?;
        self.commits
            .files
            .take_uploads(caller, &mut command.message)
            .await?;
        let full_message = self.reader.load_message_files(&command.message).await?;
        let request = routing_message(&full_message, &command);
        let context = command.message.context_id.as_ref();
        let context = context.map(|id| (id, context_status.began));
        let opens = command.client_task_id.is_some();
        let decision = Box::pin(self.route_request(&caller.owner, context, request, opens)).await?;
        let decision = match decision {
            Decision::Route(decision) => decision,
            Decision::Continue(head, question) => {
                let turn = self.continue_task(caller, command, *head, question, budget);
                return turn.await;
            }
        };
        refer(&mut command.message, &full_message, &decision);
        let modes = &command.accepted_output_modes;
        let facts = facts_of(&record, caller, modes, Some(&command.message));
        let push = command.push.as_ref();
        let listen = self.pushes.register_push(&record, push).await?;
        let message = with_task_ids(command.message, &record);
        let is_large = stored::message_size(&message) > LARGE;
        let mut opening = vec![Change::Accept { message }];
        let input = self.route_message(decision, &facts, &mut opening)?;
        let skill = input.skill().map(|skill| *skill.metadata());
        self.secrets
            .seal_opening(&record, skill, record.turn, print.as_ref(), &mut opening)
            .await?;
        self.reader.charge_skill(caller, skill).await?;
        // A message-only skill has no task events to push.
        opening.extend(listen.filter(|_| input.makes_task()));
        let is_queued = is_queued(&input, command.mode);
        opening.extend(kept_request(&facts, is_queued));
        opening.push(if is_queued {
            Change::Dispatch
        } else {
            Change::Start {
                lease_until: self.commits.lease_until(budget.deadline),
            }
        });
        // A retry finds the task by the client's id, so its first write is not deferred. Nor
        // does a skill run for a message that may be too large to be stored.
        let force =
            is_queued || command.client_task_id.is_some() || (is_large && input.makes_task());
        self.commits.refresh(&mut context_status, now).await?;
        let budget = TurnBudget::of_invocation(budget.deadline, self.reader.clock.now());
        Ok(Acceptance::Run(Box::new(TurnSpec {
            opening,
            force,
            is_queued,
            print,
            context_status: Some(context_status),
            ..TurnSpec::new(record, input, facts, budget)
        })))
    }

    /// Accepts a message that continues the task of `head` by its context. Its turn begins with the
    /// version that was read; if that is not stored any more, the message is accepted again.
    fn continue_task<'a>(
        &'a self,
        caller: &'a Caller,
        command: SendCommand,
        head: TaskRecord,
        question: Option<Routed>,
        budget: CallBudget,
    ) -> BoxFuture<'a, Result<Acceptance, EngineError>> {
        Box::pin(async move {
            let record = self.reader.load(caller, &head.id).await?;
            if record.version != head.version {
                return self.accept_unkeyed(caller, command, budget).await;
            }
            scope::note_skill_of(&record);
            let (print, retry) = (MessagePrint::of_send(&command), Some(command.clone()));
            let acceptance = self.accept_for_task(caller, record, command, question, print, budget);
            let mut acceptance = acceptance.await?;
            if let Acceptance::Run(spec) = &mut acceptance {
                spec.retry = retry;
                if let TurnInput::Forward(_, is_response) = &mut spec.input {
                    *is_response = true;
                }
            }
            Ok(acceptance)
        })
    }

    /// Gives the last message of `question` to the open task that its client chose. The task may have
    /// it already, from a call that did not end.
    async fn forward(
        &self,
        caller: &Caller,
        question: &TaskRecord,
        task: TaskRecord,
        command: &SendCommand,
        budget: CallBudget,
    ) -> Result<TurnInput, EngineError> {
        let messages = route::said_to_router(&self.agent, &question.history);
        let message = messages.last().copied().unwrap_or(&command.message);
        // It names its task no more than the message to the question does.
        let message = Message {
            task_id: None,
            context_id: Some(task.context_id.clone()),
            ..message.clone()
        };
        let command = SendCommand {
            message,
            idempotency_key: None,
            ..command.clone()
        };
        let print = MessagePrint::of_send(&command);
        let acceptance = self.accept_for_task(caller, task, command, None, print, budget);
        Ok(TurnInput::Forward(Box::new(acceptance.await?), false))
    }

    /// The input of the next turn of an interrupted task. Also returns the changes that pin its
    /// skill, and the references that a chosen skill gets. With a `question` the router asks that.
    async fn next_input(
        &self,
        facts: &TurnFacts,
        record: &TaskRecord,
        (full_message, command, question): (&Message, &mut SendCommand, Option<Routed>),
        budget: CallBudget,
    ) -> Result<(TurnInput, Vec<Change>, Option<Vec<String>>), EngineError> {
        if let Some(id) = record.skill.as_ref() {
            let input = match question {
                // The question of consent comes again.
                Some(question) => self.route_message(question, facts, &mut Vec::new())?,
                None => self.pinned_skill(id, record, full_message, command)?,
            };
            return Ok((input, Vec::new(), None));
        }
        // No skill is pinned yet: the message answers the question of the router.
        let messages = route::said_to_router(&self.agent, &record.history);
        let original = self.reader.load_request(&messages).await?;
        let original = original.as_ref().unwrap_or(full_message);
        let decision = match question {
            Some(question) => Decision::Route(question),
            None => {
                let reply = routing_message(full_message, command);
                Box::pin(self.route_reply(record, original, reply)).await?
            }
        };
        let decision = match decision {
            Decision::Route(decision) => decision,
            Decision::Continue(task, _) => {
                let input = self.forward(&facts.caller, record, *task, command, budget);
                return Ok((input.await?, Vec::new(), None));
            }
        };
        let mut pin = Vec::new();
        let references = refer(&mut command.message, original, &decision);
        let input = self.route_message(decision, facts, &mut pin)?;
        Ok((input, pin, references))
    }

    /// Prepares the next turn of an interrupted task. With a `question` the router asks about it.
    async fn resume(
        &self,
        caller: &Caller,
        record: TaskRecord,
        mut command: SendCommand,
        question: Option<Routed>,
        print: MessagePrint,
        budget: CallBudget,
    ) -> Result<TurnSpec, EngineError> {
        let now = self.reader.clock.now();
        let mut context_status = self.commits.context_status_of(&record, now).await?;
        if record.state() == TaskState::AuthRequired {
            check_answer(&command.message)?;
        }
        self.commits
            .files
            .take_uploads(caller, &mut command.message)
            .await?;
        let full_message = self.reader.load_message_files(&command.message).await?;
        let modes = &command.accepted_output_modes;
        let mut facts = facts_of(&record, caller, modes, Some(&command.message));
        facts.turn = record.turn + 1;
        let consent = given_consent(&record, &command.message);
        facts.consent = consent.filter(|_| question.is_none());
        let reply = (&full_message, &mut command, question);
        let next = self.next_input(&facts, &record, reply, budget);
        let (input, mut pin, references) = next.await?;
        let is_forward = matches!(input, TurnInput::Forward(..));
        let retry = is_forward.then(|| command.clone());
        facts.references = references.unwrap_or(facts.references);
        let message = with_task_ids(command.message.clone(), &record);
        let skill = input.skill().map(|skill| *skill.metadata());
        let is_queued = is_queued(&input, command.mode);
        let mut opening = vec![if is_queued {
            let secret = None;
            Change::Queue { message, secret }
        } else {
            Change::Resume {
                began_at: now,
                message,
                secret: None,
                lease_until: self.commits.lease_until(budget.deadline),
            }
        }];
        opening.append(&mut pin);
        let turn = record.turn + 1;
        self.secrets
            .seal_opening(&record, skill, turn, Some(&print), &mut opening)
            .await?;
        self.reader.charge_skill(caller, skill).await?;
        // The task that gets the message has the config.
        let push = command.push.as_ref().filter(|_| !is_forward);
        opening.extend(self.pushes.register_push(&record, push).await?);
        opening.extend(kept_request(&facts, is_queued));
        self.commits.refresh(&mut context_status, now).await?;
        let budget = TurnBudget::of_invocation(budget.deadline, self.reader.clock.now());
        Ok(TurnSpec {
            opening,
            // Other callers can see the task, so a continuation is not deferred. One that is
            // forwarded is stored when the other task has its message.
            force: !is_forward,
            is_queued,
            print: Some(print),
            context_status: Some(context_status),
            retry,
            ..TurnSpec::new(record, input, facts, budget)
        })
    }
}

/// What the task keeps of the request for its turn. Only a turn that a worker runs keeps
/// the trace.
fn kept_request(facts: &TurnFacts, is_queued: bool) -> Option<Change> {
    let trace = CallScope::current().trace().filter(|_| is_queued);
    let trace = trace.map(|trace| trace.to_string());
    let (modes, consent) = (&facts.accepted_output_modes, facts.consent.clone());
    let request = facts.caller.request(modes, trace, consent);
    request.map(Change::Request)
}

/// The digest of the open question to which a message agrees.
fn given_consent(record: &TaskRecord, message: &Message) -> Option<String> {
    let digest = record.consent_question()?.consent_digest()?;
    let agrees = verdict(record, message).agrees == Some(true);
    agrees.then(|| digest.to_owned())
}

/// What a message answers to the open question of consent, without the command of its skill.
fn verdict(record: &TaskRecord, message: &Message) -> Verdict {
    let mut message = message.clone();
    if let Some(id) = record.skill.as_ref() {
        route::drop_command(id.as_str(), &mut message.parts);
    }
    gate::verdict(&record.consents.digest, &message)
}

/// The message with the ids of its task and context.
fn with_task_ids(mut message: Message, record: &TaskRecord) -> Message {
    message.task_id = Some(record.id.clone());
    message.context_id = Some(record.context_id.clone());
    message
}

/// The task that a message names; an error if the message also names another context.
fn named_task(
    record: TaskRecord,
    command: &SendCommand,
) -> Result<Option<TaskRecord>, EngineError> {
    scope::note_skill_of(&record);
    let context = command.message.context_id.as_ref();
    if context.is_some_and(|context| context != &record.context_id) {
        let why = "the task belongs to another context";
        return Err(A2aError::invalid("message.contextId", why).into());
    }
    Ok(Some(record))
}

/// Whether a worker runs the turn: the client does not wait, or the skill is declared
/// `background`. A message-only skill runs in the call, since it has no task to store
/// first.
fn is_queued(input: &TurnInput, mode: SendMode) -> bool {
    input.skill().is_some_and(|skill| {
        // A2A 1.0 §3.2.2: a client that sets `returnImmediately` gets the task at its
        // creation.
        skill.makes_task() && (mode == SendMode::Immediate || skill.metadata().background)
    })
}

/// Lets a message refer to the task that it is about, as its conversation or a model says. Returns
/// the references for the skill, if the message chose it for the `original` one.
fn refer(message: &mut Message, original: &Message, decision: &Routed) -> Option<Vec<String>> {
    let Routed::Skill(route) = decision else {
        return None;
    };
    let references = &mut message.reference_task_ids;
    let about = route.about.as_ref().map(ToString::to_string);
    references.extend(about.filter(|id| !references.contains(id)));
    let is_answer = route.how == "answer";
    is_answer.then(|| route::join_messages(original, message).reference_task_ids)
}
