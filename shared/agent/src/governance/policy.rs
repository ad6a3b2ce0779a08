//! A policy as it is stored, and its checked form.

use a2a_lambda::skill::{AgentError, AgentResult};
use regex_lite::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most rules of a policy, and suppressions of one.
const RULES_MAX: usize = 100;
/// The most bytes of an id, and of a pattern, a value or a message.
const ID_MAX: usize = 64;
const TEXT_MAX: usize = 512;
/// The most bytes of a compiled pattern.
const REGEX_MAX: usize = 256 * 1024;

/// A policy: rules about content, and what to overlook for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PolicyDocument {
    /// The id. Policies of several layers with one id are merged.
    pub(crate) id: String,
    /// Whether a narrower layer may only make it stricter.
    #[serde(default)]
    pub(crate) mandatory: bool,
    /// How it joins the policy of the same id of a broader layer.
    #[serde(default)]
    pub(crate) merge: MergeMode,
    /// Its rules.
    pub(crate) rules: Vec<RuleDocument>,
    /// Findings that do not count for a while.
    #[serde(default)]
    pub(crate) suppressions: Vec<Suppression>,
}

/// How a policy joins the one of a broader layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MergeMode {
    /// It replaces that policy.
    Override,
    /// Its rules are added, and replace those of the same id.
    #[default]
    Merge,
    /// Only the rules that both have are left.
    Intersect,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RuleDocument {
    /// The id in its policy.
    pub(crate) id: String,
    /// What has to hold.
    pub(crate) constraint: Constraint,
    /// What it looks at.
    pub(crate) target: Target,
    /// A text, a pattern for paths (`*`, `**`, `?`), or a regular expression.
    pub(crate) value: String,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What to tell the author.
    pub(crate) message: String,
    /// The paths that the rule is for; all if there are none.
    #[serde(default)]
    pub(crate) applies_to: Vec<String>,
}

/// What has to hold for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Constraint {
    /// It contains the text `value`.
    #[serde(rename = "must_use")]
    Use,
    /// It does not.
    #[serde(rename = "must_not_use")]
    NotUse,
    /// It matches the regular expression `value`.
    #[serde(rename = "must_match")]
    Match,
    /// It does not.
    #[serde(rename = "must_not_match")]
    NotMatch,
    /// It has an entry like the pattern `value`.
    #[serde(rename = "must_exist")]
    Exist,
    /// It has none.
    #[serde(rename = "must_not_exist")]
    NotExist,
}

impl Constraint {
    /// Whether a target without a value breaks it.
    pub(crate) const fn is_demand(self) -> bool {
        matches!(self, Self::Use | Self::Match | Self::Exist)
    }
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Target {
    /// The path.
    File,
    /// The content.
    Code,
    /// The names of dependencies.
    Dependency,
    /// The names of imports.
    Import,
    /// The configuration, as lines `name=value`; a name has a dot for each level.
    Config,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Worth knowing.
    Info,
    /// To be mended.
    Warn,
    /// Not acceptable.
    Block,
}

/// Findings of a policy that do not count until a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Suppression {
    /// A regular expression that the message of the finding matches.
    pub(crate) message: String,
    /// From when on they count again (RFC 3339).
    pub(crate) expires: String,
}

/// A policy whose patterns were compiled.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) document: PolicyDocument,
    pub(crate) rules: Vec<Rule>,
    /// The patterns of the suppressions, and their ends in milliseconds since 1970.
    pub(crate) suppressions: Vec<(Regex, i64)>,
}

/// A rule with its patterns.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) document: RuleDocument,
    /// The pattern of a rule that matches or looks for entries.
    pub(crate) pattern: Option<Regex>,
    pub(crate) applies_to: Vec<Regex>,
}

impl Policy {
    /// Reads the content of a policy.
    ///
    /// # Errors
    /// `CONSTRAINT_SYNTAX_ERROR` with the rule and the field.
    pub(crate) fn parse(content: &str) -> AgentResult<Self> {
        let document = serde_json::from_str(content)
            .map_err(|error| syntax(format!("the content is not a policy: {error}")))?;
        Self::compile(document)
    }

