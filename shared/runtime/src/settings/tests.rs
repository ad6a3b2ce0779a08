use super::read::parse_duration;
use super::*;
use std::collections::BTreeMap;

impl Source for BTreeMap<&str, &str> {
    fn get(&self, name: &str) -> Option<String> {
        self.get(name).map(|v| (*v).to_owned())
    }
}

#[test]
fn settings_require_a_secret_except_in_development() {
    let none = BTreeMap::new();
    assert!(matches!(
        Settings::read(&none),
        Err(SettingsError::Missing {
            name: "A2A_SECRET_KEY",
            ..
        })
    ));
    let dev = BTreeMap::from([("A2A_AUTH", "dev")]);
    assert_eq!(Settings::read(&dev).unwrap().auth, AuthMode::Dev);
    assert!(Settings::read_public(&none).is_ok());
}

#[test]
fn a_deployed_function_refuses_development_identities() {
    let env = BTreeMap::from([
        ("A2A_AUTH", "dev"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
    ]);
    assert_eq!(Settings::read(&env), Err(SettingsError::DevDeployed));
}

#[test]
fn a_deployed_function_connects_to_no_private_address() {
    let private = ("A2A_PUSH_ALLOW_PRIVATE", "on");
    let here = Settings::read_public(&BTreeMap::from([private])).unwrap();
    assert_eq!(here.policy.reach, Reach::Anything);
    let deployed = ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    let refused = Settings::read_public(&BTreeMap::from([private, deployed]));
    assert_eq!(refused, Err(SettingsError::PrivateDeployed));
    let plain = Settings::read_public(&BTreeMap::from([deployed])).unwrap();
    assert_eq!(plain.policy.reach, Reach::Public);
}

#[test]
fn a_bad_value_names_the_setting_the_value_and_what_is_allowed() {
    for (name, value) in [
        ("A2A_AUTH", "none"),
        ("A2A_CARD", "v2"),
        ("A2A_MAX_BODY", "0"),
        ("A2A_UPLOAD_MAX", "0"),
        ("A2A_UPLOAD_MAX", "5368709121"),
        ("A2A_TASK_TTL", "10"),
        ("A2A_LEASE", "-1s"),
        ("A2A_WORK_QUEUE_URL", "work"),
        ("A2A_PUSH_QUEUE_URL", "push"),
        ("A2A_PUSH", "maybe"),
        ("A2A_PUSH_ALLOW_PRIVATE", "true"),
        ("A2A_SWEEP_INTERVAL", "5"),
        ("A2A_BLOCKING_BUDGET", "25"),
        ("A2A_MAX_ATTEMPTS", "0"),
        ("A2A_PUBLIC_URL", "ftp://x"),
        ("A2A_CARD_SIGNATURES", "e30..AA"),
        ("A2A_DEPLOYED_AT", "yesterday"),
        ("TCK_STREAMING_TIMEOUT", "soon"),
    ] {
        let mut env = BTreeMap::from([("A2A_AUTH", "dev")]);
        env.insert(name, value);
        let text = Settings::read(&env).unwrap_err().to_string();
        assert!(text.contains(name) && text.contains(value), "{text}");
    }
}

#[test]
fn the_state_of_a_thread_may_not_outlive_the_thread() {
    for (env, said) in [
        (vec![("A2A_STATE_TTL", "25h")], ["`25h`", "`86400s`"]),
        (vec![("A2A_THREAD_TTL", "59m")], ["`3600s`", "`59m`"]),
        (
            vec![("A2A_STATE_TTL", "2d"), ("A2A_THREAD_TTL", "47h")],
            ["`2d`", "`47h`"],
        ),
    ] {
        let refused = Settings::read_public(&BTreeMap::from_iter(env));
        let text = refused.unwrap_err().to_string();
        for word in ["`A2A_STATE_TTL`", "`A2A_THREAD_TTL`"].iter().chain(&said) {
            assert!(text.contains(word), "{text}");
        }
    }
    let same = [("A2A_STATE_TTL", "2d"), ("A2A_THREAD_TTL", "48h")];
    assert!(Settings::read_public(&BTreeMap::from(same)).is_ok());
}

#[test]
fn an_error_does_not_contain_the_secret() {
    let env = BTreeMap::from([("A2A_SECRET_KEY", "hunter2")]);
    assert!(
        !Settings::read(&env)
            .unwrap_err()
            .to_string()
            .contains("hunter2")
    );
}

#[test]
fn a_missing_work_queue_is_named_in_the_error() {
    let none = Settings::read_public(&BTreeMap::new()).unwrap();
    let text = none.work_queue().unwrap_err().to_string();
    assert!(text.contains("A2A_WORK_QUEUE_URL"), "{text}");
    let env = BTreeMap::from([("A2A_WORK_QUEUE_URL", "https://sqs.example.com/1/work")]);
    let given = Settings::read_public(&env).unwrap();
    assert_eq!(given.work_queue(), Ok("https://sqs.example.com/1/work"));
}

#[test]
fn durations_require_a_unit() {
    assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(parse_duration("24h"), Some(Duration::from_secs(86_400)));
    assert!(parse_duration("36500d").is_some());
    for bad in [
        "",
        "5",
        "s",
        "1w",
        "0s",
        "1.5s",
        "36501d",
        "99999999999999999999d",
    ] {
        assert_eq!(parse_duration(bad), None, "{bad}");
    }
}

#[test]
fn sizes_above_the_limits_of_lambda_and_s3_are_refused() {
    for (name, most) in [
        ("A2A_INLINE_MAX", 204_800_u64),
        ("A2A_RESPONSE_MAX", 5_900_000),
        ("A2A_UPLOAD_MAX", 5_368_709_120),
    ] {
        let read = |size: u64| {
            let given = BTreeMap::from([(name, size.to_string())]);
            let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (*k, v.as_str())).collect();
            Settings::read_public(&given).map(drop)
        };
        assert_eq!(read(most), Ok(()), "{name}");
        let text = read(most + 1).unwrap_err().to_string();
        assert!(
            text.contains(name) && text.contains(&most.to_string()),
            "{text}"
        );
    }
}

