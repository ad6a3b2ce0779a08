//! Opens a raw request: finds its operation and its dialect. The parameters stay
//! unread until the caller is authenticated and the limiter admits the request.

use super::jsonrpc::{self, Envelope, MAX_BATCH};
use super::method::GenerationRule;
use super::rest::PathTarget;
use super::{Binding, Dialect, Operation, RpcId, idempotency, json, media, method, version};
use a2a_lambda_model::task::{A2aError, Generation};
use serde_json::Value;

/// A request as received, without the types of an HTTP library.
#[derive(Debug, Clone, Copy, Default)]
pub struct RawRequest<'a> {
    /// The HTTP method, in capitals.
    pub method: &'a str,
    /// The path below the base URL, percent-encoded as received.
    pub path: &'a str,
    /// The query string without its `?`.
    pub query: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `Accept`.
    pub accept: Option<&'a str>,
    /// `A2A-Version`.
    pub version: Option<&'a str>,
    /// `A2A-Extensions` (A2A 1.0 §3.2.6), or `X-A2A-Extensions` in 0.3.
    pub extensions: Option<&'a str>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<&'a str>,
    /// `Idempotency-Key` as bytes: a key that is not text is refused, not ignored.
    pub idempotency_key: Option<&'a [u8]>,
    /// The body, of at most the size that the caller of this module allows.
    pub body: &'a [u8],
}

/// A request whose operation is known.
#[derive(Debug)]
pub enum OpenedRequest {
    /// One call.
    One(Box<Call>),
    /// A JSON-RPC batch of at most 16 unary calls, in order. An entry that is
    /// already refused keeps its position.
    Batch(Vec<Result<Call, Rejected>>),
}

/// A call whose parameters are unread.
#[derive(Debug, Clone)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The dialect. For the three methods that 0.1 and 0.3 share it is 0.3; their
    /// response has the generation of the task.
    pub dialect: Dialect,
    /// The id that the response repeats.
    pub rpc_id: RpcId,
    /// The tenant in path, parameters or query (A2A 1.0 §4.4.6): a routing value,
    /// never an identity.
    pub routing_tenant: Option<String>,
    pub(super) rule: GenerationRule,
    pub(super) params: Params,
    pub(super) version: Option<String>,
    pub(super) last_event_id: Option<String>,
    pub(super) idempotency_key: Option<Vec<u8>>,
    pub(super) extensions: Vec<String>,
    pub(super) media: &'static str,
    /// Whether `Accept` names server-sent events and no other type.
    pub(super) events_alone: bool,
}

/// The unread parameters of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    /// The JSON-RPC parameters or the body; `null` when there is none.
    pub(super) value: Value,
    /// The id in the path.
    pub(super) id: Option<String>,
    /// The id of the push config in the path.
    pub(super) config: Option<String>,
    /// The query.
    pub(super) pairs: Vec<(String, String)>,
    /// The first fault that is known before they are read, such as a duplicate member.
    pub(super) fault: Option<A2aError>,
}

/// A request that is refused before it becomes a call.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The error.
    pub error: A2aError,
    /// The dialect of the error.
    pub dialect: Dialect,
    /// The id that the error repeats.
    pub rpc_id: RpcId,
    pub(super) media: &'static str,
    pub(super) events_alone: bool,
}

pub(super) fn rejected(
    request: &RawRequest<'_>,
    dialect: Dialect,
    rpc_id: RpcId,
    error: A2aError,
) -> Rejected {
    Rejected {
        error,
        dialect,
        rpc_id,
        media: media::of_answer(dialect, request.content_type, request.accept),
        events_alone: media::events_alone(request.accept),
    }
}

/// Reads a request whose route is known.
pub(super) struct RequestReader<'a> {
    pub(super) request: &'a RawRequest<'a>,
    pub(super) pairs: Vec<(String, String)>,
}

