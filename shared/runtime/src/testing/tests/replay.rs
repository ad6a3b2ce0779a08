//! A turn that runs again after a crash or a hand-over is the same turn.

use super::*;
use a2a_lambda_llm::LlmWorker;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_skill::Tool;
use a2a_lambda_skill::model::ModelContent;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the skills of a test have done outside of their tasks.
type Effects = Arc<Mutex<Vec<String>>>;

fn effects_of(effects: &Effects) -> Vec<String> {
    lock(effects).clone()
}

/// How often a turn is tried with a crash after one more commit.
const POINTS: u64 = 64;

/// Sends `text` to `skill` without a crash, and with a crash after each commit. Gets the
/// reply, what clients saw, and the effects of each.
async fn each_crash(
    skill: &str,
    text: &str,
    agent: impl Fn(Effects) -> AgentDefinition,
    model: impl Fn() -> ScriptedModel,
    check: impl AsyncFn(String, SkillTest, Reply, Vec<String>),
) {
    for crash in 0..POINTS {
        let effects = Effects::default();
        let mut client = SkillTest::new(&agent(Arc::clone(&effects)), skill);
        client.model(model());
        if crash > 0 {
            client.crash_after(crash);
        }
        let reply = match client.send(text).await {
            Err(SkillTestError::NoCrash { .. }) => return,
            reply => reply.unwrap(),
        };
        let place = format!("crash after commit {crash}");
        check(place, client, reply, effects_of(&effects)).await;
    }
    panic!("the turn has more than {POINTS} commits");
}

fn no_model() -> ScriptedModel {
    ScriptedModel::new()
}

/// The texts of the agent in the history, and in the status of the task.
fn messages(reply: &Reply) -> Vec<String> {
    let Reply::Task(task) = reply else {
        panic!("{reply:?}")
    };
    let history = task.history.iter().flatten();
    let messages = history.chain(&task.status.message);
    let of_agent = messages.filter(|message| message.role == crate::task::Role::Agent);
    let texts = of_agent.map(|message| Content::from_parts(message.parts.clone()));
    texts
        .map(|content| content.text().unwrap().to_owned())
        .collect()
}

/// Pays each invoice, in a step around the step that charges.
#[skill(id = "invoices", tags = ["test"])]
struct Invoices(Effects);

impl SkillHandler for Invoices {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        text: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let mut receipts = Vec::new();
        for invoice in text.split(' ') {
            let invoice = cx.step("invoice", charge(cx, &self.0, invoice)).await?;
            receipts.push(invoice);
        }
        OnRequestResult::done(receipts.join(", "))
    }
}

