//! A skill that makes a task and completes it in one turn.

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two numbers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    a: i64,
    b: i64,
}

/// Their sum.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Sum {
    sum: i64,
}

/// Adds two whole numbers, given as data or as a question.
#[skill(
    id = "add",
    name = "Adder",
    tags = ["example", "math", "sum", "plus"],
    examples = ["What's 2+2?", "add 19 and 23"],
    text = [
        "add {a} and {b}",
        "{a} + {b}",
        "{a} plus {b}",
        "what is {a} + {b}",
        "what is {a} plus {b}",
        "what's {a} + {b}",
        "what's {a} plus {b}",
    ],
    effect = "read",
)]
pub(crate) async fn add(input: TextOr<Terms>) -> AgentResult<OnRequestResult<Sum>> {
    let Terms { a, b } = match input {
        TextOr::Data(terms) => terms,
        TextOr::Text(question) => in_words(&question)?,
    };
    let sum = a
        .checked_add(b)
        .ok_or_else(|| AgentError::domain("OVERFLOW", "the sum is too large"))?;
    OnRequestResult::done(Sum { sum }).saying(sum.to_string())
}

/// The two integers in a question.
fn in_words(question: &str) -> AgentResult<Terms> {
    let words = question.split(|c: char| !c.is_ascii_digit() && c != '-');
    let numbers: Vec<i64> = words.filter_map(|word| word.parse().ok()).collect();
    match *numbers.as_slice() {
        [a, b] => Ok(Terms { a, b }),
        _ => Err(AgentError::invalid_input(
            "two whole numbers are needed, for example `2 + 2`",
        )),
    }
}
