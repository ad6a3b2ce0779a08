//! What is known about the content that rules look at.

use super::compile::{CompiledRule, Expression, Matcher};
use super::policy::RuleTarget;
use a2a_lambda::skill::AgentError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most bytes of a content, and of all values of a list or a configuration together.
pub(crate) const CONTENT_MAX: usize = 256 * 1024;
/// The most entries of a list, and the most values of a configuration.
pub(crate) const ENTRIES_MAX: usize = 2_000;
/// The most bytes of a path or a version hash.
const PATH_MAX: usize = 1024;

/// What a caller tells about the content. An absent member is unknown, an empty list is not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CheckContext {
    /// The path in the project, at most 1024 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
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
    /// The version of the policies that the caller knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version_hash: Option<String>,
}

/// A context in the form in which rules look at it, within its limits.
#[derive(Debug, Default)]
pub(crate) struct CheckFacts {
    path: Option<String>,
    content: Option<String>,
    dependencies: Option<Vec<String>>,
    imports: Option<Vec<String>>,
    config: Option<Vec<ConfigValue>>,
    version_hash: Option<String>,
}

/// A value of the configuration.
#[derive(Debug)]
struct ConfigValue {
    /// The JSON pointer, without the first `/`.
    name: String,
    /// `/<pointer>=<value>`; `None` for an object and a list.
    text: Option<String>,
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// The context does not have the target.
    Unknown,
    /// There is no match.
    Absent,
    /// There is a match. In a content it is in this line, from 1.
    Present(Option<u64>),
}

impl CheckFacts {
    /// Checks and prepares a context.
    ///
    /// # Errors
    /// `CONTENT_TOO_LONG` for a content above its limit, `INVALID_INPUT` for another member.
    pub(crate) fn of(context: CheckContext) -> Result<Self, AgentError> {
        if let Some(bytes) = context.content.as_ref().map(String::len)
            && bytes > CONTENT_MAX
        {
            return Err(AgentError::domain(
                "CONTENT_TOO_LONG",
                format!("`content` has {bytes} bytes, expected at most {CONTENT_MAX}"),
            ));
        }
        for (name, text) in [
            ("path", &context.path),
            ("versionHash", &context.version_hash),
        ] {
            let bytes = text.as_ref().map_or(0, String::len);
            within(name, "bytes", bytes, PATH_MAX)?;
        }
        Ok(Self {
            path: context.path.as_deref().and_then(normal),
            content: context.content,
            dependencies: list("dependencies", context.dependencies)?,
            imports: list("imports", context.imports)?,
            config: context.config.as_ref().map(flat).transpose()?,
            version_hash: context.version_hash,
        })
    }

    /// The version of the policies that the caller knows.
    pub(super) fn version_hash(&self) -> Option<&str> {
        self.version_hash.as_deref()
    }

    /// Whether the context has values for a target.
    pub(super) const fn knows(&self, target: RuleTarget) -> bool {
        match target {
            RuleTarget::File => self.path.is_some(),
            RuleTarget::Code => self.content.is_some(),
            RuleTarget::Dependency => self.dependencies.is_some(),
            RuleTarget::Import => self.imports.is_some(),
            RuleTarget::Config => self.config.is_some(),
        }
    }

    /// The bytes that a search for a rule of this target looks at. Each entry counts one more.
    pub(super) fn size(&self, target: RuleTarget) -> usize {
        let list = |entries: &Vec<String>| entries.iter().map(|entry| entry.len() + 1).sum();
        let value = |value: &ConfigValue| {
            let text = value.text.as_ref().map_or(0, String::len);
            value.name.len().max(text) + 1
        };
        match target {
            RuleTarget::File => self.path.as_ref().map_or(0, String::len),
            RuleTarget::Code => self.content.as_ref().map_or(0, String::len),
            RuleTarget::Dependency => self.dependencies.as_ref().map_or(0, list),
            RuleTarget::Import => self.imports.as_ref().map_or(0, list),
            RuleTarget::Config => {
                let values = self.config.as_ref();
                values.map_or(0, |values| values.iter().map(value).sum())
            }
        }
    }

    /// Whether a rule with these globs is for the path. It is if the path is unknown:
    /// a caller cannot avoid a rule by omitting the path.
    pub(super) fn is_for(&self, globs: Option<&Expression>) -> bool {
        match (globs, &self.path) {
            (Some(globs), Some(path)) => globs.is_match(path),
            (None, _) | (_, None) => true,
        }
    }

