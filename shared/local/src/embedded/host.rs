//! Checks that a request to the embedded services comes from a program on this
//! machine.

use a2a_lambda::origin::{HostError, host, is_loopback};
use http::{HeaderMap, header};

/// Refuses requests of web pages. A request passes if its `Host` is a loopback host and
/// it has no `Origin`: it comes from a program on this machine, or from a link that the
/// user opened.
///
/// # Errors
/// [`HostError`] when it does not pass.
pub(crate) fn only_programs_here(headers: &HeaderMap) -> Result<(), HostError> {
    if headers.contains_key(header::ORIGIN) {
        return Err(HostError::Page);
    }
    let host_name = headers.get(header::HOST).and_then(host);
    if host_name.is_some_and(|host| is_loopback(&host)) {
        Ok(())
    } else {
        Err(HostError::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::only_programs_here;
    use a2a_lambda::origin::HostError;
    use http::{HeaderMap, HeaderValue, header};

    fn named(host: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))])
    }

    #[test]
    fn only_requests_to_loopback_without_origin_pass() {
        assert_eq!(only_programs_here(&named("127.0.0.1:8000")), Ok(()));
        for host in ["evil.example", "127.0.0.1.evil.example", ""] {
            let refused = only_programs_here(&named(host));
            assert_eq!(refused, Err(HostError::Host), "{host}");
        }
        assert_eq!(only_programs_here(&HeaderMap::new()), Err(HostError::Host));
        for origin in ["https://evil.example", "http://127.0.0.1:8080", "null"] {
            let mut headers = named("127.0.0.1:8000");
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            let refused = only_programs_here(&headers);
            assert_eq!(refused, Err(HostError::Page), "{origin}");
        }
    }
}
