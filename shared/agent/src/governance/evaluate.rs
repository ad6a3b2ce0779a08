//! The findings of policies in a context.

use super::merge::LayeredPolicy;
use super::policy::{Constraint, Rule, Severity, Target};
use crate::layer::Layer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is checked. What is not given is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct CheckContext {
    /// The path of a file.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Its content.
    #[serde(default)]
    pub(crate) content: Option<String>,
    /// The names of all dependencies.
    #[serde(default)]
    pub(crate) dependencies: Option<Vec<String>>,
    /// The names of all imports.
    #[serde(default)]
    pub(crate) imports: Option<Vec<String>>,
    /// The configuration.
    #[serde(default)]
    pub(crate) config: Option<Map<String, Value>>,
    /// The commit of the policies that the project was last checked with.
    #[serde(default)]
    pub(crate) version_hash: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Violation {
    pub(crate) policy_id: String,
    pub(crate) rule_id: String,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) layer: Layer,
    /// The line of the content, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<usize>,
}

/// The findings of all policies, by layer, policy and rule.
pub(crate) fn evaluate(policies: &[LayeredPolicy], context: &CheckContext) -> Vec<Violation> {
    let mut found = Vec::new();
    for LayeredPolicy { layer, policy } in policies {
        for rule in policy.rules.iter().filter(|rule| applies(rule, context)) {
            if let Verdict::Broken(at) = verdict(rule, context) {
                found.push(Violation {
                    policy_id: policy.document.id.clone(),
                    rule_id: rule.document.id.clone(),
                    severity: rule.document.severity,
                    message: rule.document.message.clone(),
                    layer: *layer,
                    at,
                });
            }
        }
    }
    sort(&mut found);
    found
}

/// Puts findings into their order: layer, policy, rule.
pub(crate) fn sort(found: &mut [Violation]) {
    found.sort_by(|a, b| {
        let key = |it: &Violation| (it.layer, it.policy_id.clone(), it.rule_id.clone());
        key(a).cmp(&key(b))
    });
}

/// The share of the rules whose target is known, from 0 to 1; 1 without rules.
pub(crate) fn known_share(policies: &[LayeredPolicy], context: &CheckContext) -> f64 {
    let rules = policies.iter().flat_map(|it| &it.policy.rules);
    let (mut known, mut all) = (0_u32, 0_u32);
    for rule in rules {
        all += 1;
        known += u32::from(entries(rule.document.target, context).is_some());
    }
    match all {
        0 => 1.0,
        all => f64::from(known) / f64::from(all),
    }
}

/// A rule with paths is for those alone. A context without a path could be one of them.
fn applies(rule: &Rule, context: &CheckContext) -> bool {
    let Some(path) = &context.path else {
        return true;
    };
    rule.applies_to.is_empty() || rule.applies_to.iter().any(|it| it.is_match(path))
}

enum Verdict {
    Kept,
    /// Broken, at this line of the content if there is one.
    Broken(Option<usize>),
}

fn verdict(rule: &Rule, context: &CheckContext) -> Verdict {
    let constraint = rule.document.constraint;
    let Some(entries) = entries(rule.document.target, context) else {
        return match constraint.is_demand() {
            true => Verdict::Broken(None),
            false => Verdict::Kept,
        };
    };
    let found = match constraint {
        Constraint::Use | Constraint::NotUse => find_text(rule, &entries),
        _ => find_pattern(rule, &entries),
    };
    match (constraint.is_demand(), found) {
        (true, Some(_)) | (false, None) => Verdict::Kept,
        (true, None) => Verdict::Broken(None),
        (false, Some(at)) => Verdict::Broken(at.filter(|_| rule.document.target == Target::Code)),
    }
}

/// What a rule looks at; `None` if it is not known.
fn entries(target: Target, context: &CheckContext) -> Option<Vec<String>> {
    match target {
        Target::File => context.path.clone().map(|path| vec![path]),
        Target::Code => context.content.clone().map(|content| vec![content]),
        Target::Dependency => context.dependencies.clone(),
        Target::Import => context.imports.clone(),
        Target::Config => context.config.as_ref().map(|config| {
            let mut lines = Vec::new();
            flatten("", config, &mut lines);
            lines
        }),
    }
}

fn flatten(above: &str, config: &Map<String, Value>, lines: &mut Vec<String>) {
    for (name, value) in config {
        let name = match above {
            "" => name.clone(),
            above => format!("{above}.{name}"),
        };
        match value {
            Value::Object(below) => flatten(&name, below, lines),
            Value::String(text) => lines.push(format!("{name}={text}")),
            other => lines.push(format!("{name}={other}")),
        }
    }
}

/// Where the text is: in the content, or as a whole entry of a list. The line, if it is found.
fn find_text(rule: &Rule, entries: &[String]) -> Option<Option<usize>> {
    let value = rule.document.value.as_str();
    entries.iter().find_map(|entry| match rule.document.target {
        Target::Code | Target::File => entry.find(value).map(|at| Some(line(entry, at))),
        Target::Config => {
            let name = entry.split_once('=').map(|(name, _)| name);
            (entry == value || name == Some(value)).then_some(None)
        }
        Target::Dependency | Target::Import => (entry == value).then_some(None),
    })
}

fn find_pattern(rule: &Rule, entries: &[String]) -> Option<Option<usize>> {
    let pattern = rule.pattern.as_ref()?;
    entries.iter().find_map(|entry| {
        let found = pattern.find(entry)?;
        Some(Some(line(entry, found.start())))
    })
}

/// The number of the line at a place of a text.
fn line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.matches('\n').count() + 1
}
