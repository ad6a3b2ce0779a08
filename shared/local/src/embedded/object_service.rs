//! Answers HTTP requests to the embedded S3.

use super::host::only_programs_here;
use super::object_files::ObjectFiles;
use a2a_lambda::store::aws::EmulatorKeys;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use s3s::auth::{S3Auth, SecretKey};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3Error, S3ErrorCode, S3Result};
use std::path::Path;
use std::sync::Arc;

/// The HTTP endpoint of an object store. It answers programs on this machine that have
/// the keys, and requests with a presigned URL.
#[derive(Clone)]
pub(crate) struct ObjectService(S3Service);

/// The credentials of this run, with which signatures are checked.
struct Run(Arc<EmulatorKeys>);

#[async_trait::async_trait]
impl S3Auth for Run {
    async fn get_secret_key(&self, id: &str) -> S3Result<SecretKey> {
        if id == self.0.id {
            Ok(SecretKey::from(self.0.secret.as_str()))
        } else {
            Err(S3Error::new(S3ErrorCode::InvalidAccessKeyId))
        }
    }
}

impl ObjectService {
    /// An endpoint of the objects below `root`.
    ///
    /// # Errors
    /// The library's error text when the folder cannot be used.
    pub(crate) fn new(root: &Path, keys: Arc<EmulatorKeys>) -> Result<Self, String> {
        let mut service = S3ServiceBuilder::new(ObjectFiles::below(root)?);
        service.set_auth(Run(keys));
        Ok(Self(service.build()))
    }

    /// Answers one request.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        if let Err(error) = only_programs_here(request.headers()) {
            return plain(error.status(), error.text());
        }
        match self.0.call(request.map(Body::from)).await {
            Ok(response) => response,
            Err(error) => {
                tracing::warn!("the embedded S3 failed to answer a request: {error:?}");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
            }
        }
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
