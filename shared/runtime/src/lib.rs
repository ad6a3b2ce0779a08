//! A serverless runtime for A2A (Agent2Agent protocol) agents on AWS Lambda.
//!
//! An author writes skills as typed functions or types. The runtime makes them an A2A
//! endpoint for clients of A2A 1.0, 0.3 and 0.1: durable tasks, questions that wait for
//! their answer, live streams, artifacts and webhooks. Tasks are in DynamoDB, large files
//! in S3. Nothing runs between calls. The same code runs in one process on one machine,
//! with its stores in memory.
//!
//! # A skill and its test
//!
//! The documentation comment of a skill is its description on the agent card. The value
//! that it returns ends the task: a value completes it, an error fails it.
//!
//! ```
//! use a2a_lambda::prelude::*;
//! use a2a_lambda::testing::{SkillTest, SkillTestError};
//!
//! /// Greets a person by name.
//! #[skill(id = "greet", tags = ["example"], examples = ["Ann"])]
//! async fn greet(name: String) -> AgentResult<String> {
//!     if name.len() > 40 {
//!         return Err(AgentError::domain("LONG_NAME", "a name has at most 40 bytes"));
//!     }
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! fn agent() -> Result<AgentDefinition, BuildError> {
//!     Agent::builder("greeter").description("Greets people.").skill(greet).build()
//! }
//!
//! /// The test runs on the real engine, without a server and without AWS.
//! async fn a_person_is_greeted_by_name(agent: &AgentDefinition) -> Result<(), SkillTestError> {
//!     let mut client = SkillTest::new(agent, "greet");
//!     let greeted = client.send("Ann").await?;
//!     assert_eq!(greeted.artifact_text("greet").as_deref(), Some("Hello, Ann!"));
//!     let failed = client.send("A".repeat(41)).await?;
//!     assert_eq!(failed.error_code(), Some("LONG_NAME"));
//!     Ok(())
//! }
//! #
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     a_person_is_greeted_by_name(&agent()?).await?;
//! #     Ok(())
//! # }
//! ```
//!
//! # Where to start
//!
//! - **To write skills:** the guide, `docs/guide/README.md` of the repository, begins with an
//!   empty folder. [`prelude`] has the names that a file with skills imports,
//!   [`skill`](mod@skill) the API, [`SkillTest`] the client for tests and
//!   [`testing::check_agent`] a check of the whole agent.
//! - **To deploy an agent:** the `main` of each Lambda function is one call of [`serve`]
//!   with the agent. [`settings`] reads its environment. `docs/operations.md` lists the
//!   settings, the parameters of the stack, the alarms, the costs and the errors.
//! - **To serve it elsewhere:** [`runtime::Runtime`] joins an agent with its stores, and
//!   [`http::HttpService`] answers requests in any server. The example `own_server` does it.
//! - **To write a store:** implement [`store::table::Table`] and [`store::Blobs`]. All that is
//!   stored is written over these two. The module `store::contract` has the tests that every
//!   table passes. The example `custom_store` puts a table in front of another.
//!
//! # Modules
//!
//! For authors and operators:
//!
//! - [`prelude`]: the names that a file with skills imports
//! - [`skill`](mod@skill): agents, skills, and the context that a handler gets
//! - [`testing`]: runs the skills of an agent in tests
//! - [`serve`]: the entry point of each Lambda function
//! - [`settings`]: every environment variable, parsed once
//! - [`secrets`]: what skills keep from clients, such as keys of other services
//! - [`runtime`]: joins an agent, its settings and its stores
//! - [`llm`]: typed calls of a language model, and its providers
//! - [`outbound`]: requests to addresses that clients name, for webhooks and for skills
//!
//! The way of a request, from the edge to the table:
//!
//! - [`http`]: a request in, a response out, never an error
//! - [`origin`]: the base URL, the hosts, and the pages that may call
//! - [`auth`]: the caller, from the authorizer, an API key, a JWT or a development token
//! - [`protocol`]: the types of the agent card; the crate `a2a-lambda-wire` has the wire
//!   formats of the three generations, as pure values
//! - [`engine`]: the operations on tasks, and the only writer of tasks
//! - [`task`]: the types of a task, its state machine and its record, as pure values
//! - [`thread`]: the messages of a context
//! - [`store`]: the storage traits, and stores in memory and on AWS
//! - [`telemetry`]: logs, what they must not contain, and metrics
//! - [`health`]: whether the dependencies of an agent work
//!
//! Other crates hold what this one re-exports: `a2a-lambda-model` has `task`, `thread`, the
//! stored form and the storage traits, `a2a-lambda-wire` the wire formats, `a2a-lambda-store`
//! what is stored over a table, `a2a-lambda-skill` the API of skills, `a2a-lambda-llm` calls of
//! a model, `a2a-lambda-aws` the table, the bytes and the queues on AWS.
//! An author depends on `a2a-lambda` alone.
//!
//! # Features
//!
//! | Feature | Default | Adds |
//! |---|---|---|
//! | `aws` | yes | the table on DynamoDB, the bytes on S3 and the queues on SQS, through the AWS SDKs |
//! | `fetch` | with `aws` | the client of [`outbound::Fetcher`], for requests to other services; tests need no client |
//! | `lambda` | yes | [`serve`]; all functions but the one for the card also need `aws` |
//! | `turns` | yes | runs skills; a function for the card, reads or the sweep does without, and has none of their code |
//! | `jwt` | no | callers with a JWT |
//! | `secrets` | no | secrets from Secrets Manager; with `jwt` and `lambda` the entry point of the authorizer |
//! | `bedrock` | no | models of Amazon Bedrock, through the AWS SDK |
//! | `openai` | no | models behind the API of OpenAI: OpenAI, Bedrock, vLLM, Ollama, LiteLLM |
//! | `contract-tests` | no | the store contract, for the tests of a store |
//! | `fuzz` | no | what the fuzz targets of the repository run |
//!
//! Without features the crate links neither the AWS SDKs nor the Lambda runtime.

// `#[skill]` writes paths from `::a2a_lambda`; the tests of this crate use it.
#[cfg(test)]
extern crate self as a2a_lambda;

/// Shows the name of a type and one of its fields at most: the others may hold secrets.
macro_rules! debug_as_name {
    ($($type:ident $({ $field:ident })?)+) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))?
                    .finish_non_exhaustive()
            }
        }
    )+};
}

