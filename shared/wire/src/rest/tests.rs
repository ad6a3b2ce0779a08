use super::*;
use Generation::{V01, V03, V10};
use a2a_lambda_rows::each_row;

fn target(method: &str, path: &str) -> PathTarget {
    match route(method, path) {
        Some(PathRoute::Operation(target)) => target,
        other => panic!("{method} {path}: {other:?}"),
    }
}

#[test]
fn the_base_url_serves_json_rpc_with_and_without_a_slash() {
    assert_eq!(route("POST", "/"), Some(PathRoute::JsonRpc));
    assert_eq!(route("POST", ""), Some(PathRoute::JsonRpc));
    assert_eq!(route("GET", "/"), None);
}

/// Method, path, operation and generation of every route.
const ROUTES: [(&str, &str, Operation, Generation); 41] = [
    ("POST", "/message:send", Operation::Send, V10),
    ("POST", "/message:stream", Operation::Stream, V10),
    ("GET", "/tasks", Operation::List, V10),
    ("GET", "/tasks/t1", Operation::Get, V10),
    ("POST", "/tasks/t1:cancel", Operation::Cancel, V10),
    ("POST", "/tasks/t1:subscribe", Operation::Subscribe, V10),
    ("GET", "/tasks/t1:subscribe", Operation::Subscribe, V10),
    ("GET", "/extendedAgentCard", Operation::ExtendedCard, V10),
    (
        "POST",
        "/tasks/t1/pushNotificationConfigs",
        Operation::CreatePushConfig,
        V10,
    ),
    (
        "GET",
        "/tasks/t1/pushNotificationConfigs",
        Operation::ListPushConfigs,
        V10,
    ),
    (
        "GET",
        "/tasks/t1/pushNotificationConfigs/c",
        Operation::GetPushConfig,
        V10,
    ),
    (
        "DELETE",
        "/tasks/t1/pushNotificationConfigs/c",
        Operation::DeletePushConfig,
        V10,
    ),
    ("POST", "/v1/message:send", Operation::Send, V03),
    ("POST", "/v1/message:stream", Operation::Stream, V03),
    ("GET", "/v1/tasks", Operation::List, V03),
    ("GET", "/v1/tasks/t1", Operation::Get, V03),
    ("POST", "/v1/tasks/t1:cancel", Operation::Cancel, V03),
    ("GET", "/v1/tasks/t1:subscribe", Operation::Subscribe, V03),
    ("POST", "/v1/tasks/t1:subscribe", Operation::Subscribe, V03),
    (
        "POST",
        "/v1/tasks/t1/pushNotificationConfigs",
        Operation::CreatePushConfig,
        V03,
    ),
    ("GET", "/v1/card", Operation::ExtendedCard, V03),
    (
        "GET",
        "/agent/authenticatedExtendedCard",
        Operation::ExtendedCard,
        V03,
    ),
    ("POST", "/tasks/send", Operation::Send, V01),
    ("POST", "/tasks/sendSubscribe", Operation::Stream, V01),
    ("POST", "/tasks/stream", Operation::Stream, V01),
    ("POST", "/tasks/get", Operation::Get, V01),
    ("GET", "/tasks/t1/get", Operation::Get, V01),
    ("POST", "/tasks/cancel", Operation::Cancel, V01),
    ("POST", "/tasks/resubscribe", Operation::Subscribe, V01),
    (
        "POST",
        "/tasks/pushNotification/set",
        Operation::CreatePushConfig,
        V01,
    ),
    (
        "POST",
        "/tasks/pushNotification/get",
        Operation::GetPushConfig,
        V01,
    ),
    ("GET", "/.well-known/agent-card.json", Operation::Card, V10),
    ("HEAD", "/.well-known/agent-card.json", Operation::Card, V10),
    ("GET", "/.well-known/agent.json", Operation::LegacyCard, V10),
    ("GET", "/agent.json", Operation::LegacyCard, V10),
    ("POST", "/a2a-lambda/uploads", Operation::CreateUpload, V10),
    ("GET", "/a2a-lambda/contexts", Operation::ListContexts, V10),
    (
        "DELETE",
        "/a2a-lambda/contexts/c",
        Operation::DeleteContext,
        V10,
    ),
    ("DELETE", "/a2a-lambda/tasks/t1", Operation::DeleteTask, V10),
    ("GET", "/a2a-lambda/skills", Operation::ListSkills, V10),
    ("GET", "/a2a-lambda/schemas", Operation::Schemas, V10),
];

#[test]
fn every_route_names_its_operation_and_generation() {
    each_row(ROUTES, |(method, path, operation, generation)| {
        let target = target(method, path);
        assert_eq!(target.operation, operation, "{method} {path}");
        assert_eq!(target.generation, generation, "{method} {path}");
        assert_eq!(target.tenant, None, "{method} {path}");
        if path.contains("t1") {
            assert_eq!(target.id.as_deref(), Some("t1"), "{method} {path}");
        }
    });
}

