//! Reads the parameters of a call and makes the engine's command of them.

use super::card::WEBHOOK_SIGNATURES;
use super::method::Operation as O;
use super::params::{FieldCase, Object, ReadResult, default_history};
use super::words::{state_filter, words};
use super::{Binding, Call, Dialect, push, send, upload};
use a2a_lambda_model::task::metadata_keys::BUDGET;
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, ContextQuery, CreatePush, EventId, EventIdError,
    Generation, GetQuery, ListQuery, PushId, PushListQuery, PushOffer, PushQuery, SendCommand,
    SubscribeCommand, TaskId, Timestamp, UploadOrder,
};

/// The public documents about the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// `/.well-known/agent-card.json`.
    AgentCard,
    /// `/.well-known/agent.json` and `/agent.json`, as 0.1 and 0.2 read it.
    LegacyAgentJson,
    /// `/a2a-lambda/schemas`.
    Schemas,
}

/// The command of a call whose parameters are read, by the way in which it is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodCall {
    /// With a public document: it needs no caller.
    Card(CardForm),
    /// With one response.
    Unary(UnaryCall),
    /// With a stream of events.
    Stream(StreamCall),
}

/// A command with one response.
#[derive(Debug, Clone, PartialEq)]
pub enum UnaryCall {
    /// Send a message and wait.
    Send(Box<SendCommand>),
    /// Read a task.
    Get(GetQuery),
    /// Read a page of tasks.
    List(ListQuery),
    /// Cancel a task.
    Cancel(CancelCommand),
    /// Get a URL to upload a file to.
    CreateUpload(UploadOrder),
    /// Create a push config.
    CreatePush(Box<CreatePush>),
    /// Read a push config.
    GetPush(PushQuery),
    /// List the push configs of a task.
    ListPushes(PushListQuery),
    /// Delete a push config.
    DeletePush(PushQuery),
    /// Read a page of contexts.
    ListContexts(ContextQuery),
    /// Delete a context with its tasks.
    DeleteContext(ContextId),
    /// Delete a task.
    DeleteTask(TaskId),
    /// Read the card for authenticated callers.
    ExtendedCard,
    /// Read the catalogue of skills.
    Skills,
}

/// A command that is answered with a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamCall {
    /// Send a message.
    Send(Box<SendCommand>),
    /// Follow a task that exists.
    Subscribe(SubscribeCommand),
}

impl MethodCall {
    /// The existing task that the call is about, if it names one.
    #[must_use]
    pub const fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Unary(call) => call.task(),
            Self::Stream(StreamCall::Subscribe(command)) => Some(&command.id),
            Self::Stream(StreamCall::Send(_)) | Self::Card(_) => None,
        }
    }
}

impl UnaryCall {
    const fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Get(query) => Some(&query.id),
            Self::Cancel(command) => Some(&command.id),
            Self::CreatePush(command) => Some(&command.task),
            Self::GetPush(query) | Self::DeletePush(query) => Some(&query.task),
            Self::ListPushes(query) => Some(&query.task),
            Self::DeleteTask(task) => Some(task),
            Self::Send(_)
            | Self::List(_)
            | Self::CreateUpload(_)
            | Self::ListContexts(_)
            | Self::DeleteContext(_)
            | Self::ExtendedCard
            | Self::Skills => None,
        }
    }
}

