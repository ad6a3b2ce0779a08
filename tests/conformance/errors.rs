//! Each error of the code, and its name in the table of errors.

use a2a_lambda::task::{A2aError, TaskState};

/// The name of the row for an error.
pub(crate) const fn name(refusal: &A2aError) -> &'static str {
    use A2aError as R;
    match refusal {
        R::TaskNotFound | R::ForeignTenant => "TaskNotFound",
        R::TaskNotCancelable { .. } => "TaskNotCancelable",
        R::PushNotSupported => "PushNotSupported",
        R::UnsupportedOperation { .. } => "UnsupportedOperation",
        R::TaskFinished { .. } => "TaskFinished",
        R::TaskBusy => "TaskBusy",
        R::ContentTypeNotSupported { .. } => "ContentTypeNotSupported",
        R::UnsupportedMediaType => "UnsupportedMediaType",
        R::InvalidAgentResponse => "InvalidAgentResponse",
        R::ExtendedCardNotConfigured => "ExtendedCardNotConfigured",
        R::ExtensionSupportRequired { .. } => "ExtensionSupportRequired",
        R::VersionNotSupported { .. } => "VersionNotSupported",
        R::Parse | R::LoneSurrogate => "Parse",
        R::InvalidRequest { .. } => "InvalidRequest",
        R::MethodNotFound => "MethodNotFound",
        R::InvalidParams { .. } => "InvalidParams",
        R::Internal => "Internal",
        R::PayloadTooLarge { .. } => "PayloadTooLarge",
        R::RateLimited { .. } => "RateLimited",
        R::Unauthenticated => "Unauthenticated",
        R::Forbidden => "Forbidden",
        R::ContextExpired => "ContextExpired",
        R::StateTooLarge { .. } => "StateTooLarge",
        R::IdempotencyKeyReused => "IdempotencyKeyReused",
        R::Unavailable { .. } => "Unavailable",
        R::Unfinished { .. } => "Unfinished",
        R::UnknownStoredForm => "UnknownStoredForm",
    }
}

/// One value of each error.
pub(crate) fn all() -> Vec<A2aError> {
    use A2aError as R;
    let state = TaskState::Completed;
    vec![
        R::TaskNotFound,
        R::ForeignTenant,
        R::TaskNotCancelable { state },
        R::PushNotSupported,
        R::UnsupportedOperation { why: "not offered" },
        R::TaskFinished { state },
        R::TaskBusy,
        R::ContentTypeNotSupported {
            detail: "`image/png` is not taken".to_owned(),
        },
        R::UnsupportedMediaType,
        R::InvalidAgentResponse,
        R::ExtendedCardNotConfigured,
        R::ExtensionSupportRequired {
            uri: "urn:example:1".to_owned(),
        },
        R::VersionNotSupported {
            version: "9.9".to_owned(),
            versions: "1.0 is served",
        },
        R::Parse,
        R::LoneSurrogate,
        R::InvalidRequest {
            why: "no request".to_owned(),
        },
        R::MethodNotFound,
        R::invalid("message.messageId", "is required"),
        R::Internal,
        R::PayloadTooLarge { limit: 1000 },
        R::RateLimited { retry_after: 7 },
        R::Unauthenticated,
        R::Forbidden,
        R::ContextExpired,
        R::StateTooLarge {
            current: 1_048_577,
            limit: 1_048_576,
        },
        R::IdempotencyKeyReused,
        R::Unavailable { retry_after: 7 },
        R::Unfinished { retry_after: 7 },
        R::UnknownStoredForm,
    ]
}
