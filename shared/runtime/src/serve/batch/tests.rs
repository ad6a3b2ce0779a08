use super::*;
use crate::store::aws::sqs_client;
use crate::store::sqs;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A queue that answers `count` requests with `status`. It returns their bodies.
async fn queue_that_answers(
    count: usize,
    status: &str,
) -> (SqsQueue, tokio::task::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\n");
    let service = tokio::spawn(async move {
        let mut bodies = Vec::new();
        while bodies.len() < count {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let body = loop {
                socket.read_buf(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request);
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
                if let Some(body) = body.and_then(|body| serde_json::from_str(body).ok()) {
                    break body;
                }
            };
            bodies.push(body);
            let answer = format!("{head}connection: close\r\ncontent-length: 2\r\n\r\n{{}}");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        bodies
    });
    let client = sqs_client(Some(&url)).await;
    (SqsQueue::new(client, format!("{url}/1/work")), service)
}

/// The ids of the messages that SQS delivers again.
async fn ids_to_redeliver<T>(
    queue: &SqsQueue,
    decode: fn(&str) -> Result<T, StoreError>,
    bodies: &[&str],
) -> Vec<String> {
    let record = |(n, body): (usize, &&str)| json!({"messageId": n.to_string(), "body": body});
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    let event = serde_json::from_value(json!({"Records": records})).unwrap();
    let handle = async |_: T, _: &SqsMessage| panic!("nobody can read it");
    let response = respond(
        (queue, Some("http://127.0.0.1:9/1/dead")),
        event,
        decode,
        handle,
    )
    .await;
    let failures = response.batch_item_failures.into_iter();
    failures.filter_map(|it| it.item_identifier).collect()
}

const UNREADABLE: [&str; 3] = ["hello", r#"{"v":1,"tenant":"secret-7"}"#, ""];
const NEWER: &str = r#"{"v":2,"item":"of another release"}"#;

/// What of three unreadable messages and a newer one becomes a dead letter, and what stays.
async fn sorted<T>(decode: fn(&str) -> Result<T, StoreError>) {
    let (queue, service) = queue_that_answers(3, "200 OK").await;
    let bodies = [UNREADABLE.as_slice(), &[NEWER]].concat();
    assert_eq!(
        ids_to_redeliver(&queue, decode, &bodies).await,
        ["3"],
        "the newer one"
    );
    let letters = service.await.unwrap();
    let texts: Vec<_> = letters.iter().map(|it| &it["MessageBody"]).collect();
    assert_eq!(texts, UNREADABLE);
    for letter in letters {
        assert!(letter["QueueUrl"].as_str().unwrap().ends_with("/1/dead"));
        let reason = &letter["MessageAttributes"]["reason"];
        assert_eq!(reason["DataType"], "String");
        let text = reason["StringValue"].as_str().unwrap();
        assert!(
            text.contains("line 1") && !text.contains("secret-7"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn unreadable_turns_are_dead_letters_at_once_and_newer_ones_stay() {
    sorted(sqs::decode).await;
}

#[tokio::test]
async fn unreadable_pushes_are_dead_letters_at_once_and_newer_ones_stay() {
    sorted(sqs::push::decode).await;
}

#[tokio::test]
async fn an_unreadable_message_stays_if_the_dead_letters_refuse_it() {
    let (queue, service) = queue_that_answers(1, "403 Forbidden").await;
    assert_eq!(
        ids_to_redeliver(&queue, sqs::decode, &["hello"]).await,
        ["0"]
    );
    assert_eq!(service.await.unwrap().len(), 1);
}
