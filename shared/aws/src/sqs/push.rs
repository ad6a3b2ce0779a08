//! The queue of push deliveries in Amazon SQS, a standard queue.
//!
//! The message group is the tenant, as for turns. The queue shares its receivers fairly, so
//! that the webhooks of one tenant do not delay those of another.

pub use super::encode;
use super::{SqsQueue, entry, read};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::{PushItem, PushQueue};
use async_trait::async_trait;
use std::time::Duration;

/// Decodes the body of a message. Ignores members that a later release adds.
///
/// # Errors
/// As for [`super::decode`].
pub fn decode(body: &str) -> Result<PushItem, StoreError> {
    read(body)
}

#[async_trait]
impl PushQueue for SqsQueue {
    async fn send(&self, items: &[PushItem], wait: Duration) -> Result<Vec<bool>, StoreError> {
        let items = items.iter().enumerate();
        let entries = items.map(|(index, item)| entry(index, &item.owner, encode(item), wait));
        let entries = entries.collect::<Result<_, _>>()?;
        self.send_all(entries, 1).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::{Owner, PushId, Subject, TaskId, TenantId, WriteId};
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
            incarnation: WriteId::from_stored("w-1"),
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
