//! Flags and settings, accepted and refused ones.

use crate::agent::{Folder, Running, ended, refusal};
use crate::calls::Call;
use a2a_lambda_rows::each_row;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::net::TcpListener;

#[tokio::test]
async fn help_lists_every_documented_flag() {
    let output = ended(&["--help"], &[]).await;
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    let paper = include_str!("../../docs/local.md");
    let (_, section) = paper.split_once("## The local agent").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    let documented = table.lines().filter_map(|row| row.strip_prefix("| `--"));
    let documented: Vec<&str> = documented
        .filter_map(|row| row.split([' ', '`']).next())
        .collect();
    let offered: Vec<&str> = help
        .lines()
        .filter_map(|line| line.trim_start().split_once("--")?.1.split(' ').next())
        .filter(|flag| !["help", "version"].contains(flag))
        .collect();
    for flag in &documented {
        assert!(offered.contains(flag), "--{flag} is not in\n{help}");
    }
    assert_eq!(documented.len(), 13, "{documented:?}");
}

#[tokio::test]
async fn an_address_beyond_this_machine_needs_insecure_dev() {
    for arguments in [&["--bind", "0.0.0.0"][..], &["--bind", "::"]] {
        let said = refusal(arguments, &[]).await;
        assert!(said.contains("--insecure-dev"), "{said}");
    }
}

#[tokio::test]
async fn an_occupied_port_is_named_in_the_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refusal(&["--memory", "--port", &port], &[]).await;
    assert!(said.contains(&address), "{said}");
    assert!(said.contains("--port N"), "{said}");
}

#[tokio::test]
async fn a_bad_setting_stops_the_start_and_is_explained() {
    for (name, value, allowed) in [
        ("A2A_TASK_TTL", "bad", "`ms`, `s`, `m`, `h` or `d`"),
        ("A2A_CARD", "v2", "`union` or `v1`"),
        ("A2A_UPLOAD_MAX", "1 MiB", "a whole number"),
    ] {
        let said = refusal(&["--memory", "--port", "0"], &[(name, value)]).await;
        assert!(said.contains(&format!("setting `{name}`")), "{said}");
        assert!(said.contains(allowed), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[tokio::test]
async fn an_unusable_data_folder_is_named_with_the_reason() {
    let said = refusal(&["--port", "0", "--data", "/dev/null/here"], &[]).await;
    assert!(said.contains("`/dev/null/here`: "), "{said}");
    assert!(said.contains("directory"), "{said}");
}

async fn card(arguments: &[&str]) -> Value {
    let folder = Folder::new();
    let arguments = [&["--memory"], arguments].concat();
    let agent = Running::agent(&folder, &arguments).await;
    let url = format!("{}/.well-known/agent-card.json", agent.base());
    Call::get(&url).json().await
}

#[tokio::test]
async fn head_on_a_card_is_get_without_a_body() {
    let agent = Running::agent(&Folder::new(), &["--memory"]).await;
    for path in ["/.well-known/agent-card.json", "/agent.json"] {
        let call = Call::get(&format!("{}{path}", agent.base()));
        let got = call.clone().response().await;
        let head = call.method(Method::HEAD).response().await;
        assert_eq!(got.status(), 200, "{path}");
        assert_eq!(head.status(), 200, "{path}");
        let rows = ["etag", "content-length", "content-type", "cache-control"];
        each_row(rows, |name| {
            let value = got.headers().get(name);
            assert!(value.is_some(), "{path} {name}");
            assert_eq!(head.headers().get(name), value, "{path} {name}");
        });
        let body = head.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), 0, "{path}");
    }
}

#[tokio::test]
async fn options_names_the_methods_of_a_route() {
    let agent = Running::agent(&Folder::new(), &["--memory"]).await;
    let ask = async |path: &str| {
        let call = Call::get(&format!("{}{path}", agent.base()));
        call.method(Method::OPTIONS).response().await
    };
    let known = ask("/tasks/t1").await;
    assert_eq!(known.status(), 204);
    assert_eq!(known.headers()["allow"], "GET, HEAD, OPTIONS");
    assert_eq!(
        ask("/message:send").await.headers()["allow"],
        "POST, OPTIONS"
    );
    let unknown = ask("/nowhere").await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(unknown.headers().get("allow"), None);
}

/// The versions of the interfaces of a card.
fn versions(card: &Value) -> Vec<&str> {
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let versions = interfaces.iter().map(|one| &one["protocolVersion"]);
    versions.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_v1_card_has_only_the_members_of_1_0() {
    let (union, v1) = (
        card(&["--card", "union"]).await,
        card(&["--card", "v1"]).await,
    );
    let old = [
        "url",
        "protocolVersion",
        "preferredTransport",
        "additionalInterfaces",
    ];
    each_row(old, |member| {
        assert!(union.get(member).is_some(), "{member}");
        assert!(v1.get(member).is_none(), "{member}");
    });
    assert_eq!(versions(&union), ["1.0", "1.0", "0.3", "0.3"]);
    assert_eq!(versions(&v1), ["1.0", "1.0"]);
    for (member, value) in v1.as_object().unwrap() {
        // The URLs differ between runs, and the union card has more in these two.
        if !["supportedInterfaces", "capabilities"].contains(&member.as_str()) {
            assert_eq!(union.get(member), Some(value), "{member}");
        }
    }
}

#[tokio::test]
async fn the_default_card_serves_every_generation() {
    assert_eq!(versions(&card(&[]).await).len(), 4);
}

#[tokio::test]
async fn an_agent_uses_the_services_it_is_given() {
    let folder = Folder::new();
    let running = crate::local_access::services(&folder, &["--memory"]).await;
    let (dynamodb, s3) = (
        running.setting("AWS_ENDPOINT_URL_DYNAMODB"),
        running.setting("AWS_ENDPOINT_URL_S3"),
    );
    let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    let keys = keys.map(|name| (name, running.setting(name)));
    let arguments = [
        "--port",
        "0",
        "--agent",
        "conformance",
        "--endpoint",
        dynamodb,
        "--s3-endpoint",
        s3,
    ];
    let agent = || Running::start(&folder, &arguments, &keys, "listening on ");
    let first = agent().await;
    assert!(first.said.contains(dynamodb), "{}", first.said);
    let answer = Call::say(first.base(), "file 100000").json().await;
    first.kill().await;
    // Another agent finds the task and its bytes in the same services.
    let second = agent().await;
    let id = answer["task"]["id"].as_str().unwrap();
    let found = Call::get(&format!("{}/tasks/{id}", second.base()));
    let found = found.json().await;
    assert_eq!(found["artifacts"], answer["task"]["artifacts"]);
}
