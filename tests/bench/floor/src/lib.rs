//! The DynamoDB call of a floor program: one conditional write or one consistent read, with
//! the SDK as its documentation shows it.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use lambda_http::{Error, Request};
use serde_json::{Value, json};

/// The table and its client.
#[derive(Debug, Clone)]
pub struct Table {
    client: Client,
    name: String,
}

fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

impl Table {
    /// Connects as the environment says.
    ///
    /// # Errors
    /// If `BENCH_TABLE` names no table.
    #[expect(clippy::disallowed_methods, reason = "it has no settings module")]
    pub async fn connect() -> Result<Self, Error> {
        let tls = Provider::Rustls(CryptoMode::Ring);
        let http = Builder::new().tls_provider(tls).build_https();
        let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        let client = Client::new(&config.load().await);
        Ok(Self {
            client,
            name: std::env::var("BENCH_TABLE")?,
        })
    }

    /// Stores the message of a POST under its id and returns it; reads the item of a GET.
    ///
    /// # Errors
    /// When the request or the table cannot be used.
    pub async fn answer(&self, request: &Request) -> Result<Vec<u8>, Error> {
        if request.method() == "GET" {
            let id = request.uri().path().rsplit('/').next().unwrap_or_default();
            let found = self.client.get_item().table_name(&self.name);
            let found = found.key("PK", text(id)).key("SK", text("META"));
            let item = found.consistent_read(true).send().await?.item;
            let body = item.as_ref().and_then(|item| item.get("body"));
            let body = body.and_then(|body| body.as_s().ok());
            return Ok(body.ok_or("no such item")?.clone().into_bytes());
        }
        let message: Value = serde_json::from_slice(request.body().as_ref())?;
        let id = message
            .get("id")
            .and_then(Value::as_str)
            .ok_or("no id")?
            .to_owned();
        let task = json!({"id": id, "history": [message], "status": {"state": "completed"}});
        let put = self.client.put_item().table_name(&self.name);
        let put = put.item("PK", text(&id)).item("SK", text("META"));
        let put = put.item("body", text(task.to_string()));
        let put = put.condition_expression("attribute_not_exists(PK)");
        put.send().await?;
        Ok(serde_json::to_vec(&task)?)
    }
}
