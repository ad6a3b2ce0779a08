//! The page of the local agent: its headers, who may read it, and what it shows.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use crate::local_access::raw;
use a2a_lambda_rows::{each_row, each_row_async};
use serde_json::{Value, json};
use std::time::Duration;

/// A path that needs the token.
const FACTS: &str = "/a2a-local/page/facts";

/// The running agent with the address and the token of its page.
struct WithPage {
    agent: Running,
    host: String,
    token: String,
}

impl WithPage {
    async fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let agent = Running::agent(folder, arguments).await;
        let (_, rest) = agent.said.split_once("page   http://").unwrap();
        let line = rest.lines().next().unwrap();
        let (host, token) = line.split_once("/#token=").unwrap();
        let (host, token) = (host.to_owned(), token.to_owned());
        assert_eq!(agent.base(), format!("http://{host}"));
        Self { agent, host, token }
    }

    fn call(&self, path: &str) -> Call {
        let url = format!("http://{}{path}", self.host);
        Call::get(&url).header("X-A2A-Local-Token", &self.token)
    }

    fn port(&self) -> u16 {
        self.host.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// The response to a request with these headers.
    async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        raw(self.port(), &request).await
    }
}

#[tokio::test]
async fn the_page_is_served_with_its_headers() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let host = ("Host", page.host.as_str());
    let files = [
        ("/", "text/html"),
        ("/a2a-local/page/main.js", "text/javascript"),
        ("/a2a-local/page/page.css", "text/css"),
    ];
    for (path, media_type) in files {
        let answer = page.raw("GET", path, &[host]).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        let rows = [
            &format!("content-type: {media_type}"),
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "default-src 'none'; script-src 'self'; style-src 'self'",
            "connect-src 'self'; img-src 'self' blob:; base-uri 'none'",
            "require-trusted-types-for 'script'",
            "frame-ancestors 'none'",
        ];
        each_row(rows, |header| {
            assert!(answer.contains(header), "{path} has no {header}: {answer}");
        });
    }
    let (_, html) = Call::get(&format!("http://{}/", page.host)).send().await;
    each_row(["<style", "style=", "onclick", "<script>"], |inline| {
        assert!(!html.contains(inline), "{inline}");
    });
}

#[tokio::test]
async fn every_module_that_a_file_names_is_served() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let mut open = vec!["main.js".to_owned()];
    let mut seen = Vec::new();
    while let Some(name) = open.pop() {
        if seen.contains(&name) {
            continue;
        }
        let (status, text) = page.call(&format!("/a2a-local/page/{name}")).send().await;
        assert_eq!(status, 200, "{name}");
        let rows = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ];
        each_row(rows, |forbidden| {
            assert!(!text.contains(forbidden), "{name} has {forbidden}");
        });
        let named = text.split("from \"./").skip(1);
        open.extend(named.map(|rest| rest.split('"').next().unwrap().to_owned()));
        seen.push(name);
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[tokio::test]
async fn other_hosts_pages_and_tokens_are_refused() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let other_port = format!("localhost:{}", page.port() + 1);
    let by_name = format!("localhost:{}", page.port());
    let own = format!("http://{}", page.host);
    let host = ("Host", page.host.as_str());
    let token = ("X-A2A-Local-Token", page.token.as_str());
    assert!(
        page.raw("GET", FACTS, &[host, token])
            .await
            .contains("200 OK")
    );
    let origin = ("Origin", own.as_str());
    assert!(
        page.raw("GET", FACTS, &[host, token, origin])
            .await
            .contains("200 OK")
    );
    each_row_async(["evil.example", &other_port, &by_name], async |foreign| {
        let answer = page.raw("GET", FACTS, &[("Host", foreign), token]).await;
        assert!(answer.starts_with("HTTP/1.1 421"), "{foreign}: {answer}");
    })
    .await;
    let cases = [
        "https://evil.example",
        "http://localhost:3000",
        &format!("http://{by_name}"),
        "null",
    ];
    each_row_async(cases, async |foreign| {
        let rows = [
            ("GET", FACTS),
            ("POST", "/a2a-local/page/kill"),
            ("GET", "/"),
        ];
        each_row_async(rows, async |(method, path)| {
            let answer = page
                .raw(method, path, &[host, token, ("Origin", foreign)])
                .await;
            assert!(
                answer.starts_with("HTTP/1.1 403"),
                "{foreign} {path}: {answer}"
            );
        })
        .await;
    })
    .await;
    let site = ("Sec-Fetch-Site", "same-site");
    let answer = page.raw("GET", FACTS, &[host, token, site]).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // A browser that was opened at the name moves to the exact address.
    let answer = page.raw("GET", "/", &[("Host", by_name.as_str())]).await;
    assert!(answer.starts_with("HTTP/1.1 307"), "{answer}");
    assert!(answer.contains(&format!("location: {own}/")), "{answer}");
}

