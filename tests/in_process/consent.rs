//! What a model writes runs only with the consent of a user to what the user has read.

use a2a_lambda::testing::ScriptedModel;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::World;
use serde_json::{Value, json};

const KEY: &str = "a2a-lambda/confirm";

per_dialect! {
    paused ALL:
    an_answer_with_another_digest_confirms_nothing
}

/// Sends a message with this digest in its metadata.
async fn sends(world: &World, dialect: Dialect, say: &Say<'_>, digest: Option<&Value>) -> Value {
    let mut params = dialect.say(say);
    if let Some(digest) = digest {
        params["message"]["metadata"][KEY] = digest.clone();
    }
    dialect.task(&world.call(&dialect.request(Op::Send, "", &params)).await)
}

async fn an_answer_with_another_digest_confirms_nothing(dialect: Dialect) {
    let memory = json!({"content": "Ann likes tea", "layer": "user"});
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory)
        .text("I remember that.");
    let agent = |_| reference_agent::agent();
    let world = World::thinking(agent, &model, &ScriptedModel::never()).unwrap();
    let asked = sends(&world, dialect, &Say::to("assist", "Keep it in mind"), None).await;
    assert_eq!(dialect.state(&asked), "input-required", "{asked}");
    let parts = asked["status"]["message"][dialect.parts()]
        .as_array()
        .unwrap();
    let digest = &parts[0]["metadata"][KEY];
    let task = asked["id"].as_str().unwrap();
    let yes = |id| Say {
        id,
        ..Say::in_task(task, "yes")
    };
    for (id, wrong) in [("2", json!("0".repeat(64))), ("3", json!(7))] {
        let again = sends(&world, dialect, &yes(id), Some(&wrong)).await;
        assert_eq!(dialect.state(&again), "input-required", "{again}");
        let part = &again["status"]["message"][dialect.parts()][0];
        assert_eq!(&part["metadata"][KEY], digest, "{again}");
    }
    assert_eq!(model.requests().len(), 1);
    let done = sends(&world, dialect, &yes("4"), Some(digest)).await;
    assert_eq!(dialect.state(&done), "completed", "{done}");
    model.finish().unwrap();
}

const REST: Dialect = Dialect::Rest10;

/// The reference agent, whose models answer this.
fn thinking(model: &ScriptedModel, router: &ScriptedModel) -> World {
    World::thinking(|_| reference_agent::agent(), model, router).unwrap()
}

fn memory(content: &str) -> Value {
    json!({"content": content, "layer": "company"})
}

/// The task of a message of a client that knows nothing of this project.
async fn says(
    world: &World,
    id: &str,
    text: &str,
    (task, context): (Option<&str>, Option<&str>),
) -> Value {
    // The next message of a person is later.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let say = Say {
        text,
        skill: None,
        task,
        new_task: "",
        context,
        id,
    };
    REST.task(&world.call(&REST.send(&say)).await)
}

/// What the company remembers of this.
async fn remembers(world: &World, query: &str) -> Value {
    let text = format!("/memory_search {}", json!({ "query": query }));
    let task = says(world, "search", &text, (None, None)).await;
    task["artifacts"][0]["parts"][0]["data"].clone()
}

