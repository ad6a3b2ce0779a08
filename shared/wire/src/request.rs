//! Reads the parameters of a call and makes the engine's command of them.

use super::card::WEBHOOK_SIGNATURES;
use super::method::Operation as O;
use super::params::{FieldCase, MAX_HISTORY, Object, PAGE_SIZE};
use super::state_name::state_filter;
use super::{Binding, Call, Dialect, idempotency, params, push, upload, v01, v1, v03};
use a2a_lambda_model::task::metadata_keys::BUDGET;
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, ContextQuery, CreatePush, EventId, EventIdError,
    Generation, GetQuery, ListQuery, PushId, PushListQuery, PushOffer, PushQuery, SendCommand,
    SubscribeCommand, TaskId, UploadOrder,
};
use serde_json::{Map, Value};
use std::borrow::Cow;

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

/// The command of a call whose parameters are read.
#[derive(Debug, Clone, PartialEq)]
pub enum MethodCall {
    /// Send a message and wait.
    Send(Box<SendCommand>),
    /// Send a message and stream.
    Stream(Box<SendCommand>),
    /// Read a task.
    Get(GetQuery),
    /// Read a page of tasks.
    List(ListQuery),
    /// Cancel a task.
    Cancel(CancelCommand),
    /// Stream a task that exists.
    Subscribe(SubscribeCommand),
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
    /// Read the public card.
    Card(CardForm),
    /// Read the card for authenticated callers.
    ExtendedCard,
    /// Read the catalogue of skills.
    Skills,
}

impl MethodCall {
    /// The existing task that the call is about, if it names one.
    #[must_use]
    pub const fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Get(query) => Some(&query.id),
            Self::Cancel(command) => Some(&command.id),
            Self::Subscribe(command) => Some(&command.id),
            Self::CreatePush(command) => Some(&command.task),
            Self::GetPush(query) | Self::DeletePush(query) => Some(&query.task),
            Self::ListPushes(query) => Some(&query.task),
            Self::DeleteTask(task) => Some(task),
            Self::Send(_)
            | Self::Stream(_)
            | Self::List(_)
            | Self::CreateUpload(_)
            | Self::ListContexts(_)
            | Self::DeleteContext(_)
            | Self::Card(_)
            | Self::ExtendedCard
            | Self::Skills => None,
        }
    }
}

