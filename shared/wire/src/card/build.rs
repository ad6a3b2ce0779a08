//! Writes the JSON documents of the cards.

use super::extension::{OFFERED, SKILL_SCHEMAS, WEBHOOK_SIGNATURES};
use super::{CardInfo, SecurityScheme, SkillInfo};
use crate::payload::{Members, put};
use serde_json::{Value, json};

const JSON_RPC: &str = "JSONRPC";
const REST: &str = "HTTP+JSON";

fn put_list(members: &mut Members, name: &str, items: &[String]) {
    if !items.is_empty() {
        put(members, name, items.to_vec());
    }
}

/// The pure 1.0 card (A2A 1.0 §4.4.1).
pub(super) fn v1(info: &CardInfo) -> Value {
    let mut card = common(info);
    put(&mut card, "supportedInterfaces", interfaces(info, &["1.0"]));
    put(&mut card, "capabilities", capabilities(info));
    put_security(&mut card, info, scheme_v1);
    Value::Object(card)
}

/// The card for readers of 0.3 and 1.0.
pub(super) fn union(info: &CardInfo) -> Value {
    let mut card = common(info);
    // A reader of 1.0 that finds this list looks for interfaces nowhere else, so
    // those of 0.3 are in it too, last.
    let interfaces = interfaces(info, &["1.0", "0.3"]);
    put(&mut card, "supportedInterfaces", interfaces);
    let mut capabilities = capabilities(info);
    // A2A 0.3 §5.5.2: the member exists in 0.1 and 0.3 only.
    put(&mut capabilities, "stateTransitionHistory", true);
    put(&mut card, "capabilities", capabilities);
    put_security(&mut card, info, scheme_union);
    // A2A 0.3 §5.6.1: `preferredTransport` is the transport at `url`.
    put(&mut card, "url", info.base_url.as_str());
    put(&mut card, "preferredTransport", JSON_RPC);
    put(&mut card, "protocolVersion", "0.3.0");
    // A2A 0.3 §5.6.2: the list includes the preferred transport.
    let transport = |name: &str| json!({"transport": name, "url": info.base_url});
    let transports = vec![transport(JSON_RPC), transport(REST)];
    put(&mut card, "additionalInterfaces", transports);
    put_legacy_security(&mut card, info);
    if info.capabilities.extended_agent_card {
        put(&mut card, "supportsAuthenticatedExtendedCard", true);
    }
    Value::Object(card)
}

/// The card of 0.1 and 0.2.
pub(super) fn legacy(info: &CardInfo) -> Value {
    let mut card = common(info);
    put(&mut card, "url", info.base_url.as_str());
    let capabilities = json!({
        "streaming": info.capabilities.streaming,
        "pushNotifications": info.capabilities.push_notifications,
        "stateTransitionHistory": true,
    });
    put(&mut card, "capabilities", capabilities);
    if !info.security.is_empty() {
        put(&mut card, "securitySchemes", schemes(info, scheme_v03));
    }
    put_legacy_security(&mut card, info);
    Value::Object(card)
}

/// The members that are the same in all generations.
fn common(info: &CardInfo) -> Members {
    let mut card = Members::new();
    put(&mut card, "name", info.name.as_str());
    put(&mut card, "description", info.description.as_str());
    put(&mut card, "version", info.version.as_str());
    put_list(&mut card, "defaultInputModes", &info.default_input_modes);
    put_list(&mut card, "defaultOutputModes", &info.default_output_modes);
    let skills: Vec<Value> = info.skills.iter().map(skill).collect();
    put(&mut card, "skills", skills);
    card
}

