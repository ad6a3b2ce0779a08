//! The models of a run: live, recorded or replayed.

use super::{Eval, EvalError};
use crate::cli::RunError;
use a2a_lambda::runtime::model_of;
use a2a_lambda::settings::{ModelSettings, Routing, Settings};
use a2a_lambda::testing::{Cassette, CassetteError, ModelMeter, ModelUse};
use std::sync::Arc;

/// The model of the skills, and the model that chooses a skill.
#[derive(Default)]
pub(super) struct Models {
    pub(super) skills: Option<ModelMeter>,
    pub(super) router: Option<ModelMeter>,
    cassettes: Vec<Arc<Cassette>>,
}

impl Models {
    /// The models of the settings, or those of `--cassettes`.
    pub(super) fn of(settings: &Settings, options: &Eval) -> Result<Self, RunError> {
        let mut models = Self::default();
        let model = settings.model.as_ref();
        models.skills = models.model(options, "skills.json", model)?;
        if settings.routing != Routing::Never {
            let model = model.map(ModelSettings::of_router);
            models.router = models.model(options, "router.json", model.as_ref())?;
        }
        Ok(models)
    }

    /// One model; `file` is its cassette.
    fn model(
        &mut self,
        options: &Eval,
        file: &str,
        settings: Option<&ModelSettings>,
    ) -> Result<Option<ModelMeter>, RunError> {
        let live = || settings.map(model_of).transpose();
        let Some(folder) = &options.cassettes else {
            return Ok(live()?.map(ModelMeter::new));
        };
        let path = folder.join(file);
        let cassette = Arc::new(match options.record {
            true => Cassette::record(path, live()?.ok_or(EvalError::NoModel)?)?,
            false => Cassette::replay(path).map_err(EvalError::Cassette)?,
        });
        self.cassettes.push(Arc::clone(&cassette));
        Ok(Some(ModelMeter::new(cassette)))
    }

    /// What the models did since the last call, with the tools that skills offer alone.
    pub(super) fn take_use(&self) -> ModelUse {
        let usage = |model: Option<&ModelMeter>| model.map(ModelMeter::take).unwrap_or_default();
        let (mut usage, router) = (usage(self.skills.as_ref()), usage(self.router.as_ref()));
        usage.tokens += router.tokens;
        usage
    }

    /// Checks that each request had a recording.
    pub(super) fn finish(&self) -> Result<(), CassetteError> {
        let mut cassettes = self.cassettes.iter();
        cassettes.try_for_each(|cassette| cassette.finish())
    }
}
