//! The command `sign-card`: signs the cards of a deployment.
//!
//! The functions get the signatures as the setting `A2A_CARD_SIGNATURES`, and never
//! the key.

mod served;

use crate::output::{CommandError, print};
use crate::{BuildNamed, CARD};
use a2a_lambda::protocol::{CardSignature, Unsigned};
use a2a_lambda::runtime::{adapt_to_model, cards};
use a2a_lambda::settings::{Environment, Settings, Source};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::ValueEnum;
use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p256::pkcs8::DecodePrivateKey as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is missing if neither an option nor a setting gives the URL of the card.
const NO_URL: &str = "pass --public-url or set `A2A_PUBLIC_URL`: it stands on the card";

/// What to sign, and with which key.
#[derive(Debug, Clone, clap::Args)]
pub struct SignCard {
    /// The private key: P-256, unencrypted PEM, PKCS#8 or SEC1.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What to write: the signed card, the value of `A2A_CARD_SIGNATURES`, or
    /// the public key as a JWK set.
    #[arg(long, value_enum, default_value_t = Print::Card)]
    pub print: Print,
    /// Sign the card in this file, as it is served, instead of the agent's own.
    #[arg(long = "in", value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Sign the cards that the deployment at this base URL serves, instead of the agent's
    /// own: the public one, and with `--token-file` the extended one.
    #[arg(long, value_name = "URL", conflicts_with_all = ["input", "public_url", "card", "agent"])]
    pub url: Option<String>,
    /// A file with the bearer token that reads the extended card at `--url`.
    #[arg(long, value_name = "FILE", requires = "url")]
    pub token_file: Option<PathBuf>,
    /// The base URL on the card; else `A2A_PUBLIC_URL`.
    #[arg(long, value_name = "URL", conflicts_with = "input")]
    pub public_url: Option<String>,
    /// The form of the card; else `A2A_CARD`.
    #[arg(long, value_parser = CARD, conflicts_with = "input")]
    pub card: Option<String>,
    /// Whose card.
    #[arg(long, value_name = "NAME", conflicts_with = "input")]
    pub agent: Option<String>,
    /// The name of the key; else its JWK thumbprint (RFC 7638).
    #[arg(long, value_name = "ID")]
    pub kid: Option<String>,
    /// Where the JWK set with the public key can be read.
    #[arg(long, value_name = "URL")]
    pub jku: Option<String>,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Print {
    /// The card with its signatures.
    Card,
    /// The signatures of all cards of the agent, as `A2A_CARD_SIGNATURES`.
    Setting,
    /// The public key.
    Jwks,
}

/// A source of settings: the command line, then the environment.
struct Deployed<'a>(&'a SignCard);

impl Source for Deployed<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let value = match name {
            // The old signatures: they would not fit a card that has changed.
            "A2A_CARD_SIGNATURES" => return None,
            "A2A_PUBLIC_URL" => self.0.public_url.clone(),
            "A2A_CARD" => self.0.card.clone(),
            _ => None,
        };
        value.or_else(|| Environment.get(name))
    }
}

/// Signs the cards, and writes what `--print` chooses.
///
/// # Errors
/// When a card cannot be signed.
pub(crate) async fn run(options: &SignCard, agent: BuildNamed<'_>) -> Result<(), CommandError> {
    let key = Key::read(&options.key, options.kid.as_deref())?;
    let text = match options.print {
        Print::Jwks => format!("{}\n", json!({"keys": [key.jwk()]})),
        Print::Card => sign_card(&key, options, agent).await?,
        Print::Setting => {
            let cards = cards_of(options, agent).await?;
            let signatures = cards.iter().flat_map(|card| key.sign(card, options));
            let words: Vec<String> = signatures.map(|one| one.to_string()).collect();
            format!("{}\n", words.join(" "))
        }
    };
    match &options.out {
        Some(path) => fs::write(path, text).map_err(|error| file_error(path, &error)),
        None => print(&text),
    }
}

