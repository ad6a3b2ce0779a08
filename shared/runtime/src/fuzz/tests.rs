use super::*;
use crate::store::contract::SampleData;
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A pseudo-random source of mutations (xorshift64); the same seed gives the same.
struct Noise(u64);

impl Noise {
    fn below(&mut self, many: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % many
    }

    /// `example` with one to four mutations: bytes changed, removed, repeated or added.
    fn changed(&mut self, example: &[u8]) -> Vec<u8> {
        const WORDS: [&[u8]; 10] = [
            b"null", b"-1", b"\"\"", b"[]", b"{}", b"1e999", b"\xff", b"\\u0000", b"..%2f", b"\r\n",
        ];
        let mut bytes = example.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(9)).min(bytes.len());
            match self.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes
                    .splice(at..end, WORDS[self.below(WORDS.len())].iter().copied())
                    .for_each(drop),
                2 => bytes.extend_from_within(at..end),
                _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => bytes.push(b'x'),
            }
        }
        bytes
    }
}

/// Runs `target` over `examples`, and over 4,000 mutated ones.
fn run(target: fn(&[u8]) -> Result<(), Broken>, examples: &[Vec<u8>]) {
    let mut noise = Noise(0x5eed_f022);
    for example in examples {
        target(example).unwrap();
    }
    for round in 0..4_000 {
        let example = &examples[noise.below(examples.len())];
        let bytes = noise.changed(example);
        if let Err(broken) = target(&bytes) {
            panic!("{round}: {:?}: {broken}", String::from_utf8_lossy(&bytes));
        }
    }
}

/// Each of `texts` after each choice of a path and a version.
fn behind_choices(texts: &[String]) -> Vec<Vec<u8>> {
    let paths = 0..u8::try_from(PATHS.len()).unwrap();
    let choices = paths.flat_map(|path| (0..4_u8).map(move |version| [path, version]));
    choices
        .flat_map(|choice| {
            texts
                .iter()
                .map(move |text| [&choice, text.as_bytes()].concat())
        })
        .collect()
}

#[test]
fn mutated_requests_get_a_well_formed_response() {
    let message =
        json!({"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]});
    let current = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "AAAA"}],
        "referenceTaskIds": ["t"], "metadata": {"a": [1, {"b": null}]}});
    let rpc = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    run(
        rpc_decode,
        &behind_choices(&[
            rpc(
                "SendMessage",
                json!({"message": current, "configuration": {"historyLength": 3}}),
            ),
            rpc("message/send", json!({"message": message})),
            rpc(
                "tasks/send",
                json!({"id": "t", "message": {"role": "user", "parts": []}}),
            ),
            format!(
                "[{},{}]",
                rpc("GetTask", json!({"id": "t"})),
                rpc("ListTasks", json!({}))
            ),
            json!({"message": current}).to_string(),
            json!({"id": "t", "sessionId": "s", "historyLength": 2}).to_string(),
        ]),
    );
}

#[test]
fn mutated_file_names_do_not_break_out_of_the_headers() {
    let texts = [
        "AAAA",
        "r\u{e9}port.pdf",
        "text/html; a=b",
        "https://example.org/a",
        "..\\a;\"b",
    ];
    let ways = 0..8_u8;
    let examples: Vec<_> = ways
        .flat_map(|way| texts.map(|text| [&[way], text.as_bytes()].concat()))
        .collect();
    run(parts, &examples);
}

#[test]
fn mutated_page_tokens_and_positions_are_refused() {
    let caller = caller().unwrap();
    let place = ThreadPosition {
        at: Timestamp::from_millis(5),
        context: crate::task::ContextId::parse("c").unwrap(),
    };
    let other = SecretKeySet::of([b"another secret".to_vec()]);
    let token = PagedList::contexts(&other, &caller).token(&place, place.at);
    let texts = [
        token.as_str(),
        "3.1",
        "5 10 2 task-1",
        "5 c",
        "pageSize=5&pageToken=x&status=working",
    ];
    run(cursors, &texts.map(|text| text.as_bytes().to_vec()));
}

