//! Whom a program with development identities serves.
//!
//! Such identities need no secret, so a web page in the user's browser must not
//! reach the agent. It can try by a name of its own that resolves to loopback
//! (DNS rebinding), which shows in `Host`, or by a request that needs no
//! consent, which shows in `Origin` and `Sec-Fetch-Site`. A page forges none of
//! the three.

use super::Body;
use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use std::net::IpAddr;

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

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// It names another host.
    Host,
    /// A web page of another site sends it.
    Page,
}

impl Hosts {
    /// Loopback, and the host of `public_url`.
    #[must_use]
    pub fn local(public_url: &str) -> Self {
        let public = public_url.parse::<Uri>().ok();
        Self::Local {
            public: public.and_then(|url| url.host().map(str::to_ascii_lowercase)),
        }
    }

    /// Whether a request is for us: it names one of the hosts, and if it can
    /// change something, no web page of another site sends it. One without any
    /// of these headers comes from no browser.
    ///
    /// # Errors
    /// [`Foreign`] when it is not.
    pub fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<(), Foreign> {
        let named = headers.get(header::HOST);
        if named.is_some_and(|named| !self.serve(named)) {
            return Err(Foreign::Host);
        }
        // A page can send others, and read no answer.
        if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
            return Ok(());
        }
        let site = headers.get("sec-fetch-site");
        let cross = site.is_some_and(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"));
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if cross || !origins.all(|origin| self.is_own_page(origin, named)) {
            return Err(Foreign::Page);
        }
        Ok(())
    }

    fn serve(&self, named: &HeaderValue) -> bool {
        match self {
            Self::Any => true,
            Self::Local { public } => {
                host(named).is_some_and(|host| is_loopback(&host) || public.as_ref() == Some(&host))
            }
        }
    }

    /// Whether a page of this origin is one of this machine, or of the agent's
    /// own host. `null` is neither.
    fn is_own_page(&self, origin: &HeaderValue, named: Option<&HeaderValue>) -> bool {
        let url = origin
            .to_str()
            .ok()
            .and_then(|text| text.parse::<Uri>().ok());
        let Some(page) = url
            .as_ref()
            .and_then(Uri::host)
            .map(str::to_ascii_lowercase)
        else {
            return false;
        };
        let own = match self {
            Self::Any => named.and_then(host),
            Self::Local { public } => public.clone(),
        };
        is_loopback(&page) || own == Some(page)
    }
}

impl Foreign {
    /// The status of its answer (RFC 9110 §15.5.20 for another host).
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Page => StatusCode::FORBIDDEN,
        }
    }

    /// The text of its answer.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Host => "not served under the host of the request\n",
            Self::Page => "not served to web pages of other sites\n",
        }
    }

    /// The answer: plain text, since the sender is no client of the protocol.
    pub(super) fn answer(self) -> Response<Body> {
        let text = Bytes::from_static(self.text().as_bytes());
        let mut response = Response::new(Full::from(text).boxed_unsync());
        *response.status_mut() = self.status();
        response
    }
}

/// The host that a `Host` header names, without its port.
#[must_use]
pub fn host(value: &HeaderValue) -> Option<String> {
    let named: Authority = value.to_str().ok()?.parse().ok()?;
    Some(named.host().to_ascii_lowercase())
}

/// Whether a host is this machine by its own names.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Foreign, Hosts};
    use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        let all = all.iter();
        all.map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn ours() -> Hosts {
        Hosts::local("https://Agent.example/a2a")
    }

    #[test]
    fn a_page_that_calls_this_machine_by_a_name_of_its_own_is_not_served() {
        let admit = |host: &str| ours().admit(&Method::GET, &headers(&[(header::HOST, host)]));
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "agent.example",
        ] {
            assert_eq!(admit(host), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:8080",
            "",
            "not a host",
        ] {
            assert_eq!(admit(host), Err(Foreign::Host), "{host}");
        }
        assert_eq!(ours().admit(&Method::POST, &HeaderMap::new()), Ok(()));
    }

    #[test]
    fn a_page_of_another_site_changes_nothing() {
        let from = |hosts: &Hosts, method: &Method, origin: &str| {
            let host = (header::HOST, "agent.example:8080");
            hosts.admit(method, &headers(&[host, (header::ORIGIN, origin)]))
        };
        for own in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:5173",
            "https://agent.example",
        ] {
            for hosts in [ours(), Hosts::Any] {
                assert_eq!(from(&hosts, &Method::POST, own), Ok(()), "{own}");
            }
        }
        for other in [
            "https://evil.example",
            "https://agent.example.evil.example",
            "http://10.0.0.1",
            "null",
            "",
        ] {
            for hosts in [ours(), Hosts::Any] {
                for method in [Method::POST, Method::DELETE] {
                    let refused = from(&hosts, &method, other);
                    assert_eq!(refused, Err(Foreign::Page), "{method} {other}");
                }
                assert_eq!(from(&hosts, &Method::GET, other), Ok(()), "{other}");
            }
        }
    }

    #[test]
    fn what_a_browser_calls_cross_site_changes_nothing() {
        let site = |value: &str| {
            let name = HeaderName::from_static("sec-fetch-site");
            ours().admit(&Method::POST, &headers(&[(name, value)]))
        };
        assert_eq!(site("cross-site"), Err(Foreign::Page));
        for fine in ["none", "same-origin", "same-site"] {
            assert_eq!(site(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn an_agent_that_was_opened_to_others_is_served_under_any_name() {
        let named = headers(&[(header::HOST, "evil.example")]);
        assert_eq!(Hosts::Any.admit(&Method::POST, &named), Ok(()));
    }
}
