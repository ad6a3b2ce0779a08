//! The question whether skills may run with what a model wrote, and what an answer to it means.

use crate::content::first_data;
use crate::route::text_of;
use crate::{AgentError, AgentResult, Content, TurnFacts, digest};
use a2a_lambda_model::task::metadata_keys::CONFIRM;
use a2a_lambda_model::task::{Message, Metadata, Part, PartContent};
use serde::Serialize;
use serde_json::{Value, json};
use std::iter;

/// How many characters of a long text a question shows: of its begin, and of its end.
const BEGIN: usize = 768;
const END: usize = 256;

const QUESTION: &str = "May the agent do this?";

/// A call of a skill or a tool with an input that a model wrote.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ConsentCall<'a> {
    /// The skill or the tool.
    pub skill: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// The JSON schema of its input.
    #[serde(skip)]
    pub schema: &'a Value,
}

/// The digest of the question with this number in its task.
pub(super) fn digest_of(
    facts: &TurnFacts,
    number: u32,
    calls: &[ConsentCall<'_>],
) -> AgentResult<String> {
    let schemas: Vec<Value> = calls.iter().map(|call| plain_schema(call.schema)).collect();
    let question = json!([facts.task_id, facts.incarnation, number, calls, schemas]);
    digest(CONFIRM, &question).map_err(AgentError::serialization)
}

/// A schema without the texts that only explain it.
fn plain_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_text = |name: &str, value: &Value| name == "description" && value.is_string();
            let members = members.iter().filter(|(name, value)| !is_text(name, value));
            let members = members.map(|(name, value)| (name.clone(), plain_schema(value)));
            Value::Object(members.collect())
        }
        Value::Array(values) => values.iter().map(plain_schema).collect(),
        value => value.clone(),
    }
}

/// The question whether `calls` may run. The text shows each call with every member of its input
/// and begins with how much of long texts it leaves out; a data part has all of it. The metadata of
/// the text has the digest of the question.
///
/// # Errors
/// `SERIALIZATION`.
pub fn ask_consent(facts: &TurnFacts, calls: &[ConsentCall<'_>]) -> AgentResult<Content> {
    let number = facts.consents + 1;
    let digest = digest_of(facts, number, calls)?;
    let (mut text, mut omission) = (QUESTION.to_owned(), 0);
    for call in calls {
        text.push_str("\n- ");
        let name = readable_name(call.skill, &mut omission);
        show(&mut text, &mut omission, (&name, call.input), 1);
    }
    text.push_str(&line(&digest, number > 1));
    if omission > 0 {
        let note = format!("{omission} characters are not shown here; the data has them all.\n");
        text.insert_str(0, &note);
    }
    let mut part = Part::text(text);
    part.metadata.insert(CONFIRM.to_owned(), digest.into());
    let data = Part::data(json!({ "calls": calls }));
    Ok(Content::from_parts(vec![part, data]))
}

/// The same question again, after something that is no answer to it. Its last line asks for its
/// code, so that the next answer can be about no other question.
#[must_use]
pub fn ask_consent_again(question: &Message) -> Vec<Part> {
    let mut parts = question.parts.clone();
    let digest = question.consent_digest().unwrap_or_default();
    for part in &mut parts {
        if let PartContent::Text(text) = &mut part.content
            && part.metadata.contains_key(CONFIRM)
        {
            text.truncate(text.rfind('\n').unwrap_or(text.len()));
            text.push_str(&line(digest, true));
        }
    }
    parts
}

/// The last line of a question.
fn line(digest: &str, needs_code: bool) -> String {
    match needs_code {
        true => format!("\nAnswer `yes {}` or `no`.", code_of(digest)),
        false => "\nAnswer `yes` or `no`.".to_owned(),
    }
}

/// The code of a question: two syllables from its digest.
fn code_of(digest: &str) -> String {
    let digits = digest.get(..3).unwrap_or_default();
    let number = usize::from_str_radix(digits, 16).unwrap_or_default();
    let letter = |letters: &str, index: usize| letters.chars().nth(index).unwrap_or('a');
    let (first, second) = ("bdfghjklmnprstvz", "aeio");
    let syllable = |bits| [letter(first, bits / 4 % 16), letter(second, bits % 4)];
    [number / 64, number]
        .into_iter()
        .flat_map(syllable)
        .collect()
}

/// What a message answers to a question of consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it agrees; `None` if it is no answer to this question.
    pub agrees: Option<bool>,
    /// Whether it names this question, by its digest or its code.
    pub is_named: bool,
}

