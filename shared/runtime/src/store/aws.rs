//! Clients of DynamoDB, S3 and SQS, for AWS itself or for an emulator.
//!
//! TLS is rustls with ring, given explicitly: the SDKs' own defaults would link
//! a second stack. An `http://` endpoint gets a connector without TLS.

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::{
    Builder,
    tls::{self, rustls_provider::CryptoMode},
};
use std::time::Duration;

/// Time for a connection to stand.
const CONNECT: Duration = Duration::from_secs(2);
/// Time for one attempt; the SDK makes three, with jitter between them.
const ATTEMPT: Duration = Duration::from_secs(6);

/// Where the services answer. `None` is AWS, in the region of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// URL of DynamoDB.
    pub dynamodb: Option<String>,
    /// URL of S3.
    pub s3: Option<String>,
    /// What both take, if they are this program's own.
    pub keys: Option<Keys>,
}

/// Credentials that one pair of endpoints takes.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The access key id.
    pub id: String,
    /// The secret access key.
    pub secret: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Endpoints {
    /// Both services at one URL, as most emulators offer them.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            dynamodb: Some(url.clone()),
            s3: Some(url),
            keys: None,
        }
    }
}

/// The clients that stores are made of.
#[derive(Debug, Clone)]
pub struct AwsClients {
    /// DynamoDB.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// S3.
    pub s3: aws_sdk_s3::Client,
}

impl AwsClients {
    /// Clients for `endpoints`. Region and credentials come from the usual
    /// places. A loopback endpoint is given the keys of the endpoints, else
    /// those of the environment, else some that an emulator does not check.
    pub async fn connect(endpoints: &Endpoints) -> Self {
        let keys = endpoints.keys.as_ref();
        let first = sdk_config(endpoints.dynamodb.as_deref(), keys).await;
        let dynamodb = aws_sdk_dynamodb::Client::new(&first);
        let second = if endpoints.s3 == endpoints.dynamodb {
            first
        } else {
            sdk_config(endpoints.s3.as_deref(), keys).await
        };
        let s3 = aws_sdk_s3::config::Builder::from(&second)
            // A bucket as a host name below an emulator's does not resolve.
            .force_path_style(endpoints.s3.is_some())
            .build();
        Self {
            dynamodb,
            s3: aws_sdk_s3::Client::from_conf(s3),
        }
    }
}

/// A client of SQS, for the two functions that need one: on a machine without
/// AWS the look for a region takes seconds.
pub async fn sqs_client(endpoint: Option<&str>) -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&sdk_config(endpoint, None).await)
}

/// Waits after try number `tries`, from 0, of something that is undecided.
pub(super) async fn pause(tries: u32) {
    tokio::time::sleep(Duration::from_millis(20 << tries.min(6))).await;
}

/// What every client of ours is made of: TLS, timeouts, where `endpoint` is
/// (`None` is AWS), and the keys it takes, if they are known.
pub async fn sdk_config(endpoint: Option<&str>, keys: Option<&Keys>) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts);
    if let Some(url) = endpoint {
        loader = loader.endpoint_url(url);
        if is_loopback(url) {
            loader = loader
                .region(Region::from_static("us-east-1"))
                .credentials_provider(credentials(keys));
        }
    }
    let http = if endpoint.is_some_and(|url| url.starts_with("http://")) {
        Builder::new().build_http()
    } else {
        Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .build_https()
    };
    loader.http_client(http).load().await
}

/// The credentials for an endpoint on this machine.
fn credentials(keys: Option<&Keys>) -> CredentialsProviderChain {
    let fixed = |id: &str, secret: &str| Credentials::new(id, secret, None, None, "loopback");
    match keys {
        Some(Keys { id, secret }) => CredentialsProviderChain::first_try("keys", fixed(id, secret)),
        None => CredentialsProviderChain::first_try(
            "environment",
            EnvironmentVariableCredentialsProvider::new(),
        )
        .or_else("loopback", fixed("test", "test")),
    }
}

/// Whether `url` names this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_this_machine_is_given_credentials_of_an_emulator() {
        for url in [
            "http://127.0.0.1:4566",
            "http://localhost",
            "http://[::1]:1/",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://127.0.0.1.example.com",
            "http://10.0.0.1:4566",
            "http://localhost.example.com",
            "nonsense",
            "",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
