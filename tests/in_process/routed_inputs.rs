//! What a skill gets of a message that was routed to it, and of the reply to the question which
//! skill it needs. The clients know nothing of our extensions.

use crate::text_clients::{record, works};
use a2a_lambda::prelude::*;
use a2a_lambda::skill::AgentBuilder;
use a2a_lambda::task::PartContent;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::World;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const REST: Dialect = Dialect::Rest10;

/// The task of a message with these parts and whatever else the parameters hold.
async fn sent(world: &World, parts: &Value, more: &Value) -> Value {
    let say = Say {
        skill: None,
        ..Say::to("", "")
    };
    let mut params = REST.say(&say);
    params["message"]["parts"] = parts.clone();
    for (path, value) in more.as_object().unwrap() {
        match path.split_once('.') {
            Some((_, member)) => params["message"][member] = value.clone(),
            None => params[path] = value.clone(),
        }
    }
    params["message"]["messageId"] = format!("m-{}", world.store.commits().len()).into();
    assert!(!params.to_string().contains("a2a-lambda"), "{params}");
    let reply = world.call(&REST.request(Op::Send, "", &params)).await;
    assert_eq!(reply.status, 200, "{params}: {}", reply.text());
    REST.task(&reply)
}

async fn says(world: &World, text: &str) -> Value {
    sent(world, &json!([{ "text": text }]), &json!({})).await
}

/// The task after a reply of these parts, and whatever else.
async fn replies(world: &World, task: &Value, parts: Value, mut more: Value) -> Value {
    more["message.taskId"] = id(task).into();
    sent(world, &parts, &more).await
}

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}"))
}

fn question(task: &Value) -> String {
    assert_eq!(REST.state(task), "input-required", "{task}");
    REST.status_words(task)
}

/// The data, or else the text, of the artifact of a completed task.
fn output(task: &Value) -> Value {
    assert_eq!(REST.state(task), "completed", "{task}");
    let part = at(task, "/artifacts/0/parts/0");
    let value = part.get("data").or_else(|| part.get("text"));
    value.cloned().unwrap_or_else(|| panic!("{task}"))
}

fn reference() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

fn serving(agent: fn(AgentBuilder) -> AgentBuilder) -> World {
    let build = move |_: Gate| {
        let agent = agent(Agent::builder("inputs"));
        agent.description("Tests inputs.").version("1").build()
    };
    World::serving(build, |_| ()).unwrap()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    count: u32,
    dish: String,
}

/// Orders a dish.
#[skill(id = "order", tags = ["food"], text = ["order {count} of {dish}", "{count} x {dish}"])]
async fn order(input: TextOr<Order>) -> AgentResult<String> {
    match input {
        TextOr::Data(order) => Ok(format!("{} x {}", order.count, order.dish)),
        TextOr::Text(wish) => Ok(format!("\"{wish}\" is on its way")),
    }
}

/// Draws.
#[skill(id = "draw", tags = ["art"], input_modes = ["image/*"])]
async fn draw(_: FilePart) -> AgentResult<String> {
    Ok("drawn".to_owned())
}

/// Tells what it got.
async fn told(cx: &TaskContext<'_>, input: Content) -> AgentResult<Value> {
    let parts = input.parts().iter().map(|part| match &part.content {
        PartContent::Text(text) => text.as_str().into(),
        PartContent::Data(data) => data.clone(),
        _ => Value::from("file"),
    });
    let parts: Vec<Value> = parts.collect();
    let references = cx.references().await?;
    let references: Vec<_> = references.iter().map(|task| task.id.as_str()).collect();
    Ok(json!({"parts": parts, "references": references}))
}

