//! Makes clients of DynamoDB, S3 and SQS, for AWS or for an emulator.
//!
//! TLS is rustls with ring, set explicitly: the defaults of the SDKs would link a second
//! TLS stack. An `http://` endpoint gets a connector without TLS.
//!
//! Only the SDK repeats requests; no other layer repeats what the SDK has given up. The SDK
//! spreads attempts by jitter, limits the retries of a process by a token bucket, and keeps
//! the token of a transaction over its attempts (decision 0008).

use aws_config::default_provider::{use_dual_stack, use_fips};
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::{
    EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider,
};
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::meta::region::ProvideRegion as _;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
#[cfg(feature = "profiles")]
use aws_credential_types::provider::ProvideCredentials as _;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::{
    Builder,
    tls::{self, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::retry::RetrySpec;
use aws_types::origin::Origin;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use std::time::Duration;

/// Time to establish a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// Attempts of one request.
const ATTEMPTS: u32 = 3;
/// Time for one attempt of S3 or SQS.
const ATTEMPT: Duration = Duration::from_secs(6);
/// Time for one attempt of DynamoDB, which usually answers within some ten milliseconds. A
/// lost packet delays a caller by this much.
const TABLE_ATTEMPT: Duration = Duration::from_secs(1);
/// Time for all attempts of DynamoDB and the waits between them. A call that reads and
/// writes a few times still ends before API Gateway times out (29 s).
const TABLE_OPERATION: Duration = Duration::from_secs(5);
/// The longest wait before the second attempt, if DynamoDB throttled the first. The SDK
/// waits less after an attempt that was lost or met another write.
const THROTTLED: Duration = Duration::from_millis(500);

/// The endpoints of the services. `None` is AWS, in the region of the environment, or the
/// endpoint in the variables of the AWS SDK.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// URL of DynamoDB.
    pub dynamodb: Option<String>,
    /// URL of S3.
    pub s3: Option<String>,
    /// The credentials of both, if they are this program's own.
    pub keys: Option<EmulatorKeys>,
}

/// Credentials for one pair of endpoints.
#[derive(Clone, PartialEq, Eq)]
pub struct EmulatorKeys {
    /// The access key id.
    pub id: String,
    /// The secret access key.
    pub secret: String,
}

impl std::fmt::Debug for EmulatorKeys {
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

/// The clients that the stores use.
#[derive(Debug, Clone)]
pub struct AwsClients {
    /// DynamoDB.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// S3.
    pub s3: aws_sdk_s3::Client,
}

impl AwsClients {
    /// Clients for `endpoints`. Region and credentials come from where [`sdk_config`] says.
    /// A loopback endpoint gets the keys of `endpoints`, else those of the environment, else
    /// keys that an emulator does not check.
    pub async fn connect(endpoints: &Endpoints) -> Self {
        let (at, keys) = (endpoints.dynamodb.as_deref(), endpoints.keys.as_ref());
        let first = sdk_config(at, keys).await;
        let mut dynamodb = aws_sdk_dynamodb::config::Builder::from(&first)
            // The time for an attempt is enough: bodies are small.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        // An emulator shares its processor with other programs, so it keeps the 6 s.
        if !at.is_some_and(is_loopback) {
            dynamodb = dynamodb.timeout_config(table_times());
        }
        let second = if endpoints.s3 == endpoints.dynamodb {
            first
        } else {
            sdk_config(endpoints.s3.as_deref(), keys).await
        };
        let s3 = aws_sdk_s3::config::Builder::from(&second)
            // An emulator's host name has no subdomain for each bucket.
            .force_path_style(endpoints.s3.is_some())
            .build();
        Self {
            dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
            s3: aws_sdk_s3::Client::from_conf(s3),
        }
    }
}

/// A client of SQS. It is separate because only two functions need it, and without AWS the
/// search for a region takes seconds.
pub async fn sqs_client(endpoint: Option<&str>) -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&sdk_config(endpoint, None).await)
}

fn table_times() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT.min(TABLE_ATTEMPT))
        .operation_attempt_timeout(TABLE_ATTEMPT)
        .operation_timeout(TABLE_OPERATION)
        .build()
}

fn retries() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(THROTTLED)
        .with_retry_spec(RetrySpec::v2_1())
}

