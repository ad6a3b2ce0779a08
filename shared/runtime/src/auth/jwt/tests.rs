use super::*;
use crate::auth::credentials::tests::keep;
use crate::auth::{ApiKey, Credentials};
use crate::store::api_keys::{ApiKeyRecord, ApiKeys};
use crate::store::memory::MemoryTable;
use crate::testing::TestClock;
use a2a_lambda_rows::each_row_async;
use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::FutureExt as _;
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The time of the tests, in seconds.
const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://id.example.com/";
const CONFIGURATION: &str = "https://id.example.com/.well-known/openid-configuration";
const KEYS: &str = "https://id.example.com/keys";

/// What an issuer answers to the request for its keys.
#[derive(Clone)]
enum Answer {
    Text(String),
    Failure,
    Never,
}

/// An issuer, which counts the requests for its keys.
struct FakeIssuer {
    keys: Mutex<Answer>,
    configured: String,
    asked: AtomicU32,
}

#[async_trait]
impl FetchKeys for FakeIssuer {
    async fn get(&self, url: &str) -> Result<Bytes, String> {
        if url == CONFIGURATION {
            let text = json!({"issuer": self.configured, "jwks_uri": KEYS}).to_string();
            return Ok(text.into());
        }
        assert_eq!(url, KEYS);
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.keys.lock().unwrap().clone();
        match answer {
            Answer::Text(text) => Ok(text.into()),
            Answer::Failure => Err("refused".to_owned()),
            Answer::Never => std::future::pending().await,
        }
    }
}

/// What signs: the tests do not use what they test.
enum Key {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
    Shared(Vec<u8>),
}

/// A key of the issuer that signs, and its public part.
struct Signer {
    key: Key,
    jwk: Value,
    algorithm: &'static str,
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn elliptic(kid: &str) -> Signer {
    on_curve(kid, "ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING)
}

fn on_curve(
    kid: &str,
    algorithm: &'static str,
    curve: &str,
    method: &'static EcdsaSigningAlgorithm,
) -> Signer {
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(method, der.as_ref(), &random).unwrap();
    let point = &pair.public_key().as_ref()[1..];
    let (x, y) = point.split_at(point.len() / 2);
    Signer {
        jwk: json!({
            "kty": "EC", "crv": curve, "kid": kid, "use": "sig",
            "x": base64url(x), "y": base64url(y),
        }),
        key: Key::Ecdsa(pair),
        algorithm,
    }
}

fn edwards(kid: &str) -> Signer {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let x = base64url(pair.public_key().as_ref());
    Signer {
        jwk: json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x}),
        key: Key::Edwards(pair),
        algorithm: "EdDSA",
    }
}

fn rsa(kid: &str) -> Signer {
    let stored: Value = serde_json::from_str(include_str!("test_key.json")).unwrap();
    let der = BASE64_STANDARD.decode(stored["private_der"].as_str().unwrap());
    Signer {
        key: Key::Rsa(RsaKeyPair::from_der(&der.unwrap()).unwrap()),
        jwk: json!({"kty": "RSA", "kid": kid, "n": stored["n"], "e": stored["e"]}),
        algorithm: "RS256",
    }
}

/// Someone who takes `secret` for the secret of an HMAC.
fn shared(secret: &[u8]) -> Signer {
    Signer {
        key: Key::Shared(secret.to_vec()),
        jwk: Value::Null,
        algorithm: "HS256",
    }
}

impl Signer {
    fn sign(&self, claims: &Value) -> String {
        let header = json!({"typ": "JWT", "alg": self.algorithm, "kid": self.jwk["kid"]});
        self.sign_under(&header, claims)
    }

