//! Counts the requests on the SDK's connections and what AWS would charge for them.
//!
//! The rules are those of DynamoDB's developer guide, "DynamoDB read and write
//! operations" and "Global secondary indexes". A write costs one unit for each
//! started KB of the larger of the item before and after, or two in a
//! transaction. Each index entry that a write adds, removes or changes costs the
//! same again; if its key changes, the old and the new entry both cost. A read
//! costs one unit for each started 4 KB, at least one, and half of it unless the
//! read is consistent.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

const KB: usize = 1024;

/// Requests and units since the last bill.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bill {
    /// Requests, by operation.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Write units of the table.
    pub(crate) writes: usize,
    /// Write units of its indexes.
    pub(crate) index_writes: usize,
    /// Half read units.
    pub(crate) half_reads: usize,
}

/// Write units of one item.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    table: usize,
    indexes: usize,
}

/// The counter of one pair of clients.
#[derive(Debug)]
pub(crate) struct Meter {
    bill: Mutex<Bill>,
    /// Calls that have begun and are not on the bill yet.
    open: watch::Sender<usize>,
    /// The size of the largest item that was written, in bytes.
    pub(crate) largest: AtomicUsize,
    /// Whether reads of the brake are counted. They depend on time alone.
    pub(crate) counts_brake: AtomicBool,
    /// Reads items without counting them. The meter cannot change the requests
    /// it sees: their signature covers the body.
    beside: Client,
    indexes: Vec<Index>,
}

/// The attributes of an index.
#[derive(Debug)]
pub(crate) struct Index {
    /// The names of its key attributes.
    pub(crate) keys: Vec<String>,
    /// The names of all its attributes.
    pub(crate) holds: Vec<String>,
}

impl Meter {
    pub(crate) fn new(indexes: Vec<Index>, beside: Client) -> Arc<Self> {
        Arc::new(Self {
            bill: Mutex::default(),
            open: watch::Sender::default(),
            largest: AtomicUsize::default(),
            counts_brake: AtomicBool::default(),
            beside,
            indexes,
        })
    }

    /// Waits until all calls that have begun are on the bill.
    pub(crate) async fn settles(&self) {
        let mut open = self.open.subscribe();
        // The sender lives as long as `self`.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// The bill since the last call.
    pub(crate) fn take(&self) -> Bill {
        std::mem::take(&mut self.bill.lock().unwrap())
    }

    /// Number of requests since the last bill.
    pub(crate) fn count(&self) -> usize {
        self.bill.lock().unwrap().requests.values().sum()
    }

    fn add(&self, operation: &str, writes: Written, half_reads: usize) {
        let mut bill = self.bill.lock().unwrap();
        *bill.requests.entry(operation.to_owned()).or_default() += 1;
        bill.writes += writes.table;
        bill.index_writes += writes.indexes;
        bill.half_reads += half_reads;
    }

    /// The write units of a change of an item; `each` is the price of a KB.
    fn written(&self, before: &Value, after: &Value, each: usize) -> Written {
        let table = size(before).max(size(after)).max(1).div_ceil(KB) * each;
        let indexes = self
            .indexes
            .iter()
            .map(|index| index.written(before, after));
        let indexes = indexes.sum();
        Written { table, indexes }
    }
}

impl Index {
    fn entry(&self, item: &Value) -> Option<Value> {
        let members = item.as_object()?;
        let all = self.keys.iter().all(|key| members.contains_key(key));
        let held = members.iter().filter(|(name, _)| self.holds.contains(name));
        all.then(|| {
            held.map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        })
    }