/// The common settings of our clients: TLS, timeouts, the `endpoint` (`None` is AWS or what the
/// variables of the AWS SDK say), and its credentials if they are known.
///
/// Lambda puts region and credentials into the environment. With the feature `profiles` a
/// process without them there gets those that the AWS SDK finds: profiles, SSO, the role of
/// an instance. Functions are built without it, since its code is 0.3 MB.
pub async fn sdk_config(endpoint: Option<&str>, keys: Option<&EmulatorKeys>) -> SdkConfig {
    #[cfg(feature = "profiles")]
    if !endpoint.is_some_and(is_loopback) && !has_environment().await {
        return Box::pin(from_profiles(endpoint)).await;
    }
    from_environment(endpoint, keys).await
}

/// The settings with what the environment and the container say.
async fn from_environment(endpoint: Option<&str>, keys: Option<&EmulatorKeys>) -> SdkConfig {
    let emulator = endpoint.is_some_and(is_loopback);
    let http = http_client(endpoint);
    // Without a client the credentials of a container cannot be fetched.
    let provider = ProviderConfig::default().with_http_client(http.clone());
    let environment = EnvironmentVariableRegionProvider::new().region().await;
    let region = if emulator {
        Some(Region::from_static("us-east-1"))
    } else {
        environment
    };
    let chain = credentials(emulator, keys, &provider);
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(region)
        .credentials_provider(SharedCredentialsProvider::new(chain))
        .http_client(http)
        .service_config(ServiceVariables {
            // A token is a password: it is not sent as plain text.
            tokens: endpoint.is_none_or(|url| !url.starts_with("http://")),
        })
        .timeout_config(timeouts())
        .retry_config(retries());
    if let Some(url) = endpoint {
        config.set_endpoint_url(Some(url.to_owned()));
        // Else the endpoint of a variable wins over this one.
        config.insert_origin("endpoint_url", Origin::shared_config());
    }
    // Else a client of DynamoDB makes one attempt more.
    config.insert_origin("retry_config", Origin::shared_config());
    // Boxed, since the futures hold the search for a profile.
    config.set_use_fips(Box::pin(use_fips::use_fips_provider(&provider)).await);
    let dual_stack = Box::pin(use_dual_stack::use_dual_stack_provider(&provider)).await;
    config.set_use_dual_stack(dual_stack);
    config.build()
}

/// The variables of a token for one service, without the name of the service.
const BEARER_TOKEN: &str = "AWS_BEARER_TOKEN";

/// Variables for one service: `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`, else `AWS_ENDPOINT_URL`, and
/// `AWS_BEARER_TOKEN_BEDROCK` (AWS SDKs and Tools Reference Guide, "Service-specific endpoints").
#[derive(Debug)]
struct ServiceVariables {
    /// Whether there are tokens too.
    tokens: bool,
}

impl LoadServiceConfig for ServiceVariables {
    #[expect(
        clippy::disallowed_methods,
        reason = "variables of the AWS SDK, which reads them by itself only with profiles"
    )]
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        if !self.tokens && key.env() == BEARER_TOKEN {
            return None;
        }
        let service = key.service_id().to_uppercase().replace([' ', '-'], "_");
        let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
        variable(&format!("{}_{service}", key.env())).or_else(|| variable(key.env()))
    }
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .build()
}

fn http_client(endpoint: Option<&str>) -> SharedHttpClient {
    if endpoint.is_some_and(|url| url.starts_with("http://")) {
        return Builder::new().build_http();
    }
    Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

/// Whether region and credentials are in the environment.
#[cfg(feature = "profiles")]
async fn has_environment() -> bool {
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let region = EnvironmentVariableRegionProvider::new().region().await;
    region.is_some() && credentials.provide_credentials().await.is_ok()
}

/// The settings with what the AWS SDK finds on this machine.
#[cfg(feature = "profiles")]
async fn from_profiles(endpoint: Option<&str>) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts())
        .retry_config(retries())
        .http_client(http_client(endpoint));
    if let Some(url) = endpoint {
        loader = loader.endpoint_url(url);
    }
    loader.load().await
}

