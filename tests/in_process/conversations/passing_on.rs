//! Messages that go to another task than they name, and what is stored of them.

use super::*;

fn reference() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

fn flight() -> Turn {
    says("Book a flight", Begins("book-flight", "flight"))
}

fn sum() -> Turn {
    says("What's 2+2?", Begins("add", "sum"))
}

const REST: Dialect = Dialect::Rest10;

/// A client with an open flight, and a question of the router that lists it.
async fn ask_which(world: &World) -> Client<'_> {
    let mut client = Client::new(world, REST, Context);
    for turn in [flight(), sum(), says("Helsinki", Asks)] {
        client.plays(&turn).await;
    }
    let (question, _) = client.last.clone().unwrap();
    client.names.insert("question", question);
    client
}

/// Sends a text under an idempotency key, in the client's context and to a named task.
async fn send_keyed(client: &Client<'_>, text: &str, task: Option<&str>, key: &str) -> Value {
    let task = task.map(|name| client.id(name));
    let say = Say {
        skill: None,
        task: task.as_deref(),
        context: client.context.as_deref(),
        ..Say::to("", text)
    };
    let request = REST.send(&say).header("Idempotency-Key", key);
    REST.task(&client.world.call(&request).await)
}

#[tokio::test(start_paused = true)]
async fn a_task_that_its_client_names_answers_no_other_one() {
    let world = reference();
    for (id, text) in [
        ("my-1", "Book a flight"),
        ("my-2", "Helsinki"),
        ("my-2", "Helsinki"),
    ] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let say = Say {
            skill: None,
            new_task: id,
            context: Some("session-1"),
            ..Say::to("", text)
        };
        let task = Dialect::Rpc01.task(&world.call(&Dialect::Rpc01.send(&say)).await);
        assert_eq!(task["id"], id, "{task}");
    }
    let client = Client::new(&world, Dialect::Rpc01, Context);
    assert_eq!(client.record("my-1").await.turn, 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_key_of_a_message_that_is_passed_on_returns_the_task_that_got_it() {
    for task in [None, Some("question")] {
        let world = reference();
        let client = ask_which(&world).await;
        let first = send_keyed(&client, "1", task, "key-1").await;
        let again = send_keyed(&client, "1", task, "key-1").await;
        let flight = client.id("flight");
        let expected = task.map_or(flight.clone(), |_| client.id("question"));
        assert_eq!(first["id"], expected, "{first}");
        assert_eq!(
            (&again["id"], REST.status_words(&again)),
            (&json!(flight), "When?".to_owned())
        );
        assert_eq!(client.record(&flight).await.turn, 2);
    }
}

/// Another client answers the listed task while the message is on its way to it.
#[tokio::test(start_paused = true)]
async fn a_question_whose_message_cannot_be_passed_on_does_not_stay_at_work() {
    let world = reference();
    let client = ask_which(&world).await;
    let flight = client.id("flight");
    let oslo = Say {
        skill: None,
        ..Say::in_task(&flight, "Oslo")
    };
    world.store.hold();
    let release = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        world.store.release();
    };
    let oslo = REST.send(&oslo);
    tokio::join!(
        world.call(&oslo),
        send_keyed(&client, "1", Some("question"), "key-1"),
        release
    );
    let question = client.record(&client.id("question")).await;
    assert!(question.state().is_at_rest(), "{:?}", question.state());
}

#[tokio::test(start_paused = true)]
async fn a_choice_counts_for_the_question_that_was_listed_only() {
    let world = reference();
    let mut client = ask_which(&world).await;
    client
        .plays(&says("Oslo", Answers("flight")).to("flight"))
        .await;
    client.plays(&says("1", Asks).to("question")).await;
    let flight = client.record(&client.id("flight")).await;
    assert_eq!(flight.turn, 2, "Helsinki is no date");
}

#[tokio::test(start_paused = true)]
async fn a_word_that_cancels_cancels_one_task_however_often_it_is_sent() {
    let world = reference();
    let mut client = Client::new(&world, REST, Context);
    client.plays(&flight()).await;
    client.plays(&gives(&json!({"foo": 1}), Asks)).await;
    let first = send_keyed(&client, "cancel", None, "key-1").await;
    assert_eq!(REST.state(&first), "canceled");
    let again = send_keyed(&client, "cancel", None, "key-1").await;
    assert_eq!(again["id"], first["id"]);
    let flight = client.record(&client.id("flight")).await;
    assert!(flight.state().is_interrupted());
    for _ in 0..2 {
        let say = Say {
            skill: None,
            ..Say::in_task(flight.id.as_str(), "cancel")
        };
        let task = REST.task(&world.call(&REST.send(&say)).await);
        assert_eq!(REST.state(&task), "canceled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_config_goes_with_the_message() {
    let world = reference();
    let client = ask_which(&world).await;
    let say = Say {
        skill: None,
        context: client.context.as_deref(),
        ..Say::to("", "1")
    };
    let mut params = REST.say(&say);
    params["configuration"]["taskPushNotificationConfig"] =
        json!({"id": "hook", "url": "https://client.example/hook"});
    let reply = world.call(&REST.request(Op::Send, "", &params)).await;
    assert_eq!(
        REST.task(&reply)["id"],
        client.id("flight"),
        "{}",
        reply.text()
    );
    let flight = client.record(&client.id("flight")).await;
    let question = client.record(&client.id("question")).await;
    assert_eq!((flight.push_ids.len(), question.push_ids.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_chosen_skill_gets_all_texts_that_chose_nothing() {
    for (texts, gets) in [
        (
            &["Create something nice", "knowledge_store"][..],
            "Create something nice",
        ),
        (&["Say this", "2026", "NaN"], "Say this\n2026\nNaN"),
    ] {
        let world = reference();
        let mut client = Client::new(&world, REST, Task);
        for text in texts {
            client.plays(&says(text, Asks)).await;
        }
        let (reply, _) = client.send(&says("echo", Asks)).await;
        assert_eq!(REST.status_words(&REST.task(&reply)), gets);
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_for_an_older_question_of_the_router_is_refused() {
    let world = reference();
    let mut client = Client::new(&world, REST, Context);
    client.plays(&says("Zzz qqq", Asks)).await;
    let (question, _) = client.last.clone().unwrap();
    client.names.insert("question", question);
    client
        .plays(&says("Format my report", Begins("format-report", "report")))
        .await;
    client
        .plays(&says("PDF", Answers("report")).to("report"))
        .await;
    client
        .plays(&says("sk-secret-123", Refused).to("question"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_question_keeps_the_open_tasks_that_it_lists() {
    let world = reference();
    let mut client = ask_which(&world).await;
    client.plays(&says("hm hm", Asks).to("question")).await;
    client
        .plays(&says("1", Forwards("flight")).to("question"))
        .await;
}
