//! Answers CloudFormation, which asks `ops` in each deployment whether the program can use the
//! settings and the table, before it changes another function (AWS CloudFormation, "Custom
//! resource request types").

use super::error::ServeError;
use super::invocation::OtherEvents;
use crate::outbound::{AddressPolicy, Fetcher, OutboundUrl};
use crate::store::dynamodb::DynamoTable;
use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, Method};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long the response to CloudFormation may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest reason: a response has at most 4 KB.
const REASON_MAX: usize = 1_000;

/// The event of a custom resource.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CheckRequest {
    request_type: String,
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
}

impl CheckRequest {
    /// A deletion of the stack needs no usable settings, and leaves the table as it is.
    fn is_deletion(&self) -> bool {
        self.request_type == "Delete"
    }

    /// The response.
    fn response(&self, fault: Option<&str>) -> Value {
        let fault = fault.filter(|_| !self.is_deletion());
        let reason: String = fault.unwrap_or_default().chars().take(REASON_MAX).collect();
        json!({
            "Status": if fault.is_some() { "FAILED" } else { "SUCCESS" },
            "Reason": reason,
            "PhysicalResourceId": "settings",
            "StackId": self.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": self.logical_resource_id,
        })
    }

    /// Sends the response to the place that CloudFormation has named.
    async fn answer(self, fault: Option<&str>) {
        // Only who may invoke the function can name it. In a VPC its address may be private.
        let reach = AddressPolicy::Anything;
        let Ok(url) = OutboundUrl::parse(&self.response_url, reach) else {
            tracing::error!("CloudFormation has named no URL for the response");
            return;
        };
        let body = Bytes::from(self.response(fault).to_string());
        let (fetcher, headers) = (Fetcher::new(reach, TIMEOUT), HeaderMap::new());
        if let Err(error) = fetcher.send(&url, Method::PUT, headers, body, 0).await {
            tracing::error!("failed to answer CloudFormation: {error}");
        }
    }
}

/// What answers the events of a custom resource: the settings can be used, unless some are
/// `unknown`, and the table, which then notes the form of this program.
pub(super) fn check(unknown: &[String], table: DynamoTable) -> OtherEvents {
    let fault = (!unknown.is_empty()).then(|| format!("not settings: {}", unknown.join(", ")));
    Arc::new(move |event| {
        let request: CheckRequest = serde_json::from_slice(event).ok()?;
        let (mut fault, table) = (fault.clone(), table.clone());
        let answer = async move {
            if fault.is_none() && !request.is_deletion() {
                let form = table.claim_form().await;
                fault = form
                    .err()
                    .map(|why| format!("the table cannot be used: {why}"));
            }
            request.answer(fault.as_deref()).await;
        };
        Some(answer.boxed())
    })
}

/// Runs a function that cannot start because of `error`: it says so to CloudFormation, and
/// fails all other invocations.
///
/// # Errors
/// [`ServeError::Lambda`] when the Runtime API cannot be reached.
pub(super) async fn refuse(error: &ServeError) -> Result<(), ServeError> {
    tracing::error!("failed to start: {error}");
    let reason = &error.to_string();
    let handler = service_fn(move |event: LambdaEvent<Value>| async move {
        match CheckRequest::deserialize(event.payload) {
            Ok(request) => {
                request.answer(Some(reason)).await;
                Ok(())
            }
            Err(_) => Err(Diagnostic {
                error_type: "Refused".to_owned(),
                error_message: "the settings cannot be used".to_owned(),
            }),
        }
    });
    Ok(lambda_runtime::run(handler).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(request_type: &str) -> CheckRequest {
        let event = json!({
            "RequestType": request_type, "ResponseURL": "https://example.com/x", "StackId": "s",
            "RequestId": "r", "ResourceType": "Custom::Settings", "LogicalResourceId": "l",
            "ResourceProperties": {"Settings": "{}"},
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn refused_settings_fail_a_deployment_and_no_deletion() {
        let status = |kind, refusal| request(kind).response(refusal)["Status"].clone();
        assert_eq!(
            status("Update", Some("setting `A2A_LEASE` is `1`")),
            "FAILED"
        );
        assert_eq!(status("Update", None), "SUCCESS");
        assert_eq!(status("Delete", Some("bad")), "SUCCESS");
        let long = request("Create").response(Some(&"x".repeat(9_000)));
        assert!(long.to_string().len() < 4_096);
        assert_eq!(long["LogicalResourceId"], "l");
    }

    #[test]
    fn an_event_of_api_gateway_is_no_question() {
        let event = br#"{"httpMethod": "GET", "requestContext": {}}"#;
        assert!(serde_json::from_slice::<CheckRequest>(event).is_err());
    }
}
