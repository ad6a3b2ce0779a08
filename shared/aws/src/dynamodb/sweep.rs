//! Tells the sweep which objects are in use, and stores the position of the last sweep.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Attributes};
use super::store::DynamoStore;
use super::{key, large_value};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::store::queue::{ObjectsPlace, SweepObjects};
use a2a_lambda_model::stored::{self, ChildName};
use a2a_lambda_model::task::{TaskKey, TaskRecord, ThreadKey, Timestamp};
use async_trait::async_trait;

const BEGAN: &str = "began";
const BEFORE: &str = "before";
const AFTER: &str = "after";

#[async_trait]
impl SweepObjects for DynamoStore {
    async fn load_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.stored_task(None, key, |_| true).await
    }

    async fn head_by_key(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.own_item(key).await
    }

    async fn state_object(&self, thread: &ThreadKey) -> Result<Option<String>, StoreError> {
        let state = self.item(&key::thread_at(thread), key::STATE).await?;
        Ok(state.as_ref().and_then(large_value::named))
    }

    async fn content_objects(&self, key: &TaskKey) -> Result<Vec<String>, StoreError> {
        let Some(head) = self.own_item(key).await? else {
            return Ok(Vec::new());
        };
        let mut objects = Vec::new();
        for (name, item) in self.children(&head, None, true).await? {
            if is_named(&head, name, item::integer(&item, item::VERSION)?) {
                objects.extend(large_value::named(&item));
            }
        }
        Ok(objects)
    }

    async fn objects_place(&self) -> Result<Option<ObjectsPlace>, StoreError> {
        let Some(item) = self.item(key::SWEEPS, key::OBJECTS).await? else {
            return Ok(None);
        };
        Ok(Some(ObjectsPlace {
            began: Timestamp::from_millis(item::integer(&item, BEGAN)?),
            before: item::integer(&item, BEFORE)
                .ok()
                .map(Timestamp::from_millis),
            after: item::string(&item, AFTER).ok().map(str::to_owned),
        }))
    }

    async fn note_objects_place(&self, place: &ObjectsPlace) -> Result<(), StoreError> {
        let mut attributes = Attributes::from([(BEGAN, item::number(place.began.as_millis()))]);
        if let Some(before) = place.before {
            attributes.insert(BEFORE, item::number(before.as_millis()));
        }
        if let Some(after) = &place.after {
            attributes.insert(AFTER, item::text(&**after));
        }
        let note = ConditionalWrite::put_at(key::SWEEPS, key::OBJECTS, attributes);
        self.write_once(note).await.map(|_| ())
    }
}

/// Whether a task names the child with this version. One that was replaced after the read of
/// the task has a later version, and counts as named.
fn is_named(task: &TaskRecord, name: ChildName, version: u64) -> bool {
    match name {
        ChildName::State => {
            let state = task.layout().state.as_ref();
            state.is_some_and(|state| version >= state.version)
        }
        ChildName::Moved { .. } => stored::names(task, name),
    }
}
