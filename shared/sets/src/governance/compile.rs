//! Policies whose rules can be evaluated: everything that can fail fails here, once.
//!
//! Skills compile a policy before they store it, so a stored policy never has a rule that
//! passes because its expression is broken. The library `regex-lite` takes time linear in the
//! text, for every expression; the AWS SDK links it anyway.

use super::glob::regex_of;
use super::policy::{MergeMode, PolicyDocument, PolicyRule, RuleKind, RuleTarget};
use crate::content::{ID_MAX, check_range, is_id};
use crate::layer::KnowledgeLayer;
use a2a_lambda::skill::AgentError;
use regex_lite::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use std::ops::{Deref, RangeInclusive};

/// The most rules of a policy.
pub(crate) const RULES_MAX: usize = 100;
/// The most bytes of an expression, a glob or a literal.
pub(crate) const PATTERN_MAX: usize = 512;
/// The most bytes of a message.
pub(crate) const MESSAGE_MAX: usize = 1024;
/// The most globs of a rule.
pub(crate) const GLOBS_MAX: usize = 16;
/// The sizes that an expression can be counted with, as powers of 2, in bytes of memory when it
/// is compiled. A literal of 512 bytes needs 2^14. A search takes time for each byte: `check`
/// bounds it.
const REGEX_SIZES: RangeInclusive<u32> = 9..=15;
/// The most bytes of all expressions of a policy, counted with these sizes. `appliesTo` does
/// not count, because a path is short.
const EXPRESSIONS_MAX: usize = 128 * 1024;

/// A policy that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct CompiledPolicy {
    pub(super) id: String,
    pub(crate) layer: KnowledgeLayer,
    pub(super) mandatory: bool,
    pub(super) merge: MergeMode,
    pub(super) rules: Vec<CompiledRule>,
}

/// A rule with its expressions.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(super) rule: PolicyRule,
    pub(super) matcher: Matcher,
    /// `None` means every path.
    pub(super) applies: Option<Expression>,
}

/// An expression, and the size with which it is counted.
#[derive(Debug)]
pub(super) struct Expression {
    regex: Regex,
    pub(super) size: usize,
}

impl Deref for Expression {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.regex
    }
}

/// What a rule searches for.
#[derive(Debug)]
pub(super) enum Matcher {
    /// A literal.
    Text(String),
    /// An expression that matches somewhere.
    Pattern(Expression),
    /// A glob that matches a whole name.
    Name(Expression),
}

/// A policy cannot be evaluated. The text is public.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {fault}")]
pub(crate) struct ConstraintError {
    /// The id of the rule, if the fault is in one.
    pub(crate) rule_id: Option<String>,
    /// The JSON pointer of the value in the document.
    pub(crate) field: String,
    /// What is wrong with it.
    fault: String,
}

impl Matcher {
    /// What one searched byte costs.
    pub(super) const fn size(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::Pattern(expression) | Self::Name(expression) => expression.size,
        }
    }
}

impl ConstraintError {
    /// The error of a skill, with the code `CONSTRAINT_SYNTAX_ERROR` and the details `field`
    /// and, for a rule, `ruleId`.
    ///
    /// This is no `From`, because [`AgentError`] converts every error to `INTERNAL_ERROR`.
    pub(crate) fn agent_error(self) -> AgentError {
        let error = AgentError::domain("CONSTRAINT_SYNTAX_ERROR", self.to_string())
            .with_detail("field", self.field);
        match self.rule_id {
            Some(id) => error.with_detail("ruleId", id),
            None => error,
        }
    }
}

type Checked<T> = Result<T, ConstraintError>;

/// What the expressions of a policy may still need, in bytes.
struct Budget(usize);

impl CompiledPolicy {
    /// Reads and compiles the JSON text of a [`PolicyDocument`].
    pub(crate) fn parse(json: &str) -> Checked<Self> {
        let document = serde_json::from_str(json);
        let document = document.map_err(|error| wrong("", format!("is not a policy: {error}")));
        Self::compile(document?)
    }

    /// Compiles a policy.
    pub(crate) fn compile(document: PolicyDocument) -> Checked<Self> {
        id("/id", &document.id)?;
        count("/rules", document.rules.len(), RULES_MAX)?;
        let mut budget = Budget(EXPRESSIONS_MAX);
        let mut ids = BTreeSet::new();
        let mut rules = Vec::with_capacity(document.rules.len());
        for (at, entry) in document.rules.into_iter().enumerate() {
            let rule_id = entry.id.clone();
            let rule = rule(&mut budget, &mut ids, &format!("/rules/{at}"), entry);
            rules.push(rule.map_err(|error| ConstraintError {
                // A malformed id can be long, and the field names the rule as well.
                rule_id: Some(rule_id).filter(|id| is_id(id)),
                ..error
            })?);
        }
        Ok(Self {
            id: document.id,
            layer: document.layer,
            mandatory: document.mandatory,
            merge: document.merge,
            rules,
        })
    }

