//! What can be asked, and the JSON-RPC names for it.

use crate::task::Generation;

/// Everything the server recognises as an operation, offered or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Send a message and wait for one answer.
    Send,
    /// Send a message and read a stream.
    Stream,
    /// Read a task.
    Get,
    /// Read a page of tasks.
    List,
    /// End a task.
    Cancel,
    /// Read the stream of a task that exists.
    Subscribe,
    /// Register a webhook.
    CreatePushConfig,
    /// Read a webhook registration.
    GetPushConfig,
    /// Read all webhook registrations of a task.
    ListPushConfigs,
    /// Remove a webhook registration.
    DeletePushConfig,
    /// Read the card for known callers.
    ExtendedCard,
    /// Read the public card.
    Card,
    /// Read the public card in the form of 0.1 and 0.2.
    LegacyCard,
    /// Ours: ask for a place to upload a file to.
    CreateUpload,
    /// Ours: list the caller's conversations.
    ListContexts,
    /// Ours: delete a conversation.
    DeleteContext,
    /// Ours: delete a task.
    DeleteTask,
    /// Ours: the catalogue of skills.
    ListSkills,
}

impl Operation {
    /// Whether the answer is a stream of events.
    #[must_use]
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }

    /// Whether it is one of ours, below `/a2a-lambda/`.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(
            self,
            Self::CreateUpload
                | Self::ListContexts
                | Self::DeleteContext
                | Self::DeleteTask
                | Self::ListSkills
        )
    }

    /// Whether it is about webhooks.
    #[must_use]
    pub const fn is_push(self) -> bool {
        matches!(
            self,
            Self::CreatePushConfig
                | Self::GetPushConfig
                | Self::ListPushConfigs
                | Self::DeletePushConfig
        )
    }

    /// Whether it is one of the two public cards, which need no version.
    #[must_use]
    pub const fn is_card(self) -> bool {
        matches!(self, Self::Card | Self::LegacyCard)
    }
}

/// How the generation of a call is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GenerationRule {
    /// The name says it.
    Named(Generation),
    /// 0.1 and 0.3 share the name: the generation the task was created with
    /// answers; 0.3 for a task of 1.0 or none.
    OfTask,
}

impl GenerationRule {
    /// The generation before any task is loaded.
    pub(super) const fn before_load(self) -> Generation {
        match self {
            Self::Named(generation) => generation,
            Self::OfTask => Generation::V03,
        }
    }
}

const V10: GenerationRule = GenerationRule::Named(Generation::V10);
const V03: GenerationRule = GenerationRule::Named(Generation::V03);
const V01: GenerationRule = GenerationRule::Named(Generation::V01);

/// Every JSON-RPC method there is, with its operation.
const METHODS: [(&str, Operation, GenerationRule); 26] = {
    use Operation as O;
    [
        ("SendMessage", O::Send, V10),
        ("SendStreamingMessage", O::Stream, V10),
        ("GetTask", O::Get, V10),
        ("ListTasks", O::List, V10),
        ("CancelTask", O::Cancel, V10),
        ("SubscribeToTask", O::Subscribe, V10),
        ("CreateTaskPushNotificationConfig", O::CreatePushConfig, V10),
        ("GetTaskPushNotificationConfig", O::GetPushConfig, V10),
        ("ListTaskPushNotificationConfigs", O::ListPushConfigs, V10),
        ("DeleteTaskPushNotificationConfig", O::DeletePushConfig, V10),
        ("GetExtendedAgentCard", O::ExtendedCard, V10),
        ("message/send", O::Send, V03),
        ("message/stream", O::Stream, V03),
        ("tasks/pushNotificationConfig/set", O::CreatePushConfig, V03),
        ("tasks/pushNotificationConfig/get", O::GetPushConfig, V03),
        ("tasks/pushNotificationConfig/list", O::ListPushConfigs, V03),
        (
            "tasks/pushNotificationConfig/delete",
            O::DeletePushConfig,
            V03,
        ),
        ("agent/getAuthenticatedExtendedCard", O::ExtendedCard, V03),
        ("tasks/get", O::Get, GenerationRule::OfTask),
        ("tasks/cancel", O::Cancel, GenerationRule::OfTask),
        ("tasks/resubscribe", O::Subscribe, GenerationRule::OfTask),
        ("tasks/send", O::Send, V01),
        ("tasks/sendSubscribe", O::Stream, V01),
        // What the python-a2a client calls it.
        ("tasks/stream", O::Stream, V01),
        ("tasks/pushNotification/set", O::CreatePushConfig, V01),
        ("tasks/pushNotification/get", O::GetPushConfig, V01),
    ]
};

/// The name of every JSON-RPC method, of all generations.
pub fn methods() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, ..)| *name)
}

/// The operation a JSON-RPC method names.
pub(super) fn named(method: &str) -> Option<(Operation, GenerationRule)> {
    let found = METHODS.iter().find(|(name, ..)| *name == method)?;
    Some((found.1, found.2))
}

/// The generation in whose words an unknown method is refused.
pub(super) fn family(method: &str) -> Generation {
    if method.starts_with("tasks/send") || method.starts_with("tasks/pushNotification/") {
        Generation::V01
    } else if method.contains('/') {
        Generation::V03
    } else {
        Generation::V10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_names_its_operation_and_generation() {
        let v10 = GenerationRule::Named(Generation::V10);
        assert_eq!(named("SendMessage"), Some((Operation::Send, v10)));
        assert_eq!(
            named("message/stream"),
            Some((Operation::Stream, GenerationRule::Named(Generation::V03)))
        );
        assert_eq!(
            named("tasks/sendSubscribe"),
            Some((Operation::Stream, GenerationRule::Named(Generation::V01)))
        );
    }

    #[test]
    fn the_three_shared_methods_wait_for_the_task() {
        for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
            let (_, rule) = named(method).unwrap();
            assert_eq!(rule, GenerationRule::OfTask, "{method}");
            assert_eq!(rule.before_load(), Generation::V03);
        }
    }

    #[test]
    fn a_method_is_matched_exactly() {
        for method in [
            "sendmessage",
            "SendMessage ",
            "message/Send",
            "tasks/list",
            "",
        ] {
            assert_eq!(named(method), None, "{method}");
        }
    }
}
