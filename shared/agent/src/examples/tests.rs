//! Runs the flows of each example skill with the bench.

mod book_flight;
mod create_report;
mod fingerprint;
mod format_report;
mod generate_report;
mod logo;
mod small;

use crate::agent;
use a2a_lambda::SkillTest;
use a2a_lambda::skill::Content;
use a2a_lambda::testing::check_agent;
use serde_json::Value;

/// A client of one skill of the reference agent.
fn skill_test(skill: &str) -> SkillTest {
    SkillTest::new(&agent().unwrap(), skill)
}

fn data(value: &Value) -> Content {
    Content::from_data(value).unwrap()
}

#[test]
fn every_example_leads_to_its_skill() {
    assert_eq!(check_agent(&agent().unwrap()), []);
}