    /// About how many bytes its expressions have.
    pub(super) fn size(&self) -> usize {
        let sizes = self.rules.iter().map(|rule| {
            let globs = rule.applies.as_ref().map_or(0, |globs| globs.size);
            rule.matcher.size() + globs
        });
        sizes.sum()
    }
}

fn rule(
    budget: &mut Budget,
    ids: &mut BTreeSet<String>,
    path: &str,
    rule: PolicyRule,
) -> Checked<CompiledRule> {
    let field = format!("{path}/id");
    if !ids.insert(rule.id.clone()) {
        return Err(wrong(&field, "is the id of an earlier rule"));
    }
    id(&field, &rule.id)?;
    let field = format!("{path}/message");
    length(&field, &rule.message, MESSAGE_MAX)?;
    if rule.message.contains(breaks_lines) {
        return Err(wrong(
            &field,
            "has a line break or another control character",
        ));
    }
    let matcher = matcher(budget, &format!("{path}/pattern"), &rule)?;
    let applies = applies(&format!("{path}/appliesTo"), &rule.applies_to)?;
    Ok(CompiledRule {
        rule,
        matcher,
        applies,
    })
}

/// Whether a letter can begin another line in a prompt: the message of a rule is one line there.
fn breaks_lines(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

fn matcher(budget: &mut Budget, field: &str, rule: &PolicyRule) -> Checked<Matcher> {
    length(field, &rule.pattern, PATTERN_MAX)?;
    let text = || Matcher::Text(rule.pattern.clone());
    Ok(match rule.kind {
        RuleKind::MustUse | RuleKind::MustNotUse => text(),
        RuleKind::MustMatch | RuleKind::MustNotMatch => {
            Matcher::Pattern(budget.build(field, &mut RegexBuilder::new(&rule.pattern))?)
        }
        RuleKind::MustExist | RuleKind::MustNotExist if rule.target == RuleTarget::Code => text(),
        RuleKind::MustExist | RuleKind::MustNotExist => {
            let glob = regex_of(&rule.pattern).map_err(|fault| wrong(field, fault))?;
            Matcher::Name(budget.build(field, &mut anchor(&glob))?)
        }
    })
}

fn applies(field: &str, globs: &[String]) -> Checked<Option<Expression>> {
    count(field, globs.len(), GLOBS_MAX)?;
    let mut expressions = Vec::with_capacity(globs.len());
    for (at, glob) in globs.iter().enumerate() {
        let field = format!("{field}/{at}");
        length(&field, glob, PATTERN_MAX)?;
        expressions.push(regex_of(glob).map_err(|fault| wrong(&field, fault))?);
    }
    if expressions.is_empty() {
        return Ok(None);
    }
    build(field, &mut anchor(&expressions.join("|"))).map(Some)
}

impl Budget {
    /// Builds an expression and counts it.
    fn build(&mut self, field: &str, builder: &mut RegexBuilder) -> Checked<Expression> {
        let expression = build(field, builder)?;
        let rest = self.0.checked_sub(expression.size);
        self.0 = rest.ok_or_else(|| {
            let text = "is too large together with the other expressions of the policy";
            wrong(field, text)
        })?;
        Ok(expression)
    }
}

/// Builds with the smallest size that suffices, because a compiled expression does not tell
/// its own.
fn build(field: &str, builder: &mut RegexBuilder) -> Checked<Expression> {
    let mut fault = String::new();
    for size in REGEX_SIZES.map(|power| 1 << power) {
        match builder.size_limit(size).build() {
            Ok(regex) => return Ok(Expression { regex, size }),
            Err(error) => fault = format!("is not an expression that can be used: {error}"),
        }
    }
    Err(wrong(field, fault))
}

/// The expression for names that match `expression` from the first to the last character.
fn anchor(expression: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(&format!("^(?:{expression})$"));
    // A name can contain a line break.
    builder.dot_matches_new_line(true);
    builder
}

fn id(field: &str, text: &str) -> Checked<()> {
    if is_id(text) {
        return Ok(());
    }
    let text = format!("is not an id of 1 to {ID_MAX} of `A-Za-z0-9._-`");
    Err(wrong(field, text))
}

fn length(field: &str, text: &str, most: usize) -> Checked<()> {
    check_range("bytes", text.len(), 1..=most).map_err(|fault| wrong(field, fault))
}

fn count(field: &str, count: usize, most: usize) -> Checked<()> {
    check_range("entries", count, 0..=most).map_err(|fault| wrong(field, fault))
}

fn wrong(field: &str, fault: impl Into<String>) -> ConstraintError {
    ConstraintError {
        rule_id: None,
        field: field.to_owned(),
        fault: fault.into(),
    }
}
