//! One case: a store, the proxy in front of it, and the program.

use crate::agent::{Folder, Running};
use crate::plan::{Plan, Point};
use crate::proxy::Watch;
use crate::site::Site;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::task::{Owner, Subject, TaskId, TaskRecord, TenantId};
use a2a_lambda_tests::line::line;
use a2a_lambda_tests::scenarios::{Client as _, Known, Scenario, get, ids};
use a2a_local::embedded::{Embedded, TABLE};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// The most polls before a case gives up.
pub(crate) const LOOKS: usize = 400;
/// The time between two polls.
pub(crate) const LOOK: Duration = Duration::from_millis(25);

/// The store behind the proxy, with direct access for the checks.
pub(crate) struct Store {
    pub(crate) watch: Arc<Watch>,
    folder: Folder,
    clients: AwsClients,
    tasks: Records,
    dynamodb: String,
    s3: String,
    _lines: JoinSet<()>,
    services: Embedded,
}

impl Store {
    async fn new() -> Self {
        let services = Embedded::start(None).await.unwrap();
        let endpoints = services.endpoints();
        let clients = AwsClients::connect(endpoints).await;
        let keys = endpoints.keys.clone().unwrap();
        let watch = Arc::new(Watch::new(keys));
        let mut lines = JoinSet::new();
        let upstream = endpoints.dynamodb.as_deref().unwrap();
        let dynamodb = line(upstream, &watch, &mut lines).await.unwrap();
        let s3 = endpoints.s3.as_deref().unwrap();
        let s3 = line(s3, &watch, &mut lines).await.unwrap();
        Self {
            folder: Folder::new(),
            tasks: dynamodb::records(clients.dynamodb.clone(), TABLE),
            clients,
            watch,
            dynamodb,
            s3,
            _lines: lines,
            services,
        }
    }

    /// Starts the program against the proxy. The short flush interval makes each chunk a
    /// commit.
    async fn agent(&self) -> Running {
        let arguments = [
            "--port",
            "0",
            "--agent",
            "conformance",
            "--endpoint",
            &self.dynamodb,
            "--s3-endpoint",
            &self.s3,
        ];
        let keys = self.services.endpoints().keys.as_ref().unwrap();
        let settings = [
            ("A2A_FLUSH_INTERVAL", "10ms"),
            ("AWS_ACCESS_KEY_ID", &keys.id),
            ("AWS_SECRET_ACCESS_KEY", &keys.secret),
        ];
        Running::start(&self.folder, &arguments, &settings, "listening on ").await
    }

    /// Reads a task directly from the store.
    pub(crate) async fn task(&self, id: &str) -> Option<TaskRecord> {
        let owner = Owner {
            tenant: TenantId::parse("local").unwrap(),
            subject: Subject::parse("local").unwrap(),
        };
        let id = TaskId::parse(id).ok()?;
        let found = self.tasks.load(&owner, &id, SystemClock.now()).await;
        found.unwrap()
    }

    /// The runs of steps with stored results, anywhere in the table.
    pub(crate) async fn runs(&self) -> BTreeSet<String> {
        let scan = self.clients.dynamodb.scan().table_name(TABLE);
        let items = scan.consistent_read(true).send().await.unwrap().items;
        let text = format!("{items:?}");
        let names = text.split(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        let runs = names.filter(|name| name.starts_with("run-"));
        runs.map(str::to_owned).collect()
    }
}

/// The outcome of a case.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether the planned call occurred. Without a plan: whether the client got all its
    /// responses.
    pub(crate) reached: bool,
    pub(crate) points: Vec<Point>,
    pub(crate) wrong: Vec<String>,
}

/// Runs `scenario` with `plan`, restarts a killed program, and checks the result. At the
/// end it delivers all writes again.
pub(crate) async fn run(scenario: Scenario, plan: Option<&Plan>, disarmed: bool) -> Outcome {
    let store = Store::new().await;
    let first = store.agent().await;
    let mut base = first.base().to_owned();
    let mut agent = Some(first);
    let site = Site::new(&base, &store);
    store.watch.count(plan.cloned());
    let mut known = {
        let acts = scenario.run(&site);
        tokio::pin!(acts);
        let dies = async {
            store.watch.strikes().await;
            if plan.is_some_and(|plan| plan.deed.kills())
                && let Some(agent) = agent.take()
            {
                agent.kill().await;
            }
            std::future::pending::<Known>().await
        };
        tokio::select! {
            biased;
            known = &mut acts => known,
            known = dies => known,
        }
    };
    known.kept = store.runs().await;
    let points = store.watch.stop();
    let mut reached = known.finished;
    if let Some(plan) = plan {
        reached = store.watch.has_struck();
        if reached && plan.deed.kills() {
            let second = store.agent().await;
            second.base().clone_into(&mut base);
            agent = Some(second);
        }
    }
    let after = Site::new(&base, &store);
    let mut wrong = scenario.holds(&after, &known).await;
    wrong.extend(again(&after, &store, disarmed).await);
    wrong.extend(scenario.deletes(&after, &known).await);
    drop(agent);
    Outcome {
        reached,
        points,
        wrong,
    }
}

/// Delivers every write again; no task may change.
async fn again(site: &Site<'_>, store: &Store, disarmed: bool) -> Option<String> {
    let before = tasks(site).await;
    let writes = store.watch.redeliver(disarmed).await;
    let after = tasks(site).await;
    (before != after).then(|| format!("{writes} repeated writes change {before:?} to {after:?}"))
}

/// All tasks of the caller, read one by one.
async fn tasks(site: &Site<'_>) -> Vec<Option<Value>> {
    let mut tasks = Vec::new();
    for id in ids(site).await {
        tasks.push(site.call(&get(&id)).await);
    }
    tasks
}
