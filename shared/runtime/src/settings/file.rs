//! Reads JSON objects whose members are settings: `A2A_SETTINGS`, and the configuration file.
//!
//! The environment wins over `A2A_SETTINGS`, and that over the file. A stack has one parameter for
//! the object. The file is `a2a.json` in the working folder, if there is one.
//!
//! Lambda changes the variables of a function seconds before its code. So a function that runs
//! tolerates a member of `A2A_SETTINGS` that it does not know, and reports it. `ops` refuses it
//! in the deployment that brings it.

use super::source::{Environment, Source, read_file};
use super::variables::is_setting;
use super::{FileError, SettingsError};
use crate::task::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The setting that holds settings.
const OBJECT: &str = "A2A_SETTINGS";
/// The file.
const FILE: &str = "a2a.json";
/// The most bytes of the file: 256 KiB.
const MAX_BYTES: u64 = 256 * 1024;
/// Settings that do not belong in an object, and why.
const MISPLACED: [(&str, &str); 3] = [
    (
        "A2A_SECRET_KEY",
        "a secret; set it in the environment, or name a secret of Secrets Manager",
    ),
    (
        "A2A_MODEL_KEY",
        "a secret; set it in the environment, or in the secret of the skills",
    ),
    (OBJECT, "an object of settings; set it in the environment"),
];
/// Settings that the template sets, and so the object of a stack does not. A test compares them
/// with it.
const OF_THE_TEMPLATE: [&str; 15] = [
    "A2A_AUTH",
    "A2A_BUCKET",
    "A2A_CONCURRENCY",
    "A2A_CORS_ORIGIN",
    "A2A_DEAD_LETTERS_URL",
    "A2A_FIRST_KEY",
    "A2A_FUNCTION",
    "A2A_LOG",
    "A2A_METRICS",
    "A2A_PUSH_QUEUE_URL",
    "A2A_SECRET_KEY_ID",
    "A2A_SKILL_SECRET",
    "A2A_TABLE",
    "A2A_WORKERS",
    "A2A_WORK_QUEUE_URL",
];

/// The settings of the environment, and behind them those of `A2A_SETTINGS` and of the
/// configuration file.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    path: Option<PathBuf>,
    /// The members of `A2A_SETTINGS`, and of the file.
    members: [BTreeMap<String, String>; 2],
    /// The members of `A2A_SETTINGS` that are not settings.
    unknown: Vec<String>,
}

impl Configuration {
    /// Reads `A2A_SETTINGS`, and the configuration file, if there is one.
    ///
    /// # Errors
    /// [`SettingsError::File`] when the file cannot be read, or has a member that is not a
    /// setting, or does not belong in a file.
    /// [`SettingsError::Object`] in the same cases, except that of an unknown member.
    pub fn load() -> Result<Self, SettingsError> {
        let object = Environment.get(OBJECT).unwrap_or_default();
        let (object, unknown) = object_of(&object).map_err(SettingsError::Object)?;
        let (path, file) = Self::file()?;
        Ok(Self {
            path,
            members: [object, file],
            unknown,
        })
    }

    /// The configuration file and its members.
    fn file() -> Result<(Option<PathBuf>, BTreeMap<String, String>), SettingsError> {
        let path = PathBuf::from(FILE);
        let fail = |why| SettingsError::File {
            path: path.display().to_string(),
            why,
        };
        let text = match read_file(&path, MAX_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok((None, BTreeMap::new())),
            Err(error) => return Err(fail(FileError::Unreadable(error.to_string()))),
        };
        match members(&text).map_err(&fail)? {
            (members, unknown) if unknown.is_empty() => Ok((Some(path), members)),
            (_, mut unknown) => Err(fail(FileError::Unknown(unknown.swap_remove(0)))),
        }
    }

    /// The same configuration, for a program that is started by a person.
    ///
    /// # Errors
    /// [`SettingsError::Object`] when a member of `A2A_SETTINGS` is not a setting.
    pub fn refuse_unknown(self) -> Result<Self, SettingsError> {
        match self.unknown.first() {
            Some(name) => Err(SettingsError::Object(FileError::Unknown(name.clone()))),
            None => Ok(self),
        }
    }

    /// The members of `A2A_SETTINGS` that are not settings.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Logs an error with the members of `A2A_SETTINGS` that are not settings.
    pub fn report_unknown(&self) {
        if !self.unknown.is_empty() {
            let names = self.unknown.join(", ");
            tracing::error!("ignored members of `{OBJECT}` that are not settings: {names}");
        }
    }

    /// The file whose settings these are, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl Source for Configuration {
    fn get(&self, name: &str) -> Option<String> {
        let behind = || self.members.iter().find_map(|members| members.get(name));
        // An empty variable counts as not set, so it hides nothing.
        let variable = Environment.get(name).filter(|text| !text.is_empty());
        variable.or_else(|| behind().cloned())
    }

    fn built_at(&self) -> Option<Timestamp> {
        Environment.built_at()
    }
}

/// Settings by name, and names that are none.
type KnownAndUnknown = (BTreeMap<String, String>, Vec<String>);

/// The members of `A2A_SETTINGS`.
fn object_of(text: &str) -> Result<KnownAndUnknown, FileError> {
    if text.is_empty() {
        return Ok(Default::default());
    }
    let (members, unknown) = members(text)?;
    match OF_THE_TEMPLATE
        .iter()
        .find(|name| members.contains_key(**name))
    {
        Some(name) => Err(FileError::Misplaced {
            name,
            why: "what the template sets; use its parameter",
        }),
        None => Ok((members, unknown)),
    }
}

