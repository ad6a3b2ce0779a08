//! Nothing that a client sends changes who it is.

use a2a_lambda::auth::{ApiKey, Credentials, Identity};
use a2a_lambda::http::Function;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::api_keys::{ApiKeyRecord, ApiKeys, KeyCheck};
use a2a_lambda::store::contract::WatchedTable;
use a2a_lambda::store::keys::{Key, api_key};
use a2a_lambda::task::{Owner, Subject, TenantId, Timestamp};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::tester::{self, Gate};
use a2a_lambda_tests::world::{Request, World, behind_a_gateway, send};
use serde_json::{Value, json};
use std::sync::Arc;

/// Headers that name another caller somewhere.
const HEADERS: [(&str, &str); 26] = [
    ("x-tenant", "victim"),
    ("x-tenant-id", "victim"),
    ("tenant", "victim"),
    ("tenant-id", "victim"),
    ("x-subject", "root"),
    ("x-user", "root"),
    ("x-user-id", "root"),
    ("x-forwarded-user", "root"),
    ("x-remote-user", "root"),
    ("remote-user", "root"),
    ("x-auth-request-user", "root"),
    ("x-principal-id", "root"),
    (
        "x-amzn-authorizer",
        r#"{"tenant":"victim","subject":"root"}"#,
    ),
    (
        "x-amzn-request-context",
        r#"{"authorizer":{"tenant":"victim","subject":"root"}}"#,
    ),
    ("x-amz-security-token", "victim"),
    ("x-amzn-oidc-identity", "root"),
    ("x-amzn-oidc-data", "e30.eyJ0ZW5hbnQiOiJ2aWN0aW0ifQ."),
    ("x-amz-lambda-context", r#"{"tenant":"victim"}"#),
    (
        "x-apigateway-event",
        r#"{"requestContext":{"authorizer":{"tenant":"victim"}}}"#,
    ),
    ("a2a-tenant", "victim"),
    ("a2a-subject", "root"),
    ("a2a-caller", "victim:root"),
    ("proxy-authorization", "Bearer dev:victim:root"),
    ("cookie", "tenant=victim; subject=root"),
    ("forwarded", "by=victim;for=root"),
    ("x-original-url", "/victim/message:send"),
];

/// Queries that name another caller.
const QUERIES: [&str; 7] = [
    "tenant=victim",
    "tenant=victim&subject=root",
    "subject=root",
    "access_token=dev:victim:root",
    "authorization=Bearer%20dev:victim:root",
    "requestContext.authorizer.tenant=victim",
    "principalId=root",
];

/// Members of a body that name another caller, by the place they are put in.
fn members() -> Vec<(&'static str, &'static str, Value)> {
    let authorizer = json!({"tenant": "victim", "subject": "root", "scopes": "ops"});
    let mut all = Vec::new();
    for place in ["", "/message", "/configuration"] {
        for name in ["tenant", "tenantId", "subject", "principalId", "caller"] {
            all.push((place, name, json!("victim")));
        }
        let context = json!({"authorizer": authorizer});
        all.push((place, "requestContext", context));
        all.push((place, "authorizer", authorizer.clone()));
        all.push((
            place,
            "metadata",
            json!({"tenant": "victim", "subject": "root"}),
        ));
    }
    all
}

fn plain() -> Request {
    Dialect::Rest10.send(&Say::to("echo", "hi"))
}

/// Every attempt, with a name.
fn attempts() -> Vec<(String, Request)> {
    let mut all: Vec<(String, Request)> = Vec::new();
    for (name, value) in HEADERS {
        all.push((format!("header {name}"), plain().header(name, value)));
    }
    for query in QUERIES {
        let mut request = plain();
        request.target = format!("{}?{query}", request.target);
        all.push((format!("query {query}"), request));
    }
    for path in [
        "/victim/message:send",
        "//victim/message:send",
        "/%76ictim/message:send",
    ] {
        let mut request = plain();
        request.target = path.to_owned();
        all.push((format!("path {path}"), request));
    }
    for (place, name, value) in members() {
        let request = plain();
        let mut body: Value = serde_json::from_slice(&request.body).unwrap();
        if let Some(object) = body.pointer_mut(place).and_then(Value::as_object_mut) {
            object.insert(name.to_owned(), value);
        }
        all.push((
            format!("body {place}/{name}"),
            request.body(body.to_string()),
        ));
    }
    all
}

fn gateway(tenant: &str, subject: &str) -> Identity {
    let context = json!({"tenant": tenant, "subject": subject});
    Identity {
        authorizer: context.as_object().cloned(),
        // API Gateway hands the header on. It names somebody else in vain.
        authorization: Some("Bearer dev:victim:root".to_owned()),
    }
}

async fn tasks_of(world: &World, identity: Identity) -> u64 {
    let list = Dialect::Rest10.request(Op::List, "", &json!({}));
    let reply = send(&world.edge(Function::TasksGet), &list, identity).await;
    let list = Dialect::Rest10.result(&reply.finish().await);
    list["totalSize"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn nothing_in_a_request_changes_its_caller() {
    let attempts = attempts();
    assert!(attempts.len() >= 50, "{}", attempts.len());
    let world = World::with(behind_a_gateway).unwrap();
    let mut own = 0;
    for (name, request) in attempts {
        let edge = world.edge(Function::TasksSend);
        let reply = send(&edge, &request, gateway("acme", "ann")).await;
        let reply = reply.finish().await;
        // Some attempts are refused. The others are the caller's own tasks.
        own += u64::from(reply.status == 200);
        assert_eq!(
            tasks_of(&world, gateway("acme", "ann")).await,
            own,
            "{name}"
        );
        for (tenant, subject) in [("victim", "root"), ("acme", "root"), ("victim", "ann")] {
            let theirs = tasks_of(&world, gateway(tenant, subject)).await;
            assert_eq!(theirs, 0, "{name} made a task of {tenant}:{subject}");
        }
    }
    assert!(own >= 30, "only {own} attempts were calls at all");
}

#[tokio::test(start_paused = true)]
async fn no_client_can_send_the_context_of_the_authorizer() {
    let world = World::with(behind_a_gateway).unwrap();
    each_row_async(attempts(), async |(name, request)| {
        let identity = Identity {
            authorizer: None,
            ..gateway("acme", "ann")
        };
        let reply = send(&world.edge(Function::TasksSend), &request, identity).await;
        // 0: no HTTP server accepts it.
        let status = reply.finish().await.status;
        assert!(
            matches!(status, 0 | 400 | 401 | 404 | 405),
            "{name}: {status}"
        );
    })
    .await;
    assert_eq!(world.store.writes(), 0);
}

struct Keys;

impl Source for Keys {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            "A2A_AUTH" => "keys",
            "A2A_SECRET_KEY" => "0123456789abcdef0123456789abcdef",
            _ => return None,
        };
        Some(value.to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_calls_looks_its_key_up_once() {
    let key = ApiKey::random("").unwrap();
    let table = Arc::new(WatchedTable::default());
    let keys = ApiKeys::new(table.clone());
    let secret = String::new();
    keys.create_check(&KeyCheck { secret }).await.unwrap();
    let record = ApiKeyRecord {
        id: key.id().clone(),
        hash: key.hash(),
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: None,
        scopes: std::collections::BTreeSet::new(),
        created_at: Timestamp::default(),
        expires_at: None,
        note: None,
    };
    assert!(keys.create_api_key(&record).await.unwrap());
    let clock = Arc::new(a2a_lambda::engine::SystemClock);
    let agent = tester::agent(Gate::default()).unwrap();
    let runtime = Runtime::builder(agent, Settings::read(&Keys).unwrap())
        .credentials(Credentials::new(table.clone(), clock))
        .build()
        .unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    let batch = Value::Array(vec![call; 16]);
    let request = Request::post("/", &batch).header("a2a-version", "1.0");
    let as_caller = |authorization: Option<String>| Identity {
        authorizer: None,
        authorization,
    };
    let edge = runtime.edge(Function::Rpc);
    let admitted = send(&edge, &request, as_caller(Some(key.reveal().to_owned()))).await;
    let admitted = admitted.finish().await.json();
    let answers = admitted.as_array().unwrap();
    assert_eq!(answers.len(), 16);
    assert!(
        answers.iter().all(|it| it["result"].is_object()),
        "{admitted}"
    );
    let is_key = |read: &Key| *read == api_key(key.id());
    assert_eq!(table.take_reads().into_iter().filter(is_key).count(), 1);
    for other in [
        None,
        Some("dev:acme:ann".to_owned()),
        Some(format!("{}x", key.reveal())),
    ] {
        let refused = send(&edge, &request, as_caller(other)).await.finish().await;
        assert!(!refused.text().contains("result"), "{}", refused.text());
    }
}

#[test]
fn an_agent_without_credentials_to_compare_with_does_not_start() {
    let agent = tester::agent(Gate::default()).unwrap();
    let refused = Runtime::builder(agent, Settings::read(&Keys).unwrap()).build();
    assert!(refused.unwrap_err().to_string().contains("`keys`"));
}