    /// Searches for what a rule names.
    pub(super) fn search(&self, rule: &CompiledRule) -> Search {
        let matcher = &rule.matcher;
        let is_present = match rule.rule.target {
            RuleTarget::File => self.path.as_ref().map(|path| in_path(matcher, path)),
            RuleTarget::Code => {
                return match &self.content {
                    Some(content) => in_content(matcher, content),
                    None => Search::Unknown,
                };
            }
            RuleTarget::Dependency => any(self.dependencies.as_ref(), |entry| {
                in_dependency(matcher, entry)
            }),
            RuleTarget::Import => any(self.imports.as_ref(), |entry| in_import(matcher, entry)),
            RuleTarget::Config => any(self.config.as_ref(), |value| in_config(matcher, value)),
        };
        match is_present {
            None => Search::Unknown,
            Some(false) => Search::Absent,
            Some(true) => Search::Present(None),
        }
    }
}

fn any<T>(values: Option<&Vec<T>>, matches: impl Fn(&T) -> bool) -> Option<bool> {
    values.map(|values| values.iter().any(matches))
}

fn in_path(matcher: &Matcher, path: &str) -> bool {
    match matcher {
        Matcher::Text(text) => path == text,
        Matcher::Pattern(regex) | Matcher::Name(regex) => regex.is_match(path),
    }
}

fn in_content(matcher: &Matcher, content: &str) -> Search {
    let at = match matcher {
        Matcher::Text(text) => content.find(text.as_str()),
        Matcher::Pattern(regex) | Matcher::Name(regex) => {
            regex.find(content).map(|hit| hit.start())
        }
    };
    let Some(at) = at else {
        return Search::Absent;
    };
    let before = content.bytes().take(at).filter(|byte| *byte == b'\n');
    Search::Present(u64::try_from(before.count() + 1).ok())
}

fn in_dependency(matcher: &Matcher, entry: &str) -> bool {
    let name = without_version(entry);
    match matcher {
        Matcher::Text(text) => entry == text || name == text,
        Matcher::Pattern(regex) => regex.is_match(entry),
        Matcher::Name(glob) => glob.is_match(entry) || glob.is_match(name),
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

fn in_import(matcher: &Matcher, entry: &str) -> bool {
    match matcher {
        Matcher::Text(text) => entry.strip_prefix(text.as_str()).is_some_and(|rest| {
            rest.is_empty() || ["::", ".", "/"].iter().any(|sign| rest.starts_with(sign))
        }),
        Matcher::Pattern(regex) | Matcher::Name(regex) => regex.is_match(entry),
    }
}

fn in_config(matcher: &Matcher, value: &ConfigValue) -> bool {
    match matcher {
        Matcher::Text(text) => value.text.as_deref() == Some(text),
        Matcher::Pattern(regex) => value.text.as_ref().is_some_and(|text| regex.is_match(text)),
        Matcher::Name(glob) => glob.is_match(&value.name),
    }
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

fn list(name: &str, entries: Option<Vec<String>>) -> Result<Option<Vec<String>>, AgentError> {
    let Some(entries) = entries else {
        return Ok(None);
    };
    within(name, "entries", entries.len(), ENTRIES_MAX)?;
    let bytes = entries.iter().map(String::len).sum();
    within(name, "bytes", bytes, CONTENT_MAX)?;
    let texts = entries.iter().map(|entry| entry.trim().to_owned());
    Ok(Some(texts.collect()))
}

/// All values of a configuration with their pointers. A null counts as absent.
fn flat(config: &Map<String, Value>) -> Result<Vec<ConfigValue>, AgentError> {
    let mut values_of_config = Vec::new();
    let mut bytes = 0;
    let mut todo = Vec::new();
    push_members(&mut todo, "", config);
    while let Some((name, value)) = todo.pop() {
        // Before the names of the members are made, which repeat this one.
        within("config", "bytes in a pointer", name.len(), PATH_MAX)?;
        let inner = match value {
            Value::Array(values) => values.len(),
            Value::Object(values) => values.len(),
            _ => 0,
        };
        let count = values_of_config.len() + todo.len() + 1 + inner;
        within("config", "values", count, ENTRIES_MAX)?;
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
        within("config", "bytes with its pointers", bytes, CONTENT_MAX)?;
        values_of_config.push(ConfigValue { name, text });
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

fn within(name: &str, unit: &str, count: usize, most: usize) -> Result<(), AgentError> {
    if count <= most {
        return Ok(());
    }
    Err(AgentError::invalid_input(format!(
        "`{name}` has {count} {unit}, expected at most {most}"
    )))
}
