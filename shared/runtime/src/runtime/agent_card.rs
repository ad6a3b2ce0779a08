//! The content of the agent card: what the agent and the settings say.

use crate::auth::AuthMode;
use crate::http::Cards;
use crate::settings::Settings;
use crate::skill::{AgentDefinition, AgentManifest, SkillManifest};
use a2a_lambda_wire::{Capabilities, CardError, CardInfo, SecurityScheme, SkillInfo};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The cards and the catalogue of an agent under these settings. All functions
/// of a deployment publish the same bytes; no request changes them.
///
/// # Errors
/// [`CardError`] when the agent has no valid card, or a signature of the
/// settings belongs to none of its cards.
pub fn cards(agent: &AgentDefinition, settings: &Settings) -> Result<Cards, CardError> {
    let manifest = agent.manifest();
    let listed: Vec<&SkillManifest> = manifest.skills.iter().filter(|s| !s.extended).collect();
    let all: Vec<&SkillManifest> = manifest.skills.iter().collect();
    let public = card_info(manifest, &manifest.description, &listed, settings);
    let mut cards = Cards::new(&public, settings.card)?;
    if manifest.has_extended_card() {
        let text = manifest.extended_description.as_ref();
        let text = text.unwrap_or(&manifest.description);
        cards = cards.extended(&card_info(manifest, text, &all, settings), settings.card)?;
    }
    cards
        .catalogue(json!(listed), json!(all))
        .modified(settings.deployed_at)
        .signed(&settings.card_signatures)
}

/// The content of a card with `skills`. Its URL is the configured one.
fn card_info(
    manifest: &AgentManifest,
    description: &str,
    skills: &[&SkillManifest],
    settings: &Settings,
) -> CardInfo {
    let skills: Vec<SkillInfo> = skills.iter().map(|skill| skill_info(skill)).collect();
    let every = |modes: fn(&SkillInfo) -> &Vec<String>| -> Vec<String> {
        let all: BTreeSet<String> = skills
            .iter()
            .flat_map(|s| modes(s).iter().cloned())
            .collect();
        all.into_iter().collect()
    };
    CardInfo {
        name: manifest.name.clone(),
        description: description.to_owned(),
        version: manifest.version.clone(),
        base_url: settings.public_url.clone(),
        default_input_modes: every(|skill| &skill.input_modes),
        default_output_modes: every(|skill| &skill.output_modes),
        capabilities: Capabilities {
            streaming: true,
            push_notifications: settings.push,
            extended_agent_card: manifest.has_extended_card(),
        },
        security_schemes: security(settings.auth),
        security: match settings.auth {
            AuthMode::Dev => Vec::new(),
            AuthMode::Gateway => vec![BTreeMap::from([(BEARER.to_owned(), Vec::new())])],
        },
        skills,
        ..CardInfo::default()
    }
}

fn skill_info(skill: &SkillManifest) -> SkillInfo {
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    let metadata = &skill.metadata;
    SkillInfo {
        id: metadata.id.to_owned(),
        name: metadata.name.to_owned(),
        description: metadata.description.to_owned(),
        tags: owned(metadata.tags),
        examples: owned(metadata.examples),
        input_modes: owned(metadata.input_modes),
        output_modes: owned(metadata.output_modes),
        input_schema: Some(skill.input_schema.clone()),
        output_schema: skill.output_schema.clone(),
    }
}

/// The name of the security scheme on the card.
const BEARER: &str = "bearer";

/// The security schemes on the card: a bearer token, which the authorizer in
/// front of the functions reads. With development identities there is none.
fn security(auth: AuthMode) -> BTreeMap<String, SecurityScheme> {
    match auth {
        AuthMode::Dev => BTreeMap::new(),
        AuthMode::Gateway => {
            let scheme = SecurityScheme::Http {
                scheme: "Bearer".to_owned(),
                bearer_format: None,
            };
            BTreeMap::from([(BEARER.to_owned(), scheme)])
        }
    }
}
