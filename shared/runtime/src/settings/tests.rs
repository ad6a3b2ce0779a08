use super::*;
use crate::engine::SecretKeys;
use crate::outbound::AddressPolicy;
use crate::telemetry::lines::Lines;
use a2a_lambda_rows::each_row;
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
fn a_deployed_function_accepts_the_identities_of_the_authorizer_only() {
    for mode in ["dev", "keys", "jwt"] {
        let env = BTreeMap::from([
            ("A2A_AUTH", mode),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
        ]);
        assert_eq!(Settings::read(&env), Err(SettingsError::AuthDeployed(mode)));
    }
}

#[test]
fn jwt_requires_an_issuer_and_its_audience() {
    let read = |given: &[(&'static str, &'static str)]| {
        let env: BTreeMap<_, _> = given.iter().copied().collect();
        Settings::read_public(&env).map(|settings| settings.credentials.issuer())
    };
    let (mode, issuer) = (
        ("A2A_AUTH", "jwt"),
        ("A2A_JWT_ISSUER", "https://id.example.com/"),
    );
    let audience = ("A2A_JWT_AUDIENCE", "agent");
    let missing = |name: &str, found| matches!(found, Err(SettingsError::Missing { name: it, .. }) if it == name);
    assert!(missing("A2A_JWT_ISSUER", read(&[mode, audience]).map(drop)));
    assert!(missing("A2A_JWT_AUDIENCE", read(&[mode, issuer]).map(drop)));
    // Without the mode a card may name an issuer that another authorizer knows.
    assert!(missing(
        "A2A_JWT_AUDIENCE",
        read(&[issuer]).unwrap().map(drop)
    ));
    let found = read(&[mode, issuer, audience]).unwrap().unwrap().unwrap();
    assert_eq!(found.issuer, "https://id.example.com/");
}

#[test]
fn a_deployed_function_reads_keys_of_an_issuer_over_https_only() {
    let here = ("A2A_JWT_ISSUER", "http://127.0.0.1:1");
    let deployed = ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    assert!(Settings::read_public(&BTreeMap::from([here])).is_ok());
    let plain = ("A2A_JWT_ISSUER", "http://id.example.com");
    for env in [&[here, deployed][..], &[plain]] {
        let refused = Settings::read_public(&env.iter().copied().collect::<BTreeMap<_, _>>());
        assert!(
            matches!(refused, Err(SettingsError::Bad { name, .. }) if name == here.0),
            "{env:?}"
        );
    }
}

#[test]
fn a_deployed_function_connects_to_no_private_address() {
    let private = ("A2A_PUSH_ALLOW_PRIVATE", "on");
    let here = Settings::read_public(&BTreeMap::from([private])).unwrap();
    assert_eq!(here.policy.reach, AddressPolicy::Anything);
    let deployed = ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    let refused = Settings::read_public(&BTreeMap::from([private, deployed]));
    assert_eq!(refused, Err(SettingsError::PrivateDeployed));
    let plain = Settings::read_public(&BTreeMap::from([deployed])).unwrap();
    assert_eq!(plain.policy.reach, AddressPolicy::Public);
}

#[test]
fn development_identities_are_not_for_every_page() {
    let every = ("A2A_CORS_ORIGIN", "*");
    let refused = Settings::read_public(&BTreeMap::from([every, ("A2A_AUTH", "dev")]));
    assert_eq!(refused, Err(SettingsError::EveryPageInDevelopment));
    assert!(Settings::read_public(&BTreeMap::from([every])).is_ok());
    let one = ("A2A_CORS_ORIGIN", "http://localhost:3000");
    let settings = Settings::read_public(&BTreeMap::from([one, ("A2A_AUTH", "dev")]));
    assert!(settings.unwrap().cors.is_some());
}

