//! URLs that carry a right: to read one object, or to store one.
//!
//! A URL is made of the credentials at hand; no request is sent. It is for one
//! answer only and must not get into a record or a log.

use super::{S3Blobs, STANDARD};
use crate::store::{Download, StoreError, UploadTerms, UploadUrl};
use crate::task::Timestamp;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use base64::Engine as _;
use std::time::{Duration, SystemTime};

/// What answers may be kept by nobody on their way.
const UNCACHED: &str = "private, no-store";

/// A client whose URLs ask for no more than they say: the checks which the SDK
/// adds on its own would be headers that the holder of a URL does not send.
pub(super) fn signer(client: &Client) -> Client {
    let config = client
        .config()
        .to_builder()
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
    Client::from_conf(config.build())
}

impl S3Blobs {
    pub(super) async fn sign_read(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<String, StoreError> {
        let signed = self
            .signer
            .get_object()
            .bucket(&self.bucket)
            .key(download.key)
            .response_content_type(download.content_type)
            .response_content_disposition(download.disposition)
            .response_cache_control(UNCACHED)
            .presigned(terms(now, lifetime)?)
            .await
            .map_err(|error| unsigned(&error))?;
        Ok(signed.uri().to_owned())
    }

    pub(super) async fn sign_upload(
        &self,
        upload: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<UploadUrl, StoreError> {
        let size = i64::try_from(upload.size).map_err(|error| unsigned(&error))?;
        let digest = hex::decode(upload.sha256).map_err(|error| unsigned(&error))?;
        let signed = self
            .signer
            .put_object()
            .bucket(&self.bucket)
            .key(upload.key)
            .if_none_match("*")
            .content_length(size)
            .content_type("application/octet-stream")
            .checksum_sha256(STANDARD.encode(digest))
            .presigned(terms(now, lifetime)?)
            .await
            .map_err(|error| unsigned(&error))?;
        Ok(UploadUrl {
            url: signed.uri().to_owned(),
            headers: headers(&signed),
        })
    }
}

fn headers(signed: &PresignedRequest) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = signed
        .headers()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    headers.sort();
    headers
}

fn terms(now: Timestamp, lifetime: Duration) -> Result<PresigningConfig, StoreError> {
    let since = u64::try_from(now.as_millis()).map_err(|error| unsigned(&error))?;
    PresigningConfig::builder()
        .start_time(SystemTime::UNIX_EPOCH + Duration::from_millis(since))
        .expires_in(lifetime)
        .build()
        .map_err(|error| unsigned(&error))
}

/// The kind of error alone: its text could hold what was being signed.
fn unsigned<E>(_error: &E) -> StoreError {
    StoreError::Refused("failed to sign a URL".to_owned())
}
