//! What a turn met outside of finished steps is part of it: errors, reads, branches, waits and
//! saved values are the same in each of its runs.

use super::*;
use a2a_lambda_llm::LlmWorker;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_skill::model::ModelContent;
use futures::future::{Either, join, select};
use std::pin::pin;

/// What a skill has done outside of its task.
type Effects = Arc<Mutex<Vec<String>>>;

/// Runs the program that the message names.
#[skill(id = "program", tags = ["test"])]
struct Program(Effects);

/// What a turn does when it has no model.
impl SkillHandler for Program {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        name: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let cx = &*cx;
        let answer = match name.as_str() {
            "retries by hand" => self.retries_by_hand(cx).await,
            "saga" => self.saga(cx).await,
            "two shops" => self.two_shops(cx).await,
            "ticket" => self.ticket(cx).await,
            "branches" => self.branches(cx).await,
            "race" => self.race(cx).await,
            "offers" => self.offers(cx).await,
            "resume" => self.resume(cx).await,
            "top save" => self.top_save(cx).await,
            "clock" => self.clock(cx).await,
            "tries" => self.tries(cx).await,
            "long tries" => self.long_tries(cx).await,
            "chat" => self.chat(cx).await,
            name => panic!("{name}"),
        };
        OnRequestResult::done(answer?)
    }
}

impl Program {
    /// Does `effect`; returns how often it has been done.
    fn note(&self, effect: &str) -> usize {
        let mut effects = lock(&self.0);
        effects.push(effect.to_owned());
        effects.iter().filter(|it| *it == effect).count()
    }

    async fn after(&self, millis: u64, effect: &str) -> AgentResult<String> {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        self.note(effect);
        Ok(effect.to_owned())
    }

    /// The first answer of the service is lost.
    async fn retries_by_hand(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let charge = async || match self.note("charge") {
            1 => Err(AgentError::domain("LOST", "no answer")),
            number => Ok(number),
        };
        let mut receipt = None;
        for _ in 0..3 {
            if let Ok(number) = cx.step("charge", charge()).await {
                receipt = Some(number);
                break;
            }
        }
        cx.step("ship", self.after(10, "ship")).await?;
        Ok(format!("{receipt:?}"))
    }