/// A source of `given`, which records the names it is asked for.
struct Asked {
    given: BTreeMap<String, String>,
    names: std::cell::RefCell<std::collections::BTreeSet<String>>,
}

impl Source for Asked {
    fn get(&self, name: &str) -> Option<String> {
        self.names.borrow_mut().insert(name.to_owned());
        self.given.get(name).cloned()
    }
}

fn asked(given: &[(&str, &str)]) -> (Settings, Vec<String>) {
    let secret = ("A2A_SECRET_KEY", "0123456789abcdef0123456789abcdef");
    let given = given.iter().chain([&secret]);
    let source = Asked {
        given: given
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        names: std::cell::RefCell::default(),
    };
    let settings = Settings::read(&source).unwrap();
    let ours = |name: &String| name.starts_with("A2A_") || name.starts_with("TCK_");
    let names = source.names.into_inner().into_iter().filter(ours).collect();
    (settings, names)
}

/// Name and default of each row of the settings table in `docs/operations.md`.
fn documented() -> Vec<(&'static str, Option<&'static str>)> {
    let document = include_str!("../../../../docs/operations.md");
    let (_, section) = document.split_once("## Settings").unwrap();
    let (table, _) = section.split_once("Read elsewhere").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (name, rest) = row.split_once("` | ").unwrap();
        let (default, _) = rest.split_once(" |").unwrap();
        let default = default.strip_prefix('`').and_then(|d| d.strip_suffix('`'));
        (name, default)
    })
    .collect()
}

#[test]
fn the_documented_settings_are_exactly_those_the_code_reads() {
    let (_, mut read) = asked(&[]);
    let mut written: Vec<_> = documented().iter().map(|(name, _)| *name).collect();
    written.sort_unstable();
    read.sort();
    assert_eq!(written, read);
}

#[test]
fn the_documented_defaults_are_those_of_the_code() {
    let (defaults, _) = asked(&[]);
    for (name, default) in documented() {
        if let Some(default) = default {
            assert_eq!(asked(&[(name, default)]).0, defaults, "{name}");
        }
    }
    let without: Vec<_> = documented()
        .into_iter()
        .filter(|(_, default)| default.is_none())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        without,
        [
            "A2A_SECRET_KEY",
            "A2A_CARD_SIGNATURES",
            "A2A_DEPLOYED_AT",
            "A2A_WORK_QUEUE_URL",
            "A2A_PUSH_QUEUE_URL"
        ]
    );
}
