//! Documents as skills use them, on the real engine.

use crate::prelude::*;
use crate::testing::SkillTest;
use a2a_lambda_rows::each_row_async;
use std::time::Duration;

/// Counts its calls, each caller's and all together.
#[skill(id = "count", tags = ["test"])]
async fn count(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    let mut counts = Vec::new();
    for counters in [cx.own_documents("counters")?, cx.documents("counters")?] {
        let before = counters.get::<u32>("calls").await?;
        let after = before.as_ref().map_or(0, |it| it.value) + 1;
        let written = match &before {
            Some(it) => counters.replace("calls", &after, &it.version).await?,
            None => counters.create("calls", &after).await?,
        };
        assert!(written && !counters.create("calls", &0).await?);
        if let Some(before) = &before {
            assert!(!counters.replace("calls", &0, &before.version).await?);
        }
        counts.push(after.to_string());
    }
    Ok(counts.join(" "))
}

/// Writes documents, removes one, and lists the rest.
#[skill(id = "notes", tags = ["test"])]
async fn notes(cx: &mut TaskContext<'_>, said: String) -> AgentResult<String> {
    let notes = cx.documents("notes")?;
    if said == "write" {
        for key in ["c", "a", "b", "d"] {
            notes.put(key, &key.to_uppercase()).await?;
        }
        notes.remove("a").await?;
        let short = cx.documents("notes")?.expiring(Duration::from_secs(60));
        short.put("e", &"E").await?;
    }
    let mut found = Vec::new();
    loop {
        let after = found.last().map(|it: &(String, String)| it.0.clone());
        let page = notes.list::<String>(after.as_deref(), 1).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page.into_iter().map(|it| (it.key, it.value)));
    }
    Ok(found.into_iter().map(|(_, value)| value).collect())
}

/// Writes what it must not.
#[skill(id = "wrong", tags = ["test"])]
async fn wrong(cx: &mut TaskContext<'_>, said: String) -> AgentResult<()> {
    match said.as_str() {
        "collection" => cx.documents("a#b").map(|_| ()),
        "key" => cx.documents("a")?.put("", &1).await,
        "size" => cx.documents("a")?.put("k", &"x".repeat(262_144)).await,
        _ => {
            cx.documents("a")?.put("k", &"text").await?;
            cx.documents("a")?.get::<u32>("k").await.map(|_| ())
        }
    }
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("documents").skill(count).skill(notes);
    agent.skill(wrong).build().unwrap()
}

async fn said(skill_test: &mut SkillTest, text: &str) -> String {
    let reply = skill_test.send(text).await.unwrap();
    let found = ["count", "notes"].map(|name| reply.artifact_text(name));
    found.into_iter().flatten().next().unwrap()
}

#[tokio::test]
async fn a_tenant_shares_its_documents_and_a_subject_has_its_own() {
    let agent = agent();
    let mut skill_test = SkillTest::new(&agent, "count");
    for (tenant, subject, expected) in [
        ("acme", "ann", "1 1"),
        ("acme", "ann", "2 2"),
        ("acme", "bob", "1 3"),
        ("other", "ann", "1 1"),
    ] {
        skill_test.caller(tenant, subject).unwrap();
        skill_test.new_context();
        assert_eq!(
            said(&mut skill_test, "go").await,
            expected,
            "{tenant} {subject}"
        );
    }
}

#[tokio::test]
async fn documents_are_listed_by_key_until_they_are_removed_or_expire() {
    let agent = agent();
    let mut skill_test = SkillTest::new(&agent, "notes");
    assert_eq!(said(&mut skill_test, "write").await, "BCDE");
    skill_test.advance(Duration::from_secs(59));
    assert_eq!(said(&mut skill_test, "list").await, "BCDE");
    skill_test.advance(Duration::from_secs(2));
    assert_eq!(said(&mut skill_test, "list").await, "BCD");
}

#[tokio::test]
async fn a_bad_name_a_large_document_and_another_type_have_their_codes() {
    let agent = agent();
    let mut skill_test = SkillTest::new(&agent, "wrong");
    let rows = [
        ("collection", "INVALID_INPUT"),
        ("key", "INVALID_INPUT"),
        ("size", "STATE_TOO_LARGE"),
        ("type", "STATE_INCOMPATIBLE"),
    ];
    each_row_async(rows, async |(said, code)| {
        let reply = skill_test.new_task().send(said).await.unwrap();
        assert_eq!(reply.error_code(), Some(code), "{said}");
    })
    .await;
}
