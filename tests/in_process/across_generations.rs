//! Contexts and questions across generations and functions: each continues
//! what another one has begun.

use crate::contexts::{answer, done};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_context_continues_in_any_generation
    a_question_is_answered_in_any_generation_and_by_any_function
}

const SECOND: Duration = Duration::from_secs(1);

async fn a_context_continues_in_any_generation(begins: Dialect) {
    each_row_async(Dialect::ALL, async |continues| {
        for own in ["", "mine:c"] {
            let world = World::new().unwrap();
            let what = format!("{begins:?} {continues:?} {own}");
            let first = done(&world, begins, "notes", "set k v add noted", own).await;
            let context = begins.context(&first);
            assert!(own.is_empty() || context == own, "{what}");
            // Two tasks of the same millisecond have no order.
            advance(SECOND).await;
            let task = done(&world, continues, "notes", "get k", &context).await;
            assert_eq!(answer(continues, &task), "v", "{what}");
            assert_eq!(continues.context(&task), context, "{what}");
            advance(SECOND).await;
            let task = done(&world, begins, "notes", "show", &context).await;
            let said = "set k v add noted|noted|get k|show";
            assert_eq!(answer(begins, &task), said, "{what}");
        }
    })
    .await;
}

async fn a_question_is_answered_in_any_generation_and_by_any_function(asks: Dialect) {
    each_row_async(Dialect::ALL, async |answers| {
        let world = World::new().unwrap();
        let what = format!("{asks:?} {answers:?}");
        let asked = asks.task(&world.call(&asks.send(&Say::to("ask", "hi"))).await);
        let id = asked["id"].as_str().unwrap();
        // Streams are served by a function of their own.
        let stream = answers.stream(&Say::in_task(id, "again"));
        let shown = frames(&world.call(&stream).await).unwrap();
        let last = shown.last().map(|frame| answers.described(frame));
        let expected = "status input-required which one now?";
        assert_eq!(last.as_deref(), Some(expected), "{what}");
        let reply = world.call(&answers.send(&Say::in_task(id, "blue"))).await;
        let task = answers.task(&reply);
        assert_eq!(answers.state(&task), "completed", "{what} {}", reply.text());
        assert_eq!(answer(answers, &task), "blue after 2", "{what}");
        assert_eq!(task["id"], id, "{what}");
        assert_eq!(answers.context(&task), asks.context(&asked), "{what}");
    })
    .await;
}
