//! The authenticated caller of a request.

use super::{Owner, TurnRequest};
use std::collections::BTreeSet;

/// The authenticated caller of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Tenant and subject.
    pub owner: Owner,
    /// The rate tier.
    pub tier: String,
    /// Granted scopes.
    pub scopes: BTreeSet<String>,
}

impl Caller {
    /// The tier of a caller whose credentials name none.
    pub const DEFAULT_TIER: &str = "default";

    /// The caller of a stored turn, for the worker that continues it. A turn without a
    /// stored request belongs to a caller of the default tier, without scopes.
    #[must_use]
    pub fn behind(owner: &Owner, request: Option<&TurnRequest>) -> Self {
        let request = request.cloned();
        Self {
            owner: owner.clone(),
            tier: request.as_ref().map_or_else(
                || Self::DEFAULT_TIER.to_owned(),
                |request| request.tier.clone(),
            ),
            scopes: request.map(|request| request.scopes).unwrap_or_default(),
        }
    }

    /// What a stored turn keeps of this caller, the accepted output modes, the trace and the
    /// consent. `None` if [`Caller::behind`] restores all of it from nothing.
    #[must_use]
    pub fn request(
        &self,
        accepted_output_modes: &[String],
        trace_parent: Option<String>,
        consent: Option<String>,
    ) -> Option<TurnRequest> {
        let ordinary = self.tier == Self::DEFAULT_TIER
            && self.scopes.is_empty()
            && accepted_output_modes.is_empty()
            && trace_parent.is_none()
            && consent.is_none();
        (!ordinary).then(|| TurnRequest {
            tier: self.tier.clone(),
            scopes: self.scopes.clone(),
            accepted_output_modes: accepted_output_modes.to_vec(),
            trace_parent,
            consent,
        })
    }
}
