//! Writes the JSON documents of the cards.

use super::extension::{OFFERED, SKILL_SCHEMAS, WEBHOOK_SIGNATURES};
use super::{CardInfo, SecurityScheme, SkillInfo};
use crate::payload::{Members, put};
use serde_json::{Value, json};

const JSON_RPC: &str = "JSONRPC";
const REST: &str = "HTTP+JSON";

/// Who reads a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Those of 1.0 (A2A 1.0 §4.4.1).
    V1,
    /// Those of 0.3 and 1.0.
    Union,
    /// Those of 0.1 and 0.2.
    Legacy,
}

/// The members of the card that its readers know.
pub(super) fn card(info: &CardInfo, readers: Readers) -> Value {
    let (is_v1, is_old) = (readers != Readers::Legacy, readers != Readers::V1);
    let is_union = is_v1 && is_old;
    // A reader of 1.0 that finds this list looks for interfaces nowhere else, so
    // those of 0.3 are in it too, last.
    let versions: &[&str] = if is_union { &["1.0", "0.3"] } else { &["1.0"] };
    let url = info.base_url.as_str();
    let transport = |name: &str| json!({"transport": name, "url": url});
    let security = info.security.as_slice();
    let schemes = security.iter();
    let schemes = schemes.map(|it| (name(it).to_owned(), scheme(it, readers)));
    let requirement = |scheme| json!({"schemes": {name(scheme): {"list": []}}});
    let has_extended = is_union && info.capabilities.extended_agent_card;
    filled(json!({
        "name": info.name,
        "description": info.description,
        "version": info.version,
        "defaultInputModes": info.default_input_modes,
        "defaultOutputModes": info.default_output_modes,
        "skills": info.skills.iter().map(skill).collect::<Value>(),
        "capabilities": capabilities(info, is_v1, is_old),
        "securitySchemes": schemes.collect::<Members>(),
        "supportedInterfaces": is_v1.then(|| interfaces(info, versions)),
        "securityRequirements": is_v1.then(|| security.iter().map(requirement).collect::<Value>()),
        "url": is_old.then_some(url),
        // A2A 0.3 §5.6.1: `preferredTransport` is the transport at `url`.
        "preferredTransport": is_union.then_some(JSON_RPC),
        "protocolVersion": is_union.then_some("0.3.0"),
        // A2A 0.3 §5.6.2: the list includes the preferred transport.
        "additionalInterfaces": is_union.then(|| [JSON_RPC, REST].map(transport)),
        "supportsAuthenticatedExtendedCard": has_extended.then_some(true),
        // For 0.2 and 0.3, and then for 0.1.
        "security": is_old.then(|| security.iter().map(|it| json!({name(it): []})).collect::<Value>()),
        "authentication": is_old.then(|| legacy_authentication(security)),
    }))
}

/// The object without its empty members.
fn filled(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, it| !(it.is_null() || *it == json!([]) || *it == json!({})));
    }
    object
}

fn skill(info: &SkillInfo) -> Value {
    filled(json!({
        "id": info.id,
        "name": info.name,
        "description": info.description,
        "tags": info.tags,
        "examples": info.examples,
        "inputModes": info.input_modes,
        "outputModes": info.output_modes,
    }))
}

/// The interfaces of the card, one for each version and binding.
fn interfaces(info: &CardInfo, versions: &[&str]) -> Vec<Value> {
    // A2A 1.0 §8.3.1: the first interface is the preferred one.
    let interface = |version: &str, binding: &str| {
        json!({
            "url": info.base_url, "protocolBinding": binding, "protocolVersion": version,
        })
    };
    versions
        .iter()
        .flat_map(|version| [JSON_RPC, REST].map(|binding| interface(version, binding)))
        .collect()
}

fn capabilities(info: &CardInfo, is_v1: bool, is_old: bool) -> Value {
    let capabilities = info.capabilities;
    filled(json!({
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "extendedAgentCard": is_v1.then_some(capabilities.extended_agent_card),
        "extensions": is_v1.then(|| extensions(info)),
        // A2A 0.3 §5.5.2: the member exists in 0.1 and 0.3 only.
        "stateTransitionHistory": is_old.then_some(true),
    }))
}

/// The extensions (A2A 1.0 §4.6.1); the one for schemas only if a skill has one, the one for
/// webhooks only if there are push configs.
fn extensions(info: &CardInfo) -> Vec<Value> {
    let extensions = OFFERED.into_iter().filter_map(|extension| {
        if extension == SKILL_SCHEMAS {
            skill_schemas(info).map(|schemas| extension.declaration(Some(schemas)))
        } else if extension == WEBHOOK_SIGNATURES && !info.capabilities.push_notifications {
            None
        } else {
            Some(extension.declaration(None))
        }
    });
    extensions.collect()
}

/// The schemas of the skills, as an extension: a card has no member for them.
fn skill_schemas(info: &CardInfo) -> Option<Value> {
    let mut skills = Members::new();
    for skill in &info.skills {
        let mut schemas = Members::new();
        for (name, schema) in [
            ("inputSchema", &skill.input_schema),
            ("outputSchema", &skill.output_schema),
        ] {
            if let Some(schema) = schema {
                put(&mut schemas, name, schema.clone());
            }
        }
        if !schemas.is_empty() {
            put(&mut skills, &skill.id, schemas);
        }
    }
    (!skills.is_empty()).then(|| json!({"skills": skills}))
}

/// The schemes in the words of 0.1.
fn legacy_authentication(security: &[SecurityScheme]) -> Option<Value> {
    let names = security.iter().map(|scheme| match scheme {
        SecurityScheme::Bearer => "Bearer",
        SecurityScheme::OpenIdConnect { .. } => "OpenIdConnect",
    });
    (!security.is_empty()).then(|| json!({"schemes": names.collect::<Vec<_>>()}))
}

/// The name of a scheme on the card.
const fn name(scheme: &SecurityScheme) -> &'static str {
    match scheme {
        SecurityScheme::Bearer => "bearer",
        SecurityScheme::OpenIdConnect { .. } => "openid",
    }
}

/// A scheme: in 1.0 one member, named after its kind (A2A 1.0 §4.5.1), before in the format of
/// `OpenAPI` (A2A 0.3 §5.5.3). For both it has both. The generations share the name
/// `securitySchemes`, and no member inside a scheme has two meanings. Some readers of 1.0 read a
/// scheme that has a `type` from its 0.3 members. So both formats use the same text in the same
/// case, and one signature fits what either reader keeps.
fn scheme(scheme: &SecurityScheme, readers: Readers) -> Value {
    let (v1, mut old) = match scheme {
        SecurityScheme::Bearer => {
            let text = if readers == Readers::V1 {
                "Bearer"
            } else {
                "bearer"
            };
            let v1 = json!({"httpAuthSecurityScheme": {"scheme": text}});
            (v1, json!({"type": "http", "scheme": text}))
        }
        SecurityScheme::OpenIdConnect { url } => (
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": url}}),
            json!({"type": "openIdConnect", "openIdConnectUrl": url}),
        ),
    };
    match (readers, v1, &mut old) {
        (Readers::V1, v1, _) => v1,
        (Readers::Union, Value::Object(v1), Value::Object(members)) => {
            members.extend(v1);
            old
        }
        _ => old,
    }
}
