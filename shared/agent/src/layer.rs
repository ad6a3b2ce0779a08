//! The layers of memory and knowledge, from the narrowest to the broadest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// For whom a memory or an item is. A smaller layer is narrower.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
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

/// A text or a layer is not one of the expected layers. The text does not repeat the value,
/// which can be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`layer` is not {expected}")]
pub(crate) struct InvalidLayer {
    expected: &'static str,
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

    /// The place in the order: 0 is the narrowest.
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Self::Agent => 0,
            Self::User => 1,
            Self::Session => 2,
            Self::Project => 3,
            Self::Team => 4,
            Self::Org => 5,
            Self::Company => 6,
        }
    }
}

impl KnowledgeLayer {
    /// Every layer with knowledge, narrow to broad.
    pub(crate) const ALL: [Self; 4] = [Self::Project, Self::Team, Self::Org, Self::Company];

    /// The name on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        self.layer().as_str()
    }

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

impl InvalidLayer {
    const ANY: Self = Self {
        expected: "`agent`, `user`, `session`, `project`, `team`, `org` or `company`",
    };
    const KNOWLEDGE: Self = Self {
        expected: "`project`, `team`, `org` or `company`",
    };
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for KnowledgeLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Accepts the names on the wire, and no other case of letters.
impl FromStr for Layer {
    type Err = InvalidLayer;

    fn from_str(text: &str) -> Result<Self, InvalidLayer> {
        let layer = Self::ALL.into_iter().find(|layer| layer.as_str() == text);
        layer.ok_or(InvalidLayer::ANY)
    }
}

/// Accepts the names on the wire, and no other case of letters.
impl FromStr for KnowledgeLayer {
    type Err = InvalidLayer;

    fn from_str(text: &str) -> Result<Self, InvalidLayer> {
        let layer = Self::ALL.into_iter().find(|layer| layer.as_str() == text);
        layer.ok_or(InvalidLayer::KNOWLEDGE)
    }
}

impl From<KnowledgeLayer> for Layer {
    fn from(layer: KnowledgeLayer) -> Self {
        layer.layer()
    }
}

impl TryFrom<Layer> for KnowledgeLayer {
    type Error = InvalidLayer;

    fn try_from(layer: Layer) -> Result<Self, InvalidLayer> {
        match layer {
            Layer::Agent | Layer::User | Layer::Session => Err(InvalidLayer::KNOWLEDGE),
            Layer::Project => Ok(Self::Project),
            Layer::Team => Ok(Self::Team),
            Layer::Org => Ok(Self::Org),
            Layer::Company => Ok(Self::Company),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn layers_are_ordered_from_narrow_to_broad() {
        assert!(Layer::ALL.is_sorted());
        assert!(KnowledgeLayer::ALL.is_sorted());
        let ranks = Layer::ALL.map(Layer::rank);
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn every_layer_is_read_as_it_is_written() {
        for layer in Layer::ALL {
            assert_eq!(layer.as_str().parse(), Ok(layer));
            assert_eq!(json!(layer), json!(layer.as_str()));
            assert_eq!(
                serde_json::from_value::<Layer>(json!(layer)).unwrap(),
                layer
            );
        }
        for layer in KnowledgeLayer::ALL {
            assert_eq!(layer.as_str().parse(), Ok(layer));
            assert_eq!(json!(layer), json!(layer.as_str()));
            assert_eq!(KnowledgeLayer::try_from(Layer::from(layer)), Ok(layer));
        }
    }

    #[test]
    fn another_layer_is_refused() {
        for text in ["", "Company", "tenant", " team", "team\u{0}"] {
            assert!(text.parse::<Layer>().is_err(), "{text}");
        }
        for layer in [Layer::Agent, Layer::User, Layer::Session] {
            let error = KnowledgeLayer::try_from(layer).unwrap_err();
            assert_eq!(layer.as_str().parse::<KnowledgeLayer>(), Err(error));
            assert_eq!(
                error.to_string(),
                "`layer` is not `project`, `team`, `org` or `company`"
            );
        }
    }
}
