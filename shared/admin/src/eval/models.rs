//! The models of a run: live, recorded or replayed.

use crate::output::CommandError;
use a2a_lambda::runtime::models_of;
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

impl Models {
    /// The models of the settings; with `cassettes` recordings in this folder.
    ///
    /// # Errors
    /// When the program lacks a provider, a cassette cannot be used, or there is no model to record.
    pub(super) fn of(
        settings: &Settings,
        cassettes: Option<&Path>,
        is_recording: bool,
    ) -> Result<Self, CommandError> {
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
            return Err(
                "`--record` asks a model, and none is configured: set `A2A_MODEL_ID`".into(),
            );
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
    ) -> Result<ModelMeter, CommandError> {
        let cassette = match live {
            Some(live) => Cassette::record(path, live),
            None => Cassette::replay(path),
        };
        let cassette = Arc::new(cassette.map_err(|error| hinting(&error))?);
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
    pub(super) fn finish(&self) -> Result<(), CommandError> {
        let mut cassettes = self.cassettes.iter();
        let result = cassettes.try_for_each(|cassette| cassette.finish());
        Ok(result.map_err(|error| hinting(&error))?)
    }
}

fn hinting(error: &CassetteError) -> String {
    format!("{error} (here: run with `--record`)")
}
