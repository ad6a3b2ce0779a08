//! Tests what an agent publishes, and which agents cannot be built.

use crate::prelude::*;
use crate::registry::AgentBuilder;
use a2a_lambda_model::task::SkillId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize)]
enum Ask {
    When,
}

impl SkillSlot for Ask {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Trip {
    to: String,
}

/// Books a flight.
#[skill(id = "book-flight", tags = ["travel"], background = true)]
struct BookFlight;

impl SkillHandler<Ask> for BookFlight {
    type Input = Trip;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        trip: Trip,
    ) -> AgentResult<OnRequestResult<String, Ask>> {
        OnRequestResult::ask(format!("When to {}?", trip.to), Ask::When)
    }
    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Ask,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Ask>> {
        OnInputResult::done("booked".to_owned())
    }
}

/// Says back what you said.
#[skill(id = "echo", tags = ["test"])]
async fn echo(input: Content) -> AgentResult<Content> {
    Ok(input)
}

#[test]
fn an_agent_is_serialized_without_its_handlers() {
    let agent = Agent::builder("travel")
        .name("Travel")
        .version("2.1.0")
        .description("Books journeys.")
        .dispatcher_prompt("Prefer trains.")
        .skill(echo)
        .skills(SkillSet::new("bookings").skill(BookFlight))
        .build()
        .unwrap();
    let expected = json!({
        "id": "travel",
        "name": "Travel",
        "version": "2.1.0",
        "description": "Books journeys.",
        "dispatcherPrompt": "Prefer trains.",
        "skills": [
            {
                "id": "echo",
                "name": "echo",
                "description": "Says back what you said.",
                "tags": ["test"],
                "examples": [],
                "inputModes": ["*/*"],
                "outputModes": ["text/plain"],
                "background": false,
                "effect": "write",
                "keepsInput": true,
                "inputSchema": {},
                "asks": false,
                "task": false,
            },
            {
                "id": "book-flight",
                "name": "book-flight",
                "description": "Books a flight.",
                "tags": ["travel"],
                "examples": [],
                // The skill asks questions, and answers are text, so it accepts text too.
                "inputModes": ["text/plain", "application/json"],
                "outputModes": ["text/plain"],
                "background": true,
                "effect": "write",
                "keepsInput": true,
                "set": "bookings",
                "inputSchema": {
                    "type": "object",
                    "properties": {"to": {"type": "string"}},
                    "required": ["to"],
                    "additionalProperties": false,
                },
                "outputSchema": {"type": "string"},
                "asks": true,
                "task": true,
            },
        ],
    });
    assert_eq!(serde_json::to_value(&agent).unwrap(), expected);
}

#[test]
fn agent_name_and_description_default_to_its_id() {
    let agent = Agent::builder("parrot").skill(echo).build().unwrap();
    let manifest = agent.manifest();
    assert_eq!(manifest.name, "parrot");
    assert_eq!(manifest.description, "parrot");
    assert_eq!(manifest.version, "0.1.0");
}

#[test]
fn skills_are_found_by_id_and_listed_as_they_were_added() {
    let set = SkillSet::new("bookings").skill(BookFlight);
    let agent = Agent::builder("travel").skill(echo).skills(set);
    let agent = agent.build().unwrap();
    let ids: Vec<_> = agent.skills().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["echo", "book-flight"]);
    let id = SkillId::parse("book-flight").unwrap();
    assert!(agent.skill(&id).is_some());
    assert_eq!(agent.set_of(&id), Some("bookings"));
    assert_eq!(agent.set_of(&SkillId::parse("echo").unwrap()), None);
    assert!(agent.skill(&SkillId::parse("other").unwrap()).is_none());
}

/// A skill whose sources have the hash `N`; 0 is unknown.
struct Hashed<const N: usize>;

impl<const N: usize> Skill for Hashed<N> {
    const METADATA: SkillMetadata = SkillMetadata::new(["a", "b", "c"][N], "Works.", &["t"]);
    const SOURCES: &'static str = ["", "one", "two"][N];
}

impl<const N: usize> SkillHandler for Hashed<N> {
    type Input = String;
    type Output = ();
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<()>> {
        OnRequestResult::done(())
    }
}

#[test]
fn an_agent_has_the_identity_of_the_sources_of_its_skills() {
    let id = |agent: AgentBuilder| agent.build().unwrap().build_id().cloned();
    let agent = || Agent::builder("agent");
    let one = id(agent().skill(Hashed::<1>));
    assert_eq!(one.as_ref().map(|it| it.as_str().len()), Some(16));
    assert_eq!(one, id(agent().skill(Hashed::<1>).skill(Hashed::<0>)));
    let both = id(agent().skill(Hashed::<1>).skill(Hashed::<2>));
    assert_ne!(one, both);
    assert_eq!(both, id(agent().skill(Hashed::<2>).fallback(Hashed::<1>)));
    assert_eq!(id(agent().skill(Hashed::<0>)), None);
}

/// A skill with metadata written by hand.
macro_rules! by_hand {
    ($metadata:expr) => {{
        struct Hand;
        impl Skill for Hand {
            const METADATA: SkillMetadata = $metadata;
        }
        impl SkillHandler for Hand {
            type Input = String;
            type Output = ();
            async fn on_request(
                &self,
                _: &mut TaskContext<'_>,
                _: String,
            ) -> AgentResult<OnRequestResult<()>> {
                OnRequestResult::done(())
            }
        }
        Agent::builder("agent").skill(Hand).build().map(|_| ())
    }};
}

#[test]
fn build_rejects_an_agent_that_cannot_be_published() {
    let text = |built: Result<_, BuildError>| built.map_err(|error| error.to_string()).unwrap_err();
    let agent = |id: &str| Agent::builder(id);
    let ids = "`[a-z0-9][a-z0-9._-]{0,63}`";
    for (built, expected) in [
        (
            agent("agent"),
            "an agent needs at least one skill".to_owned(),
        ),
        (
            agent("agent").skill(echo).skill(echo),
            "the skill id `echo` is used twice".to_owned(),
        ),
        (
            agent("An agent").skill(echo),
            format!("the agent id `An agent` must be {ids}"),
        ),
        (
            agent("x").description(" ").skill(echo),
            "`x` needs a description".to_owned(),
        ),
    ] {
        assert_eq!(text(built.build().map(|_| ())), expected);
    }
    assert_eq!(by_hand!(SkillMetadata::new("x", "d", &["t"])), Ok(()));
    let upper = by_hand!(SkillMetadata::new("X", "d", &["t"]));
    assert_eq!(text(upper), format!("the skill id `X` must be {ids}"));
    let bare = by_hand!(SkillMetadata::new("x", " ", &["t"]));
    assert_eq!(text(bare), "`x` needs a description");
    let untagged = by_hand!(SkillMetadata::new("x", "d", &[]));
    let blank = by_hand!(SkillMetadata::new("x", "d", &["t", ""]));
    for built in [untagged, blank] {
        let expected = "the skill `x` needs tags, and none of them empty";
        assert_eq!(text(built), expected);
    }
    let mode = by_hand!(SkillMetadata {
        output_modes: &["text"],
        ..SkillMetadata::new("x", "d", &["t"])
    });
    assert_eq!(
        text(mode),
        "the skill `x` names the media type `text`, which must be `type/subtype`, `type/*` or `*/*`"
    );
}
