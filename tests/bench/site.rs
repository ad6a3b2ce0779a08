//! The embedded services of programs under measurement, and what the reads find in them.

use crate::meter::Meter;
use crate::program::Program;
use crate::targets::Kind;
use crate::{Failure, events};
use a2a_lambda::store::aws::EmulatorKeys;
use a2a_lambda_tests::line::line;
use a2a_local::embedded::{BUCKET, Embedded, TABLE};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;

/// The embedded services, and the settings with which programs use them.
pub(crate) struct Site {
    embedded: Embedded,
    programs: PathBuf,
}

/// What the reads read.
#[derive(Debug)]
pub(crate) struct Known {
    /// The id of a stored task.
    pub(crate) task: String,
    /// The id of an item of the floor.
    pub(crate) item: String,
}

impl Known {
    /// What a target of this kind reads.
    pub(crate) fn of(&self, kind: Kind) -> &str {
        match kind {
            Kind::FloorGet => &self.item,
            _ => &self.task,
        }
    }
}

impl Site {
    /// Starts the services, with the table in the folder `data` or in memory.
    pub(crate) async fn open(programs: &Path, data: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            embedded: Embedded::start(data).await?,
            programs: programs.to_owned(),
        })
    }

    /// The file of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Stores what the reads read.
    pub(crate) async fn store(&self) -> Result<Known, Failure> {
        let task = self.store_task().await?;
        let mut floor = self.start("floor-dynamodb", "").await?;
        floor.call(Kind::FloorPut.event("known", "")).await?;
        let item = "known".to_owned();
        Ok(Known { task, item })
    }

    /// Stores a task, and returns its id.
    pub(crate) async fn store_task(&self) -> Result<String, Failure> {
        let mut program = self.start("tasks-send", "tasks-send").await?;
        let sent = program.call(Kind::Send.event("known", "")).await?;
        task_of(&sent.body)
    }

    /// Starts a program. `function` is what a program of all functions becomes.
    pub(crate) async fn start(&self, program: &str, function: &str) -> Result<Program, Failure> {
        let url = self.embedded.endpoints().dynamodb.clone();
        self.start_at(program, function, url.unwrap_or_default())
            .await
    }

    /// Starts a program behind a meter. The proxy of the meter ends with the tasks.
    pub(crate) async fn start_metered(
        &self,
        program: &str,
        function: &str,
    ) -> Result<(Program, Arc<Meter>, JoinSet<()>), Failure> {
        let endpoints = self.embedded.endpoints();
        let keys = endpoints.keys.clone().unwrap_or(EmulatorKeys {
            id: String::new(),
            secret: String::new(),
        });
        let meter = Arc::new(Meter::new(keys));
        let mut lines = JoinSet::new();
        let upstream = endpoints.dynamodb.clone().unwrap_or_default();
        let url = line(&upstream, &meter, &mut lines).await?;
        Ok((self.start_at(program, function, url).await?, meter, lines))
    }

    async fn start_at(
        &self,
        program: &str,
        function: &str,
        dynamodb: String,
    ) -> Result<Program, Failure> {
        let variables = self.variables(function, dynamodb);
        Program::start(&self.program(program), &variables).await
    }

    fn variables(&self, function: &str, dynamodb: String) -> Vec<(String, String)> {
        let endpoints = self.embedded.endpoints();
        let keys = endpoints.keys.as_ref();
        let id = keys.map(|keys| keys.id.clone());
        let secret = keys.map(|keys| keys.secret.clone());
        let s3 = endpoints.s3.clone();
        let fixed = [
            ("A2A_AUTH", "gateway"),
            ("A2A_FUNCTION", function),
            ("A2A_TABLE", TABLE),
            ("BENCH_TABLE", TABLE),
            ("A2A_BUCKET", BUCKET),
            ("A2A_PUBLIC_URL", events::URL),
            ("A2A_SECRET_KEY", "0123456789abcdef0123456789abcdef"),
            ("PRICES_KEY", "none"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
            ("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH", "true"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "bench"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "bench"),
        ];
        let of_this_run = [
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb),
            ("AWS_ENDPOINT_URL_S3", s3.unwrap_or_default()),
            ("AWS_ACCESS_KEY_ID", id.unwrap_or_default()),
            ("AWS_SECRET_ACCESS_KEY", secret.unwrap_or_default()),
        ];
        let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
        let all = fixed.into_iter().chain(of_this_run);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The id of the task in a response event.
pub(crate) fn task_of(response: &[u8]) -> Result<String, Failure> {
    let response: Value = serde_json::from_slice(response)?;
    let body = response["body"].as_str().unwrap_or_default();
    let sent: Value = serde_json::from_str(body)?;
    Ok(sent["task"]["id"].as_str().unwrap_or_default().to_owned())
}
