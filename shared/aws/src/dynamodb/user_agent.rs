//! Names this program in the requests to DynamoDB.
//!
//! The SDK makes its two headers anew for each request, from its configuration and a list
//! of the features that a request uses. This one is a constant. `CloudTrail` shows it as
//! `userAgent` of data events.

use aws_runtime::user_agent::UserAgentInterceptor;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::interceptors::disable_interceptor;

const USER_AGENT: &str = concat!("a2a-lambda/", env!("CARGO_PKG_VERSION"), " aws-sdk-rust");

/// Replaces the headers of the SDK.
#[derive(Debug)]
pub(super) struct FixedUserAgent;

impl Intercept for FixedUserAgent {
    fn name(&self) -> &'static str {
        "FixedUserAgent"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let replaced = disable_interceptor::<UserAgentInterceptor>("replaced by a constant");
        config.interceptor_state().store_put(replaced);
        Ok(())
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request_mut().headers_mut();
        headers.insert("user-agent", USER_AGENT);
        Ok(())
    }
}
