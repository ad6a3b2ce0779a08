//! The verdicts of the checks of an agent.

use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::testing::{AgentCheckError, check_agent};
use serde_json::{Value, json};

/// What is checked, in the order in which the page shows it.
const CHECKS: [(&str, &str); 4] = [
    (
        "any-object",
        "No skill beside others takes every JSON object",
    ),
    ("card", "The agent has a valid card"),
    ("input", "Each skill takes its own examples"),
    ("example", "Each example leads to its own skill"),
];

/// The verdict of each check, with its faults.
pub fn of(agent: &AgentDefinition) -> Value {
    let faults = check_agent(agent);
    let verdict = |(id, title): (&str, &str)| {
        let own_faults = faults.iter().filter(|fault| check_of(fault) == id);
        let own_faults: Vec<String> = own_faults.map(ToString::to_string).collect();
        json!({"id": id, "title": title, "passed": own_faults.is_empty(), "faults": own_faults})
    };
    let verdicts: Vec<Value> = CHECKS.map(verdict).into();
    json!({ "checks": verdicts })
}

const fn check_of(fault: &AgentCheckError) -> &'static str {
    match fault {
        AgentCheckError::Card { .. } => "card",
        AgentCheckError::Input { .. } => "input",
        AgentCheckError::AnyObject { .. } => "any-object",
        AgentCheckError::Example { .. } => "example",
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_reference_agent_passes_every_check() {
        let verdicts = of(&reference_agent::agent().unwrap());
        let checks = verdicts["checks"].as_array().unwrap();
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|it| it["passed"] == true), "{verdicts}");
    }
}
