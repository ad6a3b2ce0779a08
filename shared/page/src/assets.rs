//! The files of the page, compiled into the program, and the headers of its responses.

use a2a_lambda::http::Body;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

/// What the browser lets the page do: use its own files and call its own server. No
/// script can make HTML of a text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    media_type: &'static str,
    text: &'static str,
}

impl Asset {
    /// The response with it.
    pub fn answer(self) -> Response<Body> {
        let body = Full::from(Bytes::from_static(self.text.as_bytes()));
        let mut response = Response::new(body.boxed_unsync());
        guard(response.headers_mut(), self.media_type);
        response
    }
}

/// The HTML at `/`.
pub fn front() -> Response<Body> {
    let page = Asset {
        media_type: HTML,
        text: include_str!("assets/index.html"),
    };
    page.answer()
}

/// The text of a file; `None` if it is not among these.
macro_rules! text_of {
    ($wanted:ident in $($name:literal)*) => {
        match $wanted {
            $($name => Some(include_str!(concat!("assets/", $name))),)*
            _ => None,
        }
    };
}

/// The file with this name.
pub fn by_name(name: &str) -> Option<Asset> {
    let text = text_of!(name in
        "page.css" "main.js" "dom.js" "icons.js" "api.js" "builds.js" "live.js" "stream.js"
        "schema.js" "skills.js" "chat.js" "composer.js" "talk.js" "markdown.js" "files.js"
        "parts.js" "state.js" "task.js" "waterfall.js" "detail.js" "list.js" "lists.js" "card.js"
        "snippets.js" "process.js" "keys.js"
    )?;
    let media_type = match name.ends_with(".css") {
        true => STYLE,
        false => SCRIPT,
    };
    Some(Asset { media_type, text })
}

/// Sends the browser to the address `to`. It keeps the fragment.
pub fn redirect(to: &str) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    guard(response.headers_mut(), "text/plain");
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

/// The headers of every response of the page.
pub fn guard(headers: &mut HeaderMap, media_type: &'static str) {
    let page_headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in page_headers {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
