//! Decides which requests the page accepts.
//!
//! A web page of another site must not reach the page, not even from another port of this
//! machine. So `Host` has to be the exact address of the agent, and `Origin`, if there is
//! one, has to be its origin. Everything but the files of the page also needs the token.

use http::{HeaderMap, StatusCode, header};
use std::net::SocketAddr;
use subtle::ConstantTimeEq as _;

/// The header with the token.
const TOKEN: &str = "x-a2a-local-token";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AdmissionError {
    #[error("not served under the host of the request")]
    Host,
    #[error("not served to other web pages")]
    Origin,
    #[error("the token is missing; open the address that the program printed")]
    Token,
}

impl AdmissionError {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }
}

/// What requests are compared with.
#[derive(Debug)]
pub(super) struct Admission {
    /// The address of the agent, as `Host` names it.
    pub(super) host: String,
    /// The token of the page.
    pub(super) token: String,
    origin: String,
    by_name: String,
}

impl Admission {
    pub(super) fn new(address: SocketAddr, token: String) -> Self {
        // HTTP leaves out the port 80.
        let host = match address {
            SocketAddr::V4(v4) if v4.port() == 80 => v4.ip().to_string(),
            SocketAddr::V6(v6) if v6.port() == 80 => format!("[{}]", v6.ip()),
            _ => address.to_string(),
        };
        Self {
            token,
            origin: format!("http://{host}"),
            by_name: host.replace(&address.ip().to_string(), "localhost"),
            host,
        }
    }

    /// Whether the request names `localhost` and the port of the agent.
    pub(super) fn is_by_name(&self, headers: &HeaderMap) -> bool {
        only(headers, header::HOST.as_str()).is_some_and(|host| host == self.by_name)
    }

    /// Admits a request for a file of the page.
    ///
    /// # Errors
    /// [`AdmissionError`] for another host or a page of another origin.
    pub(super) fn reads(&self, headers: &HeaderMap) -> Result<(), AdmissionError> {
        if only(headers, header::HOST.as_str()) != Some(self.host.as_str()) {
            return Err(AdmissionError::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if !origins.all(|origin| origin.as_bytes() == self.origin.as_bytes()) {
            return Err(AdmissionError::Origin);
        }
        // `none`: the user opened the address.
        let mut sites = headers.get_all("sec-fetch-site").iter();
        let is_own = |site: &str| ["same-origin", "none"].contains(&site);
        if !sites.all(|site| site.to_str().is_ok_and(is_own)) {
            return Err(AdmissionError::Origin);
        }
        Ok(())
    }

    /// Admits a request for anything else: it also needs the token.
    ///
    /// # Errors
    /// [`AdmissionError`] as for [`Admission::reads`], and without the token.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), AdmissionError> {
        self.reads(headers)?;
        let token = only(headers, TOKEN).ok_or(AdmissionError::Token)?;
        match token.as_bytes().ct_eq(self.token.as_bytes()).into() {
            true => Ok(()),
            false => Err(AdmissionError::Token),
        }
    }
}

/// The value of a header that occurs once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::{Admission, AdmissionError, TOKEN};
    use a2a_lambda_rows::each_row;
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let all = all.iter();
        all.map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        })
        .collect()
    }

    fn at(address: &str) -> Admission {
        Admission::new(address.parse().unwrap(), format!("token of {address}"))
    }

    #[test]
    fn only_the_exact_host_and_origin_pass() {
        let admission = at("127.0.0.1:8080");
        let own = ("host", "127.0.0.1:8080");
        assert_eq!(admission.reads(&headers(&[own])), Ok(()));
        let rows = [
            "localhost:8080",
            "127.0.0.1",
            "127.0.0.1:8081",
            "evil.example",
        ];
        each_row(rows, |host| {
            let refused = admission.reads(&headers(&[("host", host)]));
            assert_eq!(refused, Err(AdmissionError::Host), "{host}");
        });
        assert_eq!(
            admission.reads(&HeaderMap::new()),
            Err(AdmissionError::Host)
        );
        let from = |origin| admission.reads(&headers(&[own, ("origin", origin)]));
        assert_eq!(from("http://127.0.0.1:8080"), Ok(()));
        let rows = [
            "http://localhost:8080",
            "http://127.0.0.1:3000",
            "https://127.0.0.1:8080",
            "null",
            "",
        ];
        each_row(rows, |origin| {
            assert_eq!(from(origin), Err(AdmissionError::Origin), "{origin}");
        });
        for site in ["cross-site", "same-site"] {
            let refused = admission.reads(&headers(&[own, ("sec-fetch-site", site)]));
            assert_eq!(refused, Err(AdmissionError::Origin), "{site}");
        }
    }

    #[test]
    fn only_the_token_of_the_run_passes() {
        let admission = at("[::1]:8080");
        let own = ("host", "[::1]:8080");
        let given = |token: &str| admission.admit(&headers(&[own, (TOKEN, token)]));
        assert_eq!(given(&admission.token), Ok(()));
        assert_eq!(given(""), Err(AdmissionError::Token));
        assert_eq!(given(&at("127.0.0.1:1").token), Err(AdmissionError::Token));
        assert_eq!(
            admission.admit(&headers(&[own])),
            Err(AdmissionError::Token)
        );
    }

    #[test]
    fn a_browser_leaves_out_the_port_80() {
        assert_eq!(at("127.0.0.1:80").host, "127.0.0.1");
        assert!(at("127.0.0.1:8080").is_by_name(&headers(&[("host", "localhost:8080")])));
    }
}
