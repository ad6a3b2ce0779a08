//! The operations of governance, each a skill.

use super::check::{Check, Violation, is_valid};
use super::compile::{CompiledPolicy, ConstraintError};
use super::facts::{CheckContext, CheckFacts};
use super::in_force::{ActivePolicies, load};
use super::merge::merge;
use super::policy::{PolicyDocument, Severity};
use crate::access::{Access, Denial, OperationError, Verb, or_reject};
use crate::content::{check_content, data_or};
use crate::knowledge::item::ItemKind;
use crate::knowledge::skills::CONTENT_MAX;
use crate::layer::KnowledgeLayer;
use crate::lines::{list, quote};
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the policies say about a context.
struct Judgement {
    in_force: Arc<ActivePolicies>,
    /// The ids of the policies.
    policies: Vec<String>,
    violations: Vec<Violation>,
}

/// Checks a context against the policies for a target: its own, and those of every broader scope
/// of the caller. A scope that is not the caller's has nothing to read.
async fn judge(
    cx: &TaskContext<'_>,
    verb: Verb,
    (target, scope_id): (KnowledgeLayer, Option<&str>),
    context: CheckContext,
) -> Result<Judgement, OperationError> {
    let access = Access::in_turn(cx);
    let mut scopes = match access.scope(verb, target.layer(), scope_id) {
        Ok(scope) => vec![scope],
        Err(Denial::Foreign) => Vec::new(),
        Err(denial) => return Err(denial.into()),
    };
    let layers = KnowledgeLayer::ALL.into_iter();
    let broader = layers.filter(|layer| *layer > target);
    scopes.extend(access.scopes(verb, broader.map(KnowledgeLayer::layer)));
    let facts = CheckFacts::of(context)?;
    let in_force = load(cx, &scopes).await?;
    let policies = merge(&in_force.policies, target);
    let violations = Check::new(&policies, &facts).await?.run(cx).await;
    Ok(Judgement {
        policies: policies.ids.iter().map(|id| (*id).to_owned()).collect(),
        in_force,
        violations,
    })
}

/// What to check.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Validation {
    /// The layer whose policies count, with those of the broader ones.
    layer: Option<KnowledgeLayer>,
    /// Its project, team or org, if the caller has several.
    scope_id: Option<String>,
    /// What is checked.
    context: Option<CheckContext>,
    /// A policy that is checked itself, instead of a context.
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
            let verb = Verb::GovernanceValidate;
            let judgement = or_reject!(judge(cx, verb, (target, scope), context).await);
            let valid = is_valid(&judgement.violations);
            let line = line(verdict(valid), &judgement.violations, &[]);
            OnRequestResult::done(Validated {
                valid,
                violations: judgement.violations,
                policies: judgement.policies,
                policy_version: Some(judgement.in_force.version.clone()),
            })
            .saying(line)
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

/// How far a project is from its policies.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftReport {
    /// 0 to 1: the sum over the violations, 1.0 for each that blocks, 0.5 for each that warns,
    /// 0.1 for each other one.
    drift_score: f64,
    violations: Vec<Violation>,
    /// The version of the policies in force.
    policy_version: String,
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
    let target = (KnowledgeLayer::Project, Some(input.project_id.as_str()));
    let judgement = or_reject!(judge(cx, Verb::GovernanceDrift, target, input.context).await);
    let violations = judgement.violations;
    let (project, drift_score) = (quote(&input.project_id), score(&violations));
    let verdict = format!("The drift of {project} is {drift_score:.1} of 1");
    let line = line(&verdict, &violations, &[]);
    OnRequestResult::done(DriftReport {
        drift_score,
        violations,
        policy_version: judgement.in_force.version.clone(),
    })
    .saying(line)
}

/// Sums tenths, so that the order of the violations does not change the sum.
fn score(violations: &[Violation]) -> f64 {
    let tenths = violations.iter().fold(0_u32, |sum, violation| {
        let more = match violation.severity {
            Severity::Block => 10,
            Severity::Warn => 5,
            Severity::Info => 1,
        };
        sum.saturating_add(more)
    });
    f64::from(tenths.min(10)) / 10.0
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
    policy_version: String,
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
    let input = data_or(input, |content| KnowledgeCheck {
        content,
        ..KnowledgeCheck::default()
    });
    check_content(&input.content, CONTENT_MAX)?;
    let is_policy = input.kind == Some(ItemKind::Policy);
    let fault = match is_policy.then(|| CompiledPolicy::parse(&input.content)) {
        Some(Err(fault)) => Some(fault.to_string()),
        Some(Ok(_)) | None => None,
    };
    let layer = input.layer.unwrap_or(KnowledgeLayer::Company);
    let target = (layer, input.scope_id.as_deref());
    let context = CheckContext {
        content: Some(input.content),
        ..input.context.unwrap_or_default()
    };
    let judgement = or_reject!(judge(cx, Verb::KnowledgeCheck, target, context).await);
    let valid = is_valid(&judgement.violations) && fault.is_none();
    let warnings: Vec<_> = judgement
        .in_force
        .warnings
        .iter()
        .cloned()
        .chain(fault)
        .collect();
    let line = line(verdict(valid), &judgement.violations, &warnings);
    OnRequestResult::done(CheckedKnowledge {
        valid,
        violations: judgement.violations,
        warnings,
        policy_version: judgement.in_force.version.clone(),
    })
    .saying(line)
}