/// The credentials of the environment. Behind them come those of the container, which a function
/// after a `SnapStart` restore has. An endpoint on this machine gets only the `keys`, if they are
/// known, and behind the environment some that an emulator does not check.
fn credentials(
    emulator: bool,
    keys: Option<&EmulatorKeys>,
    provider: &ProviderConfig,
) -> CredentialsProviderChain {
    let fixed = |id: &str, secret: &str| Credentials::new(id, secret, None, None, "loopback");
    if let (true, Some(EmulatorKeys { id, secret })) = (emulator, keys) {
        return CredentialsProviderChain::first_try("keys", fixed(id, secret));
    }
    let environment = EnvironmentVariableCredentialsProvider::new();
    let chain = CredentialsProviderChain::first_try("environment", environment);
    if emulator {
        return chain.or_else("loopback", fixed("test", "test"));
    }
    let container = EcsCredentialsProvider::builder().configure(provider);
    chain.or_else("container", container.build())
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
    use super::{
        ATTEMPTS, AwsClients, BEARER_TOKEN, Endpoints, SdkConfig, from_environment, is_loopback,
    };
    use a2a_lambda_rows::each_row;
    use aws_credential_types::provider::ProvideCredentials as _;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::process::Command;

    /// Runs the test `name` of this file in a process with other variables.
    fn run_with(name: &str, variables: &[(&str, &str)]) -> String {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", "--nocapture", name]);
        child.env_clear().envs(variables.iter().copied());
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn credentials_of_the_container_are_fetched() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", server.local_addr().unwrap());
        let container = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|it| !it.is_empty())
                .collect();
            let keys = r#"{"AccessKeyId":"AKIDCONTAINER","SecretAccessKey":"s","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#;
            let length = keys.len();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{keys}").unwrap();
            head
        });
        let variables = [
            ("AWS_REGION", "eu-west-1"),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "let-me-in"),
        ];
        let said = run_with("clients::tests::print_settings", &variables);
        assert!(said.contains("key AKIDCONTAINER"), "{said}");
        let head = container.join().unwrap();
        assert!(
            head.iter()
                .any(|line| line.eq_ignore_ascii_case("authorization: let-me-in")),
            "{head:?}"
        );
    }

    #[test]
    fn the_endpoint_of_a_service_is_that_of_its_variable() {
        let keys = [
            ("AWS_ACCESS_KEY_ID", "AKIDFUNCTION"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
        ];
        let endpoints = [
            ("AWS_ENDPOINT_URL", "https://all.example"),
            ("AWS_ENDPOINT_URL_DYNAMODB", "https://table.example"),
            ("AWS_ENDPOINT_URL_SQS", ""),
            ("AWS_BEARER_TOKEN_BEDROCK", "secret"),
        ];
        let said = run_with(
            "clients::tests::print_settings",
            &[&keys[..], &endpoints[..]].concat(),
        );
        let rows = [
            "key AKIDFUNCTION",
            "given http://127.0.0.1:9",
            "dynamodb https://table.example",
            "sqs https://all.example",
            "token secret",
        ];
        each_row(rows, |line| {
            assert!(said.contains(line), "{line}: {said}");
        });
    }

    #[tokio::test]
    #[ignore = "other tests run it with variables of their own"]
    async fn print_settings() {
        use aws_types::service_config::ServiceConfigKey;
        let settings = from_environment(None, None).await;
        let keys = settings
            .credentials_provider()
            .unwrap()
            .provide_credentials()
            .await
            .unwrap();
        println!("key {}", keys.access_key_id());
        let variable = |settings: &SdkConfig, service, env| {
            let key = ServiceConfigKey::builder().service_id(service).env(env);
            let key = key.profile("").build().unwrap();
            let found = settings.service_config().unwrap().load_config(key);
            found.unwrap_or_default()
        };
        for service in ["DynamoDB", "SQS"] {
            let found = variable(&settings, service, "AWS_ENDPOINT_URL");
            println!("{} {found}", service.to_lowercase());
        }
        let token = |settings| variable(settings, "bedrock", BEARER_TOKEN);
        println!("token {}", token(&settings));
        let given = from_environment(Some("http://127.0.0.1:9"), None).await;
        assert_eq!(token(&given), "", "a token without TLS");
        assert!(given.get_origin("endpoint_url").is_client_config());
        println!("given {}", given.endpoint_url().unwrap());
    }

    #[tokio::test]
    async fn each_client_makes_as_many_attempts_as_we_say() {
        let clients = AwsClients::connect(&Endpoints::at("http://127.0.0.1:9")).await;
        let of_dynamodb = clients.dynamodb.config().retry_config();
        let of_s3 = clients.s3.config().retry_config();
        for retries in [of_dynamodb, of_s3] {
            assert_eq!(retries.unwrap().max_attempts(), ATTEMPTS);
        }
    }

    #[test]
    fn only_a_loopback_endpoint_gets_emulator_credentials() {
        for url in [
            "http://127.0.0.1:4566",
            "http://localhost",
            "http://[::1]:1/",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        let rows = [
            "https://127.0.0.1.example.com",
            "http://10.0.0.1:4566",
            "http://localhost.example.com",
            "nonsense",
            "",
        ];
        each_row(rows, |url| {
            assert!(!is_loopback(url), "{url}");
        });
    }
}
