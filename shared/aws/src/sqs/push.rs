//! The queue of push deliveries in Amazon SQS, a standard queue.
//!
//! The message group is the tenant, as for turns. The queue shares its receivers fairly, so
//! that the webhooks of one tenant do not delay those of another.

use super::{BATCH, BatchResult, FORM, SqsQueue, corrupt, read, whole_seconds};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::{DELAY_MAX, PushItem, PushQueue};
use a2a_lambda_model::task::{Owner, PushId, Subject, TaskId, TenantId, WriteId};
use async_trait::async_trait;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The body of a message.
#[derive(Serialize, Deserialize)]
struct PushBody {
    v: u32,
    tenant: String,
    subject: String,
    task: String,
    incarnation: String,
    config: String,
}

/// The body of the message for `item`.
#[must_use]
pub fn encode(item: &PushItem) -> String {
    let body = PushBody {
        v: FORM,
        tenant: item.owner.tenant.to_string(),
        subject: item.owner.subject.to_string(),
        task: item.task.to_string(),
        incarnation: item.incarnation.to_string(),
        config: item.config.to_string(),
    };
    // Plain values under fixed names can always be encoded as JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

/// Decodes the body of a message. Ignores members that a later release adds.
///
/// # Errors
/// As for [`super::decode`].
pub fn decode(body: &str) -> Result<PushItem, StoreError> {
    let body: PushBody = read(body)?;
    Ok(PushItem {
        owner: Owner {
            tenant: TenantId::parse(body.tenant).map_err(corrupt)?,
            subject: Subject::parse(body.subject).map_err(corrupt)?,
        },
        task: TaskId::parse(body.task).map_err(corrupt)?,
        incarnation: WriteId::stored(body.incarnation),
        config: PushId::parse(body.config).map_err(corrupt)?,
    })
}

#[async_trait]
impl PushQueue for SqsQueue {
    async fn ring(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        let mut result = BatchResult::default();
        for batch in items.chunks(BATCH) {
            let entries: Result<Vec<_>, _> = batch
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    SendMessageBatchRequestEntry::builder()
                        .id(index.to_string())
                        .message_body(encode(item))
                        .message_group_id(item.owner.tenant.as_str())
                        .delay_seconds(whole_seconds(wait.min(DELAY_MAX)))
                        .build()
                })
                .collect();
            let entries = entries.map_err(|error| StoreError::Refused(error.to_string()))?;
            result.note(batch.len(), self.send_entries(entries).await);
        }
        result.flags()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;
    use serde_json::json;

    #[test]
    fn a_message_holds_ids_and_reads_back() {
        let item = PushItem {
            owner: Owner {
                tenant: TenantId::parse("acme").unwrap(),
                subject: Subject::parse("ann").unwrap(),
            },
            task: TaskId::parse("order:1").unwrap(),
            incarnation: WriteId::stored("w-1"),
            config: PushId::parse("default").unwrap(),
        };
        let body: serde_json::Value = serde_json::from_str(&encode(&item)).unwrap();
        let expected = json!({
            "v": 1, "tenant": "acme", "subject": "ann", "task": "order:1",
            "incarnation": "w-1", "config": "default",
        });
        assert_eq!(body, expected);
        assert_eq!(decode(&encode(&item)).unwrap(), item);
        let other = |v: &str| encode(&item).replace("\"v\":1", v);
        let bad = [
            "",
            "{}",
            "null",
            "[]",
            &other("\"v\":0"),
            &other("\"v\":-1"),
        ];
        each_row(bad, |body| {
            assert!(
                matches!(decode(body), Err(StoreError::Corrupt(_))),
                "{body}"
            );
        });
        each_row([other("\"v\":2"), r#"{"v":2}"#.to_owned()], |body| {
            assert!(matches!(decode(&body), Err(StoreError::Form(2))), "{body}");
        });
    }
}
