//! Limits, versions and callers, as a client meets them.

use super::{Client, obedient, obeys, reference};
use crate::limits::limited;
use a2a_lambda::engine::CallRate;
use a2a_lambda_tests::dialect::{Dialect, Op};
use a2a_lambda_tests::error_rows::{Fault, NO_PUSH, UNSUPPORTED, VERSION};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use serde_json::json;
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_tenant_above_its_rate_waits_as_long_as_it_is_told
    a_skill_above_its_rate_leaves_the_others_free
}

async fn a_tenant_above_its_rate_waits_as_long_as_it_is_told(dialect: Dialect) {
    let world = World::serving(obeys, |settings| {
        settings.policy.limits.rates.calls = Some(CallRate::per_minute(2));
    });
    let world = world.unwrap();
    let ann = Client::new(&world, dialect).from("acme:ann");
    let bob = Client::new(&world, dialect).from("acme:bob");
    let stranger = Client::new(&world, dialect).from("other:ann");
    ann.says("echo hi").await;
    bob.says("echo hi").await;
    for client in [&ann, &bob] {
        let reply = client.sends(&client.message("echo hi", None, None)).await;
        limited(dialect, &reply, "30");
        let stream = client.message("echo hi", None, None);
        let stream = dialect.request(Op::Stream, "", &stream);
        limited(dialect, &client.call(stream).await, "30");
    }
    stranger.says("echo hi").await;
    world.clock.advance(Duration::from_secs(29));
    let early = ann.sends(&ann.message("echo hi", None, None)).await;
    limited(dialect, &early, "1");
    world.clock.advance(Duration::from_secs(1));
    ann.says("echo hi").await;
}

async fn a_skill_above_its_rate_leaves_the_others_free(dialect: Dialect) {
    let world = World::serving(
        |_| reference_agent::agent(),
        |settings| {
            let rate = ("add".to_owned(), CallRate::per_minute(1));
            settings.policy.limits.rates.skills.extend([rate]);
        },
    );
    let world = world.unwrap();
    let client = Client::new(&world, dialect).from("acme:ann");
    assert_eq!(client.words(&client.says("add 1 and 2").await), "3");
    let commits = world.store.commits().len();
    let reply = client
        .sends(&client.message("add 3 and 4", None, None))
        .await;
    limited(dialect, &reply, "60");
    assert_eq!(world.store.commits().len(), commits, "no task was made");
    client.says("Generate logo").await;
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(client.words(&client.says("add 3 and 4").await), "7");
}

#[tokio::test(start_paused = true)]
async fn the_card_names_the_versions_that_are_served_and_another_is_refused() {
    let world = reference();
    let dialect = Dialect::Rest10;
    let client = Client::new(&world, dialect);
    let card = Request::new("GET", "/.well-known/agent-card.json");
    let card = client.call(card).await.json();
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let versions: Vec<_> = interfaces
        .iter()
        .map(|it| it["protocolVersion"].as_str().unwrap())
        .collect();
    assert!(versions.contains(&"1.0"), "{card}");
    let send = client.message("add 1 and 2", None, None);
    for (version, is_served) in [("1.0", true), ("1.1", false), ("2.0", false)] {
        let request = dialect.request(Op::Send, "", &send);
        let request = request.header("a2a-version", version);
        let reply = client.call(request).await;
        if is_served {
            assert_eq!(client.words(&dialect.task(&reply)), "3");
        } else {
            Fault::new(dialect, VERSION).check(&reply).unwrap();
        }
        assert_eq!(versions.contains(&version), is_served, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_in_the_body_or_the_path_is_not_an_identity() {
    let world = obedient();
    let dialect = Dialect::Rest10;
    let ann = Client::new(&world, dialect).from("acme:ann");
    let task = ann.says("hm").await;
    let thief = Client::new(&world, dialect).from("evil:ann");
    let id = super::id(&task);
    for path in [
        format!("/acme/tasks/{id}"),
        format!("/tasks/{id}?tenant=acme"),
        format!("/tasks/{id}"),
    ] {
        let read = dialect.versioned(Request::new("GET", path.clone()));
        assert_eq!(thief.call(read).await.status, 404, "{path}");
    }
    let mut answer = thief.message("echo mine", Some(id), None);
    answer["tenant"] = json!("acme");
    assert_ne!(thief.sends(&answer).await.status, 200);
    assert_eq!(ann.state(&ann.gets(&task).await), "input-required");
}

#[tokio::test(start_paused = true)]
async fn what_the_card_says_of_streams_and_webhooks_is_so() {
    for is_on in [true, false] {
        let world = World::serving(obeys, |settings| {
            settings.streaming = is_on;
            settings.push = is_on;
        });
        let world = world.unwrap();
        let dialect = Dialect::Rest10;
        let client = Client::new(&world, dialect);
        let card = Request::new("GET", "/.well-known/agent-card.json");
        let card = client.call(card).await.json();
        let capabilities = &card["capabilities"];
        assert_eq!(capabilities["streaming"], is_on, "{capabilities}");
        assert_eq!(capabilities["pushNotifications"], is_on);
        let params = client.message("echo hi", None, None);
        let stream = dialect.request(Op::Stream, "", &params);
        let task = client.says("hm").await;
        let path = format!("/tasks/{}/pushNotificationConfigs", super::id(&task));
        let webhook = json!({"url": "https://hooks.example/a"});
        let webhook = dialect.versioned(Request::post(path, &webhook));
        let (streamed, hooked) = (client.call(stream).await, client.call(webhook).await);
        if is_on {
            assert_eq!(streamed.header("content-type"), "text/event-stream");
            assert_eq!(hooked.json()["url"], "https://hooks.example/a");
        } else {
            Fault::new(dialect, UNSUPPORTED).check(&streamed).unwrap();
            Fault::new(dialect, NO_PUSH).check(&hooked).unwrap();
        }
    }
}
