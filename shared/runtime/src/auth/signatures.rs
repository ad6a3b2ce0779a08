//! Verifies the signatures of JWTs with `ring`, which the TLS stack links anyway.
//!
//! The library for JWTs brings no cryptography of its own: its two choices are a second one
//! beside that of TLS, or one in C.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    // This program makes no JWT.
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(SignatureVerifier::new(*algorithm, key)?)),
    // They read private keys.
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Lets the library for JWTs verify with `ring`. A program that chose another way keeps it.
pub(super) fn use_ring() {
    let _kept = PROVIDER.install_default();
}

/// How an algorithm verifies (RFC 7518 §3, RFC 8037 §3.1).
#[derive(Clone, Copy)]
enum Scheme {
    /// RSA keys have at least 2048 bits (RFC 7518 §3.3, §3.5).
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

/// HMAC has no scheme: the secret of an issuer is no key for its audience.
fn scheme(algorithm: Algorithm) -> Option<Scheme> {
    Some(match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Point(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Point(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Point(&ED25519),
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => return None,
    })
}

/// A key with the scheme that it is used in.
struct SignatureVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKeyKind,
}

impl SignatureVerifier {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        let scheme = scheme(algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
        // A key of one kind under the name of another.
        if key.family() != algorithm.family() {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Ok(Self {
            algorithm,
            scheme,
            key: key.kind().clone(),
        })
    }
}

impl Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.scheme, &self.key) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // `ring` refuses numbers with zeros in front, which some issuers write.
                let (n, e) = (without_zeros(n), without_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Point(method), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(method, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|it| **it == 0).count();
    number.get(zeros..).unwrap_or_default()
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