    /// The hotel is full once: in a later run it would not be.
    async fn saga(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        cx.step("pay", self.after(10, "pay")).await?;
        let book = async || match self.note("book") {
            1 => Err(AgentError::domain("FULL", "the hotel is full")
                .with_detail("free", 0)
                .with_detail("log", "x".repeat(5000))),
            _ => Ok("booked".to_owned()),
        };
        match cx.step("book", book()).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                cx.step("refund", self.after(10, "refund")).await?;
                let details = serde_json::to_value(error.details())?;
                Ok(format!("{} {details} {}", error.code(), error.text()))
            }
        }
    }

    /// The first shop does not answer in time.
    async fn two_shops(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let order = async {
            self.note("order at one");
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok("one".to_owned())
        };
        let one = cx.step("one", order);
        let shop = match cx.timeout("one", Duration::from_secs(1), one).await? {
            Some(shop) => shop,
            None => cx.step("other", self.after(10, "order at other")).await?,
        };
        cx.step("tell", self.after(10, "tell")).await?;
        Ok(shop)
    }

    async fn ticket(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let number = cx.load_session::<u32>("tickets").await?.unwrap_or(0) + 1;
        let open = async {
            self.note(&format!("open {number}"));
            cx.update_session("tickets", |tickets: Option<u32>| tickets.unwrap_or(0) + 1)?;
            Ok(())
        };
        cx.step_of("open", &number, open).await?;
        cx.step("pack", self.after(10, "pack")).await?;
        let now = cx.load_session::<u32>("tickets").await?.unwrap_or(0);
        cx.step("send", self.after(10, "send")).await?;
        Ok(format!("ticket {number}, of {now}"))
    }

    async fn branches(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let a = async {
            cx.scope("wait", cx.step("a", self.after(30, "a"))).await?;
            cx.send_intermediate_update("a is here").await
        };
        let b = async {
            cx.scope("b", cx.step("b", self.after(10, "b"))).await?;
            cx.send_intermediate_update("b is here").await
        };
        let (a, b) = join(a, b).await;
        a.and(b)?;
        cx.step("end", self.after(10, "end")).await
    }

    /// Both branches end; the faster one wins, in each run.
    async fn race(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let mut winners = Vec::new();
        for round in ["first", "second"] {
            let slow = pin!(cx.scope("slow", cx.step("s", self.after(30, "slow"))));
            let fast = pin!(cx.scope("fast", cx.step("f", self.after(10, "fast"))));
            let (winner, rest) = match select(slow, fast).await {
                Either::Left((winner, rest)) => (winner?, rest.await?),
                Either::Right((winner, rest)) => (winner?, rest.await?),
            };
            winners.push(format!("{round} {winner} before {rest}"));
        }
        cx.step("end", self.after(10, "end")).await?;
        Ok(winners.join(", "))
    }

    /// Both offers come at the same time.
    async fn offers(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let one = pin!(cx.scope("one", cx.step("ask", async { Ok("one".to_owned()) })));
        let other = pin!(cx.scope("other", cx.step("ask", async { Ok("other".to_owned()) })));
        let (first, _) = select(one, other).await.factor_first();
        cx.step("book", self.after(10, "book")).await?;
        first
    }

    async fn resume(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let mut done = cx.load_data::<u32>("done")?.unwrap_or(0);
        while done < 3 {
            cx.save_data("part", &done).await?;
            let effect = format!("part {done}");
            cx.step("part", self.after(10, &effect)).await?;
            cx.send_intermediate_update(format!("{done} is done"))
                .await?;
            done += 1;
            cx.save_data("done", &done).await?;
        }
        let last = cx.load_data::<u32>("part")?;
        Ok(format!("{done} parts, the last is {last:?}"))
    }

    async fn top_save(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        cx.save_data("phase", &"paying").await?;
        cx.step("pay", self.after(10, "pay")).await?;
        cx.save_data("phase", &"shipping").await?;
        cx.step("ship", self.after(10, "ship")).await?;
        Ok(cx.load_data::<String>("phase")?.unwrap_or_default())
    }

    /// The steps depend on the clock, and fit the first run all the same.
    async fn clock(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let began = cx.now();
        cx.step("work", self.after(40, "work")).await?;
        let took = cx.now().since(began).as_millis();
        cx.sleep("pause", Duration::from_millis(70)).await?;
        let name = if took < 60 { "on time" } else { "late" };
        cx.step(name, self.after(10, name)).await
    }

    async fn tries(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let mut keys = Vec::new();
        let ask = cx.retry("ask").tries(4).run(async || {
            cx.send_intermediate_update("asking").await?;
            cx.add_event("asked")?;
            match self.note(&format!("ask {}", cx.step_key().len())) {
                1 | 2 => Err(AgentError::domain("BUSY", "busy").transient()),
                _ => Ok("answer".to_owned()),
            }
        });
        keys.push(ask.await?);
        let refused = cx.retry("refused").tries(3).run(async || {
            self.note("refused");
            Err::<(), _>(AgentError::domain("NO", "no"))
        });
        keys.push(refused.await.unwrap_err().code().to_string());
        Ok(keys.join(" "))
    }

    /// Its third wait is longer than a run waits itself.
    async fn long_tries(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let ask = cx
            .retry("ask")
            .tries(5)
            .run(async || match self.note("ask") {
                1..=4 => Err(AgentError::domain("BUSY", "busy").transient()),
                _ => Ok("answer".to_owned()),
            });
        ask.await
    }

    /// A chat that knows its user, with a tool that remembers.
    async fn chat(&self, cx: &TaskContext<'_>) -> AgentResult<String> {
        let profile = cx.load_session::<String>("profile").await?;
        let tool = a2a_lambda_skill::Tool::new(remember).trusted();
        let worker = LlmWorker::<String>::new("Chat.").skills([tool]);
        let input = serde_json::json!({"question": "hello", "profile": profile});
        worker.run(cx, &input).await
    }
}

/// Remembers what the user says.
#[skill(id = "remember", tags = ["test"])]
async fn remember(cx: &mut TaskContext<'_>, text: String) -> AgentResult<()> {
    cx.update_session("profile", move |_: Option<String>| text.clone())
}

fn model() -> ScriptedModel {
    ScriptedModel::new()
        .content(vec![ModelContent::ToolUse {
            id: "1".to_owned(),
            name: "remember".to_owned(),
            input: serde_json::json!({"value": "likes tea"}),
        }])
        .text("hello")
}

/// The texts of the agent.
fn said(reply: &Reply) -> Vec<String> {
    let Reply::Task(task) = reply else {
        panic!("{reply:?}")
    };
    let history = task.history.iter().flatten();
    let of_agent = history.filter(|message| message.role == crate::task::Role::Agent);
    let texts = of_agent.map(|message| Content::from_parts(message.parts.clone()));
    texts
        .map(|content| content.text().unwrap().to_owned())
        .collect()
}

