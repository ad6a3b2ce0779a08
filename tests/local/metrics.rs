//! What the running program counts, read back from `/metrics` after calls.

use crate::agent::{Folder, ModelService, Running};
use crate::calls::Call;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const DOCUMENT: &str = include_str!("../../docs/metrics.md");
/// The metrics of the document that only a function has: the local agent starts none.
const OF_FUNCTIONS: [&str; 3] = [
    "a2a_cold_starts_total",
    "a2a_cold_start_seconds",
    "a2a_unknown_settings_total",
];
/// How often the metrics are read before a value counts as missing.
const LOOKS: u32 = 200;

/// What a user would lose if it were counted elsewhere or not at all.
const COUNTED: [&str; 25] = [
    "a2a_requests_total{method=SendMessage,skill_name=chat,status=200}",
    "a2a_requests_total{method=SendMessage,skill_name=summarize_resume,status=429}",
    "a2a_request_duration_seconds{method=SendMessage,skill_name=chat}",
    "a2a_errors_total{skill_name=chat,reason=MODEL_AUTH,class=model}",
    "a2a_errors_total{skill_name=chat,reason=CONTENT_TYPE_NOT_SUPPORTED,class=caller}",
    "a2a_errors_total{skill_name=chat,reason=UNSUPPORTED_OPERATION,class=caller}",
    "a2a_errors_total{skill_name=chat,reason=TASK_NOT_CANCELABLE,class=caller}",
    "a2a_errors_total{skill_name=generate_report,reason=MODEL_AUTH,class=model}",
    "a2a_errors_total{skill_name=summarize_resume,reason=RATE_LIMITED,class=caller}",
    "a2a_errors_total{skill_name=unrouted,reason=RATE_LIMITED,class=caller}",
    "a2a_turns_total{skill_name=chat,state=completed}",
    "a2a_turns_total{skill_name=chat,state=failed}",
    "a2a_turns_total{skill_name=generate_report,state=failed}",
    "a2a_turn_duration_seconds{skill_name=chat}",
    "a2a_rate_limited_total{tenant_id=acme,skill_name=summarize_resume}",
    "a2a_rate_limited_total{tenant_id=poor,skill_name=unrouted}",
    "a2a_states_cleaned_total{}",
    "a2a_model_tokens_total{model=m,skill_name=chat}",
    "a2a_model_tokens_total{model=m,skill_name=summarize_resume}",
    "a2a_model_tokens_total{model=r,skill_name=unrouted}",
    "a2a_routes_total{how=model,skill_name=chat}",
    "a2a_routes_total{how=named,skill_name=generate_report}",
    "a2a_dynamodb_units_total{kind=read}",
    "a2a_dynamodb_units_total{kind=write}",
    "a2a_scarce_days_total{tenant_id=acme}",
];

/// A client of the program.
struct Client<'a>(&'a Running);

impl Client<'_> {
    /// Sends a message of `ann` with this member in its parts. `skill` names its skill.
    async fn sends(&self, part: Value, skill: Option<&str>, more: Value) -> Value {
        let id = format!("{}-{part}", skill.unwrap_or_default());
        let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [part]});
        if let Some(skill) = skill {
            message["metadata"] = json!({"skillId": skill});
        }
        if let Value::Object(more) = more.clone() {
            message.as_object_mut().unwrap().extend(more);
        }
        let now = message.as_object_mut().unwrap().remove("immediately");
        let configuration = json!({"returnImmediately": now.is_some()});
        self.calls("acme:ann", "/message:send")
            .await_json(json!({"message": message, "configuration": configuration}))
            .await
    }

    fn calls(&self, caller: &str, path: &str) -> Call {
        Call::get(&format!("{}{path}", self.0.base()))
            .header("Authorization", &format!("Bearer dev:{caller}"))
            .header("Content-Type", "application/json")
    }

    /// The samples at `/metrics` by name and labels, and the names of the metrics.
    async fn samples(&self) -> (BTreeMap<String, f64>, BTreeSet<String>) {
        let (_, text) = self.calls("acme:ann", "/metrics").send().await;
        let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names = kinds.filter_map(|line| line.split(' ').next());
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.filter_map(|line| line.rsplit_once(' '));
        let samples = samples.map(|(series, value)| {
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let name = name.strip_suffix("_count").unwrap_or(name);
            let series = format!("{name}{{{}", labels.replace('"', ""));
            (series, value.parse().unwrap())
        });
        (samples.collect(), names.map(str::to_owned).collect())
    }
}

