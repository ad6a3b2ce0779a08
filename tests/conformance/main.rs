//! Runs this project's own test vectors for the protocol.
//!
//! Each vector states one fact that a specification promises, and runs in every dialect
//! that promises it. The agent is the conformance agent in this process.
//! `A2A_CONFORMANCE_URL` selects an agent that runs elsewhere: `a2a-local --agent
//! conformance --memory --port 0`.
//!
//! `kit.sh` runs the official kit, `acts.sh` the official suite ACTS.

#[cfg(test)]
mod acts;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod official;
#[cfg(test)]
mod parsers;
#[cfg(test)]
mod pattern;
#[cfg(test)]
mod run;
#[cfg(test)]
mod vector;

#[cfg(test)]
mod tests {
    use crate::acts::{self, Graded};
    use crate::errors::{all, name};
    use crate::official::{self, Kind};
    use crate::parsers::{Proto, RULES, Rule};
    use crate::pattern::Names;
    use crate::run::{Agent, Run, expected, selected};
    use crate::vector::{Given, Vector};
    use a2a_lambda_rows::{each_row, each_row_async};
    use a2a_lambda_tests::dialect::{Dialect, Op, Say};
    use a2a_lambda_tests::error_rows::{Fault, Row, rows};
    use a2a_lambda_tests::world::{Reply, Request, World};
    use a2a_lambda_wire::{CardShape, OpenedRequest, RawRequest};
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    /// The least number of vectors, so that a vector file cannot get lost unnoticed.
    const ENOUGH: usize = 150;

