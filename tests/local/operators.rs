//! What an operator does with the program: keys, the brake, health and metrics.

use crate::agent::{Folder, ModelService, Running, ended_in, refusal};
use crate::calls::Call;
use a2a_lambda_rows::{each_row, each_row_async};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs a command on the data folder `data` of `folder` to its end, and returns what it
/// prints.
async fn command(folder: &Folder, arguments: &[&str]) -> String {
    let arguments = [arguments, &["--data", "data"]].concat();
    let output = ended_in(folder, &arguments, &[]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The status of a read with this API key, if there is one.
async fn status(agent: &Running, key: Option<&str>) -> u16 {
    let mut call = Call::get(&format!("{}/tasks", agent.base()));
    if let Some(key) = key {
        call = call.header("Authorization", &format!("Bearer {key}"));
    }
    call.send().await.0.as_u16()
}

#[tokio::test]
async fn a_command_without_region_or_credentials_names_them_in_one_line() {
    let nowhere = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9/");
    let region = ("AWS_REGION", "eu-central-1");
    for settings in [&[nowhere][..], &[nowhere, region]] {
        let message = refusal(&["keys", "list", "--table", "tasks"], settings).await;
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("a region and credentials"), "{message}");
    }
}

#[tokio::test]
async fn a_key_is_accepted_until_it_is_withdrawn() {
    let folder = Folder::new();
    let serve = ["--data", "data", "--auth", "keys"];
    // The first start makes the folder.
    let agent = Running::agent(&folder, &serve).await;
    assert_eq!(status(&agent, None).await, 401);
    agent.interrupt().await;

    let owner = ["--tenant", "acme", "--subject", "ann"];
    let mut keys = Vec::new();
    for _ in 0..2 {
        let made = command(&folder, &[&["keys", "create"], &owner[..]].concat()).await;
        keys.push(made.trim_end().to_owned());
    }
    let list = command(&folder, &["keys", "list"]).await;
    let ids: Vec<&str> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(ids.len(), 2, "{list}");
    for key in &keys {
        assert!(!list.contains(key.as_str()), "the list shows a secret");
        assert!(ids.iter().any(|id| key.contains(id)), "{list}");
    }
    let agent = Running::agent(&folder, &serve).await;
    for key in &keys {
        assert_eq!(status(&agent, Some(key)).await, 200);
    }
    assert_eq!(status(&agent, None).await, 401);
    assert_eq!(status(&agent, Some("dev:acme:ann")).await, 401);
    agent.interrupt().await;

    let gone = ids.iter().find(|id| keys[0].contains(*id)).unwrap();
    command(&folder, &["keys", "withdraw", gone]).await;
    let agent = Running::agent(&folder, &serve).await;
    assert_eq!(status(&agent, Some(&keys[0])).await, 401);
    assert_eq!(status(&agent, Some(&keys[1])).await, 200);
}

#[tokio::test]
async fn a_data_folder_before_a_command_is_the_one_that_it_acts_on() {
    let folder = Folder::new();
    let owner = ["--tenant", "acme", "--subject", "ann"];
    command(&folder, &[&["keys", "create"], &owner[..]].concat()).await;
    let run = async |arguments: &[&str]| {
        let arguments = [&["--data", "data"], arguments].concat();
        // The setting names another place: an operator's shell can have it.
        let output = ended_in(&folder, &arguments, &[("A2A_TABLE", "elsewhere")]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said, output.stdout)
    };
    let (is_done, said, list) = run(&["keys", "list"]).await;
    assert!(is_done && !list.is_empty(), "{said}");
    let (is_done, said, _) = run(&["knowledge", "export", "--tenant", "acme", "out"]).await;
    assert!(is_done, "{said}");
    let twice = ["keys", "list", "--table", "other"];
    let (is_done, said, _) = run(&twice).await;
    assert!(!is_done && said.contains("two places"), "{said}");
}

#[tokio::test]
async fn a_brake_stops_a_tenant_of_a_running_agent_and_of_the_next_one() {
    let folder = Folder::new();
    let serve = ["--port", "0", "--data", "data"];
    let start = || Running::start(&folder, &serve, &[], "listening on ");
    let agent = start().await;
    let brake = ["brake", "set", "--tenant", "acme"];
    // The command ends when the agent has read it.
    let printed = command(&folder, &[&brake[..], &["--wait", "30s"]].concat()).await;
    assert_eq!(printed, "braked: tenant acme\n");
    assert_eq!(status(&agent, Some("dev:acme:ann")).await, 403);
    assert_eq!(status(&agent, Some("dev:other:bob")).await, 200);
    agent.interrupt().await;
    let list = command(&folder, &["brake", "list"]).await;
    assert!(list.ends_with("\ttenant acme\n"), "{list}");
    for (word, expected) in [("set", 403), ("lift", 200)] {
        command(&folder, &["brake", word, "--tenant", "acme"]).await;
        let agent = start().await;
        assert_eq!(status(&agent, Some("dev:acme:ann")).await, expected);
        agent.interrupt().await;
    }
    assert_eq!(command(&folder, &["brake", "list"]).await, "");
}

#[tokio::test]
async fn usage_is_printed_by_tenant_and_model_with_its_price() {
    let folder = Folder::new();
    let models = ModelService::start(&folder, &json!({"rules": [{"text": "Twelve."}]})).await;
    let endpoint = format!("{}/v1", models.url);
    let settings = [
        ("A2A_MODEL_PROVIDER", "openai"),
        ("A2A_MODEL_ID", "m"),
        ("A2A_MODEL_ENDPOINT_URL", endpoint.as_str()),
    ];
    let serve = ["--port", "0", "--data", "data", "--agent", "models"];
    let agent = Running::start(&folder, &serve, &settings, "listening on ").await;
    for _ in 0..2 {
        let say = Call::say(agent.base(), "/chat hello");
        let say = say.header("Authorization", "Bearer dev:acme:ann");
        let sent = say.send().await.1;
        assert!(sent.contains("Twelve."), "{sent}");
    }
    let prices = folder.path().join("prices.json");
    let price = json!({"m": {"in": 1_000_000, "out": 2_000_000}});
    std::fs::write(&prices, price.to_string()).unwrap();
    let usage = ["usage", "--days", "2", "--prices", prices.to_str().unwrap()];
    let printed = command(&folder, &usage).await;
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    assert_eq!(rows.len(), 2, "{printed}");
    assert_eq!(rows[1][..3], ["acme", "m", "2"], "{printed}");
    let number = |place: usize| rows[1][place].parse::<f64>().unwrap();
    assert!(number(3) > 0.0 && number(4) > 0.0, "{printed}");
    assert!(
        (number(3) + 2.0 * number(4) - number(6)).abs() < 0.01,
        "{printed}"
    );
    agent.interrupt().await;
    assert_eq!(command(&folder, &usage).await, printed);
}

#[tokio::test]
async fn an_operator_ends_a_task_of_a_running_agent() {
    let folder = Folder::new();
    let serve = ["--port", "0", "--data", "data"];
    let agent = Running::start(&folder, &serve, &[], "listening on ").await;
    let ann = ("Authorization", "Bearer dev:acme:ann");
    let send = Call::say(agent.base(), "tell me again").header(ann.0, ann.1);
    let sent: Value = serde_json::from_str(&send.send().await.1).unwrap();
    let id = sent["task"]["id"].as_str().unwrap();
    let end = ["end-task", id, "--tenant", "acme"];
    assert_eq!(command(&folder, &end).await, format!("ended: {id}\n"));
    let printed = command(&folder, &["task", id, "--tenant", "acme"]).await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["state"], "canceled", "{printed}");
    let other = ["end-task", id, "--tenant", "other", "--data", "data"];
    assert!(!ended_in(&folder, &other, &[]).await.status.success());
    agent.interrupt().await;
}

