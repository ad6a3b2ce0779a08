//! Opens a raw request: finds its operation and its dialect. The parameters stay
//! unread until the caller is authenticated and the limiter admits the request.

use super::jsonrpc::{self, Envelope, MAX_BATCH};
use super::method::{GenerationRule, Operation as O};
use super::params::{self, FieldCase, ReadResult};
use super::rest::PathTarget;
use super::{Binding, Dialect, Operation, RpcId, json, media, method, send, version};
use a2a_lambda_model::task::{A2aError, Generation};
use serde_json::{Map, Value};

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

impl OpenedRequest {
    pub(super) fn one(call: Call) -> Self {
        Self::One(Box::new(call))
    }
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
    /// The parameters, with what path and query add to them.
    pub(super) params: Map<String, Value>,
    pub(super) case: FieldCase,
    /// The first fault that is known before they are read, such as a duplicate member.
    pub(super) fault: Option<A2aError>,
    pub(super) version: Option<String>,
    pub(super) last_event_id: Option<String>,
    pub(super) idempotency_key: Option<Vec<u8>>,
    pub(super) extensions: Vec<String>,
    pub(super) media: &'static str,
    /// Whether `Accept` names server-sent events and no other type.
    pub(super) events_alone: bool,
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

pub(super) fn rejection(
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
        let value = self.read_body(Dialect::json_rpc(Generation::V10))?;
        // JSON-RPC 2.0 §6: an array is a batch.
        let Value::Array(entries) = value else {
            return self.envelope(value).map(OpenedRequest::one);
        };
        if entries.is_empty() || entries.len() > MAX_BATCH {
            let why = format!("a batch has 1 to {MAX_BATCH} requests");
            return Err(self.reject(Generation::V10, RpcId::Null, jsonrpc::invalid(why)));
        }
        let alone = entries.len() == 1;
        let open_entry = |entry| {
            let mut call = self.envelope(entry)?;
            // One header cannot be the key of two sends.
            if !alone && call.operation == Operation::Send && call.idempotency_key.is_some() {
                let why = "names one send: give each of a batch its own in its metadata";
                let fault = || A2aError::invalid(send::KEY_HEADER, why);
                call.fault.get_or_insert_with(fault);
            }
            // The batch has one JSON response, so no entry can answer with a stream.
            if call.operation.streams() {
                let error = jsonrpc::invalid("a batch holds no streaming method");
                return Err(self.reject(call.dialect.generation, call.rpc_id, error));
            }
            Ok(call)
        };
        Ok(OpenedRequest::Batch(
            entries.into_iter().map(open_entry).collect(),
        ))
    }

    fn reject(&self, generation: Generation, id: RpcId, error: A2aError) -> Rejected {
        rejection(self.request, Dialect::json_rpc(generation), id, error)
    }

    fn envelope(&self, value: Value) -> Result<Call, Rejected> {
        let envelope = jsonrpc::envelope(value)
            .map_err(|(id, error)| self.reject(Generation::V10, id, error))?;
        let Some((operation, rule)) = method::by_name(&envelope.method) else {
            let family = method::family(&envelope.method);
            return Err(self.reject(family, envelope.id, A2aError::MethodNotFound));
        };
        Ok(self.call_of(envelope, operation, rule))
    }

    fn call_of(&self, envelope: Envelope, operation: Operation, rule: GenerationRule) -> Call {
        let generation = rule.before_load();
        let target = PathTarget::new(operation, generation);
        Call {
            rpc_id: envelope.id,
            rule,
            ..self.call(&target, Dialect::json_rpc(generation), envelope.params)
        }
    }

    pub(super) fn path(&self, target: &PathTarget) -> Result<Call, Rejected> {
        let dialect = Dialect::rest(target.generation);
        let is_v01 = target.generation == Generation::V01;
        // A2A 1.0 §11.3.2: cancel and subscribe are POST and need no body.
        let has_body = self.request.method == "POST" && (is_v01 || !self.request.body.is_empty());
        let value = match has_body {
            true => self.read_body(dialect)?,
            false => Value::Null,
        };
        // 0.1 has one path per method: the body is an envelope or the bare parameters.
        match is_v01 && value.get("jsonrpc").is_some() {
            true => self.envelope_at(target.operation, value),
            false => Ok(self.call(target, dialect, value)),
        }
    }

