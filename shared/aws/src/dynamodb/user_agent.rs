//! Names this program in the requests to DynamoDB.
//!
//! The SDK makes its two headers anew for each request, from its configuration and a list
//! of the features that a request uses. This one is a constant. `CloudTrail` shows it as
//! `userAgent` of data events. A name of the application in the variables of the SDK does
//! not show there.

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
        let switch = disable_interceptor::<UserAgentInterceptor>("replaced by a constant");
        config.interceptor_state().store_put(switch);
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

#[cfg(test)]
mod tests {
    use super::USER_AGENT;
    use crate::clients::{AwsClients, Endpoints};
    use crate::dynamodb::store::DynamoTable;
    use a2a_lambda_store::keys;
    use a2a_lambda_store::table::ReadTable as _;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    /// Answers one connection with `status`, and returns the headers of its request.
    fn serve(listener: &TcpListener, status: &str) -> Vec<String> {
        let (stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream);
        let mut headers = Vec::new();
        while headers.last().is_none_or(|line: &String| !line.is_empty()) {
            let mut line = String::new();
            input.read_line(&mut line).unwrap();
            headers.push(line.trim_end().to_lowercase());
        }
        let length = headers
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        input.read_exact(&mut body).unwrap();
        let answer =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}");
        input.into_inner().write_all(answer.as_bytes()).unwrap();
        headers
    }

    #[tokio::test]
    async fn every_attempt_names_this_program_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            ["500 Internal Server Error", "200 OK"].map(|status| serve(&listener, status))
        });
        let clients = AwsClients::connect(&Endpoints::at(url)).await;
        let table = DynamoTable::new(clients.dynamodb, "table");
        assert_eq!(table.get(&[keys::absent()]).await.unwrap(), []);
        for headers in served.join().unwrap() {
            let named = headers.iter().filter(|line| line.contains("user-agent: "));
            let expected = format!("user-agent: {USER_AGENT}");
            assert_eq!(named.collect::<Vec<_>>(), [&expected]);
        }
    }
}
