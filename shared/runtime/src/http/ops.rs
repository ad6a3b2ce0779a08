//! Answers the paths for operators: health, metrics, and the tokens of models.

use crate::auth::{AuthMode, Authentication, Caller, Identity};
use crate::engine::{Clock as _, EngineError, Reader, SystemClock};
use crate::health::{Health, HealthReport, build};
use crate::store::counters::Counters;
use crate::store::limits::Limits;
use crate::task::{A2aError, TenantId};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::{self, TEXT};
use a2a_lambda_wire::WireResponse;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use serde_json::json;
use std::fmt::Debug;

/// The scope that a caller needs for metrics and for the report about dependencies.
const SCOPE: &str = "ops";

/// The most days of a report about tokens: as long as a day is kept.
const DAYS_MAX: i64 = 400;

/// What an operator reads where nothing is counted for this path.
const OFF: &str = "there are no metrics here: deploy with the parameter `Metrics` (the setting \
                   `A2A_METRICS`) as `table`\n";

/// A path for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpsPath {
    /// `GET /health`: the status alone, for everybody.
    Status,
    /// `GET /a2a-lambda/health`: every dependency.
    Report,
    /// `GET /metrics`.
    Metrics,
    /// `GET /a2a-lambda/usage`: the tokens of models, of the caller's tenant or for operators of
    /// all.
    Usage,
}

impl OpsPath {
    /// The path for operators that this request names.
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        let ops_path = match path {
            "/health" => Self::Status,
            "/a2a-lambda/health" => Self::Report,
            "/metrics" => Self::Metrics,
            "/a2a-lambda/usage" => Self::Usage,
            _ => return None,
        };
        // RFC 9110 §9.3.2: HEAD is GET without a body; the servers drop the body.
        matches!(method, "GET" | "HEAD").then_some(ops_path)
    }
}

/// Where the metrics come from.
#[derive(Debug, Clone, Default)]
pub(crate) enum MetricsSource {
    /// There are none: the path says how to get them.
    #[default]
    Off,
    /// This process alone, for the local agent.
    Process(Metrics),
    /// All processes, by the table.
    Table(Counters),
}

/// What the paths for operators show.
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) health: Health,
    pub(crate) metrics: MetricsSource,
    pub(crate) limits: Limits,
    /// Admits the calls of tenants.
    pub(crate) reader: Reader,
    /// The tenant whose callers may have the scope. An issuer of JWTs gives scopes to callers of
    /// every tenant.
    pub(crate) operator: TenantId,
    /// The fingerprint of the settings.
    pub(crate) settings: String,
}

/// Answers operators. Only a function that has an implementation links it.
pub(crate) trait AnswerOperator: Debug + Send + Sync {
    /// The response to a request to one of the paths for operators, or the error for a caller
    /// who may not see it; `None` for another path.
    fn answer<'a>(
        &'a self,
        request: &'a Request<Bytes>,
        auth: &'a Authentication,
        identity: &'a Identity,
    ) -> Option<BoxFuture<'a, Result<WireResponse, A2aError>>>;
}

impl AnswerOperator for Ops {
    fn answer<'a>(
        &'a self,
        request: &'a Request<Bytes>,
        auth: &'a Authentication,
        identity: &'a Identity,
    ) -> Option<BoxFuture<'a, Result<WireResponse, A2aError>>> {
        let uri = request.uri();
        let path = OpsPath::of(request.method().as_str(), uri.path())?;
        Some(Box::pin(async move {
            match path {
                OpsPath::Status => Ok(self.status(auth.mode()).await),
                OpsPath::Report => {
                    self.authorize(auth, identity).await?;
                    let report = self.health.report().await;
                    // A developer's own table needs no protection.
                    let warnings = match auth.mode() {
                        AuthMode::Gateway => self.health.warnings().await,
                        AuthMode::Dev | AuthMode::Keys | AuthMode::Jwt => Vec::new(),
                    };
                    Ok(self.health_response(&report, &warnings))
                }
                OpsPath::Metrics => {
                    self.authorize(auth, identity).await?;
                    self.text().await
                }
                OpsPath::Usage => {
                    let caller = find_caller(auth, identity).await?;
                    self.usage(&caller, uri.query().unwrap_or_default()).await
                }
            }
        }))
    }
}

