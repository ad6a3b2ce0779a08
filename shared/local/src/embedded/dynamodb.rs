//! Answers HTTP requests to the embedded DynamoDB.
//!
//! It calls the typed functions of the database library. The library has its own HTTP
//! server, but that accepts every origin, host and signature, and a check in front of
//! it would need a second port.

use super::host::only_programs_here;
use super::sigv4::Claim;
use a2a_lambda::origin::HostError;
use a2a_lambda::store::aws::EmulatorKeys;
use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Most bytes of a request body. A batch has at most 16 MB of items.
const MOST: usize = 17 * 1024 * 1024;
/// How long a client may take to send its body.
const BODY: Duration = Duration::from_secs(30);
/// How long a read of the stream waits for the next write. Without a wait the reader of an idle
/// program would ask ten times a second.
const NEXT_WRITE: Duration = Duration::from_secs(1);
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
/// What the header `X-Amz-Target` has before the name of the operation: the service and
/// its version.
const SERVICES: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

/// The HTTP endpoint of a database. It answers programs on this machine that have the
/// keys.
#[derive(Clone)]
pub(crate) struct DynamoService {
    database: Database,
    keys: Arc<EmulatorKeys>,
    /// Wakes the reader of the stream.
    writes: Arc<Notify>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{}", .0.text().trim_end())]
    Foreign(HostError),
    #[error("the request is not signed with the credentials of this run")]
    Unproven,
    #[error("no such call")]
    Call,
    #[error("the body broke off, is too large, or came too slowly")]
    Body,
    #[error(transparent)]
    Database(#[from] DynoxideError),
}

impl DynamoService {
    pub(crate) fn new(database: Database, keys: Arc<EmulatorKeys>) -> Self {
        let writes = Arc::default();
        Self {
            database,
            keys,
            writes,
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match self.call(request).await {
            Ok(body) => (StatusCode::OK, Bytes::from(body)),
            Err(error) => error.answer(),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        response
    }

    async fn call(&self, request: Request<Incoming>) -> Result<Vec<u8>, Refused> {
        let (head, body) = request.into_parts();
        only_programs_here(&head.headers).map_err(Refused::Foreign)?;
        let claim = Claim::of(&head.headers, &self.keys).ok_or(Refused::Unproven)?;
        if head.method != Method::POST || head.uri != "/" {
            return Err(Refused::Call);
        }
        let Ok(Ok(body)) = timeout(BODY, Limited::new(body, MOST).collect()).await else {
            return Err(Refused::Body);
        };
        let body = body.to_bytes();
        if !claim.is_proven(&head, &body, &self.keys) {
            return Err(Refused::Unproven);
        }
        let target = head.headers.get("x-amz-target");
        let target = target
            .and_then(|target| target.to_str().ok())
            .unwrap_or_default();
        let mut operations = SERVICES.iter().filter_map(|it| target.strip_prefix(it));
        let operation = operations.next().ok_or(Refused::Call)?;
        let output = run(&self.database, operation, &body)?;
        match operation {
            "BatchWriteItem" | "DeleteItem" | "PutItem" | "TransactWriteItems" | "UpdateItem" => {
                self.writes.notify_one();
            }
            "GetRecords" if has_no_records(&output) => {
                let _idle = timeout(NEXT_WRITE, self.writes.notified()).await;
                return run(&self.database, operation, &body);
            }
            _ => {}
        }
        Ok(output)
    }
}

/// Whether the JSON of a read of the stream has no records. A string in it has no bare quotes.
fn has_no_records(output: &[u8]) -> bool {
    let none = br#""Records":[]"#;
    output.windows(none.len()).any(|bytes| bytes == none)
}

/// Runs an operation: those that the agent uses, and those with which a developer reads
/// the table.
fn run(db: &Database, operation: &str, body: &[u8]) -> Result<Vec<u8>, Refused> {
    match operation {
        "BatchGetItem" => call_json(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => call_json(body, |request| db.batch_write_item(request)),
        "CreateTable" => call_json(body, |request| db.create_table(request)),
        "DeleteItem" => call_json(body, |request| db.delete_item(request)),
        "DescribeStream" => call_json(body, |request| db.describe_stream(request)),
        "DescribeTable" => call_json(body, |request| db.describe_table(request)),
        "DescribeTimeToLive" => call_json(body, |request| db.describe_time_to_live(request)),
        "GetItem" => call_json(body, |request| db.get_item(request)),
        "GetRecords" => call_json(body, |request| db.get_records(request)),
        "GetShardIterator" => call_json(body, |request| db.get_shard_iterator(request)),
        "ListStreams" => call_json(body, |request| db.list_streams(request)),
        "ListTables" => call_json(body, |request| db.list_tables(request)),
        "PutItem" => call_json(body, |request| db.put_item(request)),
        "Query" => call_json(body, |request| db.query(request)),
        "Scan" => call_json(body, |request| db.scan(request)),
        "TransactGetItems" => call_json(body, |request| db.transact_get_items(request)),
        "TransactWriteItems" => call_json(body, |request| db.transact_write_items(request)),
        "UpdateItem" => call_json(body, |request| db.update_item(request)),
        "UpdateTimeToLive" => call_json(body, |request| db.update_time_to_live(request)),
        _ => Err(Refused::Call),
    }
}

/// Decodes the body, makes the call and encodes the result.
fn call_json<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    call: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> Result<Vec<u8>, Refused> {
    let request = serde_json::from_slice(body)
        .map_err(|error| DynoxideError::ValidationException(error.to_string()))?;
    let bytes = serde_json::to_vec(&call(request)?)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))?;
    Ok(bytes)
}

impl Refused {
    /// Status and body, in the form of DynamoDB's errors.
    fn answer(&self) -> (StatusCode, Bytes) {
        let (status, name) = match self {
            Self::Database(error) => {
                let status = StatusCode::from_u16(error.status_code());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return (status, Bytes::from(error.to_json()));
            }
            Self::Foreign(foreign) => (foreign.status(), "AccessDeniedException"),
            Self::Unproven => (StatusCode::BAD_REQUEST, "InvalidSignatureException"),
            Self::Call => (StatusCode::BAD_REQUEST, "UnknownOperationException"),
            Self::Body => (StatusCode::BAD_REQUEST, "SerializationException"),
        };
        let body = serde_json::json!({
            "__type": format!("com.amazon.coral.service#{name}"),
            "message": self.to_string(),
        });
        (status, Bytes::from(body.to_string()))
    }
}
