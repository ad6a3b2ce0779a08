//! Verifies the signatures of JWTs with `ring`, which the TLS stack links anyway.
//!
//! The library for JWTs has no cryptography of its own. Its features link a second one beside
//! that of TLS, and a provider for it would be one for the whole process, also for skills.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use std::ops::RangeInclusive;

/// The bytes of an RSA modulus: 2,048 bits (RFC 7518 §3.3, §3.5) to 8,192.
const MODULUS: RangeInclusive<usize> = 256..=1024;

/// How an algorithm verifies (RFC 7518 §3, RFC 8037 §3.1).
#[derive(Clone, Copy)]
pub(super) enum Scheme {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

/// HMAC has no scheme: the secret of an issuer is no key for its audience, since a key that
/// verifies could sign.
pub(super) fn scheme(algorithm: Algorithm) -> Option<Scheme> {
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
        // The type may get others. None is accepted before this table has it.
        _ => return None,
    })
}

/// Whether `key` has signed the token with this algorithm (RFC 7515 §5.2). A key of one kind
/// under the name of another has signed nothing.
pub(super) fn is_signed(token: &str, algorithm: Algorithm, key: &DecodingKey) -> bool {
    let Some((message, signature)) = token.rsplit_once('.') else {
        return false;
    };
    let Ok(signature) = BASE64_URL_SAFE_NO_PAD.decode(signature) else {
        return false;
    };
    if key.family() != algorithm.family() {
        return false;
    }
    let message = message.as_bytes();
    let result = match (scheme(algorithm), key.kind()) {
        (Some(Scheme::Rsa(parameters)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
            // `ring` refuses numbers with zeros in front, which some issuers write.
            let (n, e) = (without_zeros(n), without_zeros(e));
            RsaPublicKeyComponents { n, e }.verify(parameters, message, &signature)
        }
        (Some(Scheme::Point(method)), DecodingKeyKind::SecretOrDer(point)) => {
            UnparsedPublicKey::new(method, point).verify(message, &signature)
        }
        _ => return false,
    };
    result.is_ok()
}

/// Whether an RSA key with this modulus, in the form of a JWK, can verify.
pub(super) fn is_rsa_size(modulus: &str) -> bool {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(modulus);
    bytes.is_ok_and(|bytes| MODULUS.contains(&without_zeros(&bytes).len()))
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|it| **it == 0).count();
    number.get(zeros..).unwrap_or_default()
}
