//! Keeps the cards of an agent, one set for each base URL under which it is called.
//!
//! A deployment has a handful of base URLs: one for each stage that its functions serve.

use super::card::Cards;
use crate::clock::lock;
use crate::engine::EngineError;
use crate::origin::{BaseUrl, StageUrl};
use a2a_lambda_wire::CardError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The most base URLs whose cards a process keeps. With more it begins again.
const KEPT: usize = 8;

type Make = dyn Fn(&str) -> Result<Cards, CardError> + Send + Sync;

/// The cards of an agent for each base URL.
pub struct CardsByUrl {
    url: BaseUrl,
    make: Box<Make>,
    by_url: Mutex<BTreeMap<String, Arc<Cards>>>,
}

impl CardsByUrl {
    /// The cards that `make` makes for a base URL, at the first request for them: most
    /// functions never serve one.
    pub fn new(
        url: BaseUrl,
        make: impl Fn(&str) -> Result<Cards, CardError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            url,
            make: Box::new(make),
            by_url: Mutex::default(),
        }
    }

    /// The cards for a request with the stage variable `stage`.
    ///
    /// # Errors
    /// [`EngineError`] when neither the settings nor the stage say the base URL.
    pub(super) fn of(&self, stage: Option<&StageUrl>) -> Result<Arc<Cards>, EngineError> {
        let Some(url) = self.url.of(stage) else {
            return Err(EngineError::internal(
                "the card needs a base URL: set `A2A_PUBLIC_URL`, or the stage variable `publicUrl` of API Gateway, to the https URL that clients call",
            ));
        };
        let mut by_url = lock(&self.by_url);
        if let Some(cards) = by_url.get(url) {
            return Ok(Arc::clone(cards));
        }
        let cards = (self.make)(url).map_err(|error| EngineError::internal(error.to_string()))?;
        let cards = Arc::new(cards);
        if by_url.len() >= KEPT {
            by_url.clear();
        }
        by_url.insert(url.to_owned(), Arc::clone(&cards));
        Ok(cards)
    }
}

debug_as_name!(CardsByUrl { url });

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_wire::{CardInfo, CardShape, SkillInfo};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn cards(url: &str) -> Result<Cards, CardError> {
        let words = || vec!["text/plain".to_owned()];
        let skill = SkillInfo {
            id: "x".to_owned(),
            name: "x".to_owned(),
            description: "x".to_owned(),
            tags: words(),
            ..SkillInfo::default()
        };
        let info = CardInfo {
            name: "agent".to_owned(),
            description: "An agent.".to_owned(),
            version: "1.0.0".to_owned(),
            base_url: url.to_owned(),
            default_input_modes: words(),
            default_output_modes: words(),
            skills: vec![skill],
            ..CardInfo::default()
        };
        Cards::new(&info, CardShape::Union)
    }

    #[test]
    fn a_process_makes_the_cards_of_a_url_once_and_keeps_a_few() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let shelf = CardsByUrl::new(BaseUrl::new(None, None), move |url| {
            counted.fetch_add(1, Ordering::Relaxed);
            cards(url)
        });
        for _ in 0..3 {
            let stage = StageUrl("https://a.example".to_owned());
            shelf.of(Some(&stage)).unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
        for n in 0..100 {
            let stage = StageUrl(format!("https://{n}.example"));
            shelf.of(Some(&stage)).unwrap();
            assert!(shelf.by_url.lock().unwrap().len() <= KEPT);
        }
    }

    #[test]
    fn a_missing_base_url_is_an_internal_error_that_says_what_to_set() {
        let shelf = CardsByUrl::new(BaseUrl::new(None, None), cards);
        let error = shelf.of(None).unwrap_err();
        assert_eq!(error.a2a_error, crate::task::A2aError::Internal);
        let cause = error.cause.unwrap().to_string();
        assert!(
            cause.contains("A2A_PUBLIC_URL") && cause.contains("publicUrl"),
            "{cause}"
        );
    }
}
