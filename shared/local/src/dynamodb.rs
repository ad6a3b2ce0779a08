//! Answers HTTP requests to the embedded DynamoDB.
//!
//! It calls the typed functions of the database library. The library has its own HTTP
//! server, but that accepts every origin, host and signature, and a check in front of
//! it would need a second port.

use crate::aws_json::{RequestError, SignedRequest, response};
use a2a_lambda::store::aws::EmulatorKeys;
use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What the header `X-Amz-Target` has before the name of the operation: the service and
/// its version.
const SERVICES: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

/// The HTTP endpoint of a database. It answers programs on this machine that have the
/// keys.
#[derive(Clone)]
pub(crate) struct DynamoDoor {
    database: Database,
    keys: Arc<EmulatorKeys>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Database(#[from] DynoxideError),
}

impl DynamoDoor {
    pub(crate) fn new(database: Database, keys: Arc<EmulatorKeys>) -> Self {
        Self { database, keys }
    }

    /// Answers one request.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match self.call(request).await {
            Ok(body) => (StatusCode::OK, Bytes::from(body)),
            Err(error) => error.answer(),
        };
        response(status, body)
    }

    async fn call(&self, request: Request<Incoming>) -> Result<Vec<u8>, Refused> {
        let request = SignedRequest::read(request, &self.keys).await?;
        let operation = SERVICES
            .iter()
            .find_map(|service| request.target.strip_prefix(service))
            .ok_or(RequestError::Call)?;
        run(&self.database, operation, &request.body)
    }
}

/// Runs an operation: those that the agent uses, and those with which a developer reads
/// the table.
fn run(db: &Database, operation: &str, body: &[u8]) -> Result<Vec<u8>, Refused> {
    match operation {
        "BatchGetItem" => typed(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => typed(body, |request| db.batch_write_item(request)),
        "CreateTable" => typed(body, |request| db.create_table(request)),
        "DeleteItem" => typed(body, |request| db.delete_item(request)),
        "DescribeStream" => typed(body, |request| db.describe_stream(request)),
        "DescribeTable" => typed(body, |request| db.describe_table(request)),
        "DescribeTimeToLive" => typed(body, |request| db.describe_time_to_live(request)),
        "GetItem" => typed(body, |request| db.get_item(request)),
        "GetRecords" => typed(body, |request| db.get_records(request)),
        "GetShardIterator" => typed(body, |request| db.get_shard_iterator(request)),
        "ListStreams" => typed(body, |request| db.list_streams(request)),
        "ListTables" => typed(body, |request| db.list_tables(request)),
        "PutItem" => typed(body, |request| db.put_item(request)),
        "Query" => typed(body, |request| db.query(request)),
        "Scan" => typed(body, |request| db.scan(request)),
        "TransactGetItems" => typed(body, |request| db.transact_get_items(request)),
        "TransactWriteItems" => typed(body, |request| db.transact_write_items(request)),
        "UpdateItem" => typed(body, |request| db.update_item(request)),
        "UpdateTimeToLive" => typed(body, |request| db.update_time_to_live(request)),
        _ => Err(RequestError::Call.into()),
    }
}

/// Decodes the body, makes the call and encodes the result.
fn typed<Q: DeserializeOwned, A: Serialize>(
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
        match self {
            Self::Request(error) => error.answer(),
            Self::Database(error) => {
                let status = StatusCode::from_u16(error.status_code());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                (status, Bytes::from(error.to_json()))
            }
        }
    }
}
