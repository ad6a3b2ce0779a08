//! The edges of all functions in one program.

use super::HttpService;
use super::function::Function;

/// The edges of all functions of an agent, for a program that answers every route.
#[derive(Debug, Clone)]
pub struct Edges {
    agent_card: HttpService,
    tasks_send: HttpService,
    tasks_get: HttpService,
    tasks_stream: HttpService,
    rpc: HttpService,
    ops: HttpService,
}

impl Edges {
    /// The edges that `edge` makes.
    #[must_use]
    pub(crate) fn of(edge: impl Fn(Function) -> HttpService) -> Self {
        Self {
            agent_card: edge(Function::AgentCard),
            tasks_send: edge(Function::TasksSend),
            tasks_get: edge(Function::TasksGet),
            tasks_stream: edge(Function::TasksStream),
            rpc: edge(Function::Rpc),
            ops: edge(Function::Ops),
        }
    }

    /// The edge of the function that API Gateway would call for this method and path.
    #[must_use]
    pub fn for_route(&self, method: &str, path: &str) -> &HttpService {
        match Function::of(method, path) {
            Function::AgentCard => &self.agent_card,
            Function::TasksSend => &self.tasks_send,
            Function::TasksGet => &self.tasks_get,
            Function::TasksStream => &self.tasks_stream,
            Function::Rpc => &self.rpc,
            Function::Ops => &self.ops,
        }
    }
}
