//! Protects a program with development identities from web pages.
//!
//! Such identities need no secret, so a web page in the user's browser must not
//! reach the agent. A page could use a name of its own that resolves to loopback
//! (DNS rebinding): then `Host` has that name. Or it could send a cross-site request
//! that needs no preflight: then `Origin` and `Sec-Fetch-Endpoint` show the page's site.
//! A page cannot forge these three headers.

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::net::IpAddr;

/// The hosts a request may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any host: the user listens on an address beyond loopback.
    Any,
    /// Loopback addresses, `localhost`, and the host of the public URL.
    Local {
        /// The host of the public URL.
        public: Option<String>,
    },
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// `Host` names another host.
    Host,
    /// A web page of another site sent it.
    Page,
}

impl Hosts {
    /// Allows loopback, and the host of `public_url`.
    #[must_use]
    pub fn local(public_url: &str) -> Self {
        let public = public_url.parse::<Uri>().ok();
        Self::Local {
            public: public.and_then(|url| url.host().map(str::to_ascii_lowercase)),
        }
    }

    /// Checks that a request names one of the hosts and, unless it only reads, that no
    /// web page of another site sent it. A request without any of these headers passes:
    /// it does not come from a browser.
    ///
    /// # Errors
    /// [`HostError`] when it fails a check.
    pub fn admit(&self, method: &Method, headers: &HeaderMap) -> Result<(), HostError> {
        let host_header = headers.get(header::HOST);
        if host_header.is_some_and(|host_header| !self.serve(host_header)) {
            return Err(HostError::Host);
        }
        // Another site's page can send these methods, but cannot read the response.
        if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
            return Ok(());
        }
        let site = headers.get("sec-fetch-site");
        let cross = site.is_some_and(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"));
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if cross || !origins.all(|origin| self.is_own_page(origin, host_header)) {
            return Err(HostError::Page);
        }
        Ok(())
    }

    fn serve(&self, host_header: &HeaderValue) -> bool {
        match self {
            Self::Any => true,
            Self::Local { public } => host(host_header)
                .is_some_and(|host| is_loopback(&host) || public.as_ref() == Some(&host)),
        }
    }

    /// Whether a page of this origin belongs to this machine or to the agent's own host.
    /// The origin `null` belongs to neither.
    fn is_own_page(&self, origin: &HeaderValue, host_header: Option<&HeaderValue>) -> bool {
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
        let own_host = match self {
            Self::Any => host_header.and_then(host),
            Self::Local { public } => public.clone(),
        };
        is_loopback(&page) || own_host == Some(page)
    }
}

impl HostError {
    /// The status of the response.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            // RFC 9110 §15.5.20: the target is not a host of this server.
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Page => StatusCode::FORBIDDEN,
        }
    }

    /// The reason in the log. A2A defines none, since the sender is not an A2A client.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Host => "FOREIGN_HOST",
            Self::Page => "FOREIGN_PAGE",
        }
    }

    /// The text of the response.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Host => {
                "not served under the host of the request: start the agent with `A2A_PUBLIC_URL` \
                 set to the address that its callers use\n"
            }
            Self::Page => "not served to web pages of other sites\n",
        }
    }
}

/// The host in a `Host` header, in lower case and without its port.
#[must_use]
pub fn host(value: &HeaderValue) -> Option<String> {
    let authority: Authority = value.to_str().ok()?.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

/// Whether `host` is `localhost` or a loopback address.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{HostError, Hosts};
    use a2a_lambda_rows::each_row;
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
    fn a_request_under_a_foreign_host_name_is_refused() {
        let admit = |host: &str| ours().admit(&Method::GET, &headers(&[(header::HOST, host)]));
        let rows = [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:8080",
            "agent.example",
        ];
        each_row(rows, |host| {
            assert_eq!(admit(host), Ok(()), "{host}");
        });
        let cases = [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:8080",
            "",
            "not a host",
        ];
        each_row(cases, |host| {
            assert_eq!(admit(host), Err(HostError::Host), "{host}");
        });
        assert_eq!(ours().admit(&Method::POST, &HeaderMap::new()), Ok(()));
    }

    #[test]
    fn a_page_of_another_site_cannot_write() {
        let from = |hosts: &Hosts, method: &Method, origin: &str| {
            let host = (header::HOST, "agent.example:8080");
            hosts.admit(method, &headers(&[host, (header::ORIGIN, origin)]))
        };
        let rows = [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:5173",
            "https://agent.example",
        ];
        each_row(rows, |own| {
            for hosts in [ours(), Hosts::Any] {
                assert_eq!(from(&hosts, &Method::POST, own), Ok(()), "{own}");
            }
        });
        let cases = [
            "https://evil.example",
            "https://agent.example.evil.example",
            "http://10.0.0.1",
            "null",
            "",
        ];
        each_row(cases, |other| {
            for hosts in [ours(), Hosts::Any] {
                for method in [Method::POST, Method::DELETE] {
                    let refused = from(&hosts, &method, other);
                    assert_eq!(refused, Err(HostError::Page), "{method} {other}");
                }
                assert_eq!(from(&hosts, &Method::GET, other), Ok(()), "{other}");
            }
        });
    }

    #[test]
    fn a_cross_site_request_of_a_browser_cannot_write() {
        let site = |value: &str| {
            let name = HeaderName::from_static("sec-fetch-site");
            ours().admit(&Method::POST, &headers(&[(name, value)]))
        };
        assert_eq!(site("cross-site"), Err(HostError::Page));
        for fine in ["none", "same-origin", "same-site"] {
            assert_eq!(site(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn an_agent_open_to_other_machines_answers_under_any_host() {
        let named = headers(&[(header::HOST, "evil.example")]);
        assert_eq!(Hosts::Any.admit(&Method::POST, &named), Ok(()));
    }
}