/// Tells what it got.
#[skill(id = "weigh", tags = ["test"])]
async fn weigh(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<OnRequestResult<Value>> {
    completed(told(cx, input).await?)
}

/// Tells what it got, too.
#[skill(id = "measure", tags = ["test"])]
async fn measure(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<OnRequestResult<Value>> {
    completed(told(cx, input).await?)
}

fn completed(output: Value) -> AgentResult<OnRequestResult<Value>> {
    Ok(OnRequestResult::Completed {
        message: None,
        output,
        artifacts: Vec::new(),
    })
}

fn scales() -> World {
    serving(|agent| agent.skill(weigh).skill(measure))
}

/// Does the rest of a turn that a worker runs, and reads the task.
async fn worked(world: &World, task: Value) -> Value {
    assert_eq!(task["artifacts"], json!([]), "it is queued: {task}");
    works(world).await;
    let read = REST.of_task(Op::Get, id(&task));
    REST.task(&world.call(&read).await)
}

#[tokio::test(start_paused = true)]
async fn only_skill_of_an_agent_gets_its_pattern_as_data() {
    let world = serving(|agent| agent.skill(order));
    let done = says(&world, "order 2 of pizza").await;
    assert_eq!(output(&done), "2 x pizza");
    let done = says(&world, "something warm").await;
    assert_eq!(output(&done), "\"something warm\" is on its way");
}

#[tokio::test(start_paused = true)]
async fn only_skill_that_takes_a_text_gets_its_pattern_as_data() {
    let world = serving(|agent| agent.skill(draw).skill(order));
    assert_eq!(output(&says(&world, "3 x soup!").await), "3 x soup");
}

#[tokio::test(start_paused = true)]
async fn worker_of_the_only_skill_gets_its_pattern_as_data() {
    let world = serving(|agent| agent.skill(order));
    let at_once = json!({"configuration": {"returnImmediately": true}});
    let queued = sent(&world, &json!([{"text": "order 2 of pizza"}]), &at_once).await;
    assert_eq!(output(&worked(&world, queued).await), "2 x pizza");
}

#[tokio::test(start_paused = true)]
async fn skill_of_the_earlier_task_gets_its_pattern_as_data() {
    let world = reference();
    let first = says(&world, "book a flight to Oslo on Monday").await;
    let refers = json!({"message.referenceTaskIds": [id(&first)]});
    let text = json!([{"text": "Book a flight to Rome on Friday"}]);
    let done = sent(&world, &text, &refers).await;
    assert_eq!(output(&done), json!({"to": "Rome", "on": "Friday"}));
}

#[tokio::test(start_paused = true)]
async fn data_that_the_skill_of_the_earlier_task_cannot_read_goes_elsewhere() {
    let world = reference();
    let first = says(&world, "add 1 and 2").await;
    let refers = json!({"message.referenceTaskIds": [id(&first)]});
    let asked = sent(&world, &json!([{"data": {"to": "Lisbon"}}]), &refers).await;
    assert_eq!(question(&asked), "When?");
}

/// The contents of memories that a text finds.
async fn remembered(world: &World, text: &str) -> Vec<String> {
    let output = output(&says(world, text).await);
    let results = output["results"].as_array().unwrap().iter();
    let contents = results.map(|it| it["content"].as_str().unwrap().to_owned());
    contents.collect()
}

#[tokio::test(start_paused = true)]
async fn example_of_the_card_is_read_like_any_text_of_its_pattern() {
    let world = reference();
    for text in [
        "Remember that I like tea",
        "Remember that I like coffee",
        "Remember that you do a lot about cats",
    ] {
        let asked = says(&world, text).await;
        let stored = replies(&world, &asked, json!([{"text": "user"}]), json!({})).await;
        assert_eq!(output(&stored)["layer"], "user");
    }
    let tea = remembered(&world, "What do you remember about tea").await;
    assert_eq!(tea, ["I like tea"]);
    let coffee = remembered(&world, "What do you remember about coffee").await;
    assert_eq!(coffee, ["I like coffee"]);
}

#[tokio::test(start_paused = true)]
async fn question_in_words_finds_knowledge_by_the_words_it_is_about() {
    let world = reference();
    let place = json!({"path": "adr/0001.md", "layer": "project", "message": "Decide"});
    let with = |more: Value| {
        let mut input = place.clone();
        let members = more.as_object().unwrap().clone();
        input.as_object_mut().unwrap().extend(members);
        input
    };
    let item = json!({"kind": "adr", "content": "# Images are in S3", "tags": ["storage"]});
    let status = |to: &str| ("knowledge_status", with(json!({ "to": to })));
    for (skill, input) in [
        ("knowledge_store", with(item)),
        status("proposed"),
        status("accepted"),
    ] {
        let call = json!([{"data": {"skill": skill, "input": input}}]);
        output(&sent(&world, &call, &json!({})).await);
    }
    for text in [
        "What is our decision on storage",
        "What is our decision on the storage of images?",
        "What does our knowledge base say about images and retries",
    ] {
        let items = output(&says(&world, text).await)["items"].clone();
        assert_eq!(items[0]["title"], "Images are in S3", "{text}");
    }
    let nothing = says(&world, "What is our decision on the retries").await;
    assert_eq!(output(&nothing)["total"], 0);
}

const FILE: &str = "AAEC";

/// What a skill gets whose reply has these parts, in the call and in a worker.
async fn told_after(reply: Value, more: &Value) -> Value {
    let mut outputs = Vec::new();
    for is_queued in [false, true] {
        let world = scales();
        let asked = says(&world, "what is this").await;
        question(&asked);
        let mut more = more.clone();
        more["configuration"] = json!({"returnImmediately": is_queued});
        let task = replies(&world, &asked, reply.clone(), more).await;
        let task = if is_queued {
            worked(&world, task).await
        } else {
            task
        };
        let skill = record(&world).await.skill.as_ref().unwrap().to_string();
        assert_eq!(skill, "weigh", "{reply}");
        outputs.push(output(&task)["parts"].clone());
    }
    assert_eq!(
        outputs[0], outputs[1],
        "{reply}: in the call, and in a worker"
    );
    outputs.remove(0)
}

#[tokio::test(start_paused = true)]
async fn file_and_data_beside_a_choice_reach_the_skill_with_the_first_message() {
    let nothing = json!({});
    let file = json!({"raw": FILE, "mediaType": "image/png"});
    for (reply, parts) in [
        (json!([{"text": "weigh"}]), json!(["what is this"])),
        (
            json!([{"text": "1"}, file]),
            json!(["what is this", "file"]),
        ),
        (
            json!([{"text": "weigh"}, {"data": {"kg": 3}}]),
            json!(["what is this", {"kg": 3}]),
        ),
    ] {
        assert_eq!(told_after(reply, &nothing).await, parts);
    }
}

#[tokio::test(start_paused = true)]
async fn reply_that_names_its_skill_and_brings_more_is_the_request() {
    let file = json!({"raw": FILE, "mediaType": "image/png"});
    for place in ["metadata", "message.metadata"] {
        let named = json!({place: {"skillId": "weigh"}});
        for (reply, parts) in [
            (json!([{"text": "weigh"}]), json!(["what is this"])),
            (json!([{"text": " "}]), json!(["what is this"])),
            (json!([file]), json!(["file"])),
            (json!([{"data": {"kg": 3}}]), json!([{"kg": 3}])),
        ] {
            assert_eq!(told_after(reply, &named).await, parts, "{place}");
        }
    }
    // A skill of a list that the client shows.
    let world = reference();
    let asked = says(&world, "hm").await;
    let named = json!({"message.metadata": {"skillId": "add"}});
    let done = replies(&world, &asked, json!([{"text": "add 3 and 4"}]), named).await;
    assert_eq!(REST.status_words(&done), "7");
}

#[tokio::test(start_paused = true)]
async fn queued_reply_that_names_its_skill_reaches_it_in_the_worker() {
    // The metadata of the request is that of a second turn, which no record keeps.
    let file = json!([{"raw": FILE, "mediaType": "image/png"}]);
    let named = json!({"metadata": {"skillId": "weigh"}});
    assert_eq!(told_after(file, &named).await, json!(["file"]));
}

#[tokio::test(start_paused = true)]
async fn skill_gets_the_references_of_the_first_message_and_of_the_reply() {
    for is_queued in [false, true] {
        let world = scales();
        let mut tasks = Vec::new();
        for text in ["/weigh one", "/weigh two"] {
            tasks.push(id(&says(&world, text).await).to_owned());
        }
        let other = says(&world, "/measure three").await;
        let refers = json!({"message.referenceTaskIds": [tasks[0], id(&other)]});
        let asked = sent(&world, &json!([{"text": "compare"}]), &refers).await;
        let more = json!({
            "message.referenceTaskIds": [tasks[1], tasks[0]],
            "configuration": {"returnImmediately": is_queued},
        });
        let task = replies(&world, &asked, json!([{"text": "weigh"}]), more).await;
        let task = if is_queued {
            worked(&world, task).await
        } else {
            task
        };
        let expected = json!([tasks[0], id(&other), tasks[1]]);
        assert_eq!(output(&task)["references"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn second_question_names_the_message_that_a_choice_sends() {
    let world = reference();
    let asked = says(&world, "hello,\n I am  Ann").await;
    assert!(!question(&asked).contains("hello"));
    let wish = json!([{"text": "I want a blue logo for my bakery"}]);
    let asked = replies(&world, &asked, wish, json!({})).await;
    let again = question(&asked);
    let first = again.lines().next().unwrap();
    let words = "\"hello, I am Ann I want a blue logo for my bakery\"";
    assert!(first.contains(words), "{first}");
    assert!(
        again.contains("\n1. ") && again.contains("write `/id`"),
        "{again}"
    );
    let wish = json!([{"text": "/logo a blue square"}]);
    let done = replies(&world, &asked, wish, json!({})).await;
    assert_eq!(REST.state(&done), "completed", "{done}");

    let long = "ä".repeat(100);
    let asked = says(&world, &long).await;
    let asked = replies(&world, &asked, json!([{"text": "hm"}]), json!({})).await;
    let quote = format!("\"{}\"", "ä".repeat(30));
    assert!(question(&asked).contains(&quote), "{}", question(&asked));
}

/// Greets.
#[skill(id = "greet", tags = ["test"])]
async fn greet(name: String) -> AgentResult<String> {
    Ok(format!("Hello, {name}!"))
}

#[tokio::test(start_paused = true)]
async fn command_of_the_only_skill_is_no_part_of_its_text() {
    for is_queued in [false, true] {
        let world = serving(|agent| agent.skill(greet));
        let more = json!({"configuration": {"returnImmediately": is_queued}});
        let task = sent(&world, &json!([{"text": "/greet Ann"}]), &more).await;
        let task = if is_queued {
            worked(&world, task).await
        } else {
            task
        };
        assert_eq!(output(&task), "Hello, Ann!");
    }
}
