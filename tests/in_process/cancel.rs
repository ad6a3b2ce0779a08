//! `CancelTask` and the cancel methods of the older generations.

use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{FINISHED, Fault, NOT_CANCELABLE};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use futures::future::join_all;
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_canceled_task_refuses_messages_and_changes_no_more
    a_repeated_cancel_returns_the_canceled_task
    after_a_cancel_no_later_output_is_visible
}

async fn a_canceled_task_refuses_messages_and_changes_no_more(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    let id = task["id"].as_str().unwrap();
    let cancel = dialect.of_task(Op::Cancel, id);
    let canceled = dialect.task(&world.call(&cancel).await);
    assert_eq!(dialect.state(&canceled), "canceled", "{dialect:?}");
    let writes = world.store.writes();
    let late = world.call(&dialect.send(&Say::in_task(id, "blue"))).await;
    Fault::new(dialect, FINISHED).check(&late).unwrap();
    assert_eq!(world.store.writes(), writes);
}

async fn a_repeated_cancel_returns_the_canceled_task(dialect: Dialect) {
    let world = World::new().unwrap();
    world.store.take(Duration::from_millis(10));
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    let id = task["id"].as_str().unwrap();
    let cancel = dialect.of_task(Op::Cancel, id);
    // A2A 1.0 §3.3.1: also of four at once each gets the task.
    let replies = join_all((0..4).map(|_| world.call(&cancel))).await;
    let first = dialect.task(&replies[0]);
    assert_eq!(dialect.state(&first), "canceled", "{dialect:?}");
    let writes = world.store.writes();
    let again = world.call(&cancel).await;
    for reply in replies.iter().chain([&again]) {
        assert_eq!(dialect.task(reply), first, "{dialect:?}");
    }
    assert_eq!(world.store.writes(), writes);
    // A2A 1.0 §3.1.5: a task that has ended otherwise cannot be canceled.
    for skill in ["echo", "refused", "declines"] {
        let say = Say::to(skill, "hi").under(skill);
        let task = dialect.task(&world.call(&dialect.send(&say)).await);
        let id = task["id"].as_str().unwrap();
        let refused = world.call(&dialect.of_task(Op::Cancel, id)).await;
        Fault::new(dialect, NOT_CANCELABLE).check(&refused).unwrap();
    }
}

async fn after_a_cancel_no_later_output_is_visible(dialect: Dialect) {
    let world = World::new().unwrap();
    let slow = dialect.stream(&Say::to("slow", "now"));
    let mut live = world.open(&slow).await;
    live.next().await.unwrap().unwrap();
    let id = world.store.commits()[0].task.to_string();
    let canceled = world.call(&dialect.of_task(Op::Cancel, &id)).await;
    assert_eq!(
        dialect.state(&dialect.task(&canceled)),
        "canceled",
        "{dialect:?}"
    );
    world.gate.open();
    let rest = frames(&live.finish().await).unwrap();
    let reported: Vec<String> = rest.iter().map(|frame| dialect.described(frame)).collect();
    assert_eq!(reported, ["status canceled"], "{dialect:?}");
    let read = dialect.task(&world.call(&dialect.of_task(Op::Get, &id)).await);
    assert_eq!(dialect.state(&read), "canceled");
    assert!(
        read.get("artifacts")
            .is_none_or(|list| list == &serde_json::json!([]))
    );
}
