//! Checks URLs that clients name.
//!
//! A URL must have one plain form. A form that programs read differently is refused,
//! so that the host which is checked here is the host to which the client connects.

use super::address::is_public;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most bytes of a URL.
const MAX: usize = 2048;
/// Most bytes of a host name (RFC 1035).
const MAX_NAME: usize = 253;
/// Last labels of names that resolve inside a network.
const INSIDE: [&str; 13] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    // Services of Kubernetes, as `kubernetes.default.svc`.
    "svc",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
];

/// Which addresses requests may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressPolicy {
    /// HTTPS to public addresses.
    #[default]
    Public,
    /// HTTPS to public addresses, and HTTP to this machine, where the conformance kits
    /// have their webhooks.
    Loopback,
    /// HTTP and HTTPS to any address, for tests in a private network.
    Anything,
}

impl AddressPolicy {
    /// Whether a connection to `address` is allowed. `is_encrypted` is true for HTTPS.
    #[must_use]
    pub(crate) fn allows(self, address: IpAddr, is_encrypted: bool) -> bool {
        match self {
            Self::Public => is_encrypted && is_public(address),
            Self::Loopback => address.is_loopback() || is_encrypted && is_public(address),
            Self::Anything => true,
        }
    }
}

/// Why a URL is refused. The text may be shown to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is not an absolute URL in the plain form.
    #[error("must be an absolute URL of at most 2048 printable ASCII characters")]
    Form,
    /// Its scheme is not `https`.
    #[error("must be an https URL")]
    Scheme,
    /// It contains a user name or password.
    #[error("must not hold a user name or password")]
    UserInfo,
    /// It has a fragment.
    #[error("must not have a fragment")]
    Fragment,
    /// The host is not a domain name or a canonical IP address.
    #[error("must name its host as a domain name or as a canonical IP address")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("must have a port of 1 to 65535, or none")]
    Port,
    /// The host is not on the public Internet.
    #[error("must name a public host")]
    NotPublic,
}

/// A URL with a checked form. Its host is allowed as far as that is known without the
/// DNS; `Fetcher` checks the resolved addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundUrl {
    text: String,
    host: String,
    authority: String,
    reach: AddressPolicy,
}

impl OutboundUrl {
    /// Checks a URL.
    ///
    /// # Errors
    /// The first [`UrlError`] that is found.
    pub fn parse(text: &str, reach: AddressPolicy) -> Result<Self, UrlError> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
        if text.len() > MAX || !text.bytes().all(plain) {
            return Err(UrlError::Form);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Form)?;
        let is_encrypted = match scheme {
            "https" => true,
            "http" if reach != AddressPolicy::Public => false,
            _ => return Err(UrlError::Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).ok_or(UrlError::Form)?;
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        if path.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (host, address) = host(authority)?;
        match address {
            None => check_host(&host, reach, is_encrypted)?,
            Some(address) if reach.allows(address, is_encrypted) => {}
            Some(_) => return Err(UrlError::NotPublic),
        }
        Ok(Self {
            text: text.to_owned(),
            host,
            authority: authority.to_ascii_lowercase(),
            reach,
        })
    }

    /// The URL as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host without its port, in one spelling.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The host, and its port if the URL has one.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The addresses for which it was checked.
    pub(crate) const fn reach(&self) -> AddressPolicy {
        self.reach
    }
}

/// Checks a host name before it is resolved.
fn check_host(name: &str, reach: AddressPolicy, is_encrypted: bool) -> Result<(), UrlError> {
    let below = |suffix: &str| {
        let rest = name.strip_suffix(suffix);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let here = below("localhost");
    match reach {
        AddressPolicy::Anything => Ok(()),
        AddressPolicy::Loopback if here => Ok(()),
        _ if !is_encrypted => Err(UrlError::Scheme),
        // Each network resolves a name without a dot in its own way.
        _ if !name.contains('.') || INSIDE.iter().any(|suffix| below(suffix)) => {
            Err(UrlError::NotPublic)
        }
        _ => Ok(()),
    }
}

/// The host in one spelling, and its address if it is one.
fn host(authority: &str) -> Result<(String, Option<IpAddr>), UrlError> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or(UrlError::Host)?;
        if !port.is_empty() {
            check_port(port.strip_prefix(':').ok_or(UrlError::Host)?)?;
        }
        // A zone (`%eth0`) does not parse.
        let address: Ipv6Addr = address.parse().map_err(|_| UrlError::Host)?;
        return Ok((address.to_string(), Some(address.into())));
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (authority, None),
    };
    let address = name.parse::<Ipv4Addr>().ok();
    if address.is_none() {
        check_name(name)?;
    }
    if let Some(port) = port {
        check_port(port)?;
    }
    // An IPv4 address has one spelling only.
    Ok((name.to_ascii_lowercase(), address.map(IpAddr::V4)))
}

fn check_port(text: &str) -> Result<(), UrlError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(()),
        _ => Err(UrlError::Port),
    }
}

/// Checks that a domain name has only labels of letters, digits and hyphens. Names of
/// other scripts must have their ASCII form (`xn--`).
///
/// A last label that begins with a digit is refused: some programs read such a name
/// as an IPv4 address (`0x7f.1`, `2130706433`, `127.1`), and no top-level domain
/// begins with a digit. A trailing dot is refused too, since it is a second form of
/// the same name.
fn check_name(name: &str) -> Result<(), UrlError> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|c: char| c.is_ascii_digit());
    if name.len() > MAX_NAME || numeric || !name.split('.').all(label) {
        return Err(UrlError::Host);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
