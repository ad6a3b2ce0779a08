//! The errors of the protocol, written from its specifications. Responses are compared with
//! the rows of `conformance/vectors/errors.json` and not with the table in the code under
//! test.

use crate::dialect::{Dialect, at};
use crate::world::Reply;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// A row of the table; every binding has its form of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRow {
    /// The name of the error.
    pub refusal: String,
    /// The section that defines it; `ours` for an error of this project.
    pub section: String,
    /// The code in 0.3 and 1.0.
    pub code: i64,
    /// The code in 0.1, if it differs.
    #[serde(rename = "code in 0.1")]
    pub code_01: Option<i64>,
    /// The HTTP status of REST.
    pub http: u16,
    /// The HTTP status of REST in 0.3 and 0.1, if it differs.
    #[serde(rename = "http before 1.0")]
    pub http_before: Option<u16>,
    /// The HTTP status of JSON-RPC; 200 if absent.
    #[serde(rename = "http of jsonrpc")]
    pub http_rpc: Option<u16>,
    /// The status name of 1.0.
    pub status: String,
    /// The reason.
    pub reason: String,
    /// Who defines the reason: `a2a` or `ours`.
    pub domain: String,
    /// Metadata of the error. `$string` is any text that is not empty.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Headers of the response, in the same form.
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
}

impl ErrorRow {
    /// The code in 0.1.
    #[must_use]
    pub fn code_in_v01(&self) -> i64 {
        self.code_01.unwrap_or(self.code)
    }
}

static ROWS: LazyLock<Result<Vec<ErrorRow>, String>> = LazyLock::new(|| {
    let table = include_str!("../conformance/vectors/errors.json");
    serde_json::from_str(table).map_err(|error| error.to_string())
});

/// The rows of the table.
///
/// # Errors
/// When the file of the table is not valid.
pub fn rows() -> Result<&'static [ErrorRow], String> {
    match &*ROWS {
        Ok(rows) => Ok(rows.as_slice()),
        Err(error) => Err(error.clone()),
    }
}

/// The name of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row(&'static str);

impl Row {
    /// The row of this name.
    ///
    /// # Errors
    /// When the table has no such row.
    pub fn named(name: &str) -> Result<Self, String> {
        let row = rows()?.iter().find(|row| row.refusal == name);
        let row = row.ok_or_else(|| format!("there is no row {name}"))?;
        Ok(Self(row.refusal.as_str()))
    }

    /// The code in a dialect.
    ///
    /// # Errors
    /// When the table has no such row.
    pub fn code(self, dialect: Dialect) -> Result<i64, String> {
        let row = self.facts()?;
        Ok(if dialect.is_v01() {
            row.code_in_v01()
        } else {
            row.code
        })
    }

    fn facts(self) -> Result<&'static ErrorRow, String> {
        let row = rows()?.iter().find(|row| row.refusal == self.0);
        row.ok_or_else(|| format!("there is no row {}", self.0))
    }
}

