//! The routes of the deployment against the functions that answer them.
//!
//! The router table of `Cargo.toml` equals the routes of `template.yaml`; the
//! checks beside this file see to that. Here each route has to enter the function
//! which the code takes for it.

#[cfg(test)]
mod gateway;

use a2a_lambda::http::Function;
use a2a_lambda_rows::each_row;

const MANIFEST: &str = include_str!("../../Cargo.toml");

/// A route: path, method, directory of the function.
type Route = (String, String, String);

/// The rows of `[workspace.metadata.lambda.watch.router]`.
fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    let rows = MANIFEST
        .lines()
        .skip_while(|line| *line != "[workspace.metadata.lambda.watch.router]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    for row in rows {
        let Some((path, entries)) = row.split_once(" = ") else {
            continue;
        };
        for entry in entries.split("{ function = ").skip(1) {
            let mut words = entry.split('"').skip(1).step_by(2);
            let (Some(function), Some(method)) = (words.next(), words.next()) else {
                continue;
            };
            routes.push((
                path.trim_matches('"').to_owned(),
                method.to_owned(),
                function.to_owned(),
            ));
        }
    }
    routes
}

fn door(function: &str) -> Option<Function> {
    Some(match function {
        "agent-card" => Function::AgentCard,
        "tasks-send" => Function::TasksSend,
        "tasks-get" => Function::TasksGet,
        "tasks-stream" => Function::TasksStream,
        "rpc" => Function::Rpc,
        "ops" => Function::Ops,
        _ => return None,
    })
}

/// The path as a client fills it in: every verb that the method may carry.
fn paths(path: &str, method: &str) -> Vec<String> {
    let filled = path.replace("{tenant}", "acme").replace("{configId}", "c1");
    let ids: &[&str] = match (path.ends_with("/tasks/{id}"), method) {
        (true, "GET") => &["t1", "t1:subscribe", "mine:1"],
        (true, _) => &["t1:subscribe", "t1:cancel", "mine:1:cancel"],
        (false, _) => &["t1"],
    };
    ids.iter().map(|id| filled.replace("{id}", id)).collect()
}

#[test]
fn every_route_enters_the_function_that_answers_it() {
    let routes = routes();
    for (path, method, function) in &routes {
        for filled in paths(path, method) {
            assert_eq!(
                Some(Function::of(method, &filled)),
                door(function),
                "{method} {filled}"
            );
        }
    }
}

#[test]
fn the_router_table_was_read_to_its_end() {
    let routes = routes();
    let written = MANIFEST.matches("{ function = ").count();
    assert_eq!(routes.len(), written);
    let rows = [
        "agent-card",
        "tasks-send",
        "tasks-get",
        "tasks-stream",
        "rpc",
        "ops",
    ];
    each_row(rows, |function| {
        assert!(routes.iter().any(|(_, _, of)| of == function), "{function}");
    });
}
