//! Messages that refer to earlier tasks.

use super::*;
use crate::text_clients::works;
use a2a_lambda_rows::each_row_async;

#[tokio::test(start_paused = true)]
async fn make_it_blue_gives_a_new_blue_logo_and_leaves_the_first_as_it_is() {
    for (wish, before, after) in [
        ("Generate logo", "round black", "round blue"),
        ("/logo a red square", "square red", "square blue"),
    ] {
        let world = world();
        let first = says(&world, &text(wish)).await;
        assert_eq!(picture(&first), before);
        let read = REST.of_task(Op::Get, id(&first));
        let stored = world.call(&read).await;
        let context = REST.context(&first);

        let say = text("Make it blue").in_context(&context).with_id("m-2");
        let second = refers(&world, &say, &[id(&first)]).await;
        assert_eq!(REST.state(&second), "completed", "{second}");
        assert_eq!(picture(&second), after);
        assert_ne!(id(&second), id(&first));
        assert_eq!(REST.context(&second), context);
        assert_eq!(world.call(&read).await.body, stored.body);
    }
}

/// Draws so many logos; their ids.
async fn logos(world: &World, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let logo = says(world, &text("/logo a red square")).await;
        ids.push(id(&logo).to_owned());
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn the_last_reference_to_a_task_with_a_skill_decides() {
    let world = world();
    let logo = says(&world, &text("/logo a red square")).await;
    let sum = says(&world, &text("add 1 and 2")).await;
    let asked = says(&world, &text("hm")).await;
    let task = refers(&world, &text("Make it blue"), &[id(&logo), id(&sum)]).await;
    assert!(offer(&task).len() > 2);
    assert_eq!(skill_of(&world).await, None);
    for ids in [
        [id(&sum), id(&logo)],
        // A question of the router is no part of a conversation.
        [id(&logo), id(&asked)],
        [id(&logo), id(&logo)],
    ] {
        let task = refers(&world, &text("Make it blue"), &ids).await;
        assert_eq!(picture(&task), "square blue");
    }
}

#[tokio::test(start_paused = true)]
async fn reference_to_a_foreign_or_unknown_task_counts_as_none_and_reveals_nothing() {
    let world = world();
    let wish = send(REST, &REST.say(&text("/logo a red square")));
    let foreign = REST.task(&world.call(&wish.from("acme:ann")).await);
    assert_eq!(picture(&foreign), "square red");
    let own = logos(&world, 1).await;
    let mut questions = Vec::new();
    let rows = [vec![id(&foreign)], vec!["nothing"], vec!["not an id"]];
    each_row_async(rows, async |ids| {
        let task = refers(&world, &text("Make it blue"), &ids).await;
        assert!(offer(&task).len() > 2, "{ids:?}");
        questions.push(REST.status_words(&task));
        let ids = [&[own[0].as_str()], &ids[..]].concat();
        let task = refers(&world, &text("Make it blue"), &ids).await;
        assert_eq!(picture(&task), "square blue");
    })
    .await;
    questions.dedup();
    assert_eq!(questions.len(), 1, "{questions:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_sixteen_references_count() {
    let world = world();
    let ids = logos(&world, 17).await;
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let task = refers(&world, &text("Make it blue"), &ids).await;
    assert_eq!(picture(&task), "square blue");
    // The logo is before the last sixteen.
    let mut sums = vec![ids[0].to_owned()];
    for _ in 0..16 {
        sums.push(id(&says(&world, &text("add 1 and 2")).await).to_owned());
    }
    let ids: Vec<&str> = sums.iter().map(String::as_str).collect();
    let task = refers(&world, &text("Make it blue"), &ids).await;
    assert!(offer(&task).len() > 2);
    let task = refers(&world, &text("/logo Make it blue"), &ids[..16]).await;
    assert_eq!(picture(&task), "square blue");
    let task = refers(&world, &text("/logo Make it blue"), &ids).await;
    assert_eq!(picture(&task), "round blue");
}

/// A task whose message refers to a red square logo and to a sum, so that it is asked about.
async fn asked_about_a_logo_and_a_sum(world: &World) -> String {
    let logo = says(world, &text("/logo a red square")).await;
    let sum = says(world, &text("add 1 and 2")).await;
    let ids = [id(&logo), id(&sum)];
    let asked = refers(world, &text("Make it blue"), &ids).await;
    offer(&asked);
    id(&asked).to_owned()
}

#[tokio::test(start_paused = true)]
async fn chosen_skill_gets_the_references_of_the_first_message() {
    let world = world();
    let task = asked_about_a_logo_and_a_sum(&world).await;
    let say = Say::in_task(&task, "logo").with_id("m-2");
    assert_eq!(picture(&says(&world, &say).await), "square blue");
}

#[tokio::test(start_paused = true)]
async fn chosen_skill_gets_the_references_of_the_first_message_in_a_worker() {
    let world = world();
    let task = asked_about_a_logo_and_a_sum(&world).await;
    let say = Say::in_task(&task, "logo").with_id("m-2");
    is_queued(&REST.task(&sent(&world, REST, &at_once(&say)).await));
    works(&world).await;
    let done = world.call(&REST.of_task(Op::Get, &task)).await;
    assert_eq!(picture(&REST.task(&done)), "square blue");
}

#[tokio::test(start_paused = true)]
async fn reply_that_refers_to_a_task_is_for_the_skill_of_that_task() {
    let world = world();
    let logo = says(&world, &text("/logo a red square")).await;
    let asked = says(&world, &text("hm")).await;
    let say = Say::in_task(id(&asked), "Make it blue").with_id("m-2");
    assert_eq!(
        picture(&refers(&world, &say, &[id(&logo)]).await),
        "square blue"
    );
}