    /// A token with this header, whatever it says.
    fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let text = |value: &Value| base64url(value.to_string().as_bytes());
        let message = format!("{}.{}", text(header), text(claims));
        let signature = self.signature(message.as_bytes());
        format!("{message}.{}", base64url(&signature))
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Rsa(pair) => {
                let method: &dyn RsaEncoding = match self.algorithm {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    _ => &RSA_PSS_SHA512,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(method, &random, message, &mut signature).unwrap();
                signature
            }
            Key::Ecdsa(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Edwards(pair) => pair.sign(message).as_ref().to_vec(),
            Key::Shared(secret) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
                hmac::sign(&key, message).as_ref().to_vec()
            }
        }
    }
}

fn set(signers: &[&Signer]) -> Answer {
    let keys: Vec<&Value> = signers.iter().map(|signer| &signer.jwk).collect();
    // A set may hold keys of kinds that this program does not know.
    let odd = json!({"kty": "future", "kid": "odd"});
    let keys: Vec<&Value> = keys.into_iter().chain([&odd]).collect();
    Answer::Text(json!({"keys": keys}).to_string())
}

/// An agent that trusts the fake issuer.
struct Agent {
    issuer: Arc<FakeIssuer>,
    clock: Arc<TestClock>,
    verifier: Arc<JwtVerifier>,
}

impl Agent {
    fn trusting(answer: Answer) -> Self {
        let issuer = Arc::new(FakeIssuer {
            keys: Mutex::new(answer),
            configured: ISSUER.to_owned(),
            asked: AtomicU32::new(0),
        });
        let clock = Arc::new(TestClock::without_timers(Timestamp::from_millis(
            NOW * 1000,
        )));
        let accepted = JwtIssuer {
            issuer: ISSUER.to_owned(),
            audience: "agent".to_owned(),
            types: vec!["JWT".to_owned()],
            tenant_claim: "tenant".to_owned(),
            scope_claims: vec!["scope".to_owned(), "scp".to_owned()],
            tier_claim: "tier".to_owned(),
        };
        let verifier = JwtVerifier::with(accepted, issuer.clone(), clock.clone());
        Self {
            verifier: Arc::new(verifier),
            issuer,
            clock,
        }
    }

    /// Changes which tokens are accepted.
    fn accepts(&mut self, change: impl FnOnce(&mut JwtIssuer)) {
        let mut accepted = self.verifier.issuer.clone();
        change(&mut accepted);
        let verifier = JwtVerifier::with(accepted, self.issuer.clone(), self.clock.clone());
        self.verifier = Arc::new(verifier);
    }

    async fn admits(&self, token: &str) -> bool {
        self.verifier.verify(token).await.is_ok()
    }

    fn answers(&self, answer: Answer) {
        *self.issuer.keys.lock().unwrap() = answer;
    }

    fn later(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn asked(&self) -> u32 {
        self.issuer.asked.load(Ordering::SeqCst)
    }
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "agent", "sub": "ann", "tenant": "acme",
        "exp": NOW + 600, "iat": NOW, "scope": "ops read", "tier": "gold",
    })
}

/// The claims with one of them changed, or removed by `null`.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

#[tokio::test]
async fn a_valid_token_names_the_caller_and_its_end() {
    for signer in [elliptic("one"), rsa("one")] {
        let agent = Agent::trusting(set(&[&signer]));
        let admitted = agent
            .verifier
            .verify(&signer.sign(&claims()))
            .await
            .unwrap();
        assert_eq!(admitted.caller.owner.tenant.as_str(), "acme");
        assert_eq!(admitted.caller.owner.subject.as_str(), "ann");
        assert_eq!(admitted.caller.tier, "gold");
        assert_eq!(
            admitted.caller.scopes,
            ["ops", "read"].map(str::to_owned).into()
        );
        let ends = Timestamp::from_millis((NOW + 600 + 60) * 1000);
        assert_eq!(admitted.ends, Some(ends));
    }
}