/// The public card with its signatures, as the same bytes that a function serves.
async fn sign_card(
    key: &Key,
    options: &SignCard,
    agent: BuildNamed<'_>,
) -> Result<String, CommandError> {
    let mut card = cards_of(options, agent)
        .await?
        .into_iter()
        .next()
        .unwrap_or_default();
    let signatures = key.sign(&card, options);
    let signatures: Vec<Value> = signatures.iter().map(CardSignature::to_json).collect();
    if let Value::Object(members) = &mut card {
        members.insert("signatures".to_owned(), signatures.into());
    }
    Ok(card.to_string())
}

/// The cards of the deployment, the card in the file, or the cards of the agent, the
/// public one first.
async fn cards_of(options: &SignCard, agent: BuildNamed<'_>) -> Result<Vec<Value>, CommandError> {
    if let Some(url) = &options.url {
        let token = match &options.token_file {
            Some(path) => Some(fs::read_to_string(path).map_err(|error| file_error(path, &error))?),
            None => None,
        };
        return Ok(served::cards(url, token.as_deref()).await?);
    }
    if let Some(path) = &options.input {
        let text = fs::read(path).map_err(|error| file_error(path, &error))?;
        let card: Option<Value> = serde_json::from_slice(&text).ok();
        let card = card.filter(Value::is_object);
        let none = || format!("`{}` holds no card: a JSON object", path.display());
        return Ok(vec![card.ok_or_else(none)?]);
    }
    let source = Deployed(options);
    if source.get("A2A_PUBLIC_URL").is_none() {
        return Err(NO_URL.into());
    }
    let settings = Settings::read_public(&source)?;
    let agent = agent(options.agent.as_deref(), &settings);
    let agent = agent.map_err(|error| format!("failed to build the agent: {error}"))?;
    let agent = adapt_to_model(agent, settings.model.is_some());
    let url = settings.public_url.without_stage();
    let cards = cards(&agent, &settings, url.ok_or(NO_URL)?);
    let cards = cards.map_err(|error| format!("failed to make the agent card: {error}"))?;
    Ok(cards.documents().map(|one| one.value.clone()).collect())
}

fn file_error(path: &Path, error: &io::Error) -> CommandError {
    format!("failed to use `{}`: {error}", path.display()).into()
}

/// A private key and its id.
struct Key {
    secret: SecretKey,
    kid: String,
}

impl Key {
    fn read(path: &Path, kid: Option<&str>) -> Result<Self, CommandError> {
        let text = fs::read_to_string(path).map_err(|error| file_error(path, &error))?;
        let kind = "holds no P-256 key as unencrypted PEM (PKCS#8 or SEC1)";
        let secret = secret(&text).ok_or_else(|| format!("`{}` {kind}", path.display()))?;
        let kid = kid.map_or_else(|| thumbprint(&secret), str::to_owned);
        Ok(Self { secret, kid })
    }

    fn sign(&self, card: &Value, options: &SignCard) -> Vec<CardSignature> {
        // RFC 6979 §3.2: signatures are deterministic, so the card's bytes stay the same.
        let key = SigningKey::from(&self.secret);
        let drafts = Unsigned::of(card, &self.kid, options.jku.as_deref());
        let sign = |draft: Unsigned| {
            let signature: Signature = key.sign(draft.signing_input().as_bytes());
            draft.with_signature(signature.to_bytes().into())
        };
        drafts.into_iter().map(sign).collect()
    }

    fn jwk(&self) -> Value {
        let mut jwk = public(&self.secret);
        if let Value::Object(members) = &mut jwk {
            members.insert("alg".to_owned(), json!("ES256"));
            members.insert("use".to_owned(), json!("sig"));
            members.insert("kid".to_owned(), json!(self.kid));
        }
        jwk
    }
}

/// Reads the key in a PEM file, which may also hold the curve's parameters.
fn secret(text: &str) -> Option<SecretKey> {
    let from = |label: &str| text.find(label).and_then(|at| text.get(at..));
    if let Some(pem) = from("-----BEGIN EC PRIVATE KEY-----") {
        return SecretKey::from_sec1_pem(pem).ok();
    }
    SecretKey::from_pkcs8_pem(from("-----BEGIN PRIVATE KEY-----")?).ok()
}

