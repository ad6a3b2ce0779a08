//! The content of the agent card: what the agent and the settings say.

use crate::auth::{AuthMode, configuration_url};
use crate::http::Cards;
use crate::settings::Settings;
use a2a_lambda_skill::{AgentDefinition, AgentManifest, SkillManifest};
use a2a_lambda_wire::{
    Capabilities, CardError, CardInfo, CardSignature, SecurityScheme, SkillInfo,
};
use serde_json::json;
use std::collections::BTreeSet;

/// The cards and the catalogue of an agent under these settings and `base_url`. All
/// functions of a deployment publish the same bytes; no client changes them.
///
/// Cards that have changed since they were signed are served without a signature, and
/// the log says so.
///
/// # Errors
/// [`CardError`] when the agent has no valid card.
pub fn cards(
    agent: &AgentDefinition,
    settings: &Settings,
    base_url: &str,
) -> Result<Cards, CardError> {
    let cards = build_cards(agent, settings, base_url)?;
    warn_of_foreign(&cards, settings, base_url);
    Ok(cards.with_signatures(&settings.card_signatures))
}

/// Checks that the agent has valid cards, before anything asks for them. Nothing in a schema
/// can be invalid, so none is made.
///
/// # Errors
/// [`CardError`] when it has none.
pub(super) fn check(agent: &AgentDefinition, settings: &Settings) -> Result<(), CardError> {
    let manifest = agent.manifest();
    let all: Vec<&SkillManifest> = manifest.skills.iter().collect();
    let text = manifest.extended_description.as_ref();
    for text in [Some(&manifest.description), text].into_iter().flatten() {
        let info = CardInfo {
            base_url: "https://agent.invalid".to_owned(),
            ..card_info(manifest, text, &all, settings, without_schemas)
        };
        info.agent_card(settings.card)?;
    }
    Ok(())
}

fn build_cards(
    agent: &AgentDefinition,
    settings: &Settings,
    base_url: &str,
) -> Result<Cards, CardError> {
    let manifest = agent.manifest();
    let public_skills: Vec<&SkillManifest> =
        manifest.skills.iter().filter(|s| !s.extended).collect();
    let all: Vec<&SkillManifest> = manifest.skills.iter().collect();
    let info = |text: &str, skills: &[&SkillManifest]| CardInfo {
        base_url: base_url.to_owned(),
        ..card_info(manifest, text, skills, settings, with_schemas)
    };
    let public = info(&manifest.description, &public_skills);
    let text = manifest.extended_description.as_ref();
    let text = text.unwrap_or(&manifest.description);
    let extended_card = || info(text, &all).agent_card(settings.card);
    let mut cards = Cards::new(&public, settings.card)?;
    let has_extended = manifest.has_extended_card();
    cards.extended_card = has_extended.then(extended_card).transpose()?;
    (cards.public_skills, cards.all) = (json!(public_skills), json!(all));
    cards.modified_at = settings.deployed_at;
    Ok(cards)
}

/// Logs a warning if a signature of the settings belongs to none of the cards.
fn warn_of_foreign(cards: &Cards, settings: &Settings, base_url: &str) {
    let is_foreign = |signature: &&CardSignature| {
        let mut documents = cards.documents();
        !documents.any(|document| signature.is_of(&document.value))
    };
    let count = settings.card_signatures.iter().filter(is_foreign).count();
    if count > 0 {
        tracing::warn!(
            "{count} of the signatures in `A2A_CARD_SIGNATURES` belong to another card than those \
             of {base_url}, and are not served: sign the card again with `a2a-local sign-card`"
        );
    }
}

/// The content of a card with `skills`, without its URL.
fn card_info(
    manifest: &AgentManifest,
    description: &str,
    skills: &[&SkillManifest],
    settings: &Settings,
    describe: fn(&SkillManifest) -> SkillInfo,
) -> CardInfo {
    let skills: Vec<SkillInfo> = skills.iter().map(|skill| describe(skill)).collect();
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
        default_input_modes: every(|skill| &skill.input_modes),
        default_output_modes: every(|skill| &skill.output_modes),
        capabilities: Capabilities {
            streaming: settings.streaming,
            push_notifications: settings.push,
            extended_agent_card: manifest.has_extended_card(),
        },
        security: security(settings),
        skills,
        ..CardInfo::default()
    }
}

fn with_schemas(skill: &SkillManifest) -> SkillInfo {
    SkillInfo {
        input_schema: Some(skill.input_schema().clone()),
        output_schema: skill.output_schema().cloned(),
        ..without_schemas(skill)
    }
}

fn without_schemas(skill: &SkillManifest) -> SkillInfo {
    let to_strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    let metadata = &skill.metadata;
    SkillInfo {
        id: metadata.id.to_owned(),
        name: metadata.name.to_owned(),
        description: metadata.description.to_owned(),
        tags: to_strings(metadata.tags),
        examples: to_strings(metadata.examples),
        input_modes: to_strings(metadata.input_modes),
        output_modes: to_strings(metadata.output_modes),
        input_schema: None,
        output_schema: None,
    }
}

/// The security schemes on the card: a bearer token, and where it comes from if the settings
/// name an issuer. With development identities there is none.
fn security(settings: &Settings) -> Vec<SecurityScheme> {
    if settings.auth == AuthMode::Dev {
        return Vec::new();
    }
    let issuer = settings.credentials.issuer.as_deref();
    let open_id = issuer.map(|issuer| SecurityScheme::OpenIdConnect {
        url: configuration_url(issuer),
    });
    [SecurityScheme::Bearer]
        .into_iter()
        .chain(open_id)
        .collect()
}
