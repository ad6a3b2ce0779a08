//! Makes presigned URLs: to read one object, or to store one.
//!
//! The store signs a URL with its own credentials and sends no request for it. Each URL is
//! made for one response and must not be stored or logged.

use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::Timestamp;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use std::time::{Duration, SystemTime};

/// The `Cache-Control` of a download: no cache may keep it.
pub(super) const UNCACHED: &str = "private, no-store";

/// A client that signs only the headers we set. The SDK's default checksums would add
/// headers that the holder of a URL does not send.
pub(super) fn signer(client: &Client) -> Client {
    let config = client
        .config()
        .to_builder()
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
    Client::from_conf(config.build())
}

pub(super) fn headers(request: &PresignedRequest) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = request
        .headers()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    headers.sort();
    headers
}

pub(super) fn terms(now: Timestamp, lifetime: Duration) -> Result<PresigningConfig, StoreError> {
    let since = u64::try_from(now.as_millis()).map_err(presign_error)?;
    PresigningConfig::builder()
        .start_time(SystemTime::UNIX_EPOCH + Duration::from_millis(since))
        .expires_in(lifetime)
        .build()
        .map_err(presign_error)
}

/// The error of a failed signature, without its text, which could contain what was signed.
pub(super) fn presign_error<E>(_: E) -> StoreError {
    StoreError::Refused("failed to sign a URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::{S3Blobs, STANDARD};
    use a2a_lambda_model::store::{Blobs as _, Download, ReadBlobs as _, UploadTerms};
    use aws_credential_types::Credentials;
    use aws_sdk_s3::config::{BehaviorVersion, Config, Region};
    use base64::Engine as _;
    use std::collections::BTreeMap;

    const LIFE: Duration = Duration::from_secs(300);
    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// A store whose bucket receives no request.
    fn blobs() -> S3Blobs {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("id", "key", None, None, "test"))
            .build();
        S3Blobs::new(Client::from_conf(config), "bucket")
    }

    fn query(url: &str) -> BTreeMap<&str, &str> {
        let (_, query) = url.split_once('?').unwrap();
        query
            .split('&')
            .filter_map(|it| it.split_once('='))
            .collect()
    }

    #[tokio::test]
    async fn an_upload_url_signs_digest_length_and_single_use() {
        let digest = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
        let terms = UploadTerms {
            key: "up/x",
            size: 10,
            sha256: digest,
        };
        let granted = blobs().upload_url(&terms, NOW, LIFE).await;
        let granted = granted.unwrap().unwrap();
        let headers: BTreeMap<&str, &str> = granted
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(headers.get("if-none-match"), Some(&"*"));
        assert_eq!(headers.get("content-length"), Some(&"10"));
        let checksum = STANDARD.encode(hex::decode(digest).unwrap());
        let query = query(&granted.url);
        let signed = query["X-Amz-SignedHeaders"];
        for name in ["if-none-match", "content-length", "content-type"] {
            assert!(signed.split("%3B").any(|it| it == name), "{signed}");
        }
        let sent = headers.get("x-amz-checksum-sha256").copied();
        let in_query = query.get("x-amz-checksum-sha256").copied();
        let said = sent
            .or(in_query)
            .unwrap()
            .replace("%2F", "/")
            .replace("%3D", "=");
        assert_eq!(said.replace("%2B", "+"), checksum);
        assert_eq!(query["X-Amz-Expires"], "300");
        assert_eq!(query["X-Amz-Date"], "20231114T221320Z");
    }

    #[tokio::test]
    async fn a_download_url_signs_response_headers_and_expiry() {
        let download = Download {
            key: "v1/x",
            content_type: "text/plain",
            disposition: "attachment; filename=x",
        };
        let url = blobs().read_url(&download, NOW, LIFE).await;
        let url = url.unwrap().unwrap();
        let query = query(&url);
        assert_eq!(query["response-content-type"], "text%2Fplain");
        let disposition = query["response-content-disposition"];
        assert!(disposition.starts_with("attachment%3B"), "{disposition}");
        assert_eq!(query["response-cache-control"], "private%2C%20no-store");
        assert_eq!(query["X-Amz-Expires"], "300");
        assert_eq!(query["X-Amz-Date"], "20231114T221320Z");
    }
}