    fn folder() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance/vectors")
    }

    /// All vectors, each with the name of its file.
    fn vectors() -> Vec<(String, Vector)> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("errors.json"))
            .collect();
        files.sort();
        let mut all = Vec::new();
        for file in files {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            let vectors: Vec<Vector> =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            all.extend(vectors.into_iter().map(|vector| (name.clone(), vector)));
        }
        all
    }

    /// The URL of an agent that runs elsewhere, if one is set.
    #[expect(
        clippy::disallowed_methods,
        reason = "the person who runs the tests sets the agent"
    )]
    fn elsewhere() -> Option<String> {
        std::env::var("A2A_CONFORMANCE_URL").ok()
    }

    /// Ids that no other vector and no other run against the same agent uses.
    fn names(unique: &str) -> Names {
        Names::from([
            ("new".to_owned(), json!(format!("new:{unique}"))),
            ("own".to_owned(), json!(format!("own:{unique}"))),
            (
                "unknown".to_owned(),
                json!("task-00000000000000000000000000000000"),
            ),
        ])
    }

    async fn keeps_its_promises(dialect: Dialect, rule: Option<&'static Rule>) {
        let elsewhere = elsewhere();
        if elsewhere.is_some() {
            tokio::time::resume();
        }
        let (mut tried, mut answers, mut requests) = (0, 0, 0);
        let mut broken = Vec::new();
        for (number, (file, vector)) in vectors().iter().enumerate() {
            // A vector that needs a special agent cannot run against a URL.
            let special = vector.given != Given::Nothing && elsewhere.is_some();
            if special || !selected(&vector.over).contains(&dialect) {
                continue;
            }
            tried += 1;
            let there = elsewhere.clone().map(Agent::There);
            let agent = there.unwrap_or_else(|| Agent::here(vector.given));
            let mut run = Run {
                agent: &agent,
                dialect,
                names: names(&format!("{}:{dialect:?}:{number}", std::process::id())),
                live: None,
                answers: Vec::new(),
                requests: Vec::new(),
                rule,
            };
            let kept = run.vector(vector).await;
            answers += run.answers.len();
            let read = run.answers.iter().map(|(kind, value)| {
                official::reads(*kind, value)
                    .map_err(|why| format!("as an official {kind:?}: {why}"))
            });
            let asked = run.requests.iter().try_for_each(official::reads_request);
            requests += run.requests.len();
            let refused = official::REFUSED.contains(&vector.name.as_str());
            if dialect == Dialect::Rpc10 && rule.is_none() && asked.is_err() != refused {
                broken.push(format!("{file}: {}: {asked:?}", vector.name));
            }
            for why in std::iter::once(kept).chain(read).filter_map(Result::err) {
                let Vector { name, section, .. } = vector;
                broken.push(format!("{file}: {name} ({section})\n    {why}"));
            }
        }
        println!("{dialect:?}: {tried} vectors, {} violations", broken.len());
        if dialect.is_v10() {
            println!(
                "{dialect:?}: the official types read {requests} requests, {answers} responses"
            );
            assert!(answers > 100, "only {answers} responses");
            assert!(
                requests > 100 || !dialect.is_rpc(),
                "only {requests} requests"
            );
        }
        assert!(broken.is_empty(), "{dialect:?}:\n{}", broken.join("\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn json_rpc_1_0_passes_its_vectors() {
        keeps_its_promises(Dialect::Rpc10, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn rest_1_0_passes_its_vectors() {
        keeps_its_promises(Dialect::Rest10, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn json_rpc_0_3_passes_its_vectors() {
        keeps_its_promises(Dialect::Rpc03, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn rest_0_3_passes_its_vectors() {
        keeps_its_promises(Dialect::Rest03, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn json_rpc_0_1_passes_its_vectors() {
        keeps_its_promises(Dialect::Rpc01, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn paths_0_1_pass_their_vectors() {
        keeps_its_promises(Dialect::Path01, None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_rules_of_other_clients_hold_for_every_vector() {
        each_row_async(&RULES, async |rule| {
            println!("{} {} ({})", rule.client, rule.does, rule.source);
            for dialect in rule.dialects {
                keeps_its_promises(*dialect, Some(rule)).await;
            }
        })
        .await;
    }

    #[test]
    fn each_request_type_with_all_its_defaults_is_the_one_without() {
        let proto = Proto::read();
        let push = json!({"url": "https://hook.example/a", "authentication": {"scheme": "Bearer"}});
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
        // Each type ignores the members of the others.
        let params = json!({
            "message": message, "configuration": {"taskPushNotificationConfig": push},
            "id": "x-1", "taskId": "x-1", "url": "https://hook.example/a",
        });
        assert_eq!(proto.methods.len(), 11);
        each_row(&proto.methods, |(method, name)| {
            let mut printed = params.clone();
            proto.print(name, &mut printed);
            assert_ne!(printed, params);
            let [with, without] = [printed, params.clone()].map(|params| {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                official::call(&body).unwrap_or_else(|why| panic!("{body}: {why}"))
            });
            assert_eq!(with, without);
        });
    }

    #[test]
    fn vectors_have_unique_names_and_known_sections() {
        let vectors = vectors();
        let names: BTreeSet<&str> = vectors.iter().map(|(_, it)| it.name.as_str()).collect();
        assert_eq!(names.len(), vectors.len(), "two vectors of one name");
        let rows = rows().unwrap().len();
        let tried: usize = vectors.iter().map(|(_, it)| selected(&it.over).len()).sum();
        println!(
            "{} vectors and {rows} rows of the table of errors, {} runs in 6 dialects",
            vectors.len(),
            tried + 6 * rows
        );
        assert!(names.len() >= ENOUGH, "only {} vectors", names.len());
        let mut sections: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, vector) in &vectors {
            let first = vector.section.split([',', ';']).next().unwrap_or_default();
            *sections.entry(first.trim()).or_default() += 1;
        }
        for (section, count) in sections {
            println!("  {count:3} {section}");
        }
        for (_, vector) in &vectors {
            let starts = ["1.0 §", "0.3 §", "0.1", "ours", "JSON-RPC", "RFC"];
            let known = starts.iter().any(|start| vector.section.starts_with(start));
            assert!(
                known,
                "{}: which section is {:?}?",
                vector.name, vector.section
            );
        }
    }

    #[test]
    fn every_test_of_acts_has_a_vector_or_a_reason() {
        let over = |graded: Graded| match graded {
            Graded::Both => vec![Dialect::Rpc10, Dialect::Rest10],
            Graded::JsonRpc => vec![Dialect::Rpc10],
            Graded::Rest => vec![Dialect::Rest10],
        };
        let mut found: BTreeMap<String, Vec<Dialect>> = BTreeMap::new();
        for (_, vector) in vectors() {
            if let Some(test) = vector.acts {
                let dialects = selected(&vector.over);
                assert_eq!(found.insert(test.clone(), dialects), None, "{test} twice");
            }
        }
        let wanted = acts::PROVEN.iter();
        let wanted: BTreeMap<String, Vec<Dialect>> = wanted
            .map(|(test, graded)| ((*test).to_owned(), over(*graded)))
            .collect();
        assert_eq!(found, wanted);
        assert!(
            acts::NAMED
                .iter()
                .all(|(test, _)| !wanted.contains_key(*test))
        );
        for (test, why) in acts::NAMED {
            println!("ACTS {test}: no vector, {why}");
        }
        println!(
            "ACTS: {} tests have vectors, {} are named",
            wanted.len(),
            acts::NAMED.len()
        );
        assert_eq!(wanted.len() + acts::NAMED.len(), 111);
    }

    #[test]
    fn error_table_matches_every_dialect() {
        let rows = rows().unwrap();
        let named: Vec<&str> = rows.iter().map(|row| row.refusal.as_str()).collect();
        let mut known: Vec<&str> = all().iter().map(name).collect();
        // Some errors differ in their sentence alone.
        known.dedup();
        assert_eq!(named, known, "the table and the refusals differ");
        assert!(rows.iter().all(|row| !row.section.is_empty()));
        for refusal in all() {
            each_row(Dialect::ALL, |dialect| {
                let reply = shown(dialect, &refusal);
                let fault = Fault::new(dialect, Row::named(name(&refusal)).unwrap());
                if let Err(why) = fault.check(&reply) {
                    panic!("{refusal} in {dialect:?}: {why}\n{}", reply.text());
                }
            });
        }
    }

    #[test]
    fn codes_keep_their_0_1_meaning_in_0_1() {
        for row in rows().unwrap() {
            let name = row.refusal.as_str();
            let expected = match row.code_in_v01() {
                -32007 => name == "Unauthenticated",
                -32008 => name == "Forbidden",
                -32009 => ["TaskBusy", "TaskFinished", "VersionNotSupported"].contains(&name),
                -32010 => name == "RateLimited",
                -32011 => ["Unavailable", "Unfinished", "UnknownStoredForm"].contains(&name),
                code => code != -32006,
            };
            assert!(expected, "{name}");
        }
    }

    /// The response to a send that is refused.
    fn shown(dialect: Dialect, refusal: &a2a_lambda::task::A2aError) -> Reply {
        let request = dialect.send(&Say::to("echo", "hi"));
        let raw = RawRequest {
            method: request.method,
            path: &dialect.route(Op::Send, "").1,
            content_type: Some("application/json"),
            version: dialect.is_v10().then_some("1.0"),
            body: &request.body,
            ..RawRequest::default()
        };
        let Ok(OpenedRequest::One(call)) = a2a_lambda_wire::open(&raw) else {
            panic!("{dialect:?} opens no call");
        };
        let answer = a2a_lambda_wire::refuse(&call, refusal);
        let mut headers = http::HeaderMap::new();
        for (name, value) in answer.headers {
            headers.insert(name, value.parse().unwrap());
        }
        Reply {
            status: answer.status,
            headers,
            body: answer.body,
        }
    }

    /// The rows that this agent cannot produce from a request. The table test above covers
    /// them.
    const UNSEEN: [&str; 10] = [
        "ContentTypeNotSupported",
        "InvalidAgentResponse",
        "ExtendedCardNotConfigured",
        "ExtensionSupportRequired",
        "Internal",
        "RateLimited",
        "Forbidden",
        "StateTooLarge",
        "Unfinished",
        "UnknownStoredForm",
    ];

    #[test]
    fn vectors_provoke_each_error_in_every_dialect() {
        let mut seen = BTreeSet::new();
        for (_, vector) in vectors() {
            for step in &vector.steps {
                let over = if step.dialects.is_empty() {
                    &vector.over
                } else {
                    &step.dialects
                };
                for dialect in selected(over) {
                    if let Some(error) = expected(step, dialect).error {
                        seen.insert((format!("{dialect:?}"), error));
                    }
                }
            }
        }
        let mut missing = Vec::new();
        for row in rows().unwrap() {
            for dialect in Dialect::ALL.map(|dialect| format!("{dialect:?}")) {
                let unseen = UNSEEN.contains(&row.refusal.as_str())
                    // An unknown path has no generation, so it is never an error of 0.1.
                    || dialect == "Path01" && row.refusal == "MethodNotFound";
                if !unseen && !seen.contains(&(dialect.clone(), row.refusal.clone())) {
                    missing.push(format!("{dialect} {}", row.refusal));
                }
            }
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn official_types_read_the_card_of_1_0_without_loss() {
        let agent = conformance_agent::agent(std::time::Duration::from_secs(2));
        let world = World::serving(|_| agent, |settings| settings.card = CardShape::V1);
        let request = Request::new("GET", "/.well-known/agent-card.json");
        let card = world.unwrap().call(&request).await.json();
        assert_eq!(official::reads(Kind::Card, &card), Ok(()), "{card}");
    }

    #[test]
    fn vector_files_keep_large_integers_exact() {
        let value: Value = serde_json::from_str("[9007199254740993,18446744073709551615]").unwrap();
        assert_eq!(value.to_string(), "[9007199254740993,18446744073709551615]");
    }
}