#[tokio::test]
async fn a_stored_task_is_printed_as_json() {
    let folder = Folder::new();
    let serve = ["--port", "0", "--data", "data"];
    let agent = Running::start(&folder, &serve, &[], "listening on ").await;
    let words = "tell me again ".repeat(50);
    let send = Call::say(agent.base(), &words).header("Authorization", "Bearer dev:acme:ann");
    let sent = send.send().await;
    let sent: Value = serde_json::from_str(&sent.1).unwrap();
    let task = &sent["task"];
    agent.interrupt().await;
    let id = task["id"].as_str().unwrap();
    let printed = command(&folder, &["task", id, "--tenant", "acme"]).await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["contextId"], task["contextId"]);
    assert_eq!(printed["history"][0]["parts"][0]["text"], words);
    let arguments = ["task", id, "--tenant", "other", "--data", "data"];
    let other = ended_in(&folder, &arguments, &[]).await;
    assert!(!other.status.success(), "another tenant sees the task");
}

#[tokio::test]
async fn a_task_of_a_running_agent_is_printed_by_its_id_alone() {
    let folder = Folder::new();
    let agent = Running::start(&folder, &["--port", "0"], &[], "listening on ").await;
    let sent = Call::say(agent.base(), "Book a flight").json().await;
    let id = sent["task"]["id"].as_str().unwrap();
    let output = ended_in(&folder, &["task", id], &[]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["contextId"], sent["task"]["contextId"]);
    agent.interrupt().await;
}

