//! How a message finds its skill, for clients that know nothing of our extensions: they send no
//! metadata of ours and no idempotency keys.

use crate::text_clients::record;
use a2a_lambda::prelude::*;
use a2a_lambda_rows::{each_row, each_row_async};
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;

mod calls;
mod references;
mod workers;

per_dialect! {
    paused ALL:
    every_sum_in_words_is_added
}

const REST: Dialect = Dialect::Rest10;
/// How the question of the router begins.
const WHICH: &str = "Which of these skills do you need?";
/// The file of a logo in its artifact.
const PICTURE: &str = "/artifacts/0/parts/0/raw";

fn world() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

/// A message that names no skill.
fn text(text: &str) -> Say<'_> {
    Say {
        skill: None,
        ..Say::to("", text)
    }
}

/// A send with these parameters, none of which is ours.
fn send(dialect: Dialect, params: &Value) -> Request {
    assert!(!params.to_string().contains("a2a-lambda"), "{params}");
    dialect.request(Op::Send, "", params)
}

/// The response to a message, which has to be a success.
async fn sent(world: &World, dialect: Dialect, params: &Value) -> Reply {
    let reply = world.call(&send(dialect, params)).await;
    let is_error = reply.status != 200 || reply.json().get("error").is_some();
    assert!(!is_error, "{dialect:?} {params}: {}", reply.text());
    reply
}

/// The task of a message in REST 1.0.
async fn says(world: &World, say: &Say<'_>) -> Value {
    REST.task(&sent(world, REST, &REST.say(say)).await)
}

/// The task of a message that refers to these tasks.
async fn refers(world: &World, say: &Say<'_>, ids: &[&str]) -> Value {
    let mut params = REST.say(say);
    params["message"]["referenceTaskIds"] = json!(ids);
    REST.task(&sent(world, REST, &params).await)
}

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}"))
}

/// The sum that the adder gives as data, and says.
fn sum(task: &Value) -> i64 {
    assert_eq!(REST.state(task), "completed", "{task}");
    let sum = at(task, "/artifacts/0/parts/0/data/sum").as_i64().unwrap();
    assert_eq!(REST.status_words(task), sum.to_string());
    sum
}

/// The skills that a question offers as id and name, in the order of their numbers.
fn offer(task: &Value) -> Vec<(String, String)> {
    assert_eq!(REST.state(task), "input-required", "{task}");
    let question = REST.status_words(task);
    assert!(question.starts_with(WHICH), "{question}");
    let lines = question.lines().skip(1).enumerate();
    let lines = lines.take_while(|(index, line)| line.starts_with(&format!("{}. ", index + 1)));
    let skills = lines.map(|(index, line)| {
        let rest = line.strip_prefix(&format!("{}. ", index + 1));
        let (name, rest) = rest.unwrap_or_else(|| panic!("{line}")).split_once(" (`")?;
        let (id, description) = rest.split_once("`): ")?;
        assert!(!description.is_empty(), "{line}");
        Some((id.to_owned(), name.to_owned()))
    });
    let skills: Option<Vec<_>> = skills.collect();
    let skills = skills.unwrap_or_else(|| panic!("{question}"));
    assert!(skills.len() > 1, "{question}");
    skills
}

fn ids(offer: &[(String, String)]) -> Vec<&str> {
    offer.iter().map(|(id, _)| id.as_str()).collect()
}

/// The number of a skill in an offer.
fn number(offer: &[(String, String)], skill: &str) -> String {
    let index = offer.iter().position(|(id, _)| id == skill).unwrap();
    (index + 1).to_string()
}

/// The skill of the newest task, if it has one.
async fn skill_of(world: &World) -> Option<String> {
    record(world).await.skill.as_ref().map(ToString::to_string)
}

/// What the picture of a logo shows, as its description says and its pixels prove.
fn picture(task: &Value) -> &'static str {
    const RED: [u8; 3] = [204, 0, 0];
    const BLUE: [u8; 3] = [0, 51, 204];
    const BLACK: [u8; 3] = [0; 3];
    const SHOWN: [(&str, [u8; 3]); 4] = [
        ("round black", BLACK),
        ("round blue", BLUE),
        ("square red", RED),
        ("square blue", BLUE),
    ];
    let file = at(task, PICTURE).as_str();
    let file = STANDARD.decode(file.unwrap_or_else(|| panic!("{task}")));
    let file = file.unwrap();
    let has = |bytes: &[u8]| file.windows(bytes.len()).any(|it| it == bytes);
    assert!(file.starts_with(b"\x89PNG"));
    let found = SHOWN.iter().find(|(shown, _)| {
        let described = format!("Description\0{shown}IDAT");
        // The checksum stands between the text and the next chunk.
        let text = described.trim_end_matches("IDAT").as_bytes();
        file.windows(text.len() + 12)
            .any(|it| it.starts_with(text) && it.ends_with(b"IDAT"))
    });
    let (shown, color) = found.unwrap();
    for other in [RED, BLUE, BLACK] {
        let row = other.repeat(20);
        assert_eq!(has(&row), other == *color, "{shown} {other:?}");
    }
    shown
}

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // Knuth's multiplier; the high bits are the better ones.
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(self.next() % end).unwrap()
    }

    /// A number of up to 18 digits, of which every other one is negative.
    fn signed(&mut self) -> i64 {
        let digits = u32::try_from(self.below(18)).unwrap() + 1;
        let wide = (self.next() << 31) | self.next();
        let number = i64::try_from(wide % 10_u64.pow(digits)).unwrap();
        if self.next().is_multiple_of(2) {
            number
        } else {
            -number
        }
    }
}

