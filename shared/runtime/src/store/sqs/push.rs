//! The queue of deliveries in Amazon SQS, a FIFO queue.
//!
//! The group is one webhook of one task, so that its events come in order, and
//! a webhook that does not answer holds up no other. Names of groups are hashes:
//! ids are longer than a group may be.

use super::{BATCH, BODY, Sent, SqsQueue, corrupt};
use crate::store::StoreError;
use crate::store::queue::{PushItem, PushQueue};
use crate::task::{Owner, PushId, Subject, TaskId, TaskKey, TenantId};
use async_trait::async_trait;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The body of a message.
#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    tenant: String,
    subject: String,
    task: String,
    config: String,
    seq: u64,
}

/// The body of the message for `item`.
#[must_use]
pub fn encode(item: &PushItem) -> String {
    let body = Body {
        v: BODY,
        tenant: item.owner.tenant.to_string(),
        subject: item.owner.subject.to_string(),
        task: item.task.to_string(),
        config: item.config.to_string(),
        seq: item.seq,
    };
    // Plain values under fixed names always are JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

/// The item of a message's body. Members of a later program are ignored.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is no body of a known version.
pub fn decode(body: &str) -> Result<PushItem, StoreError> {
    let body: Body = serde_json::from_str(body).map_err(corrupt)?;
    if body.v != BODY {
        return Err(corrupt(format_args!("unknown message version {}", body.v)));
    }
    Ok(PushItem {
        owner: Owner {
            tenant: TenantId::parse(body.tenant).map_err(corrupt)?,
            subject: Subject::parse(body.subject).map_err(corrupt)?,
        },
        task: TaskId::parse(body.task).map_err(corrupt)?,
        config: PushId::parse(body.config).map_err(corrupt)?,
        seq: body.seq,
    })
}

/// The group of a message: one webhook of one task.
#[must_use]
pub fn group(item: &PushItem) -> String {
    hash(item, "")
}

/// What two messages for the same event have in common.
fn duplicate(item: &PushItem) -> String {
    hash(item, &item.seq.to_string())
}

fn hash(item: &PushItem, more: &str) -> String {
    let task = TaskKey::new(&item.owner, &item.task);
    let mut hash = Sha256::new();
    // No name holds a `#`.
    for name in [
        task.tenant().as_str(),
        task.local(),
        item.config.as_str(),
        more,
    ] {
        hash.update(name);
        hash.update("#");
    }
    hex::encode(hash.finalize())
}

#[async_trait]
impl PushQueue for SqsQueue {
    async fn send_pushes(&self, items: &[PushItem]) -> Result<Vec<bool>, StoreError> {
        let mut sent = Sent::default();
        for batch in items.chunks(BATCH) {
            let entries: Result<Vec<_>, _> = batch
                .iter()
                .enumerate()
                .map(|(place, item)| {
                    SendMessageBatchRequestEntry::builder()
                        .id(place.to_string())
                        .message_body(encode(item))
                        .message_group_id(group(item))
                        .message_deduplication_id(duplicate(item))
                        .build()
                })
                .collect();
            let entries = entries.map_err(|error| StoreError::Refused(error.to_string()))?;
            sent.note(batch.len(), self.send_entries(entries).await);
        }
        sent.flags()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(task: &str, config: &str, seq: u64) -> PushItem {
        PushItem {
            owner: Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            task: TaskId::parse(task).unwrap(),
            config: PushId::parse(config).unwrap(),
            seq,
        }
    }

    #[test]
    fn a_message_holds_ids_and_reads_back() {
        let item = item("order:1", "default", 7);
        let body: serde_json::Value = serde_json::from_str(&encode(&item)).unwrap();
        let expected = json!({
            "v": 1, "tenant": "acme", "subject": "ann", "task": "order:1",
            "config": "default", "seq": 7,
        });
        assert_eq!(body, expected);
        assert_eq!(decode(&encode(&item)).unwrap(), item);
        for bad in [
            "",
            "{}",
            "null",
            "[]",
            &encode(&item).replace("\"v\":1", "\"v\":2"),
        ] {
            assert!(matches!(decode(bad), Err(StoreError::Corrupt(_))), "{bad}");
        }
    }

    #[test]
    fn events_of_one_webhook_share_a_group_and_nothing_else() {
        let first = item("a", "x", 1);
        let next = item("a", "x", 2);
        assert_eq!(group(&first), group(&next));
        assert_ne!(duplicate(&first), duplicate(&next));
        for other in [item("a", "y", 1), item("b", "x", 1)] {
            assert_ne!(group(&first), group(&other));
            assert_ne!(duplicate(&first), duplicate(&other));
        }
        assert!(group(&first).len() <= 128 && duplicate(&first).len() <= 128);
    }
}
