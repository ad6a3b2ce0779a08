//! The credentials that a local agent compares with.

use a2a_lambda::auth::{AuthMode, Credentials, JwtVerifier};
use a2a_lambda::engine::{Clock, SystemClock};
use a2a_lambda::settings::{Settings, SettingsError};
use a2a_lambda::store::table::ReadTable;
use std::sync::Arc;

/// The credentials that a local agent with these settings compares with.
///
/// # Errors
/// [`SettingsError`] when `A2A_AUTH` is `jwt` and the issuer is not described.
pub(crate) fn credentials(
    settings: &Settings,
    table: Arc<dyn ReadTable>,
) -> Result<Credentials, SettingsError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let credentials = Credentials::new(table, clock.clone());
    if settings.auth != AuthMode::Jwt {
        return Ok(credentials);
    }
    let issuer = settings.credentials.required_issuer()?;
    let reach = settings.credentials.reach;
    Ok(credentials.with_jwt(JwtVerifier::new(issuer, reach, clock)))
}
