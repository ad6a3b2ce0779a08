//! The public card documents.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::origin::{BaseUrl, StageUrl};
use a2a_lambda::prelude::*;
use a2a_lambda::protocol::CardShape;
use a2a_lambda::settings::{ModelProvider, ModelSettings, Settings};
use a2a_lambda::task::Timestamp;
use a2a_lambda_rows::{each_row, each_row_async};
use a2a_lambda_tests::dialect::at;
use a2a_lambda_tests::tester;
use a2a_lambda_tests::world::{BASE_URL, Request, World, behind_a_gateway};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

const CARD: &str = "/.well-known/agent-card.json";
const LEGACY: [&str; 2] = ["/.well-known/agent.json", "/agent.json"];
const SCHEMAS: &str = "/a2a-lambda/schemas";

#[tokio::test(start_paused = true)]
async fn a_card_with_a_known_etag_is_not_sent_again() {
    let world = World::new().unwrap();
    for path in [CARD, LEGACY[0], LEGACY[1], SCHEMAS] {
        let reply = world.call(&Request::new("GET", path)).await;
        assert_eq!(reply.status, 200, "{path} {}", reply.text());
        assert_eq!(reply.header("content-type"), "application/json");
        assert!(
            reply
                .header("cache-control")
                .starts_with("public, max-age=")
        );
        let tag = reply.header("etag");
        assert!(
            tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10,
            "{tag}"
        );
        // RFC 9110 §13.1.2: `If-None-Match` compares weakly, so a weak tag matches too.
        let weak = format!("W/{tag}");
        let rows = [
            tag.to_owned(),
            format!("\"x\", {tag}"),
            "*".to_owned(),
            weak,
        ];
        each_row_async(rows, async |known| {
            let again = Request::new("GET", path).header("if-none-match", &known);
            let again = world.call(&again).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
            assert_eq!(again.header("etag"), tag);
        })
        .await;
        let other = Request::new("GET", path).header("if-none-match", "\"other\"");
        assert_eq!(world.call(&other).await.body, reply.body);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unmodified_card_is_not_sent_again() {
    let at = Timestamp::parse_rfc3339("2026-05-28T10:00:00.700Z");
    let world = World::with(|settings| settings.deployed_at = at).unwrap();
    for path in [CARD, LEGACY[0], LEGACY[1], SCHEMAS] {
        let get = Request::new("GET", path);
        let reply = world.call(&get).await;
        assert_eq!(
            reply.header("last-modified"),
            "Thu, 28 May 2026 10:00:00 GMT"
        );
        let rows = [
            ("Thu, 28 May 2026 10:00:00 GMT", 304),
            ("Thu, 28 May 2026 10:00:01 GMT", 304),
            ("Thu May 28 10:00:00 2026", 304),
            ("Thu, 28 May 2026 09:59:59 GMT", 200),
            ("yesterday", 200),
            ("", 200),
        ];
        each_row_async(rows, async |(date, status)| {
            let again = get.clone().header("if-modified-since", date);
            let again = world.call(&again).await;
            assert_eq!(again.status, status, "{date}");
            assert_eq!(again.body.is_empty(), status == 304, "{date}");
            // RFC 9110 §13.1.3: `If-None-Match` wins over `If-Modified-Since`.
            let other = get.clone().header("if-modified-since", date);
            let other = other.header("if-none-match", "\"other\"");
            assert_eq!(world.call(&other).await.status, 200, "{date}");
        })
        .await;
    }
    let undated = World::with(|settings| settings.deployed_at = None).unwrap();
    let reply = undated.call(&Request::new("GET", CARD)).await;
    assert_eq!(reply.header("last-modified"), "");
}

#[tokio::test(start_paused = true)]
async fn no_request_header_changes_the_bytes_of_a_card() {
    let world = World::serving(tester::extended_agent, |_| ()).unwrap();
    let paths = [
        CARD,
        LEGACY[0],
        LEGACY[1],
        SCHEMAS,
        "/v1/card",
        "/a2a-lambda/skills",
    ];
    for path in paths {
        let plain = Request::new("GET", path).from("evil:eve");
        let plain = world.call(&plain).await;
        assert_eq!(plain.status, 200, "{path}");
        let rows = [
            ("host", "evil.example"),
            ("host", "evil.example:1@agent.example"),
            ("host", ""),
            ("x-forwarded-for", "127.0.0.1, ::1"),
            ("x-forwarded-port", "99999"),
            ("x-forwarded-server", "evil.example"),
            ("x-forwarded-ssl", "off"),
            ("x-forwarded-path", "/../../evil"),
            ("x-forwarded-uri", "https://evil.example/?a=\"b"),
            ("x-original-host", "evil.example"),
            ("x-host", "evil.example"),
            ("x-rewrite-url", "/evil"),
            ("x-http-method-override", "DELETE"),
            ("x-amzn-trace-id", "Root=1-evil"),
            ("cloudfront-forwarded-proto", "http"),
            ("via", "1.1 evil.example"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-prefix", "/evil"),
            ("forwarded", "host=evil.example;proto=http"),
            ("x-original-url", "https://evil.example/"),
            ("origin", "https://evil.example"),
            ("referer", "https://evil.example"),
            ("accept", "text/html"),
            ("content-type", "text/plain"),
        ];
        each_row_async(rows, async |(name, value)| {
            let hostile = Request::new("GET", path)
                .header(name, value)
                .from("evil:eve");
            let reply = world.call(&hostile).await;
            // An agent with development identities refuses foreign hosts and origins.
            let refused = matches!((name, reply.status), ("host", 421) | ("origin", 403));
            if refused {
                return;
            }
            assert_eq!(reply.body, plain.body, "{name}");
            assert_eq!(reply.header("etag"), plain.header("etag"), "{name}");
        })
        .await;
        let absolute = Request::new("GET", format!("https://evil.example{path}?url=evil"));
        let door = Function::of("GET", path);
        let reply = world.open_at(door, &absolute.from("evil:eve")).await;
        assert_eq!(reply.finish().await.body, plain.body);
    }
}

/// The body of a card for a request with the stage variable `stage` and hostile headers.
async fn deployed(world: &World, path: &str, stage: Option<&str>) -> (u16, Value) {
    let door = Function::of("GET", path);
    let mut request = http::Request::get(format!("https://evil.example{path}?publicUrl=evil"))
        .header("a2a-version", "1.0")
        .header("host", "evil.example")
        .header("forwarded", "host=evil.example;proto=http")
        .header("x-forwarded-host", "evil.example")
        .header("x-forwarded-prefix", "/evil")
        .header("x-forwarded-proto", "http")
        .header("publicurl", "https://evil.example")
        .body(bytes::Bytes::new())
        .unwrap();
    if let Some(url) = stage {
        request.extensions_mut().insert(StageUrl(url.to_owned()));
    }
    let authorizer = json!({"tenant": "acme", "subject": "ann"});
    let identity = Identity {
        authorizer: authorizer.as_object().cloned(),
        authorization: None,
    };
    let response = world.edge(door).handle(request, identity, None).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

/// An agent behind the gateway with these base URLs.
fn addressed(url: BaseUrl) -> World {
    let set = |settings: &mut Settings| {
        behind_a_gateway(settings);
        settings.public_url = url;
    };
    World::serving(tester::extended_agent, set).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_deployed_card_has_the_url_of_its_stage() {
    let world = addressed(BaseUrl::new(None, None));
    for url in [
        "https://a.example",
        "https://b.example/agents",
        "https://a.example",
    ] {
        let rows = [CARD, LEGACY[0], LEGACY[1], "/extendedAgentCard"];
        each_row_async(rows, async |path| {
            let (status, card) = deployed(&world, path, Some(url)).await;
            assert_eq!(status, 200, "{path} {card}");
            let said = card.to_string();
            assert!(said.contains(&format!("\"url\":\"{url}")), "{said}");
            assert!(!said.contains("evil"), "{said}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_configured_url_of_a_card_wins_over_its_stage() {
    let own = Some("https://own.example".to_owned());
    let world = addressed(BaseUrl::new(own, None));
    let (_, card) = deployed(&world, CARD, Some("https://stage.example")).await;
    assert!(card.to_string().contains("https://own.example"), "{card}");
    assert!(!card.to_string().contains("stage.example"), "{card}");
}

/// Greets.
#[skill(id = "greets", tags = ["test"])]
async fn greets(_input: String) -> AgentResult<String> {
    Ok("hello".to_owned())
}

#[test]
fn an_agent_without_a_valid_card_does_not_start_without_a_url_either() {
    let nameless = |_| Agent::builder("tester").version("").skill(greets).build();
    for url in [None, Some("https://agent.example".to_owned())] {
        let set = |settings: &mut Settings| settings.public_url = BaseUrl::new(url, None);
        let refused = World::serving(nameless, set).unwrap_err();
        assert!(refused.to_string().contains("version"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployed_card_without_a_url_is_an_internal_error() {
    let world = addressed(BaseUrl::new(None, None));
    let rows = [CARD, LEGACY[0], LEGACY[1], "/extendedAgentCard"];
    each_row_async(rows, async |path| {
        for stage in [None, Some(""), Some("evil")] {
            let (status, body) = deployed(&world, path, stage).await;
            assert_eq!(status, 500, "{path} {body}");
            assert!(!body.to_string().contains("evil"), "{body}");
            // What to set is for the log.
            assert!(!body.to_string().contains("publicUrl"), "{body}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn neither_caller_nor_version_changes_the_bytes_of_a_public_card() {
    let world = World::new().unwrap();
    for path in [CARD, LEGACY[0], LEGACY[1]] {
        let plain = world.call(&Request::new("GET", path)).await;
        let rows = [
            ("a2a-version", "99.0"),
            ("a2a-extensions", "urn:evil"),
            ("authorization", "Bearer dev:evil:eve"),
            ("authorization", "Basic evil"),
        ];
        each_row_async(rows, async |(name, value)| {
            let request = Request::new("GET", path).header(name, value);
            assert_eq!(world.call(&request).await.body, plain.body, "{name}");
            let known = world.call(&request.from("evil:eve")).await;
            assert_eq!(known.body, plain.body, "{name}");
        })
        .await;
    }
}

fn urls(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains("://") => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| urls(item, found)),
        Value::Object(members) => members.values().for_each(|item| urls(item, found)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_card_names_the_configured_url_and_its_bindings_in_order() {
    let world = World::new().unwrap();
    let card = world.call(&Request::new("GET", CARD)).await.json();
    let mut found = Vec::new();
    urls(&card, &mut found);
    assert!(found.iter().all(|url| url == BASE_URL), "{found:?}");
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let interfaces: Vec<String> = interfaces
        .iter()
        .map(|one| format!("{} {}", one["protocolBinding"], one["protocolVersion"]))
        .collect();
    let expected = [
        r#""JSONRPC" "1.0""#,
        r#""HTTP+JSON" "1.0""#,
        r#""JSONRPC" "0.3""#,
        r#""HTTP+JSON" "0.3""#,
    ];
    assert_eq!(interfaces, expected);
    let rows = [
        ("/name", json!("tester")),
        ("/version", json!("3.2.1")),
        ("/url", json!(BASE_URL)),
        ("/preferredTransport", json!("JSONRPC")),
        ("/protocolVersion", json!("0.3.0")),
        ("/capabilities/streaming", json!(true)),
        ("/capabilities/pushNotifications", json!(true)),
        ("/capabilities/stateTransitionHistory", json!(true)),
    ];
    each_row(rows, |(pointer, value)| {
        assert_eq!(*at(&card, pointer), value, "{pointer}");
    });
    assert!(card.get("supportsAuthenticatedExtendedCard").is_none());
    let skills = card["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_pure_card_of_1_0_has_no_older_member() {
    let world = World::with(|settings| settings.card = CardShape::V1).unwrap();
    let card = world.call(&Request::new("GET", CARD)).await.json();
    let rows = [
        "url",
        "preferredTransport",
        "protocolVersion",
        "additionalInterfaces",
    ];
    each_row(rows, |legacy| {
        assert!(card.get(legacy).is_none(), "{legacy}");
    });
    assert!(at(&card, "/capabilities/stateTransitionHistory").is_null());
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 2);
    assert!(interfaces.iter().all(|one| one["protocolVersion"] == "1.0"));
}

#[tokio::test(start_paused = true)]
async fn the_card_of_0_1_is_the_same_at_both_paths_and_under_both_settings() {
    let mut seen = Vec::new();
    for shape in [CardShape::Union, CardShape::V1] {
        let world = World::with(|settings| settings.card = shape).unwrap();
        for path in LEGACY {
            seen.push(world.call(&Request::new("GET", path)).await.body);
        }
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]));
    let card: Value = serde_json::from_slice(&seen[0]).unwrap();
    assert_eq!(card["url"], BASE_URL);
    assert_eq!(
        at(&card, "/capabilities/stateTransitionHistory"),
        &json!(true)
    );
    assert!(card.get("supportedInterfaces").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deployed_agents_card_needs_no_authentication() {
    let world = World::with(behind_a_gateway).unwrap();
    for path in [CARD, LEGACY[0], LEGACY[1]] {
        let reply = world.call(&Request::new("GET", path)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let card = world.call(&Request::new("GET", CARD)).await.json();
    let schemes = card["securitySchemes"].as_object().unwrap();
    for scheme in schemes.values() {
        // Each entry is complete for readers of 0.3 and of 1.0.
        assert!(scheme["type"].is_string(), "{scheme}");
        assert!(
            scheme["httpAuthSecurityScheme"]["scheme"].is_string(),
            "{scheme}"
        );
    }
    assert_eq!(schemes.len(), 1);
}

/// The reference agent whose settings name a model, or none.
fn reference(has_model: bool) -> World {
    let model = ModelSettings {
        provider: ModelProvider::OpenAi,
        id: "small-1".to_owned(),
        endpoint: Some("http://127.0.0.1:1/v1".to_owned()),
        options: serde_json::Map::new(),
        router_id: None,
    };
    let settings = |settings: &mut Settings| settings.model = has_model.then_some(model);
    World::serving(|_| reference_agent::agent(), settings).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_card_of_the_reference_agent_is_small_and_names_its_schemas() {
    let world = reference(true);
    let card = world.call(&Request::new("GET", CARD)).await;
    assert!(card.body.len() < 10 * 1024, "{} bytes", card.body.len());
    let card = card.json();
    let params = at(&card, "/capabilities/extensions/0/params");
    let url = params["url"].as_str().unwrap();
    let path = url.strip_prefix(BASE_URL).unwrap();
    // A client without credentials reads them.
    let reply = world.call(&Request::new("GET", path)).await;
    let sha256 = params["sha256"].as_str().unwrap();
    assert_eq!(reply.header("etag"), format!("\"{sha256}\""));
    let schemas = reply.json();
    let names: Vec<&String> = schemas["skills"].as_object().unwrap().keys().collect();
    assert!(names.len() > 10, "{names:?}");
    let schema = at(&schemas, "/skills/generate-report/inputSchema");
    assert!(schema["properties"]["points"].is_object(), "{schema}");
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_needs_a_model_is_shown_only_where_one_is_configured() {
    for has_model in [false, true] {
        let world = reference(has_model);
        for path in [CARD, LEGACY[0], LEGACY[1], "/a2a-lambda/skills"] {
            let reply = world.call(&Request::new("GET", path)).await;
            assert!(reply.text().contains("memory_add"), "{path}");
            let is_shown = reply.text().contains(r#""assist""#);
            assert_eq!(is_shown, has_model, "{path}");
        }
    }
}
