//! Builds an agent from its skills, and makes the manifest it publishes.
//!
//! - here: the builder with its errors, and the agent that it builds
//! - `manifest`: what an agent publishes about itself and its skills

mod manifest;

pub use manifest::{AgentManifest, SkillManifest};

use manifest::RegisteredSkill;

use super::RUNS_TURNS;
use super::erased::{AnySkill, ErasedSkill};
use super::export::{Exporting, SetExport, TenantDocuments};
use super::media;
use super::route::TextPattern;
use super::session::SessionAdapter;
use super::state::{NeededState, StateError, States};
use super::tool::Tool;
use super::{SkillHandler, SkillMetadata, SkillSlot, is_media_type};
use a2a_lambda_model::task::{BuildId, Part, SkillId};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

/// The entry point for building an [`AgentDefinition`].
#[derive(Debug, Clone, Copy)]
pub struct Agent;

impl Agent {
    /// Starts building an agent.
    ///
    /// ```
    /// use a2a_lambda::prelude::*;
    ///
    /// /// Says back what you said.
    /// #[skill(id = "echo", tags = ["test"])]
    /// async fn echo(input: Content) -> AgentResult<Content> {
    ///     Ok(Content::from_text(input.text()?))
    /// }
    ///
    /// let agent = Agent::builder("parrot")
    ///     .version("1.0.0")
    ///     .description("Repeats things.")
    ///     .skill(echo)
    ///     .build()?;
    /// assert_eq!(agent.manifest().skills.len(), 1);
    /// # Ok::<(), BuildError>(())
    /// ```
    #[must_use]
    pub fn builder(id: impl Into<String>) -> AgentBuilder {
        let id = id.into();
        AgentBuilder {
            agent: AgentDefinition {
                manifest: Arc::new(AgentManifest {
                    name: id.clone(),
                    id,
                    version: "0.1.0".to_owned(),
                    ..AgentManifest::default()
                }),
                build_id: None,
                answers_by_context: false,
                states: States::default(),
                kept_in_table: Vec::new(),
                exports: Vec::new(),
            },
            description: None,
            skills: Vec::new(),
            adapter: None,
        }
    }
}

/// Why an agent cannot be built or started: an error of the library or of its author.
pub type AgentBuildError = Box<dyn Error + Send + Sync>;

/// Builds the agent of a program: any function without arguments whose result is an
/// [`AgentDefinition`] or an error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not build an agent",
    note = "pass a function without arguments that returns `Result<AgentDefinition, _>`"
)]
pub trait BuildAgent {
    /// Builds the agent.
    ///
    /// # Errors
    /// The error of the function.
    fn build(self) -> Result<AgentDefinition, AgentBuildError>;
}

impl<F, E> BuildAgent for F
where
    F: FnOnce() -> Result<AgentDefinition, E>,
    E: Into<AgentBuildError>,
{
    fn build(self) -> Result<AgentDefinition, AgentBuildError> {
        self().map_err(Into::into)
    }
}

/// Skills that belong together; they usually share a store. A caller may name the set
/// together with one of its skills (`{"skill": set, "tool": id, "params": …}`).
#[derive(Debug)]
pub struct SkillSet {
    id: String,
    skills: Vec<AddedSkill>,
    adapter: Option<Arc<dyn SessionAdapter>>,
    kept_in_table: Vec<String>,
    export: Option<SetExport>,
    states: States,
}

