//! `GET /a2a-lambda/contexts`, one of our extensions.

use super::read;
use crate::task::{ContextId, ContextPage, ContextQuery, Refusal};
use serde_json::{Value, json};

/// Conversations a page holds when nothing is said.
const PAGE_SIZE: i64 = 50;

/// Reads the query.
///
/// # Errors
/// [`Refusal::InvalidParams`] naming each faulty field.
pub(super) fn decode_list(query: &[(String, String)]) -> Result<ContextQuery, Refusal> {
    read::read_query(query, |query| {
        let page_size = query.integer("pageSize", 1..=100).unwrap_or(PAGE_SIZE);
        Some(ContextQuery {
            page_size: usize::try_from(page_size).ok()?,
            page_token: query.text("pageToken").map(str::to_owned),
        })
    })
}

/// Reads the conversation in a path.
///
/// # Errors
/// [`Refusal::InvalidParams`] when it has not the form of one.
pub(super) fn decode_id(text: &str) -> Result<ContextId, Refusal> {
    ContextId::parse(text)
        .map_err(|error| Refusal::invalid("id", format!("must be {}", error.rule)))
}

/// A page.
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