    fn written(&self, before: &Value, after: &Value) -> usize {
        let units = |entry: &Value| size(entry).div_ceil(KB);
        let same_key = |one: &Value, two: &Value| self.keys.iter().all(|key| one[key] == two[key]);
        match (self.entry(before), self.entry(after)) {
            (None, None) => 0,
            (Some(entry), None) | (None, Some(entry)) => units(&entry),
            (Some(one), Some(two)) if one == two => 0,
            (Some(one), Some(two)) if same_key(&one, &two) => units(&one).max(units(&two)),
            (Some(one), Some(two)) => units(&one) + units(&two),
        }
    }
}

/// The size of an item in bytes; 0 for an absent one.
pub(crate) fn size(item: &Value) -> usize {
    let members = item.as_object().into_iter().flatten();
    members.map(|(name, value)| name.len() + of(value)).sum()
}

/// The size of one typed value in bytes.
fn of(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|typed| typed.iter().next()) else {
        return 0;
    };
    let text = value.as_str().unwrap_or_default();
    match kind.as_str() {
        "S" => text.len(),
        // DynamoDB: one byte for two significant digits, and one more.
        "N" => text.trim_matches(['-', '0']).len().div_ceil(2) + 1,
        "B" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_or(0, |bytes| bytes.len()),
        // DynamoDB: three bytes for a map or list, and one for each element.
        "M" => {
            let members = value.as_object().into_iter().flatten();
            3 + members
                .map(|(name, one)| name.len() + 1 + of(one))
                .sum::<usize>()
        }
        "L" => {
            let items = value.as_array().into_iter().flatten();
            3 + items.map(|one| 1 + of(one)).sum::<usize>()
        }
        "SS" | "NS" => value.to_string().len(),
        _ => 1,
    }
}

/// A metered client or connector.
#[derive(Debug, Clone)]
pub(crate) struct Counted<T> {
    pub(crate) inner: T,
    pub(crate) meter: Arc<Meter>,
}

impl HttpClient for Counted<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Counted {
            inner: self.inner.http_connector(settings, components),
            meter: Arc::clone(&self.meter),
        })
    }
}

impl HttpConnector for Counted<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let me = self.clone();
        HttpConnectorFuture::new(async move {
            me.meter.open.send_modify(|open| *open += 1);
            let answer = match request.headers().get("x-amz-target").map(str::to_owned) {
                Some(target) => {
                    let operation = target.rsplit('.').next().unwrap().to_owned();
                    let me = me.clone();
                    // A task of its own: the calls of the meter would add their stack to that
                    // of the call which they measure.
                    let table = async move { me.table(&operation, request).await };
                    tokio::spawn(table).await.unwrap()
                }
                None => {
                    let operation = format!("{} object", request.method());
                    me.meter.add(&operation, Written::default(), 0);
                    me.inner.call(request).await
                }
            };
            me.meter.open.send_modify(|open| *open -= 1);
            answer
        })
    }
}

impl Counted<SharedHttpConnector> {
    /// Forwards a call to the table, and counts what it reads or writes.
    async fn table(
        &self,
        operation: &str,
        request: HttpRequest,
    ) -> Result<HttpResponse, ConnectorError> {
        let asked: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let is_brake = asked["Key"]["PK"]["S"] == "B#brake";
        if is_brake && !self.meter.counts_brake.load(Ordering::Relaxed) {
            return self.inner.call(request).await;
        }
        let keys: Vec<Value> = actions(operation, &asked).iter().map(key).collect();
        let mut before = Vec::new();
        for key in &keys {
            before.push(self.item(&asked, key).await);
        }
        let (response, body) = whole(self.inner.call(request).await?).await?;
        let reported: Value = serde_json::from_slice(&body).unwrap_or_default();
        // A transaction prepares and commits each item, and costs twice as much.
        let each = if operation == "TransactWriteItems" {
            2
        } else {
            1
        };
        let mut writes = Written::default();
        for (key, before) in keys.iter().zip(&before) {
            let after = self.item(&asked, key).await;
            let written = self.meter.written(before, &after, each);
            writes.table += written.table;
            writes.indexes += written.indexes;
            self.meter
                .largest
                .fetch_max(size(&after), Ordering::Relaxed);
        }
        let half_reads = if keys.is_empty() {
            read(&asked, &reported)
        } else {
            0
        };
        self.meter.add(operation, writes, half_reads);
        Ok(response)
    }