/// The samples of the Prometheus text format, and the kind of each by the name of its
/// metric. Panics at a sample whose metric has no HELP and TYPE.
fn samples(text: &str) -> BTreeMap<String, (String, f64)> {
    let (mut helped, mut kinds, mut samples) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped.push(help.split(' ').next().unwrap());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(kinds.insert(name, kind), None, "{name} has two types");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let ends = ["", "_bucket", "_sum", "_count"];
            let mut bases = ends.iter().filter_map(|end| name.strip_suffix(end));
            let base = bases.find(|base| kinds.contains_key(base));
            let base = base.unwrap_or_else(|| panic!("{line} has no TYPE"));
            assert!(helped.contains(&base), "{line} has no HELP");
            let sample = (kinds[base].to_owned(), value.parse().unwrap());
            let before = samples.insert(series.to_owned(), sample);
            assert_eq!(before, None, "{series} is there twice");
        }
    }
    samples
}

#[tokio::test]
async fn sums_of_the_metrics_follow_the_calls_and_never_fall() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory", "--agent", "conformance"]).await;
    let url = format!("{}/metrics", agent.base());
    let mut before = BTreeMap::new();
    for sent in 1..4_u32 {
        Call::say(agent.base(), "echo hello").json().await;
        let (status, text) = Call::get(&url).send().await;
        assert_eq!(status, 200, "{text}");
        let now = samples(&text);
        let sends = now.iter().filter(|(series, _)| {
            series.starts_with("a2a_requests_total{") && series.contains("SendMessage")
        });
        let sends: f64 = sends.map(|(_, (_, value))| value).sum();
        assert_eq!(sends, f64::from(sent), "{text}");
        for (series, (kind, value)) in &before {
            let (_, later) = &now[series];
            assert!(
                kind == "gauge" || later >= value,
                "{series}: {value}, {later}"
            );
        }
        before = now;
    }
}

#[tokio::test]
async fn each_call_of_a_flood_that_is_refused_is_counted() {
    let folder = Folder::new();
    let agent = Running::logging(&folder).await;
    let unknown = format!("{}/tasks/none", agent.base());
    for _ in 0..60 {
        let (status, _) = Call::get(&unknown).send().await;
        assert_eq!(status, 404);
    }
    let (_, text) = Call::get(&format!("{}/metrics", agent.base())).send().await;
    let errors = samples(&text).into_iter().filter(|(series, _)| {
        series.starts_with("a2a_errors_total{") && series.contains("TASK_NOT_FOUND")
    });
    assert_eq!(errors.map(|(_, (_, value))| value).sum::<f64>(), 60.0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("TASK_NOT_FOUND"), "{log}");
    assert!(!log.contains("left out"), "{log}");
}

#[tokio::test]
async fn the_card_names_the_issuer_of_the_tokens() {
    let folder = Folder::new();
    let settings = [
        ("A2A_JWT_ISSUER", "https://login.example.com"),
        ("A2A_JWT_AUDIENCE", "agent"),
    ];
    let serve = ["--port", "0", "--data", "data", "--auth", "jwt"];
    let agent = Running::start(&folder, &serve, &settings, "listening on ").await;
    let url = format!("{}/.well-known/agent-card.json", agent.base());
    let card = Call::get(&url).json().await;
    let schemes = card["securitySchemes"].as_object().unwrap();
    let issuers = schemes.values().map(|scheme| {
        // A2A 1.0 wraps the scheme, and 0.3 has it flat.
        let wrapped = &scheme["openIdConnectSecurityScheme"]["openIdConnectUrl"];
        if wrapped.is_string() {
            wrapped.clone()
        } else {
            scheme["openIdConnectUrl"].clone()
        }
    });
    let named = json!("https://login.example.com/.well-known/openid-configuration");
    assert!(issuers.collect::<Vec<_>>().contains(&named), "{card}");
    assert_eq!(status(&agent, None).await, 401);
}