impl Call {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] naming the first faulty field by its path.
    pub fn decode(&self) -> Result<MethodCall, A2aError> {
        use MethodCall::{Card, Stream, Unary};
        use UnaryCall as U;
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let params = &self.object();
        let call = match self.operation {
            O::Card => Card(CardForm::AgentCard),
            O::LegacyCard => Card(CardForm::LegacyAgentJson),
            O::Schemas => Card(CardForm::Schemas),
            O::Stream => Stream(StreamCall::Send(Box::new(self.read_send(params)?))),
            O::Subscribe => Stream(StreamCall::Subscribe(SubscribeCommand {
                last_event: self.last_event()?,
                id: params.required_id("id")?,
                generation: self.dialect.generation,
            })),
            O::Send => Unary(U::Send(Box::new(self.read_send(params)?))),
            O::Get => Unary(U::Get(self.read_get(params)?)),
            O::List => Unary(U::List(self.read_list(params)?)),
            O::Cancel => Unary(U::Cancel(CancelCommand {
                id: params.required_id("id")?,
                metadata: params.metadata("metadata")?,
            })),
            O::ListContexts => Unary(U::ListContexts(ContextQuery {
                page_size: params.page_size()?,
                page_token: params.text("pageToken")?.map(str::to_owned),
            })),
            O::DeleteContext => Unary(U::DeleteContext(params.required_id("id")?)),
            O::DeleteTask => Unary(U::DeleteTask(params.required_id("id")?)),
            O::ExtendedCard => Unary(U::ExtendedCard),
            O::CreatePushConfig => Unary(U::CreatePush(Box::new(self.read_new_push(params)?))),
            O::GetPushConfig => Unary(U::GetPush(self.read_push(params)?)),
            O::ListPushConfigs => Unary(U::ListPushes(self.read_push_list(params)?)),
            O::DeletePushConfig => Unary(U::DeletePush(self.read_push(params)?)),
            O::CreateUpload => Unary(U::CreateUpload(upload::read(params)?)),
            O::ListSkills => Unary(U::Skills),
        };
        if self.dialect.generation == Generation::V10 && self.case == FieldCase::ProtoJson {
            // The route names the tenant; a request repeats it.
            params.string("tenant")?;
        }
        Ok(call)
    }

    /// The parameters.
    pub(super) fn object(&self) -> Object<'_> {
        Object::new(&self.params, self.case, words(self.dialect))
    }

    /// Notes that the deliveries of a push config are signed, if the client named the
    /// extension for it.
    fn note_signatures(&self, offer: &mut PushOffer) -> ReadResult<()> {
        let uri = WEBHOOK_SIGNATURES.uri;
        offer.signs = self.extensions.iter().any(|other| other == uri);
        if offer.signs && offer.token.is_none() {
            let why = format!("required by the extension `{uri}`: it signs the deliveries");
            return Err(A2aError::invalid(offer.field("token"), why));
        }
        Ok(())
    }

    fn read_send(&self, params: &Object<'_>) -> ReadResult<SendCommand> {
        let mut command = send::read(params, self.dialect)?;
        if let Some(budget) = command.message.metadata.get(BUDGET)
            && budget.as_u64().is_none_or(|tokens| tokens == 0)
        {
            let field = format!("message.metadata.{BUDGET}");
            return Err(A2aError::invalid(field, "must be a whole number above 0"));
        }
        command.idempotency_key = send::idempotency_key(self.idempotency_key.as_deref(), &command)?;
        if let Some(offer) = &mut command.push {
            self.note_signatures(offer)?;
        }
        Ok(command)
    }

    fn read_get(&self, params: &Object<'_>) -> ReadResult<GetQuery> {
        Ok(GetQuery {
            id: params.required_id("id")?,
            history_length: params.history_length(default_history(self.dialect.generation))?,
        })
    }

    fn read_list(&self, params: &Object<'_>) -> ReadResult<ListQuery> {
        let generation = self.dialect.generation;
        // A2A 1.0 §3.1.4: the members and their defaults.
        Ok(ListQuery {
            context_id: params.id("contextId")?,
            status: params.choice("status", &state_filter(generation))?,
            page_size: params.page_size()?,
            page_token: params.text("pageToken")?.map(str::to_owned),
            history_length: params.history_length(default_history(generation))?,
            status_after: params.text_as(
                "statusTimestampAfter",
                "must be an RFC 3339 time",
                Timestamp::parse_rfc3339,
            )?,
            include_artifacts: params.boolean("includeArtifacts")?.unwrap_or(false),
        })
    }

    fn read_new_push(&self, params: &Object<'_>) -> ReadResult<CreatePush> {
        let task = params.required_id(self.task_member())?;
        let mut offer = push::read_new(params, self.dialect)?;
        self.note_signatures(&mut offer)?;
        Ok(CreatePush { task, offer })
    }

    /// Reads which push config to get or to delete.
    fn read_push(&self, params: &Object<'_>) -> ReadResult<PushQuery> {
        let name = self.config_member();
        Ok(PushQuery {
            task: params.required_id(self.task_member())?,
            id: match (self.dialect.generation, self.operation) {
                (Generation::V01, _) => Some(PushId::only()),
                // A2A 0.3 §7.6.1: the id is optional.
                (Generation::V03, O::GetPushConfig) if self.dialect.binding == Binding::JsonRpc => {
                    params.id(name)?
                }
                (Generation::V03 | Generation::V10, _) => Some(params.required_id(name)?),
            },
        })
    }

    fn read_push_list(&self, params: &Object<'_>) -> ReadResult<PushListQuery> {
        let mut query = PushListQuery {
            task: params.required_id(self.task_member())?,
            page_size: None,
            page_token: None,
        };
        // A2A 0.3 §7.7: over JSON-RPC the result is a list without pages.
        if self.dialect != Dialect::json_rpc(Generation::V03) {
            // A2A 1.0 §3.1.9, a2a.proto: an `int32` without presence. Only `ListTasks` has a
            // range.
            let size = params.integer("pageSize", 0..=i32::MAX.unsigned_abs() as usize)?;
            query.page_size = size.map(|size| size.min(100)).filter(|size| *size > 0);
            query.page_token = params.text("pageToken")?.map(str::to_owned);
        }
        Ok(query)
    }

    /// The member that names the task.
    pub(super) fn task_member(&self) -> &'static str {
        let is_set = self.operation == O::CreatePushConfig;
        match self.dialect.generation {
            Generation::V10 if self.operation.is_push() => "taskId",
            Generation::V03 if is_set && self.dialect.binding == Binding::JsonRpc => "taskId",
            Generation::V10 | Generation::V03 | Generation::V01 => "id",
        }
    }

    /// The member that names the push config.
    pub(super) const fn config_member(&self) -> &'static str {
        match self.dialect.generation {
            // A2A 0.3 §7.6.1, §7.8.1: the name of its id.
            Generation::V03 => "pushNotificationConfigId",
            Generation::V10 | Generation::V01 => "id",
        }
    }

    fn last_event(&self) -> ReadResult<Option<EventId>> {
        let id = self.last_event_id.as_deref().map(str::parse).transpose();
        id.map_err(|error: EventIdError| A2aError::invalid("Last-Event-ID", error.to_string()))
    }
}