#[test]
fn a_bad_value_names_the_setting_and_what_is_allowed() {
    let rows = [
        ("A2A_AUTH", "none"),
        ("A2A_CARD", "v2"),
        ("A2A_CORS_ORIGIN", "app.example.com"),
        ("A2A_CONCURRENCY", "10"),
        ("A2A_UPLOAD_MAX", "0"),
        ("A2A_UPLOAD_MAX", "5368709121"),
        ("A2A_TASK_TTL", "10"),
        ("A2A_LEASE", "-1s"),
        ("A2A_WORK_QUEUE_URL", "work"),
        ("A2A_PUSH_QUEUE_URL", "push"),
        ("A2A_DEAD_LETTERS_URL", "dead"),
        ("A2A_PUSH", "maybe"),
        ("A2A_STREAMING", "true"),
        ("A2A_PUSH_ALLOW_PRIVATE", "true"),
        ("A2A_SWEEP_INTERVAL", "5"),
        ("A2A_BLOCKING_BUDGET", "25"),
        ("A2A_TASK_RUN_MAX", "24"),
        ("A2A_STORED_PER_DAY", "-1"),
        ("A2A_PUBLIC_URL", "ftp://x"),
        ("A2A_CARD_SIGNATURES", "e30..AA"),
        ("A2A_JWT_ISSUER", "id.example.com"),
        ("A2A_FIRST_KEY_TENANT", "a#b"),
        ("TCK_STREAMING_TIMEOUT", "soon"),
    ];
    each_row(rows, |(name, value)| {
        let mut env = BTreeMap::from([("A2A_AUTH", "dev")]);
        env.insert(name, value);
        let text = Settings::read(&env).unwrap_err().to_string();
        let (_, rule) = text.split_once("expected: ").unwrap();
        assert!(text.contains(name) && !rule.is_empty(), "{text}");
    });
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
fn a_key_and_the_one_before_it_are_one_setting() {
    let (new, old) = ("n".repeat(32), "o".repeat(32));
    let both = format!("{new},{old}");
    let read = Settings::read(&BTreeMap::from([("A2A_SECRET_KEY", &*both)])).unwrap();
    let expected = SecretKeys::from_keys([new.clone().into_bytes(), old.into_bytes()]);
    assert_eq!(read.policy.secrets, expected);
    let short = format!("{new},short");
    assert!(Settings::read(&BTreeMap::from([("A2A_SECRET_KEY", &*short)])).is_err());
}

#[test]
fn a_key_has_one_place() {
    let (here, there) = ("A2A_SECRET_KEY", "A2A_SECRET_KEY_ID");
    let key = "0123456789abcdef0123456789abcdef";
    let both = Settings::read(&BTreeMap::from([(here, key), (there, "keys")]));
    assert_eq!(both, Err(SettingsError::TwoSecretKeys));
    let stored = Settings::read(&BTreeMap::from([(there, "keys")])).unwrap();
    assert_eq!(stored.secret_key_id.as_deref(), Some("keys"));
}

#[test]
fn an_error_does_not_contain_a_secret_that_is_in_the_wrong_setting() {
    let names = super::variables::Variables::names().iter().copied();
    let refusals: Vec<_> = names
        .filter_map(|name| {
            let env = BTreeMap::from([("A2A_AUTH", "dev"), (name, "hunter2")]);
            let refused = Settings::read(&env).err()?.to_string();
            assert!(refused.contains(name), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
            Some(name)
        })
        .collect();
    for name in ["A2A_SECRET_KEY", "A2A_PUBLIC_URL", "A2A_AUTH", "A2A_LEASE"] {
        assert!(refusals.contains(&name), "{refusals:?}");
    }
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
fn only_a_deployed_function_has_no_base_url_of_its_own() {
    let here = Settings::read_public(&BTreeMap::new()).unwrap();
    let url = here.public_url.without_stage();
    assert_eq!(url, Some("http://127.0.0.1:8080"));
    let deployed = ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    let there = Settings::read_public(&BTreeMap::from([deployed])).unwrap();
    assert_eq!(there.public_url.without_stage(), None);
    let given = BTreeMap::from([deployed, ("A2A_PUBLIC_URL", "https://agent.example/a/")]);
    let given = Settings::read_public(&given).unwrap();
    assert_eq!(
        given.public_url.without_stage(),
        Some("https://agent.example/a")
    );
}

#[test]
fn durations_require_a_unit() {
    assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(parse_duration("24h"), Some(Duration::from_secs(86_400)));
    assert!(parse_duration("36500d").is_some());
    let rows = [
        "",
        "5",
        "s",
        "1w",
        "0s",
        "1.5s",
        "36501d",
        "99999999999999999999d",
    ];
    each_row(rows, |bad| {
        assert_eq!(parse_duration(bad), None, "{bad}");
    });
}

#[test]
fn an_upload_above_the_limit_of_s3_is_refused() {
    let read =
        |size: &str| Settings::read_public(&BTreeMap::from([("A2A_UPLOAD_MAX", size)])).map(drop);
    assert_eq!(read("5368709120"), Ok(()));
    let text = read("5368709121").unwrap_err().to_string();
    assert!(
        text.contains("A2A_UPLOAD_MAX") && text.contains("5368709120"),
        "{text}"
    );
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
fn a_deployed_function_limits_a_tenant_unless_its_settings_say_otherwise() {
    let deployed = ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand");
    let limits = asked(&[deployed]).0.policy.limits;
    assert_eq!(limits.rates.calls.map(|rate| rate.per_minute), Some(100));
    assert_eq!(limits.rates.tiers["first"].per_minute, 6_000);
    assert_eq!(limits.streams_per_tenant, Some(20));
    assert_eq!(limits.stored_bytes_per_day, Some(10 * 1024 * 1024 * 1024));
    let off = asked(&[deployed, ("A2A_RATE_LIMIT", "0")]).0.policy.limits;
    assert_eq!(off.rates.calls, None);
    assert_eq!(asked(&[]).0.policy.limits.rates.calls, None);
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
    each_row(documented(), |(name, default)| {
        if let Some(default) = default {
            assert_eq!(asked(&[(name, default)]).0, defaults, "{name}");
        }
    });
    let without: Vec<_> = documented()
        .into_iter()
        .filter(|(_, default)| default.is_none())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        without,
        [
            "A2A_PUBLIC_URL",
            "A2A_CORS_ORIGIN",
            "A2A_JWT_ISSUER",
            "A2A_JWT_AUDIENCE",
            "A2A_FIRST_KEY",
            "A2A_SECRET_KEY_ID",
            "A2A_SECRET_KEY",
            "A2A_CARD_SIGNATURES",
            "A2A_WORK_QUEUE_URL",
            "A2A_PUSH_QUEUE_URL",
            "A2A_DEAD_LETTERS_URL",
            "A2A_RATE_TIERS",
            "A2A_RATE_SKILLS",
            "A2A_CONCURRENCY",
            "A2A_MODEL_ID",
            "A2A_MODEL_ENDPOINT_URL",
            "A2A_ROUTER_MODEL_ID",
        ]
    );
}

#[test]
fn rates_are_read_by_tier_skill_and_tag() {
    let (settings, _) = asked(&[
        ("A2A_RATE_LIMIT", "100"),
        ("A2A_RATE_TIERS", "gold=1000, free=20"),
        ("A2A_RATE_SKILLS", "book-flight=10,#reports=30"),
        ("A2A_CONCURRENCY", "rpc=10"),
    ]);
    let limits = settings.policy.limits;
    let calls = limits.rates.calls.unwrap();
    assert_eq!((calls.per_minute, calls.burst), (100, 100));
    let rates = |rates: std::collections::BTreeMap<String, crate::engine::CallRate>| {
        let rates = rates.into_iter();
        rates
            .map(|(name, rate)| (name, rate.per_minute, rate.burst))
            .collect::<Vec<_>>()
    };
    let rate = |name: &str, calls| (name.to_owned(), calls, calls);
    assert_eq!(
        rates(limits.rates.tiers),
        [rate("free", 20), rate("gold", 1000)]
    );
    assert_eq!(
        rates(limits.rates.skills),
        [rate("#reports", 30), rate("book-flight", 10)]
    );
    let shared = limits.shared_streams.unwrap();
    assert_eq!((shared.pool.as_str(), shared.cap), ("rpc", 5));
    assert_eq!(limits.streams_per_tenant, None);
}

#[test]
fn a_malformed_rate_stops_the_start() {
    let rows = [
        ("A2A_RATE_TIERS", "gold"),
        ("A2A_RATE_TIERS", "gold=0"),
        ("A2A_RATE_TIERS", "gold=-1"),
        ("A2A_RATE_TIERS", "=5"),
        ("A2A_RATE_TIERS", "gold=1,gold=2"),
        ("A2A_RATE_SKILLS", "a=1;b=2"),
        ("A2A_RATE_LIMIT", "many"),
    ];
    each_row(rows, |(name, value)| {
        let source = Asked {
            given: [(name.to_owned(), value.to_owned())].into(),
            names: std::cell::RefCell::default(),
        };
        let refused = Settings::read_public(&source).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    });
}

#[test]
fn a_model_has_a_provider_an_address_and_options() {
    let read = |given: &[(&'static str, &'static str)]| {
        let env: BTreeMap<_, _> = given.iter().copied().collect();
        Settings::read_public(&env).map(|settings| settings.model)
    };
    assert_eq!(read(&[("A2A_MODEL_PROVIDER", "openai")]), Ok(None));
    let id = ("A2A_MODEL_ID", "small-1");
    let model = read(&[id]).unwrap().unwrap();
    assert_eq!(
        (model.provider, model.endpoint),
        (ModelProvider::Bedrock, None)
    );
    let model = read(&[
        id,
        ("A2A_MODEL_PROVIDER", "openai"),
        ("A2A_MODEL_ENDPOINT_URL", "http://127.0.0.1:11434/v1"),
        ("A2A_MODEL_OPTIONS", r#"{"temperature": 0}"#),
    ]);
    let model = model.unwrap().unwrap();
    assert_eq!(model.provider, ModelProvider::OpenAi);
    assert_eq!(model.endpoint.as_deref(), Some("http://127.0.0.1:11434/v1"));
    assert_eq!(model.options["temperature"], 0);
    for wrong in [
        ("A2A_MODEL_PROVIDER", "abacus"),
        ("A2A_MODEL_ENDPOINT_URL", "ftp://a"),
        ("A2A_MODEL_OPTIONS", "[]"),
    ] {
        let refused = read(&[id, wrong]);
        assert!(matches!(refused, Err(SettingsError::Bad { name, .. }) if name == wrong.0));
    }
}

#[test]
fn a_provider_without_a_model_is_warned_of() {
    let lines = Lines::default();
    let guard = lines.capture();
    let env = BTreeMap::from([("A2A_MODEL_PROVIDER", "openai")]);
    assert!(Settings::read_public(&env).unwrap().model.is_none());
    drop(guard);
    let text = lines.text();
    for name in ["`A2A_MODEL_PROVIDER`", "`A2A_MODEL_ID`"] {
        assert_eq!(text.matches(name).count(), 1, "{text}");
    }
}
