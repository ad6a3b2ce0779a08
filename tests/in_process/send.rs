//! `SendMessage` and its ancestors.

use a2a_lambda::task::TaskState;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{BUSY, Fault, UNAVAILABLE};
use a2a_lambda_tests::tester::SKILL_CANARY;
use a2a_lambda_tests::watched_store::STORE_CANARY;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_short_send_is_answered_with_the_finished_task() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let reply = world.call(&dialect.send(&Say::to("echo", "hi"))).await;
        assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
        assert_eq!(dialect.words(&task["artifacts"][0]), "echo: hi");
        assert_eq!(reply.header("content-type"), "application/json");
        if dialect.is_rpc() {
            assert_eq!(reply.json()["id"], 7);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_the_shape_of_its_generation() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let reply = world.call(&dialect.send(&Say::to("echo", "hi"))).await;
        let result = dialect.result(&reply);
        let names = |value: &Value| -> String {
            let members = value.as_object().unwrap();
            members
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let wrapped = matches!(dialect, Dialect::Rpc10 | Dialect::Rest10 | Dialect::Rest03);
        assert_eq!(names(&result) == "task", wrapped, "{dialect:?} {result}");
        let members = match dialect {
            Dialect::Rpc10 | Dialect::Rest10 => "artifacts contextId history id status",
            Dialect::Rest03 => "artifacts contextId history id metadata status",
            Dialect::Rpc03 => "artifacts contextId history id kind metadata status",
            Dialect::Rpc01 | Dialect::Path01 => "artifacts id metadata sessionId status",
        };
        let task = dialect.task(&reply);
        assert_eq!(names(&task), members, "{dialect:?}");
        let time = task["status"]["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        assert!(!reply.text().contains("null"), "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn an_envelope_on_a_path_of_0_1_is_answered_with_an_envelope() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rpc01;
    let mut writes = Vec::new();
    let mut request = dialect.send(&Say::to("echo", "hi"));
    for path in ["/tasks/send", "/"] {
        path.clone_into(&mut request.target);
        let reply = world.call(&request).await;
        assert_eq!(reply.json()["id"], 7, "{}", reply.text());
        assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
        writes.push(world.store.writes());
    }
    assert_eq!(writes[0], writes[1], "the second is a retry");
}

#[tokio::test(start_paused = true)]
async fn a_short_send_is_one_write() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        world.call(&dialect.send(&Say::to("echo", "hi"))).await;
        let versions: Vec<u64> = world.store.commits().iter().map(|c| c.version).collect();
        // The id of a 0.1 client is taken before its skill runs.
        let expected: &[u64] = if dialect.is_v01() { &[1, 2] } else { &[1] };
        assert_eq!(versions, expected, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_takes_longer_is_stored_while_its_skill_works() {
    for dialect in [
        Dialect::Rpc10,
        Dialect::Rest10,
        Dialect::Rpc03,
        Dialect::Rest03,
    ] {
        let world = World::new().unwrap();
        let request = dialect.send(&Say::to("slow", "now"));
        let opener = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let commits = world.store.commits();
            assert_eq!(commits.len(), 1, "{dialect:?}");
            assert_eq!(commits[0].state, TaskState::Working);
            world.gate.open();
        };
        let (reply, ()) = tokio::join!(world.call(&request), opener);
        assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
        assert_eq!(world.store.commits().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_to_the_task_that_asked() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let reply = world.call(&dialect.send(&Say::to("ask", "hi"))).await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "input-required", "{dialect:?}");
        assert_eq!(dialect.status_words(&task), "which one?");
        let id = task["id"].as_str().unwrap();
        let context = dialect.context(&task);

        let reply = world.call(&dialect.send(&Say::in_task(id, "again"))).await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "input-required", "{}", reply.text());
        assert_eq!(dialect.status_words(&task), "which one now?");
        assert_eq!(
            (task["id"].as_str(), dialect.context(&task)),
            (Some(id), context.clone())
        );

        let say = Say::in_task(id, "blue").in_context(&context);
        let task = dialect.task(&world.call(&dialect.send(&say)).await);
        assert_eq!(dialect.state(&task), "completed");
        assert_eq!(dialect.words(&task["artifacts"][0]), "blue after 2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_of_0_1_may_say_the_same_twice() {
    for dialect in [Dialect::Rpc01, Dialect::Path01] {
        let world = World::new().unwrap();
        world.call(&dialect.send(&Say::to("ask", "again"))).await;
        let again = dialect.send(&Say::in_task("order:1", "again"));
        for _ in 0..2 {
            let task = dialect.task(&world.call(&again).await);
            assert_eq!(dialect.status_words(&task), "which one now?");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_0_1_gets_the_task_and_runs_nothing() {
    for dialect in [Dialect::Rpc01, Dialect::Path01] {
        let world = World::new().unwrap();
        let request = dialect.send(&Say::to("echo", "hi"));
        let first = world.call(&request).await;
        let writes = world.store.writes();
        let second = world.call(&request).await;
        assert_eq!(first.text(), second.text());
        assert_eq!(world.store.writes(), writes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_only_replies_makes_no_task() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let reply = world.call(&dialect.send(&Say::to("greet", "hi"))).await;
        let result = dialect.result(&reply);
        let said = if dialect.is_v01() {
            assert_eq!(dialect.state(&result), "completed");
            dialect.status_words(&result)
        } else {
            let message = result.get("message").unwrap_or(&result);
            assert!(message.get("taskId").is_none(), "{message}");
            dialect.words(message)
        };
        assert_eq!(said, "hello there", "{dialect:?} {}", reply.text());
        if !dialect.is_v01() {
            assert_eq!(world.store.writes(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_failed_task_with_its_code_and_no_private_text() {
    let skills = [
        ("broken", "INTERNAL_ERROR", "internal error", json!({})),
        (
            "refused",
            "OUT_OF_STOCK",
            "nothing left",
            json!({"left": 0}),
        ),
        ("panics", "INTERNAL_ERROR", "internal error", json!({})),
    ];
    for dialect in Dialect::ALL {
        for (skill, code, text, details) in &skills {
            let world = World::new().unwrap();
            let sent = world.call(&dialect.send(&Say::to(skill, "hi"))).await;
            let task = dialect.task(&sent);
            let id = task["id"].as_str().unwrap();
            let read = world.call(&dialect.of_task(Op::Get, id)).await;
            let streamed = dialect.stream(&Say::to(skill, "hi").under("order:2"));
            let streamed = world.call(&streamed).await;
            for reply in [&sent, &read, &streamed] {
                assert!(!reply.text().contains(SKILL_CANARY), "{}", reply.text());
            }
            assert!(streamed.text().contains(code), "{}", streamed.text());
            for task in [task.clone(), dialect.task(&read)] {
                assert_eq!(dialect.state(&task), "failed", "{dialect:?} {skill}");
                assert_eq!(dialect.status_words(&task), *text);
                let metadata = at(&task, "/status/message/metadata");
                assert_eq!(metadata["a2a-lambda/errorCode"], *code);
                assert_eq!(metadata["a2a-lambda/errorDetails"], *details);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_older_generation_cannot_say_is_said_as_nearly_as_it_can() {
    for dialect in Dialect::ALL {
        for (skill, state, state_01, words) in [
            ("declines", "rejected", "failed", "not today"),
            ("login", "auth-required", "input-required", "sign in first"),
        ] {
            let world = World::new().unwrap();
            let task = dialect.task(&world.call(&dialect.send(&Say::to(skill, "hi"))).await);
            let state = if dialect.is_v01() { state_01 } else { state };
            assert_eq!(dialect.state(&task), state, "{dialect:?}");
            assert_eq!(dialect.status_words(&task), words);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_stay_out_of_the_history() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let task = dialect.task(&world.call(&dialect.send(&Say::to("login", "hi"))).await);
        let id = task["id"].as_str().unwrap();
        let secret = Say::in_task(id, "hunter2-secret");
        let done = world.call(&dialect.send(&secret)).await;
        assert_eq!(dialect.state(&dialect.task(&done)), "completed");
        let read = world.call(&dialect.get(id, 100)).await;
        for reply in [done, read] {
            assert!(!reply.text().contains("hunter2"), "{}", reply.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_store_refuses_nothing_is_shown() {
    for dialect in Dialect::ALL {
        for skill in ["echo", "ask", "chunks"] {
            let world = World::new().unwrap();
            world.store.refuse_commits(true);
            let say = Say::to(skill, "hi");
            for request in [dialect.send(&say), dialect.stream(&say)] {
                let reply = world.call(&request).await;
                Fault::new(dialect, UNAVAILABLE).check(&reply).unwrap();
                assert!(!reply.text().contains(STORE_CANARY));
                assert!(!reply.header("retry-after").is_empty());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_was_refused_can_be_sent_again() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        world.store.refuse_commits(true);
        let request = dialect.send(&Say::to("echo", "hi"));
        world.call(&request).await;
        world.store.refuse_commits(false);
        let task = dialect.task(&world.call(&request).await);
        assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_answers_at_once_exactly_one_wins() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
        let id = task["id"].as_str().unwrap();
        // Both have read the question before either can be stored.
        world.store.hold();
        let (one, two) = (Say::in_task(id, "red"), Say::in_task(id, "blue"));
        let (one, two) = (dialect.send(&one), dialect.send(&two));
        let open = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            world.store.release();
        };
        let (one, two, ()) = tokio::join!(world.call(&one), world.call(&two), open);
        let won = |reply: &Reply| dialect.state(&dialect.task(reply)) == "completed";
        let (winner, loser) = match (won(&one), won(&two)) {
            (true, false) => (one, two),
            (false, true) => (two, one),
            both => panic!("{dialect:?}: {both:?}"),
        };
        Fault::new(dialect, BUSY).check(&loser).unwrap();
        let read = dialect.task(&world.call(&dialect.of_task(Op::Get, id)).await);
        assert_eq!(read["artifacts"], dialect.task(&winner)["artifacts"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_largest_body_is_taken_and_deep_json_up_to_its_limit() {
    for dialect in Dialect::ALL {
        let world = World::new().unwrap();
        let mut request = dialect.send(&Say::to("greet", "hi"));
        let fill = 1024 * 1024 - request.body.len();
        request.body.extend(vec![b' '; fill]);
        let reply = world.call(&request).await;
        assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
        // `params` and what holds it are two levels more in an envelope.
        let levels = if dialect.is_rpc() { 29 } else { 30 };
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let mut params = dialect.say(&Say::to("greet", "hi").under("order:2"));
        params["metadata"] = json!({"x": serde_json::from_str::<Value>(&deep).unwrap()});
        let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
        assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
        assert!(reply.json().get("error").is_none(), "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn the_base_url_answers_with_and_without_its_slash() {
    let world = World::new().unwrap();
    let mut request = Dialect::Rpc10.send(&Say::to("echo", "hi"));
    for target in ["/", "https://agent.example"] {
        target.clone_into(&mut request.target);
        assert_eq!(world.call(&request).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rest_answer_comes_in_the_media_type_of_the_request() {
    let world = World::new().unwrap();
    let special = "application/a2a+json";
    for dialect in [Dialect::Rest10, Dialect::Rest03] {
        let good = dialect.send(&Say::to("echo", "hi"));
        for request in [
            good.clone().header("content-type", special),
            good.header("accept", special),
            Request::new("GET", "/nowhere").header("accept", special),
        ] {
            let reply = world.call(&request).await;
            assert_eq!(reply.header("content-type"), special, "{}", reply.text());
        }
    }
}