/// 100 pairs of numbers, whose sums are numbers of 64 bits.
fn pairs() -> Vec<(i64, i64)> {
    let mut all = vec![
        (0, 0),
        (0, -1),
        (-7, 7),
        (-2, -3),
        (i64::MAX, 0),
        (i64::MIN, i64::MAX),
        (9_007_199_254_740_993, 1),
        (4_611_686_018_427_387_904, 4_611_686_018_427_387_903),
    ];
    let mut numbers = Numbers(1);
    while all.len() < 100 {
        all.push((numbers.signed(), numbers.signed()));
    }
    all
}

async fn every_sum_in_words_is_added(dialect: Dialect) {
    let world = world();
    for (index, (a, b)) in pairs().into_iter().enumerate() {
        let (words, order) = (format!("add {a} and {b}"), format!("order:{index}"));
        let params = dialect.say(&text(&words).under(&order));
        let task = dialect.task(&sent(&world, dialect, &params).await);
        let state = dialect.state(&task);
        let said = (state.as_str(), dialect.status_words(&task));
        assert_eq!(said, ("completed", (a + b).to_string()), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn text_that_no_skill_declares_gets_a_numbered_offer() {
    let world = world();
    let rows = ["hm", "What is the weather like?", "/nobody help", "7 × 6"];
    each_row_async(rows, async |words| {
        let asked = says(&world, &text(words)).await;
        let offered = offer(&asked);
        assert_eq!(offered.len(), 5, "{words}: {offered:?}");
        // They read no text.
        let unread = ["fingerprint", "knowledge_store", "memory_delete"];
        each_row(unread, |skill| {
            assert!(!ids(&offered).contains(&skill), "{words}: {offered:?}");
        });
        // The metadata of the question has the same, for buttons.
        let choices = at(
            &asked,
            "/status/message/parts/0/metadata/a2a-lambda~1choices",
        );
        let choices = choices.as_array().unwrap().iter();
        let choices = choices.map(|it| {
            assert_ne!(it["description"], "", "{it}");
            let text = |name: &str| it[name].as_str().unwrap().to_owned();
            (text("id"), text("name"))
        });
        assert_eq!(choices.collect::<Vec<_>>(), offered);
        let last = REST.status_words(&asked);
        assert!(last.ends_with("or write `/id` and your wish."), "{last}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_id_or_name_of_any_skill_answers_the_question() {
    let world = world();
    let rows = [
        ("create-report", "create-report"),
        ("Report writer", "create-report"),
        ("memory_search", "memory_search"),
        ("find knowledge", "knowledge_query"),
    ];
    each_row_async(rows, async |(reply, skill)| {
        let asked = says(&world, &text("hm")).await;
        says(&world, &Say::in_task(id(&asked), reply).with_id("m-2")).await;
        assert_eq!(skill_of(&world).await.as_deref(), Some(skill), "{reply}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn chosen_skill_gets_all_that_was_said_as_lines() {
    let world = world();
    let asked = says(&world, &text("something for my shop")).await;
    let say = Say::in_task(id(&asked), "it should be red").with_id("m-2");
    let again = says(&world, &say).await;
    assert!(REST.status_words(&again).contains("it should be red"));
    let say = Say::in_task(id(&asked), "echo").with_id("m-3");
    let reply = sent(&world, REST, &REST.say(&say)).await;
    assert!(
        reply
            .text()
            .contains("something for my shop\\nit should be red"),
        "{}",
        reply.text()
    );
}

#[tokio::test(start_paused = true)]
async fn chosen_skill_that_cannot_read_what_was_said_asks_for_what_it_lacks() {
    let world = world();
    let rows = [
        (
            "memory_delete",
            "{\"id\": \"none\", \"layer\": \"user\"}",
            "needs data, as {",
        ),
        ("fingerprint", "hello", "needs application/pdf or image/*"),
    ];
    each_row_async(rows, async |(skill, reply, needs)| {
        let asked = says(&world, &text("hm")).await;
        let say = Say::in_task(id(&asked), skill).with_id("m-2");
        let lacks = says(&world, &say).await;
        let words = REST.status_words(&lacks);
        assert_eq!(REST.state(&lacks), "input-required");
        assert!(words.contains(skill) && words.contains(needs), "{words}");
        let say = Say::in_task(id(&asked), reply).with_id("m-3");
        let answer = says(&world, &say).await;
        let chosen = skill_of(&world).await;
        match skill {
            "fingerprint" => assert!(offer(&answer).len() == 5 && chosen.is_none()),
            _ => assert_eq!(chosen.as_deref(), Some(skill)),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn words_that_cancel_end_an_open_question() {
    let rows = [
        ("hm", "cancel"),
        ("hm", "Never mind."),
        ("Book a flight", "cancel"),
        ("Create a report", "never mind"),
        ("Remember that I like tea", "Cancel!"),
    ];
    for by_task in [true, false] {
        let world = world();
        each_row_async(rows, async |(words, reply)| {
            let asked = says(&world, &text(words)).await;
            let context = REST.context(&asked);
            let say = match by_task {
                true => Say::in_task(id(&asked), reply),
                false => text(reply).in_context(&context),
            };
            let ended = says(&world, &say.with_id("m-2")).await;
            assert_eq!(
                (id(&ended), REST.state(&ended)),
                (id(&asked), "canceled".to_owned())
            );
        })
        .await;
    }
}

/// A question of the router is a task and an update, as that of a skill.
#[tokio::test(start_paused = true)]
async fn a_question_on_a_stream_is_a_task_and_an_update() {
    let world = world();
    for words in ["hm", "Book a flight"] {
        let params = REST.say(&text(words));
        let reply = world
            .call(&REST.request(Op::Stream, "", &params))
            .await
            .text();
        let frames: Vec<&str> = reply.lines().filter(|it| it.starts_with("data:")).collect();
        assert!(frames[0].contains("\"task\""), "{reply}");
        let last = frames.last().unwrap();
        assert!(
            last.contains("statusUpdate") && last.contains("INPUT_REQUIRED"),
            "{reply}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn skill_of_the_last_task_in_the_context_is_offered_first() {
    let world = world();
    let first = says(&world, &text("Generate logo")).await;
    let context = REST.context(&first);
    let uses = [
        ("add", "add 1 and 2"),
        ("create-report", "Create a report on sales as PDF"),
        ("logo", "/logo a red square"),
        ("book-flight", "book a flight to Oslo on Friday"),
    ];
    each_row_async(uses, async |(skill, words)| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        says(&world, &text(words).in_context(&context)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asks = text("hm").in_context(&context).with_id(words);
        let asked = says(&world, &asks).await;
        assert_eq!(ids(&offer(&asked))[0], skill, "after {words}");
    })
    .await;
    // The tasks of another context count for nothing.
    let other = offer(&says(&world, &text("hm")).await);
    let again = offer(&says(&world, &text("hm").in_context("mine:new")).await);
    assert_eq!(other, again);
}

#[tokio::test(start_paused = true)]
async fn reply_by_number_id_or_name_sends_the_first_message_to_that_skill() {
    let world = world();
    let words = "hm: 19 and 23, a red square";
    each_row_async(["add", "logo", "echo"], async |skill| {
        let offered = offer(&says(&world, &text(words)).await);
        let (id, name) = offered.iter().find(|(id, _)| id == skill).unwrap();
        let number = number(&offered, skill);
        let rows = [
            number.clone(),
            format!(" {number}. "),
            id.to_uppercase(),
            format!("`{id}`"),
            name.clone(),
            name.to_lowercase(),
        ];
        each_row_async(rows, async |reply| {
            let asked = says(&world, &text(words)).await;
            let task = asked["id"].as_str().unwrap();
            let say = Say::in_task(task, &reply).with_id("m-2");
            let answered = sent(&world, REST, &REST.say(&say)).await;
            let done = REST.task(&answered);
            match skill {
                "add" => assert_eq!(sum(&done), 42, "{reply}"),
                "logo" => assert_eq!(picture(&done), "square red", "{reply}"),
                _ => assert!(answered.text().contains(words), "{}", answered.text()),
            }
            assert_eq!(skill_of(&world).await.unwrap(), skill, "{reply}");
        })
        .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn reply_with_a_number_out_of_the_offer_asks_again() {
    let world = world();
    let asked = says(&world, &text("hm: 19 and 23")).await;
    let offered = offer(&asked);
    let beyond = (offered.len() + 1).to_string();
    let wrong = [beyond.as_str(), "0", "99", "-1", "01"];
    for (index, reply) in wrong.into_iter().enumerate() {
        let message = format!("wrong-{index}");
        let say = Say::in_task(id(&asked), reply).with_id(&message);
        let again = says(&world, &say).await;
        assert_eq!(id(&again), id(&asked));
        assert_eq!(ids(&offer(&again)).len(), offered.len(), "{reply}");
        assert_eq!(skill_of(&world).await, None, "{reply}");
    }
    let say = Say::in_task(id(&asked), "adder").with_id("m-9");
    assert_eq!(sum(&says(&world, &say).await), 42);
}

#[tokio::test(start_paused = true)]
async fn number_counts_in_the_newest_offer() {
    let world = world();
    let asked = says(&world, &text("hm: 19 and 23")).await;
    let before = number(&offer(&asked), "add");
    // These words put another skill first.
    let say = Say::in_task(id(&asked), "a flight, travel").with_id("m-2");
    let again = says(&world, &say).await;
    let now = number(&offer(&again), "add");
    assert_ne!(before, now);
    let say = Say::in_task(id(&asked), &now).with_id("m-3");
    let done = says(&world, &say).await;
    assert_eq!(sum(&done), 42);
}

#[tokio::test(start_paused = true)]
async fn reply_that_a_skill_declares_is_routed_as_itself() {
    let world = world();
    let rows = [
        ("add 1 and 2", "add"),
        ("What's 2+2?", "add"),
        ("Draw a red square logo", "logo"),
        ("Book a flight", "book-flight"),
    ];
    each_row_async(rows, async |(reply, skill)| {
        let asked = says(&world, &text("hm: 19 and 23")).await;
        let say = Say::in_task(id(&asked), reply).with_id("m-2");
        let done = says(&world, &say).await;
        match reply {
            "add 1 and 2" => assert_eq!(sum(&done), 3),
            "What's 2+2?" => assert_eq!(sum(&done), 4),
            "Draw a red square logo" => assert_eq!(picture(&done), "square red"),
            _ => assert_eq!(REST.status_words(&done), "Where to?"),
        }
        assert_eq!(skill_of(&world).await.unwrap(), skill, "{reply}");
    })
    .await;
}

/// The words of a skill in the card: of its name, its description and its tags.
fn words(skill: &Value) -> Vec<String> {
    let tags = skill["tags"].as_array().unwrap().iter();
    let texts = [&skill["name"], &skill["description"]];
    let texts = texts.into_iter().chain(tags).filter_map(Value::as_str);
    texts
        .flat_map(|text| text.split(|it: char| !it.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// 200 texts, each with words of two skills. Every other one ends with a whole example.
fn resembling(skills: &[Value]) -> Vec<String> {
    let mut numbers = Numbers(7);
    let mut all = Vec::new();
    while all.len() < 200 {
        let pair = [numbers.below(skills.len()), numbers.below(skills.len())];
        if pair[0] == pair[1] {
            continue;
        }
        let pair = pair.map(|index| &skills[index]);
        let bags = pair.map(words);
        let mut said = Vec::new();
        for _ in 0..=numbers.below(4) {
            for bag in &bags {
                said.push(bag[numbers.below(bag.len())].clone());
            }
        }
        if all.len() % 2 == 1 {
            said.push(pair[0]["examples"][0].as_str().unwrap().to_owned());
        }
        all.push(said.join(" "));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn text_that_resembles_two_skills_is_asked_about() {
    let world = world();
    let card = Request::new("GET", "/.well-known/agent-card.json");
    let card = world.call(&card).await.json();
    let skills = card["skills"].as_array().unwrap().iter();
    let skills = skills.filter(|skill| {
        let modes = skill["inputModes"].as_array().unwrap();
        // The pattern of `echo` takes any text behind its word.
        let is_clear = skill["id"] != "echo" && skill["examples"][0].is_string();
        is_clear && modes.contains(&json!("text/plain"))
    });
    let skills: Vec<Value> = skills.cloned().collect();
    assert!(skills.len() > 8, "{card}");
    let texts = resembling(&skills);
    each_row_async(&texts, async |words| {
        let asked = says(&world, &text(words)).await;
        assert_eq!(offer(&asked).len(), 5, "{words}");
        assert_eq!(skill_of(&world).await, None, "{words}");
    })
    .await;
    assert_eq!(texts.len(), 200);
}

/// The parameters of a message whose client does not wait.
fn at_once(say: &Say<'_>) -> Value {
    let mut params = REST.say(say);
    params["configuration"] = json!({"returnImmediately": true});
    params
}

fn is_queued(task: &Value) {
    let state = REST.state(task);
    let waits = ["submitted", "working"].contains(&state.as_str());
    assert!(waits && task["artifacts"] == json!([]), "{task}");
}
