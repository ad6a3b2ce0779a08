//! The page at `/` of the local agent, for its developer.
//!
//! The page is a client of A2A: it calls the same paths as any other client. What A2A does
//! not show (attempts, steps, causes, deliveries) comes from paths below
//! `/a2a-local/page/`, which need the token. It is in the data folder, so that an open page
//! goes on after a restart.
//!
//! - `admission`: which requests the page accepts
//! - `state`: what a task and its caller have stored
//! - `uploads`: puts large files into the object store, and reads them
//!
//! The crate `a2a-lambda-page` has its files, and the rows that it shows.

mod admission;
mod state;
mod uploads;

use crate::dev::Builds;
use crate::embedded::fresh_secret;
use crate::local_settings::{ConfigError, credentials, secret};
use crate::process;
use crate::traces::Traces;
use a2a_lambda::auth::{Authentication, Identity};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::http::{Body, MAX_BODY};
use a2a_lambda::runtime::stores;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::{AwsClients, Endpoints};
use a2a_lambda::store::brake::{BrakeTarget, Brakes};
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::task::{Owner, TaskId, TaskKey};
use a2a_lambda_page::rows::RowFilter;
use a2a_lambda_page::{assets, inside, rows, verdicts, webhooks};
use admission::{Admission, AdmissionError};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use state::StateReader;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The paths of the page, without `/` itself. No path of A2A begins like this.
const BELOW: &str = "/a2a-local/page/";
/// The file of the token in the data folder.
const TOKEN: &str = "page.key";
/// How long the program waits between the answer to a kill and the end of the process.
const LAST_WORDS: Duration = Duration::from_millis(150);

/// The page. It exists only if the agent listens on a loopback address.
#[derive(Debug)]
pub(crate) struct AgentPage {
    admission: Admission,
    authentication: Authentication,
    tasks: RecordReader,
    state: StateReader,
    brakes: Brakes,
    traces: Arc<Traces>,
    verdicts: Value,
    facts: Value,
    /// The builds of `dev`, if that has started the program.
    pub(crate) builds: Option<Builds>,
    port: u16,
    keeps_data: bool,
    endpoints: Endpoints,
}