    /// Checks a policy and compiles its patterns.
    ///
    /// # Errors
    /// `CONSTRAINT_SYNTAX_ERROR` with the rule and the field.
    pub(crate) fn compile(document: PolicyDocument) -> AgentResult<Self> {
        check_id("/id", &document.id)?;
        for (what, count) in [
            ("rules", document.rules.len()),
            ("suppressions", document.suppressions.len()),
        ] {
            if count > RULES_MAX {
                return Err(syntax(format!(
                    "`/{what}` has {count} entries, expected at most {RULES_MAX}"
                )));
            }
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(document.rules.len());
        for (at, rule) in document.rules.iter().enumerate() {
            let compiled = Rule::compile(at, rule)?;
            if rules.iter().any(|known| known.document.id == rule.id) {
                return Err(syntax(format!(
                    "`/rules/{at}/id`: `{}` is there twice",
                    rule.id
                )));
            }
            rules.push(compiled);
        }
        let mut suppressions = Vec::with_capacity(document.suppressions.len());
        for (at, suppression) in document.suppressions.iter().enumerate() {
            let place = format!("/suppressions/{at}");
            let pattern = regex(&format!("{place}/message"), &suppression.message)?;
            let end = a2a_lambda::task::Timestamp::parse_rfc3339(&suppression.expires)
                .ok_or_else(|| syntax(format!("`{place}/expires` is not a time of RFC 3339")))?;
            suppressions.push((pattern, end.as_millis()));
        }
        Ok(Self {
            document,
            rules,
            suppressions,
        })
    }
}

impl Rule {
    fn compile(at: usize, rule: &RuleDocument) -> AgentResult<Self> {
        let place = format!("/rules/{at}");
        check_id(&format!("{place}/id"), &rule.id)?;
        for (field, text) in [("value", &rule.value), ("message", &rule.message)] {
            if text.is_empty() || text.len() > TEXT_MAX {
                let bytes = text.len();
                return Err(syntax(format!(
                    "`{place}/{field}` of the rule `{}` has {bytes} bytes, expected 1 to {TEXT_MAX}",
                    rule.id
                )));
            }
        }
        let value = format!("{place}/value` of the rule `{}", rule.id);
        let pattern = match rule.constraint {
            Constraint::Use | Constraint::NotUse => None,
            Constraint::Match | Constraint::NotMatch => Some(regex(&value, &rule.value)?),
            Constraint::Exist | Constraint::NotExist => Some(glob(&value, &rule.value)?),
        };
        let applies_to = rule.applies_to.iter().map(|path| {
            glob(
                &format!("{place}/appliesTo` of the rule `{}", rule.id),
                path,
            )
        });
        Ok(Self {
            document: rule.clone(),
            pattern,
            applies_to: applies_to.collect::<AgentResult<_>>()?,
        })
    }
}

fn syntax(text: String) -> AgentError {
    AgentError::domain("CONSTRAINT_SYNTAX_ERROR", text)
}

fn check_id(place: &str, id: &str) -> AgentResult<()> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match (1..=ID_MAX).contains(&id.len()) && id.bytes().all(letter) {
        true => Ok(()),
        false => Err(syntax(format!(
            "`{place}` has 1 to {ID_MAX} letters, digits, `.`, `_` and `-`"
        ))),
    }
}

fn regex(place: &str, pattern: &str) -> AgentResult<Regex> {
    if pattern.len() > TEXT_MAX {
        return Err(syntax(format!("`{place}` is longer than {TEXT_MAX} bytes")));
    }
    let mut builder = RegexBuilder::new(pattern);
    let built = builder.size_limit(REGEX_MAX).multi_line(true).build();
    built.map_err(|error| syntax(format!("`{place}` is not a regular expression: {error}")))
}

/// A pattern for paths and names: `**` is any text, `*` any text without `/`, `?` one letter.
fn glob(place: &str, pattern: &str) -> AgentResult<Regex> {
    let mut text = String::from(r"\A(?:");
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' if letters.next_if_eq(&'*').is_some() => {
                // `**/` also matches no folder.
                match letters.next_if_eq(&'/') {
                    Some(_) => text.push_str("(?:.*/)?"),
                    None => text.push_str(".*"),
                }
            }
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            letter if letter.is_alphanumeric() || "/_-@= ".contains(letter) => text.push(letter),
            letter if letter.is_ascii_punctuation() => text.extend(['\\', letter]),
            letter => text.push(letter),
        }
    }
    text.push_str(r")\z");
    let built = RegexBuilder::new(&text).size_limit(REGEX_MAX).build();
    built.map_err(|error| syntax(format!("`{place}` is not a pattern: {error}")))
}
