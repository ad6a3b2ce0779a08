//! The extended agent card and the catalogue of skills.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::{Cards, CardsByUrl, Function, HttpService};
use a2a_lambda::origin::BaseUrl;
use a2a_lambda::protocol::{Capabilities, CardInfo, CardShape, SkillInfo};
use a2a_lambda_rows::{each_row, each_row_async};
use a2a_lambda_tests::dialect::{Dialect, at};
use a2a_lambda_tests::error_rows::{
    Fault, NO_EXTENDED_CARD, NOT_FOUND, Row, UNAUTHENTICATED, UNSUPPORTED,
};
use a2a_lambda_tests::tester;
use a2a_lambda_tests::world::{Request, World, behind_a_gateway, send};
use serde_json::{Value, json};
use std::sync::Arc;

const CARD: &str = "/.well-known/agent-card.json";

/// Every way to request the extended card.
fn ways() -> Vec<(Dialect, Request)> {
    let call = |method| json!({"jsonrpc": "2.0", "id": 7, "method": method});
    let ways = [
        (
            Dialect::Rpc10,
            Request::post("/", &call("GetExtendedAgentCard")),
        ),
        (Dialect::Rest10, Request::new("GET", "/extendedAgentCard")),
        (
            Dialect::Rpc03,
            Request::post("/", &call("agent/getAuthenticatedExtendedCard")),
        ),
        (Dialect::Rest03, Request::new("GET", "/v1/card")),
        (
            Dialect::Rest03,
            Request::new("GET", "/agent/authenticatedExtendedCard"),
        ),
    ];
    ways.into_iter()
        .map(|(dialect, request)| (dialect, dialect.versioned(request)))
        .collect()
}

fn skills(card: &Value) -> Vec<&str> {
    let skills = card["skills"].as_array().unwrap().iter();
    skills.map(|skill| skill["id"].as_str().unwrap()).collect()
}

