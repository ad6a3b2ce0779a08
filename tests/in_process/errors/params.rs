//! Invalid parameters, each reported with its path.

use super::{Table, put, take};
use a2a_lambda_tests::dialect::{Dialect, Op, SKILL};
use a2a_lambda_tests::error_rows::{NO_PUSH, PARAMS};
use serde_json::{Value, json};

pub(super) fn add(table: &mut Table) {
    messages(table);
    ids(table);
    parts(table);
    contents(table);
    options(table);
    twice(table);
    skills(table);
}

/// Adds a send whose member at `pointer` is each of `values`.
fn each(table: &mut Table, pointer: &str, values: &[Value], field: &str) {
    for value in values {
        let mut params = table.good();
        put(&mut params, pointer, value.clone());
        let mut shown = value.to_string();
        shown.truncate(40);
        refuse(table, format!("{pointer} = {shown}"), &params, field);
    }
}

fn missing(table: &mut Table, pointer: &str, field: &str) {
    let mut params = table.good();
    take(&mut params, pointer);
    refuse(table, format!("without {pointer}"), &params, field);
}

fn refuse(table: &mut Table, name: String, params: &Value, field: &str) {
    let request = table.dialect.request(Op::Send, "", params);
    let fault = table.fault(PARAMS).at(field);
    table.add(name, request, fault);
}

fn messages(table: &mut Table) {
    missing(table, "/message", "message");
    let no_object = [json!(null), json!("hi"), json!([]), json!(5), json!(false)];
    each(table, "/message", &no_object, "message");
    missing(table, "/message/role", "message.role");
    let agent = if table.dialect.is_v10() || table.dialect == Dialect::Rest03 {
        json!("ROLE_AGENT")
    } else {
        json!("agent")
    };
    let roles = [
        agent,
        json!(""),
        json!("admin"),
        json!(5),
        json!("ROLE_UNSPECIFIED"),
    ];
    each(table, "/message/role", &roles, "message.role");
    each(
        table,
        "/message/metadata",
        &[json!("x"), json!([]), json!(1)],
        "message.metadata",
    );
    each(table, "/metadata", &[json!("x"), json!([])], "metadata");
}

fn ids(table: &mut Table) {
    let bad = [
        json!(5),
        json!({}),
        json!("a b"),
        json!("a/b"),
        json!("a#b"),
        json!("\u{e9}"),
        json!("x".repeat(129)),
    ];
    if table.dialect.is_v01() {
        missing(table, "/id", "id");
        each(table, "/id", &[json!(""), json!(null)], "id");
        each(table, "/id", &bad, "id");
        each(table, "/sessionId", &bad, "sessionId");
        return;
    }
    missing(table, "/message/messageId", "message.messageId");
    let none = [json!(""), json!(null), json!(5)];
    each(table, "/message/messageId", &none, "message.messageId");
    each(table, "/message/taskId", &bad, "message.taskId");
    each(table, "/message/contextId", &bad, "message.contextId");
    let lists = ["referenceTaskIds", "extensions"];
    for list in lists {
        let (pointer, field) = (format!("/message/{list}"), format!("message.{list}"));
        each(table, &pointer, &[json!("x"), json!({})], &field);
        each(table, &pointer, &[json!([1])], &format!("{field}[0]"));
    }
}

fn parts(table: &mut Table) {
    let name = table.dialect.parts();
    let (pointer, field) = (format!("/message/{name}"), format!("message.{name}"));
    missing(table, &pointer, &field);
    let part = table.good()["message"][name][0].clone();
    let lists = [
        json!(null),
        json!([]),
        json!({}),
        json!("hi"),
        part.clone(),
        json!(vec![part.clone(); 65]),
    ];
    each(table, &pointer, &lists, &field);
    let no_part = [json!(null), json!("hi"), json!(5), json!([]), json!({})];
    each(
        table,
        &format!("{pointer}/0"),
        &no_part,
        &format!("{field}[0]"),
    );
    each(
        table,
        &pointer,
        &[json!([part, {}])],
        &format!("{field}[1]"),
    );
    let own = [json!("x"), json!([])];
    each(
        table,
        &format!("{pointer}/0/metadata"),
        &own,
        &format!("{field}[0].metadata"),
    );
}

/// Adds a send with the one part `part`; `inside` is the path of the fault
/// inside the part.
fn part(table: &mut Table, part: &Value, inside: &str) {
    let name = table.dialect.parts();
    let mut params = table.good();
    put(&mut params, &format!("/message/{name}"), json!([part]));
    let field = format!("message.{name}[0]{inside}");
    refuse(table, format!("part {part}"), &params, &field);
}

fn contents(table: &mut Table) {
    match table.dialect {
        Dialect::Rpc10 | Dialect::Rest10 => flat_contents(table),
        Dialect::Rest03 => proto_contents(table),
        Dialect::Rpc03 => tagged_contents(table, "kind"),
        Dialect::Rpc01 | Dialect::Path01 => tagged_contents(table, "type"),
    }
}