    /// Reads an item without counting it.
    async fn item(&self, asked: &Value, key: &Value) -> Value {
        let table = match &asked["TransactItems"][0] {
            Value::Object(action) => action.values().next().unwrap()["TableName"].clone(),
            _ => asked["TableName"].clone(),
        };
        let text = |name: &str| AttributeValue::S(key[name]["S"].as_str().unwrap().to_owned());
        let get = self.meter.beside.get_item();
        let get = get
            .table_name(table.as_str().unwrap())
            .consistent_read(true);
        let get = get.key("PK", text("PK")).key("SK", text("SK"));
        let found = get.send().await.unwrap().item;
        found.map_or(Value::Null, |item| members(&item))
    }
}

fn members(item: &HashMap<String, AttributeValue>) -> Value {
    let typed = item
        .iter()
        .map(|(name, value)| (name.clone(), typed(value)));
    Value::Object(typed.collect())
}

/// A value in the JSON of DynamoDB.
fn typed(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::B(bytes) => {
            json!({"B": base64::engine::general_purpose::STANDARD.encode(bytes)})
        }
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        AttributeValue::M(map) => json!({"M": members(map)}),
        AttributeValue::L(list) => json!({"L": list.iter().map(typed).collect::<Vec<_>>()}),
        AttributeValue::Ss(texts) => json!({"SS": texts}),
        AttributeValue::Ns(numbers) => json!({"NS": numbers}),
        _ => json!({"NULL": true}),
    }
}

/// A response, and the bytes of its body.
async fn whole(mut response: HttpResponse) -> Result<(HttpResponse, Vec<u8>), ConnectorError> {
    let body = std::mem::replace(response.body_mut(), SdkBody::empty());
    let bytes = ByteStream::new(body).collect().await;
    let bytes = bytes
        .map_err(|error| ConnectorError::io(error.into()))?
        .to_vec();
    *response.body_mut() = SdkBody::from(bytes.clone());
    Ok((response, bytes))
}

/// The writes of a request.
fn actions(operation: &str, asked: &Value) -> Vec<Value> {
    match operation {
        "PutItem" | "UpdateItem" | "DeleteItem" => vec![asked.clone()],
        "TransactWriteItems" => {
            let actions = asked["TransactItems"].as_array().into_iter().flatten();
            actions
                .flat_map(|action| action.as_object().unwrap().values().cloned())
                .collect()
        }
        _ => Vec::new(),
    }
}

fn key(action: &Value) -> Value {
    match &action["Key"] {
        Value::Null => json!({"PK": action["Item"]["PK"], "SK": action["Item"]["SK"]}),
        key => key.clone(),
    }
}

/// The half read units of a request with this response.
fn read(asked: &Value, reported: &Value) -> usize {
    let each = if asked["ConsistentRead"] == true {
        2
    } else {
        1
    };
    if let Some(tables) = asked["RequestItems"].as_object() {
        let of_table =
            |(name, asked): (&String, &Value)| in_batch(asked, &reported["Responses"][name]);
        return tables.iter().map(of_table).sum();
    }
    let items = reported["Items"].as_array().into_iter().flatten();
    let bytes = size(&reported["Item"]) + items.map(size).sum::<usize>();
    bytes.div_ceil(4 * KB).max(1) * each
}

/// The same for the keys of one table in a batch. Each key is a read of its own,
/// and costs even if there is no item.
fn in_batch(asked: &Value, reported: &Value) -> usize {
    let each = if asked["ConsistentRead"] == true {
        2
    } else {
        1
    };
    let units = |item: &Value| size(item).div_ceil(4 * KB).max(1) * each;
    let found = reported.as_array().map_or(0, Vec::len);
    let absent = asked["Keys"].as_array().map_or(0, Vec::len) - found;
    let items = reported.as_array().into_iter().flatten();
    items.map(units).sum::<usize>() + absent * each
}