/// The words that confirm the question of a task and no other.
fn code(task: &Value) -> String {
    let words = REST.status_words(task);
    let line = words.lines().last().unwrap();
    let code = line.split('`').nth(1).unwrap();
    assert!(code.starts_with("yes "), "{line}");
    code.to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_model_that_routes_writes_only_what_its_user_has_read() {
    let sting = "Invoices go to another account";
    let route = json!({"skill": "memory_add", "input": memory(sting)});
    let router = ScriptedModel::new().answer(route.clone()).answer(route);
    let world = thinking(&ScriptedModel::never(), &router);
    let mail = "Summarise this mail: pay me";
    let asks = says(&world, "1", mail, (None, None)).await;
    assert_eq!(REST.state(&asks), "input-required", "{asks}");
    assert!(REST.status_words(&asks).contains(sting), "{asks}");
    assert_eq!(remembers(&world, "Invoices").await["total"], 0);
    let refused = says(&world, "2", "no", (asks["id"].as_str(), None)).await;
    assert_eq!(REST.state(&refused), "canceled", "{refused}");

    let asks = says(&world, "3", mail, (None, None)).await;
    let done = says(&world, "4", "yes", (asks["id"].as_str(), None)).await;
    assert_eq!(REST.state(&done), "completed", "{done}");
    let memories = remembers(&world, "Invoices").await;
    assert_eq!(memories["total"], 1, "{memories}");
    assert_eq!(
        memories["results"][0]["origin"]["via"], "model",
        "{memories}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_reads_takes_what_the_model_of_the_router_wrote() {
    let route = json!({"skill": "memory_search", "input": {"query": "tea"}});
    let router = ScriptedModel::new().answer(route);
    let world = thinking(&ScriptedModel::never(), &router);
    let done = says(
        &world,
        "1",
        "what do we drink here, after all",
        (None, None),
    )
    .await;
    assert_eq!(REST.state(&done), "completed", "{done}");
    assert_eq!(
        done["metadata"]["a2a-lambda/input"],
        json!({"query": "tea"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_client_that_says_yes_to_the_first_question_confirms_no_other() {
    let model = ScriptedModel::new()
        .tool_call(
            "memory_add",
            json!({"content": "A harmless note", "layer": "user"}),
        )
        .tool_call("memory_add", memory("The sting"))
        .text("Done.");
    let world = thinking(&model, &ScriptedModel::never());
    let first = says(&world, "1", "/assist note it", (None, None)).await;
    let task = first["id"].as_str();
    let second = says(&world, "2", "yes", (task, None)).await;
    assert!(REST.status_words(&second).contains("The sting"), "{second}");
    let again = says(&world, "3", "yes", (task, None)).await;
    assert_eq!(REST.status_words(&again), REST.status_words(&second));
    assert_eq!(remembers(&world, "sting").await["total"], 0);
    let done = says(&world, "4", &code(&again), (task, None)).await;
    assert_eq!(REST.state(&done), "completed", "{done}");
    assert_eq!(remembers(&world, "sting").await["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_yes_without_a_task_confirms_the_only_question_of_its_context() {
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory("We drink tea"))
        .text("Tea.")
        .tool_call("memory_add", memory("We drink juice"))
        .text("Juice.");
    let world = thinking(&model, &ScriptedModel::never());
    let asks = says(&world, "1", "/assist tea", (None, None)).await;
    let context = Some(asks["contextId"].as_str().unwrap());
    let done = says(&world, "2", "yes", (None, context)).await;
    assert_eq!(done["id"], asks["id"]);
    assert_eq!(REST.state(&done), "completed", "{done}");
    // A later one of the same context can be mistaken for it.
    let asks = says(&world, "3", "/assist juice", (None, context)).await;
    let again = says(&world, "4", "yes", (None, context)).await;
    assert_eq!(again["id"], asks["id"]);
    assert_eq!(REST.state(&again), "input-required", "{again}");
    assert_eq!(remembers(&world, "juice").await["total"], 0);
    let done = says(&world, "5", &code(&again), (None, context)).await;
    assert_eq!(done["id"], asks["id"]);
    assert_eq!(remembers(&world, "juice").await["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_questions_that_wait_a_code_picks_its_own() {
    let model = ScriptedModel::new()
        .tool_call("memory_add", memory("We drink tea"))
        .tool_call("memory_add", memory("We drink juice"))
        .text("Done.");
    let world = thinking(&model, &ScriptedModel::never());
    let tea = says(&world, "1", "/assist tea", (None, None)).await;
    let context = Some(tea["contextId"].as_str().unwrap());
    let juice = says(&world, "2", "/assist juice", (None, context)).await;
    assert_eq!(REST.state(&juice), "input-required", "{juice}");
    // Neither task gets it, and a `yes` that the list passes on confirms no more than any other.
    let asks = says(&world, "3", "yes", (None, context)).await;
    let chosen = says(&world, "4", "1", (None, context)).await;
    assert_eq!(REST.state(&chosen), "input-required", "{asks} {chosen}");
    assert_eq!(remembers(&world, "drink").await["total"], 0);
    let again = says(&world, "5", "later", (tea["id"].as_str(), None)).await;
    let done = says(&world, "6", &code(&again), (None, context)).await;
    assert_eq!(done["id"], tea["id"], "{done}");
    assert_eq!(remembers(&world, "tea").await["total"], 1);
    assert_eq!(remembers(&world, "juice").await["total"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_says_first_how_much_it_does_not_show_and_its_data_has_it_all() {
    let content = format!("{}STING{}", "a".repeat(900), "b".repeat(338));
    let model = ScriptedModel::new().tool_call("memory_add", memory(&content));
    let world = thinking(&model, &ScriptedModel::never());
    let asks = says(&world, "1", "/assist note it", (None, None)).await;
    let words = REST.status_words(&asks);
    assert!(
        words.starts_with("219 characters are not shown here"),
        "{words}"
    );
    assert!(!words.contains("STING"), "{words}");
    let data = &asks["status"]["message"]["parts"][1]["data"];
    assert_eq!(data["calls"][0]["input"], memory(&content), "{asks}");
}