/// Runs a program with a crash after each of its commits.
async fn each_crash(name: &str, check: impl Fn(&str, &Reply, Vec<String>)) {
    for crash in 0..64 {
        let effects = Effects::default();
        let agent = Agent::builder("test").skill(Program(Arc::clone(&effects)));
        let mut client = SkillTest::new(&agent.build().unwrap(), "program");
        client.model(model());
        if crash > 0 {
            client.crash_after(crash);
        }
        let reply = match client.send(name).await {
            Err(SkillTestError::NoCrash { .. }) => return,
            reply => reply.unwrap(),
        };
        let place = format!("`{name}` with a crash after commit {crash}");
        let done = lock(&effects).clone();
        assert_eq!(
            reply.error_code(),
            None,
            "{place}: {:?} {done:?}",
            client.cause()
        );
        check(&place, &reply, done);
    }
    panic!("the turn has too many commits");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_runs_again_is_the_same_turn() {
    let rows: [(&str, &str, &[&str]); 9] = [
        ("retries by hand", "Some(2)", &["charge", "charge", "ship"]),
        (
            "saga",
            r#"FULL {"free":0} the hotel is full"#,
            &["pay", "book", "refund"],
        ),
        (
            "two shops",
            "order at other",
            &["order at one", "order at other", "tell"],
        ),
        ("ticket", "ticket 1, of 1", &["open 1", "pack", "send"]),
        ("branches", "end", &["b", "a", "end"]),
        (
            "resume",
            "3 parts, the last is Some(2)",
            &["part 0", "part 1", "part 2"],
        ),
        ("top save", "shipping", &["pay", "ship"]),
        ("clock", "on time", &["work", "on time"]),
        ("chat", "hello", &[]),
    ];
    each_row_async(rows, async |(name, answer, effects)| {
        each_crash(name, |place, reply, done| {
            let text = reply.artifact_text("program");
            assert_eq!(text.as_deref(), Some(answer), "{place}");
            let mut once = done.clone();
            once.dedup();
            let mut expected = effects.to_vec();
            if name != "retries by hand" {
                // What was open at the crash is done again.
                assert!(done.len() <= effects.len() + 2, "{place}: {done:?}");
            }
            expected.dedup();
            once.sort_unstable();
            once.dedup();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(once, expected, "{place}: {done:?}");
        })
        .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_charged_twice_and_never_a_third_time() {
    each_crash("retries by hand", |place, _, done| {
        let charges = done.iter().filter(|it| *it == "charge").count();
        assert_eq!(charges, 2, "{place}: {done:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_branch_says_what_it_has_to_say_once() {
    each_crash("branches", |place, reply, _| {
        assert_eq!(said(reply), ["b is here", "a is here"], "{place}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_same_branch_wins_in_each_run() {
    each_crash("race", |place, reply, _| {
        let text = reply.artifact_text("program").unwrap();
        let expected = "first fast before slow, second fast before slow";
        assert_eq!(text, expected, "{place}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_seed_chooses_which_of_two_open_steps_ends_first() {
    let winner = async |seed| {
        let agent = Agent::builder("test").skill(Program(Effects::default()));
        let mut client = SkillTest::new(&agent.build().unwrap(), "program");
        client.step_order(seed).crash_after(2);
        let reply = client.send("offers").await.unwrap();
        reply.artifact_text("program").unwrap()
    };
    let mut winners = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let first = winner(seed).await;
        assert_eq!(winner(seed).await, first, "seed {seed}");
        winners.insert(first);
    }
    assert_eq!(Vec::from_iter(winners), ["one", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_loads_its_place_says_each_part_once() {
    each_crash("resume", |place, reply, done| {
        assert_eq!(
            said(reply),
            ["0 is done", "1 is done", "2 is done"],
            "{place}"
        );
        assert_eq!(done, ["part 0", "part 1", "part 2"], "{place}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_with_tries_is_tried_again_and_says_nothing_twice() {
    each_crash("tries", |place, reply, done| {
        let text = reply.artifact_text("program").unwrap();
        assert_eq!(text, "answer NO", "{place}");
        assert_eq!(said(reply), ["asking"], "{place}");
        let refusals = done.iter().filter(|it| *it == "refused").count();
        assert!(refusals <= 2, "{place}: {done:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_between_tries_gives_the_turn_back_and_counts_all_tries() {
    let effects = Effects::default();
    let agent = Agent::builder("test").skill(Program(Arc::clone(&effects)));
    let mut client = SkillTest::new(&agent.build().unwrap(), "program");
    let reply = client.send("long tries").await.unwrap();
    assert_eq!(reply.artifact_text("program").as_deref(), Some("answer"));
    assert_eq!(lock(&effects).len(), 5);
}
