//! From a raw request to a call: what is asked, in which words. Parameters
//! stay unread until the caller is known and the limiter has let it pass.

use super::json::Step;
use super::jsonrpc::{self, Envelope, MAX_BATCH};
use super::method::GenerationRule;
use super::rest::{Route, Target};
use super::{Binding, Dialect, Operation, RpcId, idempotency, json, media, method, rest, version};
use crate::task::{FieldViolation, Generation, Refusal};
use serde_json::Value;

/// A request as it came, in no HTTP library's types.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawRequest<'a> {
    /// The HTTP method, in capitals.
    pub method: &'a str,
    /// The path below the base URL, percent-encoded as it came.
    pub path: &'a str,
    /// The query string without its `?`.
    pub query: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Accept`.
    pub accept: Option<&'a str>,
    /// `A2A-Version`.
    pub version: Option<&'a str>,
    /// `A2A-Extensions`, or `X-A2A-Extensions` as 0.3 calls it.
    pub extensions: Option<&'a str>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<&'a str>,
    /// `Idempotency-Key`, as it came: a key that is not text is refused, not
    /// passed over.
    pub idempotency_key: Option<&'a [u8]>,
    /// The body; its size is checked before.
    pub body: &'a [u8],
}

/// A request that can be worked on.
#[derive(Debug)]
pub enum Opened {
    /// One call.
    One(Box<Call>),
    /// A JSON-RPC batch of unary calls, at most 16, in order. What is refused
    /// already keeps its slot.
    Batch(Vec<Result<Call, Rejected>>),
}

/// A call whose parameters are unread.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub operation: Operation,
    /// In which words. For the three methods that 0.1 and 0.3 share this says
    /// 0.3; the answer follows the task.
    pub dialect: Dialect,
    /// The id the answer repeats.
    pub rpc_id: RpcId,
    /// The tenant in path, parameters or query: a routing value and never an
    /// identity.
    pub routing_tenant: Option<String>,
    pub(super) rule: GenerationRule,
    pub(super) params: Params,
    pub(super) version: Option<String>,
    pub(super) last_event_id: Option<String>,
    pub(super) idempotency_key: Option<Vec<u8>>,
    pub(super) extensions: Vec<String>,
    pub(super) media: &'static str,
    /// Whether the client reads server-sent events and nothing else.
    pub(super) only_events: bool,
}

/// Where the parameters stand, and what is wrong with them as JSON already.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    /// The JSON-RPC parameters or the body; `null` when there is none.
    pub(super) value: Value,
    /// The id in the path.
    pub(super) id: Option<String>,
    /// The push configuration in the path.
    pub(super) config: Option<String>,
    /// The query.
    pub(super) pairs: Vec<(String, String)>,
    /// Faults which `value` no longer shows.
    pub(super) faults: Vec<FieldViolation>,
}

/// A request that is refused before it became a call.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// Why.
    pub refusal: Refusal,
    /// In which words to say so.
    pub dialect: Dialect,
    /// The id the answer repeats.
    pub rpc_id: RpcId,
    pub(super) media: &'static str,
}

/// Finds out what is asked: route, content type, count of nodes and depth,
/// envelope, method. Nothing is built from the body before the count.
///
/// # Errors
/// [`Rejected`], with all that its answer needs.
pub fn open(request: &RawRequest<'_>) -> Result<Opened, Rejected> {
    let opener = Opener {
        request,
        pairs: rest::query_pairs(request.query),
    };
    match rest::route(request.method, request.path) {
        None => Err(reject(request, Refusal::MethodNotFound)),
        Some(Route::JsonRpc) => opener.json_rpc(),
        Some(Route::Operation(target)) if target.params_in_body => opener.path_a_method(&target),
        Some(Route::Operation(target)) => opener.path(target),
    }
}

/// Refuses a request that was not opened, for example one that is too large,
/// in the words its path asks for.
#[must_use]
pub fn reject(request: &RawRequest<'_>, refusal: Refusal) -> Rejected {
    let dialect = match rest::route(request.method, request.path) {
        Some(Route::JsonRpc) => Dialect::json_rpc(Generation::V10),
        Some(Route::Operation(target)) => Dialect::rest(target.generation),
        None => Dialect::rest(rest::family(request.path)),
    };
    rejected(request, dialect, RpcId::Null, refusal)
}

fn rejected(
    request: &RawRequest<'_>,
    dialect: Dialect,
    rpc_id: RpcId,
    refusal: Refusal,
) -> Rejected {
    Rejected {
        refusal,
        dialect,
        rpc_id,
        media: media::of_answer(dialect.binding, request.content_type, request.accept),
    }
}

struct Opener<'a> {
    request: &'a RawRequest<'a>,
    pairs: Vec<(String, String)>,
}

impl Opener<'_> {
    fn json_rpc(&self) -> Result<Opened, Rejected> {
        let refused = |refusal| self.refused(Generation::V10, RpcId::Null, refusal);
        let (value, duplicates) = self.read_body().map_err(refused)?;
        let Value::Array(entries) = value else {
            let call = self.envelope(value, &duplicates)?;
            return Ok(Opened::One(Box::new(call)));
        };
        if entries.is_empty() || entries.len() > MAX_BATCH {
            let why = format!("a batch has 1 to {MAX_BATCH} requests");
            return Err(refused(jsonrpc::invalid(why)));
        }
        let alone = entries.len() == 1;
        let slot = |(index, entry): (usize, Value)| {
            let inside: Vec<Vec<Step>> = duplicates
                .iter()
                .filter(|path| path.first() == Some(&Step::Index(index)))
                .map(|path| path.get(1..).unwrap_or_default().to_vec())
                .collect();
            let mut call = self.envelope(entry, &inside)?;
            if !alone && call.operation == Operation::Send && call.idempotency_key.is_some() {
                let why = "names one send: give each of a batch its own in its metadata";
                let fault = FieldViolation::new(idempotency::HEADER, why);
                call.params.faults.push(fault);
            }
            if call.operation.streams() {
                let refusal = jsonrpc::invalid("a batch holds no streaming method");
                return Err(self.refused(call.dialect.generation, call.rpc_id, refusal));
            }
            Ok(call)
        };
        Ok(Opened::Batch(
            entries.into_iter().enumerate().map(slot).collect(),
        ))
    }

    fn refused(&self, generation: Generation, id: RpcId, refusal: Refusal) -> Rejected {
        rejected(self.request, Dialect::json_rpc(generation), id, refusal)
    }

    fn envelope(&self, value: Value, duplicates: &[Vec<Step>]) -> Result<Call, Rejected> {
        let envelope = jsonrpc::envelope(value, duplicates)
            .map_err(|(id, refusal)| self.refused(Generation::V10, id, refusal))?;
        let Some((operation, rule)) = method::named(&envelope.method) else {
            let family = method::family(&envelope.method);
            return Err(self.refused(family, envelope.id, Refusal::MethodNotFound));
        };
        Ok(self.call_of(envelope, operation, rule))
    }

    fn call_of(&self, envelope: Envelope, operation: Operation, rule: GenerationRule) -> Call {
        let dialect = Dialect::json_rpc(rule.before_load());
        let params = Params {
            value: envelope.params,
            faults: envelope.duplicates,
            ..Params::default()
        };
        Call {
            rpc_id: envelope.id,
            ..self.call(operation, dialect, rule, None, params)
        }
    }

    /// 0.1 with one path a method: an envelope or the bare parameters.
    fn path_a_method(&self, target: &Target) -> Result<Opened, Rejected> {
        let bare = Dialect::rest(Generation::V01);
        let (value, duplicates) = self
            .read_body()
            .map_err(|refusal| rejected(self.request, bare, RpcId::Null, refusal))?;
        let rule = GenerationRule::Named(Generation::V01);
        if !jsonrpc::looks_like_envelope(&value) {
            let params = self.params(value, &duplicates, None);
            let call = self.call(target.operation, bare, rule, None, params);
            return Ok(Opened::One(Box::new(call)));
        }
        let refused = |(id, refusal)| self.refused(Generation::V01, id, refusal);
        let envelope = jsonrpc::envelope(value, &duplicates).map_err(refused)?;
        let same = method::named(&envelope.method).is_some_and(|(operation, rule)| {
            let of_v01 = rule != GenerationRule::Named(Generation::V03)
                && rule != GenerationRule::Named(Generation::V10);
            operation == target.operation && of_v01
        });
        if !same {
            let refusal = jsonrpc::invalid("`method` is not the one of this path");
            return Err(refused((envelope.id, refusal)));
        }
        // These paths are 0.1's, whatever else shares the method's name.
        let call = self.call_of(envelope, target.operation, rule);
        Ok(Opened::One(Box::new(call)))
    }

    fn path(&self, target: Target) -> Result<Opened, Rejected> {
        let dialect = Dialect::rest(target.generation);
        let (value, duplicates) = if self.request.method != "POST" || self.request.body.is_empty() {
            (Value::Null, Vec::new())
        } else {
            self.read_body()
                .map_err(|refusal| rejected(self.request, dialect, RpcId::Null, refusal))?
        };
        let mut params = self.params(value, &duplicates, target.id);
        params.config = target.config_id;
        let rule = GenerationRule::Named(target.generation);
        let call = self.call(target.operation, dialect, rule, target.tenant, params);
        Ok(Opened::One(Box::new(call)))
    }

    fn params(&self, value: Value, duplicates: &[Vec<Step>], id: Option<String>) -> Params {
        Params {
            value,
            id,
            config: None,
            pairs: self.pairs.clone(),
            faults: duplicates
                .iter()
                .map(|path| json::duplicate(path))
                .collect(),
        }
    }

    fn read_body(&self) -> Result<(Value, Vec<Vec<Step>>), Refusal> {
        media::check(self.request.content_type)?;
        let scan = json::scan(self.request.body)?;
        Ok((json::parse(self.request.body)?, scan.duplicates))
    }

    fn call(
        &self,
        operation: Operation,
        dialect: Dialect,
        rule: GenerationRule,
        path_tenant: Option<String>,
        mut params: Params,
    ) -> Call {
        let request = self.request;
        let given = given_tenant(dialect, &params);
        if path_tenant.is_some() && given.is_some() && path_tenant != given {
            let why = "must be the tenant of the path";
            params.faults.push(FieldViolation::new("tenant", why));
        }
        let owned = |text: &str| {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        Call {
            operation,
            dialect,
            rpc_id: RpcId::Null,
            routing_tenant: path_tenant.or(given),
            rule,
            params,
            version: version::named(request.version, &self.pairs),
            last_event_id: request.last_event_id.and_then(owned),
            idempotency_key: request.idempotency_key.map(<[u8]>::to_vec),
            extensions: request
                .extensions
                .unwrap_or_default()
                .split(',')
                .filter_map(owned)
                .collect(),
            media: media::of_answer(dialect.binding, request.content_type, request.accept),
            only_events: media::only_events(request.accept),
        }
    }
}

/// The tenant a 1.0 client names in the parameters or the query. The older
/// generations have no such member.
fn given_tenant(dialect: Dialect, params: &Params) -> Option<String> {
    if dialect.generation != Generation::V10 {
        return None;
    }
    let in_query = || {
        let pair = params.pairs.iter().find(|(name, _)| name == "tenant")?;
        (dialect.binding == Binding::Rest).then_some(pair.1.as_str())
    };
    let member = params.value.get("tenant").and_then(Value::as_str);
    member
        .or_else(in_query)
        .filter(|tenant| !tenant.is_empty())
        .map(str::to_owned)
}

impl Call {
    /// Whether it is answered with a stream of events.
    #[must_use]
    pub const fn streams(&self) -> bool {
        self.operation.streams()
    }

    /// Checks the protocol version the client named (A2A 1.0 §3.6.1).
    ///
    /// # Errors
    /// [`Refusal::VersionNotSupported`].
    pub fn check_version(&self) -> Result<(), Refusal> {
        let generation = self.dialect.generation;
        version::check(self.operation, generation, self.version.as_deref())
    }

    /// The version the client named when it is newer than any served here,
    /// which is worth a warning in the log.
    #[must_use]
    pub fn newer_version(&self) -> Option<&str> {
        self.version
            .as_deref()
            .filter(|version| version::is_newer(version))
    }
}

#[cfg(test)]
mod tests;