async fn refused(world: &World, row: Row) {
    for (dialect, request) in ways() {
        let reply = world.call(&request).await;
        let fault = Fault::new(dialect, row);
        assert_eq!(fault.check(&reply), Ok(()), "{dialect:?} {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn an_authenticated_caller_gets_the_extended_card_in_every_generation() {
    for shape in [CardShape::Union, CardShape::V1] {
        let world = World::serving(tester::extended_agent, |s| s.card = shape).unwrap();
        let public = world.call(&Request::new("GET", CARD)).await.json();
        assert_eq!(*at(&public, "/capabilities/extendedAgentCard"), true);
        let announced = public.get("supportsAuthenticatedExtendedCard");
        assert_eq!(announced.is_some(), shape == CardShape::Union);
        assert!(!skills(&public).contains(&"hidden"));
        assert!(!public.to_string().contains("hidden"));
        each_row_async(ways(), async |(dialect, request)| {
            let reply = world.call(&request.from("acme:ann")).await;
            let card = dialect.result(&reply);
            assert_eq!(card["description"], "What only known callers are told.");
            assert_eq!(skills(&card).last(), Some(&"hidden"), "{dialect:?}");
            assert_eq!(skills(&card).len(), skills(&public).len() + 1);
            let schemas = at(&card, "/capabilities/extensions/0/params/skills/hidden");
            assert!(schemas["inputSchema"].is_object(), "{schemas}");
            // The other members equal those of the public card.
            each_row(["name", "version", "supportedInterfaces", "url"], |same| {
                assert_eq!(card.get(same), public.get(same), "{same}");
            });
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_extended_card_requires_authentication() {
    // In development a call without a token has the tenant `local`, which proves
    // nothing; behind a gateway there is no such caller.
    let world = World::serving(tester::extended_agent, |_| ()).unwrap();
    refused(&world, UNAUTHENTICATED).await;
    let gateway = World::serving(tester::extended_agent, behind_a_gateway).unwrap();
    refused(&gateway, UNAUTHENTICATED).await;
    each_row_async(ways(), async |(dialect, request)| {
        let door = Function::of(request.method, request.path());
        let authorizer = json!({"tenant": "acme", "subject": "ann"});
        let identity = Identity {
            authorizer: authorizer.as_object().cloned(),
            authorization: None,
        };
        let reply = send(&gateway.edge(door), &request, identity).await;
        let card = dialect.result(&reply.finish().await);
        assert!(skills(&card).contains(&"hidden"), "{dialect:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_declares_no_extended_card_refuses_it() {
    let world = World::new().unwrap();
    refused(&world, UNSUPPORTED).await;
    each_row_async(ways(), async |(dialect, request)| {
        let reply = world.call(&request.from("acme:ann")).await;
        Fault::new(dialect, UNSUPPORTED).check(&reply).unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_extended_card_that_is_declared_but_missing_has_its_own_error() {
    let info = CardInfo {
        name: "bare".to_owned(),
        description: "Promises too much.".to_owned(),
        version: "1.0.0".to_owned(),
        base_url: "https://agent.example".to_owned(),
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        capabilities: Capabilities {
            extended_agent_card: true,
            ..Capabilities::default()
        },
        skills: vec![SkillInfo {
            id: "x".to_owned(),
            name: "x".to_owned(),
            description: "x".to_owned(),
            tags: vec!["x".to_owned()],
            ..SkillInfo::default()
        }],
        ..CardInfo::default()
    };
    let cards = Cards::new(&info, CardShape::Union).unwrap();
    let url = BaseUrl::new(Some(info.base_url), None);
    let cards = Arc::new(CardsByUrl::new(url, move |_| Ok(cards.clone())));
    let auth = a2a_lambda::auth::Authentication::new(a2a_lambda::auth::AuthMode::Dev, None);
    each_row_async(ways(), async |(dialect, request)| {
        let door = Function::of(request.method, request.path());
        let edge = HttpService::of_cards(door, Arc::clone(&cards), auth.clone());
        let identity = Identity {
            authorizer: None,
            authorization: Some("Bearer dev:acme:ann".to_owned()),
        };
        let reply = send(&edge, &request, identity).await.finish().await;
        let fault = Fault::new(dialect, NO_EXTENDED_CARD);
        assert_eq!(fault.check(&reply), Ok(()), "{dialect:?} {}", reply.text());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_path_of_another_tenant_gives_no_extended_card() {
    let world = World::serving(tester::extended_agent, |_| ()).unwrap();
    let at = |tenant: &str| {
        let request = Request::new("GET", format!("/{tenant}/extendedAgentCard"));
        Dialect::Rest10.versioned(request).from("acme:ann")
    };
    assert_eq!(world.call(&at("acme")).await.status, 200);
    let reply = world.call(&at("evil")).await;
    Fault::new(Dialect::Rest10, NOT_FOUND)
        .check(&reply)
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_lists_skills_with_their_schemas() {
    let world = World::serving(tester::extended_agent, |_| ()).unwrap();
    let request = Request::new("GET", "/a2a-lambda/skills");
    let reply = world.call(&request).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let catalogue = reply.json();
    assert!(!skills(&catalogue).contains(&"hidden"));
    let add = catalogue["skills"].as_array().unwrap().iter();
    let add = add.clone().find(|skill| skill["id"] == "add").unwrap();
    assert_eq!(at(add, "/inputSchema/required"), &json!(["a", "b"]));
    assert_eq!(at(add, "/outputSchema/required"), &json!(["sum"]));
    assert_eq!((&add["task"], &add["asks"]), (&json!(true), &json!(false)));
    let known = world.call(&request.from("acme:ann")).await.json();
    assert_eq!(skills(&known).last(), Some(&"hidden"));
    assert_eq!(skills(&known).len(), skills(&catalogue).len() + 1);
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_requires_authentication() {
    let world = World::with(behind_a_gateway).unwrap();
    let reply = world.call(&Request::new("GET", "/a2a-lambda/skills")).await;
    Fault::new(Dialect::Rest10, UNAUTHENTICATED)
        .check(&reply)
        .unwrap();
    for wrong in ["POST", "DELETE"] {
        let reply = world.call(&Request::new(wrong, "/a2a-lambda/skills")).await;
        assert_eq!(reply.status, 404, "{wrong}");
    }
}
