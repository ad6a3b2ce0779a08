//! Page tokens: every invalid token gives the same response.

use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, PARAMS};
use a2a_lambda_tests::world::{Request, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

const ANN: &str = "acme:ann";
const HOUR: Duration = Duration::from_secs(3600);

/// All lists with pages.
#[derive(Debug, Clone, Copy, PartialEq)]
enum List {
    Tasks(Dialect),
    Contexts,
}

const LISTS: [List; 4] = [
    List::Tasks(Dialect::Rpc10),
    List::Tasks(Dialect::Rest10),
    List::Tasks(Dialect::Rest03),
    List::Contexts,
];

/// A query value with every byte percent-encoded.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl List {
    const fn dialect(self) -> Dialect {
        match self {
            Self::Tasks(dialect) => dialect,
            Self::Contexts => Dialect::Rest10,
        }
    }

    /// Requests a page of one item with this token and filter.
    fn page(self, token: &str, filter: &Value) -> Request {
        let mut params = filter.clone();
        params["pageSize"] = json!(1);
        match self {
            Self::Tasks(Dialect::Rpc10) => params["pageToken"] = json!(token),
            _ => params["pageToken"] = json!(escaped(token)),
        }
        let request = match self {
            Self::Tasks(dialect) => dialect.request(Op::List, "", &params),
            Self::Contexts => {
                let token = params["pageToken"].as_str().unwrap();
                let query = format!("/a2a-lambda/contexts?pageSize=1&pageToken={token}");
                Request::new("GET", query)
            }
        };
        request.from(ANN)
    }

    async fn token(self, world: &World, filter: &Value) -> String {
        let reply = world.call(&self.page("", filter)).await;
        let page = self.dialect().result(&reply);
        let token = page["nextPageToken"].as_str().unwrap_or_default();
        assert!(!token.is_empty(), "{self:?} {}", reply.text());
        token.to_owned()
    }
}

async fn world() -> World {
    let world = World::new().unwrap();
    for _ in 0..3 {
        let say = Say::to("echo", "hi");
        world.call(&Dialect::Rest10.send(&say).from(ANN)).await;
        advance(Duration::from_secs(1)).await;
    }
    world
}

/// Tokens made from a valid one that are not valid for its list.
fn bent(token: &str) -> Vec<String> {
    let mut all = Vec::new();
    for at in 1..token.len() {
        let (head, tail) = token.split_at(at);
        let other = if tail.starts_with('A') { "B" } else { "A" };
        all.push(head.to_owned());
        all.push(format!("{head}{other}{}", tail.get(1..).unwrap()));
    }
    let long = "A".repeat(20_000);
    let odd = ["bm8=", ".", "..", "a.b", "\u{0}", "\u{202e}", "null", &long];
    all.extend(odd.map(str::to_owned));
    all.push(format!("{token}{token}"));
    all.push(format!("{token}.{token}"));
    all.push(token.to_uppercase());
    all
}

#[tokio::test(start_paused = true)]
async fn every_invalid_page_token_gives_the_same_response() {
    each_row_async(LISTS, async |list| {
        let world = world().await;
        let own = list.token(&world, &json!({})).await;
        assert_eq!(world.call(&list.page(&own, &json!({}))).await.status, 200);
        let mut bad: Vec<Request> = bent(&own)
            .iter()
            .map(|token| list.page(token, &json!({})))
            .collect();
        for caller in ["evil:ann", "acme:bob", "ACME:ann", "acme:Ann"] {
            bad.push(list.page(&own, &json!({})).from(caller));
        }
        // A token of another list, or of the same with another filter.
        each_row_async(LISTS, async |other| {
            let same = matches!((list, other), (List::Tasks(_), List::Tasks(_))) || list == other;
            let token = other.token(&world, &json!({})).await;
            if same {
                let page = world.call(&list.page(&token, &json!({}))).await;
                assert_eq!(page.status, 200, "{list:?} {other:?}");
            } else {
                bad.push(list.page(&token, &json!({})));
            }
        })
        .await;
        if list != List::Contexts {
            let done = json!({"status": "TASK_STATE_COMPLETED"});
            let filtered = list.token(&world, &done).await;
            bad.push(list.page(&filtered, &json!({})));
            bad.push(list.page(&own, &done));
            bad.push(list.page(&own, &json!({"contextId": "x"})));
            bad.push(list.page(
                &own,
                &json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"}),
            ));
        }
        let writes = world.store.writes();
        let mut answers = Vec::new();
        each_row_async(&bad, async |request| {
            let reply = world.call(request).await;
            let fault = Fault::new(list.dialect(), PARAMS).at("pageToken");
            assert_eq!(fault.check(&reply), Ok(()), "{list:?} {}", request.target);
            answers.push((reply.headers, reply.body));
        })
        .await;
        advance(HOUR).await;
        let late = world.call(&list.page(&own, &json!({}))).await;
        answers.push((late.headers, late.body));
        assert!(answers.len() > 150, "only {} tokens", answers.len());
        answers.dedup();
        assert_eq!(answers.len(), 1, "{list:?}: responses differ");
        assert_eq!(world.store.writes(), writes);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_list_can_be_continued_for_an_hour() {
    each_row_async(LISTS, async |list| {
        let world = world().await;
        let token = list.token(&world, &json!({})).await;
        advance(HOUR - Duration::from_millis(1)).await;
        let good = world.call(&list.page(&token, &json!({}))).await;
        assert_eq!(good.status, 200, "{list:?} {}", good.text());
        advance(Duration::from_millis(1)).await;
        let late = world.call(&list.page(&token, &json!({}))).await;
        let fault = Fault::new(list.dialect(), PARAMS).at("pageToken");
        assert_eq!(fault.check(&late), Ok(()), "{list:?} {}", late.text());
    })
    .await;
}