#[test]
fn mutated_requests_change_no_other_tenant_and_break_no_function() {
    use crate::prelude::*;

    /// Repeats a text.
    #[skill(id = "echo", tags = ["test"])]
    async fn echo(text: String) -> AgentResult<String> {
        Ok(text)
    }

    let agent = Agent::builder("fuzzed").description("Repeats.").skill(echo);
    let target = HttpTarget::new(agent.build().unwrap()).unwrap();
    let json = "Content-Type: application/json";
    let sent = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;
    let examples = [
        format!("POST /message:send\nA2A-Version: 1.0\n{json}\n\n{sent}"),
        format!("POST /message:stream\nA2A-Version: 1.0\nIdempotency-Key: k\n{json}\n\n{sent}"),
        format!(
            "POST /\nA2A-Version: 1.0\n{json}\n\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{{\"id\":\"t\"}}}}"
        ),
        format!(
            "POST /tasks/send\nAuthorization: Bearer dev:acme:ann\n{json}\n\n{{\"id\":\"t\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"type\":\"text\",\"text\":\"x\"}}]}}}}"
        ),
        "GET /tasks/t/get\nAccept: text/event-stream;q=0\n\n".to_owned(),
        "GET /other/tasks/t?historyLength=2\nA2A-Version: 1.0\nLast-Event-ID: 1.1\n\n".to_owned(),
        "GET /tasks?pageSize=5&pageToken=x&status=working\nA2A-Version: 1.0\n\n".to_owned(),
        "GET /.well-known/agent-card.json\nIf-None-Match: \"x\"\n\n".to_owned(),
        "DELETE /a2a-lambda/tasks/t\nAuthorization: Bearer dev:acme:ann\n\n".to_owned(),
    ];
    let mut noise = Noise(0x5eed_f023);
    for round in 0..1_500 {
        let example = examples[noise.below(examples.len())].as_bytes();
        let bytes = noise.changed(example);
        if let Err(broken) = target.run(&bytes) {
            panic!("{round}: {:?}: {broken}", String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn mutated_urls_lead_where_they_were_checked_to_lead() {
    let texts = [
        "https://hooks.example.org/a?b=c",
        "https://93.184.216.34:8443/hook",
        "https://[2606:2800:220:1::1]/x",
        "https://xn--bcher-kva.example/",
        "https://user@hooks.example.org/",
    ];
    run(url, &texts.map(|text| text.as_bytes().to_vec()));
}

#[cfg(feature = "aws")]
#[test]
fn mutated_queue_messages_are_read_as_they_were_written() {
    let turn = r#"{"v":1,"tenant":"acme","subject":"s","task":"t","incarnation":"7","turn":1,"dispatch":2}"#;
    let push = r#"{"v":1,"tenant":"acme","subject":"s","task":"t","incarnation":"7","config":"c"}"#;
    run(queue, &[turn, push].map(|text| text.as_bytes().to_vec()));
}

#[test]
fn mutated_items_decode_or_are_corrupt() {
    let items = include_str!("../../../../tests/corpus/0.1/items.jsonl");
    let mut texts: Vec<_> = items
        .lines()
        .flat_map(bodies)
        .map(String::into_bytes)
        .collect();
    assert!(texts.len() > 5, "{}", texts.len());
    // The table keeps facts of a task as attributes. So add a whole task.
    let task = SampleData::new(1, "fuzz").unwrap().task().unwrap();
    let whole = stored::encode(&task);
    assert_eq!(stored::decode(whole.clone()).unwrap(), task);
    texts.push(whole.to_string().into_bytes());
    run(item_decode, &texts);
}

/// All values in a line of the corpus that hold a JSON object, also compressed ones.
fn bodies(line: &str) -> Vec<String> {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.starts_with('{') => found.push(text.clone()),
            Value::Object(members) => {
                if let Some(bytes) = members.get("B").and_then(Value::as_str) {
                    let bytes = STANDARD.decode(bytes).unwrap();
                    found.push(Encoded::Deflated(bytes.into()).json().unwrap().into_owned());
                }
                members.values().for_each(|value| walk(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&serde_json::from_str(line).unwrap(), &mut found);
    found
}
