//! Reads and writes push configs in every dialect, and writes what is delivered.
//!
//! `token` and `credentials` are write-only: no response has them.

use super::legacy::Legacy;
use super::params::{Object, ReadResult};
use super::payload::{Members, put, text};
use super::v1::View;
use super::{Binding, Dialect, media};
use a2a_lambda_model::task::{
    Frame, Generation, MAX_PUSH_CONFIGS, MAX_PUSH_CREDENTIALS, MAX_PUSH_SCHEME, MAX_PUSH_TOKEN,
    MAX_PUSH_URL, PushConfig, PushId, PushOffer, PushPage, Secret,
};
use serde_json::{Value, json};

/// The member of 0.1 and 0.3 that holds the push config.
const CONFIG: &str = "pushNotificationConfig";
/// The rule of [`is_scheme`] as the text of a violation.
const SCHEME_RULE: &str = "must be the name of an HTTP authentication scheme";

/// Reads the push config of a request that creates it.
pub(crate) fn read_new(params: &Object<'_>, dialect: Dialect) -> ReadResult<PushOffer> {
    match (dialect.generation, dialect.binding) {
        // A2A 1.0 §4.3.1: the members of the config are those of the request.
        (Generation::V10, _) => read(params, Generation::V10),
        (Generation::V03, Binding::Rest) => read_resource(params),
        (generation @ (Generation::V03 | Generation::V01), _) => {
            let mut offer = read(&params.required_object(CONFIG)?, generation)?;
            // A config without an id replaces an earlier one without, as the official kit of
            // 0.3 expects.
            offer.id.get_or_insert_with(PushId::only);
            Ok(offer)
        }
    }
}

/// Reads the body of 0.3 over REST (A2A 0.3 §3.5.6):
/// `{"parent", "configId", "config": {"name", "pushNotificationConfig"}}`. The JSON-RPC format
/// is read too.
fn read_resource(body: &Object<'_>) -> ReadResult<PushOffer> {
    let id = body.id("configId")?;
    let outer = body.object("config")?;
    let outer = outer.as_ref().unwrap_or(body);
    let mut offer = read(&outer.required_object(CONFIG)?, Generation::V03)?;
    offer.id = id.or(offer.id);
    if offer.id.is_none() {
        // `tasks/{task}/pushNotificationConfigs/{id}`: the server gives the name, so a malformed
        // one is ignored and not refused.
        let name = outer.text("name")?.unwrap_or_default();
        let id = name.rsplit_once("/pushNotificationConfigs/");
        offer.id = id.and_then(|(_, id)| PushId::parse(id).ok());
    }
    Ok(offer)
}

/// Reads a push config, alone or inside a send (A2A 1.0 §4.3.1; A2A 0.3 §6.8; A2A 0.1 §6.8).
pub(crate) fn read(config: &Object<'_>, generation: Generation) -> ReadResult<PushOffer> {
    let url = config.require("url", config.printable("url", MAX_PUSH_URL)?)?;
    let id = config.id("id")?;
    let token = config.printable("token", MAX_PUSH_TOKEN)?.map(Secret::new);
    let (schemes, credentials) = match config.object("authentication")? {
        Some(it) => (
            read_schemes(&it, generation)?,
            it.printable("credentials", MAX_PUSH_CREDENTIALS)?,
        ),
        None => (Vec::new(), None),
    };
    Ok(PushOffer {
        at: config.path.clone(),
        // A2A 0.1 §7.5: a task has one, without an id.
        id: match generation {
            Generation::V01 => Some(PushId::only()),
            Generation::V03 | Generation::V10 => id,
        },
        url: url.to_owned(),
        token,
        schemes,
        credentials: credentials.map(Secret::new),
        generation,
        signs: false,
    })
}

fn read_schemes(authentication: &Object<'_>, generation: Generation) -> ReadResult<Vec<String>> {
    if generation == Generation::V10 {
        // A2A 1.0 §4.3.2: one scheme.
        let read = |text: &str| is_scheme(text).then(|| vec![text.to_owned()]);
        let schemes = authentication.text_as("scheme", SCHEME_RULE, read)?;
        return authentication.require("scheme", schemes);
    }
    let schemes = authentication.strings("schemes")?;
    if let Some(index) = schemes.iter().position(|scheme| !is_scheme(scheme)) {
        return Err(authentication.fault(&format!("schemes[{index}]"), SCHEME_RULE));
    }
    if schemes.len() > MAX_PUSH_CONFIGS {
        let rule = format!("must have at most {MAX_PUSH_CONFIGS} elements");
        return Err(authentication.fault("schemes", rule));
    }
    Ok(schemes)
}

/// Whether a text is the name of an authentication scheme (RFC 9110 §11.1).
fn is_scheme(text: &str) -> bool {
    // RFC 9110 §5.6.2: the characters of a token.
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_PUSH_SCHEME).contains(&text.len()) && text.bytes().all(token)
}

/// Writes a push config.
pub(crate) fn write(config: &PushConfig, dialect: Dialect) -> Value {
    let is_v10 = dialect.generation == Generation::V10;
    let (id, task) = (config.id.as_str(), config.task.as_str());
    // A2A 1.0 §4.3.1, A2A 0.3 §6.10, A2A 0.1 §6.10.
    let mut object = Members::new();
    put(&mut object, "url", config.url.as_str());
    if let Some(first) = config.schemes.first() {
        let authentication = match is_v10 {
            true => json!({"scheme": first}),
            false => json!({"schemes": config.schemes}),
        };
        put(&mut object, "authentication", authentication);
    }
    if dialect.generation != Generation::V01 {
        put(&mut object, "id", id);
    }
    match (dialect.generation, dialect.binding) {
        (Generation::V10, _) => {
            put(&mut object, "taskId", task);
            object.into()
        }
        (Generation::V03, Binding::JsonRpc) => json!({"taskId": task, CONFIG: object}),
        (Generation::V03, Binding::Rest) => {
            let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
            json!({"name": name, CONFIG: object})
        }
        (Generation::V01, _) => json!({"id": task, CONFIG: object}),
    }
}

/// Writes a page of push configs.
pub(crate) fn write_page(page: &PushPage, dialect: Dialect) -> Value {
    let configs = page.configs.iter().map(|config| write(config, dialect));
    let configs: Value = configs.collect();
    let next = page.next_page_token.as_str();
    match (dialect.generation, dialect.binding) {
        // A2A 0.3 §7.7: a list. 0.1 cannot list push configs.
        (Generation::V03 | Generation::V01, Binding::JsonRpc) => configs,
        (Generation::V10, _) if next.is_empty() => json!({"configs": configs}),
        _ => json!({"nextPageToken": next, "configs": configs}),
    }
}

/// The media type and body of a push delivery, in the generation in which the
/// client registered the push config.
///
/// `None` for a frame that this generation does not deliver.
#[must_use]
pub fn push_payload(generation: Generation, frame: &Frame) -> Option<(&'static str, Vec<u8>)> {
    Some(match (generation, frame) {
        // A2A 1.0 §4.3.3: the payload is a `StreamResponse`. 0.3 and 0.1 get the task.
        (Generation::V10, _) => (media::A2A_JSON, text(&View::<true>::of_element(frame)?)),
        (Generation::V03 | Generation::V01, Frame::Task(task)) => {
            let legacy = Legacy(Dialect::json_rpc(generation));
            (media::JSON, text(&legacy.task(task)))
        }
        (Generation::V03 | Generation::V01, _) => return None,
    })
}