impl Ops {
    /// The tokens of the last days, with today.
    async fn usage(&self, caller: &Caller, query: &str) -> Result<WireResponse, A2aError> {
        let days = query.split('&').find_map(|pair| pair.strip_prefix("days="));
        let days = days.unwrap_or("7").parse().ok();
        let days = days.filter(|days| (1..=DAYS_MAX).contains(days));
        let why = "must be a whole number from 1 to 400";
        let days = days.ok_or_else(|| A2aError::invalid("days", why))?;
        let today = SystemClock.now().day();
        let tenant = Some(&caller.owner.tenant).filter(|_| !self.operates(caller));
        if tenant.is_some() {
            let admission = self.reader.admit(caller).await;
            admission.map_err(EngineError::log_cause)?;
        }
        let uses = self.limits.day_uses(tenant, today - days + 1..=today);
        let uses = uses.await.map_err(|error| {
            tracing::error!(error.cause = %error, "failed to read the tokens of days");
            A2aError::Unavailable { retry_after: 1 }
        })?;
        let uses = uses.iter().map(|it| {
            json!({
                "day": it.date(),
                "tenant": it.tenant,
                "tokens": it.tokens,
                "models": it.models,
            })
        });
        Ok(respond(true, &json!({ "days": uses.collect::<Vec<_>>() })))
    }

    fn operates(&self, caller: &Caller) -> bool {
        caller.owner.tenant == self.operator && caller.scopes.contains(SCOPE)
    }

    /// The status alone: the path is public, and names of dependencies help an attacker. The
    /// developer of a local agent gets the report.
    async fn status(&self, auth: AuthMode) -> WireResponse {
        let report = self.health.report().await;
        match auth {
            AuthMode::Dev => self.health_response(&report, &[]),
            AuthMode::Gateway | AuthMode::Keys | AuthMode::Jwt => {
                respond(report.works(), &json!({"status": word(report.works())}))
            }
        }
    }

    async fn text(&self) -> Result<WireResponse, A2aError> {
        let (status, text) = match &self.metrics {
            MetricsSource::Off => (404, OFF.to_owned()),
            MetricsSource::Process(metrics) => (200, metrics.text()),
            MetricsSource::Table(counters) => {
                let snapshot = counters.read_counters().await.map_err(|error| {
                    tracing::error!(error.cause = %error, "failed to read counters");
                    A2aError::Unavailable { retry_after: 1 }
                })?;
                (200, metrics::text_of(&snapshot))
            }
        };
        Ok(WireResponse {
            status,
            headers: vec![("content-type", TEXT.to_owned()), not_stored()],
            body: text.into_bytes(),
        })
    }

    fn health_response(&self, report: &HealthReport, warnings: &[&str]) -> WireResponse {
        let entry = |dependency: &crate::health::Dependency| {
            let latency = u64::try_from(dependency.latency.as_millis()).unwrap_or(u64::MAX);
            let status = word(dependency.works);
            (
                dependency.name.clone(),
                json!({"status": status, "latencyMs": latency}),
            )
        };
        let dependencies: serde_json::Map<_, _> = report.0.iter().map(entry).collect();
        let body = json!({
            "status": word(report.works()),
            "build": build(),
            "settings": self.settings,
            "dependencies": dependencies,
            "warnings": warnings,
        });
        respond(report.works(), &body)
    }

    /// Checks tenant and scope of the caller. Everybody may read this on a developer's machine.
    async fn authorize(&self, auth: &Authentication, identity: &Identity) -> Result<(), A2aError> {
        let caller = find_caller(auth, identity).await?;
        if auth.mode() == AuthMode::Dev || self.operates(&caller) {
            return Ok(());
        }
        Err(A2aError::Forbidden)
    }
}

async fn find_caller(auth: &Authentication, identity: &Identity) -> Result<Caller, A2aError> {
    let admission = auth.caller(identity, SystemClock.now()).await;
    let admission = admission.map_err(EngineError::log_cause)?;
    Ok(admission.caller)
}

const fn word(works: bool) -> &'static str {
    if works { "ok" } else { "unavailable" }
}

fn respond(works: bool, body: &serde_json::Value) -> WireResponse {
    WireResponse {
        status: if works { 200 } else { 503 },
        headers: vec![
            ("content-type", "application/json".to_owned()),
            not_stored(),
        ],
        body: body.to_string().into_bytes(),
    }
}

fn not_stored() -> (&'static str, String) {
    ("cache-control", "no-store".to_owned())
}