impl SkillSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            skills: Vec::new(),
            adapter: None,
            kept_in_table: Vec::new(),
            export: None,
            states: States::default(),
        }
    }

    /// Sets what finds the [`SessionContext`](super::SessionContext) of a conversation that
    /// begins with a skill of the set, in place of the adapter of the agent.
    #[must_use]
    pub fn session_context(mut self, adapter: impl SessionAdapter) -> Self {
        self.adapter = used(adapter);
        self
    }

    /// Adds a skill.
    #[must_use]
    pub fn skill<S: SkillSlot, H: SkillHandler<S>>(mut self, handler: H) -> Self {
        self.skills.push(AddedSkill::new(handler));
        self
    }

    /// Adds a [`State`](super::State) of the set. One of the same type that the agent has is used
    /// in its place.
    #[must_use]
    pub fn state_value<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.add_value(value);
        self
    }

    /// Names a part of the agent that lives in the documents of the set, as
    /// [`AgentBuilder::keeps`] does.
    #[must_use]
    pub fn keeps(mut self, name: impl Into<String>) -> Self {
        self.kept_in_table.push(name.into());
        self
    }

    /// Sets what writes the documents of a tenant into a folder. The local program of an agent
    /// with the set has the command `SET export --tenant T DIR`. `about` is its help; `write`
    /// returns what to print.
    ///
    /// ```
    /// use a2a_lambda::skill::SkillSet;
    ///
    /// let set = SkillSet::new("notes").export("Writes the notes.", |documents, folder| {
    ///     Box::pin(async move {
    ///         let notes = documents.documents("notes").map_err(|error| error.to_string())?;
    ///         let newest = notes.get::<String>("newest").await.map_err(|error| error.to_string())?;
    ///         std::fs::write(folder.join("newest.txt"), newest.map_or_else(String::new, |it| it.value))?;
    ///         Ok("wrote newest.txt".to_owned())
    ///     })
    /// });
    /// # let _ = set;
    /// ```
    #[must_use]
    pub fn export<F>(mut self, about: &'static str, write: F) -> Self
    where
        F: for<'a> Fn(&'a TenantDocuments, &'a Path) -> Exporting<'a> + Send + Sync + 'static,
    {
        self.export = SetExport::new(about, write);
        self
    }

    /// The skills of the set as tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.skills.iter().map(|it| Tool::of(&it.skill)).collect()
    }
}

/// The adapter, if this build runs skills.
fn used(adapter: impl SessionAdapter) -> Option<Arc<dyn SessionAdapter>> {
    RUNS_TURNS.then(|| Arc::new(adapter) as Arc<dyn SessionAdapter>)
}

/// Builds an [`AgentDefinition`]; see [`Agent::builder`].
#[derive(Debug)]
pub struct AgentBuilder {
    /// The agent without its description and skills.
    agent: AgentDefinition,
    description: Option<String>,
    skills: Vec<AddedSkill>,
    adapter: Option<Arc<dyn SessionAdapter>>,
}

#[derive(Debug)]
struct AddedSkill {
    set: Option<String>,
    is_extended: bool,
    is_fallback: bool,
    skill: Arc<dyn AnySkill>,
    can_ask: bool,
    states: Vec<NeededState>,
    /// The hash of its sources; empty if unknown.
    sources: &'static str,
    adapter: Option<Arc<dyn SessionAdapter>>,
}

impl AddedSkill {
    fn new<S: SkillSlot, H: SkillHandler<S>>(handler: H) -> Self {
        Self {
            set: None,
            is_extended: false,
            is_fallback: false,
            skill: Arc::new(ErasedSkill::new(handler)),
            can_ask: S::CAN_ASK,
            states: H::states(),
            sources: H::SOURCES,
            adapter: None,
        }
    }
}

impl AgentBuilder {
    fn manifest(&mut self) -> &mut AgentManifest {
        Arc::make_mut(&mut self.agent.manifest)
    }

