//! The operations of governance, each a skill.

use super::check::Check;
use super::compile::{CompiledPolicy, ConstraintError};
use super::drift::{DriftReport, drift};
use super::facts::{CheckContext, CheckFacts};
use super::in_force::{InForce, PolicyCache, load};
use super::merge::merge;
use super::policy::PolicyDocument;
use super::validate::{Violation, is_valid};
use crate::access::{Access, Denial, Scope, Verb};
use crate::content::check_content;
use crate::knowledge::item::ItemKind;
use crate::knowledge::skills::CONTENT_MAX;
use crate::layer::KnowledgeLayer;
use crate::lines::{list, quote};
use a2a_lambda::prelude::*;
use a2a_lambda::skill::SkillSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The skills of the set `governance`.
pub(crate) fn set() -> SkillSet {
    let set = SkillSet::new("governance").state_value(PolicyCache::default());
    let set = set.skill(governance_validate);
    set.skill(governance_drift_check)
}

/// The scopes with the policies for a target: its own, and every broader one of the caller. A
/// scope that is not the caller's has nothing to read.
fn scopes(
    cx: &TaskContext<'_>,
    verb: Verb,
    target: KnowledgeLayer,
    scope_id: Option<&str>,
) -> Result<Vec<Scope>, Denial> {
    let access = Access::in_turn(cx);
    let broader = KnowledgeLayer::ALL
        .into_iter()
        .filter(|layer| *layer > target);
    let broader = access.scopes(verb, broader.map(KnowledgeLayer::layer));
    let scope = match access.scope(verb, target.layer(), scope_id) {
        Ok(scope) => Some(scope),
        Err(Denial::Foreign) => None,
        Err(denial) => return Err(denial),
    };
    Ok(scope.into_iter().chain(broader).collect())
}

/// What to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Validation {
    /// The layer whose policies count, with those of the broader ones.
    #[serde(default)]
    layer: Option<KnowledgeLayer>,
    /// Its project, team or org, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// What is checked.
    #[serde(default)]
    context: Option<CheckContext>,
    /// A policy that is checked itself, instead of a context.
    #[serde(default)]
    policy: Option<PolicyDocument>,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Validated {
    /// Whether nothing blocks.
    valid: bool,
    violations: Vec<Violation>,
    /// The ids of the policies that were used.
    policies: Vec<String>,
    /// The version of the policies in force; absent for a policy that is checked itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<String>,
}

/// Checks a context against the policies of a layer, or a policy itself.
#[skill(
    id = "governance_validate",
    name = "Validate",
    tags = ["governance", "validate"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn governance_validate(
    cx: &mut TaskContext<'_>,
    input: Validation,
) -> AgentResult<OnRequestResult<Validated>> {
    let scope = input.scope_id.as_deref();
    match (input.layer, input.context, input.policy) {
        (None, None, Some(policy)) => {
            let id = policy.id.clone();
            CompiledPolicy::compile(policy).map_err(ConstraintError::agent_error)?;
            OnRequestResult::done(Validated {
                valid: true,
                violations: Vec::new(),
                policies: vec![id],
                policy_version: None,
            })
            .saying("The policy is valid")
        }
        (Some(target), Some(context), None) => {
            let scopes = match scopes(cx, Verb::GovernanceValidate, target, scope) {
                Ok(scopes) => scopes,
                Err(denial) => return denial.rejection(),
            };
            let facts = CheckFacts::of(context)?;
            let in_force = load(cx, &scopes).await?;
            let validation = validated(cx, &in_force, target, &facts).await?;
            let line = line(verdict(validation.valid), &validation.violations, &[]);
            OnRequestResult::done(validation).saying(line)
        }
        _ => Err(AgentError::invalid_input(
            "give `layer` and `context`, or `policy` alone",
        )),
    }
}

/// The line about a check. It begins with the verdict.
fn line(verdict: &str, violations: &[Violation], warnings: &[String]) -> String {
    let messages = violations.iter().map(|it| &it.message);
    let count = violations.len() + warnings.len();
    let findings = list(count, ["finding", "findings"], messages.chain(warnings));
    format!("{verdict}, with {findings}")
}

const fn verdict(is_valid: bool) -> &'static str {
    if is_valid { "Valid" } else { "Not valid" }
}