async fn charge(cx: &TaskContext<'_>, effects: &Effects, invoice: &str) -> AgentResult<String> {
    cx.step("charge", async {
        lock(effects).push(format!("paid {invoice}"));
        Ok(format!("receipt of {invoice}"))
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn each_invoice_is_paid_once_whenever_the_process_dies() {
    let agent = |effects| {
        let agent = Agent::builder("bank").skill(Invoices(effects));
        agent.build().unwrap()
    };
    each_crash(
        "invoices",
        "A B C",
        agent,
        no_model,
        async |place, _, reply, effects| {
            let receipts = reply.artifact_text("invoices");
            let expected = "receipt of A, receipt of B, receipt of C";
            assert_eq!(receipts.as_deref(), Some(expected), "{place}");
            assert_eq!(effects, ["paid A", "paid B", "paid C"], "{place}");
        },
    )
    .await;
}

/// Pays one invoice.
#[skill(id = "pay", tags = ["test"])]
struct Pay(Effects);

impl SkillHandler for Pay {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        invoice: String,
    ) -> AgentResult<OnRequestResult<String>> {
        cx.save_session(&invoice, &"paid")?;
        let receipt = charge(cx, &self.0, &invoice).await?;
        OnRequestResult::done(receipt)
    }
}

/// Lets a model pay.
#[skill(id = "clerk", tags = ["test"])]
struct Clerk(Effects);

impl SkillHandler for Clerk {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        text: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let pay = Tool::new(Pay(Arc::clone(&self.0))).trusted();
        let clerk = LlmWorker::<String>::new("Pay.").skills([pay]);
        OnRequestResult::done(clerk.run(cx, &text).await?)
    }
}

/// Says what the session has for the words of the message.
#[skill(id = "recall", tags = ["test"])]
async fn recall(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let mut values = Vec::new();
    for key in text.split(' ') {
        let value = cx.load_session::<serde_json::Value>(key).await?;
        values.push(format!("{key} {}", value.unwrap_or_default()));
    }
    let thread = cx.thread().await?;
    let texts = thread.iter().flat_map(|message| &message.parts);
    let notes = texts.filter_map(|part| match &part.content {
        crate::task::PartContent::Text(text) => text.strip_prefix("note: "),
        _ => None,
    });
    values.extend(notes.map(str::to_owned));
    Ok(values.join(", "))
}

fn call(id: &str, invoice: &str) -> ModelContent {
    ModelContent::ToolUse {
        id: id.to_owned(),
        name: "pay".to_owned(),
        input: serde_json::json!({ "value": invoice }),
    }
}

fn bank(effects: Effects) -> AgentDefinition {
    let agent = Agent::builder("bank").skill(Clerk(effects)).skill(recall);
    agent.build().unwrap()
}

/// The results of its tools that a model got.
fn tool_results(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap().messages.iter();
    let results = messages.filter_map(|message| match message {
        a2a_lambda_skill::model::ModelMessage::ToolResults(results) => Some(results.clone()),
        _ => None,
    });
    let results = results.flatten();
    results
        .map(|result| result.result.unwrap().to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_model_pays_each_invoice_and_is_told_its_own_receipt() {
    // Two calls in two answers, and two in one.
    let scripts: [fn() -> ScriptedModel; 2] = [
        || {
            ScriptedModel::new()
                .content(vec![call("1", "A")])
                .content(vec![call("2", "B")])
                .text("done")
        },
        || {
            ScriptedModel::new()
                .content(vec![call("1", "A"), call("2", "B")])
                .text("done")
        },
    ];
    for script in scripts {
        for crash in 0..POINTS {
            let (effects, model) = (Effects::default(), script());
            let mut client = SkillTest::new(&bank(Arc::clone(&effects)), "clerk");
            client.model(model.clone());
            if crash > 0 {
                client.crash_after(crash);
            }
            match client.send("A and B").await {
                Err(SkillTestError::NoCrash { .. }) => break,
                reply => drop(reply.unwrap()),
            }
            assert_eq!(effects_of(&effects), ["paid A", "paid B"], "{crash}");
            let receipts = [r#""receipt of A""#, r#""receipt of B""#];
            assert_eq!(tool_results(&model), receipts, "{crash}");
            let reply = client.skill("recall").send("A B").await.unwrap();
            let values = reply.artifact_text("recall").unwrap();
            assert!(
                values.starts_with(r#"A "paid", B "paid""#),
                "{crash}: {values}"
            );
        }
    }
}

/// Learns in a step, then works on.
#[skill(id = "learn", tags = ["test"])]
async fn learn(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let learned = async {
        cx.save_session("home", &text)?;
        cx.update_session("visits", |visits: Option<u32>| visits.unwrap_or(0) + 1)?;
        cx.add_event(format!("note: lives in {text}"))?;
        Ok(())
    };
    cx.step("learn", learned).await?;
    cx.step("next", async { Ok(()) }).await?;
    Ok("kept".to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_a_step_taught_the_conversation_is_there_after_a_crash() {
    let agent = |_| {
        let agent = Agent::builder("memory").skill(learn).skill(recall);
        agent.build().unwrap()
    };
    each_crash(
        "learn",
        "Bern",
        agent,
        no_model,
        async |place, mut client, _, _| {
            let reply = client.skill("recall").send("home visits").await.unwrap();
            let values = reply.artifact_text("recall").unwrap();
            assert_eq!(values, r#"home "Bern", visits 1, lives in Bern"#, "{place}");
        },
    )
    .await;
}

/// Sends a message after each step.
#[skill(id = "shelve", tags = ["test"])]
async fn shelve(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    cx.send_intermediate_update("begun").await?;
    let mut list = cx.artifact_chunks("list");
    for book in text.split(' ') {
        cx.step("shelve", async { cx.send_intermediate_update("…").await })
            .await?;
        cx.send_intermediate_update(format!("shelved {book}"))
            .await?;
        list.push(book).await?;
    }
    list.finish_with(".").await?;
    Ok("done".to_owned())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_twice_after_a_crash() {
    let agent = |_| Agent::builder("library").skill(shelve).build().unwrap();
    each_crash(
        "shelve",
        "s t u",
        agent,
        no_model,
        async |place, _, reply, _| {
            let expected = [
                "begun",
                "…",
                "shelved s",
                "…",
                "shelved t",
                "…",
                "shelved u",
            ];
            assert_eq!(messages(&reply), expected, "{place}");
            assert_eq!(
                reply.artifact_text("list").as_deref(),
                Some("stu."),
                "{place}"
            );
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_twice_after_a_hand_over() {
    let agent = Agent::builder("library").skill(slowly).build().unwrap();
    let mut client = SkillTest::new(&agent, "slowly");
    client.time_left(Duration::from_secs(30));
    let reply = client.send("x").await.unwrap();
    let expected: Vec<String> = (1..=8).map(|n| format!("{n} of 8")).collect();
    assert_eq!(messages(&reply), expected);
}

/// Writes an artifact in the way its input names.
#[skill(id = "writes", tags = ["test"])]
async fn writes(cx: &mut TaskContext<'_>, way: String) -> AgentResult<()> {
    let mut text = cx.artifact_chunks("text");
    if way == "outside and inside" {
        text.push("a").await?;
    }
    for chunk in ["b", "c"] {
        if way == "outside" {
            let chunk = cx.step("chunk", async { Ok(chunk.to_owned()) }).await?;
            text.push(chunk).await?;
        } else {
            cx.step("chunk", text.push(chunk)).await?;
        }
    }
    text.finish().await
}

#[tokio::test(start_paused = true)]
async fn writer_of_two_steps_is_an_error_before_it_loses_a_chunk() {
    let agent = Agent::builder("library").skill(writes).build().unwrap();
    let artifact = "text".to_owned();
    let fault = SkillTestError::Output(OutputFault::AcrossSteps { artifact });
    for way in ["inside", "outside and inside"] {
        for crash in 0..3 {
            let mut client = SkillTest::new(&agent, "writes");
            if crash > 0 {
                client.crash_after(crash);
            }
            let sent = client.send(way).await;
            if !matches!(sent, Err(SkillTestError::NoCrash { .. })) {
                assert_eq!(sent, Err(fault.clone()), "{way} {crash}");
            }
        }
    }
    let agent = |_| Agent::builder("library").skill(writes).build().unwrap();
    each_crash(
        "writes",
        "outside",
        agent,
        no_model,
        async |place, _, reply, _| {
            assert_eq!(
                reply.artifact_text("text").as_deref(),
                Some("bc"),
                "{place}"
            );
        },
    )
    .await;
}

/// Takes 10 seconds for each step.
#[skill(id = "slowly", tags = ["test"])]
async fn slowly(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    for n in 1..=8 {
        let pause = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(())
        };
        cx.step("pause", pause).await?;
        cx.send_intermediate_update(format!("{n} of 8")).await?;
    }
    Ok("done".to_owned())
}

/// Does what a deployment between two runs of its turn changes.
#[skill(id = "changed", tags = ["test"])]
struct Changed {
    effects: Effects,
    way: &'static str,
    /// Whether the turn runs again.
    again: AtomicBool,
}

impl SkillHandler for Changed {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let again = self.again.swap(true, Ordering::SeqCst);
        let order: &[&str] = match (self.way, again) {
            ("reordered", true) => &["b", "a", "c"],
            ("renamed", true) => &["z", "b", "c"],
            ("removed", true) => &["b", "c"],
            ("added", true) => &["n", "a", "b", "c"],
            ("same", true) | (_, false) => &["a", "b", "c"],
            ("fewer", true) => &["a"],
            (way, true) => panic!("{way}"),
        };
        for name in order {
            let work = async {
                lock(&self.effects).push((*name).to_owned());
                Ok(())
            };
            // A skill cannot catch the end of its turn.
            let _caught = cx.step(name, work).await;
        }
        OnRequestResult::done("done".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn steps_that_a_deployment_changed_never_get_each_others_results() {
    let rows = [
        ("same", None, &["a", "b", "c"][..]),
        ("fewer", Some("STEP_CHANGED"), &["a", "b"]),
        ("reordered", Some("STEP_CHANGED"), &["a", "b"]),
        ("renamed", Some("STEP_CHANGED"), &["a", "b"]),
        ("removed", Some("STEP_CHANGED"), &["a", "b"]),
        ("added", Some("STEP_CHANGED"), &["a", "b"]),
    ];
    each_row_async(rows, async |(way, code, effects)| {
        let list = Effects::default();
        let skill = Changed {
            effects: Arc::clone(&list),
            way,
            again: AtomicBool::new(false),
        };
        let agent = Agent::builder("shop").skill(skill).build().unwrap();
        let mut client = SkillTest::new(&agent, "changed");
        let reply = client.crash_after(2).send("x").await.unwrap();
        assert_eq!(reply.error_code(), code, "{way}");
        assert_eq!(effects_of(&list), effects, "{way}");
        if code.is_some() {
            let cause = client.cause().unwrap();
            assert!(cause.contains("the skill asks for"), "{way}: {cause}");
        }
    })
    .await;
}

/// Pays the invoices of its settings.
#[skill(id = "settings", tags = ["test"])]
struct Orders(Arc<Mutex<Vec<Vec<&'static str>>>>, Effects);

impl SkillHandler for Orders {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let order = lock(&self.0).remove(0);
        for invoice in order {
            let pay = async {
                lock(&self.1).push(format!("paid {invoice}"));
                Ok(())
            };
            cx.step_of("pay", &invoice, pay).await?;
        }
        OnRequestResult::done("done".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn no_invoice_is_taken_for_another_one_when_their_order_changes() {
    let effects = Effects::default();
    let orders = Arc::new(Mutex::new(vec![vec!["A", "B"], vec!["B", "A"]]));
    let skill = Orders(orders, Arc::clone(&effects));
    let agent = Agent::builder("bank").skill(skill).build().unwrap();
    let mut client = SkillTest::new(&agent, "settings");
    let reply = client.crash_after(1).send("x").await.unwrap();
    assert_eq!(reply.error_code(), Some("STEP_CHANGED"));
    assert_eq!(effects_of(&effects), ["paid A"]);
}

/// Lets a model answer, with other words after each run.
#[skill(id = "advise", tags = ["test"])]
struct Advise {
    /// The instructions and the input of each run.
    runs: Arc<Mutex<Vec<(&'static str, &'static str)>>>,
}

impl SkillHandler for Advise {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let (instructions, input) = lock(&self.runs).remove(0);
        let adviser = LlmWorker::<String>::new(instructions).named("adviser");
        let first = adviser.run(cx, input).await?;
        cx.step("note", async { Ok(()) }).await?;
        OnRequestResult::done(first)
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_prompt_keeps_the_answer_and_a_changed_input_fails() {
    for (second, code, text) in [
        (("Be brief.", "x"), None, Some("first")),
        (("Be kind.", "y"), Some("STEP_CHANGED"), None),
    ] {
        let runs = Arc::new(Mutex::new(vec![("Be kind.", "x"), second]));
        let agent = Agent::builder("adviser").skill(Advise { runs });
        let mut client = SkillTest::new(&agent.build().unwrap(), "advise");
        client.model(ScriptedModel::new().text("first").text("second"));
        let reply = client.crash_after(1).send("x").await.unwrap();
        assert_eq!(reply.error_code(), code);
        assert_eq!(reply.artifact_text("advise").as_deref(), text);
    }
}

/// Runs branches at the same time, in scopes if the message says so.
#[skill(id = "branches", tags = ["test"])]
struct Branches(Effects);

impl SkillHandler for Branches {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        text: String,
    ) -> AgentResult<OnRequestResult<String>> {
        let cx = &*cx;
        let branches = (0..20).map(async |n| {
            let branch = async {
                let work = |part: &'static str| async move {
                    // The branches end in another order than they begin.
                    tokio::time::sleep(Duration::from_millis(7 * (20 - n) + 1)).await;
                    lock(&self.0).push(format!("{part} {n}"));
                    Ok(n)
                };
                cx.step("first", work("first")).await?;
                cx.step("second", work("second")).await
            };
            match text.as_str() {
                "scopes" => cx.scope(&format!("branch {n}"), branch).await,
                _ => branch.await,
            }
        });
        let numbers = futures::future::try_join_all(branches).await?;
        OnRequestResult::done(format!("{numbers:?}"))
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_branches_keep_their_own_results() {
    let agent = |effects| {
        let agent = Agent::builder("branches").skill(Branches(effects));
        agent.build().unwrap()
    };
    let numbers: Vec<u64> = (0..20).collect();
    each_crash(
        "branches",
        "scopes",
        agent,
        no_model,
        async |place, _, reply, mut effects| {
            let text = reply.artifact_text("branches");
            assert_eq!(text, Some(format!("{numbers:?}")), "{place}");
            effects.sort();
            let all = effects.len();
            effects.dedup();
            // The steps that were open at the crash may repeat their effects.
            assert!(effects.len() == 40 && all <= 60, "{place}: {all}");
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn branches_without_scopes_fail_in_their_first_run() {
    let agent = Agent::builder("branches").skill(Branches(Effects::default()));
    let mut client = SkillTest::new(&agent.build().unwrap(), "branches");
    let reply = client.send("no scopes").await.unwrap();
    assert_eq!(reply.error_code(), Some("INTERNAL_ERROR"));
    assert!(client.cause().unwrap().contains("`cx.scope`"));
}