/// Why the page has no answer.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    Refused(#[from] AdmissionError),
    #[error("the credentials are not valid")]
    Caller,
    #[error("there is nothing at this path")]
    Absent,
    #[error("`after` is not a position of this list")]
    Position,
    #[error("the path does not name a target of the brake")]
    Target,
    #[error("the brake was not changed: {0}")]
    Brake(#[source] StoreError),
    #[error("failed to read the table: {0}")]
    Store(#[from] StoreError),
    #[error("the data is in memory, so nothing would be left; start without --memory")]
    Memory,
    #[error("the request does not name a URL of the agent's object store")]
    UploadTarget,
    #[error("the object store did not take or give the file: {0}")]
    Upload(String),
}

impl PageError {
    const fn status(&self) -> StatusCode {
        match self {
            Self::Refused(why) => why.status(),
            Self::Caller => StatusCode::UNAUTHORIZED,
            Self::Absent => StatusCode::NOT_FOUND,
            Self::Memory | Self::Brake(StoreError::Refused(_)) => StatusCode::CONFLICT,
            Self::Brake(_) | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Position | Self::Target | Self::UploadTarget => StatusCode::BAD_REQUEST,
            Self::Upload(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

impl AgentPage {
    /// The page; `None` beyond loopback. `folder` is the data folder, if there is one.
    ///
    /// # Errors
    /// [`ConfigError`] when the settings name no issuer of the JWTs that they demand, or the
    /// data folder cannot hold the token.
    pub(crate) fn open(
        address: SocketAddr,
        agent: &AgentDefinition,
        settings: &Settings,
        clients: &AwsClients,
        endpoints: &Endpoints,
        traces: &Arc<Traces>,
        folder: Option<&Path>,
    ) -> Result<Option<Self>, ConfigError> {
        if !address.ip().is_loopback() {
            return Ok(None);
        }
        let records = stores(clients, settings).0;
        let credentials = credentials(settings, records.table())?.map(Arc::new);
        let now = SystemClock.now();
        let token = folder.map_or_else(|| Ok(fresh_secret()), |folder| secret(folder, TOKEN))?;
        Ok(Some(Self {
            admission: Admission::new(address, token),
            authentication: Authentication::new(settings.auth, credentials),
            tasks: records.reader().clone(),
            state: StateReader::new(agent, settings, clients, traces),
            brakes: Brakes::new(records.table()),
            traces: Arc::clone(traces),
            verdicts: verdicts::of(agent),
            facts: json!({
                "agent": agent.manifest().name,
                "auth": settings.auth.word(),
                "keepsData": folder.is_some(),
                "maxBody": MAX_BODY,
                "maxUpload": settings.policy.upload_max,
                "process": std::process::id(),
                "startedMs": now.as_millis(),
            }),
            builds: None,
            port: address.port(),
            keeps_data: folder.is_some(),
            endpoints: endpoints.clone(),
        }))
    }

    /// The line that names the page to the user, with its token.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let Admission { host, token, .. } = &self.admission;
        format!("\n  page   http://{host}/#token={token}\n")
    }

    /// The answer to a request for the page; `None` if the request is not for it.
    pub(crate) async fn answer<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let path = request.uri().path();
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        if path == "/" && reads {
            return Some(self.front(request));
        }
        let below = path.strip_prefix(BELOW)?;
        let response = match assets::by_name(below).filter(|_| reads) {
            Some(asset) => match self.admission.reads(request.headers()) {
                Ok(()) => asset.answer(),
                Err(why) => answer(Err(why.into())),
            },
            None if below == "file" && reads => match self.file(request).await {
                Ok(bytes) => bytes_answer(StatusCode::OK, bytes, "application/octet-stream"),
                Err(why) => answer(Err(why)),
            },
            None => answer(self.local(request, below).await),
        };
        Some(response)
    }

    /// Whether the request brings the bytes of a file, so that [`AgentPage::upload`] has
    /// the answer.
    pub(crate) fn is_upload<B>(request: &Request<B>) -> bool {
        let below = request.uri().path().strip_prefix(BELOW);
        request.method() == Method::PUT && below == Some("upload")
    }

    /// Puts a file into the object store, at the URL that the agent signed for it.
    pub(crate) async fn upload(&self, request: Request<Incoming>) -> Response<Body> {
        let put = async {
            self.admission.admit(request.headers())?;
            uploads::put(self.endpoints.s3.as_deref(), request).await?;
            Ok(json!({}))
        };
        answer(put.await)
    }

    /// The bytes of a file in the object store, at the URL that the agent signed for it.
    async fn file<B>(&self, request: &Request<B>) -> Result<Bytes, PageError> {
        self.admission.admit(request.headers())?;
        uploads::get(self.endpoints.s3.as_deref(), request.headers()).await
    }

    /// The page itself. A browser at `localhost` is sent to the exact address, since
    /// everything else is served only there.
    fn front<B>(&self, request: &Request<B>) -> Response<Body> {
        if self.admission.is_by_name(request.headers()) {
            return assets::redirect(&format!("http://{}/", self.admission.host));
        }
        let admission = self.admission.reads(request.headers());
        admission.map_or_else(|why| answer(Err(why.into())), |()| assets::front())
    }

    /// The answers below [`BELOW`] that need the token.
    async fn local<B>(&self, request: &Request<B>, below: &str) -> Result<Value, PageError> {
        self.admission.admit(request.headers())?;
        let words: Vec<&str> = below.split('/').collect();
        match (request.method(), words.as_slice()) {
            (&Method::GET, ["facts"]) => Ok(self.facts.clone()),
            (&Method::GET, ["checks"]) => Ok(self.verdicts.clone()),
            (&Method::GET, ["webhooks"]) => {
                let owner = self.owner(request).await?;
                let after = request.uri().query().unwrap_or_default();
                let after = after.strip_prefix("after=").filter(|it| !it.is_empty());
                let after = after.map(|it| rows::position(it).ok_or(PageError::Position));
                Ok(webhooks::page(&self.tasks, &owner, after.transpose()?).await?)
            }
            (&Method::GET, ["changes"]) => {
                let count = self.traces.count();
                let began = self.facts.get("startedMs");
                let build = self.builds.as_ref();
                let build = build.and_then(|builds| builds.borrow().to_json(self.traces.build));
                Ok(json!({"commits": count, "startedMs": began, "build": build}))
            }
            (&Method::GET, ["rows"]) => {
                let owner = self.owner(request).await?;
                let filter = RowFilter::parse(request.uri().query().unwrap_or_default());
                let filter = filter.ok_or(PageError::Position)?;
                Ok(rows::list(&self.tasks, &owner, filter).await?)
            }
            (&Method::GET, ["tasks", id]) => self.task(&self.owner(request).await?, id, None).await,
            (&Method::GET, ["tasks", id, "trace", row]) => {
                let owner = self.owner(request).await?;
                self.task(&owner, id, Some(row)).await
            }
            (&Method::GET, ["tasks", id, "state"]) => {
                let id = TaskId::parse(*id).map_err(|_| PageError::Absent)?;
                let state = self.state.read(&self.owner(request).await?, &id).await?;
                state.ok_or(PageError::Absent)
            }
            (&Method::POST, ["kill"]) => self.kill(),
            (&Method::GET, ["brake"]) => {
                let brake = self.brakes.read().await?;
                Ok(json!(brake.in_force().collect::<Vec<_>>()))
            }
            (&Method::POST, ["brake", verb @ ("set" | "lift"), target]) => {
                self.change_brake(*verb == "set", target).await
            }
            _ => Err(PageError::Absent),
        }
    }

    /// The caller of A2A that the request names beside the token.
    async fn owner<B>(&self, request: &Request<B>) -> Result<Owner, PageError> {
        let identity = Identity::of(request.headers());
        let now = SystemClock.now();
        let result = self.authentication.caller(&identity, now).await;
        Ok(result.map_err(|_| PageError::Caller)?.caller.owner)
    }

    /// A task with the rows of its trace, or the row with the id `row` alone.
    async fn task(&self, owner: &Owner, id: &str, row: Option<&str>) -> Result<Value, PageError> {
        let id = TaskId::parse(id).map_err(|_| PageError::Absent)?;
        let task = inside::task(&self.tasks, owner, &id).await?;
        let (mut task, incarnation) = task.ok_or(PageError::Absent)?;
        let key = (TaskKey::new(owner, &id), incarnation);
        let mut rows = self.traces.of(key).await.into_iter();
        let is = |it: &Map<String, Value>, name: &str, text: &str| {
            it.get(name).and_then(Value::as_str) == Some(text)
        };
        if let Some(row) = row {
            let row = rows.find(|it| is(it, "id", row));
            return row.map(Value::Object).ok_or(PageError::Absent);
        }
        // The content of a row is read with the row alone, except the cause of a failure.
        let rows = rows.map(|mut row| {
            if !is(&row, "kind", "failure") {
                row.remove("content");
            }
            Value::Object(row)
        });
        task.insert("trace".to_owned(), rows.collect());
        Ok(Value::Object(task))
    }

    /// Stops a target, or lets it go on. `target` is its JSON in hexadecimal, because a name may
    /// contain characters that a path cannot.
    async fn change_brake(&self, is_set: bool, target: &str) -> Result<Value, PageError> {
        let target = hex::decode(target).map_err(|_| PageError::Target)?;
        let target: BrakeTarget = serde_json::from_slice(&target).map_err(|_| PageError::Target)?;
        let change = self.brakes.change(&target, is_set, SystemClock.now());
        change.await.map_err(PageError::Brake)?;
        Ok(json!({}))
    }

    /// Ends the process soon, and starts it again under the same id.
    fn kill(&self) -> Result<Value, PageError> {
        if !self.keeps_data {
            return Err(PageError::Memory);
        }
        let port = self.port;
        tokio::spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            let error = process::replace(port);
            tracing::error!("failed to replace the process: {error}");
        });
        Ok(json!({"killed": std::process::id()}))
    }
}

/// The value or the error as JSON.
fn answer(result: Result<Value, PageError>) -> Response<Body> {
    let (status, value) = match result {
        Ok(value) => (StatusCode::OK, value),
        Err(why) => {
            if matches!(why, PageError::Store(_) | PageError::Upload(_)) {
                tracing::warn!("the page got no answer: {why}");
            }
            (why.status(), json!({"error": why.to_string()}))
        }
    };
    bytes_answer(status, Bytes::from(value.to_string()), "application/json")
}

fn bytes_answer(status: StatusCode, bytes: Bytes, media_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::from(bytes).boxed_unsync());
    *response.status_mut() = status;
    assets::guard(response.headers_mut(), media_type);
    response
}
