//! Joins the pieces of a streamed answer.

use super::model::{Delta, ModelContent, ModelReply};
use serde_json::{Map, Value};

/// The pieces of an answer so far.
#[derive(Debug, Default)]
pub struct Collected {
    content: Vec<ModelContent>,
    /// The arguments of the newest tool call, as JSON text.
    input: String,
}

impl Collected {
    /// The answer that these pieces are; `None` without the last one.
    pub fn collect(deltas: impl IntoIterator<Item = Delta>) -> Option<ModelReply> {
        let mut collector = Self::default();
        deltas.into_iter().find_map(|delta| collector.add(delta))
    }

    /// Adds a piece; returns the answer with its last one.
    pub fn add(&mut self, delta: Delta) -> Option<ModelReply> {
        match delta {
            Delta::Text(more) => match self.content.last_mut() {
                Some(ModelContent::Text(text)) => text.push_str(&more),
                _ => self.push(ModelContent::Text(more)),
            },
            Delta::ToolUse { id, name } => {
                let input = Value::Null;
                self.push(ModelContent::ToolUse { id, name, input });
            }
            Delta::ToolInput(more) => self.input.push_str(&more),
            Delta::Provider(block) => self.push(ModelContent::Provider(block)),
            Delta::Stop { stop, usage } => {
                self.end_call();
                return Some(ModelReply {
                    content: std::mem::take(&mut self.content),
                    stop,
                    usage,
                });
            }
        }
        None
    }

    fn push(&mut self, content: ModelContent) {
        self.end_call();
        self.content.push(content);
    }

    /// Gives the newest tool call its arguments, when they are complete.
    fn end_call(&mut self) {
        let text = std::mem::take(&mut self.input);
        let calls = self.content.iter_mut().rev();
        let open = calls.filter_map(|content| match content {
            ModelContent::ToolUse { input, .. } if input.is_null() => Some(input),
            _ => None,
        });
        for input in open {
            *input = arguments(&text);
        }
    }
}

/// The arguments of a call. A text that is no JSON is a JSON string.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str(text) {
        // No arguments. As the input of a call it would count as one that has not come.
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(arguments) => arguments,
        Err(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{StopReason, Usage};
    use serde_json::json;

    #[test]
    fn pieces_become_the_answer_that_the_model_wrote() {
        let call = |id: &str| Delta::ToolUse {
            id: id.to_owned(),
            name: "stock".to_owned(),
        };
        let deltas = [
            Delta::Provider(json!({"signature": "x"})),
            Delta::Text("I ".to_owned()),
            Delta::Text("look.".to_owned()),
            call("1"),
            Delta::ToolInput("{\"sku\":".to_owned()),
            Delta::ToolInput("7}".to_owned()),
            call("2"),
            call("3"),
            Delta::ToolInput("{bro".to_owned()),
            Delta::Stop {
                stop: StopReason::ToolUse,
                usage: Usage::default(),
            },
        ];
        let mut collected = Collected::default();
        let replies: Vec<_> = deltas
            .into_iter()
            .map(|delta| collected.add(delta))
            .collect();
        let reply = replies.into_iter().flatten().next().unwrap();
        let used = |id: &str, input: Value| ModelContent::ToolUse {
            id: id.to_owned(),
            name: "stock".to_owned(),
            input,
        };
        let expected = [
            ModelContent::Provider(json!({"signature": "x"})),
            ModelContent::Text("I look.".to_owned()),
            used("1", json!({"sku": 7})),
            used("2", json!({})),
            used("3", json!("{bro")),
        ];
        assert_eq!(reply.content, expected);
    }
}
