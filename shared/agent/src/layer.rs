//! The layers of an organisation, to which memories and knowledge belong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A layer, from the narrowest to the broadest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
    /// What this agent keeps for the caller.
    Agent,
    /// The caller.
    User,
    /// The conversation.
    Session,
    /// A project of the caller.
    Project,
    /// A team of the caller.
    Team,
    /// An organisation of the caller.
    Org,
    /// The whole tenant.
    Company,
}

impl Layer {
    /// All layers, the narrowest first.
    pub(crate) const ALL: [Self; 7] = [
        Self::Agent,
        Self::User,
        Self::Session,
        Self::Project,
        Self::Team,
        Self::Org,
        Self::Company,
    ];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
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

    /// The layer with this name, in any case of letters and with blanks around it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }

    /// Its place in [`Layer::ALL`]: 0 is the narrowest.
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

#[cfg(test)]
mod tests {
    use super::Layer;

    #[test]
    fn a_layer_is_found_by_the_name_that_it_has_in_json() {
        for (rank, layer) in Layer::ALL.into_iter().enumerate() {
            let name = serde_json::to_value(layer).unwrap();
            assert_eq!(name, layer.name());
            assert_eq!(
                Layer::named(&format!(" {} ", layer.name().to_uppercase())),
                Some(layer)
            );
            assert_eq!(usize::from(layer.rank()), rank);
        }
        assert_eq!(Layer::named("planet"), None);
    }
}
