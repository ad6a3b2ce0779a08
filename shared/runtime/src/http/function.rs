//! Which function answers a request.

use super::ops::OpsPath;
use a2a_lambda_wire::{Endpoint, Operation};

/// The function that a request reached. Each function accepts only its own
/// operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The public card.
    AgentCard,
    /// Path operations that write.
    TasksSend,
    /// Path operations that read.
    TasksGet,
    /// Path operations that stream, and `POST /tasks/{id}:cancel`.
    TasksStream,
    /// JSON-RPC: one URL for all methods.
    Rpc,
    /// Health and metrics, for operators.
    Ops,
}

impl Function {
    /// The function to which API Gateway routes a request, by the routes in
    /// `template.yaml`. A request without a route belongs to `rpc`, which responds
    /// with an error.
    #[must_use]
    pub fn of(method: &str, path: &str) -> Self {
        if OpsPath::of(method, path).is_some() {
            return Self::Ops;
        }
        Self::serving(a2a_lambda_wire::site(method, path), method)
    }

    /// The function of an endpoint.
    pub(super) fn serving(endpoint: Endpoint, method: &str) -> Self {
        use Operation as O;
        match endpoint {
            Endpoint::JsonRpc | Endpoint::Nowhere => Self::Rpc,
            Endpoint::Operation {
                operation,
                below_task,
            } => match operation {
                O::Card | O::LegacyCard | O::Schemas => Self::AgentCard,
                O::Stream => Self::TasksStream,
                O::Subscribe if method == "GET" => Self::TasksGet,
                O::Subscribe => Self::TasksStream,
                O::Cancel if below_task => Self::TasksStream,
                O::Get
                | O::List
                | O::GetPushConfig
                | O::ListPushConfigs
                | O::ExtendedCard
                | O::ListContexts
                | O::ListSkills => Self::TasksGet,
                O::Send
                | O::Cancel
                | O::CreatePushConfig
                | O::DeletePushConfig
                | O::CreateUpload
                | O::DeleteContext
                | O::DeleteTask => Self::TasksSend,
            },
        }
    }
}