/// Whether the answer to a question of consent is `no`, with or without its code.
#[must_use]
pub fn is_refusal(answer: &Content) -> bool {
    let text = answer.first_text().unwrap_or_default().to_lowercase();
    let is_no = |data: &Value| data.get("confirm") == Some(&Value::Bool(false));
    words(&text).next() == Some("no") || answer.first_data().is_some_and(is_no)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| it.is_whitespace() || ".,!`".contains(it));
    words.filter(|word| !word.is_empty())
}

/// What `message` answers to the question with this digest: `yes` or `no`, also with its code, or
/// with its digest as `a2a-lambda/confirm`. With the digest the data `{"confirm": true}` is a `yes`
/// too.
#[must_use]
pub fn verdict(digest: &str, message: &Message) -> Verdict {
    let has = |metadata: &Metadata| metadata.contains_key(CONFIRM);
    let has_digest = has(&message.metadata) || message.parts.iter().any(|it| has(&it.metadata));
    let is_digest = has_digest && message.consent_digest() == Some(digest);
    let data = first_data(&message.parts);
    let text = text_of(message).to_lowercase();
    let words: Vec<&str> = words(&text).collect();
    let (agrees, code) = match (&*words, data) {
        ([], Some(data)) if is_digest => (data.get("confirm").and_then(Value::as_bool), None),
        (["yes"], _) => (Some(true), None),
        (["yes", code], _) => (Some(true), Some(*code)),
        (["no"], _) => (Some(false), None),
        (["no", code], _) => (Some(false), Some(*code)),
        _ => (None, None),
    };
    let is_code = code.is_some_and(|code| code == code_of(digest));
    let is_other = (has_digest && !is_digest) || (code.is_some() && !is_code);
    Verdict {
        agrees: agrees.filter(|_| !is_other),
        is_named: is_digest || is_code,
    }
}

/// Adds the name and the value of a member, and each of its own members on a line of its own.
/// Counts the characters that are left out.
fn show(text: &mut String, omission: &mut usize, (name, value): (&str, &Value), depth: usize) {
    text.push_str(name);
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => (members.iter())
            .map(|(name, value)| (readable_name(name, omission), value))
            .collect(),
        Value::Array(values) => (1..)
            .zip(values)
            .map(|(number, value): (u64, _)| (format!("[{number}]"), value))
            .collect(),
        Value::String(value) => return text.push_str(&format!(": {}", readable(value, omission))),
        value => return text.push_str(&format!(": {value}")),
    };
    if members.is_empty() {
        text.push_str(&format!(": {value}"));
    }
    for (name, value) in members {
        text.push('\n');
        text.extend(iter::repeat_n("  ", depth));
        show(text, omission, (&name, value), depth + 1);
    }
}

/// The name of a skill or a member. It is quoted if it could be taken for something else.
fn readable_name(name: &str, omission: &mut usize) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && name.len() <= BEGIN && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    readable(name, omission)
}

/// A text in quotes, without its middle if it is long. What cannot be seen is escaped.
fn readable(text: &str, omission: &mut usize) -> String {
    let count = text.chars().count();
    if count <= BEGIN + END {
        return quote(text.chars());
    }
    *omission += count - BEGIN - END;
    let begin = quote(text.chars().take(BEGIN));
    let end = quote(text.chars().skip(count - END));
    format!("{begin} … {end} ({count} characters)")
}

fn quote(letters: impl Iterator<Item = char>) -> String {
    let mut text = String::from('"');
    for letter in letters {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            letter if is_invisible(letter) => text.extend(letter.escape_unicode()),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

/// Whether `letter` is a control character, has no width or no shape, or changes the direction
/// of the text: Unicode UAX #9 for the direction, and the code points with the property
/// `Default_Ignorable_Code_Point`.
#[must_use]
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}'
        )
}
