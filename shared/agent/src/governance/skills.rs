//! The operations of governance, each a skill.

use super::drift::{Drift, drift};
use super::evaluate::{CheckContext, Violation, evaluate, sort};
use super::merge::{LayeredPolicy, Merged, merge};
use super::policy::{Policy, PolicyDocument, Severity};
use crate::access::{Denial, Permit, Verb, permit, permits};
use crate::knowledge::item::ItemKind;
use crate::knowledge::skills::{KnowledgeLayer, LAYERS};
use crate::knowledge::store::KnowledgeStore;
use crate::layer::Layer;
use a2a_lambda::prelude::*;
use a2a_lambda::skill::SkillSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most policies that one check reads.
const POLICIES_MAX: usize = 100;

/// The skills of the set `governance`.
pub(crate) fn set() -> SkillSet {
    let set = SkillSet::new("governance").skill(governance_validate);
    set.skill(governance_drift_check)
}

/// The policies in force of a caller.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) policies: Vec<LayeredPolicy>,
    /// Policies that cannot be read any more.
    pub(crate) warnings: Vec<String>,
    /// The commit of the repository.
    pub(crate) head: Option<String>,
}

/// Loads the accepted policies of `narrowest` and the broader layers of the caller.
pub(crate) async fn load(cx: &TaskContext<'_>, narrowest: Layer) -> AgentResult<Loaded> {
    let layers = LAYERS.into_iter().filter(|layer| *layer >= narrowest);
    let seen = layers.flat_map(|layer| permits(cx, Verb::Check, layer));
    load_of(cx, &seen.collect::<Vec<_>>()).await
}

async fn load_of(cx: &TaskContext<'_>, seen: &[Permit]) -> AgentResult<Loaded> {
    let store = KnowledgeStore::of(cx)?;
    let found = store.items(|place, head| {
        head.is_in_force(ItemKind::Policy) && seen.iter().any(|permit| permit.covers(place))
    });
    let mut loaded = Loaded {
        head: store.head_commit().await?,
        ..Loaded::default()
    };
    for (place, _) in found.await?.into_iter().take(POLICIES_MAX) {
        let Some(item) = store.item(&place, None).await? else {
            continue;
        };
        match (Policy::parse(&item.content), Layer::named(place.layer())) {
            (Ok(policy), Some(layer)) => loaded.policies.push(LayeredPolicy { layer, policy }),
            (Err(error), _) => {
                let text = format!("the policy {} is not used: {}", place.file(), error.text());
                loaded.warnings.push(text);
            }
            (Ok(_), None) => {}
        }
    }
    Ok(loaded)
}

/// What to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Validation {
    /// The layer whose policies count, with those of the broader ones.
    #[serde(default)]
    layer: Option<KnowledgeLayer>,
    /// What is checked.
    #[serde(default)]
    context: Option<CheckContext>,
    /// A policy that is checked itself, instead of a context.
    #[serde(default)]
    policy: Option<PolicyDocument>,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Validated {
    /// Whether nothing blocks.
    valid: bool,
    violations: Vec<Violation>,
    /// The ids of the policies that were used.
    policies: Vec<String>,
}

/// Checks a context against the policies of a layer, or a policy itself.
#[skill(id = "governance_validate", name = "Validate", tags = ["governance", "validate"])]
pub(crate) async fn governance_validate(
    cx: &mut TaskContext<'_>,
    input: Validation,
) -> AgentResult<Validated> {
    match (input.layer, input.context, input.policy) {
        (None, None, Some(policy)) => {
            let id = policy.id.clone();
            Policy::compile(policy)?;
            Ok(Validated {
                valid: true,
                violations: Vec::new(),
                policies: vec![id],
            })
        }
        (Some(layer), Some(context), None) => {
            let merged = merge(load(cx, layer.into()).await?.policies);
            Ok(validated(&merged, &context))
        }
        _ => Err(AgentError::invalid_input(
            "give `layer` and `context`, or `policy` alone",
        )),
    }
}

fn validated(merged: &Merged, context: &CheckContext) -> Validated {
    let mut violations = evaluate(&merged.policies, context);
    violations.extend(merged.weakened.iter().cloned());
    sort(&mut violations);
    let policies = merged.policies.iter();
    Validated {
        valid: violations.iter().all(|it| it.severity < Severity::Block),
        violations,
        policies: policies.map(|it| it.policy.document.id.clone()).collect(),
    }
}

/// A project to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct DriftCheck {
    /// The project, which is one of the caller's.
    project_id: String,
    /// What is known of it.
    #[serde(default)]
    context: CheckContext,
}

/// Says how far a project is from its policies.
#[skill(id = "governance_drift_check", name = "Check drift", tags = ["governance", "drift"])]
pub(crate) async fn governance_drift_check(
    cx: &mut TaskContext<'_>,
    input: DriftCheck,
) -> AgentResult<OnRequestResult<Drift>> {
    let project = match permit(cx, Verb::Check, Layer::Project, Some(&input.project_id)) {
        Ok(project) => project,
        Err(denial) => {
            return Ok(OnRequestResult::Rejected {
                reason: denial.to_string(),
            });
        }
    };
    let broader = LAYERS.into_iter().filter(|layer| *layer > Layer::Project);
    let mut seen: Vec<Permit> = broader
        .flat_map(|layer| permits(cx, Verb::Check, layer))
        .collect();
    seen.push(project);
    let loaded = load_of(cx, &seen).await?;
    let (merged, now) = (merge(loaded.policies), cx.now().as_millis());
    OnRequestResult::done(drift(&merged, &input.context, loaded.head.as_deref(), now))
}

/// Content to check before it is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KnowledgeCheck {
    /// The content.
    content: String,
    /// What it is.
    kind: ItemKind,
    /// Its layer; the company by default.
    #[serde(default)]
    layer: Option<KnowledgeLayer>,
    /// What else is known.
    #[serde(default)]
    context: Option<CheckContext>,
}

/// Whether content may be stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckedKnowledge {
    valid: bool,
    violations: Vec<Violation>,
    warnings: Vec<String>,
}

/// Checks content against the policies before it is stored.
#[skill(id = "knowledge_check", name = "Check knowledge", tags = ["knowledge", "check"])]
pub(crate) async fn knowledge_check(
    cx: &mut TaskContext<'_>,
    input: KnowledgeCheck,
) -> AgentResult<CheckedKnowledge> {
    let layer = input.layer.map_or(Layer::Company, Layer::from);
    if let Err(denial @ Denial::Role(_)) = permit(cx, Verb::Check, layer, None) {
        return Err(AgentError::domain("DENIED", denial.to_string()));
    }
    let loaded = load(cx, layer).await?;
    let context = CheckContext {
        content: Some(input.content.clone()),
        ..input.context.unwrap_or_default()
    };
    let mut warnings = loaded.warnings;
    let syntax = match input.kind {
        ItemKind::Policy => Policy::parse(&input.content).err(),
        _ => None,
    };
    warnings.extend(syntax.as_ref().map(|error| error.text().to_owned()));
    let checked = validated(&merge(loaded.policies), &context);
    Ok(CheckedKnowledge {
        valid: checked.valid && syntax.is_none(),
        violations: checked.violations,
        warnings,
    })
}