#[tokio::test]
async fn a_token_with_a_wrong_claim_is_refused() {
    let signer = elliptic("one");
    let agent = Agent::trusting(set(&[&signer]));
    let rows = [
        with("iss", json!("https://evil.example.com/")),
        with("iss", json!("https://id.example.com")),
        with("iss", json!([ISSUER, "https://evil.example.com/"])),
        with("iss", Value::Null),
        with("aud", json!("another")),
        with("aud", json!([])),
        with("aud", json!(["agent", 7])),
        with("aud", json!({"agent": "agent"})),
        with("aud", Value::Null),
        with("exp", json!(NOW - 60)),
        with("exp", json!("never")),
        with("exp", json!(-1)),
        with("exp", json!(1e300)),
        with("exp", Value::Null),
        with("nbf", json!(NOW + 61)),
        with("nbf", json!("now")),
        with("iat", json!(NOW + 61)),
        with("sub", Value::Null),
        with("sub", json!("")),
        with("sub", json!(7)),
        with("tenant", Value::Null),
        with("tenant", json!("")),
        with("tenant", json!("a#b")),
        with("tenant", json!("tasks")),
        with("tenant", json!(["acme"])),
        with("tenant", json!({"id": "acme"})),
        with("tier", json!("a#b")),
        with("tier", json!(1)),
    ];
    each_row_async(rows, async |wrong| {
        assert!(!agent.admits(&signer.sign(&wrong)).await, "{wrong}");
    })
    .await;
    let rows = [
        claims(),
        with("aud", json!(["other", "agent"])),
        with("exp", json!(NOW - 59)),
        with("nbf", json!(NOW + 59)),
        with("tier", Value::Null),
        with("scope", Value::Null),
    ];
    each_row_async(rows, async |right| {
        assert!(agent.admits(&signer.sign(&right)).await, "{right}");
    })
    .await;
}

/// A token whose header says what the attacker likes.
fn forged(header: &Value, signature: &[u8]) -> String {
    let text = |value: &Value| base64url(value.to_string().as_bytes());
    let signature = base64url(signature);
    format!("{}.{}.{signature}", text(header), text(&claims()))
}

#[tokio::test]
async fn a_token_with_an_algorithm_of_its_own_choice_is_refused() {
    let (ec, rsa) = (elliptic("ec"), rsa("rsa"));
    let agent = Agent::trusting(set(&[&ec, &rsa]));
    assert!(agent.admits(&ec.sign(&claims())).await && agent.admits(&rsa.sign(&claims())).await);
    each_row_async(["none", "None", "NONE", ""], async |name| {
        assert!(
            !agent
                .admits(&forged(&json!({"alg": name, "kid": "ec"}), b""))
                .await
        );
    })
    .await;
    // The public key is known to everyone; as the secret of an HMAC it must prove nothing.
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(rsa.jwk["n"].as_str().unwrap());
    let rows = [
        ("rsa", modulus.unwrap()),
        ("rsa", rsa.jwk["n"].as_str().unwrap().into()),
        ("rsa", rsa.jwk.to_string().into()),
        ("ec", ec.jwk["x"].as_str().unwrap().into()),
    ];
    each_row_async(rows, async |(kid, secret)| {
        let header = json!({"alg": "HS256", "kid": kid});
        let token = shared(&secret).sign_under(&header, &claims());
        assert!(!agent.admits(&token).await, "{kid}");
    })
    .await;
    // A key of one kind under the name of another.
    let named = |signer: &Signer, algorithm: &str, kid: &str| {
        signer.sign_under(&json!({"alg": algorithm, "kid": kid}), &claims())
    };
    assert!(!agent.admits(&named(&ec, "ES256", "rsa")).await);
    assert!(!agent.admits(&named(&ec, "RS256", "ec")).await);
    assert!(!agent.admits(&named(&rsa, "RS256", "ec")).await);
    assert!(!agent.admits(&named(&rsa, "ES256", "rsa")).await);
    let extended = json!({"alg": "ES256", "kid": "ec", "crit": ["exp"]});
    assert!(!agent.admits(&ec.sign_under(&extended, &claims())).await);
}