/// The members of an object as the texts that the environment would have: `true` is `on`.
fn members(text: &str) -> Result<KnownAndUnknown, FileError> {
    let members: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
        // Another value than an object may be a secret, and serde's text would contain it.
        let at = (!error.is_data()).then(|| format!(": {error}"));
        FileError::Content("an object of settings".to_owned() + &at.unwrap_or_default())
    })?;
    if let Some((name, why)) = MISPLACED.iter().find(|it| members.contains_key(it.0)) {
        return Err(FileError::Misplaced { name, why });
    }
    let (mut settings, mut unknown) = KnownAndUnknown::default();
    for (name, value) in members {
        let text = match value {
            Value::String(text) => text,
            Value::Bool(true) => "on".to_owned(),
            Value::Bool(false) => "off".to_owned(),
            Value::Number(number) if !number.is_f64() => number.to_string(),
            _ => {
                let why = "a text, a whole number, `true` or `false`";
                return Err(FileError::Content(format!("member `{name}`: {why}")));
            }
        };
        if is_setting(&name) {
            settings.insert(name, text);
        } else {
            unknown.push(name);
        }
    }
    Ok((settings, unknown))
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, SettingsError};
    use super::*;
    use a2a_lambda_rows::each_row;
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
        let text = r#"{"A2A_AUTH": "dev", "A2A_TASK_TTL": "7d", "A2A_UPLOAD_MAX": 2048, "A2A_PUSH": false}"#;
        let read = Settings::read(&File(members(text).unwrap().0)).unwrap();
        assert_eq!(read.policy.task_ttl, Duration::from_secs(7 * 24 * 3600));
        assert_eq!((read.policy.upload_max, read.push), (2048, false));
    }

    #[test]
    fn the_environment_wins_over_the_object_and_that_over_the_file() {
        // Cargo sets the first variable for every test.
        let names = ["CARGO_MANIFEST_DIR", "A2A_TEST_OBJECT", "A2A_TEST_FILE"];
        let members = |names: &[&str], value: &str| {
            let entry = |name: &&str| ((*name).to_owned(), value.to_owned());
            names.iter().map(entry).collect::<BTreeMap<_, _>>()
        };
        let all = Configuration {
            path: None,
            members: [members(&names[..2], "object"), members(&names, "file")],
            unknown: Vec::new(),
        };
        let expected = [
            Environment.get(names[0]).unwrap(),
            "object".into(),
            "file".into(),
        ];
        assert_eq!(names.map(|name| all.get(name).unwrap()), expected);
    }

    #[test]
    fn an_object_refuses_secrets_and_what_the_template_sets() {
        let rows = ["A2A_MODEL_KEY", "A2A_SETTINGS", "A2A_LOG", "A2A_FIRST_KEY"];
        each_row(rows, |name| {
            let refused = object_of(&format!(r#"{{"{name}": "x"}}"#)).unwrap_err();
            assert!(matches!(refused, FileError::Misplaced { .. }), "{refused}");
        });
        let (known, unknown) = object_of(r#"{"A2A_LEASE": "9s", "A2A_LEAES": "9s"}"#).unwrap();
        assert_eq!(known.into_keys().collect::<Vec<_>>(), ["A2A_LEASE"]);
        assert_eq!(unknown, ["A2A_LEAES"], "a running function tolerates it");
        assert_eq!(object_of(""), Ok(Default::default()));
    }

    #[test]
    fn the_template_sets_exactly_what_an_object_refuses() {
        let template = include_str!("../../../../template.yaml");
        let variables = template.lines().filter_map(|line| {
            let (name, _) = line.trim().split_once(": ")?;
            name.starts_with("A2A_").then_some(name)
        });
        let variables: std::collections::BTreeSet<_> = variables.collect();
        let expected = OF_THE_TEMPLATE.into_iter().chain([OBJECT]).collect();
        assert_eq!(variables, expected);
    }

    #[test]
    fn a_file_with_an_unknown_or_misplaced_member_is_refused() {
        let (_, unknown) = members(r#"{"A2A_TASK_TLT": "7d"}"#).unwrap();
        assert_eq!(unknown, ["A2A_TASK_TLT"]);
        for name in ["A2A_SECRET_KEY", "A2A_SETTINGS"] {
            let refused = members(&format!(r#"{{"{name}": "x"}}"#)).unwrap_err();
            assert!(matches!(refused, FileError::Misplaced { .. }), "{refused}");
        }
    }

    #[test]
    fn a_file_that_contradicts_itself_is_refused() {
        let text = r#"{"A2A_AUTH": "dev", "A2A_STATE_TTL": "2d", "A2A_THREAD_TTL": "1d"}"#;
        let refused = Settings::read(&File(members(text).unwrap().0));
        assert!(matches!(
            refused,
            Err(SettingsError::StateOutlivesThread { .. })
        ));
    }

    #[test]
    fn a_file_that_is_no_object_of_settings_is_refused() {
        let rows = [
            "",
            "[]",
            r#""hunter2""#,
            "7",
            "{",
            r#"{"A2A_PUSH": null}"#,
            r#"{"A2A_PUSH": ["on"]}"#,
            r#"{"A2A_UPLOAD_MAX": 1.5}"#,
        ];
        each_row(rows, |text| {
            let refused = members(text).unwrap_err();
            assert!(
                matches!(&refused, FileError::Content(why) if !why.contains("hunter2")),
                "{text}: {refused}"
            );
        });
    }
}