    /// Sets the name shown to people. Default: the id.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.manifest().name = name.into();
        self
    }

    /// Sets the version. Default: `0.1.0`.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.manifest().version = version.into();
        self
    }

    /// Sets the description of the agent. Default: the name.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the instructions that every model of the agent's skills gets, before those of the
    /// skill: who the agent is, and how it speaks.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.manifest().instructions = Some(text.into());
        self
    }

    /// Sets the instructions for a model that picks a skill, in addition to the skills'
    /// metadata.
    #[must_use]
    pub fn dispatcher_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.manifest().dispatcher_prompt = Some(prompt.into());
        self
    }

    /// Lets a message answer the open question of its context also if its parts alone would choose a
    /// skill: for clients that send the context and no task, and an agent of one skill, or of one
    /// skill for each media type. A text that a skill declares still begins a task of that. Leave it
    /// off where clients send the context of a conversation with each new request.
    #[must_use]
    pub const fn answers_by_context(mut self) -> Self {
        self.agent.answers_by_context = true;
        self
    }

    /// Adds the factory of a [`State`](super::State). A process that runs skills calls it once:
    /// a function at its start, any other program at the first skill that needs the state. The
    /// functions for the card, for reads and for the sweep never call it.
    #[must_use]
    pub fn state<T, F, W, E>(mut self, make: F) -> Self
    where
        T: Send + Sync + 'static,
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<AgentBuildError>,
    {
        self.agent.states.add(make);
        self
    }

    /// Adds a [`State`](super::State) that exists already.
    #[must_use]
    pub fn state_value<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.agent.states.add_value(value);
        self
    }

    /// Adds the double of a [`State`](super::State): what `SkillTest` and the command `eval` use in
    /// place of its factory. Each test and each row makes its own.
    #[must_use]
    pub fn double<T, F>(mut self, make: F) -> Self
    where
        T: Send + Sync + 'static,
        F: Fn() -> T + Send + Sync + 'static,
    {
        self.agent.states.add_double(make);
        self
    }

    /// Sets what finds the [`SessionContext`](super::SessionContext) of each conversation. A
    /// first turn with an adapter reads and writes more: see [`SkillSet::session_context`].
    #[must_use]
    pub fn session_context(mut self, adapter: impl SessionAdapter) -> Self {
        self.adapter = used(adapter);
        self
    }

    /// Names a part of the agent that lives in the documents of its skills. The health
    /// report shows it with the state of the table.
    #[must_use]
    pub fn keeps(mut self, name: impl Into<String>) -> Self {
        self.agent.kept_in_table.push(name.into());
        self
    }

    /// Adds a skill.
    #[must_use]
    pub fn skill<S: SkillSlot, H: SkillHandler<S>>(mut self, handler: H) -> Self {
        self.skills.push(AddedSkill::new(handler));
        self
    }

    /// Adds a skill that only the extended card shows (A2A 1.0 §3.1.11), so only
    /// authenticated callers see it. The skill is unlisted but not protected: every caller
    /// of the agent who knows its id can use it.
    #[must_use]
    pub fn extended_skill<S: SkillSlot, H: SkillHandler<S>>(mut self, handler: H) -> Self {
        self.skills.push(AddedSkill {
            is_extended: true,
            ..AddedSkill::new(handler)
        });
        self
    }

    /// Adds the skill that gets each message for which the model of the router chooses no
    /// other, in place of a question. The router offers it to that model too. A skill with a
    /// model of its own fits: where no model is configured, the agent does not have it.
    #[must_use]
    pub fn fallback<S: SkillSlot, H: SkillHandler<S>>(mut self, handler: H) -> Self {
        self.skills.push(AddedSkill {
            is_fallback: true,
            ..AddedSkill::new(handler)
        });
        self
    }

    /// Sets the description of the agent in the extended card. Default: the public
    /// description. The agent has an extended card if it has this text or a skill from
    /// [`AgentBuilder::extended_skill`].
    #[must_use]
    pub fn extended_description(mut self, description: impl Into<String>) -> Self {
        self.manifest().extended_description = Some(description.into());
        self
    }

    /// Adds the skills of a set, with what the set keeps, finds for a conversation and exports.
    #[must_use]
    pub fn skills(mut self, set: impl Into<SkillSet>) -> Self {
        let set = set.into();
        self.agent.states.add_missing(set.states);
        self.agent.kept_in_table.extend(set.kept_in_table);
        let export = set.export.map(|export| (set.id.clone(), export));
        self.agent.exports.extend(export);
        self.skills
            .extend(set.skills.into_iter().map(|it| AddedSkill {
                set: Some(set.id.clone()),
                adapter: set.adapter.clone(),
                ..it
            }));
        self
    }

    /// Builds the agent and checks that it can be published.
    ///
    /// # Errors
    /// [`BuildError`] names the first invalid skill and the reason.
    pub fn build(mut self) -> Result<AgentDefinition, BuildError> {
        let description = self.description.take();
        let manifest = self.manifest();
        manifest.description = description.unwrap_or_else(|| manifest.name.clone());
        let Self { mut agent, .. } = self;
        let id = &agent.manifest.id;
        if SkillId::parse(&**id).is_err() {
            return Err(BuildError(format!("the agent id `{id}` must be {ID_FORM}")));
        }
        if self.skills.is_empty() {
            return Err(BuildError("an agent needs at least one skill".to_owned()));
        }
        let texts = [
            Some(&agent.manifest.description),
            agent.manifest.extended_description.as_ref(),
        ];
        if texts.iter().flatten().any(|text| text.trim().is_empty()) {
            return Err(BuildError::no_description(id));
        }
        let sources = self.skills.iter().map(|entry| entry.sources);
        agent.build_id = BuildId::of(&sources.filter(|it| !it.is_empty()).collect());
        let mut skills: Vec<SkillManifest> = Vec::new();
        for entry in self.skills {
            let id = check_metadata(entry.skill.metadata())?;
            check_patterns(&*entry.skill)?;
            if let Some(state) = entry.states.iter().find(|state| !agent.states.have(state)) {
                let state = state.name;
                return Err(BuildError(format!(
                    "the skill `{id}` takes `State<{state}>`, which has no factory: add it with \
                     `Agent::builder(…).state(…)`"
                )));
            }
            check_twice(&skills, &id, entry.is_fallback)?;
            skills.push(SkillManifest {
                metadata: *entry.skill.metadata(),
                set: entry.set,
                extended: entry.is_extended,
                asks: entry.can_ask,
                task: entry.skill.makes_task(),
                entry: RegisteredSkill {
                    id,
                    skill: entry.skill,
                    adapter: entry.adapter.or_else(|| self.adapter.clone()),
                    is_fallback: entry.is_fallback,
                },
            });
        }
        Arc::make_mut(&mut agent.manifest).skills = skills;
        Ok(agent)
    }
}

