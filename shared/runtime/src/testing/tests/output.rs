//! What a skill delivers, and how a client reads it.

use crate::prelude::*;
use crate::skill::FileSource;
use crate::task::{ArtifactUpdate, Event, Part};
use crate::testing::{OutputFault, Reply, ScriptedModel, SkillTest, SkillTestError};
use a2a_lambda_llm::LlmWorker;
use a2a_lambda_skill::FileContent;
use futures::future::{join, select};
use std::pin::pin;

/// Writes `what` in chunks.
#[skill(id = "write", tags = ["test"], output_modes = ["text/plain", "text/csv"])]
async fn write(cx: &mut TaskContext<'_>, what: String) -> AgentResult<()> {
    match what.as_str() {
        "text" => {
            let mut text = cx.artifact_chunks("text");
            text.push("one ").await?;
            text.push("two").await?;
            text.finish().await
        }
        "table" => {
            let mut table = cx.artifact_chunks("rows.csv").media_type("text/csv");
            table.push("a,b\n").await?;
            table.push_part(Part::text("a note")).await?;
            table.finish_with("1,2\n").await
        }
        "parts" => {
            let parts = vec![Part::text("first"), Part::text("second")];
            cx.send_partial_artifact(Artifact::from_parts("parts", parts))
                .await
        }
        "two writers" => {
            let (mut a, mut b) = (cx.artifact_chunks("text"), cx.artifact_chunks("text"));
            a.push("one ").await?;
            b.push("two ").await?;
            a.push("three").await?;
            b.finish().await
        }
        "first finishes last" => {
            let (mut a, mut b) = (cx.artifact_chunks("text"), cx.artifact_chunks("text"));
            a.push("one ").await?;
            b.push("two ").await?;
            b.finish().await?;
            a.finish_with("three").await
        }
        "one after the other" => {
            let mut first = cx.artifact_chunks("text");
            first.push("a draft").await?;
            cx.artifact_chunks("text").finish_with("the text").await
        }
        "first dropped" => {
            let mut text = cx.artifact_chunks("text");
            {
                let update = cx.send_intermediate_update("busy");
                let outputs = join(update, text.push("never said"));
                // The update is on its way, and the chunk waits for it.
                select(pin!(outputs), pin!(tokio::task::yield_now())).await;
            }
            text.finish_with("the text").await
        }
        "too large" => {
            let bytes = FileContent::from(vec![0; 100 * 1024 * 1024 + 1]);
            let file = Artifact::from_file("zeros.bin", "text/plain", bytes);
            cx.send_partial_artifact(file).await
        }
        _ => cx.artifact_chunks("text").push("no end").await,
    }
}

/// Streams its result, and returns it or another text.
#[skill(id = "answer", tags = ["test"])]
async fn answer(cx: &mut TaskContext<'_>, what: String) -> AgentResult<String> {
    let worker = LlmWorker::<String>::new("Answer.").stream_to_result();
    let text = worker.run(cx, &what).await?;
    Ok(if what == "loud" {
        text.to_uppercase()
    } else {
        text
    })
}

fn client(skill: &str) -> SkillTest {
    let agent = Agent::builder("writer").skill(write).skill(answer);
    SkillTest::new(&agent.build().unwrap(), skill)
}

async fn send(text: &str) -> (SkillTest, Result<Reply, SkillTestError>) {
    let mut client = client("write");
    let reply = client.send(text).await;
    (client, reply)
}

fn updates(client: &SkillTest) -> Vec<&ArtifactUpdate> {
    let mut updates = Vec::new();
    for event in client.events() {
        if let Event::Artifact(update) = event {
            updates.push(update);
        }
    }
    updates
}

#[tokio::test]
async fn chunks_of_a_text_are_read_as_one_part() {
    let (client, reply) = send("text").await;
    let parts = reply.unwrap().artifact("text").unwrap().parts;
    assert_eq!(parts, [Part::text("one two")]);
    let chunks = updates(&client);
    let texts = chunks.iter().map(|chunk| chunk.artifact.parts.clone());
    let sent = ["one ", "two", ""].map(|text| vec![Part::text(text)]);
    assert_eq!(texts.collect::<Vec<_>>(), sent, "a stream shows each chunk");
}

#[tokio::test]
async fn parts_of_an_author_stay_apart() {
    let (_, reply) = send("parts").await;
    let parts = reply.unwrap().artifact("parts").unwrap().parts;
    assert_eq!(parts, [Part::text("first"), Part::text("second")]);
}