#[tokio::test]
async fn nothing_but_the_files_is_served_without_the_token() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let host = ("Host", page.host.as_str());
    for wrong in [None, Some(("X-A2A-Local-Token", "0".repeat(64)))] {
        let wrong = wrong.as_ref().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = [host].into_iter().chain(wrong).collect();
        let rows = [
            ("GET", FACTS),
            ("GET", "/a2a-local/page/checks"),
            ("GET", "/a2a-local/page/webhooks"),
            ("GET", "/a2a-local/page/tasks/t"),
            ("GET", "/a2a-local/page/rows"),
            ("GET", "/a2a-local/page/changes"),
            ("GET", "/a2a-local/page/none"),
            ("POST", "/a2a-local/page/kill"),
        ];
        each_row_async(rows, async |(method, path)| {
            let answer = page.raw(method, path, &headers).await;
            assert!(answer.starts_with("HTTP/1.1 401"), "{path}: {answer}");
            assert!(!answer.contains(&page.token), "{answer}");
        })
        .await;
    }
}

#[tokio::test]
async fn there_is_no_page_beyond_loopback() {
    let folder = Folder::new();
    let arguments = ["--memory", "--bind", "0.0.0.0", "--insecure-dev"];
    let agent = Running::agent(&folder, &arguments).await;
    assert!(!agent.said.contains("#token="), "{}", agent.said);
    let (_, port) = agent.base().rsplit_once(':').unwrap();
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(Call::get(&url).send().await.0, 404);
}

#[tokio::test]
async fn a_task_is_shown_with_its_steps_and_the_cause_of_its_failure() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory", "--agent", "conformance"]).await;
    let made = Call::say(page.agent.base(), "steps 2 10").json().await;
    let id = made["task"]["id"].as_str().unwrap();
    let inside = page
        .call(&format!("/a2a-local/page/tasks/{id}"))
        .json()
        .await;
    assert_eq!(inside["facts"]["skill"], "conformance");
    let rows = inside["trace"].as_array().unwrap();
    let steps = rows.iter().filter(|row| row["kind"] == "step");
    assert_eq!(steps.count(), 2, "{inside}");
    let turns = rows.iter().filter(|row| row["kind"] == "turn");
    let attempts: Vec<&Value> = turns.map(|turn| &turn["attempt"]).collect();
    assert_eq!(attempts, [&json!(1)], "{inside}");

    let made = Call::say(page.agent.base(), "fail").json().await;
    let id = made["task"]["id"].as_str().unwrap();
    let path = format!("/a2a-local/page/tasks/{id}");
    let inside = page.call(&path).json().await;
    let rows = inside["trace"].as_array().unwrap();
    let failed = rows
        .iter()
        .any(|row| row["kind"] == "failure" && row["name"] == "FAILED_AS_TOLD");
    assert!(failed, "{inside}");
    // The tasks of another caller look absent.
    let other = page
        .call(&path)
        .header("Authorization", "Bearer dev:acme:ann");
    assert_eq!(other.send().await.0, 404);
}

#[tokio::test]
async fn tasks_are_listed_with_skill_and_words_and_are_found() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory", "--agent", "conformance"]).await;
    let changes = page.call("/a2a-local/page/changes").json().await;
    for text in ["echo freight contract", "what?", "fail"] {
        Call::say(page.agent.base(), text).json().await;
    }
    let rows = async |query: &str| {
        let path = format!("/a2a-local/page/rows?{query}");
        page.call(&path).json().await
    };
    let all = rows("").await;
    assert_eq!(all["searched"], 3, "{all}");
    assert_eq!(all["isWhole"], true);
    assert_eq!(
        all["groups"],
        json!({"working": 0, "needs": 1, "failed": 1, "ended": 1})
    );
    let hex = |text: &str| {
        text.bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let found = rows(&format!("words={}", hex("CONTRACT freight"))).await;
    assert_eq!(found["rows"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["searched"], 3);
    let row = &found["rows"][0];
    assert_eq!(row["title"], "echo freight contract");
    assert_eq!(row["says"], "echo: freight contract");
    assert_eq!(row["skill"], "conformance");
    assert!(row["tookMs"].is_u64() && row["expiresAt"].is_u64(), "{row}");
    assert_eq!(
        rows("group=needs").await["rows"][0]["state"],
        "input-required"
    );
    assert_eq!(rows("skill=other").await["rows"], json!([]));
    let after = page.call("/a2a-local/page/changes").json().await;
    assert_ne!(
        after["commits"], changes["commits"],
        "nothing says that tasks were stored"
    );
    // The tasks of another caller look absent.
    let other = page
        .call("/a2a-local/page/rows")
        .header("Authorization", "Bearer dev:acme:ann");
    assert_eq!(other.json().await["searched"], 0);
    // A wrong position is the fault of the request, and not an outage.
    for list in ["rows", "webhooks"] {
        let path = format!("/a2a-local/page/{list}?after=nothing");
        assert_eq!(page.call(&path).send().await.0, 400, "{list}");
    }
}

#[tokio::test]
async fn webhooks_are_listed_without_their_secrets() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory", "--agent", "conformance"]).await;
    let made = Call::say(page.agent.base(), "what?").json().await;
    let id = made["task"]["id"].as_str().unwrap();
    let config = json!({"url": "http://localhost:9/hook", "token": "very-secret"});
    let url = format!("{}/tasks/{id}/pushNotificationConfigs", page.agent.base());
    let create = Call::get(&url)
        .header("Content-Type", "application/json")
        .body(&config);
    create.json().await;
    let (_, text) = page.call("/a2a-local/page/webhooks").send().await;
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["webhooks"][0]["task"], id, "{text}");
    assert_eq!(list["webhooks"][0]["url"], "http://localhost:9/hook");
    assert!(!text.contains("very-secret"), "{text}");
}