/// The public key as a JWK, with the members of a thumbprint only (RFC 7638 §3.2).
fn public(secret: &SecretKey) -> Value {
    let point = secret.public_key().to_sec1_point(false);
    let coordinate =
        |bytes: Option<&p256::FieldBytes>| bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    json!({"crv": "P-256", "kty": "EC", "x": coordinate(point.x()), "y": coordinate(point.y())})
}

fn thumbprint(secret: &SecretKey) -> String {
    // RFC 7638 §3.3: the hash is over the members in sorted order, without spaces.
    URL_SAFE_NO_PAD.encode(Sha256::digest(public(secret).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda::skill::{AgentBuildError, AgentDefinition};
    use p256::ecdsa::VerifyingKey;
    use p256::ecdsa::signature::Verifier as _;
    use p256::pkcs8::{EncodePrivateKey as _, LineEnding};

    fn key() -> Key {
        let secret = SecretKey::from_slice(&[7; 32]).unwrap();
        let kid = thumbprint(&secret);
        Key { secret, kid }
    }

    fn agent(_: Option<&str>, _: &Settings) -> Result<AgentDefinition, AgentBuildError> {
        Ok(reference_agent::agent()?)
    }

    fn options() -> SignCard {
        SignCard {
            key: PathBuf::new(),
            out: None,
            print: Print::Card,
            input: None,
            url: None,
            token_file: None,
            public_url: Some("https://agent.example".to_owned()),
            card: Some("union".to_owned()),
            agent: None,
            kid: None,
            jku: None,
        }
    }

    #[test]
    fn pkcs8_and_sec1_files_give_the_same_key() {
        let key = key().secret;
        let pkcs8 = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        let sec1 = key.to_sec1_pem(LineEnding::CRLF).unwrap();
        // As `openssl ecparam -genkey` writes it.
        let block = "EC PARAMETERS-----";
        let params = format!("-----BEGIN {block}\nBggqhkjOPQMBBw==\n-----END {block}\n");
        for text in [pkcs8.as_str(), &sec1, &format!("{params}{}", sec1.as_str())] {
            assert_eq!(secret(text).as_ref(), Some(&key), "{text}");
        }
        for bad in [
            "",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        ] {
            assert!(secret(bad).is_none(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_signed_card_verifies_with_the_public_key_and_belongs_to_the_card() {
        let key = key();
        let verifier = VerifyingKey::from(&SigningKey::from(&key.secret));
        for card in cards_of(&options(), &agent).await.unwrap() {
            for unsigned in Unsigned::of(&card, &key.kid, None) {
                let input = unsigned.signing_input();
                let signature: Signature = SigningKey::from(&key.secret).sign(input.as_bytes());
                assert!(verifier.verify(input.as_bytes(), &signature).is_ok());
                assert!(verifier.verify(&input.as_bytes()[1..], &signature).is_err());
            }
            for signature in key.sign(&card, &options()) {
                assert!(signature.is_of(&card));
            }
            assert_eq!(key.sign(&card, &options()), key.sign(&card, &options()));
        }
    }

    #[test]
    fn the_key_id_is_the_thumbprint_of_the_public_key() {
        let key = key();
        let jwk = key.jwk();
        let own = format!(
            r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#,
            jwk["x"], jwk["y"]
        );
        assert_eq!(jwk["kid"], URL_SAFE_NO_PAD.encode(Sha256::digest(own)));
        assert!(jwk.get("d").is_none());
    }

    #[tokio::test]
    async fn a_card_without_a_public_url_is_not_signed() {
        let nowhere = SignCard {
            public_url: None,
            ..options()
        };
        let refused = cards_of(&nowhere, &agent).await.unwrap_err();
        assert_eq!(refused.to_string(), NO_URL);
    }
}
