//! Bodies that are not JSON, of the wrong media type, too large, too deep or too long.

use super::Table;
use a2a_lambda::http::MAX_BODY;
use a2a_lambda_tests::dialect::Dialect;
use a2a_lambda_tests::error_rows::{MEDIA_TYPE, PARAMS, PARSE, REQUEST, TOO_LARGE};

pub(super) fn add(table: &mut Table) {
    malformed(table);
    empty(table);
    headers(table);
    large(table);
    deep(table);
    many(table);
}

fn malformed(table: &mut Table) {
    let texts: [(&str, &[u8]); 19] = [
        ("an open brace", b"{"),
        ("spaces only", b"  \n "),
        ("half a word", b"nul"),
        ("a member without value", br#"{"message":}"#),
        ("a trailing comma", br#"{"message":{},}"#),
        ("a comma too many in a list", b"[1,,2]"),
        ("words after the end", br"{} x"),
        ("two values", b"{}{}"),
        ("single quotes", b"{'message':{}}"),
        ("a name without quotes", b"{message:{}}"),
        ("not a number", br#"{"message":NaN}"#),
        ("a leading zero", br#"{"message":01}"#),
        ("a comment", br"{} // done"),
        ("bytes that are no text", b"{\"message\":\"\xff\xfe\"}"),
        ("an open string", br#"{"message":"hi"#),
        ("a line break in a string", b"{\"message\":\"a\nb\"}"),
        ("an unknown escape", br#"{"message":"\x"}"#),
        ("half a surrogate pair", br#"{"message":"\ud800"}"#),
        ("a byte order mark", b"\xef\xbb\xbf{}"),
    ];
    for (name, text) in texts {
        let fault = table.early(PARSE);
        table.add(format!("malformed: {name}"), table.raw_body(text), fault);
    }
}

/// No body at all. Over REST this means that all parameters are absent.
fn empty(table: &mut Table) {
    let fault = match table.dialect {
        Dialect::Rest10 | Dialect::Rest03 => table.fault(PARAMS).at("message"),
        _ => table.early(PARSE),
    };
    table.add("no body", table.raw_body(""), fault);
}

fn headers(table: &mut Table) {
    let good = table.good().to_string();
    let fault = || table.early(MEDIA_TYPE);
    let mut cases = vec![(
        "without content type".to_owned(),
        table.raw_send(&good).without("content-type"),
        fault(),
    )];
    for kind in [
        "",
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json, text/plain",
        "application/json-rpc",
        "*/*",
    ] {
        let request = table.raw_send(&good).header("content-type", kind);
        cases.push((format!("content type {kind:?}"), request, fault()));
    }
    for coding in ["gzip", "br", "deflate", "gzip, identity", "x"] {
        let request = table.raw_send(&good).header("content-encoding", coding);
        cases.push((format!("content encoding {coding:?}"), request, fault()));
    }
    // The content type is checked before the body is parsed.
    let request = table.raw_body("{").header("content-type", "text/plain");
    cases.push(("malformed text/plain".to_owned(), request, fault()));
    for (name, request, fault) in cases {
        table.add(name, request, fault);
    }
}

fn large(table: &mut Table) {
    let long = "a".repeat(MAX_BODY);
    let text = table
        .good()
        .to_string()
        .replace("\"hi\"", &format!("\"{long}\""));
    let too_large = table.early(TOO_LARGE);
    table.add(
        "a text of the largest size",
        table.raw_send(&text),
        too_large,
    );
    let too_large = table.early(TOO_LARGE);
    table.add(
        "one byte over the largest size",
        table.raw_body(vec![b' '; MAX_BODY + 1]),
        too_large,
    );
    let too_large = table.early(TOO_LARGE);
    let no_json = table
        .raw_body(vec![b'{'; MAX_BODY + 1])
        .without("content-type");
    table.add("over the largest size of anything", no_json, too_large);
}

fn deep(table: &mut Table) {
    // JSON may be 32 levels deep, see `shared/wire/src/json.rs`.
    let nested = |open: &str, close: &str, depth: usize| {
        let deep = format!("{}0{}", open.repeat(depth), close.repeat(depth));
        let good = table.good().to_string();
        good.replacen('{', &format!(r#"{{"x":{deep},"#), 1)
    };
    let cases = [
        ("33 lists deep", nested("[", "]", 33)),
        ("33 objects deep", nested(r#"{"a":"#, "}", 33)),
        ("200 lists deep", nested("[", "]", 200)),
        ("10,000 objects deep", nested(r#"{"a":"#, "}", 10_000)),
    ];
    for (name, params) in cases {
        let fault = table.early(REQUEST);
        table.add(name, table.raw_send(&params), fault);
    }
    let fault = table.early(REQUEST);
    table.add(
        "a flood of brackets",
        table.raw_body("[".repeat(100_000)),
        fault,
    );
}

fn many(table: &mut Table) {
    // JSON may have 20,000 values and members, see `shared/wire/src/json.rs`.
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    let members: Vec<String> = (0..20_001).map(|n| format!(r#""k{n}":0"#)).collect();
    let good = table.good().to_string();
    let with = |extra: String| good.replacen('{', &format!(r#"{{"x":{extra},"#), 1);
    let cases = [
        ("20,001 numbers", with(list("0", 20_001))),
        ("10,001 small objects", with(list(r#"{"":0}"#, 10_001))),
        ("655,000 empty objects", list("{}", 655_000)),
        ("20,001 members", with(format!("{{{}}}", members.join(",")))),
    ];
    for (name, params) in cases {
        let fault = table.early(REQUEST);
        table.add(name, table.raw_send(&params), fault);
    }
}
