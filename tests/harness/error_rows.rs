//! The errors of the protocol, written from its specifications. Responses are compared with
//! these rows and not with the table in the code under test.

use crate::dialect::{Dialect, at};
use crate::world::Reply;
use serde_json::{Value, json};

const A2A: &str = "a2a-protocol.org";
const OURS: &str = "a2a-lambda";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The code in 0.3 and 1.0.
    pub code: i64,
    /// The code in 0.1.
    pub code_01: i64,
    /// The HTTP status, where the binding has one for errors.
    pub http: u16,
    /// The status name of 1.0.
    pub status: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The domain that defines the reason.
    pub domain: &'static str,
}

const fn row(
    code: i64,
    http: u16,
    status: &'static str,
    reason: &'static str,
    domain: &'static str,
) -> Row {
    Row {
        code,
        code_01: code,
        http,
        status,
        reason,
        domain,
    }
}

const fn in_01(row: Row, code_01: i64) -> Row {
    Row { code_01, ..row }
}

const ARGUMENT: &str = "INVALID_ARGUMENT";
const FAILED: &str = "FAILED_PRECONDITION";

/// The body is not JSON.
pub const PARSE: Row = row(-32700, 400, ARGUMENT, "PARSE_ERROR", OURS);
/// The body is JSON but not a request.
pub const REQUEST: Row = row(-32600, 400, ARGUMENT, "INVALID_REQUEST", OURS);
/// The method or path does not exist.
pub const METHOD: Row = row(-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND", OURS);
/// A parameter is invalid.
pub const PARAMS: Row = row(-32602, 400, ARGUMENT, "INVALID_PARAMS", OURS);
/// The request body is too large.
pub const TOO_LARGE: Row = row(-32600, 413, ARGUMENT, "PAYLOAD_TOO_LARGE", OURS);
/// The task does not exist, or belongs to another caller.
pub const NOT_FOUND: Row = row(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND", A2A);
/// The task has ended.
pub const NOT_CANCELABLE: Row = row(-32002, 400, FAILED, "TASK_NOT_CANCELABLE", A2A);
/// Push notifications are not available.
pub const NO_PUSH: Row = row(-32003, 400, FAILED, "PUSH_NOTIFICATION_NOT_SUPPORTED", A2A);
/// The operation is known but not possible now.
pub const UNSUPPORTED: Row = row(-32004, 400, FAILED, "UNSUPPORTED_OPERATION", A2A);
/// A message for a task that has ended.
pub const FINISHED: Row = in_01(UNSUPPORTED, -32009);
/// A message for a task that is working.
pub const BUSY: Row = in_01(row(-32004, 400, FAILED, "TASK_BUSY", OURS), -32009);
/// The media type of the request is not supported.
pub const MEDIA_TYPE: Row = row(-32005, 415, ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", A2A);
/// The media type of a part, or of the output, is not supported.
pub const CONTENT_TYPE: Row = row(-32005, 400, ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", A2A);
/// The extended card is announced but not configured.
pub const NO_EXTENDED_CARD: Row = row(
    -32007,
    400,
    FAILED,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    A2A,
);
/// The protocol version is not served.
pub const VERSION: Row = row(-32009, 400, FAILED, "VERSION_NOT_SUPPORTED", A2A);
/// The context has expired or never existed.
pub const CONTEXT_EXPIRED: Row = row(-32602, 400, FAILED, "CONTEXT_EXPIRED", OURS);
/// The idempotency key was used for another request.
pub const KEY_REUSED: Row = row(-32602, 409, "ABORTED", "IDEMPOTENCY_KEY_REUSED", OURS);
/// The caller has no identity.
pub const UNAUTHENTICATED: Row = in_01(
    row(-32030, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", OURS),
    -32007,
);
/// The store is not available.
pub const UNAVAILABLE: Row = in_01(row(-32603, 503, "UNAVAILABLE", "UNAVAILABLE", OURS), -32011);
/// Any other error of the server.
pub const INTERNAL: Row = row(-32603, 500, "INTERNAL", "INTERNAL_ERROR", OURS);

/// The JSON form of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{"jsonrpc","id","error"}`.
    Rpc,
    /// `{"error":{"code","status","message","details"}}`.
    Rest10,
    /// `{"code","message","data"}`.
    Bare,
}

impl Shape {
    /// The form of a dialect.
    #[must_use]
    pub const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => Self::Rpc,
            Dialect::Rest10 => Self::Rest10,
            Dialect::Rest03 | Dialect::Path01 => Self::Bare,
        }
    }
}

/// The expected error response.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The row.
    pub row: Row,
    /// The shape.
    pub shape: Shape,
    /// Whether the code is that of 0.1.
    pub v01: bool,
    /// The JSON-RPC id.
    pub id: Value,
    /// A field that the error must name.
    pub field: Option<String>,
}

impl Fault {
    /// `row` in the form of a dialect.
    #[must_use]
    pub fn new(dialect: Dialect, row: Row) -> Self {
        Self {
            row,
            shape: Shape::of(dialect),
            v01: dialect.is_v01(),
            id: json!(crate::dialect::RPC_ID),
            field: None,
        }
    }

    /// Expects the error to name this field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Expects this JSON-RPC id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    /// Expects another form than that of the dialect.
    #[must_use]
    pub const fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Compares a response with the expectation.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, reply: &Reply) -> Result<(), String> {
        let body = reply.json();
        let http = match (self.shape, self.row.http) {
            // JSON-RPC errors have HTTP status 200, apart from these.
            (Shape::Rpc, status @ (401 | 403 | 413 | 415 | 429 | 503)) => status,
            (Shape::Rpc, _) => 200,
            (_, status) => status,
        };
        same("HTTP status", &reply.status, &http)?;
        let content_type = reply.header("content-type");
        if !["application/json", "application/a2a+json"].contains(&content_type) {
            return Err(format!("content type {content_type:?}"));
        }
        let code = if self.v01 {
            self.row.code_01
        } else {
            self.row.code
        };
        let details = match self.shape {
            Shape::Rpc => {
                same("members", &names(&body), &"error id jsonrpc".to_owned())?;
                same("jsonrpc", at(&body, "/jsonrpc"), &json!("2.0"))?;
                same("id", at(&body, "/id"), &self.id)?;
                self.coded(at(&body, "/error"), code)?
            }
            Shape::Bare => self.coded(&body, code)?,
            Shape::Rest10 => {
                same("members", &names(&body), &"error".to_owned())?;
                let error = at(&body, "/error");
                let members = "code details message status".to_owned();
                same("members", &names(error), &members)?;
                same("code", at(error, "/code"), &json!(self.row.http))?;
                same("status", at(error, "/status"), &json!(self.row.status))?;
                said(error)?;
                at(error, "/details").clone()
            }
        };
        let message = [at(&body, "/error/message"), at(&body, "/message")];
        let message = message.into_iter().find_map(Value::as_str);
        self.detailed(&details, message.unwrap_or_default())
    }

    fn coded(&self, error: &Value, code: i64) -> Result<Value, String> {
        same("members", &names(error), &"code data message".to_owned())?;
        same("code", at(error, "/code"), &json!(code))?;
        said(error)?;
        Ok(at(error, "/data").clone())
    }

    fn detailed(&self, details: &Value, message: &str) -> Result<(), String> {
        let list = details.as_array().cloned().unwrap_or_default();
        let of = |kind: &str| {
            list.iter()
                .find(|one| at(one, "/@type") == kind)
                .cloned()
                .unwrap_or_default()
        };
        let info = of(ERROR_INFO);
        same("reason", at(&info, "/reason"), &json!(self.row.reason))?;
        same("domain", at(&info, "/domain"), &json!(self.row.domain))?;
        let violations = at(&of(BAD_REQUEST), "/fieldViolations")
            .as_array()
            .cloned()
            .unwrap_or_default();
        same(
            "whether fields are named",
            &!violations.is_empty(),
            &(self.row == PARAMS),
        )?;
        let fields: Vec<&str> = violations
            .iter()
            .filter_map(|one| at(one, "/field").as_str())
            .collect();
        if let (Some(field), PARAMS) = (fields.first(), self.row) {
            // Some SDKs drop the details, so the message must start with the first field.
            let field: String = field.chars().take(200).collect();
            if !message.starts_with(&format!("invalid parameters: `{field}")) {
                return Err(format!("the message is {message:?}"));
            }
        }
        match &self.field {
            Some(field) if !fields.contains(&field.as_str()) => {
                Err(format!("the fields are {fields:?}, without {field:?}"))
            }
            _ => Ok(()),
        }
    }
}

fn said(error: &Value) -> Result<(), String> {
    match at(error, "/message").as_str() {
        Some(text) if !text.is_empty() => Ok(()),
        other => Err(format!("the message is {other:?}")),
    }
}

fn names(value: &Value) -> String {
    let members = value.as_object();
    let names: Vec<&str> = members
        .into_iter()
        .flat_map(|members| members.keys().map(String::as_str))
        .collect();
    names.join(" ")
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} is {found:?} and not {wanted:?}"))
}