impl Call {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] naming each faulty field by its path.
    pub fn decode(&self) -> Result<MethodCall, A2aError> {
        if !self.params.faults.is_empty() {
            return Err(A2aError::InvalidParams {
                violations: self.params.faults.clone(),
            });
        }
        Ok(match self.operation {
            O::Send => MethodCall::Send(Box::new(self.decode_send()?)),
            O::Stream => MethodCall::Stream(Box::new(self.decode_send()?)),
            O::Get => MethodCall::Get(self.decode_get()?),
            O::List => {
                let states = state_filter(self.dialect.generation);
                MethodCall::List(self.read(|params| Some(params::read_list(params, &states)))?)
            }
            O::Cancel => MethodCall::Cancel(self.decode_cancel()?),
            O::Subscribe => MethodCall::Subscribe(self.decode_subscribe()?),
            O::ListContexts => MethodCall::ListContexts(self.read(|params| {
                Some(ContextQuery {
                    page_size: params.page_size().unwrap_or(PAGE_SIZE),
                    page_token: params.text("pageToken").map(str::to_owned),
                })
            })?),
            O::DeleteContext => {
                MethodCall::DeleteContext(params::path_id(ContextId::parse(self.path_id()))?)
            }
            O::DeleteTask => {
                MethodCall::DeleteTask(params::path_id(TaskId::parse(self.path_id()))?)
            }
            O::Card => MethodCall::Card(CardForm::AgentCard),
            O::LegacyCard => MethodCall::Card(CardForm::LegacyAgentJson),
            O::Schemas => MethodCall::Card(CardForm::Schemas),
            O::ExtendedCard => MethodCall::ExtendedCard,
            O::CreatePushConfig => MethodCall::CreatePush(Box::new(self.decode_create_push()?)),
            O::GetPushConfig => MethodCall::GetPush(self.decode_push()?),
            O::ListPushConfigs => MethodCall::ListPushes(self.decode_list_pushes()?),
            O::DeletePushConfig => MethodCall::DeletePush(self.decode_push()?),
            O::CreateUpload => MethodCall::CreateUpload(upload::decode(&self.params.value)?),
            O::ListSkills => MethodCall::Skills,
        })
    }

    /// Notes that the deliveries of a push config are signed, if the client named the
    /// extension for it.
    fn note_signatures(&self, offer: &mut PushOffer) -> Result<(), A2aError> {
        let uri = WEBHOOK_SIGNATURES.uri;
        offer.signs = self.extensions.iter().any(|other| other == uri);
        if offer.signs && offer.token.is_none() {
            let why = format!("required by the extension `{uri}`: it signs the deliveries");
            return Err(A2aError::invalid(offer.field("token"), why));
        }
        Ok(())
    }

    fn path_id(&self) -> &str {
        self.params.id.as_deref().unwrap_or_default()
    }

    fn decode_send(&self) -> Result<SendCommand, A2aError> {
        let mut command = self.read(|params| match self.dialect.generation {
            Generation::V10 => v1::read_send(params),
            Generation::V03 => v03::read_send(params, self.dialect.binding),
            Generation::V01 => v01::read_send(params),
        })?;
        if let Some(budget) = command.message.metadata.get(BUDGET)
            && budget.as_u64().is_none_or(|tokens| tokens == 0)
        {
            let field = format!("message.metadata.{BUDGET}");
            return Err(A2aError::invalid(field, "must be a whole number above 0"));
        }
        command.idempotency_key = idempotency::key(self.idempotency_key.as_deref(), &command)?;
        if let Some(offer) = &mut command.push {
            self.note_signatures(offer)?;
        }
        Ok(command)
    }

    fn decode_get(&self) -> Result<GetQuery, A2aError> {
        let default = match self.dialect.generation {
            Generation::V03 | Generation::V10 => MAX_HISTORY,
            // A2A 0.1 §7.3.1: no history unless the client names a number.
            Generation::V01 => 0,
        };
        self.read(|params| {
            let id = params.required_task_id("id");
            let history_length = params.history_length("historyLength", default);
            Some(GetQuery {
                id: id?,
                history_length,
            })
        })
    }

    fn decode_cancel(&self) -> Result<CancelCommand, A2aError> {
        self.read(|params| {
            let id = params.required_task_id("id");
            let metadata = params.metadata("metadata");
            Some(CancelCommand { id: id?, metadata })
        })
    }

    fn decode_subscribe(&self) -> Result<SubscribeCommand, A2aError> {
        let last_event = self.last_event()?;
        self.read(|params| {
            Some(SubscribeCommand {
                id: params.required_task_id("id")?,
                last_event,
                generation: self.dialect.generation,
            })
        })
    }

    fn decode_create_push(&self) -> Result<CreatePush, A2aError> {
        let mut create = self.read(|params| {
            let task = params.required_task_id(self.task_member());
            let offer = push::read_new(params, self.dialect);
            Some(CreatePush {
                task: task?,
                offer: offer?,
            })
        })?;
        self.note_signatures(&mut create.offer)?;
        Ok(create)
    }

    /// Reads which push config to get or to delete.
    fn decode_push(&self) -> Result<PushQuery, A2aError> {
        // A2A 0.3 §7.6.1, §7.8.1: the name of its id.
        const OF_V03: &str = "pushNotificationConfigId";
        if let (Some(task), Some(config)) = (&self.params.id, &self.params.config) {
            return Ok(PushQuery {
                task: params::path_id(TaskId::parse(task.as_str()))?,
                id: Some(params::path_id(PushId::parse(config.as_str()))?),
            });
        }
        self.read(|params| {
            let task = params.required_task_id(self.task_member());
            let id = match (self.dialect.generation, self.operation) {
                (Generation::V10, _) => Some(params.required_push_id("id")?),
                // A2A 0.3 §7.6.1: the id is optional.
                (Generation::V03, O::GetPushConfig) => params.push_id(OF_V03),
                (Generation::V03, _) => Some(params.required_push_id(OF_V03)?),
                (Generation::V01, _) => Some(PushId::only()),
            };
            Some(PushQuery { task: task?, id })
        })
    }

    fn decode_list_pushes(&self) -> Result<PushListQuery, A2aError> {
        // A2A 0.3 §7.7: over JSON-RPC the result is a list without pages.
        let has_pages = self.dialect != Dialect::json_rpc(Generation::V03);
        self.read(|params| {
            let task = params.required_task_id(self.task_member());
            let (page_size, page_token) = match has_pages {
                true => (params.config_page_size(), params.text("pageToken")),
                false => (None, None),
            };
            Some(PushListQuery {
                task: task?,
                page_size,
                page_token: page_token.map(str::to_owned),
            })
        })
    }

    /// Reads the parameters with `decode`: those of JSON-RPC, the body, or the query of a
    /// request that only reads. An id in the path replaces that member.
    fn read<T>(&self, decode: impl FnOnce(&Object<'_>) -> Option<T>) -> Result<T, A2aError> {
        let case = self.field_case();
        let mut members = match &self.params.value {
            Value::Object(members) => Cow::Borrowed(members),
            // Absent parameters count as an empty object, so that each missing field is named.
            Value::Null if case != FieldCase::Json => match self.operation {
                O::Get | O::List | O::ListPushConfigs | O::ListContexts => {
                    Cow::Owned(params::members(&self.params.pairs)?)
                }
                _ => Cow::Owned(Map::new()),
            },
            _ => return Err(A2aError::invalid("params", "must be an object")),
        };
        if let Some(id) = &self.params.id {
            let (members, name) = (members.to_mut(), self.task_member());
            // A2A 1.0 §5.5: ProtoJSON readers take the proto name too, so it is replaced as well.
            members.remove(&params::snake(name));
            members.insert(name.to_owned(), id.as_str().into());
        }
        params::read_map(&members, case, |params| {
            let request = decode(params);
            if self.dialect.generation == Generation::V10 {
                // The route names the tenant; a request repeats it.
                params.string("tenant");
            }
            request
        })
    }

    const fn field_case(&self) -> FieldCase {
        match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, _) | (Generation::V03, Binding::Rest) => FieldCase::ProtoJson,
            // The parameters are a query, in which a number is a text.
            (Generation::V01, _) if self.params.id.is_some() => FieldCase::ProtoJson,
            (Generation::V03 | Generation::V01, _) => FieldCase::Json,
        }
    }

    /// The member that names the task.
    fn task_member(&self) -> &'static str {
        let is_set = self.operation == O::CreatePushConfig;
        match self.dialect.generation {
            Generation::V10 if self.operation.is_push() => "taskId",
            Generation::V03 if is_set && self.dialect.binding == Binding::JsonRpc => "taskId",
            Generation::V10 | Generation::V03 | Generation::V01 => "id",
        }
    }

    fn last_event(&self) -> Result<Option<EventId>, A2aError> {
        let Some(text) = &self.last_event_id else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|error: EventIdError| A2aError::invalid("Last-Event-ID", error.to_string()))
    }
}
