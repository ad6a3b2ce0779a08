//! The policy as its author writes and a skill stores it.

use crate::layer::KnowledgeLayer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy: rules for content, and whether narrower layers may weaken them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicyDocument {
    /// Names the policy: 1 to 128 of `A-Za-z0-9._-`. Policies of several layers with one id
    /// are merged.
    pub(crate) id: String,
    /// The layer that the policy belongs to.
    pub(crate) layer: KnowledgeLayer,
    /// Whether narrower layers may only make the policy stricter.
    #[serde(default)]
    pub(crate) mandatory: bool,
    /// How the policy changes the broader policy of the same id. It is `merge` if absent.
    #[serde(default)]
    pub(crate) merge: MergeMode,
    /// At most 100 rules, each with its own id.
    pub(crate) rules: Vec<PolicyRule>,
}

/// How a policy changes the broader policy of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MergeMode {
    /// Its rules replace all rules of the broader policy.
    Override,
    /// Its rules are added; one with the id of a broader rule replaces it.
    #[default]
    Merge,
    /// Only rules that both have stay, as this policy writes them.
    Intersect,
}

/// One rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicyRule {
    /// Names the rule in its policy: 1 to 128 of `A-Za-z0-9._-`.
    pub(crate) id: String,
    /// What the rule demands.
    pub(crate) kind: RuleKind,
    /// What the rule looks at.
    pub(crate) target: RuleTarget,
    /// 1 to 512 bytes: a text for `must_use` and `must_not_use`, a regular expression for
    /// `must_match` and `must_not_match`, a glob for `must_exist` and `must_not_exist`.
    pub(crate) pattern: String,
    /// How bad a violation is.
    pub(crate) severity: Severity,
    /// What a violation says: 1 to 1024 bytes on one line.
    pub(crate) message: String,
    /// At most 16 globs: the rule is for paths that match one of them. An empty list means
    /// every path. If the path is unknown, the rule applies.
    #[serde(default)]
    pub(crate) applies_to: Vec<String>,
}

/// What a rule demands. An unknown value breaks the positive rules and no negative one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "these are the names on the wire")]
pub(crate) enum RuleKind {
    /// The text is used.
    MustUse,
    /// The text is not used.
    MustNotUse,
    /// The regular expression matches somewhere.
    MustMatch,
    /// The regular expression matches nowhere.
    MustNotMatch,
    /// Something has a name that the glob matches; of files the path or one of `files`.
    MustExist,
    /// Nothing has a name that the glob matches; of files neither the path nor one of `files`.
    MustNotExist,
}

/// What a rule looks at.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RuleTarget {
    /// The path.
    File,
    /// The content. For it `must_exist` means the same as `must_use`, because text has no
    /// names.
    Code,
    /// The dependencies. A rule uses one with or without its version: `serde` and `serde@1`.
    Dependency,
    /// The imports. A rule for `std::fs` also means `std::fs::File`.
    Import,
    /// The configuration: each value as `/server/tls=true`, with its JSON pointer as name.
    /// Globs are written without the first `/`: `server/*`.
    Config,
}

/// How bad a violation is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Good to know.
    Info,
    /// Should be changed.
    Warn,
    /// Makes the content invalid.
    Block,
}

impl RuleTarget {
    /// The member of a context that has its values.
    pub(crate) const fn member(self) -> &'static str {
        match self {
            Self::File => "path",
            Self::Code => "content",
            Self::Dependency => "dependencies",
            Self::Import => "imports",
            Self::Config => "config",
        }
    }
}

impl RuleKind {
    /// Whether the rule forbids.
    pub(crate) const fn is_negative(self) -> bool {
        match self {
            Self::MustNotUse | Self::MustNotMatch | Self::MustNotExist => true,
            Self::MustUse | Self::MustMatch | Self::MustExist => false,
        }
    }
}
