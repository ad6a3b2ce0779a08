//! Records the HTTP requests that the AWS SDK sends to DynamoDB and S3.

use a2a_lambda::store::aws::AwsClients;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use std::sync::{Arc, Mutex, PoisonError};

/// One recorded request.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The DynamoDB operation; empty for S3.
    pub operation: String,
    /// The HTTP method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The source of a copied object.
    pub copied: Option<String>,
    /// The body; empty if it was streamed.
    pub body: Vec<u8>,
}

/// Records requests.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Sent>>>);

#[derive(Debug, Clone)]
struct Recording<T> {
    inner: T,
    recorder: Recorder,
}

impl Recorder {
    /// The same clients, with every request recorded.
    ///
    /// # Errors
    /// When a client has no HTTP client.
    pub fn on(&self, clients: &AwsClients) -> Result<AwsClients, &'static str> {
        let recording = |inner: Option<SharedHttpClient>| {
            inner
                .map(|inner| Recording {
                    inner,
                    recorder: self.clone(),
                })
                .ok_or("there is no HTTP client")
        };
        let (dynamodb, s3) = (clients.dynamodb.config(), clients.s3.config());
        let first = dynamodb
            .to_builder()
            .http_client(recording(dynamodb.http_client())?);
        let second = s3.to_builder().http_client(recording(s3.http_client())?);
        Ok(AwsClients {
            dynamodb: aws_sdk_dynamodb::Client::from_conf(first.build()),
            s3: aws_sdk_s3::Client::from_conf(second.force_path_style(true).build()),
        })
    }

    /// Takes the requests since the last call.
    #[must_use]
    pub fn taken(&self) -> Vec<Sent> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut sent)
    }

    fn keep(&self, request: &HttpRequest) {
        let header = |name: &str| request.headers().get(name).map(str::to_owned);
        let target = header("x-amz-target").unwrap_or_default();
        let sent = Sent {
            operation: target.rsplit('.').next().unwrap_or_default().to_owned(),
            method: request.method().to_owned(),
            url: request.uri().to_owned(),
            copied: header("x-amz-copy-source"),
            body: request.body().bytes().unwrap_or_default().to_vec(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(sent);
    }
}

impl HttpClient for Recording<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Recording {
            inner: self.inner.http_connector(settings, components),
            recorder: self.recorder.clone(),
        })
    }
}

impl HttpConnector for Recording<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.recorder.keep(&request);
        self.inner.call(request)
    }
}
