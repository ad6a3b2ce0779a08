use super::*;
use crate::prelude::*;
use crate::testing::SkillTest;
use std::sync::atomic::{AtomicU32, Ordering};

struct Prices {
    currency: &'static str,
}

struct Key(&'static str);

/// Says what an article costs.
#[skill(id = "price", tags = ["shop"])]
async fn price(
    cx: &mut TaskContext<'_>,
    prices: State<Prices>,
    key: State<Key>,
    article: String,
) -> AgentResult<String> {
    cx.send_intermediate_update("looking").await?;
    Ok(format!("{article}: 3 {} with {}", prices.currency, key.0))
}

/// Says the currency.
#[skill(id = "currency", tags = ["shop"], states = [Prices])]
struct Currency;

impl SkillHandler for Currency {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String>> {
        OnRequestResult::done(State::<Prices>::of(cx).await?.currency.to_owned())
    }
}

fn shop() -> a2a_lambda_skill::AgentBuilder {
    Agent::builder("shop").skill(price).skill(Currency)
}

#[tokio::test]
async fn skills_share_one_state_that_is_made_once_and_when_it_is_needed() {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let agent = shop()
        .state(move || {
            let made = Arc::clone(&counted);
            async move {
                made.fetch_add(1, Ordering::SeqCst);
                Ok::<_, std::io::Error>(Prices { currency: "EUR" })
            }
        })
        .state(async || Ok::<_, std::io::Error>(Key("k")))
        .build()
        .unwrap();
    // The card and the manifest need no state.
    assert_eq!(agent.manifest().skills.len(), 2);
    assert_eq!(made.load(Ordering::SeqCst), 0);
    let reply = SkillTest::new(&agent, "price").send("Tea").await.unwrap();
    let said = reply.artifact_text("price");
    assert_eq!(said.as_deref(), Some("Tea: 3 EUR with k"));
    let reply = SkillTest::new(&agent, "currency").send("?").await.unwrap();
    assert_eq!(reply.artifact_text("currency").as_deref(), Some("EUR"));
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn an_agent_without_the_factory_of_a_state_is_not_built() {
    for (agent, skill) in [
        (Agent::builder("shop").skill(price), "price"),
        (Agent::builder("shop").skill(Currency), "currency"),
    ] {
        let error = agent.build().unwrap_err().to_string();
        let start = format!("the skill `{skill}` takes `State<");
        assert!(
            error.starts_with(&start) && error.contains("Prices"),
            "{error}"
        );
    }
    let agent = shop().state_value(Prices { currency: "EUR" });
    let error = agent.build().unwrap_err().to_string();
    assert!(error.contains("Key"), "{error}");
}

#[tokio::test]
async fn a_factory_that_fails_is_named_and_called_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let agent = Agent::builder("shop").skill(Currency).state(move || {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match first {
                true => Err("no such secret"),
                false => Ok(Prices { currency: "EUR" }),
            }
        }
    });
    let agent = agent.build().unwrap();
    let error = agent.make_states().await.unwrap_err().to_string();
    assert!(error.starts_with("failed to make the state `"), "{error}");
    assert!(error.ends_with("Prices`: no such secret"), "{error}");
    agent.make_states().await.unwrap();
    agent.make_states().await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_test_puts_its_own_state_in_place_of_the_factory() {
    let agent = Agent::builder("shop").skill(Currency);
    let agent = agent.state(async || Err::<Prices, _>("not in a test"));
    let agent = agent.build().unwrap();
    let mut client = SkillTest::new(&agent, "currency");
    let failed = client.send("?").await.unwrap();
    assert_eq!(failed.error_code(), Some("INTERNAL_ERROR"));
    client.state(Prices { currency: "USD" });
    let reply = client.send("?").await.unwrap();
    assert_eq!(reply.artifact_text("currency").as_deref(), Some("USD"));
}

#[tokio::test]
async fn a_test_gets_the_double_of_the_agent_and_each_test_its_own() {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let agent = Agent::builder("shop").skill(Currency);
    let agent = agent.state(async || Err::<Prices, _>("not in a test"));
    let agent = agent.double(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Prices { currency: "TST" }
    });
    let agent = agent.build().unwrap();
    for count in [1, 2] {
        let mut client = SkillTest::new(&agent, "currency");
        assert_eq!(made.load(Ordering::SeqCst), count - 1);
        for _ in 0..2 {
            let reply = client.send("?").await.unwrap();
            assert_eq!(reply.artifact_text("currency").as_deref(), Some("TST"));
        }
        assert_eq!(made.load(Ordering::SeqCst), count);
    }
    // A process that serves the agent never uses it.
    assert!(agent.make_states().await.is_err());
    let agent = agent.with_state(Prices { currency: "USD" });
    let mut client = SkillTest::new(&agent, "currency");
    let reply = client.send("?").await.unwrap();
    assert_eq!(reply.artifact_text("currency").as_deref(), Some("USD"));
    client.state(Prices { currency: "EUR" });
    let reply = client.send("?").await.unwrap();
    assert_eq!(reply.artifact_text("currency").as_deref(), Some("EUR"));
}

/// The module has a skill `price`, whose name is no pattern.
#[test]
fn a_value_may_have_the_name_of_a_skill() {
    let prices = Some(Prices { currency: "EUR" });
    let Some(price) = prices else { return };
    assert_eq!(price.currency, "EUR");
    let cost = |price: &Prices| price.currency;
    assert_eq!(cost(&price), "EUR");
}
