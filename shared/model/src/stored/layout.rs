//! The stored form of a task's layout.

use super::schema::corrupt;
use crate::store::StoreError;
use crate::task::{
    ChildLifetime, Layout as Places, MovedEvents, MovedSize, MovedValue, Segment, StoredValue,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Segments.
type Pairs = Vec<StoredSegment>;

/// The version of a commit and a number of items; and the batch of events that has them.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSegment {
    InBatch(u64, usize, u64),
    Own(u64, usize),
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Events: last number, first number of the last batch, version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<(u64, u64, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    h: Pairs,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    a: BTreeMap<String, Pairs>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    r: BTreeMap<String, Pairs>,
    /// Values by name: version, SHA-256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    d: BTreeMap<String, (u64, String)>,
    /// Bytes moved: in total, before the last commit that moved some, and the version
    /// of that commit.
    #[serde(default)]
    b: (u64, u64, u64),
    /// How long the children stay: until when, version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    k: Option<(i64, u64)>,
}

impl Layout {
    pub(super) fn is_default(&self) -> bool {
        self.e.is_none()
            && self.h.is_empty()
            && self.a.is_empty()
            && self.r.is_empty()
            && self.d.is_empty()
            && self.b == (0, 0, 0)
            && self.k.is_none()
    }
}

fn pairs(segments: &[Segment]) -> Pairs {
    let stored = |it: &Segment| match it.batch {
        Some(batch) => StoredSegment::InBatch(it.version, it.items, batch),
        None => StoredSegment::Own(it.version, it.items),
    };
    segments.iter().map(stored).collect()
}

fn by_id(lists: &BTreeMap<String, Vec<Segment>>) -> BTreeMap<String, Pairs> {
    let pairs = |(id, segments): (&String, &Vec<Segment>)| (id.clone(), pairs(segments));
    lists.iter().map(pairs).collect()
}

fn segments(pairs: Pairs) -> Vec<Segment> {
    let segment = |stored| match stored {
        StoredSegment::InBatch(version, items, batch) => Segment {
            version,
            items,
            batch: Some(batch),
        },
        StoredSegment::Own(version, items) => Segment {
            version,
            items,
            batch: None,
        },
    };
    pairs.into_iter().map(segment).collect()
}

fn of_id(lists: BTreeMap<String, Pairs>) -> BTreeMap<String, Vec<Segment>> {
    let segments = |(id, pairs)| (id, segments(pairs));
    lists.into_iter().map(segments).collect()
}

impl From<&Places> for Layout {
    fn from(places: &Places) -> Self {
        let doc = |(doc, apart): (&StoredValue, &MovedValue)| {
            let apart = (apart.version, apart.sha256.clone());
            (doc.name().to_owned(), apart)
        };
        Self {
            e: places.events.map(|it| (it.upto, it.from, it.version)),
            h: pairs(&places.history),
            a: by_id(&places.artifacts),
            r: by_id(&places.replaced),
            d: places.docs.iter().map(doc).collect(),
            b: (
                places.volume.bytes,
                places.volume.before,
                places.volume.version,
            ),
            k: places.kept.map(|it| (it.until.as_millis(), it.version)),
        }
    }
}

impl Layout {
    pub(super) fn into_layout(self) -> Result<Places, StoreError> {
        let doc = |(name, (version, sha256)): (String, (u64, String))| {
            let known = StoredValue::ALL.into_iter().find(|doc| doc.name() == name);
            let doc = known.ok_or_else(|| corrupt(format_args!("unknown value `{name}`")))?;
            Ok((doc, MovedValue { version, sha256 }))
        };
        Ok(Places {
            events: self.e.map(|(upto, from, version)| MovedEvents {
                upto,
                from,
                version,
            }),
            history: segments(self.h),
            artifacts: of_id(self.a),
            replaced: of_id(self.r),
            docs: self
                .d
                .into_iter()
                .map(doc)
                .collect::<Result<_, StoreError>>()?,
            volume: MovedSize {
                bytes: self.b.0,
                before: self.b.1,
                version: self.b.2,
            },
            kept: self.k.map(|(until, version)| ChildLifetime {
                until: Timestamp::from_millis(until),
                version,
            }),
        })
    }
}