pub mod auth;
mod clock;
pub mod engine;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
pub mod health;
pub mod http;
pub mod origin;
pub mod outbound;
pub mod panics;
pub mod runtime;
pub mod secrets;
#[cfg(feature = "lambda")]
pub mod serve;
pub mod settings;
pub mod store;
pub mod telemetry;
pub mod testing;

pub use a2a_lambda_macros::skill;
pub use a2a_lambda_model::{task, thread};
#[cfg(feature = "contract-tests")]
pub use a2a_lambda_store::{store_contract_cases, table_contract_cases};

#[doc(inline)]
pub use a2a_lambda_llm as llm;
#[doc(inline)]
pub use a2a_lambda_skill::prelude;

/// The API of skill authors.
pub mod skill {
    #[doc(inline)]
    pub use a2a_lambda_skill::{
        Agent, AgentBuildError, AgentBuilder, AgentDefinition, AgentError, AgentManifest,
        AgentResult, Artifact, ArtifactChunks, Asked, AuthHint, BuildAgent, BuildError, Collection,
        Content, Document, DocumentVersion, ErrorCode, FileContent, FilePart, FileReader,
        FileSource, FinishedTask, Hybrid, HybridReply, HybridSkill, InputWriter, IntoReply,
        NeededState, NoOutput, NoSlot, OnInputResult, OnRequestResult, OpenFile, RecordTrace,
        ReferencedTask, Saying, SessionAdapter, SessionContext, SetExport, Skill, SkillEffect,
        SkillHandler, SkillInput, SkillManifest, SkillMetadata, SkillOutput, SkillReturn, SkillSet,
        SkillSlot, State, StateError, TaskContext, TenantDocuments, TextOr, Thread, Tool, TraceRow,
        is_invisible, is_media_type, model,
    };
}

/// The types of the agent card. The crate `a2a-lambda-wire` has the wire formats.
pub mod protocol {
    pub use a2a_lambda_wire::{
        Capabilities, CardDocument, CardError, CardInfo, CardShape, CardSignature, EXTENSIONS,
        Extension, SecurityScheme, SignatureError, SkillInfo, Unsigned,
    };
}
pub use testing::SkillTest;