#[tokio::test]
async fn every_asymmetric_algorithm_is_verified() {
    let named = |algorithm| Signer {
        algorithm,
        ..rsa("one")
    };
    let curve = ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING);
    let signers = [
        named("RS256"),
        named("RS384"),
        named("RS512"),
        named("PS256"),
        named("PS384"),
        named("PS512"),
        elliptic("one"),
        on_curve("one", "ES384", curve.0, curve.1),
        edwards("one"),
    ];
    each_row_async(&signers, async |signer| {
        let agent = Agent::trusting(set(&[signer]));
        let token = signer.sign(&claims());
        assert!(agent.admits(&token).await, "{}", signer.algorithm);
        let (message, _) = token.rsplit_once('.').unwrap();
        let other = signer.signature(b"another message");
        let forged = format!("{message}.{}", base64url(&other));
        assert!(!agent.admits(&forged).await, "{}", signer.algorithm);
    })
    .await;
}

#[tokio::test]
async fn numbers_of_a_key_with_zeros_in_front_are_read() {
    let mut signer = rsa("one");
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(signer.jwk["n"].as_str().unwrap());
    let padded = [&[0][..], &modulus.unwrap()].concat();
    signer.jwk["n"] = json!(base64url(&padded));
    let exponent = BASE64_URL_SAFE_NO_PAD.decode(signer.jwk["e"].as_str().unwrap());
    signer.jwk["e"] = json!(base64url(&[&[0][..], &exponent.unwrap()].concat()));
    let agent = Agent::trusting(set(&[&signer]));
    assert!(agent.admits(&signer.sign(&claims())).await);
}

#[tokio::test]
async fn a_token_of_another_key_or_without_its_signature_is_refused() {
    let (known, other) = (elliptic("one"), elliptic("one"));
    let agent = Agent::trusting(set(&[&known]));
    let token = known.sign(&claims());
    assert!(agent.admits(&token).await);
    assert!(!agent.admits(&other.sign(&claims())).await);
    let (signed, _) = token.rsplit_once('.').unwrap();
    let (head, body) = signed.split_once('.').unwrap();
    let evil = BASE64_URL_SAFE_NO_PAD.encode(with("tenant", json!("evil")).to_string());
    let (_, signature) = token.rsplit_once('.').unwrap();
    let rows = [
        format!("{signed}."),
        signed.to_owned(),
        format!("{head}.{evil}.{signature}"),
        format!("{head}..{signature}"),
        format!(".{body}.{signature}"),
        format!("{token}.x"),
        "x.y.z".to_owned(),
        "…".to_owned(),
    ];
    each_row_async(rows, async |bad| {
        assert!(!agent.admits(&bad).await, "{bad}");
    })
    .await;
    // The key that the header itself brings counts for nothing.
    let header = json!({
        "alg": "ES256", "kid": "one",
        "jwk": other.jwk, "jku": "https://evil.example.com/keys",
    });
    let token = other.sign_under(&header, &claims());
    assert!(!agent.admits(&token).await);
}

#[tokio::test]
async fn a_symmetric_key_in_the_set_is_ignored() {
    let known = elliptic("one");
    let secret = BASE64_URL_SAFE_NO_PAD.encode("shared");
    let oct = json!({"kty": "oct", "kid": "oct", "k": secret});
    let keys = json!({"keys": [known.jwk, oct]}).to_string();
    let agent = Agent::trusting(Answer::Text(keys));
    let header = json!({"alg": "HS256", "kid": "oct"});
    let token = shared(b"shared").sign_under(&header, &claims());
    assert!(!agent.admits(&token).await);
    assert!(agent.admits(&known.sign(&claims())).await);
}