fn flat_contents(table: &mut Table) {
    for two in [
        json!({"text": "a", "data": {}}),
        json!({"text": "a", "url": "https://a.example"}),
        json!({"raw": "aGk=", "url": "https://a.example"}),
        json!({"text": "a", "raw": "aGk=", "url": "https://a.example", "data": 1}),
        json!({"text": "a", "data": null}),
        json!({"mediaType": "text/plain"}),
        json!({"text": null}),
        json!({"url": ""}),
    ] {
        part(table, &two, "");
    }
    for raw in [
        json!("***"),
        json!("a"),
        json!("aGk=aGk="),
        json!("a b "),
        json!(5),
        json!([]),
    ] {
        part(table, &json!({"raw": raw}), ".raw");
    }
    for text in [json!(5), json!({}), json!([]), json!(true)] {
        part(table, &json!({"text": text}), ".text");
        part(table, &json!({"url": text}), ".url");
    }
    part(table, &json!({"text": "a", "filename": 5}), ".filename");
    part(table, &json!({"text": "a", "mediaType": 5}), ".mediaType");
}

fn tagged_contents(table: &mut Table, tag: &str) {
    for two in [
        json!({tag: "text", "text": "a", "data": {}}),
        json!({tag: "file", "file": {"bytes": "aGk="}, "text": "a"}),
        json!({tag: "text", "text": "a", "file": {"uri": "https://a.example"}, "data": {}}),
    ] {
        part(table, &two, "");
    }
    for kind in ["image", "Text", "TEXT"] {
        part(table, &json!({tag: kind, "text": "a"}), &format!(".{tag}"));
    }
    part(table, &json!({tag: 5, "text": "a"}), &format!(".{tag}"));
    part(
        table,
        &json!({tag: "file", "text": "a"}),
        &format!(".{tag}"),
    );
    part(table, &json!({tag: "text"}), ".text");
    part(table, &json!({tag: "file"}), ".file");
    part(table, &json!({tag: "data"}), ".data");
    for text in [json!(5), json!({}), json!([])] {
        part(table, &json!({tag: "text", "text": text}), ".text");
    }
    let scalars = [json!(5), json!("x"), json!(true)];
    for data in scalars {
        part(table, &json!({tag: "data", "data": data}), ".data");
    }
    if table.dialect == Dialect::Rpc03 {
        part(table, &json!({tag: "data", "data": [1]}), ".data");
    }
    let file = |file: Value| json!({tag: "file", "file": file});
    part(table, &file(json!("x")), ".file");
    part(table, &file(json!({})), ".file");
    part(table, &file(json!({"name": "a.txt"})), ".file");
    part(
        table,
        &file(json!({"bytes": "aGk=", "uri": "https://a.example"})),
        ".file",
    );
    for bytes in [json!("***"), json!("a"), json!(5)] {
        part(table, &file(json!({"bytes": bytes})), ".file.bytes");
    }
    for uri in [json!(""), json!(5)] {
        part(table, &file(json!({"uri": uri})), ".file.uri");
    }
    part(
        table,
        &file(json!({"uri": "https://a.example", "name": 5})),
        ".file.name",
    );
}

fn proto_contents(table: &mut Table) {
    for two in [
        json!({"text": "a", "data": {"data": {}}}),
        json!({"text": "a", "file": {"fileWithUri": "https://a.example"}}),
        json!({"text": null}),
        json!({"metadata": {}}),
    ] {
        part(table, &two, "");
    }
    for text in [json!(5), json!({}), json!([])] {
        part(table, &json!({"text": text}), ".text");
    }
    for data in [json!(5), json!("x"), json!([])] {
        part(table, &json!({"data": data}), ".data");
    }
    let file = |file: Value| json!({"file": file});
    part(table, &file(json!("x")), ".file");
    part(table, &file(json!({})), ".file");
    let both = json!({"fileWithBytes": "aGk=", "fileWithUri": "https://a.example"});
    part(table, &file(both), ".file");
    for bytes in [json!("***"), json!("a"), json!(5)] {
        part(
            table,
            &file(json!({"fileWithBytes": bytes})),
            ".file.fileWithBytes",
        );
    }
    for uri in [json!(""), json!(5)] {
        part(
            table,
            &file(json!({"fileWithUri": uri})),
            ".file.fileWithUri",
        );
    }
    part(table, &json!({"kind": "image", "text": "a"}), ".kind");
}

