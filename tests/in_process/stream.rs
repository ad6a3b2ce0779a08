//! `SendStreamingMessage` and the streaming methods of the older generations.

use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::UNAVAILABLE;
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::watched_store::STORE_CANARY;
use a2a_lambda_tests::world::{Reply, World};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_stream_has_the_task_then_its_events_in_order
    a_stream_closes_at_a_question_and_the_answer_opens_another
    a_reply_without_a_task_is_the_only_event_of_its_stream
    the_first_frame_waits_for_the_first_write
    an_event_waits_for_its_own_write
    an_error_after_the_first_frame_is_the_last_event
    a_client_that_disconnects_does_not_stop_the_turn
}

/// The events of the skill `chunks`, as a dialect shows them.
pub(crate) fn shown_by_chunks(dialect: Dialect, skill: &str) -> Vec<String> {
    let [zero, one] = if dialect.is_v01() {
        ["#0 ", "#1 "]
    } else {
        ["", ""]
    };
    vec![
        "status working on it".to_owned(),
        format!("artifact {zero}letters a"),
        format!("artifact {zero}letters +b"),
        format!("artifact {zero}letters +c."),
        format!("artifact {one}{skill} done."),
        "status completed".to_owned(),
    ]
}

pub(crate) fn first(dialect: Dialect, state: &str) -> String {
    let kind = if dialect.is_v01() { "status" } else { "task" };
    format!("{kind} {state}")
}

fn reported(dialect: Dialect, reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    assert_eq!(reply.header("content-type"), "text/event-stream");
    assert_eq!(reply.header("cache-control"), "no-cache");
    let frames = frames(reply).unwrap();
    numbered(&frames);
    frames
        .iter()
        .map(|frame| dialect.described(frame))
        .collect()
}

/// Checks that ids are `<version>.<n>`, without gaps and rising. Ids of tasks
/// that a client named have a third part.
fn numbered(frames: &[Frame]) {
    let ids: Vec<(u64, u32)> = frames
        .iter()
        .map(|frame| {
            let mut parts = frame.id.as_ref().unwrap().split('.');
            let (version, n) = (parts.next().unwrap(), parts.next().unwrap());
            (version.parse().unwrap(), n.parse().unwrap())
        })
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for pair in ids.windows(2) {
        let next = pair[1] == (pair[0].0, pair[0].1 + 1) || pair[1].1 == 1;
        assert!(next, "a gap in {ids:?}");
    }
}

async fn a_stream_has_the_task_then_its_events_in_order(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.stream(&Say::to("chunks", "hi"))).await;
    // A2A 1.0 §3.1.2: a stream begins with the task, or with the one message.
    let mut expected = vec![first(dialect, "working")];
    expected.extend(shown_by_chunks(dialect, "chunks"));
    assert_eq!(reported(dialect, &reply), expected, "{dialect:?}");
    let frames = frames(&reply).unwrap();
    assert!(frames.iter().all(|frame| frame.name.is_none()));
    if dialect.is_rpc() {
        assert!(frames.iter().all(|frame| frame.data["id"] == 7));
    }
    let last: Vec<bool> = frames
        .iter()
        .filter_map(|it| dialect.is_final(it))
        .collect();
    match last.split_last() {
        None => assert!(dialect.is_v10()),
        Some((last, others)) => assert!(*last && !others.contains(&true), "{dialect:?}"),
    }
}

async fn a_stream_closes_at_a_question_and_the_answer_opens_another(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.stream(&Say::to("ask", "hi"))).await;
    let expected = [
        first(dialect, "working"),
        "status input-required which one?".to_owned(),
    ];
    assert_eq!(reported(dialect, &reply), expected, "{dialect:?}");
    let asked = frames(&reply).unwrap();
    // 0.1 and 0.3 set `final` on the event that closes the stream; 1.0 has no such member.
    assert_eq!(
        dialect.is_final(&asked[1]),
        (!dialect.is_v10()).then_some(true)
    );

    let id = world.store.commits()[0].task.to_string();
    let answer = dialect.stream(&Say::in_task(&id, "chunks"));
    let reply = world.call(&answer).await;
    let mut expected = vec![first(dialect, "working")];
    expected.extend(shown_by_chunks(dialect, "ask"));
    assert_eq!(reported(dialect, &reply), expected, "{dialect:?}");
}

