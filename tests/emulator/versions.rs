//! A bucket with versions: an erasure removes them too.
//! The embedded S3 keeps no versions, so some tests reply in its place.

use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::{S3Blobs, create_bucket};
use a2a_lambda::task::{Message, Owner, Part, TaskId, TaskRecord, TenantId};
use a2a_lambda_admin::{Deployment, EraseTenant};
use a2a_lambda_tests::emulator::{Emulator, outside, run};
use a2a_lambda_tests::faulty::{Fault, FaultyLine};
use a2a_local::embedded::{BUCKET, LocalFolders, TABLE};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use std::sync::{Arc, Mutex};

/// A table beside a bucket that keeps versions, and the endpoint of both.
struct Versioned {
    emulator: Emulator,
    records: Records,
    blobs: S3Blobs,
    deployment: Deployment,
    sample: SampleData,
}

impl Versioned {
    async fn at(url: String) -> Self {
        let emulator = Emulator::start().await.unwrap();
        let bucket = format!("a2a-lambda-versions-{:x}", run() >> 32);
        let s3 = emulator.clients.s3.clone();
        create_bucket(&s3, &bucket).await.unwrap();
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled);
        let put = s3.put_bucket_versioning().bucket(&bucket);
        put.versioning_configuration(enabled.build())
            .send()
            .await
            .unwrap();
        let blobs = S3Blobs::new(s3, &bucket);
        let records = dynamodb::records(emulator.clients.dynamodb.clone(), TABLE);
        Self {
            records: records.with_blobs(Arc::new(blobs.clone())),
            blobs,
            deployment: Deployment {
                table: Some(TABLE.to_owned()),
                bucket: Some(bucket),
                endpoint: Some(url),
                s3_endpoint: None,
            },
            sample: SampleData::new(run(), "versions").unwrap(),
            emulator,
        }
    }

    /// A task of `owner` with an S3 object for its message.
    async fn large(&self, owner: &Owner) -> TaskRecord {
        let said = Message::from_user("m-1", vec![Part::text(noise(1, 300 * 1024))]);
        let id = TaskId::made_of(self.sample.number());
        let task = self.sample.task_saying(owner, id, said).unwrap();
        let write = self.sample.create(&task);
        self.records.commit(&write).await.unwrap();
        write.record
    }

    async fn names(&self, owner: &Owner) -> usize {
        let below = format!("v1/{}/", owner.tenant.folder());
        self.blobs.keys(&below, None, 1000).await.unwrap().len()
    }

    /// The number of versions and delete markers of an owner's tenant.
    async fn versions(&self, owner: &Owner) -> usize {
        self.versions_below(&owner.tenant.folder()).await
    }

    /// The number of versions and delete markers in a folder.
    async fn versions_below(&self, folder: &str) -> usize {
        let bucket = self.deployment.bucket.clone().unwrap();
        let list = self.emulator.clients.s3.list_object_versions();
        let below = format!("v1/{folder}/");
        let found = list.bucket(bucket).prefix(below).send().await.unwrap();
        found.versions().len() + found.delete_markers().len()
    }

    async fn erase(&self, owner: &Owner, subject: Option<&str>) {
        let options = EraseTenant {
            subject: subject.map(str::to_owned),
            tenant: owner.tenant.to_string(),
            yes: true,
            dry_run: false,
            data: None,
            deployment: self.deployment.clone(),
        };
        options.run(&LocalFolders::default()).await.unwrap();
    }
}

#[tokio::test]
async fn an_erasure_keeps_no_version() {
    let Some(url) = outside() else {
        println!("SKIPPED: the embedded S3 keeps no versions");
        return;
    };
    let case = Versioned::at(url).await;
    let [other, colleague] = [&case.sample.stranger, &case.sample.colleague];
    case.large(other).await;
    let forgotten = case.large(colleague).await;
    case.erase(other, None).await;
    let subject = colleague.subject.as_str();
    case.erase(colleague, Some(subject)).await;
    assert_eq!(
        (case.names(other).await, case.versions(other).await),
        (0, 0)
    );
    let folder = forgotten.key().folder();
    assert_eq!(case.versions_below(&folder).await, 0, "nor of a subject");
}

