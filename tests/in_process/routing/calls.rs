//! Messages whose data calls a skill by name, as models do.

use super::*;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::error_rows::{Fault, PARAMS};

per_dialect! {
    paused ALL:
    a_call_as_the_openai_api_writes_it_runs_its_skill
    wrong_arguments_of_a_call_are_named_by_their_place
}

/// The parameters of a message with one data part.
fn with_data(dialect: Dialect, data: &Value) -> Value {
    let part = match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => json!({ "data": data }),
        Dialect::Rest03 => json!({"data": {"data": data}}),
        Dialect::Rpc03 => json!({"kind": "data", "data": data}),
        Dialect::Rpc01 | Dialect::Path01 => json!({"type": "data", "data": data}),
    };
    let mut params = dialect.say(&text(""));
    params["message"][dialect.parts()] = json!([part]);
    params
}

async fn a_call_as_the_openai_api_writes_it_runs_its_skill(dialect: Dialect) {
    let rows = [
        json!({"tool": "add", "arguments": "{\"a\":1,\"b\":2}"}),
        json!({"tool": "add", "arguments": {"a": 1, "b": 2}}),
        json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        json!({"name": "add", "arguments": " {\"b\": 2, \"a\": 1}\n"}),
        json!({"type": "function", "name": "add", "arguments": "{\"a\":1,\"b\":2}"}),
        json!({"type": "function_call", "name": "add", "arguments": "{\"a\":1,\"b\":2}"}),
        json!({"type": "function", "function": {"name": "add", "arguments": "{\"a\":1,\"b\":2}"}}),
        json!({"tool_name": "add", "tool_input": {"a": 1, "b": 2}}),
        json!({"tool": "add", "arguments": "1 and 2"}),
        json!({"skill": "add", "input": "1 and 2"}),
    ];
    each_row_async(rows, async |call| {
        let world = world();
        let reply = sent(&world, dialect, &with_data(dialect, &call)).await;
        let task = dialect.task(&reply);
        assert_eq!(dialect.state(&task), "completed", "{call}");
        assert_eq!(dialect.status_words(&task), "3", "{call}");
    })
    .await;
}

async fn wrong_arguments_of_a_call_are_named_by_their_place(dialect: Dialect) {
    let place = match dialect {
        // Its parts are named so, and its data is an object in an object.
        Dialect::Rest03 => "message.content[0].data.data.arguments",
        _ => "message.parts[0].data.arguments",
    };
    for name in ["tool", "name"] {
        let rows = [
            (json!("{\"a\":1,\"b\":2"), ""),
            (json!("[1,2]"), ""),
            (json!([1, 2]), ""),
            (json!(3), ""),
            (json!(null), ""),
            (json!({"a": "one", "b": 2}), ".a"),
            (json!("{\"a\":1,\"b\":\"two\"}"), ".b"),
        ];
        each_row_async(rows, async |(arguments, inside)| {
            let world = world();
            let call = json!({name: "add", "arguments": arguments});
            let reply = world.call(&send(dialect, &with_data(dialect, &call))).await;
            let fault = Fault::new(dialect, PARAMS).at(format!("{place}{inside}"));
            assert_eq!(fault.check(&reply), Ok(()), "{call}: {}", reply.text());
            assert_eq!(world.store.commits(), [], "{call}");
        })
        .await;
    }
}