#[test]
fn an_unknown_method_or_path_has_no_route() {
    let rows = [
        ("GET", "/message:send"),
        ("POST", "/tasks"),
        ("POST", "/tasks/t1"),
        ("GET", "/tasks/t1:cancel"),
        ("DELETE", "/tasks/t1"),
        ("GET", "/tasks/"),
        ("GET", "/tasks/:subscribe"),
        ("POST", "/tasks/:cancel"),
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("GET", "/v1/extendedAgentCard"),
        ("POST", "/v1/tasks/send"),
        // The python-a2a client also tries these paths and needs a 404 there.
        ("POST", "/a2a/tasks/send"),
        ("POST", "/a2a/tasks/stream"),
        ("GET", "/a2a/tasks"),
        ("GET", "/health"),
        ("GET", "/metrics/tasks"),
        ("GET", "/acme"),
        ("POST", "/acme"),
        ("GET", "/acme/.well-known/agent-card.json"),
        ("POST", "/acme/tasks/send"),
        ("GET", "/acme/v1/tasks"),
        ("GET", "/acme/acme/tasks"),
        ("GET", "/ac%23me/tasks"),
        ("GET", "//tasks"),
        ("GET", "/tasks/%zz"),
        ("GET", "/tasks/%ff"),
        ("GET", "/tasks/a/b"),
        ("PUT", "/a2a-lambda/uploads"),
        ("GET", "/a2a-lambda"),
        ("POST", "/.well-known/agent-card.json"),
        ("GET", "/tasks/t1/pushNotificationConfigs/c/d"),
    ];
    each_row(rows, |(method, path)| {
        assert_eq!(route(method, path), None, "{method} {path}");
    });
}

#[test]
fn every_route_of_1_0_takes_a_tenant_in_front() {
    let rows = [
        ("POST", "/acme.eu-1/message:send", Operation::Send),
        ("GET", "/acme.eu-1/tasks", Operation::List),
        ("GET", "/acme.eu-1/tasks/t1", Operation::Get),
        ("POST", "/acme.eu-1/tasks/t1:cancel", Operation::Cancel),
        (
            "GET",
            "/acme.eu-1/extendedAgentCard",
            Operation::ExtendedCard,
        ),
    ];
    each_row(rows, |(method, path, operation)| {
        let target = target(method, path);
        assert_eq!(target.operation, operation);
        assert_eq!(target.generation, V10);
        assert_eq!(target.tenant.as_deref(), Some("acme.eu-1"));
    });
}

#[test]
fn a_verb_is_split_at_the_last_colon_and_only_when_it_is_known() {
    assert_eq!(target("GET", "/tasks/a:b:c").id.as_deref(), Some("a:b:c"));
    assert_eq!(target("GET", "/tasks/a:get").id.as_deref(), Some("a:get"));
    let cancel = target("POST", "/tasks/a:subscribe:cancel");
    assert_eq!(cancel.operation, Operation::Cancel);
    assert_eq!(cancel.id.as_deref(), Some("a:subscribe"));
}

#[test]
fn an_encoded_colon_belongs_to_the_id() {
    let get = target("GET", "/tasks/a%3Acancel");
    assert_eq!(get.operation, Operation::Get);
    assert_eq!(get.id.as_deref(), Some("a:cancel"));
}

#[test]
fn a_verb_may_stand_behind_an_encoded_colon() {
    let send = target("POST", "/message%3Asend");
    assert_eq!(send.operation, Operation::Send);
    for (path, operation) in [
        ("/tasks/a%3Acancel", Operation::Cancel),
        ("/tasks/a%3asubscribe", Operation::Subscribe),
        ("/tasks/a%3Ab:cancel", Operation::Cancel),
    ] {
        let found = target("POST", path);
        assert_eq!(found.operation, operation, "{path}");
    }
    assert_eq!(
        target("POST", "/tasks/a%3Ab:cancel").id.as_deref(),
        Some("a:b")
    );
}

#[test]
fn an_encoded_slash_does_not_split_a_segment() {
    assert_eq!(target("GET", "/tasks/a%2Fb").id.as_deref(), Some("a/b"));
    assert_eq!(target("GET", "/tasks/a%20b").id.as_deref(), Some("a b"));
    assert_eq!(target("GET", "/tasks/a+b").id.as_deref(), Some("a+b"));
}

#[test]
fn a_push_config_is_named_by_its_task_and_its_id() {
    let found = target("GET", "/tasks/t/pushNotificationConfigs/c%3A1");
    assert_eq!(found.id.as_deref(), Some("t"));
    assert_eq!(found.config_id.as_deref(), Some("c:1"));
}

#[test]
fn a_query_is_decoded_pair_by_pair() {
    let pairs = query_pairs(Some("a=1&b=x%20y+z&&c&d=%zz&e=%C3%A9"));
    let expected = [
        ("a", "1"),
        ("b", "x y z"),
        ("c", ""),
        ("d", "%zz"),
        ("e", "é"),
    ];
    assert_eq!(
        pairs,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert!(query_pairs(None).is_empty());
}
