//! Security schemes in the spelling of each generation.

use super::SecurityScheme;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// As 1.0 spells it: one member that names the kind.
pub(super) fn v1(scheme: &SecurityScheme) -> Map<String, Value> {
    object(match scheme {
        SecurityScheme::ApiKey { location, name } => json!({
            "apiKeySecurityScheme": {"location": location.as_str(), "name": name},
        }),
        SecurityScheme::Http {
            scheme,
            bearer_format: Some(format),
        } => json!({
            "httpAuthSecurityScheme": {"scheme": scheme, "bearerFormat": format},
        }),
        SecurityScheme::Http {
            scheme,
            bearer_format: None,
        } => json!({"httpAuthSecurityScheme": {"scheme": scheme}}),
        SecurityScheme::ClientCredentials { token_url, scopes } => json!({
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": token_url, "scopes": scopes}},
            },
        }),
        SecurityScheme::OpenIdConnect { url } => json!({
            "openIdConnectSecurityScheme": {"openIdConnectUrl": url},
        }),
    })
}

/// As 0.3 spells it, like `OpenAPI`.
pub(super) fn v03(scheme: &SecurityScheme) -> Map<String, Value> {
    object(match scheme {
        SecurityScheme::ApiKey { location, name } => {
            json!({"type": "apiKey", "in": location.as_str(), "name": name})
        }
        SecurityScheme::Http {
            scheme,
            bearer_format: Some(format),
        } => {
            let scheme = scheme.to_ascii_lowercase();
            json!({"type": "http", "scheme": scheme, "bearerFormat": format})
        }
        SecurityScheme::Http {
            scheme,
            bearer_format: None,
        } => json!({"type": "http", "scheme": scheme.to_ascii_lowercase()}),
        SecurityScheme::ClientCredentials { token_url, scopes } => json!({
            "type": "oauth2",
            "flows": {"clientCredentials": {"tokenUrl": token_url, "scopes": scopes}},
        }),
        SecurityScheme::OpenIdConnect { url } => {
            json!({"type": "openIdConnect", "openIdConnectUrl": url})
        }
    })
}

/// Both at once: the two generations share the member's name, and no member
/// inside has two meanings. Some readers of 1.0 take a scheme that has a `type`
/// from the members of 0.3, so both have the same text in the same case: a
/// signature over what was read is then one for all.
pub(super) fn union(scheme: &SecurityScheme) -> Map<String, Value> {
    let scheme = &match scheme {
        SecurityScheme::Http {
            scheme,
            bearer_format,
        } => SecurityScheme::Http {
            scheme: scheme.to_ascii_lowercase(),
            bearer_format: bearer_format.clone(),
        },
        other => other.clone(),
    };
    let mut members = v03(scheme);
    members.extend(v1(scheme));
    members
}

/// The name 0.1 has for it.
pub(super) fn v01(scheme: &SecurityScheme) -> &str {
    match scheme {
        SecurityScheme::ApiKey { .. } => "ApiKey",
        SecurityScheme::Http { scheme, .. } => scheme,
        SecurityScheme::ClientCredentials { .. } => "OAuth2",
        SecurityScheme::OpenIdConnect { .. } => "OpenIdConnect",
    }
}

/// A requirement of 1.0.
pub(super) fn requirement(schemes: &BTreeMap<String, Vec<String>>) -> Value {
    let schemes: Map<String, Value> = schemes
        .iter()
        .map(|(name, scopes)| (name.clone(), json!({"list": scopes})))
        .collect();
    json!({"schemes": schemes})
}
