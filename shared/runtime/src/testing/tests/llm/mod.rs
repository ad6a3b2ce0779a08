//! Tests of functions and workers with a scripted model.
//!
//! - here: what the tests share
//! - `function`, `worker`, `confirm`: the three kinds

mod confirm;
mod files;
mod function;
mod worker;

use crate::testing::ScriptedModel;
use a2a_lambda_skill::model::{ModelContent, ModelMessage};
use serde_json::{Value, json};

/// The last message of the newest request.
fn last_message(model: &ScriptedModel) -> ModelMessage {
    let asked = model.requests();
    asked.last().unwrap().messages.last().unwrap().clone()
}

/// The results that the newest request gives to the model: id, and value or error of each call.
fn results(model: &ScriptedModel) -> Vec<(String, Result<Value, String>)> {
    match last_message(model) {
        ModelMessage::ToolResults(results) => {
            let results = results.into_iter();
            results.map(|result| (result.id, result.result)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The errors among [`results`].
fn errors(model: &ScriptedModel) -> Vec<String> {
    let results = results(model).into_iter();
    results.filter_map(|(_, result)| result.err()).collect()
}

fn tool_use(id: &str, name: &str, input: Value) -> ModelContent {
    ModelContent::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    }
}

fn order(pieces: u32) -> Value {
    json!({"article": "A-1", "pieces": pieces})
}
