//! Fetches the cards of a deployment, to sign what clients read.

use a2a_lambda::outbound::{AddressPolicy, FetchError, Fetched, Fetcher, OutboundUrl, UrlError};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;

/// The most bytes of a card that are read.
const LIMIT: usize = 4 * 1024 * 1024;
/// How long a card may take, the start of its function included.
const PATIENCE: Duration = Duration::from_secs(30);
const PUBLIC: &str = "/.well-known/agent-card.json";
const EXTENDED: &str = "/extendedAgentCard";
/// The members that a card must have as text (A2A 1.0 §4.4.1).
const TEXTS: [&str; 3] = ["name", "description", "version"];

/// Why a deployment has no card to sign.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServedError {
    #[error("`{url}` {source}, or http on this machine")]
    Url { url: String, source: UrlError },
    #[error("the token file holds no token: one line of printable ASCII characters")]
    Token,
    #[error("failed to read `{url}`: {source}")]
    Fetch { url: String, source: FetchError },
    #[error("`{url}` serves no card: {why}")]
    NoCard { url: String, why: String },
}

/// The public card below `base`, and with a `token` the extended one.
///
/// # Errors
/// [`ServedError`] when one of them cannot be read or is not a card.
pub(super) async fn cards(base: &str, token: Option<&str>) -> Result<Vec<Value>, ServedError> {
    let base = base.trim_end_matches('/');
    let public = card(format!("{base}{PUBLIC}"), HeaderMap::new()).await?;
    let flag = public.pointer("/capabilities/extendedAgentCard");
    if token.is_none() && flag.and_then(Value::as_bool) == Some(true) {
        tracing::warn!(
            "the extended card is not signed: `--token-file` names no token that reads it"
        );
    }
    let mut cards = vec![public];
    if let Some(token) = token {
        let bearer = format!("Bearer {}", token.trim());
        let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| ServedError::Token)?;
        bearer.set_sensitive(true);
        let version = HeaderName::from_static("a2a-version");
        let headers = [
            (AUTHORIZATION, bearer),
            (version, HeaderValue::from_static("1.0")),
        ];
        cards.push(card(format!("{base}{EXTENDED}"), headers.into_iter().collect()).await?);
    }
    Ok(cards)
}

async fn card(url: String, headers: HeaderMap) -> Result<Value, ServedError> {
    // The operator named the address, so it may be in a private network. A token goes
    // to another machine encrypted only.
    let reach = if url.starts_with("https://") {
        AddressPolicy::Anything
    } else {
        AddressPolicy::Loopback
    };
    let address = match OutboundUrl::parse(&url, reach) {
        Ok(address) => address,
        Err(source) => return Err(ServedError::Url { url, source }),
    };
    let fetcher = Fetcher::new(reach, PATIENCE);
    let (method, body) = (http::Method::GET, bytes::Bytes::new());
    match fetcher.send(&address, method, headers, body, LIMIT).await {
        Ok(response) => read(&response).map_err(|why| ServedError::NoCard { url, why }),
        Err(source) => Err(ServedError::Fetch { url, source }),
    }
}

/// The card in a response, or what the response is instead.
fn read(response: &Fetched) -> Result<Value, String> {
    if response.status != 200 {
        return Err(format!("the status is {}", response.status));
    }
    if response.cut {
        return Err(format!("it is longer than {LIMIT} bytes"));
    }
    let card: Value = serde_json::from_slice(&response.body).map_err(|_| "it is not JSON")?;
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|it| !it.is_empty())
    };
    if let Some(name) = TEXTS.iter().find(|name| !text(card.get(**name))) {
        return Err(format!("`{name}` is missing"));
    }
    let list = |name: &str| card.get(name).and_then(Value::as_array);
    if list("skills").is_none() {
        return Err("`skills` is missing".to_owned());
    }
    let interfaces = list("supportedInterfaces").map(Vec::as_slice);
    let has_url = |interface: &Value| text(interface.get("url"));
    if !interfaces.is_some_and(|all| !all.is_empty() && all.iter().all(has_url)) {
        return Err("`supportedInterfaces` names no URL".to_owned());
    }
    Ok(card)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;
    use serde_json::json;

    fn fetched(status: u16, body: &Value) -> Fetched {
        Fetched {
            retry_after: None,
            status,
            content_type: None,
            body: body.to_string().into(),
            cut: false,
        }
    }

    #[test]
    fn only_a_whole_card_is_signed() {
        let card = json!({
            "name": "a", "description": "b", "version": "1", "skills": [],
            "supportedInterfaces": [{"url": "https://agent.example"}],
        });
        assert_eq!(read(&fetched(200, &card)), Ok(card.clone()));
        let rows = [
            "name",
            "description",
            "version",
            "skills",
            "supportedInterfaces",
        ];
        each_row(rows, |name| {
            let mut less = card.clone();
            less.as_object_mut().unwrap().remove(name);
            let why = read(&fetched(200, &less)).unwrap_err();
            assert!(why.contains(name), "{why}");
        });
        each_row([304, 401, 404, 500], |status| {
            assert!(read(&fetched(status, &card)).is_err());
        });
        let cut = Fetched {
            cut: true,
            ..fetched(200, &card)
        };
        assert!(read(&cut).is_err());
        assert!(read(&fetched(200, &json!("card"))).is_err());
    }

    #[tokio::test]
    async fn a_token_is_sent_encrypted_only() {
        for url in [
            "http://agent.example",
            "ftp://agent.example",
            "agent.example",
        ] {
            let refused = cards(url, Some("secret")).await.unwrap_err();
            assert!(
                matches!(refused, ServedError::Url { .. } | ServedError::Fetch { .. }),
                "{refused}"
            );
            assert!(!refused.to_string().contains("secret"));
        }
    }
}
