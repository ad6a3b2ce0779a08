//! The operations of the protocol and their JSON-RPC method names.

use a2a_lambda_model::task::Generation;

/// An operation that the server recognises, whether it offers it or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Send a message and wait for one response (A2A 1.0 §3.1.1).
    Send,
    /// Send a message and read a stream (A2A 1.0 §3.1.2).
    Stream,
    /// Read a task (A2A 1.0 §3.1.3).
    Get,
    /// Read a page of tasks (A2A 1.0 §3.1.4).
    List,
    /// Cancel a task (A2A 1.0 §3.1.5).
    Cancel,
    /// Read the stream of a task that exists (A2A 1.0 §3.1.6).
    Subscribe,
    /// Create a push config (A2A 1.0 §3.1.7).
    CreatePushConfig,
    /// Read a push config (A2A 1.0 §3.1.8).
    GetPushConfig,
    /// List the push configs of a task (A2A 1.0 §3.1.9).
    ListPushConfigs,
    /// Delete a push config (A2A 1.0 §3.1.10).
    DeletePushConfig,
    /// Read the card for authenticated callers (A2A 1.0 §3.1.11).
    ExtendedCard,
    /// Read the public card (A2A 1.0 §8.2).
    Card,
    /// Read the public card in the form of 0.1 and 0.2.
    LegacyCard,
    /// Extension of this project: read the schemas of a card that is too large for them.
    Schemas,
    /// Extension of this project: get a URL to upload a file to.
    CreateUpload,
    /// Extension of this project: list the caller's contexts.
    ListContexts,
    /// Extension of this project: delete a context.
    DeleteContext,
    /// Extension of this project: delete a task.
    DeleteTask,
    /// Extension of this project: read the catalogue of skills.
    ListSkills,
}

impl Operation {
    /// Whether the response is a stream of events.
    #[must_use]
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }

    /// The name of its JSON-RPC method in 1.0 (A2A 1.0 §5.3), whatever the generation of
    /// the call. Operations without such a method have a name of the same form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "SendMessage",
            Self::Stream => "SendStreamingMessage",
            Self::Get => "GetTask",
            Self::List => "ListTasks",
            Self::Cancel => "CancelTask",
            Self::Subscribe => "SubscribeToTask",
            Self::CreatePushConfig => "CreateTaskPushNotificationConfig",
            Self::GetPushConfig => "GetTaskPushNotificationConfig",
            Self::ListPushConfigs => "ListTaskPushNotificationConfigs",
            Self::DeletePushConfig => "DeleteTaskPushNotificationConfig",
            Self::ExtendedCard => "GetExtendedAgentCard",
            Self::Card | Self::LegacyCard => "GetAgentCard",
            Self::Schemas => "GetSchemas",
            Self::CreateUpload => "CreateUpload",
            Self::ListContexts => "ListContexts",
            Self::DeleteContext => "DeleteContext",
            Self::DeleteTask => "DeleteTask",
            Self::ListSkills => "ListSkills",
        }
    }

    /// Whether this project defines it, below `/a2a-lambda/`.
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

    /// Whether it is about push configs.
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

    /// Whether it reads one of the two public cards, or the schemas of one.
    #[must_use]
    pub const fn is_card(self) -> bool {
        matches!(self, Self::Card | Self::LegacyCard | Self::Schemas)
    }
}

/// The rule that gives a call its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GenerationRule {
    /// The method name belongs to this generation only.
    Named(Generation),
    /// 0.1 and 0.3 share the method name, and their requests look alike. The call
    /// has the generation that its task was created with, or 0.3 for a task of
    /// 1.0 and for an unknown task.
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

/// The JSON-RPC methods of all generations, each with its operation.
const METHODS: [(&str, Operation, GenerationRule); 26] = {
    use Operation as O;
    [
        // A2A 1.0 §5.3, §9.1: method names are in PascalCase.
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
        // A2A 0.3 §3.5.1: method names are `{category}/{action}`.
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
        // A2A 0.3 §7.3, §7.4 and §7.9; 0.1 has the same names.
        ("tasks/get", O::Get, GenerationRule::OfTask),
        ("tasks/cancel", O::Cancel, GenerationRule::OfTask),
        ("tasks/resubscribe", O::Subscribe, GenerationRule::OfTask),
        ("tasks/send", O::Send, V01),
        ("tasks/sendSubscribe", O::Stream, V01),
        // The python-a2a client uses this name.
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
pub(super) fn by_name(method: &str) -> Option<(Operation, GenerationRule)> {
    let row = METHODS.iter().find(|(name, ..)| *name == method)?;
    Some((row.1, row.2))
}

/// The generation of the error for an unknown method.
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
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_method_names_its_operation_and_generation() {
        let v10 = GenerationRule::Named(Generation::V10);
        assert_eq!(by_name("SendMessage"), Some((Operation::Send, v10)));
        assert_eq!(
            by_name("message/stream"),
            Some((Operation::Stream, GenerationRule::Named(Generation::V03)))
        );
        assert_eq!(
            by_name("tasks/sendSubscribe"),
            Some((Operation::Stream, GenerationRule::Named(Generation::V01)))
        );
    }

    #[test]
    fn every_operation_has_the_name_of_its_method_in_1_0() {
        each_row(METHODS, |(method, operation, rule)| {
            if rule == V10 {
                assert_eq!(operation.name(), method);
            }
        });
    }

    #[test]
    fn the_shared_methods_take_the_generation_of_the_task() {
        for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
            let (_, rule) = by_name(method).unwrap();
            assert_eq!(rule, GenerationRule::OfTask, "{method}");
            assert_eq!(rule.before_load(), Generation::V03);
        }
    }

    #[test]
    fn a_method_is_matched_exactly() {
        let rows = [
            "sendmessage",
            "SendMessage ",
            "message/Send",
            "tasks/list",
            "",
        ];
        each_row(rows, |method| {
            assert_eq!(by_name(method), None, "{method}");
        });
    }
}
