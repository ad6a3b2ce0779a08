//! Contexts and their tasks, and what is left after the deletion of the contexts.

use super::{Client, Known, tasks, text};
use crate::dialect::{Dialect, at};
use crate::world::Request;
use std::collections::{BTreeMap, BTreeSet};

/// The contexts in the client's list.
async fn contexts(client: &dyn Client) -> BTreeSet<String> {
    let request = Request::new("GET", "/a2a-lambda/contexts");
    let page = client.call(&Dialect::Rest10.versioned(request)).await;
    let page = page.unwrap_or_default();
    let contexts = at(&page, "/contexts").as_array().into_iter().flatten();
    contexts
        .map(|context| text(context, "/contextId"))
        .collect()
}

/// The violations.
pub(super) async fn deletes(after: &dyn Client, known: &Known) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let stored = tasks(after, "pageSize=100").await;
    for (task, context) in &stored {
        all.entry(context.clone()).or_default().insert(task.clone());
    }
    for (context, stored) in &all {
        let query = format!("contextId={context}");
        let listed: BTreeSet<String> = tasks(after, &query).await.into_keys().collect();
        if listed != *stored {
            wrong.push(format!("{context} knows {listed:?}, stored are {stored:?}"));
        }
    }
    let listed = contexts(after).await;
    if !listed.iter().eq(all.keys()) {
        wrong.push(format!("listed are {listed:?}, with tasks are {all:?}"));
    }
    for context in all.keys() {
        let request = Request::new("DELETE", format!("/a2a-lambda/contexts/{context}"));
        let request = Dialect::Rest10.versioned(request);
        if after.call(&request).await.is_none() {
            wrong.push(format!("cannot be deleted: {context}"));
        }
    }
    let reported = known.reported.iter().map(|task| text(task, "/id"));
    for task in reported.chain(stored.into_keys()) {
        if after.reads(&task).await {
            wrong.push(format!("outlives its context: {task}"));
        }
    }
    let left = (tasks(after, "pageSize=100").await, contexts(after).await);
    if left != (BTreeMap::new(), BTreeSet::new()) {
        wrong.push(format!("left after the deletion: {left:?}"));
    }
    wrong
}
