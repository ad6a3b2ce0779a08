//! Fills the table with copies of a task.
//!
//! This module opens the file of the table beside the service, and imports items in large
//! transactions without records of the stream: 100,000 writes of the service would take minutes.

use crate::Failure;
use a2a_local::embedded::TABLE;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::{AttributeValue, Database, ImportOptions, Item};
use std::ops::Range;
use std::path::Path;

/// The file of the table in a data folder.
const FILE: &str = "dynamodb.sqlite";
/// Items of one import, which is one transaction.
const BATCH: usize = 10_000;

/// The table, and the item to copy.
pub(crate) struct Table {
    database: Database,
    item: Item,
    id: String,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Program(format!("the table: {error}"))
}

impl Table {
    /// Opens the table of a data folder, to copy the task `id`.
    pub(crate) fn open(data: &Path, id: &str) -> Result<Self, Failure> {
        let path = data.join(FILE);
        let database = Database::new(&path.to_string_lossy()).map_err(failed)?;
        let found = database.scan(ScanRequest {
            table_name: TABLE.to_owned(),
            ..ScanRequest::default()
        });
        let items = found.map_err(failed)?.items.unwrap_or_default();
        let of_task = |item: &Item| match item.get("PK") {
            Some(AttributeValue::S(key)) => key.contains(id),
            _ => false,
        };
        let item = items.into_iter().find(of_task);
        Ok(Self {
            database,
            item: item.ok_or_else(|| failed("no task to copy"))?,
            id: id.to_owned(),
        })
    }

    /// Stores a copy for each number.
    pub(crate) fn fill(&self, numbers: Range<usize>) -> Result<(), Failure> {
        let numbers: Vec<usize> = numbers.collect();
        for batch in numbers.chunks(BATCH) {
            let items = batch.iter().map(|n| self.copy(*n)).collect();
            let imported = self
                .database
                .import_items(TABLE, items, ImportOptions::default());
            imported.map_err(failed)?;
        }
        Ok(())
    }

    /// The item under a new id.
    fn copy(&self, number: usize) -> Item {
        let new = format!("task-{number:032x}");
        let renamed = |value: &AttributeValue| match value {
            AttributeValue::S(text) => AttributeValue::S(text.replace(&self.id, &new)),
            other => other.clone(),
        };
        let members = self.item.iter();
        let members = members.map(|(name, value)| (name.clone(), renamed(value)));
        members.collect()
    }
}