/// The body is not JSON.
pub const PARSE: Row = Row("Parse");
/// The body is JSON but not a request.
pub const REQUEST: Row = Row("InvalidRequest");
/// The method or path does not exist.
pub const METHOD: Row = Row("MethodNotFound");
/// A parameter is invalid.
pub const PARAMS: Row = Row("InvalidParams");
/// The request body is too large.
pub const TOO_LARGE: Row = Row("PayloadTooLarge");
/// The task does not exist, or belongs to another caller.
pub const NOT_FOUND: Row = Row("TaskNotFound");
/// The task has ended.
pub const NOT_CANCELABLE: Row = Row("TaskNotCancelable");
/// Push notifications are not available.
pub const NO_PUSH: Row = Row("PushNotSupported");
/// The operation is known but not possible now.
pub const UNSUPPORTED: Row = Row("UnsupportedOperation");
/// A message for a task that has ended.
pub const FINISHED: Row = Row("TaskFinished");
/// A message for a task that is working.
pub const BUSY: Row = Row("TaskBusy");
/// The media type of the request is not supported.
pub const MEDIA_TYPE: Row = Row("UnsupportedMediaType");
/// The media type of a part, or of the output, is not supported.
pub const CONTENT_TYPE: Row = Row("ContentTypeNotSupported");
/// The extended card is announced but not configured.
pub const NO_EXTENDED_CARD: Row = Row("ExtendedCardNotConfigured");
/// The protocol version is not served.
pub const VERSION: Row = Row("VersionNotSupported");
/// The context has expired or never existed.
pub const CONTEXT_EXPIRED: Row = Row("ContextExpired");
/// The idempotency key was used for another request.
pub const KEY_REUSED: Row = Row("IdempotencyKeyReused");
/// The caller has no identity.
pub const UNAUTHENTICATED: Row = Row("Unauthenticated");
/// The store is not available.
pub const UNAVAILABLE: Row = Row("Unavailable");

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
        let (row, body) = (self.row.facts()?, reply.json());
        let http = match self.shape {
            Shape::Rpc => row.http_rpc.unwrap_or(200),
            Shape::Rest10 => row.http,
            Shape::Bare => row.http_before.unwrap_or(row.http),
        };
        same("HTTP status", &reply.status, &http)?;
        let content_type = reply.header("content-type");
        if !["application/json", "application/a2a+json"].contains(&content_type) {
            return Err(format!("content type {content_type:?}"));
        }
        for (name, wanted) in &row.headers {
            fits(name, &json!(reply.header(name)), wanted)?;
        }
        let details = match self.shape {
            Shape::Rpc => {
                same("members", &names(&body), &"error id jsonrpc".to_owned())?;
                same("jsonrpc", at(&body, "/jsonrpc"), &json!("2.0"))?;
                same("id", at(&body, "/id"), &self.id)?;
                self.coded(row, at(&body, "/error"))?
            }
            Shape::Bare => self.coded(row, &body)?,
            Shape::Rest10 => {
                same("members", &names(&body), &"error".to_owned())?;
                let error = at(&body, "/error");
                let members = "code details message status".to_owned();
                same("members", &names(error), &members)?;
                same("code", at(error, "/code"), &json!(row.http))?;
                same("status", at(error, "/status"), &json!(row.status))?;
                fits("the message", at(error, "/message"), &json!("$string"))?;
                at(error, "/details")
            }
        };
        typed(details)?;
        let message = [at(&body, "/error/message"), at(&body, "/message")];
        let message = message.into_iter().find_map(Value::as_str);
        informed(row, of(details, ERROR_INFO))?;
        self.violated(of(details, BAD_REQUEST), message.unwrap_or_default())
    }

    /// Compares a JSON-RPC error, and returns its details.
    fn coded<'v>(&self, row: &ErrorRow, error: &'v Value) -> Result<&'v Value, String> {
        let code = if self.v01 {
            row.code_in_v01()
        } else {
            row.code
        };
        same("members", &names(error), &"code data message".to_owned())?;
        same("code", at(error, "/code"), &json!(code))?;
        fits("the message", at(error, "/message"), &json!("$string"))?;
        Ok(at(error, "/data"))
    }

    /// Compares the field that the error names.
    fn violated(&self, request: &Value, message: &str) -> Result<(), String> {
        let violations = at(request, "/fieldViolations").as_array();
        let count = violations.map_or(0, Vec::len);
        same(
            "the number of fields",
            &count,
            &usize::from(self.row == PARAMS),
        )?;
        let field = at(request, "/fieldViolations/0/field").as_str();
        if let Some(field) = field {
            // Some SDKs drop the details, so the message must start with the field.
            let field: String = field.chars().take(200).collect();
            if !message.starts_with(&format!("invalid parameters: `{field}")) {
                return Err(format!("the message is {message:?}"));
            }
        }
        match &self.field {
            Some(expected) => same("the field", &field, &Some(expected.as_str())),
            None => Ok(()),
        }
    }
}

/// Compares the reason of an error.
fn informed(row: &ErrorRow, info: &Value) -> Result<(), String> {
    let domain = match row.domain.as_str() {
        "a2a" => "a2a-protocol.org",
        _ => "a2a-lambda",
    };
    same("reason", at(info, "/reason"), &json!(row.reason))?;
    same("domain", at(info, "/domain"), &json!(domain))?;
    for (name, wanted) in &row.metadata {
        fits(name, at(info, &format!("/metadata/{name}")), wanted)?;
    }
    Ok(())
}

/// Checks that each element of `details` names its type (A2A 1.0.1 §3.3.2).
fn typed(details: &Value) -> Result<(), String> {
    let list = details.as_array().ok_or("the details are no list")?;
    match list.iter().find(|one| !at(one, "/@type").is_string()) {
        Some(one) => Err(format!("{one} has no `@type`")),
        None => Ok(()),
    }
}

/// The element of `details` with this type.
fn of<'v>(details: &'v Value, kind: &str) -> &'v Value {
    let mut list = details.as_array().into_iter().flatten();
    let found = list.find(|one| at(one, "/@type") == kind);
    found.unwrap_or(&Value::Null)
}

/// Compares a value of the response with one of the table.
fn fits(what: &str, found: &Value, wanted: &Value) -> Result<(), String> {
    let text = found.as_str().is_some_and(|text| !text.is_empty());
    if wanted == "$string" && text {
        return Ok(());
    }
    same(what, found, wanted)
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
