//! The stored form of a list of parts.
//!
//! A part of text alone is a JSON string. Many short ones, the tokens of a stream, are one
//! element together: their text, and their lengths as one digit each.

use super::message::{StoredContent, StoredPart};
use crate::task::Metadata;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The base of a length in characters.
const RADIX: u32 = 36;
/// Fewer texts are shorter as strings.
const FEWEST: usize = 8;

/// A list that is a value of its own.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct PartList<'a>(#[serde(with = "self")] pub(super) Vec<StoredPart<'a>>);

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenElement<'a> {
    Text(&'a str),
    Texts {
        s: String,
        l: String,
    },
    Part {
        c: &'a StoredContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        f: &'a Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        t: &'a Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Metadata::is_empty")]
        m: &'a Metadata,
    },
}

/// The length of a text as a digit, if it has one.
fn digit(text: &str) -> Option<char> {
    let length = text.chars().take(RADIX as usize).count();
    char::from_digit(u32::try_from(length).ok()?, RADIX)
}

/// A part that can be one of many texts.
fn token<'a>(part: &'a StoredPart<'_>) -> Option<(&'a str, char)> {
    let text = part.plain()?;
    Some((text, digit(text)?))
}

pub(super) fn serialize<S: Serializer>(
    mut parts: &[StoredPart<'_>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut elements = Vec::new();
    while let Some((part, rest)) = parts.split_first() {
        let tokens: Vec<(&str, char)> = parts.iter().map_while(token).collect();
        if tokens.len() >= FEWEST {
            elements.push(WrittenElement::Texts {
                s: tokens.iter().map(|(text, _)| *text).collect(),
                l: tokens.iter().map(|(_, digit)| *digit).collect(),
            });
            parts = parts.get(tokens.len()..).unwrap_or_default();
            continue;
        }
        let StoredPart { c, f, t, m } = part;
        elements.push(match part.plain() {
            Some(text) => WrittenElement::Text(text),
            None => WrittenElement::Part { c, f, t, m },
        });
        parts = rest;
    }
    elements.serialize(serializer)
}

pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<StoredPart<'a>>, D::Error> {
    let elements = Vec::<StoredElement>::deserialize(deserializer)?;
    let mut parts = Vec::with_capacity(elements.len());
    for element in elements {
        match element {
            StoredElement::Part(part) => parts.push(part),
            StoredElement::Texts(texts, lengths) => split(&texts, &lengths, &mut parts)
                .ok_or_else(|| D::Error::custom("texts and lengths differ"))?,
        }
    }
    Ok(parts)
}

/// Adds a part for each length; `None` if the texts have another length.
fn split(texts: &str, lengths: &str, parts: &mut Vec<StoredPart<'_>>) -> Option<()> {
    let mut left = texts.chars();
    for digit in lengths.chars() {
        let length = usize::try_from(digit.to_digit(RADIX)?).ok()?;
        let text: String = left.by_ref().take(length).collect();
        parts.push(StoredPart::of_text(text));
    }
    // A text that ended early has left nothing; the characters are counted in full.
    let sum: u32 = lengths.chars().filter_map(|it| it.to_digit(RADIX)).sum();
    (texts.chars().count() == usize::try_from(sum).ok()?).then_some(())
}

enum StoredElement {
    Part(StoredPart<'static>),
    Texts(String, String),
}

#[derive(Deserialize)]
struct ElementMembers {
    c: Option<StoredContent<'static>>,
    f: Option<Cow<'static, str>>,
    t: Option<Cow<'static, str>>,
    #[serde(default)]
    m: Cow<'static, Metadata>,
    s: Option<String>,
    l: Option<String>,
}

impl<'de> Deserialize<'de> for StoredElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = StoredElement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, texts or a part")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StoredElement, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<StoredElement, E> {
        Ok(StoredElement::Part(StoredPart::of_text(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<StoredElement, A::Error> {
        let read = ElementMembers::deserialize(MapAccessDeserializer::new(members))?;
        if let (Some(texts), Some(lengths)) = (read.s, read.l) {
            return Ok(StoredElement::Texts(texts, lengths));
        }
        let ElementMembers { c, f, t, m, .. } = ElementMembers {
            s: None,
            l: None,
            ..read
        };
        let c = c.ok_or_else(|| A::Error::missing_field("c"))?;
        Ok(StoredElement::Part(StoredPart { c, f, t, m }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> PartList<'static> {
        let part = |text: &&str| StoredPart::of_text((*text).to_owned());
        PartList(texts.iter().map(part).collect())
    }

    fn form(list: &PartList<'_>) -> String {
        let text = serde_json::to_string(list).unwrap();
        let read: PartList<'_> = serde_json::from_str(&text).unwrap();
        assert!(read.0 == list.0, "{text}");
        text
    }

    #[test]
    fn many_short_texts_are_one_element() {
        let tokens = [
            "The ",
            "or",
            "der ",
            "",
            "\u{1f600} ",
            "is ",
            "on ",
            "its ",
            "way",
        ];
        let expected = "[{\"s\":\"The order \u{1f600} is on its way\",\"l\":\"424023343\"}]";
        assert_eq!(form(&texts(&tokens)), expected);
    }

    #[test]
    fn few_or_long_texts_are_strings() {
        assert_eq!(form(&texts(&["The ", "order"])), r#"["The ","order"]"#);
        let (short, long) = ("x".repeat(35), "x".repeat(36));
        let many = [short.as_str(); 9];
        assert!(form(&texts(&many)).contains(r#""l":"zzzzzzzzz""#));
        let mut mixed = many.to_vec();
        mixed.extend([long.as_str(), "a"]);
        assert!(form(&texts(&mixed)).ends_with(&format!(r#"}},"{long}","a"]"#)));
    }

    #[test]
    fn lengths_that_do_not_fit_are_an_error() {
        for damaged in [
            r#"[{"s":"abc","l":"4"}]"#,
            r#"[{"s":"abc","l":"2"}]"#,
            r#"[{"s":"abc","l":"1-"}]"#,
            r#"[{"s":"abc"}]"#,
            r#"[{"f":"a"}]"#,
            r#"[1]"#,
        ] {
            assert!(
                serde_json::from_str::<PartList<'_>>(damaged).is_err(),
                "{damaged}"
            );
        }
    }
}
