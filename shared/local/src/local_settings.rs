//! Reads the settings of the local agent: first the command line, then the environment,
//! then the configuration file.

use crate::config::{AUTH, Serve};
use crate::embedded::{BUCKET, TABLE, fresh_secret};
use crate::folder::{make_private, private_file};
use a2a_lambda::auth::{AuthMode, Credentials, JwtVerifier};
use a2a_lambda::engine::{Clock, Leases, SystemClock};
use a2a_lambda::origin::Hosts;
use a2a_lambda::settings::{Settings, SettingsError, Source};
use a2a_lambda::store::aws::Endpoints;
use a2a_lambda::store::table::ReadTable;
use a2a_lambda::task::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The `A2A_AUTH` with which everybody may call.
const DEV: &str = AuthMode::Dev.word();
/// The file of the `A2A_SECRET_KEY` in the data folder.
const SECRET_KEY: &str = "secret.key";
/// Where `cargo lambda watch` serves functions, if nothing says another port.
const WATCH_URL: &str = "http://127.0.0.1:9000";

/// Why the command line or the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Other machines can reach the address.
    #[error(
        "refusing to listen on {0}: development identities let anybody who reaches it name any \
         tenant; pass --insecure-dev to do it anyway"
    )]
    Exposed(IpAddr),
    #[error("`keys` with --memory accepts nobody, since no key can be made; use --data DIR")]
    NoKeys,
    #[error("setting `A2A_AUTH` has a value that is not allowed here; expected: one of {0}")]
    Auth(String),
    /// The file of `--env-file` or the data folder cannot be used.
    #[error("failed to use `{path}`: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// A source of settings: first those of the command line and the data folder, then the
/// environment and the configuration file.
struct Local<'a> {
    overrides: BTreeMap<&'static str, String>,
    configuration: &'a dyn Source,
}

impl Source for Local<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let value = self.overrides.get(name).cloned();
        value.or_else(|| self.configuration.get(name))
    }

    fn built_at(&self) -> Option<Timestamp> {
        self.configuration.built_at()
    }
}

impl Serve {
    /// What the end of the process before says of its turns: `dev` ends it for another build.
    pub(crate) const fn leases(&self) -> Leases {
        match self.under_dev {
            true => Leases::GivenBack,
            false => Leases::CountAsExpired,
        }
    }

    /// Who may call: `--auth`, else `A2A_AUTH`, which has to be one of [`AUTH`]; by default
    /// everybody.
    fn auth(&self, configuration: &dyn Source) -> Result<String, ConfigError> {
        let setting = || configuration.get("A2A_AUTH").filter(|it| !it.is_empty());
        let auth = self.auth.clone().or_else(setting);
        let auth = auth.unwrap_or_else(|| DEV.to_owned());
        match AUTH.contains(&auth.as_str()) {
            true => Ok(auth),
            false => Err(ConfigError::Auth(AUTH.join(", "))),
        }
    }

    /// The address and the port to listen on.
    ///
    /// # Errors
    /// [`ConfigError::Exposed`] for an address beyond loopback without `--insecure-dev`;
    /// [`ConfigError::Auth`] for a value of the setting that is not allowed.
    pub(crate) fn address(&self, configuration: &dyn Source) -> Result<SocketAddr, ConfigError> {
        let address = self.bind;
        if address.is_loopback() || self.insecure_dev || self.auth(configuration)? != DEV {
            Ok(SocketAddr::new(address, self.port))
        } else {
            Err(ConfigError::Exposed(address))
        }
    }