impl RequestReader<'_> {
    pub(super) fn json_rpc(&self) -> Result<OpenedRequest, Rejected> {
        let reject = |error| self.refused(Generation::V10, RpcId::Null, error);
        let value = self.read_body().map_err(reject)?;
        // JSON-RPC 2.0 §6: an array is a batch.
        let Value::Array(entries) = value else {
            let call = self.envelope(value)?;
            return Ok(OpenedRequest::One(Box::new(call)));
        };
        if entries.is_empty() || entries.len() > MAX_BATCH {
            let why = format!("a batch has 1 to {MAX_BATCH} requests");
            return Err(reject(jsonrpc::invalid(why)));
        }
        let alone = entries.len() == 1;
        let open_entry = |entry| {
            let mut call = self.envelope(entry)?;
            // One header cannot be the key of two sends.
            if !alone && call.operation == Operation::Send && call.idempotency_key.is_some() {
                let why = "names one send: give each of a batch its own in its metadata";
                let fault = || A2aError::invalid(idempotency::HEADER, why);
                call.params.fault.get_or_insert_with(fault);
            }
            // The batch has one JSON response, so no entry can answer with a stream.
            if call.operation.streams() {
                let error = jsonrpc::invalid("a batch holds no streaming method");
                return Err(self.refused(call.dialect.generation, call.rpc_id, error));
            }
            Ok(call)
        };
        Ok(OpenedRequest::Batch(
            entries.into_iter().map(open_entry).collect(),
        ))
    }

    fn refused(&self, generation: Generation, id: RpcId, error: A2aError) -> Rejected {
        rejected(self.request, Dialect::json_rpc(generation), id, error)
    }

    fn envelope(&self, value: Value) -> Result<Call, Rejected> {
        let envelope = jsonrpc::envelope(value)
            .map_err(|(id, error)| self.refused(Generation::V10, id, error))?;
        let Some((operation, rule)) = method::named(&envelope.method) else {
            let family = method::family(&envelope.method);
            return Err(self.refused(family, envelope.id, A2aError::MethodNotFound));
        };
        Ok(self.call_of(envelope, operation, rule))
    }

    fn call_of(&self, envelope: Envelope, operation: Operation, rule: GenerationRule) -> Call {
        let dialect = Dialect::json_rpc(rule.before_load());
        let params = Params {
            value: envelope.params,
            ..Params::default()
        };
        Call {
            rpc_id: envelope.id,
            ..self.call(operation, dialect, rule, None, params)
        }
    }

    /// 0.1 with one path per method: the body is an envelope or the bare parameters.
    pub(super) fn path_a_method(&self, target: &PathTarget) -> Result<OpenedRequest, Rejected> {
        let bare = Dialect::rest(Generation::V01);
        let value = self
            .read_body()
            .map_err(|error| rejected(self.request, bare, RpcId::Null, error))?;
        let rule = GenerationRule::Named(Generation::V01);
        if !jsonrpc::looks_like_envelope(&value) {
            let params = self.params(value);
            let call = self.call(target.operation, bare, rule, None, params);
            return Ok(OpenedRequest::One(Box::new(call)));
        }
        let reject = |(id, error)| self.refused(Generation::V01, id, error);
        let envelope = jsonrpc::envelope(value).map_err(reject)?;
        let same = method::named(&envelope.method).is_some_and(|(operation, rule)| {
            let of_v01 = rule != GenerationRule::Named(Generation::V03)
                && rule != GenerationRule::Named(Generation::V10);
            operation == target.operation && of_v01
        });
        if !same {
            let error = jsonrpc::invalid("`method` is not the one of this path");
            return Err(reject((envelope.id, error)));
        }
        // Only 0.1 has these paths, although 0.3 shares some of the method names.
        let call = self.call_of(envelope, target.operation, rule);
        Ok(OpenedRequest::One(Box::new(call)))
    }

    pub(super) fn path(&self, target: &PathTarget) -> Result<OpenedRequest, Rejected> {
        let dialect = Dialect::rest(target.generation);
        // A2A 1.0 §11.3.2: cancel and subscribe are POST and need no body.
        let value = if self.request.method != "POST" || self.request.body.is_empty() {
            Value::Null
        } else {
            self.read_body()
                .map_err(|error| rejected(self.request, dialect, RpcId::Null, error))?
        };
        let params = Params {
            id: target.id.clone(),
            config: target.config_id.clone(),
            ..self.params(value)
        };
        let rule = GenerationRule::Named(target.generation);
        let call = self.call(
            target.operation,
            dialect,
            rule,
            target.tenant.clone(),
            params,
        );
        Ok(OpenedRequest::One(Box::new(call)))
    }

    fn params(&self, value: Value) -> Params {
        Params {
            value,
            pairs: self.pairs.clone(),
            ..Params::default()
        }
    }

    fn read_body(&self) -> Result<Value, A2aError> {
        // The content type comes first: a body of another type need not be JSON.
        media::check(self.request.content_type)?;
        json::read(self.request.body)
    }

    /// The call that a request makes, whatever its dialect: its parameters and what its
    /// headers say. A tenant in the path and another in the body are a fault of the body.
    fn call(
        &self,
        operation: Operation,
        dialect: Dialect,
        rule: GenerationRule,
        path_tenant: Option<String>,
        mut params: Params,
    ) -> Call {
        let request = self.request;
        let duplicate = json::duplicate(&params.value);
        params.fault =
            duplicate.map(|path| A2aError::invalid(path, "must stand only once in its object"));
        let tenant = given_tenant(dialect, &params);
        if path_tenant.is_some() && tenant.is_some() && path_tenant != tenant {
            let fault = || A2aError::invalid("tenant", "must be the tenant of the path");
            params.fault.get_or_insert_with(fault);
        }
        let text_of = |text: &str| {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        Call {
            operation,
            dialect,
            rpc_id: RpcId::Null,
            routing_tenant: path_tenant.or(tenant),
            rule,
            params,
            version: version::named(request.version, &self.pairs),
            last_event_id: request.last_event_id.and_then(text_of),
            idempotency_key: request.idempotency_key.map(<[u8]>::to_vec),
            extensions: request
                .extensions
                .unwrap_or_default()
                .split(',')
                .filter_map(text_of)
                .collect(),
            media: media::of_answer(dialect, request.content_type, request.accept),
            events_alone: media::events_alone(request.accept),
        }
    }
}

/// The tenant that a client names in the parameters or the query.
fn given_tenant(dialect: Dialect, params: &Params) -> Option<String> {
    // A2A 1.0 §4.4.6: requests name the tenant. The older generations have no such
    // member.
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
    /// Whether the response is a stream of events.
    #[must_use]
    pub const fn streams(&self) -> bool {
        self.operation.streams()
    }

    /// Checks the protocol version that the client named (A2A 1.0 §3.6.2).
    ///
    /// # Errors
    /// [`A2aError::VersionNotSupported`].
    pub fn check_version(&self) -> Result<(), A2aError> {
        let generation = self.dialect.generation;
        version::check(self.operation, generation, self.version.as_deref())
    }

    /// The version that the client named, if it is newer than every version this
    /// server knows. It belongs in the log as a warning.
    #[must_use]
    pub fn newer_version(&self) -> Option<&str> {
        self.version
            .as_deref()
            .filter(|version| version::is_newer(version))
    }
}

#[cfg(test)]
mod tests;