    /// An envelope at the path of a method of 0.1.
    fn envelope_at(&self, path: Operation, value: Value) -> Result<Call, Rejected> {
        let reject = |(id, error)| self.reject(Generation::V01, id, error);
        let envelope = jsonrpc::envelope(value).map_err(reject)?;
        // Only 0.1 has these paths, although 0.3 shares some of the method names.
        let of_v01 = GenerationRule::Named(Generation::V01);
        let rules = [of_v01, GenerationRule::OfTask];
        match method::by_name(&envelope.method) {
            Some((operation, rule)) if operation == path && rules.contains(&rule) => {
                Ok(self.call_of(envelope, operation, of_v01))
            }
            _ => {
                let error = jsonrpc::invalid("`method` is not the one of this path");
                Err(reject((envelope.id, error)))
            }
        }
    }

    fn read_body(&self, dialect: Dialect) -> Result<Value, Rejected> {
        // The content type comes first: a body of another type need not be JSON.
        media::check(self.request.content_type)
            .and_then(|()| json::read(self.request.body))
            .map_err(|error| rejection(self.request, dialect, RpcId::Null, error))
    }

    /// The call that a request makes, whatever its dialect: its parameters and what its
    /// headers say.
    fn call(&self, target: &PathTarget, dialect: Dialect, value: Value) -> Call {
        let request = self.request;
        let text_of = |text: &str| {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let in_body = self.tenant(dialect, &value);
        let mut call = Call {
            operation: target.operation,
            dialect,
            rpc_id: RpcId::Null,
            routing_tenant: target.tenant.clone().or(in_body),
            rule: GenerationRule::Named(dialect.generation),
            params: Map::new(),
            case: field_case(target, dialect),
            fault: None,
            version: version::client_version(request.version, &self.pairs),
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
        };
        match self.params(&call, target, value) {
            Ok(params) => call.params = params,
            Err(fault) => call.fault = Some(fault),
        }
        call
    }

    /// The parameters of `call`: those of JSON-RPC, the body, or the query of a request that
    /// only reads. An id in the path replaces that member.
    fn params(
        &self,
        call: &Call,
        target: &PathTarget,
        value: Value,
    ) -> ReadResult<Map<String, Value>> {
        if let Some(path) = json::duplicate(&value) {
            let why = "must stand only once in its object";
            return Err(A2aError::invalid(path, why));
        }
        let tenant = self.tenant(call.dialect, &value);
        if tenant.is_some() && tenant != call.routing_tenant {
            let why = "must be the tenant of the path";
            return Err(A2aError::invalid("tenant", why));
        }
        let is_query = call.dialect.binding == Binding::Rest;
        let mut members = match (value, call.operation) {
            (_, O::Card | O::LegacyCard | O::Schemas | O::ExtendedCard | O::ListSkills) => {
                return Ok(Map::new());
            }
            (Value::Object(members), _) => members,
            // Absent parameters count as an empty object, so that a missing field is named.
            (Value::Null, O::Get | O::List | O::ListPushConfigs | O::ListContexts)
                if is_query && call.case == FieldCase::ProtoJson =>
            {
                params::members(&self.pairs)?
            }
            (Value::Null, _) if call.case == FieldCase::ProtoJson => Map::new(),
            _ => return Err(A2aError::invalid("params", "must be an object")),
        };
        let task = target.id.iter().map(|id| (call.task_member(), id));
        let config = target.config_id.iter().map(|id| (call.config_member(), id));
        for (name, id) in task.chain(config) {
            // A2A 1.0 §5.5: ProtoJSON readers take the proto name too, so it is replaced as well.
            members.remove(&params::snake(name));
            members.insert(name.to_owned(), id.as_str().into());
        }
        Ok(members)
    }

    /// The tenant that a client names in the parameters or the query.
    fn tenant(&self, dialect: Dialect, params: &Value) -> Option<String> {
        // A2A 1.0 §4.4.6: requests name the tenant. The older generations have no such
        // member.
        if dialect.generation != Generation::V10 {
            return None;
        }
        let in_query = || {
            let pair = self.pairs.iter().find(|(name, _)| name == "tenant")?;
            (dialect.binding == Binding::Rest).then_some(pair.1.as_str())
        };
        let member = params.get("tenant").and_then(Value::as_str);
        let tenant = member.or_else(in_query).filter(|tenant| !tenant.is_empty());
        tenant.map(str::to_owned)
    }
}

fn field_case(target: &PathTarget, dialect: Dialect) -> FieldCase {
    match (dialect.generation, dialect.binding) {
        // An upload is ordered in plain JSON, which is the same for all generations.
        _ if target.operation == O::CreateUpload => FieldCase::Json,
        (Generation::V10, _) | (Generation::V03, Binding::Rest) => FieldCase::ProtoJson,
        // The parameters are a query, in which a number is a text.
        (Generation::V01, _) if target.id.is_some() => FieldCase::ProtoJson,
        (Generation::V03 | Generation::V01, _) => FieldCase::Json,
    }
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
