//! What is known about the content that rules look at.

use super::compile::{CompiledRule, Expression, Matcher};
use super::policy::RuleTarget;
use crate::content::{check_count, check_length};
use a2a_lambda::skill::AgentError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most bytes of a content, and of all values of a list or a configuration together.
pub(crate) const CONTENT_MAX: usize = 256 * 1024;
/// The most entries of a list, and the most values of a configuration.
pub(crate) const ENTRIES_MAX: usize = 2_000;
/// The most bytes of a path.
const PATH_MAX: usize = 1024;

/// What a caller tells about the content. An absent member is unknown, an empty list is not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CheckContext {
    /// The path in the project, at most 1024 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The names of the files of the project, at most 2000. A `must_exist` or `must_not_exist`
    /// looks at them and at the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<Vec<String>>,
    /// The text, at most 262144 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// The dependencies of the project, at most 2000, with or without versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dependencies: Option<Vec<String>>,
    /// What the content imports, at most 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imports: Option<Vec<String>>,
    /// The configuration, with at most 2000 values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<Map<String, Value>>,
}

/// A context in the form in which rules look at it, within its limits.
#[derive(Debug, Default)]
pub(crate) struct CheckFacts {
    /// The values of each target that the context knows.
    values: BTreeMap<RuleTarget, Vec<Fact>>,
    /// The names of the files, if the context has them.
    files: Option<Vec<Fact>>,
}

/// One value of a target.
#[derive(Debug, Default)]
struct Fact {
    /// The value; of a configuration `/<pointer>=<value>`, and `None` for an object and a list.
    text: Option<String>,
    /// The name of a dependency without its version; the JSON pointer of a value of the
    /// configuration, without the first `/`.
    name: Option<String>,
}

/// What a search found. In a content it is in this line, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit(pub(super) Option<u64>);

impl CheckFacts {
    /// Checks and prepares a context.
    ///
    /// # Errors
    /// `CONTENT_TOO_LONG` for a content above its limit, `INVALID_INPUT` for another member.
    pub(crate) fn of(context: CheckContext) -> Result<Self, AgentError> {
        let bytes = context.content.as_ref().map_or(0, String::len);
        check_length("content", bytes, CONTENT_MAX)?;
        let bytes = context.path.as_ref().map_or(0, String::len);
        check_count("path", "bytes", bytes, 0..=PATH_MAX)?;
        let path = context.path.as_deref().and_then(normal);
        let files = list("files", context.files, Fact::of)?;
        let names = files.map(|files| {
            let names = files.into_iter().filter_map(|file| normal(&file.text?));
            names.map(Fact::of).collect()
        });
        let config = context.config.as_ref().map(flat).transpose()?;
        let values = [
            (RuleTarget::File, path.map(|it| vec![Fact::of(it)])),
            (
                RuleTarget::Code,
                context.content.map(|it| vec![Fact::of(it)]),
            ),
            (
                RuleTarget::Dependency,
                list("dependencies", context.dependencies, Fact::of_dependency)?,
            ),
            (
                RuleTarget::Import,
                list("imports", context.imports, Fact::of)?,
            ),
            (RuleTarget::Config, config),
        ];
        let pairs = values.into_iter();
        Ok(Self {
            values: pairs
                .filter_map(|(target, facts)| Some((target, facts?)))
                .collect(),
            files: names,
        })
    }

    /// The bytes of the values of a target.
    pub(super) fn size(&self, target: RuleTarget) -> usize {
        let facts = self.values.get(&target).into_iter().flatten();
        facts.map(Fact::size).sum()
    }

    /// The member of the context that a rule searches, and the bytes that the search looks at.
    pub(super) fn search_size(&self, rule: &CompiledRule) -> (&'static str, usize) {
        let target = rule.rule.target;
        match self.files_for(rule) {
            Some(files) => {
                let files: usize = files.iter().map(Fact::size).sum();
                ("files", files + self.size(target))
            }
            None => (target.member(), self.size(target)),
        }
    }

    /// The files, if a rule looks at their names.
    fn files_for(&self, rule: &CompiledRule) -> Option<&[Fact]> {
        let is_name = matches!(rule.matcher, Matcher::Name(_));
        let files = self.files.as_deref();
        files.filter(|_| is_name && rule.rule.target == RuleTarget::File)
    }

    /// Whether a rule with these globs is for the path. It is if the path is unknown:
    /// a caller cannot avoid a rule by omitting the path.
    pub(super) fn is_for(&self, globs: Option<&Expression>) -> bool {
        let path = self.values.get(&RuleTarget::File);
        let path = path.and_then(|facts| facts.first()?.text.as_deref());
        match (globs, path) {
            (Some(globs), Some(path)) => globs.is_match(path),
            (None, _) | (_, None) => true,
        }
    }

    /// Searches for what a rule names. `None` also if the context does not know the target.
    pub(super) fn search(&self, rule: &CompiledRule) -> Option<Hit> {
        let target = rule.rule.target;
        let values = self.values.get(&target).into_iter().flatten();
        let mut values = values.chain(self.files_for(rule).into_iter().flatten());
        values.find_map(|fact| {
            let offset = fact.find(target, &rule.matcher)?;
            let line = (target == RuleTarget::Code).then(|| fact.line(offset));
            Some(Hit(line.flatten()))
        })
    }
}

