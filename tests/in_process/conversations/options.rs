//! Agents whose messages answer by context before their parts choose a skill.

use super::*;
use a2a_lambda::skill::{AgentBuilder, FilePart};

/// Waits for the other file.
#[derive(Serialize, Deserialize)]
struct Other;

impl SkillSlot for Other {}

/// Compares two PDF files.
#[skill(id = "compare", tags = ["test"], input_modes = ["application/pdf"])]
struct Compare;

impl SkillHandler<Other> for Compare {
    type Input = FilePart;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: FilePart,
    ) -> AgentResult<OnRequestResult<String, Other>> {
        OnRequestResult::ask("The second file?", Other)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Other,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Other>> {
        OnInputResult::done("compared".to_owned())
    }
}

/// Talks.
#[skill(id = "chat", tags = ["test"])]
async fn chat(words: String) -> AgentResult<String> {
    Ok(words)
}

/// Asks for a city.
#[skill(id = "book-flight", tags = ["test"], examples = ["Book a flight"])]
struct Flight;

impl SkillHandler<Other> for Flight {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, Other>> {
        OnRequestResult::ask("Where to?", Other)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Other,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, Other>> {
        OnInputResult::done(answer.text()?.to_owned())
    }
}

fn serving(builder: fn() -> AgentBuilder, has_option: bool) -> World {
    let agent = move |_| match has_option {
        true => builder().answers_by_context().build(),
        false => builder().build(),
    };
    World::serving(agent, |_| ()).unwrap()
}

fn files() -> AgentBuilder {
    Agent::builder("files").skill(Compare).skill(chat)
}

fn single() -> AgentBuilder {
    Agent::builder("single").skill(Flight)
}

fn pdf(does: Does) -> Turn {
    turn(
        json!({"raw": "JVBERi0xLjQK", "mediaType": "application/pdf"}),
        does,
    )
}

#[tokio::test(start_paused = true)]
async fn the_only_skill_is_answered_by_context_if_the_agent_says_so() {
    let flight = || says("Book a flight", Begins("book-flight", "flight"));
    let second = || says("Book a flight", Begins("book-flight", "second"));
    let helsinki = says("Helsinki", Answers("flight"));
    let rows = vec![
        conversation("an answer", NO_TASK, [flight(), helsinki]),
        conversation("a second flight", NO_TASK, [flight(), second()]),
        conversation(
            "nothing waits",
            NO_TASK,
            [says("Oslo", Begins("book-flight", "flight"))],
        ),
    ];
    play(|| serving(single, true), rows).await;
    let opens = says("Helsinki", Begins("book-flight", "second"));
    let rows = vec![conversation("by default", NO_TASK, [flight(), opens])];
    play(|| serving(single, false), rows).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_answers_by_context_if_the_agent_says_so() {
    for (has_option, does) in [
        (true, Answers("files")),
        (false, Begins("compare", "second")),
    ] {
        let world = serving(files, has_option);
        let mut client = Client::new(&world, Dialect::Rest10, Context);
        client.plays(&pdf(Begins("compare", "files"))).await;
        client.plays(&pdf(does)).await;
    }
    let world = serving(files, true);
    let mut client = Client::new(&world, Dialect::Rest10, Context);
    client.plays(&pdf(Begins("compare", "files"))).await;
    client
        .plays(&says("What can you do?", Begins("chat", "chat")))
        .await;
}