/// Checks the metadata of a skill; returns its id.
fn check_metadata(skill: &SkillMetadata) -> Result<SkillId, BuildError> {
    let name = skill.id;
    let id = SkillId::parse(name)
        .map_err(|_| BuildError(format!("the skill id `{name}` must be {ID_FORM}")))?;
    if skill.description.trim().is_empty() {
        return Err(BuildError::no_description(name));
    }
    if skill.tags.is_empty() || skill.tags.iter().any(|tag| tag.trim().is_empty()) {
        let text = format!("the skill `{name}` needs tags, and none of them empty");
        return Err(BuildError(text));
    }
    let mut modes = skill.input_modes.iter().chain(skill.output_modes);
    match modes.find(|mode| !is_media_type(mode)) {
        Some(mode) => Err(BuildError(format!(
            "the skill `{name}` names the media type `{mode}`, which must be `type/subtype`, \
             `type/*` or `*/*`"
        ))),
        None => Ok(id),
    }
}

/// Checks that no earlier skill has this id, or is a fallback if this one is.
fn check_twice(
    skills: &[SkillManifest],
    id: &SkillId,
    is_fallback: bool,
) -> Result<(), BuildError> {
    if skills.iter().any(|skill| skill.entry.id == *id) {
        return Err(BuildError(format!("the skill id `{id}` is used twice")));
    }
    if is_fallback && skills.iter().any(|skill| skill.entry.is_fallback) {
        return Err(BuildError(format!("the skill `{id}` is a second fallback")));
    }
    Ok(())
}

/// Checks that each pattern of a skill can be read, that its places are fields of the input, and
/// that the skill takes the text and the data that is made of it.
fn check_patterns(skill: &dyn AnySkill) -> Result<(), BuildError> {
    let metadata = skill.metadata();
    let (id, fields) = (metadata.id, skill.input_schema().get("properties"));
    for pattern in metadata.text {
        let wrong =
            |what: &str| BuildError(format!("the skill `{id}` has the text `{pattern}`: {what}"));
        let text_pattern = TextPattern::parse(pattern).map_err(wrong)?;
        let admits = |part| media::admits(metadata, &[part]);
        if fields.is_none() && text_pattern.places().count() == 1 && admits(Part::text("")) {
            continue;
        }
        let is_field = |name: &str| fields.is_some_and(|fields| fields.get(name).is_some());
        if let Some(field) = text_pattern.places().find(|name| !is_field(name)) {
            return Err(wrong(&format!(
                "`{field}` is no field of its input: take `TextOr<T>` of a struct with that field"
            )));
        }
        if !admits(Part::text("")) || !admits(Part::data(Value::Null)) {
            return Err(wrong("it has to take text and data, as `TextOr` does"));
        }
    }
    let mut refines = metadata.refines.iter();
    match refines.find_map(|it| Some((it, TextPattern::parse(it).err()?))) {
        Some((pattern, what)) => Err(BuildError(format!(
            "the skill `{id}` is refined by `{pattern}`: {what}"
        ))),
        None => Ok(()),
    }
}

/// The form of the ids of agents and skills.
const ID_FORM: &str = "`[a-z0-9][a-z0-9._-]{0,63}`";

/// Why an agent cannot be built. Its text names the agent or the first invalid skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(String);