/// The requests of a client: the URI and the body of each.
#[derive(Debug, Clone, Default)]
struct Requests(Arc<Mutex<Vec<(String, String)>>>);

impl Intercept for Requests {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let body = request.body().bytes().unwrap_or_default();
        let body = String::from_utf8_lossy(body).into_owned();
        let uri = request.uri().to_owned();
        self.0.lock().unwrap().push((uri, body));
        Ok(())
    }
}

impl Requests {
    /// The URIs.
    fn uris(&self) -> Vec<String> {
        let requests = self.0.lock().unwrap();
        requests.iter().map(|(uri, _)| uri.clone()).collect()
    }

    /// The ids of the versions that the requests remove.
    fn removed(&self) -> Vec<String> {
        let mut removed = Vec::new();
        for (_, body) in self.0.lock().unwrap().iter() {
            let ids = body.split("<VersionId>").skip(1);
            let ids = ids.filter_map(|rest| rest.split_once("</VersionId>"));
            removed.extend(ids.map(|(id, _)| id.to_owned()));
        }
        removed
    }
}

/// A bucket that replies as planned.
struct PlannedBucket {
    _emulator: Emulator,
    line: FaultyLine,
    blobs: S3Blobs,
    requests: Requests,
}

impl PlannedBucket {
    async fn new(replies: &[Fault]) -> Self {
        let emulator = Emulator::start().await.unwrap();
        let line = FaultyLine::to(emulator.s3).await.unwrap();
        line.spoil(replies);
        let requests = Requests::default();
        let config = emulator.clients.s3.config().to_builder();
        let config = config.endpoint_url(line.url()).force_path_style(true);
        let config = config.interceptor(requests.clone()).build();
        Self {
            _emulator: emulator,
            line,
            blobs: S3Blobs::new(aws_sdk_s3::Client::from_conf(config), BUCKET),
            requests,
        }
    }
}

/// A reply with this content.
fn reply(content: &str) -> Fault {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/xml\r\n\r\n";
    Fault::Answer(format!("{head}{content}").leak())
}

/// A page of a list of versions. If there is another page, it begins at `k-1` and `m-1`.
fn page(more: bool, entries: &[String]) -> Fault {
    let next = match more {
        true => "<NextKeyMarker>k-1</NextKeyMarker><NextVersionIdMarker>m-1</NextVersionIdMarker>",
        false => "",
    };
    let entries = entries.concat();
    reply(&format!(
        "<ListVersionsResult><IsTruncated>{more}</IsTruncated>{next}{entries}</ListVersionsResult>"
    ))
}

/// A version or a delete marker.
fn entry(kind: &str, id: &str) -> String {
    format!("<{kind}><Key>v1/x</Key><VersionId>{id}</VersionId></{kind}>")
}

#[tokio::test]
async fn a_purge_removes_versions_and_delete_markers_of_every_page() {
    let tasks = page(true, &[entry("Version", "old")]);
    let more = page(false, &[entry("DeleteMarker", "mark")]);
    let uploads = page(false, &[entry("Version", "sent")]);
    let removed = reply("<DeleteResult></DeleteResult>");
    let bucket = PlannedBucket::new(&[tasks, removed, more, removed, uploads, removed]).await;
    let tenant = TenantId::parse("acme").unwrap();
    let purged = bucket.blobs.purge_tenant(&tenant).await;
    assert_eq!(purged.unwrap(), 3);
    assert!(bucket.line.spent());
    assert_eq!(bucket.requests.removed(), ["old", "mark", "sent"]);
    let uris = bucket.requests.uris();
    assert!(uris[0].contains("prefix=v1"), "{uris:?}");
    for marker in ["key-marker=k-1", "version-id-marker=m-1"] {
        assert!(uris[2].contains(marker), "{uris:?}");
    }
    assert!(uris[4].contains("prefix=up"), "{uris:?}");
}