#[tokio::test]
async fn chunks_of_another_media_type_stay_apart() {
    let (_, reply) = send("table").await;
    let parts = reply.unwrap().artifact("rows.csv").unwrap().parts;
    let types = parts.iter().map(Part::effective_media_type);
    assert_eq!(
        types.collect::<Vec<_>>(),
        ["text/csv", "text/plain", "text/csv"]
    );
}

#[tokio::test]
async fn two_writers_of_one_artifact_are_an_error() {
    let artifact = "text".to_owned();
    let fault = SkillTestError::Output(OutputFault::TwoWriters { artifact });
    assert_eq!(send("two writers").await.1, Err(fault.clone()));
    assert_eq!(send("first finishes last").await.1, Err(fault));
    let (_, reply) = send("one after the other").await;
    let text = reply.unwrap().artifact_text("text");
    assert_eq!(text.as_deref(), Some("the text"));
}

#[tokio::test]
async fn writer_that_is_dropped_is_an_error_and_its_artifact_ends() {
    let (client, reply) = send("dropped").await;
    let artifact = "text".to_owned();
    let fault = SkillTestError::Output(OutputFault::Unfinished { artifact });
    assert_eq!(reply, Err(fault));
    let ends: Vec<_> = updates(&client).iter().map(|it| it.last_chunk).collect();
    assert_eq!(
        ends,
        [false, true],
        "a client that waits for the end gets it"
    );
}

#[tokio::test]
async fn artifact_begins_with_the_first_chunk_that_is_said() {
    let (client, reply) = send("first dropped").await;
    let text = reply.unwrap().artifact_text("text");
    assert_eq!(text.as_deref(), Some("the text"));
    let appends: Vec<_> = updates(&client).iter().map(|it| it.append).collect();
    assert_eq!(appends.first(), Some(&false), "{:?}", updates(&client));
}

#[tokio::test]
async fn streamed_result_is_not_sent_again() {
    let mut client = client("answer");
    let reply = client
        .model(ScriptedModel::new().text("four"))
        .send("2+2")
        .await;
    assert_eq!(
        reply.unwrap().artifact_text("answer").as_deref(),
        Some("four")
    );
    let whole = updates(&client).into_iter().filter(|update| !update.append);
    assert_eq!(whole.count(), 1, "{:?}", updates(&client));
}

#[tokio::test]
async fn result_that_differs_from_the_stream_replaces_it() {
    let mut client = client("answer");
    let reply = client
        .model(ScriptedModel::new().text("four"))
        .send("loud")
        .await;
    assert_eq!(
        reply.unwrap().artifact_text("answer").as_deref(),
        Some("FOUR")
    );
}

#[tokio::test]
async fn file_above_the_limit_names_its_size() {
    let reply = send("too large").await.1.unwrap();
    assert_eq!(reply.error_code(), Some("ARTIFACT_TOO_LARGE"));
    let text = "the artifact `zeros.bin` has 104857601 bytes; 104857600 bytes are allowed";
    assert_eq!(reply.text(), text);
}

/// Makes a file of this many bytes, or makes the one of an earlier task longer.
#[skill(id = "grow", tags = ["test"], output_modes = ["text/plain", "application/octet-stream"])]
async fn grow(cx: &mut TaskContext<'_>, bytes: String) -> AgentResult<String> {
    let mut earlier = cx.references().await?.iter();
    let file = earlier.find_map(|task| task.artifact("grown.bin")?.file());
    let mut content = vec![7; bytes.parse()?];
    let mut place = "new";
    if let Some(file) = file {
        place = match &file.source {
            FileSource::Bytes(_) => "in the task",
            FileSource::Stored(_) => "an object",
            FileSource::Url(_) => "elsewhere",
        };
        content.extend(cx.read_file(&file).await?);
    }
    let text = format!("{place}: {}", content.len());
    let file = Artifact::from_file("grown.bin", "application/octet-stream", content);
    cx.send_partial_artifact(file).await?;
    Ok(text)
}

#[tokio::test]
async fn file_of_an_earlier_task_is_read_wherever_it_is_stored() {
    let agent = Agent::builder("files").skill(grow).build().unwrap();
    for (bytes, text) in [("10", "in the task: 15"), ("6000000", "an object: 6000005")] {
        let mut client = SkillTest::new(&agent, "grow");
        let first = client.send(bytes).await.unwrap();
        let id = first.task().unwrap().id.as_str();
        let second = client.references([id]).send("5").await.unwrap();
        assert_eq!(second.artifact_text("grow").as_deref(), Some(text));
    }
}