async fn validated(
    cx: &TaskContext<'_>,
    in_force: &InForce,
    target: KnowledgeLayer,
    facts: &CheckFacts,
) -> AgentResult<Validated> {
    let policies = merge(&in_force.policies, target);
    let check = Check::new(&policies, facts, None).await?;
    let violations = check.run(cx).await.violations;
    Ok(Validated {
        valid: is_valid(&violations),
        violations,
        policies: policies.ids().iter().map(|id| (*id).to_owned()).collect(),
        policy_version: Some(in_force.version.clone()),
    })
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
#[skill(
    id = "governance_drift_check",
    name = "Check drift",
    tags = ["governance", "drift"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn governance_drift_check(
    cx: &mut TaskContext<'_>,
    input: DriftCheck,
) -> AgentResult<OnRequestResult<DriftReport>> {
    let (target, project) = (KnowledgeLayer::Project, Some(input.project_id.as_str()));
    let scopes = match scopes(cx, Verb::GovernanceDrift, target, project) {
        Ok(scopes) => scopes,
        Err(denial) => return denial.rejection(),
    };
    let facts = CheckFacts::of(input.context)?;
    let in_force = load(cx, &scopes).await?;
    let policies = merge(&in_force.policies, target);
    let check = Check::new(&policies, &facts, Some(cx.now())).await?;
    let result = check.run(cx).await;
    let report = drift(&policies, &facts, &in_force.version, result);
    let (project, score) = (quote(&input.project_id), report.drift_score);
    let verdict = format!("The drift of {project} is {score:.1} of 1");
    let line = line(&verdict, &report.violations, &[]);
    OnRequestResult::done(report).saying(line)
}

/// Content to check before it is stored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct KnowledgeCheck {
    /// The content, at most 64 KB.
    content: String,
    /// What it is. A policy is also checked as a policy.
    #[serde(default)]
    kind: Option<ItemKind>,
    /// Its layer; the company by default.
    #[serde(default)]
    layer: Option<KnowledgeLayer>,
    /// Its project, team or org, if the caller has several.
    #[serde(default)]
    scope_id: Option<String>,
    /// What else is known.
    #[serde(default)]
    context: Option<CheckContext>,
}

/// Whether content may be stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckedKnowledge {
    valid: bool,
    violations: Vec<Violation>,
    warnings: Vec<String>,
    /// The version of the policies in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<String>,
}

/// Checks content against the policies before it is stored.
#[skill(
    id = "knowledge_check",
    name = "Check knowledge",
    tags = ["knowledge", "check"],
    examples = ["May I use unwrap()"],
    text = "may I use {content}",
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn knowledge_check(
    cx: &mut TaskContext<'_>,
    input: TextOr<KnowledgeCheck>,
) -> AgentResult<OnRequestResult<CheckedKnowledge>> {
    let input = match input {
        TextOr::Data(input) => input,
        TextOr::Text(content) => KnowledgeCheck {
            content,
            ..KnowledgeCheck::default()
        },
    };
    check_content(&input.content, CONTENT_MAX)?;
    let target = input.layer.unwrap_or(KnowledgeLayer::Company);
    let scopes = match scopes(cx, Verb::KnowledgeCheck, target, input.scope_id.as_deref()) {
        Ok(scopes) => scopes,
        Err(denial) => return denial.rejection(),
    };
    let in_force = load(cx, &scopes).await?;
    let mut warnings = in_force.warnings.clone();
    let syntax = match input.kind {
        Some(ItemKind::Policy) => CompiledPolicy::parse(&input.content).err(),
        Some(ItemKind::Adr | ItemKind::Pattern | ItemKind::Spec | ItemKind::Hindsight) | None => {
            None
        }
    };
    warnings.extend(syntax.as_ref().map(ToString::to_string));
    let facts = CheckFacts::of(CheckContext {
        content: Some(input.content),
        ..input.context.unwrap_or_default()
    })?;
    let validation = validated(cx, &in_force, target, &facts).await?;
    let valid = validation.valid && syntax.is_none();
    let line = line(verdict(valid), &validation.violations, &warnings);
    OnRequestResult::done(CheckedKnowledge {
        valid,
        violations: validation.violations,
        warnings,
        policy_version: validation.policy_version,
    })
    .saying(line)
}
