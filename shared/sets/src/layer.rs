//! The layers of memory and knowledge, from the narrowest to the broadest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For whom a memory or an item is. A smaller layer is narrower.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The caller as an agent.
    Agent,
    /// The caller as a person.
    User,
    /// One context of the caller.
    Session,
    /// A project.
    Project,
    /// A team.
    Team,
    /// A part of the company.
    Org,
    /// The whole tenant.
    Company,
}

/// A layer that has knowledge and policies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KnowledgeLayer {
    /// A project.
    Project,
    /// A team.
    Team,
    /// A part of the company.
    Org,
    /// The whole tenant.
    Company,
}

impl Layer {
    /// Every layer, narrow to broad.
    pub(crate) const ALL: [Self; 7] = [
        Self::Agent,
        Self::User,
        Self::Session,
        Self::Project,
        Self::Team,
        Self::Org,
        Self::Company,
    ];

    /// The name on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Session => "session",
            Self::Project => "project",
            Self::Team => "team",
            Self::Org => "org",
            Self::Company => "company",
        }
    }

    /// The layer with this name on the wire, in this case of letters.
    pub(crate) fn from_name(text: &str) -> Option<Self> {
        if ["for me", "just for me"].contains(&text) {
            return Some(Self::User);
        }
        Self::ALL.into_iter().find(|layer| layer.as_str() == text)
    }
}

impl KnowledgeLayer {
    /// Every layer with knowledge, narrow to broad.
    pub(crate) const ALL: [Self; 4] = [Self::Project, Self::Team, Self::Org, Self::Company];

    /// The same layer among all layers.
    pub(crate) const fn layer(self) -> Layer {
        match self {
            Self::Project => Layer::Project,
            Self::Team => Layer::Team,
            Self::Org => Layer::Org,
            Self::Company => Layer::Company,
        }
    }
}

display_serialized!(Layer, KnowledgeLayer);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn layers_are_ordered_from_narrow_to_broad() {
        assert!(Layer::ALL.is_sorted());
        assert!(KnowledgeLayer::ALL.is_sorted());
        assert!(KnowledgeLayer::ALL.map(KnowledgeLayer::layer).is_sorted());
    }

    #[test]
    fn every_layer_is_read_as_it_is_written() {
        for layer in Layer::ALL {
            assert_eq!(Layer::from_name(layer.as_str()), Some(layer));
            assert_eq!(json!(layer), json!(layer.as_str()));
            assert_eq!(
                serde_json::from_value::<Layer>(json!(layer)).unwrap(),
                layer
            );
        }
        for layer in KnowledgeLayer::ALL {
            assert_eq!(json!(layer), json!(layer.to_string()));
            assert_eq!(json!(layer), json!(layer.layer()));
        }
    }

    #[test]
    fn another_layer_is_refused() {
        for text in ["", "Company", "tenant", " team", "team\u{0}"] {
            assert_eq!(Layer::from_name(text), None, "{text}");
        }
        for layer in [Layer::Agent, Layer::User, Layer::Session] {
            assert!(serde_json::from_value::<KnowledgeLayer>(json!(layer)).is_err());
        }
    }
}
