//! Messages that look like an answer and are none.

use super::*;
use a2a_lambda::task::metadata_keys::CONFIRM;
use a2a_lambda::testing::ScriptedModel;

fn reference() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

/// Waits until it may store something.
#[derive(Serialize, Deserialize)]
struct May;

impl SkillSlot for May {}

/// Stores a decision, if its user says so.
#[skill(id = "store", tags = ["test"], examples = ["store the decision"])]
struct Store;

impl SkillHandler<May> for Store {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, May>> {
        let mut part = Part::text("May I store it? Answer yes or no.");
        part.metadata.insert(CONFIRM.to_owned(), "digest".into());
        Ok(OnRequestResult::InputRequired {
            message: Content::from_parts(vec![part]),
            slot: May,
        })
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: May,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, May>> {
        OnInputResult::done(answer.text()?.to_owned())
    }
}

/// Draws a logo.
#[skill(id = "logo", tags = ["test"], examples = ["Generate logo"])]
async fn logo(wish: String) -> AgentResult<String> {
    Ok(wish)
}

/// Waits for a city.
#[skill(id = "book-flight", tags = ["test"], examples = ["Book a flight"])]
struct Flight;

impl SkillHandler<May> for Flight {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, May>> {
        OnRequestResult::ask("Where to?", May)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: May,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, May>> {
        OnInputResult::done(answer.text()?.to_owned())
    }
}

fn desk_agent() -> Result<AgentDefinition, BuildError> {
    let agent = Agent::builder("desk").skill(Store).skill(logo);
    agent.skill(Flight).build()
}

fn desk() -> World {
    World::serving(|_| desk_agent(), |_| ()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_model_has_no_say_in_a_consent() {
    let router = ScriptedModel::new();
    let agent = |_| desk_agent();
    let world = World::thinking(agent, &ScriptedModel::never(), &router).unwrap();
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client
        .plays(&says("store the decision", Begins("store", "store")))
        .await;
    client.plays(&says("yes", Answers("store"))).await;
    assert_eq!(router.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_consent_takes_its_words_only_and_only_at_once() {
    let store = || says("store the decision", Begins("store", "store"));
    let flight = || says("Book a flight", Begins("book-flight", "flight"));
    let draws = || says("Generate logo", Begins("logo", "logo")).free();
    let rows = vec![
        conversation("yes", EVERY, [store(), says("yes", Answers("store"))]),
        conversation("no", EVERY, [store(), says("No.", Answers("store"))]),
        conversation(
            "other words",
            NO_TASK,
            [store(), says("make it blue", Asks)],
        ),
        conversation(
            "a logo between",
            EVERY,
            [store(), draws(), says("ok", Asks).free()],
        ),
        conversation(
            "a flight waits too",
            NO_TASK,
            [
                store(),
                flight(),
                says("yes", Asks),
                says("1", Forwards("store")),
            ],
        ),
        conversation(
            "a flight waited before",
            NO_TASK,
            [
                flight(),
                store(),
                says("Helsinki", Asks),
                says("1", Forwards("flight")),
            ],
        ),
        conversation(
            "a city",
            NO_TASK,
            [store(), flight(), says("Helsinki", Answers("flight"))],
        ),
        conversation(
            "the flight is named",
            &[Context],
            [
                store(),
                flight(),
                says("Oslo", Answers("flight")).about(&["flight"]),
            ],
        ),
        conversation(
            "yes about the flight",
            &[Context],
            [store(), flight(), says("yes", Asks).about(&["flight"])],
        ),
    ];
    play(desk, rows).await;
}

#[tokio::test(start_paused = true)]
async fn credentials_are_taken_by_their_task_only() {
    let flight = || says("Book a flight", Begins("book-flight", "flight"));
    let format = || says("Format my report", Begins("format-report", "format")).free();
    let pdf = || says("PDF", Answers("format"));
    let key = |does| says("sk-secret-123", does);
    let rows = vec![
        conversation(
            "by context",
            NO_TASK,
            [
                format(),
                pdf(),
                key(Refused),
                key(Answers("format")).to("format"),
            ],
        ),
        conversation(
            "a flight waits too",
            NO_TASK,
            [flight(), format(), pdf(), key(Refused)],
        ),
        conversation(
            "by the task",
            &[Task],
            [format(), pdf(), key(Answers("format"))],
        ),
        conversation(
            "a declared text",
            NO_TASK,
            [format(), pdf(), says("What's 2+2?", Begins("add", "sum"))],
        ),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn data_is_no_answer_by_context() {
    let flight = || says("Book a flight", Begins("book-flight", "flight"));
    let ordinary = json!({"skill": "Rust", "input": "5 years"});
    let rows = vec![
        conversation("a record", &[Context], [gives(&ordinary, Asks)]),
        conversation(
            "while a flight waits",
            NO_TASK,
            [flight(), gives(&ordinary, Asks)],
        ),
        conversation(
            "a file's name",
            &[Context],
            [gives(
                &json!({"name": "logo", "input": "brand/acme.svg"}),
                Asks,
            )],
        ),
        conversation(
            "a flight of its own",
            NO_TASK,
            [
                flight(),
                gives(&json!({"to": "Helsinki"}), Begins("book-flight", "second")),
            ],
        ),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn other_contexts_and_callers_are_no_part_of_a_conversation() {
    let world = reference();
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client
        .plays(&says("Book a flight", Begins("book-flight", "flight")))
        .await;
    client.context = None;
    client.plays(&says("Helsinki", Asks)).await;
    client.context = None;
    client
        .plays(&says("Generate logo", Begins("logo", "logo")))
        .await;
    client.context = None;
    let blue = || says("Make it blue", Refines("logo", "logo", "blue"));
    client.plays(&blue().about(&["logo"])).await;
    // A task of another tenant is as one that does not exist.
    let params = Dialect::Rest10.say(&Say {
        skill: None,
        ..Say::to("", "Generate logo")
    });
    let foreign = Dialect::Rest10
        .request(Op::Send, "", &params)
        .from("acme:ann");
    let foreign = Dialect::Rest10.task(&world.call(&foreign).await);
    client
        .names
        .insert("foreign", foreign["id"].as_str().unwrap().to_owned());
    client.context = None;
    client
        .plays(&says("Make it blue", Asks).about(&["foreign"]))
        .await;
}

/// Sixteen references to four skills and to a task that does not exist: the last one counts.
#[tokio::test(start_paused = true)]
async fn the_last_readable_reference_of_sixteen_counts() {
    let world = reference();
    let mut client = Client::new(&world, Dialect::Rest10, All);
    for number in 0..14 {
        let words = format!("add {number} and 2");
        client.plays(&says(&words, Begins("add", "sum"))).await;
    }
    client
        .plays(&says(
            "Remember that I like tea",
            Begins("memory_add", "memory"),
        ))
        .await;
    client
        .plays(&says("user", Answers("memory")).to("memory"))
        .await;
    client.plays(&says("Create a report as PDF", Asks)).await;
    client
        .plays(&says("Generate logo", Begins("logo", "logo")))
        .await;
    client
        .seen
        .push("task-00000000000000000000000000000000".to_owned());
    client
        .plays(&says("Make it blue", Refines("logo", "logo", "blue")))
        .await;
}

/// Another client answers between the question and its answer by context.
#[tokio::test(start_paused = true)]
async fn a_question_that_another_client_has_answered_is_not_answered_twice() {
    let world = reference();
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client
        .plays(&says("Create a report", Begins("create-report", "report")))
        .await;
    client.plays(&says("PDF format", Answers("report"))).await;
    client.plays(&says("Markdown", Asks)).await;
}

/// Both are on their way before one of them is stored.
#[tokio::test(start_paused = true)]
async fn of_two_answers_by_context_at_once_one_counts_and_the_other_is_routed_again() {
    let world = reference();
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client
        .plays(&says("Create a report", Begins("create-report", "report")))
        .await;
    let mut other = Client::new(&world, Dialect::Rest10, Context);
    (other.context, other.count) = (client.context.clone(), 10);
    world.store.hold();
    let (pdf, markdown) = (says("PDF format", Asks), says("Markdown", Asks));
    let release = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        world.store.release();
    };
    let ((first, _), (second, _), ()) =
        tokio::join!(client.send(&pdf), other.send(&markdown), release);
    let tasks = [first, second].map(|reply| Dialect::Rest10.task(&reply));
    let report = client.id("report");
    let (answered, asked): (Vec<_>, Vec<_>) = tasks.iter().partition(|it| it["id"] == report);
    let state = |task: &Value| Dialect::Rest10.state(task);
    assert_eq!(answered.len(), 1, "{tasks:?}");
    assert_eq!(state(answered[0]), "completed");
    assert_eq!(state(asked[0]), "input-required");
    assert_eq!(client.record(&report).await.turn, 2);
}

#[tokio::test(start_paused = true)]
async fn a_number_counts_the_open_tasks_and_then_the_skills() {
    const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];
    for number in [3, 7] {
        let world = reference();
        let mut client = Client::new(&world, Dialect::Rest10, Context);
        for name in NAMES {
            let flight = says("Book a flight", Begins("book-flight", name));
            client.plays(&flight).await;
        }
        client
            .plays(&says("What's 2+2?", Begins("add", "sum")))
            .await;
        client.plays(&says("Helsinki", Asks)).await;
        let (question, _) = client.last.clone().unwrap();
        let asked = client.record(&question).await;
        let parts = &asked.status.message.as_ref().unwrap().parts;
        let choices = parts[0].metadata["a2a-lambda/choices"].as_array().unwrap();
        assert_eq!(choices.len(), 10);
        let ids = choices.iter().map(|choice| choice["id"].as_str().unwrap());
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        assert_eq!(ids[..5], NAMES.map(|name| client.id(name)));
        let reply = says(&number.to_string(), Asks);
        let task = Dialect::Rest10.task(&client.send(&reply).await.0);
        let words = Dialect::Rest10.status_words(&task);
        if number == 3 {
            assert_eq!(task["id"], client.id("three"));
            assert_eq!(words, "When?");
            continue;
        }
        let record = client.record(&question).await;
        let skill = record.skill.as_ref().map(ToString::to_string);
        let needs = format!("(`{}`) needs", ids[6]);
        assert!(
            skill.as_ref() == Some(&ids[6]) || words.contains(&needs),
            "{skill:?} {words}"
        );
    }
}
