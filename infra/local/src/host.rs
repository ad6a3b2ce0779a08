//! Whom the embedded services answer.

use a2a_lambda::http::hosts::{Foreign, host, is_loopback};
use http::{HeaderMap, header};

/// Whether a request with these headers comes from a program on this machine,
/// or is a link that somebody follows: it names a loopback host, and no origin.
///
/// # Errors
/// [`Foreign`] when it does not.
pub(crate) fn only_programs_here(headers: &HeaderMap) -> Result<(), Foreign> {
    if headers.contains_key(header::ORIGIN) {
        return Err(Foreign::Page);
    }
    let named = headers.get(header::HOST).and_then(host);
    if named.is_some_and(|host| is_loopback(&host)) {
        Ok(())
    } else {
        Err(Foreign::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::only_programs_here;
    use a2a_lambda::http::hosts::Foreign;
    use http::{HeaderMap, HeaderValue, header};

    fn named(host: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))])
    }

    #[test]
    fn the_embedded_services_answer_programs_of_this_machine_alone() {
        assert_eq!(only_programs_here(&named("127.0.0.1:8000")), Ok(()));
        for host in ["evil.example", "127.0.0.1.evil.example", ""] {
            let refused = only_programs_here(&named(host));
            assert_eq!(refused, Err(Foreign::Host), "{host}");
        }
        assert_eq!(only_programs_here(&HeaderMap::new()), Err(Foreign::Host));
        for origin in ["https://evil.example", "http://127.0.0.1:8080", "null"] {
            let mut headers = named("127.0.0.1:8000");
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            let refused = only_programs_here(&headers);
            assert_eq!(refused, Err(Foreign::Page), "{origin}");
        }
    }
}