impl Fact {
    fn of(text: String) -> Self {
        Self {
            text: Some(text),
            name: None,
        }
    }

    fn of_dependency(entry: String) -> Self {
        Self {
            name: Some(without_version(&entry).to_owned()),
            text: Some(entry),
        }
    }

    /// The bytes that a search looks at, at least 1.
    fn size(&self) -> usize {
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size(&self.text).max(size(&self.name)).max(1)
    }

    /// The offset in the text where it has what a rule of this target searches for; 0 for a
    /// name.
    fn find(&self, target: RuleTarget, matcher: &Matcher) -> Option<usize> {
        let texts = [self.text.as_deref(), self.name.as_deref()];
        let [text, _] = texts;
        let is_match = match (matcher, target) {
            (Matcher::Text(part), RuleTarget::Code) => return text?.find(part.as_str()),
            (Matcher::Pattern(regex), _) => return Some(regex.find(text?)?.start()),
            (Matcher::Text(module), RuleTarget::Import) => is_part(text?, module),
            (Matcher::Text(name), RuleTarget::Dependency) => texts.contains(&Some(name)),
            (Matcher::Text(value), RuleTarget::File | RuleTarget::Config) => text == Some(value),
            // The text of a value is its path and the value: a glob is for the name.
            (Matcher::Name(glob), RuleTarget::Config) => {
                self.name.as_deref().is_some_and(|name| glob.is_match(name))
            }
            (Matcher::Name(glob), _) => texts.into_iter().flatten().any(|it| glob.is_match(it)),
        };
        is_match.then_some(0)
    }

    /// The line of an offset in the text, from 1.
    fn line(&self, offset: usize) -> Option<u64> {
        let bytes = self.text.as_ref()?.bytes().take(offset);
        u64::try_from(bytes.filter(|byte| *byte == b'\n').count() + 1).ok()
    }
}

/// The name in `serde@1`, `serde = "1"`, `requests>=2` or `@scope/name@1`.
fn without_version(entry: &str) -> &str {
    let ends = |(at, letter): (usize, char)| match letter {
        '@' => at > 0,
        '=' | '<' | '>' | '~' | '^' | '!' | ';' | '(' | '[' => true,
        _ => letter.is_whitespace(),
    };
    let end = entry.char_indices().find(|at| ends(*at));
    end.and_then(|(at, _)| entry.get(..at)).unwrap_or(entry)
}

/// Whether an import is `module` or a part of it.
fn is_part(import: &str, module: &str) -> bool {
    import.strip_prefix(module).is_some_and(|rest| {
        rest.is_empty() || ["::", ".", "/"].iter().any(|sign| rest.starts_with(sign))
    })
}

/// The path with single `/` and without `.`, `..` and a first `/`, so that one file has one
/// path. `None` for a path that names no file.
fn normal(path: &str) -> Option<String> {
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    (!segments.is_empty()).then(|| segments.join("/"))
}

fn list(
    name: &str,
    entries: Option<Vec<String>>,
    fact: fn(String) -> Fact,
) -> Result<Option<Vec<Fact>>, AgentError> {
    let Some(entries) = entries else {
        return Ok(None);
    };
    check_count(name, "entries", entries.len(), 0..=ENTRIES_MAX)?;
    let bytes = entries.iter().map(String::len).sum();
    check_count(name, "bytes", bytes, 0..=CONTENT_MAX)?;
    let texts = entries.iter().map(|entry| entry.trim().to_owned());
    Ok(Some(texts.map(fact).collect()))
}

/// All values of a configuration with their pointers. A null counts as absent.
fn flat(config: &Map<String, Value>) -> Result<Vec<Fact>, AgentError> {
    let mut values_of_config = Vec::new();
    let mut bytes = 0;
    let mut todo = Vec::new();
    push_members(&mut todo, "", config);
    while let Some((name, value)) = todo.pop() {
        // Before the names of the members are made, which repeat this one.
        check_count("config", "bytes in a pointer", name.len(), 0..=PATH_MAX)?;
        let inner = match value {
            Value::Array(values) => values.len(),
            Value::Object(values) => values.len(),
            _ => 0,
        };
        let count = values_of_config.len() + todo.len() + 1 + inner;
        check_count("config", "values", count, 0..=ENTRIES_MAX)?;
        let scalar = match value {
            Value::Null => continue,
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Array(values) => {
                let values = values.iter().enumerate();
                todo.extend(values.map(|(at, value)| (format!("{name}/{at}"), value)));
                None
            }
            Value::Object(values) => {
                push_members(&mut todo, &format!("{name}/"), values);
                None
            }
        };
        let text = scalar.map(|scalar| format!("/{name}={scalar}"));
        bytes += name.len() + text.as_ref().map_or(0, String::len);
        check_count("config", "bytes with its pointers", bytes, 0..=CONTENT_MAX)?;
        values_of_config.push(Fact {
            text,
            name: Some(name),
        });
    }
    Ok(values_of_config)
}

fn push_members<'a>(
    todo: &mut Vec<(String, &'a Value)>,
    before: &str,
    members: &'a Map<String, Value>,
) {
    todo.extend(members.iter().map(|(key, value)| {
        // RFC 6901 §3: `~` and `/` are escaped.
        let key = key.replace('~', "~0").replace('/', "~1");
        (format!("{before}{key}"), value)
    }));
}