fn skill(info: &SkillInfo) -> Value {
    let mut skill = Members::new();
    put(&mut skill, "id", info.id.as_str());
    put(&mut skill, "name", info.name.as_str());
    put(&mut skill, "description", info.description.as_str());
    put(&mut skill, "tags", info.tags.clone());
    put_list(&mut skill, "examples", &info.examples);
    put_list(&mut skill, "inputModes", &info.input_modes);
    put_list(&mut skill, "outputModes", &info.output_modes);
    Value::Object(skill)
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

fn capabilities(info: &CardInfo) -> Members {
    let mut capabilities = Members::new();
    put(&mut capabilities, "streaming", info.capabilities.streaming);
    let push = info.capabilities.push_notifications;
    put(&mut capabilities, "pushNotifications", push);
    let has_extended = info.capabilities.extended_agent_card;
    put(&mut capabilities, "extendedAgentCard", has_extended);
    put(&mut capabilities, "extensions", extensions(info));
    capabilities
}

/// The extensions (A2A 1.0 §4.6.1); the one for schemas only if a skill has one, the one for
/// webhooks only if there are push configs.
fn extensions(info: &CardInfo) -> Vec<Value> {
    let extensions = OFFERED.into_iter().filter_map(|extension| {
        if extension == SKILL_SCHEMAS {
            skill_schemas(info).map(|schemas| extension.declared(Some(schemas)))
        } else if extension == WEBHOOK_SIGNATURES && !info.capabilities.push_notifications {
            None
        } else {
            Some(extension.declared(None))
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

fn schemes(info: &CardInfo, write: fn(&SecurityScheme) -> Value) -> Value {
    let schemes = info.security.iter();
    let entry = |scheme| (name(scheme).to_owned(), write(scheme));
    Value::Object(schemes.map(entry).collect())
}

fn put_security(card: &mut Members, info: &CardInfo, write: fn(&SecurityScheme) -> Value) {
    if !info.security.is_empty() {
        put(card, "securitySchemes", schemes(info, write));
        let requirement = |scheme| json!({"schemes": {name(scheme): {"list": []}}});
        let requirements: Vec<Value> = info.security.iter().map(requirement).collect();
        put(card, "securityRequirements", requirements);
    }
}

/// Puts `security` for 0.2 and 0.3, and `authentication` for 0.1.
fn put_legacy_security(card: &mut Members, info: &CardInfo) {
    if !info.security.is_empty() {
        let requirement = |scheme| json!({name(scheme): []});
        let requirements: Vec<Value> = info.security.iter().map(requirement).collect();
        put(card, "security", requirements);
        let names = info.security.iter().map(|scheme| match scheme {
            SecurityScheme::Bearer => "Bearer",
            SecurityScheme::OpenIdConnect { .. } => "OpenIdConnect",
        });
        put(
            card,
            "authentication",
            json!({"schemes": names.collect::<Vec<_>>()}),
        );
    }
}

/// The name of a scheme on the card.
const fn name(scheme: &SecurityScheme) -> &'static str {
    match scheme {
        SecurityScheme::Bearer => "bearer",
        SecurityScheme::OpenIdConnect { .. } => "openid",
    }
}

/// A scheme of 1.0: one member, named after its kind (A2A 1.0 §4.5.1).
fn scheme_v1(scheme: &SecurityScheme) -> Value {
    match scheme {
        SecurityScheme::Bearer => json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}),
        SecurityScheme::OpenIdConnect { url } => {
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": url}})
        }
    }
}

/// A scheme of 0.3: the format of `OpenAPI` (A2A 0.3 §5.5.3).
fn scheme_v03(scheme: &SecurityScheme) -> Value {
    match scheme {
        SecurityScheme::Bearer => json!({"type": "http", "scheme": "bearer"}),
        SecurityScheme::OpenIdConnect { url } => {
            json!({"type": "openIdConnect", "openIdConnectUrl": url})
        }
    }
}

/// In both formats. The generations share the name `securitySchemes`, and no
/// member inside a scheme has two meanings. Some readers of 1.0 read a scheme
/// that has a `type` from its 0.3 members. So both formats use the same text in
/// the same case, and one signature fits what either reader keeps.
fn scheme_union(scheme: &SecurityScheme) -> Value {
    match scheme {
        SecurityScheme::Bearer => json!({
            "type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"},
        }),
        SecurityScheme::OpenIdConnect { url } => json!({
            "type": "openIdConnect", "openIdConnectUrl": url,
            "openIdConnectSecurityScheme": {"openIdConnectUrl": url},
        }),
    }
}