async fn a_reply_without_a_task_is_the_only_event_of_its_stream(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.stream(&Say::to("greet", "hi"))).await;
    let frames = frames(&reply).unwrap();
    let reported: Vec<String> = frames
        .iter()
        .map(|frame| dialect.described(frame))
        .collect();
    if dialect.is_v01() {
        assert_eq!(reported.last().unwrap(), "status completed hello there");
        return;
    }
    assert_eq!(reported, ["message hello there"], "{dialect:?}");
    assert_eq!(frames[0].id, None);
    assert_eq!(world.store.writes(), 0);
}

async fn the_first_frame_waits_for_the_first_write(dialect: Dialect) {
    let world = World::new().unwrap();
    world.store.hold();
    let request = dialect.stream(&Say::to("chunks", "hi"));
    let mut opening = Box::pin(world.open(&request));
    let early = tokio::time::timeout(Duration::from_secs(60), &mut opening).await;
    assert!(early.is_err(), "{dialect:?}: shown before it was stored");
    world.store.release();
    let reply = opening.await.finish().await;
    assert_eq!(reported(dialect, &reply).len(), 7, "{dialect:?}");
}

async fn an_event_waits_for_its_own_write(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut live = world.open(&dialect.stream(&Say::to("slow", "hi"))).await;
    assert!(live.next().await.unwrap().is_some());
    world.store.hold();
    world.gate.open();
    let silent = live.is_silent_for(Duration::from_secs(60)).await;
    assert!(silent, "{dialect:?}: shown before it was stored");
    assert!(world.store.commits().len() > 1, "nothing was held");
    world.store.release();
    let rest = frames(&live.finish().await).unwrap();
    let rest: Vec<String> = rest.iter().map(|frame| dialect.described(frame)).collect();
    let index = if dialect.is_v01() { "#0 " } else { "" };
    let result = format!("artifact {index}slow at last.");
    assert_eq!(rest, [result.as_str(), "status completed"], "{dialect:?}");
}

async fn an_error_after_the_first_frame_is_the_last_event(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut live = world.open(&dialect.stream(&Say::to("slow", "hi"))).await;
    assert!(live.next().await.unwrap().is_some());
    world.store.refuse_commits(true);
    world.gate.open();
    let reply = live.finish().await;
    assert!(!reply.text().contains(STORE_CANARY), "{}", reply.text());
    let rest = frames(&reply).unwrap();
    let [
        Frame {
            id: None,
            name,
            data,
        },
    ] = rest.as_slice()
    else {
        panic!("{dialect:?}: {rest:?}");
    };
    let code = UNAVAILABLE.code(dialect).unwrap();
    match dialect {
        Dialect::Rpc10 | Dialect::Rpc03 | Dialect::Rpc01 => {
            assert_eq!(
                (name, at(data, "/error/code")),
                (&None, &code.into()),
                "{data}"
            );
            assert_eq!(data["id"], 7);
        }
        Dialect::Rest10 => {
            assert_eq!(name.as_deref(), Some("error"));
            assert_eq!(at(data, "/error/status"), "UNAVAILABLE", "{data}");
        }
        Dialect::Rest03 | Dialect::Path01 => {
            assert_eq!(name.as_deref(), Some("error"));
            assert_eq!(data["code"], code, "{data}");
        }
    }
}

async fn a_client_that_disconnects_does_not_stop_the_turn(dialect: Dialect) {
    let world = World::new().unwrap();
    let live = world.open(&dialect.stream(&Say::to("slow", "now"))).await;
    drop(live);
    world.gate.open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = world.store.commits()[0].task.to_string();
    let read = dialect.task(&world.call(&dialect.of_task(Op::Get, &id)).await);
    assert_eq!(dialect.state(&read), "completed", "{dialect:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_open_by_comments() {
    let world = World::new().unwrap();
    let request = Dialect::Rest10.stream(&Say::to("slow", "now"));
    let live = world.open(&request).await;
    let opener = async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        world.gate.open();
    };
    let (reply, ()) = tokio::join!(live.finish(), opener);
    // A comment comes every 4 s.
    assert_eq!(
        reply.text().matches(": ping\n").count(),
        12,
        "{}",
        reply.text()
    );
    assert_eq!(
        reported(Dialect::Rest10, &reply).last().unwrap(),
        "status completed"
    );
}
