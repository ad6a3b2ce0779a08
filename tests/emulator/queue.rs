//! The work queue on SQS: sending, refused entries and receiving again.

use a2a_lambda::store::StoreError;
use a2a_lambda::store::aws::sqs_client;
use a2a_lambda::store::contract::SampleData;
use a2a_lambda::store::queue::{Receipt as _, WorkItem, WorkMessage, WorkQueue as _};
use a2a_lambda::store::sqs::{self, SqsQueue};
use a2a_lambda::task::TaskId;
use a2a_lambda_tests::emulator::{outside, run};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::Message;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn items(count: usize) -> Vec<WorkMessage> {
    let sample = SampleData::new(run(), "queue").unwrap();
    let item = |turn| WorkItem {
        owner: sample.owner.clone(),
        task: TaskId::made_of(sample.number()),
        incarnation: sample.write_id(),
        turn,
        dispatch: 7,
    };
    let turns = 1..=u32::try_from(count).unwrap();
    turns.map(|turn| item(turn).into()).collect()
}

/// A queue at a service that gives these replies, one per request, and then none.
async fn queue_answering(answers: Vec<(u16, String)>) -> SqsQueue {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/x-amz-json-1.0\r\n\
                 connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let client = sqs_client(Some(&url)).await;
    SqsQueue::new(client, format!("{url}/000000000000/work"))
}

async fn read_request(stream: &mut TcpStream) {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.unwrap_or("0").trim().parse().unwrap();
            if body.len() >= length {
                return;
            }
        }
        assert!(stream.read_buf(&mut read).await.unwrap() > 0);
    }
}

/// A reply that accepts the first entries of a batch and refuses the second.
fn answer(taken: &[usize], refused: &[usize]) -> (u16, String) {
    let taken = taken.iter().map(|id| {
        let md5 = "00000000000000000000000000000000";
        serde_json::json!({"Id": id.to_string(), "MessageId": "m", "MD5OfMessageBody": md5})
    });
    let refused = refused.iter().map(|id| {
        serde_json::json!({"Id": id.to_string(), "Code": "InternalError", "SenderFault": false})
    });
    let body = serde_json::json!({
        "Successful": taken.collect::<Vec<_>>(),
        "Failed": refused.collect::<Vec<_>>(),
    });
    (200, body.to_string())
}

#[tokio::test]
async fn an_entry_refused_in_a_successful_reply_is_not_sent() {
    let queue = queue_answering(vec![answer(&[2, 0], &[1])]).await;
    assert_eq!(queue.send(&items(3)).await.unwrap(), [true, false, true]);
}

#[tokio::test]
async fn an_entry_missing_from_the_reply_is_not_sent() {
    let queue = queue_answering(vec![answer(&[0], &[])]).await;
    assert_eq!(queue.send(&items(2)).await.unwrap(), [true, false]);
}

#[tokio::test]
async fn entries_accepted_before_a_later_batch_fails_stay_sent() {
    let all: Vec<usize> = (0..10).collect();
    let denied = serde_json::json!({"__type": "AccessDeniedException", "message": "no"});
    let queue = queue_answering(vec![answer(&all, &[]), (400, denied.to_string())]).await;
    // An SQS batch has at most 10 entries, so 12 items need two requests.
    let flags = queue.send(&items(12)).await.unwrap();
    assert_eq!(flags.iter().filter(|taken| **taken).count(), 10);
    assert_eq!(flags.last_chunk(), Some(&[false, false]));
}

#[tokio::test]
async fn a_queue_that_accepts_nothing_is_an_error() {
    let denied = serde_json::json!({"__type": "AccessDeniedException", "message": "no"});
    let queue = queue_answering(vec![(400, denied.to_string())]).await;
    let answer = queue.send(&items(2)).await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    let gone = queue_answering(Vec::new()).await;
    let answer = gone.send(&items(2)).await;
    assert!(
        matches!(answer, Err(StoreError::Unavailable(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_empty_list_sends_no_request() {
    let queue = queue_answering(Vec::new()).await;
    assert_eq!(queue.send(&[]).await.unwrap(), Vec::<bool>::new());
}

/// A new queue of an external emulator; without one prints a line and returns `None`.
async fn emulated(name: &str) -> Option<(Client, SqsQueue, String)> {
    let Some(url) = outside() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {name}: no emulator has an SQS");
        return None;
    };
    let client = sqs_client(Some(&url)).await;
    let made = client
        .create_queue()
        .queue_name(format!("{name}-{:x}", run()))
        .send()
        .await
        .unwrap();
    let url = made.queue_url.unwrap();
    Some((client.clone(), SqsQueue::new(client, &url), url))
}

/// The messages the queue returns now, hidden for 10 minutes.
async fn received(client: &Client, url: &str) -> Vec<Message> {
    let found = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(10)
        .visibility_timeout(600)
        .send();
    found.await.unwrap().messages.unwrap_or_default()
}

#[tokio::test]
async fn every_item_sent_is_received_once() {
    let Some((client, queue, url)) = emulated("sent").await else {
        return;
    };
    let sent = items(25);
    assert_eq!(queue.send(&sent).await.unwrap(), [true; 25]);
    let mut found = BTreeMap::new();
    loop {
        let messages = received(&client, &url).await;
        if messages.is_empty() {
            break;
        }
        for message in messages {
            let item = sqs::decode(message.body().unwrap()).unwrap();
            assert_eq!(found.insert(item.turn, WorkMessage::from(item)), None);
        }
    }
    assert_eq!(found.into_values().collect::<Vec<_>>(), sent);
}

#[tokio::test]
async fn a_hidden_message_is_received_again_after_its_time() {
    let Some((client, queue, url)) = emulated("hidden").await else {
        return;
    };
    queue.send(&items(1)).await.unwrap();
    let first = received(&client, &url).await;
    let [message] = first.as_slice() else {
        panic!("one message: {first:?}");
    };
    let receipt = queue.receipt(message.receipt_handle().unwrap());
    receipt.hide(Duration::from_secs(60)).await.unwrap();
    assert_eq!(received(&client, &url).await, []);
    receipt.hide(Duration::ZERO).await.unwrap();
    let again = received(&client, &url).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].body(), message.body());
}