impl BuildError {
    fn no_description(id: &str) -> Self {
        Self(format!("`{id}` needs a description"))
    }
}

/// An agent: its manifest with its handlers. Only the manifest is serialized. Clones share
/// both.
#[derive(Debug, Clone)]
pub struct AgentDefinition {
    manifest: Arc<AgentManifest>,
    build_id: Option<BuildId>,
    answers_by_context: bool,
    states: States,
    kept_in_table: Vec<String>,
    exports: Vec<(String, SetExport)>,
}

impl AgentDefinition {
    /// What the agent publishes about itself.
    #[must_use]
    pub fn manifest(&self) -> &AgentManifest {
        &self.manifest
    }

    /// The identity of this build; `None` if no skill is made with `#[skill]`. Then it counts as
    /// the same as any other.
    #[must_use]
    pub const fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }

    /// Whether a message may answer by its context before its parts choose a skill.
    pub(crate) const fn answers_by_context(&self) -> bool {
        self.answers_by_context
    }

    /// Makes the states of the skills, which otherwise are made when a skill first needs them.
    ///
    /// # Errors
    /// [`StateError`] of the first factory that fails.
    pub async fn make_states(&self) -> Result<(), StateError> {
        self.states.make().await
    }

    /// The same agent with this value as the state of its type, and as its double.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.set_value(value);
        self
    }

    /// The same agent with its doubles in place of their states.
    #[must_use]
    pub fn with_doubles(mut self) -> Self {
        self.states.use_doubles();
        self
    }

    /// The skill that gets what the model of the router does not decide.
    #[must_use]
    pub fn fallback(&self) -> Option<&SkillId> {
        let mut skills = self.manifest.skills.iter();
        let skill = skills.find(|skill| skill.entry.is_fallback)?;
        Some(&skill.entry.id)
    }

    /// The same agent where no model is configured: it has no fallback.
    #[must_use]
    pub fn without_model(mut self) -> Self {
        if self.fallback().is_some() {
            let manifest = Arc::make_mut(&mut self.manifest);
            manifest.skills.retain(|skill| !skill.entry.is_fallback);
        }
        self
    }

    /// The skills of the set `set` as tools.
    #[must_use]
    pub fn tools(&self, set: &str) -> Vec<Tool> {
        let skills = self.manifest.skills.iter();
        let of_set = skills.filter(|skill| skill.set.as_deref() == Some(set));
        of_set.map(|skill| Tool::of(&skill.entry.skill)).collect()
    }

    /// What finds the session context of a conversation that begins with this skill.
    pub fn adapter(&self, skill: &SkillMetadata) -> Option<&dyn SessionAdapter> {
        self.find_manifest(skill.id)?.entry.adapter.as_deref()
    }

    /// The parts of the agent that live in the documents of its skills.
    pub fn kept_in_table(&self) -> &[String] {
        &self.kept_in_table
    }

    /// The exports of its sets, each with the id of the set.
    #[must_use]
    pub fn exports(&self) -> &[(String, SetExport)] {
        &self.exports
    }

    /// What the skills share.
    #[must_use]
    pub const fn states(&self) -> &States {
        &self.states
    }

    /// The skill with this id, and the id.
    pub(crate) fn find_skill(&self, id: &str) -> Option<(&SkillId, &Arc<dyn AnySkill>)> {
        let skill = self.find_manifest(id)?;
        Some((&skill.entry.id, &skill.entry.skill))
    }

    fn find_manifest(&self, id: &str) -> Option<&SkillManifest> {
        let mut skills = self.manifest.skills.iter();
        skills.find(|skill| skill.metadata.id == id)
    }

    /// The skill with this id.
    pub fn skill(&self, id: &SkillId) -> Option<&Arc<dyn AnySkill>> {
        Some(self.find_skill(id.as_str())?.1)
    }

    /// All skills, in the order in which they were added.
    pub fn skills(&self) -> impl Iterator<Item = (&SkillId, &Arc<dyn AnySkill>)> {
        let skills = self.manifest.skills.iter();
        skills.map(|skill| (&skill.entry.id, &skill.entry.skill))
    }

    /// The id of the set a skill belongs to.
    pub(crate) fn set_of(&self, id: &SkillId) -> Option<&str> {
        self.find_manifest(id.as_str())?.set.as_deref()
    }
}

impl Serialize for AgentDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.manifest.serialize(serializer)
    }
}
