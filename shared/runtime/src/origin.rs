//! Says where an agent is and from where it may be called: its base URL, its hosts, and the origin
//! of pages.
//!
//! The base URL on the card of a request is what the operator set: `A2A_PUBLIC_URL`, or the variable
//! of the stage of API Gateway. No header of a client takes part.

mod hosts;

pub use hosts::{HostError, Hosts, host, is_loopback};

use http::uri::{Parts, Uri};
use http::{HeaderMap, HeaderValue, header};

/// The name of the stage variable with the base URL. `template.yaml` sets it.
pub const STAGE_VARIABLE: &str = "publicUrl";

/// The base URL in the stage variable of API Gateway, as an extension of a request. A
/// client cannot set it: [`serve`](crate::serve) reads it from the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageUrl(pub String);

/// The base URL on the cards, as far as the settings know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// `A2A_PUBLIC_URL`. It wins over the stage variable.
    setting: Option<String>,
    /// The URL without both. A function on AWS has none.
    otherwise: Option<String>,
}

impl BaseUrl {
    /// A base URL that is `setting`, else that of the stage, else `otherwise`.
    #[must_use]
    pub const fn new(setting: Option<String>, otherwise: Option<String>) -> Self {
        Self { setting, otherwise }
    }

    /// The base URL of a request that came with the stage variable `stage`. A value that
    /// is not a URL counts as absent.
    #[must_use]
    pub fn of<'a>(&'a self, stage: Option<&'a StageUrl>) -> Option<&'a str> {
        let stage = || stage.and_then(|url| parse_url(&url.0));
        let otherwise = self.otherwise.as_deref();
        self.setting.as_deref().or_else(stage).or(otherwise)
    }

    /// The base URL of a request without a stage variable.
    #[must_use]
    pub fn without_stage(&self) -> Option<&str> {
        self.of(None)
    }
}

/// Reads an http or https URL with a host. Slashes at its end are cut off.
pub(crate) fn parse_url(text: &str) -> Option<&str> {
    let url = text.trim_end_matches('/');
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let valid = !rest.is_empty() && !rest.contains(char::is_whitespace);
    valid.then_some(url)
}

/// An origin whose pages may read responses: `https://app.example.com`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsOrigin(pub(crate) HeaderValue);

impl CorsOrigin {
    /// An origin as browsers write it (RFC 6454 §6.2): scheme, host in lower case, and the
    /// port unless it is the scheme's own. Or `*`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text != "*" {
            let Parts {
                scheme, authority, ..
            } = text.parse::<Uri>().ok()?.into_parts();
            let (scheme, authority) = (scheme?, authority?);
            let own_port = match scheme.as_str() {
                "http" => ":80",
                "https" => ":443",
                _ => return None,
            };
            let canonical = format!("{scheme}://{authority}");
            if canonical != text
                || text.to_ascii_lowercase() != text
                || text.contains('@')
                || text.ends_with(own_port)
            {
                return None;
            }
        }
        HeaderValue::from_str(text).ok().map(Self)
    }

    /// Whether pages of every origin are allowed.
    #[must_use]
    pub(crate) fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// Whether a page of this very origin sent a request.
    pub(crate) fn is_sender(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        origins.next() == Some(&self.0) && origins.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    fn stage(url: &str) -> StageUrl {
        StageUrl(url.to_owned())
    }

    #[test]
    fn the_setting_wins_over_the_stage_and_the_stage_over_the_default() {
        let setting = Some("https://own.example".to_owned());
        let local = Some("http://127.0.0.1:8080".to_owned());
        let of_stage = stage("https://stage.example/dev/");
        let all = BaseUrl::new(setting, local.clone());
        assert_eq!(all.of(Some(&of_stage)), Some("https://own.example"));
        let local = BaseUrl::new(None, local);
        assert_eq!(local.of(Some(&of_stage)), Some("https://stage.example/dev"));
        assert_eq!(local.without_stage(), Some("http://127.0.0.1:8080"));
        let deployed = BaseUrl::new(None, None);
        assert_eq!(deployed.without_stage(), None);
        let rows = ["", "https://", "agent.example", "ftp://x", "https://a b"];
        each_row(rows, |bad| {
            assert_eq!(deployed.of(Some(&stage(bad))), None, "{bad}");
        });
    }

    #[test]
    fn an_origin_is_what_browsers_send_and_nothing_else() {
        let rows = [
            "*",
            "https://app.example.com",
            "http://localhost:3000",
            "https://[::1]:8443",
        ];
        each_row(rows, |text| {
            assert!(CorsOrigin::parse(text).is_some(), "{text}");
        });
        let cases = [
            "",
            "null",
            "app.example.com",
            "https://",
            "https://app.example.com/",
            "https://app.example.com/a",
            "https://App.example.com",
            "https://app.example.com:443",
            "http://app.example.com:80",
            "https://ann@app.example.com",
            "https://a.example,https://b.example",
            "https://*.example.com x",
            "ftp://app.example.com",
            "https://app.example.com\r\nset-cookie: a=b",
        ];
        each_row(cases, |text| {
            assert!(CorsOrigin::parse(text).is_none(), "{text}");
        });
    }
}
