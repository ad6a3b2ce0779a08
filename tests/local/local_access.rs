//! The servers on a developer's machine refuse web pages, host names other than
//! those of loopback, and callers without the credentials of the run.

use crate::agent::{Folder, Running, refusal};
use crate::calls::Call;
use a2a_lambda::store::aws::{AwsClients, EmulatorKeys, Endpoints};
use a2a_lambda_rows::each_row_async;
use std::collections::BTreeSet;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends these bytes, and returns everything that comes back.
pub(crate) async fn raw(port: u16, request: &str) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that refuses may reset the connection before it has read all bytes.
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A call of DynamoDB, without credentials unless `more` has them.
fn call(method: &str, host: &str, more: &str) -> String {
    format!(
        "{method} / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\
         X-Amz-Date: 20260101T000000Z\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{{}}"
    )
}

/// An `Authorization` header with this key id and an invalid signature.
fn invented(id: &str) -> String {
    let signature = "0".repeat(64);
    format!(
        "Authorization: AWS4-HMAC-SHA256 Credential={id}/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-target, Signature={signature}\r\n"
    )
}

/// The ports on which a process listens.
fn ports(id: u32) -> BTreeSet<u16> {
    let links = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
    let links = links.filter_map(|link| std::fs::read_link(link.unwrap().path()).ok());
    let own: BTreeSet<String> = links
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.trim_end_matches(']').to_owned())
        })
        .collect();
    let mut ports = BTreeSet::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{id}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (address, state, inode) = (fields[1], fields[3], fields[9]);
            // `0A` is the state of a listening socket.
            if state == "0A" && own.contains(inode) {
                let (_, port) = address.rsplit_once(':').unwrap();
                ports.insert(u16::from_str_radix(port, 16).unwrap());
            }
        }
    }
    ports
}

fn port(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.trim_end().parse().unwrap()
}

/// Asserts that a response is an error which reveals nothing.
fn assert_refused(answer: &str, why: &str) {
    let lower = answer.to_ascii_lowercase();
    // 501: the object store does not know the call.
    let refused = ["http/1.1 4", "http/1.1 501"];
    let refused = refused.iter().any(|status| lower.starts_with(status));
    assert!(refused, "{why}: {answer}");
    for word in [
        "access-control-",
        "tablenames",
        "a2a-lambda-local",
        "healthy",
    ] {
        assert!(!lower.contains(word), "{why}: {answer}");
    }
}

/// An agent with what other programs need to use its services: it writes that to a file.
pub(crate) async fn services(folder: &Folder, arguments: &[&str]) -> Running {
    let file = folder.path().join("services.env");
    let path = file.to_str().unwrap();
    let arguments = [&["--port", "0", "--env-file", path], arguments].concat();
    let mut running = Running::start(folder, &arguments, &[], "listening on ").await;
    running
        .said
        .push_str(&std::fs::read_to_string(&file).unwrap());
    running
}

#[tokio::test]
async fn the_table_and_the_bucket_require_the_credentials_of_the_run() {
    let folder = Folder::new();
    let running = services(&folder, &["--memory"]).await;
    let setting = |name| running.setting(name).to_owned();
    let (dynamodb, s3) = (
        setting("AWS_ENDPOINT_URL_DYNAMODB"),
        setting("AWS_ENDPOINT_URL_S3"),
    );
    let id = setting("AWS_ACCESS_KEY_ID");
    let evil = "Origin: https://evil.example\r\n";
    for port in [port(&dynamodb), port(&s3)] {
        let here = format!("127.0.0.1:{port}");
        for (why, request) in [
            ("no signature", call("POST", &here, "")),
            ("other credentials", call("POST", &here, &invented("test"))),
            ("an invented signature", call("POST", &here, &invented(&id))),
            ("another host", call("POST", "evil.example", &invented(&id))),
            (
                "a web page",
                call("POST", &here, &format!("{evil}{}", invented(&id))),
            ),
            ("a preflight of a web page", call("OPTIONS", &here, evil)),
            ("a GET", call("GET", &here, "")),
        ] {
            assert_refused(&raw(port, &request).await, why);
        }
    }
    let endpoints = |secret: String| Endpoints {
        dynamodb: Some(dynamodb.clone()),
        s3: Some(s3.clone()),
        keys: Some(EmulatorKeys {
            id: id.clone(),
            secret,
        }),
    };
    let ours = AwsClients::connect(&endpoints(setting("AWS_SECRET_ACCESS_KEY"))).await;
    let tables = ours.dynamodb.list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), [setting("A2A_TABLE")]);
    ours.s3
        .list_objects_v2()
        .bucket(setting("A2A_BUCKET"))
        .send()
        .await
        .unwrap();
    let theirs = AwsClients::connect(&endpoints("0".repeat(64))).await;
    let refused = theirs.dynamodb.list_tables().send().await;
    let refused = format!("{:?}", refused.unwrap_err());
    assert!(refused.contains("InvalidSignatureException"), "{refused}");
    let refused = theirs.s3.list_buckets().send().await;
    let refused = format!("{:?}", refused.unwrap_err());
    assert!(refused.contains("SignatureDoesNotMatch"), "{refused}");
}