    /// The settings of an agent with the base URL `public_url`, if `A2A_PUBLIC_URL` does
    /// not set another.
    ///
    /// # Errors
    /// [`ConfigError`] for a setting that cannot be used, or a data folder that
    /// cannot hold the secret.
    pub(crate) fn settings(
        &self,
        configuration: &dyn Source,
        public_url: &str,
    ) -> Result<Settings, ConfigError> {
        let auth = self.auth(configuration)?;
        let mut overrides = BTreeMap::from([("A2A_AUTH", auth.clone())]);
        if auth == "keys" && self.memory && self.endpoint.is_none() {
            return Err(ConfigError::NoKeys);
        }
        if let Some(card) = &self.card {
            overrides.insert("A2A_CARD", card.clone());
        }
        if configuration.get("A2A_PUBLIC_URL").is_none() {
            overrides.insert("A2A_PUBLIC_URL", public_url.to_owned());
        }
        if self.endpoint.is_none() {
            overrides.insert("A2A_TABLE", TABLE.to_owned());
            overrides.insert("A2A_BUCKET", BUCKET.to_owned());
        }
        if configuration.get("A2A_SECRET_KEY").is_none() {
            match self.folder() {
                Some(data) => _ = overrides.insert("A2A_SECRET_KEY", secret(data, SECRET_KEY)?),
                None if auth == DEV => {}
                None => _ = overrides.insert("A2A_SECRET_KEY", fresh_secret()),
            }
        }
        let mut settings = Settings::read(&Local {
            overrides,
            configuration,
        })?;
        if !self.address(configuration)?.ip().is_loopback() {
            // Other machines reach the agent under host names that are not known here.
            settings.hosts = Hosts::Any;
        }
        Ok(settings)
    }

    /// Writes the file of `--env-file`: `embedded`, and what else the functions need to use the
    /// data of this program.
    ///
    /// # Errors
    /// [`ConfigError`] when the file or the secret of the data folder cannot be used.
    pub(crate) fn write_env_file(
        &self,
        configuration: &dyn Source,
        embedded: &[(&str, String)],
    ) -> Result<(), ConfigError> {
        let Some(path) = &self.env_file else {
            return Ok(());
        };
        let mut settings = embedded.to_vec();
        settings.push(("A2A_AUTH", self.auth(configuration)?));
        settings.push(("A2A_PUBLIC_URL", WATCH_URL.to_owned()));
        if let (Some(data), None) = (self.folder(), configuration.get("A2A_SECRET_KEY")) {
            settings.push(("A2A_SECRET_KEY", secret(data, SECRET_KEY)?));
        }
        let lines = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        let text: String = lines.collect();
        let result = private_file(path).and_then(|mut file| {
            file.set_len(0)?;
            file.write_all(text.as_bytes())
        });
        result.map_err(|source| ConfigError::File {
            path: path.clone(),
            source,
        })
    }

    /// The endpoints of an AWS emulator, if `--endpoint` names one.
    #[must_use]
    pub(crate) fn endpoints(&self) -> Option<Endpoints> {
        let url = self.endpoint.as_ref();
        url.map(|_| a2a_lambda_admin::endpoints(url, self.s3_endpoint.as_ref()))
    }

    /// The data folder; `None` with `--memory`.
    #[must_use]
    pub(crate) fn folder(&self) -> Option<&Path> {
        (!self.memory).then_some(self.data.as_path())
    }
}

