//! Writes the list of contexts, an extension of this project.

use a2a_lambda_model::task::ContextPage;
use serde_json::{Value, json};

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
