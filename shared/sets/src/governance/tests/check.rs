//! A check ends with its turn, and is refused before it runs if it costs too much.

use super::skills::{call, done, governed, policy, put_in_force, rule};
use super::{SEARCHES, compiled, facts, with};
use crate::governance::check::Check;
use crate::governance::merge::merge;
use crate::layer::KnowledgeLayer;
use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use a2a_lambda::task::TaskState;
use serde_json::{Value, json};
use std::time::Duration;

/// The longest content for the expression of [`slow`].
const LONGEST: usize = 32 * 1024;
/// The rules of a policy of [`slow`] rules. A search for each costs as much as it may with the
/// longest content, and as many cost as much as a check may.
const RULES: usize = 4;

/// A policy of the company with expressions of the largest size, for `src`. No text of these
/// tests begins as they do, so that the tests are fast.
fn slow(id: &str) -> Value {
    let expression = "z{1000}";
    let rules: Vec<_> = (0..RULES)
        .map(|at| {
            rule(
                &format!("r{at}"),
                "must_not_match",
                "code",
                expression,
                "block",
            )
        })
        .map(|rule| with(rule, json!({"appliesTo": ["src/**"]})))
        .collect();
    policy(id, false, "merge", &rules)
}

fn context(bytes: usize) -> Value {
    json!({"layer": "project", "context": {"content": "x".repeat(bytes)}})
}

/// A client of a company with so many slow policies, and one that the content breaks.
async fn slowly_governed(policies: usize) -> SkillTest {
    let forbidden = rule("z-last", "must_not_use", "code", "x", "block");
    let mut skill_test = governed(&policy("zz", false, "merge", &[forbidden])).await;
    for at in 0..policies {
        put_in_force(
            &mut skill_test,
            &format!("policies/{at}.json"),
            &slow(&format!("p{at}")),
        )
        .await;
    }
    SEARCHES.take();
    skill_test
}

#[tokio::test(start_paused = true)]
async fn a_search_starts_only_if_the_time_left_suffices() {
    let mut skill_test = slowly_governed(1).await;
    skill_test.time_left(Duration::from_secs(5));
    let reply = call(&mut skill_test, "governance_validate", context(LONGEST - 1)).await;
    // Each invocation hands the turn over, until the limit of hand-overs ends the task.
    assert_eq!(reply.state(), Some(TaskState::Failed), "{reply:?}");
    assert_eq!(SEARCHES.take(), Vec::<String>::new());
    let found = done(&mut skill_test, "governance_validate", context(LONGEST / 2)).await;
    assert_eq!(found["valid"], false);
}

#[tokio::test]
async fn a_context_too_large_for_its_rules_is_refused() {
    let mut skill_test = slowly_governed(2).await;
    let most = "`content` has 32768 bytes, expected at most 16383 for all rules in force together";
    for (bytes, text) in [
        (
            256 * 1024,
            "`content` has 262144 bytes, expected at most 32768 for the rule `r0` of the policy `p0`",
        ),
        (LONGEST, most),
    ] {
        let reply = call(&mut skill_test, "governance_validate", context(bytes)).await;
        assert_eq!(reply.error_code(), Some("CHECK_TOO_LARGE"));
        assert!(reply.text().contains(text), "{}", reply.text());
    }
    assert_eq!(SEARCHES.take(), Vec::<String>::new());
    let fits = context(16_383);
    done(&mut skill_test, "governance_validate", fits).await;
    assert_eq!(SEARCHES.take().len(), 2 * RULES + 1);
    // Rules for other paths search nothing.
    let mut elsewhere = context(256 * 1024);
    elsewhere["context"]["path"] = json!("docs/a.md");
    done(&mut skill_test, "governance_validate", elsewhere).await;
}

/// Ends while a check runs.
#[skill(id = "end", tags = ["test"])]
async fn end(cx: &mut TaskContext<'_>, _input: String) -> AgentResult<String> {
    let policies = [compiled(slow("p"))];
    let merged = merge(&policies, KnowledgeLayer::Project);
    let facts = facts(json!({"content": "x".repeat(LONGEST)}));
    let running = Check::new(&merged, &facts).await?;
    tokio::select! {
        biased;
        () = tokio::task::yield_now() => Ok("ended".to_owned()),
        found = running.run(cx) => Ok(format!("{found:?}")),
    }
}

#[tokio::test]
async fn a_check_ends_with_its_turn() {
    let agent = Agent::builder("test").skill(end).build().unwrap();
    let reply = SkillTest::new(&agent, "end").send("go").await.unwrap();
    assert_eq!(reply.artifact_text("end").as_deref(), Some("ended"));
    assert_eq!(SEARCHES.take(), ["r0"]);
}