impl Call {
    /// The JSON of the response to this body, whatever its status.
    async fn await_json(self, body: Value) -> Value {
        let (_, text) = self.body(&body).send().await;
        serde_json::from_str(&text).unwrap()
    }
}

/// The metrics of the document, and the names of their labels.
fn documented() -> BTreeMap<String, Vec<String>> {
    let quoted = |cell: &str| -> Vec<String> {
        let odd = cell.split('`').enumerate().filter(|(at, _)| at % 2 == 1);
        odd.map(|(_, text)| text.to_owned()).collect()
    };
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `a2a_"));
    let cells = rows.map(|row| row.split('|').skip(1).map(quoted).collect::<Vec<_>>());
    let metrics = cells.flat_map(|cells| {
        let labels = cells[1].clone();
        cells[0]
            .clone()
            .into_iter()
            .map(move |it| (it, labels.clone()))
    });
    metrics.collect()
}

/// Calls that count in each metric.
async fn call_in_each_way(client: &Client<'_>) {
    let text = |text: &str| json!({"text": text});
    let none = || json!({});
    let task = client.sends(text("mystery"), None, none()).await;
    let ended = json!({"taskId": task["task"]["id"]});
    client.sends(text("again"), None, ended).await;
    let cancel = format!("/tasks/{}:cancel", task["task"]["id"].as_str().unwrap());
    client.calls("acme:ann", &cancel).await_json(none()).await;
    client.sends(text("fail"), Some("chat"), none()).await;
    // It reserves more than four fifths of the tokens of the day.
    let long = "long ".repeat(6_600);
    client.sends(text(&long), Some("chat"), none()).await;
    client
        .sends(json!({"data": {}}), Some("chat"), none())
        .await;
    let later = json!({"immediately": true});
    for (said, skill) in [
        ("fail", "generate_report"),
        ("Ann", "summarize_resume"),
        ("Bob", "summarize_resume"),
    ] {
        client.sends(text(said), Some(skill), later.clone()).await;
    }
    for _ in 0..2 {
        client.calls("poor:ann:low", "/tasks").send().await;
    }
}

#[tokio::test]
async fn an_operator_sees_which_tenant_and_skill_each_number_belongs_to() {
    let folder = Folder::new();
    let script = json!({"rules": [
        {"when": {"tool": "route"}, "input": {"skill": "chat"}},
        {"when": {"user": "fail"}, "error": {"status": 401}},
        {
            "when": {"system": "Extract"},
            "input": {"name": "Ann", "email": "ann@example.com", "github_username": "ann"},
        },
        {"text": "Twelve."},
    ]});
    let models = ModelService::start(&folder, &script).await;
    let endpoint = format!("{}/v1", models.url);
    let settings = [
        ("A2A_MODEL_PROVIDER", "openai"),
        ("A2A_MODEL_ID", "m"),
        ("A2A_ROUTER_MODEL_ID", "r"),
        ("A2A_MODEL_ENDPOINT_URL", endpoint.as_str()),
        ("A2A_RATE_SKILLS", "summarize_resume=1"),
        ("A2A_RATE_TIERS", "low=1"),
        ("A2A_STATE_TTL", "100ms"),
        ("A2A_TOKENS_PER_DAY", "40000"),
        ("A2A_SWEEP_INTERVAL", "100ms"),
        ("PATH", env!("PATH")),
    ];
    let arguments = ["--memory", "--port", "0", "--agent", "models"];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    let client = Client(&agent);
    call_in_each_way(&client).await;
    let mut looks = 0;
    let (samples, names) = loop {
        let (samples, names) = client.samples().await;
        let is_counted = |series: &&str| samples.get(*series).is_some_and(|it| *it > 0.0);
        let missing: Vec<_> = COUNTED.iter().filter(|it| !is_counted(it)).collect();
        if missing.is_empty() {
            break (samples, names);
        }
        looks += 1;
        assert!(looks < LOOKS, "missing: {missing:#?} in {samples:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // One call of the router's model, and no other tokens without a skill.
    assert_eq!(
        samples["a2a_model_tokens_total{model=r,skill_name=unrouted}"],
        18.0
    );
    let documented = documented();
    for name in &names {
        assert!(documented.contains_key(name), "{name} is not documented");
    }
    for (name, labels) in documented {
        let has_labels = |series: &&String| {
            let labels = labels.iter().map(|label| format!("{label}="));
            let (own, rest) = series.split_once('{').unwrap();
            own == name && labels.into_iter().all(|label| rest.contains(&label))
        };
        let is_shown = samples.keys().any(|series| has_labels(&series));
        assert_eq!(is_shown, !OF_FUNCTIONS.contains(&name.as_str()), "{name}");
    }
}
