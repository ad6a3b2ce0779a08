//! Reads the configuration file: one JSON object whose members are settings.
//!
//! The file is the one that `A2A_CONFIG` names, else `a2a.json` in the working folder, if
//! there is one. A function on AWS Lambda works in the folder of its code. The environment
//! wins over the file, so that a stack can override what its code brings along.

use super::names::{NAMES, PREFIX};
use super::source::{Environment, Source, read_file};
use super::{FileError, SettingsError};
use crate::task::Timestamp;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The setting that names the file.
const NAME: &str = "A2A_CONFIG";
/// The file that is read when no setting names one.
const DEFAULT: &str = "a2a.json";
/// The most bytes of the file: 256 KiB.
const MAX_BYTES: u64 = 256 * 1024;
/// Settings that do not belong in a file, and why.
const NOT_IN_A_FILE: [(&str, &str); 2] = [
    (
        "A2A_SECRET_KEY",
        "a secret; set it in the environment, or name a secret of Secrets Manager",
    ),
    (NAME, "the place of this file; set it in the environment"),
];

/// The settings of the environment, and behind them those of the configuration file.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    path: Option<PathBuf>,
    members: BTreeMap<String, String>,
}

impl Configuration {
    /// Reads the configuration file, if there is one.
    ///
    /// # Errors
    /// [`SettingsError::File`] when a named file cannot be read, or the file has a member
    /// that is not a setting, is there twice, or does not belong in a file.
    pub fn load() -> Result<Self, SettingsError> {
        let named = Environment.get(NAME).filter(|path| !path.is_empty());
        let path = PathBuf::from(named.as_deref().unwrap_or(DEFAULT));
        let fail = |why| SettingsError::File {
            path: path.display().to_string(),
            why,
        };
        let text = match read_file(&path, MAX_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) if named.is_none() => return Ok(Self::default()),
            Ok(None) => return Err(fail(FileError::Missing)),
            Err(error) => return Err(fail(FileError::Unreadable(error.to_string()))),
        };
        let members = members(&text).map_err(&fail)?;
        Ok(Self {
            path: Some(path),
            members,
        })
    }

    /// The file whose settings these are, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl Source for Configuration {
    fn get(&self, name: &str) -> Option<String> {
        Environment
            .get(name)
            .or_else(|| self.members.get(name).cloned())
    }

    fn built_at(&self) -> Option<Timestamp> {
        Environment.built_at()
    }
}

/// The members of a configuration file as the texts that the environment would have.
fn members(text: &str) -> Result<BTreeMap<String, String>, FileError> {
    let Members(members) =
        serde_json::from_str(text).map_err(|error| FileError::Content(error.to_string()))?;
    for name in members.keys() {
        if let Some((name, why)) = NOT_IN_A_FILE.iter().find(|(bad, _)| bad == name) {
            return Err(FileError::Misplaced { name, why });
        }
        // `TCK_…` belongs to the conformance kits, and is a setting too.
        if !NAMES.contains(&name.as_str()) && name != "TCK_STREAMING_TIMEOUT" {
            return Err(FileError::Unknown(name.clone()));
        }
    }
    Ok(members)
}

/// An object of texts, numbers and switches, each name once.
struct Members(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object whose members are settings ({PREFIX}…)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let Text(value) = map
                .next_value()
                .map_err(|error| A::Error::custom(format!("member `{name}`: {error}")))?;
            if members.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("member `{name}` is there twice")));
            }
        }
        Ok(Members(members))
    }
}

/// A value as the text that the environment would have: `true` is `on`.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, `true` or `false`")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Text, E> {
        Ok(Text(if on { "on" } else { "off" }.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, SettingsError};
    use super::*;
    use std::time::Duration;

    /// A source with the members of a file alone.
    struct File(BTreeMap<String, String>);

    impl Source for File {
        fn get(&self, name: &str) -> Option<String> {
            self.0.get(name).cloned()
        }
    }

    #[test]
    fn a_file_sets_what_the_environment_could_set() {
        let text =
            r#"{"A2A_AUTH": "dev", "A2A_TASK_TTL": "7d", "A2A_MAX_BODY": 2048, "A2A_PUSH": false}"#;
        let read = Settings::read(&File(members(text).unwrap())).unwrap();
        assert_eq!(read.policy.task_ttl, Duration::from_secs(7 * 24 * 3600));
        assert_eq!((read.max_body, read.push), (2048, false));
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        // Cargo sets this variable for every test.
        let name = "CARGO_MANIFEST_DIR";
        let both = Configuration {
            path: None,
            members: BTreeMap::from([
                (name.to_owned(), "of the file".to_owned()),
                ("A2A_TEST_ONLY_IN_THE_FILE".to_owned(), "7".to_owned()),
            ]),
        };
        assert_eq!(both.get(name), Environment.get(name));
        assert_eq!(both.get("A2A_TEST_ONLY_IN_THE_FILE").as_deref(), Some("7"));
    }

    #[test]
    fn a_file_with_an_unknown_or_misplaced_member_is_refused() {
        assert_eq!(
            members(r#"{"A2A_TASK_TLT": "7d"}"#),
            Err(FileError::Unknown("A2A_TASK_TLT".to_owned()))
        );
        for name in ["A2A_SECRET_KEY", "A2A_CONFIG"] {
            let refused = members(&format!(r#"{{"{name}": "x"}}"#)).unwrap_err();
            assert!(matches!(refused, FileError::Misplaced { .. }), "{refused}");
        }
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let twice = members(r#"{"A2A_PUSH": "on", "A2A_PUSH": "off"}"#).unwrap_err();
        assert!(
            twice.to_string().contains("`A2A_PUSH` is there twice"),
            "{twice}"
        );
        let text = r#"{"A2A_AUTH": "dev", "A2A_STATE_TTL": "2d", "A2A_THREAD_TTL": "1d"}"#;
        let refused = Settings::read(&File(members(text).unwrap()));
        assert!(matches!(
            refused,
            Err(SettingsError::StateOutlivesThread { .. })
        ));
    }

    #[test]
    fn a_file_that_is_no_object_of_settings_is_refused() {
        for text in [
            "",
            "[]",
            "7",
            "{",
            r#"{"A2A_PUSH": null}"#,
            r#"{"A2A_PUSH": ["on"]}"#,
            r#"{"A2A_MAX_BODY": 1.5}"#,
        ] {
            let refused = members(text).unwrap_err();
            assert!(
                matches!(refused, FileError::Content(_)),
                "{text}: {refused}"
            );
        }
    }
}
