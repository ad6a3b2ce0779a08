//! Writes security schemes in the format of each generation.

use super::SecurityScheme;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// In 1.0: one member, named after the kind of the scheme (A2A 1.0 §4.5.1).
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

/// In 0.3: the format of `OpenAPI` (A2A 0.3 §5.5.3).
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

/// In both formats. The generations share the name `securitySchemes`, and no
/// member inside a scheme has two meanings. Some readers of 1.0 read a scheme
/// that has a `type` from its 0.3 members. So both formats use the same text in
/// the same case, and one signature fits what either reader keeps.
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

/// The name of the scheme in 0.1.
pub(super) fn v01(scheme: &SecurityScheme) -> &str {
    match scheme {
        SecurityScheme::ApiKey { .. } => "ApiKey",
        SecurityScheme::Http { scheme, .. } => scheme,
        SecurityScheme::ClientCredentials { .. } => "OAuth2",
        SecurityScheme::OpenIdConnect { .. } => "OpenIdConnect",
    }
}

/// A security requirement in 1.0.
pub(super) fn requirement(schemes: &BTreeMap<String, Vec<String>>) -> Value {
    let schemes: Map<String, Value> = schemes
        .iter()
        .map(|(name, scopes)| (name.clone(), json!({"list": scopes})))
        .collect();
    json!({"schemes": schemes})
}