#[tokio::test]
async fn an_rsa_key_of_1024_bits_proves_nothing() {
    let small: Value = serde_json::from_str(include_str!("test_small_key.json")).unwrap();
    let jwk = json!({"kty": "RSA", "kid": "small", "n": small["n"], "e": small["e"]});
    let key = DecodingKey::from_jwk(&serde_json::from_value(jwk.clone()).unwrap()).unwrap();
    let token = small["token"].as_str().unwrap();
    assert!(!is_signed(token, Algorithm::RS256, &key));
    let known = elliptic("one");
    let keys = json!({"keys": [jwk, known.jwk]}).to_string();
    let agent = Agent::trusting(Answer::Text(keys));
    assert!(!agent.admits(token).await);
    // Without a key id a token fits a set with one key: the small one does not count.
    let header = json!({"alg": "ES256"});
    assert!(agent.admits(&known.sign_under(&header, &claims())).await);
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_accepted_after_a_minute() {
    let (old, new) = (elliptic("old"), elliptic("new"));
    let agent = Agent::trusting(set(&[&old]));
    assert!(agent.admits(&old.sign(&claims())).await);
    agent.answers(set(&[&new]));
    for _ in 0..10 {
        assert!(!agent.admits(&new.sign(&claims())).await);
    }
    assert_eq!(agent.asked(), 1);
    agent.later(Duration::from_secs(60));
    assert!(agent.admits(&new.sign(&claims())).await);
    assert!(!agent.admits(&old.sign(&claims())).await);
    assert_eq!(agent.asked(), 2);
}

#[tokio::test]
async fn the_last_good_keys_stay_while_the_issuer_is_down_or_talks_nonsense() {
    let signer = elliptic("one");
    let agent = Agent::trusting(set(&[&signer]));
    let token = signer.sign(&with("exp", json!(NOW + 100_000)));
    assert!(agent.admits(&token).await);
    let rows = [
        Answer::Failure,
        Answer::Text("<html>".to_owned()),
        Answer::Text("{}".to_owned()),
        Answer::Text(r#"{"keys":[]}"#.to_owned()),
        Answer::Text(r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#.to_owned()),
    ];
    each_row_async(rows, async |bad| {
        agent.answers(bad);
        agent.later(Duration::from_secs(3_600));
        let before = agent.asked();
        for _ in 0..5 {
            assert!(agent.admits(&token).await);
        }
        assert_eq!(agent.asked(), before + 1);
    })
    .await;
}

#[tokio::test]
async fn a_withdrawn_key_ends_in_a_day_when_the_issuer_is_kept_away() {
    let signer = elliptic("one");
    let agent = Agent::trusting(set(&[&signer]));
    let token = signer.sign(&with("exp", json!(NOW + 200_000)));
    assert!(agent.admits(&token).await);
    agent.answers(Answer::Failure);
    agent.later(Duration::from_secs(24 * 3_600 - 1));
    assert!(agent.admits(&token).await);
    agent.later(Duration::from_secs(1));
    let refused = agent.verifier.verify(&token).await;
    assert!(matches!(refused, Err(AuthError::Unavailable(_))));
    agent.answers(set(&[&signer]));
    agent.later(Duration::from_secs(60));
    assert!(agent.admits(&token).await);
}

#[tokio::test]
async fn an_id_token_does_not_pass_as_an_access_token() {
    let signer = elliptic("one");
    let mut agent = Agent::trusting(set(&[&signer]));
    let header = |name: Value| json!({"typ": name, "alg": "ES256", "kid": "one"});
    let untyped = json!({"alg": "ES256", "kid": "one"});
    let token = |header| signer.sign_under(&header, &claims());
    for right in ["JWT", "jwt", "application/jwt"] {
        assert!(agent.admits(&token(header(json!(right)))).await, "{right}");
    }
    assert!(agent.admits(&token(untyped.clone())).await);
    let rows = [json!("id+jwt"), json!("at+jwt"), json!(""), json!(7)];
    each_row_async(rows, async |wrong| {
        assert!(
            !agent.admits(&token(header(wrong.clone()))).await,
            "{wrong}"
        );
    })
    .await;
    agent.accepts(|issuer| issuer.types = vec!["at+jwt".to_owned()]);
    assert!(agent.admits(&token(header(json!("at+JWT")))).await);
    assert!(!agent.admits(&token(untyped)).await);
}

#[tokio::test]
async fn a_claim_that_no_setting_names_gives_no_scope_or_tier() {
    let signer = elliptic("one");
    let mut agent = Agent::trusting(set(&[&signer]));
    agent.accepts(|issuer| {
        issuer.scope_claims = vec!["https://acme.example/roles".to_owned()];
        issuer.tier_claim = "plan".to_owned();
    });
    let mut claims = with("https://acme.example/roles", json!(["read", "write"]));
    claims["plan"] = json!("silver");
    let admitted = agent.verifier.verify(&signer.sign(&claims)).await.unwrap();
    let scopes = ["read", "write"].map(str::to_owned).into();
    assert_eq!(admitted.caller.scopes, scopes);
    assert_eq!(admitted.caller.tier, "silver");
}

#[tokio::test]
async fn callers_with_known_keys_do_not_wait_for_a_fetch() {
    let signer = elliptic("one");
    let agent = Agent::trusting(set(&[&signer]));
    let token = signer.sign(&with("exp", json!(NOW + 1_000)));
    assert!(agent.admits(&token).await);
    agent.answers(Answer::Never);
    agent.later(Duration::from_secs(301));
    let mut fetches = Box::pin(agent.verifier.verify(&token));
    assert!((&mut fetches).now_or_never().is_none());
    let another = agent.verifier.verify(&token).now_or_never();
    assert!(another.is_some_and(|admitted| admitted.is_ok()));
    assert_eq!(agent.asked(), 2);
}

#[tokio::test]
async fn concurrent_callers_share_one_fetch() {
    let signer = elliptic("one");
    let agent = Agent::trusting(set(&[&signer]));
    let token = signer.sign(&claims());
    let calls = (0..20).map(|_| agent.admits(&token));
    assert!(
        futures::future::join_all(calls)
            .await
            .into_iter()
            .all(|it| it)
    );
    assert_eq!(agent.asked(), 1);
}

#[tokio::test]
async fn without_any_keys_a_token_can_neither_be_accepted_nor_refused() {
    let agent = Agent::trusting(Answer::Failure);
    let token = elliptic("one").sign(&claims());
    let unknown = agent.verifier.verify(&token).await;
    assert!(matches!(unknown, Err(AuthError::Unavailable(_))));
}

#[tokio::test]
async fn the_configuration_of_another_issuer_is_not_used() {
    let signer = elliptic("one");
    let mut agent = Agent::trusting(set(&[&signer]));
    let issuer = Arc::new(FakeIssuer {
        keys: Mutex::new(set(&[&signer])),
        configured: "https://evil.example.com/".to_owned(),
        asked: AtomicU32::new(0),
    });
    let accepted = agent.verifier.issuer.clone();
    agent.verifier = Arc::new(JwtVerifier::with(accepted, issuer, agent.clock.clone()));
    assert!(!agent.admits(&signer.sign(&claims())).await);
}

#[tokio::test]
async fn api_keys_work_while_the_issuer_hangs() {
    let agent = Agent::trusting(Answer::Never);
    let table = Arc::new(MemoryTable::default());
    let (store, key) = (ApiKeys::new(table.clone()), ApiKey::random("").unwrap());
    let record = ApiKeyRecord {
        id: key.id().clone(),
        hash: key.hash(),
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann").unwrap(),
        },
        tier: None,
        scopes: BTreeSet::new(),
        created_at: Timestamp::default(),
        expires_at: None,
        note: None,
    };
    keep(&store, &record, "").await;
    let mut credentials = Credentials::new(table, agent.clock.clone());
    let Agent { verifier, .. } = agent;
    credentials = credentials.with_jwt(Arc::into_inner(verifier).unwrap());
    let token = elliptic("one").sign(&claims());
    let mut waits = Box::pin(credentials.admit(Some(&token)));
    assert!((&mut waits).now_or_never().is_none());
    let admitted = credentials.admit(Some(key.reveal())).now_or_never();
    assert!(admitted.is_some_and(|admitted| admitted.is_ok()));
}
