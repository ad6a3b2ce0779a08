//! The models of a run: live, recorded or replayed.

use a2a_lambda::runtime::{NoModelProvider, models_of};
use a2a_lambda::settings::{Routing, Settings};
use a2a_lambda::skill::model::Model;
use a2a_lambda::testing::{Cassette, CassetteError, ModelMeter, ModelUse};
use std::path::Path;
use std::sync::Arc;

/// The model of the skills, and the model that chooses a skill.
#[derive(Default)]
pub(super) struct Models {
    pub(super) skills: Option<ModelMeter>,
    pub(super) router: Option<ModelMeter>,
    cassettes: Vec<Arc<Cassette>>,
}

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelsError {
    /// The program does not have the provider.
    #[error(transparent)]
    Provider(#[from] NoModelProvider),
    /// There is no model to record.
    #[error("`--record` asks a model, and none is configured: set `A2A_MODEL_ID`")]
    NoModel,
    /// A cassette cannot be used, or lacks a request.
    #[error("{0} (here: run with `--record`)")]
    Cassette(#[from] CassetteError),
}

impl Models {
    /// The models of the settings; with `cassettes` recordings in this folder.
    pub(super) fn of(
        settings: &Settings,
        cassettes: Option<&Path>,
        is_recording: bool,
    ) -> Result<Self, ModelsError> {
        let mut models = Self::default();
        let Some(folder) = cassettes else {
            let live = models_of(settings)?.map(|model| model.map(ModelMeter::new));
            [models.skills, models.router] = live;
            return Ok(models);
        };
        let [skills, router] = match is_recording {
            true => models_of(settings)?,
            false => [None, None],
        };
        if is_recording && skills.is_none() {
            return Err(ModelsError::NoModel);
        }
        models.skills = Some(models.cassette(&folder.join("skills.json"), skills)?);
        if settings.routing != Routing::Never {
            models.router = Some(models.cassette(&folder.join("router.json"), router)?);
        }
        Ok(models)
    }

    /// A cassette that records `live`, or without it is replayed.
    fn cassette(
        &mut self,
        path: &Path,
        live: Option<Arc<dyn Model>>,
    ) -> Result<ModelMeter, CassetteError> {
        let cassette = Arc::new(match live {
            Some(live) => Cassette::record(path, live)?,
            None => Cassette::replay(path)?,
        });
        self.cassettes.push(Arc::clone(&cassette));
        Ok(ModelMeter::new(cassette))
    }

    /// What the models did since the last call, with the tools that skills offer alone.
    pub(super) fn take_use(&self) -> ModelUse {
        let usage = |model: Option<&ModelMeter>| model.map(ModelMeter::take).unwrap_or_default();
        let (mut usage, router) = (usage(self.skills.as_ref()), usage(self.router.as_ref()));
        usage.tokens += router.tokens;
        usage
    }

    /// Checks that each request had a recording.
    pub(super) fn finish(&self) -> Result<(), ModelsError> {
        let mut cassettes = self.cassettes.iter();
        Ok(cassettes.try_for_each(|cassette| cassette.finish())?)
    }
}
