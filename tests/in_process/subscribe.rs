//! `SubscribeToTask` and `tasks/resubscribe`.

use crate::stream::{first, shown_by_chunks};
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Request, World};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_subscription_stays_open_at_a_question_and_ends_with_the_task
    a_subscription_ends_with_a_cancel
    every_stream_of_a_task_shows_the_same_events_in_the_same_order
    a_stream_cut_after_any_frame_resumes_with_the_next_frame
    a_running_stream_can_be_resumed_and_followed_to_its_end
}

fn reported(dialect: Dialect, frames: &[Frame]) -> Vec<String> {
    frames
        .iter()
        .map(|frame| dialect.described(frame))
        .collect()
}

async fn asking(world: &World, dialect: Dialect) -> String {
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    task["id"].as_str().unwrap().to_owned()
}

async fn a_subscription_stays_open_at_a_question_and_ends_with_the_task(dialect: Dialect) {
    let world = World::new().unwrap();
    let id = asking(&world, dialect).await;
    let mut live = world.open(&dialect.of_task(Op::Subscribe, &id)).await;
    assert_eq!(live.status, 200, "{dialect:?}");
    let start = live.next().await.unwrap().unwrap();
    let begins = dialect.described(&start);
    assert!(
        begins.starts_with(&first(dialect, "input-required")),
        "{begins}"
    );
    assert_ne!(dialect.is_final(&start), Some(true));
    // The 1.0 kit needs a subscription to stay open while its task waits for input.
    assert!(
        live.is_silent_for(Duration::from_secs(120)).await,
        "{dialect:?}"
    );

    let answer = dialect.send(&Say::in_task(&id, "chunks"));
    let (reply, answered) = tokio::join!(live.finish(), world.call(&answer));
    assert_eq!(dialect.state(&dialect.task(&answered)), "completed");
    let rest = frames(&reply).unwrap();
    let mut expected = vec!["status working".to_owned()];
    expected.extend(shown_by_chunks(dialect, "ask"));
    assert_eq!(reported(dialect, &rest), expected, "{dialect:?}");
    let last = dialect.is_final(rest.last().unwrap());
    assert_eq!(last, (!dialect.is_v10()).then_some(true));
}

#[tokio::test(start_paused = true)]
async fn get_and_post_both_subscribe() {
    for (dialect, base) in [(Dialect::Rest10, ""), (Dialect::Rest03, "/v1")] {
        let world = World::new().unwrap();
        let id = asking(&world, dialect).await;
        let path = format!("{base}/tasks/{id}:subscribe");
        // The prose of A2A 1.0 says POST and its proto GET, so the agent serves both.
        let read = dialect.versioned(Request::new("GET", path));
        for request in [dialect.of_task(Op::Subscribe, &id), read] {
            let start = world.open(&request).await.next().await.unwrap().unwrap();
            assert_eq!(dialect.described(&start), "task input-required");
        }
    }
}

async fn a_subscription_ends_with_a_cancel(dialect: Dialect) {
    let world = World::new().unwrap();
    let id = asking(&world, dialect).await;
    let mut live = world.open(&dialect.of_task(Op::Subscribe, &id)).await;
    live.next().await.unwrap().unwrap();
    let cancel = dialect.of_task(Op::Cancel, &id);
    let (reply, _) = tokio::join!(live.finish(), world.call(&cancel));
    let rest = frames(&reply).unwrap();
    assert_eq!(reported(dialect, &rest), ["status canceled"], "{dialect:?}");
    assert!(!reply.text().contains("retry"), "the task has ended");
}

#[tokio::test(start_paused = true)]
async fn an_idle_subscription_closes_after_five_minutes() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rpc10;
    let id = asking(&world, dialect).await;
    let began = tokio::time::Instant::now();
    let reply = world.call(&dialect.of_task(Op::Subscribe, &id)).await;
    assert_eq!(frames(&reply).unwrap().len(), 1);
    let lasted = began.elapsed().as_secs();
    // A stream ends after 5 min; `retry` makes an SSE client reconnect after 1 s.
    assert!((295..=305).contains(&lasted), "{lasted} s");
    assert!(
        reply.text().ends_with("\nretry: 1000\n"),
        "{}",
        reply.text()
    );
}

// A2A 1.0 §3.5.2: all streams of a task show the same events in the same order.
async fn every_stream_of_a_task_shows_the_same_events_in_the_same_order(dialect: Dialect) {
    let world = World::new().unwrap();
    let id = asking(&world, dialect).await;
    let subscribe = dialect.of_task(Op::Subscribe, &id);
    let (mut one, mut two) = (world.open(&subscribe).await, world.open(&subscribe).await);
    one.next().await.unwrap().unwrap();
    two.next().await.unwrap().unwrap();
    let answer = dialect.stream(&Say::in_task(&id, "chunks"));
    let (own, one, two) = tokio::join!(world.call(&answer), one.finish(), two.finish());
    let one = frames(&one).unwrap();
    assert_eq!(one, frames(&two).unwrap(), "{dialect:?}");
    // The stream of the answer begins with the task, in the state after the
    // first of these events.
    let own = frames(&own).unwrap();
    assert_eq!(own[0].id, one[0].id);
    assert_eq!(reported(dialect, &own[1..]), reported(dialect, &one[1..]));
    let ids = |frames: &[Frame]| -> Vec<_> { frames.iter().map(|f| f.id.clone()).collect() };
    assert_eq!(ids(&own), ids(&one));
}

async fn a_stream_cut_after_any_frame_resumes_with_the_next_frame(dialect: Dialect) {
    let world = World::new().unwrap();
    let whole = world.call(&dialect.stream(&Say::to("chunks", "hi"))).await;
    let whole = frames(&whole).unwrap();
    assert_eq!(whole.len(), 7);
    let id = world.store.commits()[0].task.to_string();
    for (seen, frame) in whole.iter().enumerate() {
        let resume = dialect.of_task(Op::Subscribe, &id);
        let resume = resume.header("last-event-id", frame.id.as_ref().unwrap());
        let reply = world.call(&resume).await;
        assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
        let again = frames(&reply).unwrap();
        let (start, rest) = again.split_first().unwrap();
        assert_eq!(start.id, None, "{dialect:?}: {start:?}");
        let state = if seen == 6 { "completed" } else { "working" };
        let begins = dialect.described(start);
        assert!(
            begins.starts_with(&first(dialect, state)),
            "{dialect:?}: {begins}"
        );
        assert_eq!(rest, &whole[seen + 1..], "{dialect:?} after {:?}", frame.id);
        // A task with its artifacts before the replayed events would show chunks twice.
        let text = start.data.to_string();
        assert!(
            !text.contains("artifacts") && !text.contains("history"),
            "{text}"
        );
    }
}

async fn a_running_stream_can_be_resumed_and_followed_to_its_end(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut live = world.open(&dialect.stream(&Say::to("slow", "now"))).await;
    let start = live.next().await.unwrap().unwrap();
    drop(live);
    let id = world.store.commits()[0].task.to_string();
    let resume = dialect.of_task(Op::Subscribe, &id);
    let resume = resume.header("last-event-id", start.id.as_ref().unwrap());
    let mut live = world.open(&resume).await;
    let again = live.next().await.unwrap().unwrap();
    assert!(
        dialect
            .described(&again)
            .starts_with(&first(dialect, "working"))
    );
    world.gate.open();
    let rest = frames(&live.finish().await).unwrap();
    let index = if dialect.is_v01() { "#0 " } else { "" };
    let result = format!("artifact {index}slow at last.");
    assert_eq!(
        reported(dialect, &rest),
        [result.as_str(), "status completed"]
    );
}
