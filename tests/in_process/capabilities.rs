//! Capabilities that the card declares work. The others are refused with the
//! error which the protocol has for that.

use a2a_lambda::skill::{AgentDefinition, BuildError};
use a2a_lambda_tests::dialect::{Dialect, Op, SKILL, Say, at};
use a2a_lambda_tests::error_rows::{Fault, NO_PUSH, UNSUPPORTED};
use a2a_lambda_tests::tester::{self, Gate};
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};

type Make = fn(Gate) -> Result<AgentDefinition, BuildError>;

async fn card(world: &World) -> Value {
    let request = Request::new("GET", "/.well-known/agent-card.json");
    world.call(&request).await.json()
}

fn call(method: &str, params: &Value) -> Request {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    Dialect::Rpc10.versioned(Request::post("/", &body))
}

#[tokio::test(start_paused = true)]
async fn every_true_capability_works_and_every_false_one_gives_its_error() {
    let makes: [(Make, bool); 3] = [
        (tester::agent, true),
        (tester::extended_agent, true),
        (tester::agent, false),
    ];
    for (make, on) in makes {
        let world = World::serving(make, |settings| {
            settings.streaming = on;
            settings.push &= on;
        });
        let world = world.unwrap();
        let card = card(&world).await;
        let capabilities = card["capabilities"].as_object().unwrap();
        for (name, value) in capabilities {
            match (name.as_str(), value) {
                ("streaming", value) => streaming(&world, *value == true).await,
                ("pushNotifications", value) => push(&world, *value == true).await,
                ("extendedAgentCard", value) => extended(&world, *value == true).await,
                ("stateTransitionHistory", value) => history(&world, *value == true).await,
                ("extensions", Value::Array(extensions)) => {
                    for extension in extensions {
                        extends(&world, extension).await;
                    }
                }
                other => panic!("no check for the capability {other:?}"),
            }
        }
    }
}

async fn streaming(world: &World, works: bool) {
    for dialect in Dialect::ALL {
        let request = dialect.stream(&Say::to("chunks", "hi"));
        if !works {
            let fault = Fault::new(dialect, UNSUPPORTED);
            fault.check(&world.call(&request).await).unwrap();
            let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
            let id = task["id"].as_str().unwrap();
            let subscribe = dialect.request(Op::Subscribe, id, &dialect.id_only(id));
            fault.check(&world.call(&subscribe).await).unwrap();
            continue;
        }
        let live = world.open(&request).await;
        let content_type = live.headers["content-type"].to_str().unwrap().to_owned();
        assert_eq!(content_type, "text/event-stream", "{dialect:?}");
    }
}

async fn push(world: &World, works: bool) {
    let dialect = Dialect::Rpc10;
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    let config = json!({"taskId": task["id"], "url": "https://hooks.example/a"});
    let reply = world
        .call(&call("CreateTaskPushNotificationConfig", &config))
        .await;
    if works {
        let made = dialect.result(&reply);
        assert_eq!(made["url"], "https://hooks.example/a", "{}", reply.text());
    } else {
        Fault::new(dialect, NO_PUSH).check(&reply).unwrap();
    }
}

async fn extended(world: &World, works: bool) {
    let request = call("GetExtendedAgentCard", &json!({})).from("acme:ann");
    let reply = world.call(&request).await;
    if works {
        assert_eq!(Dialect::Rpc10.result(&reply)["name"], "tester");
    } else {
        Fault::new(Dialect::Rpc10, UNSUPPORTED)
            .check(&reply)
            .unwrap();
    }
}

/// `stateTransitionHistory`, which only the older generations have.
async fn history(world: &World, works: bool) {
    assert!(works, "every agent keeps the history");
    for dialect in [Dialect::Rpc03, Dialect::Rpc01] {
        let say = Say::to("echo", "hi").under("h:1");
        let task = dialect.task(&world.call(&dialect.send(&say)).await);
        let steps = at(&task, "/metadata/a2a-lambda~1stateTransitions");
        assert!(steps.as_array().is_some_and(|s| s.len() > 1), "{task}");
    }
}

async fn extends(world: &World, extension: &Value) {
    assert!(extension["description"].is_string(), "{extension}");
    assert_ne!(extension["required"], true, "no extension is required");
    let uri = extension["uri"].as_str().unwrap();
    match uri.strip_prefix("urn:a2a-lambda:ext:") {
        Some("skill-schemas:1") => {
            let schema = at(extension, "/params/skills/add/inputSchema");
            assert_eq!(at(schema, "/required"), &json!(["a", "b"]));
        }
        Some("skill-route:1") => {
            let dialect = Dialect::Rest10;
            let mut params = dialect.say(&Say::to("add", "hi"));
            params["message"]["metadata"] = json!({SKILL: "add"});
            params["message"]["parts"] = json!([{"data": {"a": 2, "b": 3}}]);
            let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
            let sum = at(&dialect.task(&reply), "/artifacts/0/parts/0/data/sum").clone();
            assert_eq!(sum, 5, "{}", reply.text());
        }
        Some("idempotency:1") => {
            let dialect = Dialect::Rest10;
            let mut params = dialect.say(&Say::to("echo", "hi"));
            params["metadata"] = json!({"a2a-lambda/idempotencyKey": "k"});
            let request = dialect.request(Op::Send, "", &params);
            let first = dialect.task(&world.call(&request).await);
            let again = dialect.task(&world.call(&request).await);
            assert_eq!(at(&first, "/id"), at(&again, "/id"));
        }
        Some("webhook-signatures:1") => {
            let dialect = Dialect::Rest10;
            let mut params = dialect.say(&Say::to("echo", "hi"));
            let config = json!({"url": "https://hook.example/", "token": "a-token"});
            params["configuration"] = json!({"taskPushNotificationConfig": config});
            let signed = |params: &Value| {
                let request = dialect.request(Op::Send, "", params);
                request.header("a2a-extensions", uri)
            };
            let reply = world.call(&signed(&params)).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let config = &mut params["configuration"]["taskPushNotificationConfig"];
            *config = json!({"url": "https://hook.example/"});
            let refused = world.call(&signed(&params)).await;
            assert_eq!(refused.status, 400, "nothing could sign the deliveries");
            let field = "configuration.taskPushNotificationConfig.token";
            assert!(refused.text().contains(field), "{}", refused.text());
        }
        // `uploads.rs` and `contexts.rs` test these.
        Some("uploads:1" | "contexts:1") => {}
        _ => panic!("no check for the extension {uri}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_names_the_requested_extensions_that_are_active() {
    let world = World::new().unwrap();
    let card = card(&world).await;
    let declared = at(&card, "/capabilities/extensions").as_array().unwrap();
    for extension in declared {
        let uri = extension["uri"].as_str().unwrap();
        let request = Dialect::Rest10.send(&Say::to("echo", "hi"));
        let request = request.header("a2a-extensions", &format!("urn:other, {uri}"));
        let reply = world.call(&request).await;
        assert_eq!(reply.header("a2a-extensions"), uri);
    }
}
