//! Reads and writes the requests below `/a2a-lambda/contexts`, an extension of this
//! project.

use super::params::{self, PAGE_SIZE};
use a2a_lambda_model::task::{A2aError, ContextId, ContextPage, ContextQuery};
use serde_json::{Value, json};

/// Reads the query of a list.
///
/// # Errors
/// [`A2aError::InvalidParams`] naming each faulty field.
pub(super) fn decode_list(query: &[(String, String)]) -> Result<ContextQuery, A2aError> {
    params::read_query(query, |query| {
        Some(ContextQuery {
            page_size: query.page_size().unwrap_or(PAGE_SIZE),
            page_token: query.text("pageToken").map(str::to_owned),
        })
    })
}

/// Reads the context id in a path.
///
/// # Errors
/// [`A2aError::InvalidParams`] when it is malformed.
pub(super) fn decode_id(text: &str) -> Result<ContextId, A2aError> {
    ContextId::parse(text)
        .map_err(|error| A2aError::invalid("id", format!("must be {}", error.rule)))
}

/// Writes a page of contexts.
pub(super) fn encode_page(page: &ContextPage) -> Value {
    let contexts: Vec<Value> = page
        .contexts
        .iter()
        .map(|context| {
            json!({
                "contextId": context.id.as_str(),
                "status": context.status,
                "createdAt": context.created_at.to_rfc3339(),
                "updatedAt": context.updated_at.to_rfc3339(),
                "expiresAt": context.expires_at.to_rfc3339(),
            })
        })
        .collect();
    json!({
        "contexts": contexts,
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
    })
}