/// The credentials that a local agent with these settings compares with, if it does.
///
/// # Errors
/// [`SettingsError`] when `A2A_AUTH` is `jwt` and the issuer is not described.
pub(crate) fn credentials(
    settings: &Settings,
    table: Arc<dyn ReadTable>,
) -> Result<Option<Credentials>, SettingsError> {
    if !settings.auth.checks_credentials() {
        return Ok(None);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let credentials = Credentials::new(table, clock.clone());
    if settings.auth != AuthMode::Jwt {
        return Ok(Some(credentials));
    }
    let issuer = settings.credentials.required_issuer()?;
    let reach = settings.credentials.reach;
    let verifier = JwtVerifier::new(issuer, reach, clock);
    Ok(Some(credentials.with_jwt(verifier)))
}

/// The secret in this file of a data folder. The first run makes it.
pub(crate) fn secret(folder: &Path, file: &str) -> Result<String, ConfigError> {
    let fault = |source| ConfigError::File {
        path: folder.to_owned(),
        source,
    };
    let path = folder.join(file);
    match fs::read_to_string(&path) {
        // A process that ended while it wrote the file left it empty.
        Ok(secret) if !secret.is_empty() => return Ok(secret),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fault(error)),
    }
    make_private(folder).map_err(fault)?;
    let secret = fresh_secret();
    let mut file = private_file(&path).map_err(fault)?;
    file.write_all(secret.as_bytes()).map_err(fault)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cli;
    use a2a_lambda::settings::Configuration;
    use clap::Parser as _;

    fn serve(args: &[&str]) -> Serve {
        let args = [&["a2a-local"], args].concat();
        Cli::try_parse_from(args).unwrap().serve
    }

    /// The environment alone.
    fn no_file() -> Configuration {
        Configuration::default()
    }

    #[test]
    fn addresses_beyond_loopback_require_insecure_dev() {
        assert!(serve(&[]).address(&no_file()).unwrap().ip().is_loopback());
        assert!(serve(&["--bind", "::1"]).address(&no_file()).is_ok());
        let exposed = serve(&["--bind", "0.0.0.0"])
            .address(&no_file())
            .unwrap_err();
        assert!(exposed.to_string().contains("--insecure-dev"), "{exposed}");
        assert!(
            serve(&["--bind", "0.0.0.0", "--insecure-dev"])
                .address(&no_file())
                .is_ok()
        );
    }

    #[test]
    fn keys_in_memory_are_refused_since_nobody_could_make_one() {
        let url = "http://127.0.0.1:1";
        let refused = serve(&["--memory", "--auth", "keys"]).settings(&no_file(), url);
        assert!(matches!(refused, Err(ConfigError::NoKeys)));
        // An agent that checks credentials may listen beyond loopback.
        assert!(
            serve(&["--bind", "0.0.0.0", "--auth", "jwt"])
                .address(&no_file())
                .is_ok()
        );
    }

    /// A source with `A2A_AUTH` alone.
    struct AuthIs(&'static str);

    impl Source for AuthIs {
        fn get(&self, name: &str) -> Option<String> {
            (name == "A2A_AUTH").then(|| self.0.to_owned())
        }
    }

    #[test]
    fn an_agent_whose_setting_asks_for_keys_does_not_serve_everybody() {
        let auth = |args: &[&str], setting| {
            let mut serve = serve(args);
            serve.endpoint = Some("http://127.0.0.1:1".to_owned());
            let settings = serve.settings(&AuthIs(setting), "http://127.0.0.1:1");
            settings.map(|settings| settings.auth.word())
        };
        assert_eq!(auth(&["--memory"], "keys").unwrap(), "keys");
        assert_eq!(auth(&["--memory"], "").unwrap(), "dev");
        let said = ["--memory", "--auth", "dev"];
        assert_eq!(auth(&said, "keys").unwrap(), "dev");
        for other in ["gateway", "KEYS"] {
            let refused = auth(&["--memory"], other);
            assert!(matches!(refused, Err(ConfigError::Auth(..))), "{other}");
        }
        // Other machines may reach an agent that checks credentials.
        let beyond = serve(&["--bind", "0.0.0.0"]);
        assert!(beyond.address(&AuthIs("keys")).is_ok());
    }

    #[test]
    fn an_env_file_replaces_the_last_one_and_only_its_owner_reads_it() {
        let folder = std::env::temp_dir().join(format!("a2a-env-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("functions.env");
        let written = |port: &str| {
            let mut serve = serve(&["--memory"]);
            serve.env_file = Some(path.clone());
            let embedded = [("AWS_ENDPOINT_URL_S3", format!("http://127.0.0.1:{port}"))];
            serve.write_env_file(&no_file(), &embedded).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        written("12345");
        assert_eq!(
            written("1"),
            "AWS_ENDPOINT_URL_S3=http://127.0.0.1:1\nA2A_AUTH=dev\n\
             A2A_PUBLIC_URL=http://127.0.0.1:9000\n"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_secret_file_that_a_crash_left_empty_gets_a_secret() {
        let folder = std::env::temp_dir().join(format!("a2a-secret-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("page.key"), "").unwrap();
        let token = secret(&folder, "page.key").unwrap();
        assert_eq!(token.len(), 64, "nobody guesses it");
        assert_eq!(secret(&folder, "page.key").unwrap(), token);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_card_date_defaults_to_that_of_the_executable() {
        let settings = serve(&["--memory"])
            .settings(&no_file(), "http://127.0.0.1:1")
            .unwrap();
        assert!(settings.deployed_at.is_some());
    }
}
