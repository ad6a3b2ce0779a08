//! Which names this machine is called by.
//!
//! Development identities need no secret, so a web page in the user's browser
//! must not reach the agent by a name of its own that resolves to loopback (DNS
//! rebinding). The name stands in the `Host` header, which a page cannot forge.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use std::net::{IpAddr, SocketAddr};

/// The hosts a request may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any: the user has asked for an address beyond loopback.
    Any,
    /// Loopback addresses, `localhost`, and the host of the public URL.
    Local {
        /// The host of the public URL.
        public: Option<String>,
    },
}

impl Hosts {
    /// The hosts of an agent that listens on `address` and is published at
    /// `public_url`.
    #[must_use]
    pub fn of(address: SocketAddr, public_url: &str) -> Self {
        if !address.ip().is_loopback() {
            return Self::Any;
        }
        let public = public_url.parse::<Uri>().ok();
        Self::Local {
            public: public.and_then(|url| url.host().map(str::to_ascii_lowercase)),
        }
    }

    /// Whether a request with these headers is for us. One without a host comes
    /// from no browser.
    #[must_use]
    pub fn serve(&self, headers: &HeaderMap) -> bool {
        let (Self::Local { public }, Some(named)) = (self, headers.get(header::HOST)) else {
            return true;
        };
        let named = named.to_str().ok().and_then(|text| text.parse().ok());
        named.is_some_and(|named: Authority| {
            let host = named.host().to_ascii_lowercase();
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost"
                || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
                || public.as_ref() == Some(&host)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Hosts;
    use http::{HeaderMap, HeaderValue, header};

    fn named(host: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())])
    }

    #[test]
    fn a_page_that_calls_this_machine_by_a_name_of_its_own_is_not_served() {
        let hosts = Hosts::of("127.0.0.1:80".parse().unwrap(), "https://Agent.example/a2a");
        let ours = [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "agent.example",
        ];
        for host in ours {
            assert!(hosts.serve(&named(host)), "{host}");
        }
        let others = [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:8080",
            "",
            "not a host",
        ];
        for host in others {
            assert!(!hosts.serve(&named(host)), "{host}");
        }
        assert!(hosts.serve(&HeaderMap::new()));
    }

    #[test]
    fn an_agent_that_was_opened_to_others_is_served_under_any_name() {
        let hosts = Hosts::of("0.0.0.0:80".parse().unwrap(), "http://127.0.0.1");
        assert!(hosts.serve(&named("evil.example")));
    }
}