#[tokio::test]
async fn each_run_has_credentials_of_its_own() {
    let folder = Folder::new();
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let running = services(&folder, &[]).await;
        seen.insert(running.setting("AWS_ACCESS_KEY_ID").to_owned());
        seen.insert(running.setting("AWS_SECRET_ACCESS_KEY").to_owned());
        running.interrupt().await;
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[tokio::test]
async fn all_three_ports_of_the_agent_refuse_web_pages() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let own = port(agent.base());
    let ports = ports(agent.id());
    assert!(ports.contains(&own) && ports.len() == 3, "{ports:?}");
    for port in ports {
        let here = format!("127.0.0.1:{port}");
        let evil = format!("Origin: https://evil.example\r\n{}", invented("test"));
        let answer = raw(port, &call("POST", &here, &evil)).await;
        if port != own {
            assert_refused(&answer, "a web page");
        }
        assert!(
            !answer.to_ascii_lowercase().contains("access-control-"),
            "{answer}"
        );
        let answer = raw(port, &call("POST", "evil.example", &invented("test"))).await;
        assert_refused(&answer, "another host");
    }
}

/// The whole body of a 1.0 message that opens a task.
const SAY: &str = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"wait"}]}}"#;

const SEND: &str = "/message:send?A2A-Version=1.0";

/// The head of a `POST` without the lines about its body.
fn head(path: &str, host: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{more}"
    )
}

/// Number of tasks that the agent has.
async fn tasks(agent: &Running) -> usize {
    let list = Call::get(&format!("{}/tasks", agent.base())).json().await;
    list["tasks"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_web_page_of_another_site_changes_nothing() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let port = port(agent.base());
    let here = format!("127.0.0.1:{port}");
    // The task of the banner, under an id that a web page can guess.
    let opened =
        r#"{"id":"my-task-1","message":{"role":"user","parts":[{"type":"text","text":"?"}]}}"#;
    let length = format!("Content-Length: {}\r\n\r\n{opened}", opened.len());
    let answer = raw(port, &head("/tasks/send", &here, &length)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let empty = "Content-Length: 0\r\n\r\n";
    let cancel = |more: &str| {
        head(
            "/v1/tasks/my-task-1:cancel",
            &here,
            &format!("{more}{empty}"),
        )
    };
    for page in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        let answer = raw(port, &cancel(page)).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{page}: {answer}");
        let delete = cancel(page)
            .replace("POST /v1", "DELETE /a2a-lambda")
            .replace(":cancel", "");
        let answer = raw(port, &delete).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{page}: {answer}");
    }
    let rebound = cancel("").replace(&here, "evil.example");
    let answer = raw(port, &rebound).await;
    // RFC 9110 §15.5.20: the host of the request is not one of this server.
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    let task = Call::get(&format!("{}/tasks/my-task-1", agent.base()))
        .json()
        .await;
    assert_eq!(
        task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{task}"
    );
    // A page on this machine, such as a developer's own, may call the agent.
    let own = cancel("Origin: http://localhost:3000\r\n");
    let answer = raw(port, &own).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn an_incomplete_body_is_refused_and_opens_no_task() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory", "--agent", "conformance"]).await;
    let port = port(agent.base());
    let here = format!("127.0.0.1:{port}");
    let size = SAY.len();
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let rows = [
        (
            "garbage after the last chunk",
            format!("{chunked}{size:x}\r\n{SAY}\r\nZZZ\r\n\r\n"),
        ),
        (
            "a chunk that never ends",
            format!("{chunked}{:x}\r\n{SAY}", size + 1),
        ),
        ("no end", format!("{chunked}{size:x}\r\n{SAY}\r\n")),
        (
            "fewer bytes than announced",
            format!("Content-Length: {}\r\n\r\n{SAY}", size + 5),
        ),
    ];
    each_row_async(rows, async |(why, body)| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = head(SEND, &here, &body);
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{why}: {answer}");
        assert_eq!(tasks(&agent).await, 0, "{why}");
    })
    .await;
    let whole = head(SEND, &here, &format!("Content-Length: {size}\r\n\r\n{SAY}"));
    let answer = raw(port, &whole).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(tasks(&agent).await, 1, "{answer}");
}

#[tokio::test]
async fn unreadable_credentials_are_refused() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--memory"]).await;
    let port = port(agent.base());
    let here = format!("127.0.0.1:{port}");
    let body = format!("Content-Length: {}\r\n\r\n{SAY}", SAY.len());
    let more = format!("Authorization: Bearer dev:acme:\u{e9}\r\n{body}");
    let answer = raw(port, &head(SEND, &here, &more)).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_second_start_on_a_data_folder_is_refused_and_names_the_first() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let first = Running::agent(&folder, &["--data", data]).await;
    let holder = format!("in use by pid {}", first.id());
    for second in [
        &["--port", "0", "--data", data][..],
        &["erase-tenant", "acme", "--yes", "--data", data],
    ] {
        let said = refusal(second, &[]).await;
        assert!(said.contains(&holder) && said.contains(data), "{said}");
    }
    // The first process still works, and its lock ends with it, even after a kill.
    Call::get(&format!("{}/tasks", first.base())).json().await;
    first.kill().await;
    Running::agent(&folder, &["--data", data])
        .await
        .interrupt()
        .await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_data_folder_is_private_to_its_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(data.join("dynamodb.sqlite"), "").unwrap();
    let agent = Running::agent(&folder, &["--data", data.to_str().unwrap()]).await;
    assert_eq!(mode(&data), 0o700);
    for file in std::fs::read_dir(&data).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    agent.interrupt().await;
    // The temporary folder of `--memory` is private and has an unpredictable name.
    let passing = folder.path().to_str().unwrap();
    let arguments = ["--port", "0", "--memory"];
    let settings = [("TMPDIR", passing)];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    let made: Vec<_> = std::fs::read_dir(passing)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| *path != data)
        .collect();
    let [made] = &made[..] else {
        panic!("{made:?}");
    };
    assert_eq!(mode(made), 0o700);
    assert!(!made.to_str().unwrap().contains(&format!("-{}", agent.id())));
    let made = made.clone();
    agent.interrupt().await;
    assert!(!made.exists());
}