#[tokio::test]
async fn idle_subscriptions_of_a_tenant_do_not_stop_another() {
    let folder = Folder::new();
    let settings = [("A2A_STREAMS_PER_TENANT", "20")];
    let serve = ["--port", "0", "--memory", "--agent", "conformance"];
    let agent = Running::start(&folder, &serve, &settings, "listening on ").await;
    let base = agent.base().to_owned();
    let acme = ("Authorization", "Bearer dev:acme:ann");
    let asked = Call::say(&base, "?").header(acme.0, acme.1).json().await;
    let id = asked["task"]["id"].as_str().unwrap();
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..200 {
        let call = Call::get(&format!("{base}/tasks/{id}:subscribe"));
        match call.header(acme.0, acme.1).open().await {
            (status, body) if status == 200 => open.push(body),
            (status, _) => {
                assert_eq!(status, 429);
                refused += 1;
            }
        }
    }
    assert_eq!((open.len(), refused), (20, 180));
    let other = ("Authorization", "Bearer dev:other:bob");
    let said = Call::say(&base, "echo hello").header(other.0, other.1);
    let said = said.json().await;
    let own = format!("{base}/tasks/{}", said["task"]["id"].as_str().unwrap());
    let read = Call::get(&own).header(other.0, other.1).json().await;
    assert_eq!(read["status"]["state"], "TASK_STATE_COMPLETED");
    let mut stream = Call::say(&base, "echo hello").at_path("/message:stream");
    stream = stream.header(other.0, other.1);
    let (status, frames) = stream.send().await;
    assert_eq!(status, 200, "{frames}");
    assert!(frames.contains("TASK_STATE_COMPLETED"), "{frames}");
    drop(open);
}

