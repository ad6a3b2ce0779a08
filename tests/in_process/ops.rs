//! Who gets what from the paths for operators.

use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{CallRate, Clock as _, SecretKeys, SystemClock};
use a2a_lambda::http::{Function, HttpService};
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::brake::{BrakeTarget, Brakes};
use a2a_lambda::store::counters::{Counter, Counters};
use a2a_lambda::store::health::HealthCheck;
use a2a_lambda::store::limits::{Limits, Reservation};
use a2a_lambda::store::memory::MemoryTable;
use a2a_lambda::task::{TenantId, TokenUse, WriteId};
use a2a_lambda::telemetry::metrics::MetricsMode;
use a2a_lambda_tests::world::{Reply, Request, behind_a_gateway, send};
use async_trait::async_trait;
use futures::FutureExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const REPORT: &str = "/a2a-lambda/health";

struct Development;

impl Source for Development {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// A dependency that works, or does not.
struct Works(bool);

#[async_trait]
impl HealthCheck for Works {
    async fn check_health(&self) -> Result<(), StoreError> {
        match self.0 {
            true => Ok(()),
            false => Err(StoreError::Unavailable("the private cause".to_owned())),
        }
    }
}

/// A table with the counters of two processes.
fn counted() -> Arc<MemoryTable> {
    let table = Arc::new(MemoryTable::default());
    let one = Counter {
        series: r#"["a2a_tasks_cleaned_total"]"#.to_owned(),
        amounts: BTreeMap::from([("n".to_owned(), 2)]),
    };
    for process in [0, 1] {
        let counters = Counters::new(table.clone());
        let added = counters.add_counters(process, std::slice::from_ref(&one));
        added.now_or_never().unwrap().unwrap();
    }
    table
}

/// The function `ops` of an agent whose memory works or not.
fn ops(works: bool, change: impl FnOnce(&mut Settings)) -> HttpService {
    let mut settings = Settings::read(&Development).unwrap();
    change(&mut settings);
    let runtime = Runtime::builder(reference_agent::agent().unwrap(), settings)
        .health("table", Arc::new(Works(true)))
        .health("memory", Arc::new(Works(works)))
        .table(counted())
        .build()
        .unwrap();
    runtime.edge(Function::Ops)
}

fn scopes(scopes: &str) -> Identity {
    scopes_of("main", scopes)
}

fn scopes_of(tenant: &str, scopes: &str) -> Identity {
    let context = json!({"tenant": tenant, "subject": "ann", "scopes": scopes});
    Identity {
        authorizer: context.as_object().cloned(),
        authorization: None,
    }
}

async fn get(edge: &HttpService, path: &str, identity: Identity) -> Reply {
    send(edge, &Request::new("GET", path), identity)
        .await
        .finish()
        .await
}

#[tokio::test]
async fn the_public_status_names_no_dependency() {
    for (works, status, body) in [
        (true, 200, r#"{"status":"ok"}"#),
        (false, 503, r#"{"status":"unavailable"}"#),
    ] {
        let edge = ops(works, behind_a_gateway);
        let reply = get(&edge, "/health", Identity::default()).await;
        assert_eq!((reply.status, reply.text().as_str()), (status, body));
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn the_report_and_the_metrics_require_the_scope_ops() {
    let edge = ops(true, |settings| {
        behind_a_gateway(settings);
        settings.metrics = MetricsMode::Table;
    });
    for path in [REPORT, "/metrics"] {
        assert_eq!(
            get(&edge, path, Identity::default()).await.status,
            401,
            "{path}"
        );
        for few in ["", "read", "opsx"] {
            let reply = get(&edge, path, scopes(few)).await;
            assert_eq!(reply.status, 403, "{path} with `{few}`");
            assert!(
                reply.text().contains("PERMISSION_DENIED"),
                "{}",
                reply.text()
            );
        }
        assert_eq!(
            get(&edge, path, scopes("read ops")).await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn another_tenants_issuer_cannot_show_its_callers_the_operators_paths() {
    let edge = ops(true, |settings| {
        behind_a_gateway(settings);
        settings.metrics = MetricsMode::Table;
    });
    for path in [REPORT, "/metrics"] {
        let reply = get(&edge, path, scopes_of("evil", "ops")).await;
        assert_eq!(reply.status, 403, "{path}");
    }
}

#[tokio::test]
async fn the_report_names_the_dependency_that_is_down() {
    let edge = ops(false, behind_a_gateway);
    let reply = get(&edge, REPORT, scopes("ops")).await;
    assert_eq!(reply.status, 503);
    let report = reply.json();
    assert_eq!(report["status"], "unavailable");
    assert_eq!(report["dependencies"]["table"]["status"], "ok");
    assert_eq!(report["dependencies"]["memory"]["status"], "unavailable");
    assert!(report["dependencies"]["memory"]["latencyMs"].is_u64());
    assert!(!reply.text().contains("private"));
}

/// A table that works and could be deleted by mistake.
struct Unprotected;

#[async_trait]
impl HealthCheck for Unprotected {
    async fn check_health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn warning(&self) -> Option<&'static str> {
        Some("the table has no deletion protection")
    }
}

#[tokio::test]
async fn an_operator_reads_once_that_a_deployed_table_is_unprotected() {
    let deployed = json!(["the table has no deletion protection"]);
    for (is_deployed, warnings) in [(true, deployed), (false, json!([]))] {
        let mut settings = Settings::read(&Development).unwrap();
        if is_deployed {
            behind_a_gateway(&mut settings);
        }
        let table = Arc::new(Unprotected);
        let runtime = Runtime::builder(reference_agent::agent().unwrap(), settings)
            .health("table", table.clone())
            .health("memory", table)
            .build()
            .unwrap();
        let edge = runtime.edge(Function::Ops);
        let reply = get(&edge, REPORT, scopes("ops")).await;
        assert_eq!(reply.json()["warnings"], warnings, "{is_deployed}");
        let public = get(&edge, "/health", Identity::default()).await;
        assert!(!public.text().contains("protection"), "{}", public.text());
    }
}

#[tokio::test]
async fn a_local_agent_shows_the_report_at_the_public_path() {
    let reply = get(&ops(true, |_| ()), "/health", Identity::default()).await;
    assert_eq!(reply.json()["dependencies"]["table"]["status"], "ok");
}

#[tokio::test]
async fn metrics_are_the_sums_of_all_processes_or_name_the_parameter() {
    for (mode, status) in [(MetricsMode::Table, 200), (MetricsMode::Off, 404)] {
        let edge = ops(true, |settings| settings.metrics = mode);
        let reply = get(&edge, "/metrics", Identity::default()).await;
        assert_eq!(reply.status, status, "{mode:?}");
        if status == 200 {
            assert!(
                reply
                    .header("content-type")
                    .starts_with("text/plain; version=0.0.4")
            );
            assert!(
                reply.text().contains("\na2a_tasks_cleaned_total 4\n"),
                "{}",
                reply.text()
            );
        } else {
            assert!(reply.text().contains("the parameter `Metrics`"), "{mode:?}");
        }
    }
}

#[tokio::test]
async fn the_report_shows_whether_a_changed_setting_is_in_force() {
    async fn shown(change: impl FnOnce(&mut Settings)) -> (String, String) {
        let edge = ops(true, change);
        let report = get(&edge, REPORT, Identity::default()).await.json();
        let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        (text("build"), text("settings"))
    }
    let (build, settings) = shown(|_| ()).await;
    let (version, hash) = build.split_once('+').unwrap();
    assert!(version.starts_with("0."), "{build}");
    assert!(
        hash.len() == 12 && settings.len() == 12,
        "{build} {settings}"
    );
    let same = shown(|settings| settings.deployed_at = None).await;
    assert_eq!(same, (build.clone(), settings.clone()));
    let changed = shown(|settings| settings.push = !settings.push).await;
    assert_eq!(changed.0, build);
    assert_ne!(changed.1, settings);
    // A secret must not be guessed from the hash.
    let secret = SecretKeys::from_keys([b"another key of 32 characters ....".to_vec()]);
    let keyed = shown(|settings| settings.policy.secrets = secret).await;
    assert_eq!(keyed.1, settings);
}

#[tokio::test]
async fn usage_is_read_by_its_tenant_and_by_operators() {
    let table = Arc::new(MemoryTable::default());
    let limits = Limits::new(table.clone());
    let now = SystemClock.now();
    for (number, tenant, ago) in [(1, "acme", 0), (2, "main", 0), (3, "acme", 9)] {
        let call = Reservation {
            tenant: TenantId::parse(tenant).unwrap(),
            day: now.day() - ago,
            id: WriteId::made_of(number),
            tokens: 100,
        };
        let used = TokenUse {
            calls: 1,
            input: 7,
            output: 2,
            cached: 3,
        };
        limits.reserve_tokens(&call, 1_000, now).await.unwrap();
        limits.settle_tokens(&call, "m", used).await.unwrap();
    }
    let mut settings = Settings::read(&Development).unwrap();
    behind_a_gateway(&mut settings);
    let runtime = Runtime::builder(reference_agent::agent().unwrap(), settings);
    let edge = runtime.table(table).build().unwrap().edge(Function::Ops);
    let path = "/a2a-lambda/usage";
    let reply = get(&edge, path, Identity::default()).await;
    assert_eq!(reply.status, 401);
    let (own, all) = (vec!["acme"], vec!["acme", "main"]);
    let rows = [
        ("acme", "", "?days=1", own.clone()),
        ("acme", "ops", "?days=400", vec!["acme", "acme"]),
        ("main", "read", "", vec!["main"]),
        ("main", "ops", "", all),
        ("other", "", "", vec![]),
    ];
    for (tenant, scopes, query, expected) in rows {
        let path = format!("{path}{query}");
        let reply = get(&edge, &path, scopes_of(tenant, scopes)).await;
        let days = reply.json()["days"].as_array().unwrap().clone();
        let tenants: Vec<_> = days
            .iter()
            .map(|it| it["tenant"].as_str().unwrap())
            .collect();
        assert_eq!(tenants, expected, "{tenant} {scopes} {query}");
        let used = json!({"m": {"calls": 1, "in": 7, "out": 2, "cached": 3}});
        for day in days {
            assert_eq!((&day["tokens"], &day["models"]), (&json!(9), &used));
        }
    }
    for days in ["0", "401", "x", "-1", ""] {
        let path = format!("{path}?days={days}");
        let reply = get(&edge, &path, scopes("ops")).await;
        assert_eq!(reply.status, 400, "{days}");
        assert!(reply.text().contains("days"), "{}", reply.text());
    }
}

/// The status of the tokens of days, for a caller of `tenant` with these scopes.
async fn usage_status(edge: &HttpService, tenant: &str, scopes: &str) -> u16 {
    let identity = scopes_of(tenant, scopes);
    get(edge, "/a2a-lambda/usage", identity).await.status
}

#[tokio::test]
async fn usage_is_a_call_of_the_rate_and_the_brake_of_its_tenant() {
    let table = Arc::new(MemoryTable::default());
    let process = || {
        let mut settings = Settings::read(&Development).unwrap();
        behind_a_gateway(&mut settings);
        settings.policy.limits.rates.calls = Some(CallRate::per_minute(2));
        let runtime = Runtime::builder(reference_agent::agent().unwrap(), settings);
        let runtime = runtime.table(table.clone()).build().unwrap();
        runtime.edge(Function::Ops)
    };
    let edge = process();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(usage_status(&edge, "acme", "").await);
        assert_eq!(usage_status(&edge, "main", "ops").await, 200);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let brakes = Brakes::new(table.clone());
    for tenant in ["other", "main"] {
        let target = BrakeTarget::Tenant(TenantId::parse(tenant).unwrap());
        let change = brakes.change(&target, true, SystemClock.now());
        change.await.unwrap();
    }
    // Another process, which asks at once.
    let edge = process();
    assert_eq!(usage_status(&edge, "other", "").await, 403);
    assert_eq!(usage_status(&edge, "main", "ops").await, 200);
}
