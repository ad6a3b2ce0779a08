//! Reads the parameters of a call and makes the engine's command of them.

use super::card::WEBHOOK_SIGNATURES;
use super::method::Operation as O;
use super::{Binding, Call, context_list, idempotency, params, upload, v01, v1, v03};
use a2a_lambda_model::task::{
    A2aError, CancelCommand, ContextId, ContextQuery, CreatePush, EventId, EventIdError,
    Generation, GetQuery, ListQuery, PushListQuery, PushOffer, PushQuery, SendCommand,
    SubscribeCommand, TaskId, UploadOrder,
};
use serde_json::{Map, Value};

/// The forms of the public card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// `/.well-known/agent-card.json`.
    AgentCard,
    /// `/.well-known/agent.json` and `/agent.json`, as 0.1 and 0.2 read it.
    LegacyAgentJson,
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
            O::List => MethodCall::List(self.decode_list()?),
            O::Cancel => MethodCall::Cancel(self.decode_cancel()?),
            O::Subscribe => MethodCall::Subscribe(self.decode_subscribe()?),
            O::ListContexts => {
                MethodCall::ListContexts(context_list::decode_list(&self.own_pairs())?)
            }
            O::DeleteContext => MethodCall::DeleteContext(context_list::decode_id(self.path_id())?),
            O::DeleteTask => MethodCall::DeleteTask(params::task_id(self.path_id())?),
            O::Card => MethodCall::Card(CardForm::AgentCard),
            O::LegacyCard => MethodCall::Card(CardForm::LegacyAgentJson),
            O::ExtendedCard => MethodCall::ExtendedCard,
            O::CreatePushConfig => {
                let mut create = self.decode_create_push()?;
                self.note_signatures(&mut create.offer)?;
                MethodCall::CreatePush(Box::new(create))
            }
            O::GetPushConfig => MethodCall::GetPush(self.decode_get_push()?),
            O::ListPushConfigs => MethodCall::ListPushes(self.decode_list_pushes()?),
            O::DeletePushConfig => MethodCall::DeletePush(self.decode_delete_push()?),
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
        let params = &self.params.value;
        let mut command = match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, _) => v1::decode_send(params),
            (Generation::V03, Binding::JsonRpc) => v03::decode_send(params),
            (Generation::V03, Binding::Rest) => v03::rest::decode_send(self.body()),
            (Generation::V01, _) => v01::decode_send(params),
        }?;
        command.idempotency_key = idempotency::key(self.idempotency_key.as_deref(), &command)?;
        if let Some(offer) = &mut command.push {
            self.note_signatures(offer)?;
        }
        Ok(command)
    }

    fn decode_get(&self) -> Result<GetQuery, A2aError> {
        let (params, pairs) = (&self.params.value, self.own_pairs());
        match (self.dialect.generation, self.params.id.as_deref()) {
            (Generation::V10, Some(id)) => v1::decode_get_pairs(id, &pairs),
            (Generation::V10, None) => v1::decode_get(params),
            (Generation::V03, Some(id)) => v03::rest::decode_get(id, &pairs),
            (Generation::V03, None) => v03::decode_get(params),
            (Generation::V01, Some(id)) => v01::decode_get_path(id, &pairs),
            (Generation::V01, None) => v01::decode_get(params),
        }
    }

    fn decode_list(&self) -> Result<ListQuery, A2aError> {
        match (self.dialect.generation, self.dialect.binding) {
            (Generation::V10, Binding::JsonRpc) => v1::decode_list(&self.params.value),
            (Generation::V10, Binding::Rest) => v1::decode_list_pairs(&self.own_pairs()),
            (Generation::V03, Binding::Rest) => v03::rest::decode_list(&self.own_pairs()),
            // A2A 0.3 §3.5.6: `tasks/list` exists over gRPC and REST only.
            (Generation::V03, Binding::JsonRpc) | (Generation::V01, _) => {
                Err(A2aError::MethodNotFound)
            }
        }
    }

    fn decode_cancel(&self) -> Result<CancelCommand, A2aError> {
        let params = &self.params.value;
        match (self.dialect.generation, self.params.id.as_deref()) {
            (Generation::V10, _) => v1::decode_cancel(&self.with_id()?),
            (Generation::V03, Some(id)) => v03::rest::decode_cancel(id, params),
            (Generation::V03, None) => v03::decode_cancel(params),
            (Generation::V01, _) => v01::decode_cancel(params),
        }
    }

    fn decode_subscribe(&self) -> Result<SubscribeCommand, A2aError> {
        let last_event = self.last_event()?;
        let params = &self.params.value;
        match (self.dialect.generation, self.params.id.as_deref()) {
            (Generation::V10, _) => v1::decode_subscribe(&self.with_id()?, last_event),
            (Generation::V03, Some(id)) => v03::rest::decode_subscribe(id, last_event),
            (Generation::V03, None) => v03::decode_subscribe(params, last_event),
            (Generation::V01, _) => v01::decode_subscribe(params, last_event),
        }
    }

    fn decode_create_push(&self) -> Result<CreatePush, A2aError> {
        let params = &self.params.value;
        match (self.dialect.generation, self.params.id.as_deref()) {
            (Generation::V10, Some(id)) => v1::decode_create_push(&self.with(&[("taskId", id)])?),
            (Generation::V10, None) => v1::decode_create_push(params),
            (Generation::V03, Some(id)) => v03::rest::decode_create_push(id, self.body()),
            (Generation::V03, None) => v03::decode_set_push(params),
            (Generation::V01, _) => v01::decode_set_push(params),
        }
    }

    fn decode_get_push(&self) -> Result<PushQuery, A2aError> {
        let params = &self.params.value;
        match (self.dialect.generation, self.push_of_path()?) {
            (_, Some(query)) => Ok(query),
            (Generation::V10, None) => v1::decode_one_push(params),
            (Generation::V03, None) => v03::decode_get_push(params),
            (Generation::V01, None) => v01::decode_get_push(params),
        }
    }

    fn decode_delete_push(&self) -> Result<PushQuery, A2aError> {
        let params = &self.params.value;
        match (self.dialect.generation, self.push_of_path()?) {
            (_, Some(query)) => Ok(query),
            (Generation::V10, None) => v1::decode_one_push(params),
            (Generation::V03, None) => v03::decode_delete_push(params),
            // Unreachable: 0.1 has no method that deletes a push config.
            (Generation::V01, None) => Err(A2aError::MethodNotFound),
        }
    }

    fn decode_list_pushes(&self) -> Result<PushListQuery, A2aError> {
        let (params, pairs) = (&self.params.value, self.own_pairs());
        match (self.dialect.generation, self.params.id.as_deref()) {
            (Generation::V10, Some(id)) => v1::decode_list_pushes_pairs(id, &pairs),
            (Generation::V10, None) => v1::decode_list_pushes(params),
            (Generation::V03, Some(id)) => v03::rest::decode_list_pushes(id, &pairs),
            (Generation::V03, None) => v03::decode_list_pushes(params),
            (Generation::V01, _) => Err(A2aError::MethodNotFound),
        }
    }

    /// The push config that a path names, in any generation.
    fn push_of_path(&self) -> Result<Option<PushQuery>, A2aError> {
        let (Some(task), Some(config)) = (&self.params.id, &self.params.config) else {
            return Ok(None);
        };
        Ok(Some(PushQuery {
            task: params::task_id(task)?,
            id: Some(params::push_id(config)?),
        }))
    }

    /// The body of a REST request; an absent one is an empty object.
    fn body(&self) -> &Value {
        static EMPTY: std::sync::LazyLock<Value> =
            std::sync::LazyLock::new(|| Value::Object(Map::new()));
        if self.params.value.is_null() {
            &EMPTY
        } else {
            &self.params.value
        }
    }

    /// The query parameters of the operation.
    fn own_pairs(&self) -> Vec<(String, String)> {
        // A2A 1.0 §3.6.1: the version may be a query parameter of any request.
        let is_own = |name: &str| !name.eq_ignore_ascii_case("a2a-version");
        let pairs = self.params.pairs.iter();
        pairs.filter(|(name, _)| is_own(name)).cloned().collect()
    }

    /// The parameters of 1.0, with the id replaced by that of the path.
    fn with_id(&self) -> Result<Value, A2aError> {
        match &self.params.id {
            Some(id) => self.with(&[("id", id)]),
            None => Ok(self.params.value.clone()),
        }
    }

    /// The parameters of 1.0, with members replaced by those of the path.
    fn with(&self, additions: &[(&str, &str)]) -> Result<Value, A2aError> {
        let mut members = match &self.params.value {
            Value::Null => Map::new(),
            Value::Object(members) => members.clone(),
            _ => return Err(A2aError::invalid("params", "must be an object")),
        };
        for (name, value) in additions {
            // A2A 1.0 §5.5: ProtoJSON readers take the proto name too, so it is replaced as well.
            members.remove(&params::snake(name));
            members.insert((*name).to_owned(), (*value).into());
        }
        Ok(Value::Object(members))
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