#[tokio::test]
async fn a_killed_process_goes_on_at_the_same_port_with_the_same_token() {
    let folder = Folder::new();
    let arguments = ["--data", "data", "--agent", "conformance"];
    let page = WithPage::start(&folder, &arguments).await;
    let before = page.call(FACTS).json().await;
    let send = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "steps 6 300"}]},
        "configuration": {"returnImmediately": true},
    });
    let made = Call::say(page.agent.base(), "").body(&send).json().await;
    let task = format!("/tasks/{}", made["task"]["id"].as_str().unwrap());
    tokio::time::sleep(Duration::from_millis(700)).await;
    let killed = page
        .call("/a2a-local/page/kill")
        .body(&json!({}))
        .json()
        .await;
    assert_eq!(killed["killed"], page.agent.id());
    let after = answer_of_next(&page, &before).await;
    assert_eq!(after["process"], page.agent.id());
    let state = finished(&page, &task).await;
    assert_eq!(state, "TASK_STATE_COMPLETED");
    let inside = page.call(&format!("/a2a-local/page{task}")).json().await;
    let rows = inside["trace"].as_array().unwrap().iter();
    let attempts = rows.filter_map(|row| row["attempt"].as_u64()).max();
    assert_eq!(attempts, Some(2), "{inside}");
    page.agent.interrupt().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_a_skill_starts_after_a_kill_gets_no_token() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--data", "data"]).await;
    let facts = page.call(FACTS).json().await;
    page.call("/a2a-local/page/kill")
        .body(&json!({}))
        .json()
        .await;
    answer_of_next(&page, &facts).await;
    // A program that is started without further words gets these variables.
    let variables = std::fs::read(format!("/proc/{}/environ", page.agent.id())).unwrap();
    let variables = String::from_utf8(variables).unwrap();
    assert!(!variables.contains(&page.token), "{variables}");
    page.agent.interrupt().await;
}

#[tokio::test]
async fn an_upload_needs_the_token_and_goes_to_the_object_store_only() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let (host, target) = (
        ("Host", page.host.as_str()),
        ("X-A2A-Local-Upload", "http://127.0.0.1:9/key"),
    );
    let path = "/a2a-local/page/upload";
    let answer = page.raw("PUT", path, &[host, target]).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let token = ("X-A2A-Local-Token", page.token.as_str());
    let answer = page.raw("PUT", path, &[host, target, token]).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let origin = ("Origin", "http://localhost:3000");
    let answer = page.raw("PUT", path, &[host, target, token, origin]).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn a_process_that_keeps_nothing_is_not_killed() {
    let folder = Folder::new();
    let page = WithPage::start(&folder, &["--memory"]).await;
    let kill = page.call("/a2a-local/page/kill").body(&json!({}));
    let (status, text) = kill.send().await;
    assert_eq!(status, 409, "{text}");
}

/// The facts of the process after `before`. Nothing listens for a moment.
async fn answer_of_next(page: &WithPage, before: &Value) -> Value {
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let address = ("127.0.0.1", page.port());
        if tokio::net::TcpStream::connect(address).await.is_err() {
            continue;
        }
        let headers = [
            ("Host", page.host.as_str()),
            ("X-A2A-Local-Token", &page.token),
        ];
        let answer = page.raw("GET", FACTS, &headers).await;
        let Some((_, body)) = answer.split_once("\r\n\r\n") else {
            continue;
        };
        let facts: Value = serde_json::from_str(body).unwrap();
        if facts["startedMs"] != before["startedMs"] {
            return facts;
        }
    }
    panic!("no next process")
}

/// The state of a task once it has ended.
async fn finished(page: &WithPage, task: &str) -> Value {
    for _ in 0..200 {
        let read = page.call(task).json().await;
        if read["status"]["state"] != "TASK_STATE_WORKING" {
            return read["status"]["state"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task does not end")
}