/// The ids of the tasks of a caller.
async fn tasks_of(agent: &Running, caller: &str) -> Vec<String> {
    let call = Call::get(&format!("{}/tasks", agent.base()));
    let call = call.header("Authorization", &format!("Bearer dev:{caller}"));
    let list = call.header("A2A-Version", "1.0").json().await;
    let tasks = list["tasks"].as_array().unwrap();
    let ids = tasks.iter().map(|task| task["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[tokio::test]
async fn erasing_a_subject_leaves_nothing_of_it_and_all_of_others() {
    let folder = Folder::new();
    let serve = ["--data", "data", "--agent", "conformance"];
    let agent = Running::agent(&folder, &serve).await;
    for (caller, texts) in [
        ("acme:ann", &["echo hello", "input", "file"][..]),
        ("acme:bob", &["echo hello"]),
        ("other:ann", &["echo hello"]),
    ] {
        for text in texts {
            let say = Call::say(agent.base(), text);
            let caller = format!("Bearer dev:{caller}");
            say.header("Authorization", &caller).json().await;
        }
    }
    let bobs = tasks_of(&agent, "acme:bob").await;
    assert_eq!(tasks_of(&agent, "acme:ann").await.len(), 3);
    agent.interrupt().await;
    for subject in ["ann", "bob"] {
        let owner = ["--tenant", "acme", "--subject", subject];
        command(&folder, &[&["keys", "create"], &owner[..]].concat()).await;
    }

    let erase = ["erase-tenant", "acme", "--subject", "ann"];
    let counted = command(&folder, &[&erase[..], &["--dry-run"]].concat()).await;
    assert!(counted.starts_with("would be removed: "), "{counted}");
    let erased = command(&folder, &[&erase[..], &["--yes"]].concat()).await;
    let amount = |text: &str| text.split_once(" (").unwrap().0.to_owned();
    let removed = counted.replacen("would be removed", "removed", 1);
    assert_eq!(amount(&erased), amount(&removed));
    // What the erased tasks were asked is not left in a trace.
    assert!(!folder.path().join("data/traces").exists());
    let again = command(&folder, &[&erase[..], &["--yes"]].concat()).await;
    assert!(
        again.starts_with("removed: 0 items and 0 objects of the subject ann"),
        "{again}"
    );

    let keys = command(&folder, &["keys", "list"]).await;
    assert!(keys.contains("bob") && !keys.contains("ann"), "{keys}");
    let agent = Running::agent(&folder, &serve).await;
    assert_eq!(tasks_of(&agent, "acme:ann").await, [""; 0]);
    assert_eq!(tasks_of(&agent, "acme:bob").await, bobs);
    assert_eq!(tasks_of(&agent, "other:ann").await.len(), 1);
}

/// The output of an operation of the reference agent, called in words.
async fn operated(agent: &Running, caller: &str, words: &str) -> Value {
    let say = Call::say(agent.base(), words);
    let caller = format!("Bearer dev:{caller}:default:role:admin,team:red");
    let reply = say.header("Authorization", &caller).json().await;
    reply["task"]["artifacts"][0]["parts"][0]["data"].clone()
}

/// The authors of two decisions that the team shares, whose content stays.
async fn authors(agent: &Running) -> Vec<String> {
    let mut authors = Vec::new();
    for path in ["adr/1.md", "adr/2.md"] {
        let words = format!(r#"/knowledge_show {{"path": "{path}", "layer": "team"}}"#);
        let shown = operated(agent, "acme:bob", &words).await;
        assert_eq!(shown["content"], "# Tea", "{shown}");
        authors.push(shown["history"][0]["author"].as_str().unwrap().to_owned());
    }
    authors
}

#[tokio::test]
async fn erasing_a_subject_removes_its_memories_and_its_name_and_not_the_knowledge() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--data", "data"]).await;
    let rows = [
        ("acme:ann", "user"),
        ("acme:ann", "team"),
        ("acme:bob", "team"),
        ("acme:bob", "user"),
    ];
    each_row_async(rows, async |(caller, layer)| {
        let words = format!(
            r#"/memory_add {{"content": "tea of {caller} for the {layer}", "layer": "{layer}"}}"#
        );
        assert_eq!(operated(&agent, caller, &words).await["layer"], layer);
    })
    .await;
    for (caller, path) in [("acme:ann", "adr/1.md"), ("acme:bob", "adr/2.md")] {
        let words = format!(
            r##"/knowledge_store {{"path": "{path}", "layer": "team", "kind": "adr",
                 "content": "# Tea", "message": "Decide"}}"##
        );
        assert_eq!(operated(&agent, caller, &words).await["path"], path);
    }
    assert_eq!(authors(&agent).await, ["ann", "bob"]);
    let health = Call::get(&format!("{}/a2a-lambda/health", agent.base()));
    let report = health.json().await;
    each_row(["memory", "knowledge", "policies"], |part| {
        assert!(
            report.to_string().contains(&format!("\"{part}\"")),
            "{report}"
        );
    });
    agent.interrupt().await;
    command(
        &folder,
        &["erase-tenant", "acme", "--subject", "ann", "--yes"],
    )
    .await;

    let agent = Running::agent(&folder, &["--data", "data"]).await;
    for (caller, found) in [("acme:ann", 1), ("acme:bob", 2)] {
        let search = operated(&agent, caller, r#"/memory_search {"query": "tea"}"#).await;
        assert_eq!(search["total"], found, "{search}");
        assert!(!search.to_string().contains("ann"), "{search}");
    }
    let [gone, bob] = authors(&agent).await.try_into().unwrap();
    assert!(gone.starts_with("author-"), "{gone}");
    assert_eq!(bob, "bob");
    // A subject that returns is another author.
    let words = r##"/knowledge_store {"path": "adr/3.md", "layer": "team", "kind": "adr",
                    "content": "# Tea", "message": "Decide"}"##;
    operated(&agent, "acme:ann", words).await;
    assert_eq!(authors(&agent).await, [gone, bob]);
    agent.interrupt().await;
    command(&folder, &["erase-tenant", "acme", "--yes"]).await;
    let agent = Running::agent(&folder, &["--data", "data"]).await;
    let search = operated(&agent, "acme:bob", r#"/memory_search {"query": "tea"}"#).await;
    assert_eq!(search["total"], 0, "{search}");
}
