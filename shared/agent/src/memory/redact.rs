//! Replaces personal data and secrets in a text before it is stored.
//!
//! Each find becomes `[redacted:<kind>]`. The time is linear in the length of the text: the
//! finders look ahead a fixed distance, or move over what they looked at.
//!
//! The rules prefer a wrong find to a leak where both look the same, with these limits:
//!
//! - Four numbers up to 255 with dots are an IPv4 address, also where a version is meant.
//!   `v1.2.3.4` and numbers with three or five parts are not. Addresses that identify no
//!   one stay: unspecified, loopback, and IPv4 from 240 on (masks, broadcast).
//! - A telephone number needs its `+`. Cards and IBANs need a correct checksum, the length
//!   of their issuer or country, and the usual groups. A US social security number needs
//!   its hyphens.
//! - Dates, times, UUIDs, hashes, and numbers of orders stay.
//!
//! `a2a_lambda_model::redact` has another task: it removes whatever an error text quotes,
//! and knows no kinds of data. So it cannot be used here.

mod addresses;
mod numbers;
mod plain;
mod scan;
mod secrets;

#[cfg(test)]
mod tests;

use plain::PlainText;
use std::ops::Range;

/// A text without personal data and secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redacted {
    /// The text, with `[redacted:<kind>]` in place of each find.
    pub(crate) text: String,
    /// How many finds were replaced.
    pub(crate) count: usize,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sensitive {
    PrivateKey,
    Jwt,
    ApiKey,
    Email,
    Iban,
    Card,
    Ip,
    Ssn,
    Phone,
}

impl Sensitive {
    const fn label(self) -> &'static str {
        match self {
            Self::PrivateKey => "private-key",
            Self::Jwt => "jwt",
            Self::ApiKey => "api-key",
            Self::Email => "email",
            Self::Iban => "iban",
            Self::Card => "card",
            Self::Ip => "ip",
            Self::Ssn => "ssn",
            Self::Phone => "phone",
        }
    }
}

/// Bytes of the text, and what they are. Both ends are between characters.
type Find = (Range<usize>, Sensitive);

/// Replaces what the finders find. Redacting the result again changes nothing.
pub(crate) fn redact(text: &str) -> Redacted {
    let plain = PlainText::of(text);
    let mut finds = Vec::new();
    secrets::private_keys(plain.as_str(), &mut finds);
    secrets::tokens(plain.as_str(), &mut finds);
    addresses::emails(plain.as_str(), &mut finds);
    addresses::ips(plain.as_str(), &mut finds);
    numbers::ibans(plain.as_str(), &mut finds);
    numbers::cards_and_ssns(plain.as_str(), &mut finds);
    numbers::phones(plain.as_str(), &mut finds);
    for (range, _) in &mut finds {
        *range = plain.original(range);
    }
    // Of two overlapping finds the one that starts first names the kind, or the longer one.
    finds.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
    replace(text, &finds)
}

fn replace(text: &str, finds: &[Find]) -> Redacted {
    let mut kept = String::with_capacity(text.len());
    let (mut end, mut count) = (0, 0);
    for (range, kind) in finds {
        if range.start < end {
            // The rest of an overlapping find would otherwise stay readable.
            end = end.max(range.end);
            continue;
        }
        kept.push_str(text.get(end..range.start).unwrap_or_default());
        kept.push_str("[redacted:");
        kept.push_str(kind.label());
        kept.push(']');
        end = range.end;
        count += 1;
    }
    kept.push_str(text.get(end..).unwrap_or_default());
    Redacted { text: kept, count }
}
