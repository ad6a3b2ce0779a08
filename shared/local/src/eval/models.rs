//! The models of a run: live, recorded or replayed, with what the row that runs has used.

use super::{Eval, EvalError};
use a2a_lambda::runtime::model_of;
use a2a_lambda::settings::{ModelSettings, Routing, Settings};
use a2a_lambda::skill::AgentResult;
use a2a_lambda::skill::model::{Delta, Model, ModelContent, ModelReply, ModelRequest, Usage};
use a2a_lambda::testing::Cassette;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What models did for a row.
#[derive(Debug, Default)]
pub(super) struct ModelUse {
    /// Tokens of requests and answers.
    pub(super) tokens: u64,
    /// The tools that they called, in order.
    pub(super) tools: Vec<String>,
}

/// The model of the skills, and the model that chooses a skill.
pub(super) struct Models {
    pub(super) skills: Option<Arc<Counted>>,
    pub(super) router: Option<Arc<Counted>>,
    cassettes: Vec<Arc<Cassette>>,
    usage: Arc<Mutex<ModelUse>>,
}

impl Models {
    /// The models of the settings, or those of `--cassettes`.
    pub(super) fn of(settings: &Settings, options: &Eval) -> Result<Self, EvalError> {
        let mut models = Self {
            skills: None,
            router: None,
            cassettes: Vec::new(),
            usage: Arc::default(),
        };
        let model = settings.model.as_ref();
        models.skills = models.counted(options, "skills.json", model.cloned())?;
        if settings.routing != Routing::Never {
            let model = model.map(ModelSettings::of_router);
            models.router = models.counted(options, "router.json", model)?;
        }
        Ok(models)
    }

    /// One model; `file` is its cassette.
    fn counted(
        &mut self,
        options: &Eval,
        file: &str,
        settings: Option<ModelSettings>,
    ) -> Result<Option<Arc<Counted>>, EvalError> {
        let path = options.cassettes.as_ref().map(|folder| folder.join(file));
        let live = match (&path, options.record, &settings) {
            (Some(_), false, _) | (None, _, None) => None,
            (Some(_), true, None) => return Err(EvalError::NoModel),
            (_, _, Some(settings)) => Some(model_of(settings)?),
        };
        let Some(path) = path else {
            return Ok(live.map(|model| self.counting(model)));
        };
        let cassette = match live {
            Some(live) => {
                let cassette = Cassette::record(&path, live)?;
                // A model that is never asked has a cassette too.
                if !path.exists() {
                    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
                    folder.and_then(|()| fs::write(&path, "[]\n"))?;
                }
                cassette
            }
            None => Cassette::replay(&path)?,
        };
        let cassette = Arc::new(cassette);
        self.cassettes.push(Arc::clone(&cassette));
        Ok(Some(self.counting(cassette)))
    }

    fn counting(&self, model: Arc<dyn Model>) -> Arc<Counted> {
        let usage = Arc::clone(&self.usage);
        Arc::new(Counted { model, usage })
    }

    /// What the models did since the last call.
    pub(super) fn take_use(&self) -> ModelUse {
        std::mem::take(&mut lock(&self.usage))
    }

    /// Checks that each request had a recording.
    pub(super) fn finish(&self) -> Result<(), EvalError> {
        let mut cassettes = self.cassettes.iter();
        Ok(cassettes.try_for_each(|cassette| cassette.finish())?)
    }
}

/// A model whose tokens and tool calls are counted.
pub(super) struct Counted {
    model: Arc<dyn Model>,
    usage: Arc<Mutex<ModelUse>>,
}

impl Counted {
    fn add_tool(&self, name: &str) {
        lock(&self.usage).tools.push(name.to_owned());
    }

    fn add_tokens(&self, usage: Usage) {
        lock(&self.usage).tokens += usage.input_tokens + usage.output_tokens;
    }
}

fn lock(usage: &Mutex<ModelUse>) -> MutexGuard<'_, ModelUse> {
    usage.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model for Counted {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        Box::pin(async move {
            let reply = self.model.converse(request).await?;
            for content in &reply.content {
                if let ModelContent::ToolUse { name, .. } = content {
                    self.add_tool(name);
                }
            }
            self.add_tokens(reply.usage);
            Ok(reply)
        })
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        Box::pin(async move {
            let deltas = self.model.converse_stream(request).await?;
            let deltas = deltas.inspect(|delta| match delta {
                Ok(Delta::ToolUse { name, .. }) => self.add_tool(name),
                Ok(Delta::Stop { usage, .. }) => self.add_tokens(*usage),
                _ => {}
            });
            Ok(deltas.boxed())
        })
    }
}