fn options(table: &mut Table) {
    let lengths = [
        json!(-1),
        json!(1.5),
        json!("x"),
        json!(true),
        json!([]),
        json!("-1"),
    ];
    let url = json!({"url": "https://hook.example"});
    if table.dialect.is_v01() {
        each(table, "/historyLength", &lengths, "historyLength");
        each(
            table,
            "/pushNotification",
            &[json!({})],
            "pushNotification.url",
        );
        pushed(table, "/pushNotification", url);
        return;
    }
    each(
        table,
        "/configuration",
        &[json!("x"), json!([]), json!(1)],
        "configuration",
    );
    let mut of = |member: &str, values: &[Value], inside: &str| {
        for value in values {
            let mut params = table.good();
            put(&mut params, "/configuration", json!({ member: value }));
            let field = format!("configuration.{member}{inside}");
            refuse(table, format!("{field} of {value}"), &params, &field);
        }
    };
    of("historyLength", &lengths, "");
    of("acceptedOutputModes", &[json!("x"), json!({})], "");
    of("acceptedOutputModes", &[json!(["text/plain", 1])], "[1]");
    let (wait, push) = match of_dialect(table.dialect) {
        Words::V10 => ("returnImmediately", "taskPushNotificationConfig"),
        Words::Rpc03 => ("blocking", "pushNotificationConfig"),
        Words::Rest03 => ("blocking", "pushNotification"),
    };
    let mut of = |member: &str, values: &[Value], inside: &str| {
        for value in values {
            let mut params = table.good();
            put(&mut params, "/configuration", json!({ member: value }));
            let field = format!("configuration.{member}{inside}");
            refuse(table, format!("{field} of {value}"), &params, &field);
        }
    };
    of(wait, &[json!("yes"), json!(1), json!([])], "");
    of(
        push,
        &[json!({}), json!({"url": ""}), json!({"url": 5})],
        ".url",
    );
    of(push, &[json!("https://hook.example")], "");
    pushed(table, "/configuration", json!({ push: url }));
}

enum Words {
    V10,
    Rpc03,
    Rest03,
}

const fn of_dialect(dialect: Dialect) -> Words {
    match dialect {
        Dialect::Rpc03 => Words::Rpc03,
        Dialect::Rest03 => Words::Rest03,
        _ => Words::V10,
    }
}

fn pushed(table: &mut Table, pointer: &str, value: Value) {
    let mut params = table.good();
    put(&mut params, pointer, value);
    let request = table.dialect.request(Op::Send, "", &params);
    let fault = table.fault(NO_PUSH);
    table.add("a push config where push is off", request, fault);
}

/// Members whose name occurs twice in one object.
fn twice(table: &mut Table) {
    let parts = table.dialect.parts();
    let mut params = table.good();
    put(&mut params, "/metadata", json!({"only": 1}));
    put(
        &mut params,
        &format!("/message/{parts}/0/metadata"),
        json!({"deep": [{"once": 2}]}),
    );
    let text = params.to_string();
    let cases = [
        (
            r#""message":{"#,
            r#""message":1,"message":{"#,
            "message".to_owned(),
        ),
        (
            r#""role":"#,
            r#""role":1,"role":"#,
            "message.role".to_owned(),
        ),
        (
            r#""text":"hi""#,
            r#""text":"hi","text":"hi""#,
            format!("message.{parts}[0].text"),
        ),
        (
            r#""only":1"#,
            r#""only":1,"only":1"#,
            "metadata.only".to_owned(),
        ),
        (
            r#""once":2"#,
            r#""once":2,"once":3"#,
            format!("message.{parts}[0].metadata.deep[0].once"),
        ),
        (
            r#""role":"#,
            r#""r\u006fle":1,"role":"#,
            "message.role".to_owned(),
        ),
    ];
    for (member, twice, field) in cases {
        let bad = text.replacen(member, twice, 1);
        assert_ne!(bad, text, "{member}");
        let fault = table.fault(PARAMS).at(&field);
        table.add(format!("twice: {twice}"), table.raw_send(&bad), fault);
    }
    let (one, two) = match table.dialect {
        Dialect::Rpc10 | Dialect::Rest10 => ("/message/messageId", "/message/message_id"),
        Dialect::Rest03 => ("/message/content", "/message/parts"),
        _ => return,
    };
    let mut params = table.good();
    let value = params.pointer(one).unwrap().clone();
    put(&mut params, two, value);
    let field = one.trim_start_matches('/').replace('/', ".");
    refuse(table, format!("{one} and {two}"), &params, &field);
}

fn skills(table: &mut Table) {
    let own = format!("message.metadata[\"{SKILL}\"]");
    for skill in [
        json!("nobody"),
        json!(""),
        json!("ECHO"),
        json!("../echo"),
        json!(5),
    ] {
        let mut params = table.good();
        put(&mut params, "/message/metadata", json!({ SKILL: skill }));
        refuse(table, format!("skill {skill}"), &params, &own);
    }
    let mut params = table.good();
    put(&mut params, "/metadata", json!({"skillId": "greet"}));
    refuse(table, "two skills".to_owned(), &params, "metadata.skillId");
}
