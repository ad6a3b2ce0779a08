//! Writes the JSON documents of the cards.

use super::extension::{OFFERED, SKILL_SCHEMAS, WEBHOOK_SIGNATURES};
use super::security;
use super::{CardInfo, SkillInfo};
use serde_json::{Map, Value, json};

const JSON_RPC: &str = "JSONRPC";
const REST: &str = "HTTP+JSON";

/// The members of an object under construction; empty values are left out.
type CardMembers = Map<String, Value>;

fn put(members: &mut CardMembers, name: &str, value: impl Into<Value>) {
    members.insert(name.to_owned(), value.into());
}

fn put_text(members: &mut CardMembers, name: &str, text: Option<&String>) {
    if let Some(text) = text {
        put(members, name, text.as_str());
    }
}

fn put_list(members: &mut CardMembers, name: &str, items: &[String]) {
    if !items.is_empty() {
        put(members, name, items.to_vec());
    }
}

/// The pure 1.0 card (A2A 1.0 §4.4.1).
pub(super) fn v1(info: &CardInfo) -> Value {
    let mut card = common(info);
    put(&mut card, "supportedInterfaces", interfaces(info, &["1.0"]));
    put(&mut card, "capabilities", capabilities(info));
    put_security(&mut card, info, security::v1);
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
    put_security(&mut card, info, security::union);
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
    if !info.security_schemes.is_empty() {
        put(&mut card, "securitySchemes", schemes(info, security::v03));
    }
    put_legacy_security(&mut card, info);
    Value::Object(card)
}

/// The members that are the same in all generations.
fn common(info: &CardInfo) -> CardMembers {
    let mut card = CardMembers::new();
    put(&mut card, "name", info.name.as_str());
    put(&mut card, "description", info.description.as_str());
    put(&mut card, "version", info.version.as_str());
    put_list(&mut card, "defaultInputModes", &info.default_input_modes);
    put_list(&mut card, "defaultOutputModes", &info.default_output_modes);
    let skills: Vec<Value> = info.skills.iter().map(skill).collect();
    put(&mut card, "skills", skills);
    if let Some(provider) = &info.provider {
        let provider = json!({"organization": provider.organization, "url": provider.url});
        put(&mut card, "provider", provider);
    }
    put_text(
        &mut card,
        "documentationUrl",
        info.documentation_url.as_ref(),
    );
    put_text(&mut card, "iconUrl", info.icon_url.as_ref());
    card
}

fn skill(info: &SkillInfo) -> Value {
    let mut skill = CardMembers::new();
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
        let mut interface = CardMembers::new();
        put(&mut interface, "url", info.base_url.as_str());
        put(&mut interface, "protocolBinding", binding);
        put(&mut interface, "protocolVersion", version);
        // A2A 1.0 §8.3.2: a client sends this tenant in each request. Requests of 0.3
        // have no such member.
        if version == "1.0" {
            put_text(&mut interface, "tenant", info.tenant.as_ref());
        }
        Value::Object(interface)
    };
    versions
        .iter()
        .flat_map(|version| [JSON_RPC, REST].map(|binding| interface(version, binding)))
        .collect()
}

fn capabilities(info: &CardInfo) -> CardMembers {
    let mut capabilities = CardMembers::new();
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
    let mut skills = CardMembers::new();
    for skill in &info.skills {
        let mut schemas = CardMembers::new();
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

fn schemes(info: &CardInfo, spell: fn(&super::SecurityScheme) -> CardMembers) -> Value {
    let schemes = info.security_schemes.iter();
    schemes
        .map(|(name, scheme)| (name.clone(), Value::Object(spell(scheme))))
        .collect::<CardMembers>()
        .into()
}

fn put_security(
    card: &mut CardMembers,
    info: &CardInfo,
    spell: fn(&super::SecurityScheme) -> CardMembers,
) {
    if !info.security_schemes.is_empty() {
        put(card, "securitySchemes", schemes(info, spell));
    }
    if !info.security.is_empty() {
        let requirements: Vec<Value> = info.security.iter().map(security::requirement).collect();
        put(card, "securityRequirements", requirements);
    }
}

/// Puts `security` for 0.2 and 0.3, and `authentication` for 0.1.
fn put_legacy_security(card: &mut CardMembers, info: &CardInfo) {
    if !info.security.is_empty() {
        put(card, "security", json!(info.security));
    }
    if !info.security_schemes.is_empty() {
        let mut names: Vec<&str> = info.security_schemes.values().map(security::v01).collect();
        names.sort_unstable();
        names.dedup();
        put(card, "authentication", json!({"schemes": names}));
    }
}
