//! Texts that skills declare: examples and patterns.

use super::*;

#[test]
fn example_matches_in_any_case_and_punctuation() {
    for text in ["Say hello!", " say  HELLO ", "say hello?"] {
        let decided = step(&agent(), &said(text));
        assert_eq!(decided, ("echo".to_owned(), "example"), "{text}");
    }
}

/// Adds two numbers in words.
#[skill(id = "sum", tags = ["math"], text = ["add {a} and {b}", "{a} + {b}", "what's {a} + {b}"])]
async fn sum_up(terms: TextOr<Terms>) -> AgentResult<i64> {
    match terms {
        TextOr::Data(Terms { a, b }) => Ok(a + b),
        TextOr::Text(_) => Ok(0),
    }
}

/// Remembers.
#[skill(id = "note", tags = ["memory"], text = "note: {what} by {who}")]
async fn take_note(note: TextOr<Note>) -> AgentResult<String> {
    Ok(match note {
        TextOr::Data(note) => format!("{} {}", note.what, note.who),
        TextOr::Text(text) => text,
    })
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    what: String,
    who: String,
}

fn declaring() -> AgentDefinition {
    let agent = Agent::builder("agent")
        .skill(echo)
        .skill(sum_up)
        .skill(take_note);
    agent.build().unwrap()
}

#[test]
fn a_text_that_is_a_pattern_goes_to_its_skill_with_its_fields() {
    for (text, fields) in [
        ("add 19 and 23", json!({"a": 19, "b": 23})),
        ("  ADD -1   and 2! ", json!({"a": -1, "b": 2})),
        ("5+7", json!({"a": 5, "b": 7})),
        ("5 + 7.", json!({"a": 5, "b": 7})),
        ("What\u{2019}s 5 + 7?", json!({"a": 5, "b": 7})),
    ] {
        let (id, how, content) = chosen(routed(&declaring(), &said(text)));
        assert_eq!((id.as_str(), how), ("sum", "text"), "{text}");
        assert_eq!(content.first_data(), Some(&fields), "{text}");
    }
    // A place takes as little as possible, and keeps case and spaces.
    let (id, _, content) = chosen(routed(&declaring(), &said("Note:  Tea  by the Sea by Ann")));
    let fields = json!({"what": "Tea", "who": "the Sea by Ann"});
    assert_eq!((id.as_str(), content.first_data()), ("note", Some(&fields)));
}

#[test]
fn a_text_that_only_resembles_a_pattern_is_asked_about() {
    for text in [
        "please add 19 and 23",
        "add 19 and 23 and 4",
        "add 1.5 and 2",
        "add and 2",
        "add 19",
        "add nineteen and 23",
        "our budget is 5 + 7 euros",
        "add 19 and 99999999999999999999",
        "add\u{200b}19 and 23",
        "+",
    ] {
        asked(routed(&declaring(), &said(text)));
    }
}

#[test]
fn a_long_text_of_many_borders_is_read_in_a_moment() {
    let text = format!("note: {}", "a by ".repeat(10_000));
    let (id, ..) = chosen(routed(&declaring(), &said(&format!("{text} x"))));
    assert_eq!(id, "note");
    let text = "add ".to_owned() + &"1 and ".repeat(10_000);
    asked(routed(&declaring(), &said(&text)));
}

#[test]
fn text_of_two_skills_leads_to_a_question_whose_answer_reads_the_pattern() {
    /// Adds too.
    #[skill(id = "plus", tags = ["math"], text = "{a} + {b}")]
    async fn plus(terms: TextOr<Terms>) -> AgentResult<i64> {
        sum_of(terms)
    }
    fn sum_of(_: TextOr<Terms>) -> AgentResult<i64> {
        Ok(0)
    }
    let agent = Agent::builder("agent")
        .skill(echo)
        .skill(sum_up)
        .skill(plus);
    let agent = agent.build().unwrap();
    let original = said("1 + 2");
    let Ok(Routed::Ask { slot, .. }) = routed(&agent, &original) else {
        panic!("not asked");
    };
    let offer = Offer::of(&slot);
    let reply = RouteRequest {
        pinned: None,
        message: &said("plus"),
        request_metadata: &Metadata::new(),
    };
    let (id, how, content) =
        chosen(route_answer(&agent, &original, &offer, &reply).map(Option::unwrap));
    assert_eq!((id.as_str(), how), ("plus", "answer"));
    assert_eq!(content.first_data(), Some(&json!({"a": 1, "b": 2})));
}

/// Adds.
#[skill(id = "sum", tags = ["math"], text = "add {a} and {b}")]
async fn data_alone(terms: Terms) -> AgentResult<i64> {
    Ok(terms.a)
}

/// Adds.
#[skill(id = "sum", tags = ["math"], text = "{a} + {b}", input_modes = ["text/plain"])]
async fn text_alone(_: TextOr<Terms>) -> AgentResult<i64> {
    Ok(0)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Day {
    Monday,
    Friday,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ride {
    to: String,
    on: Option<Day>,
}

/// Books a ride.
#[skill(id = "ride", tags = ["travel"], text = ["go to {to} on {on}", "go to {to}"])]
async fn ride(_: TextOr<Ride>) -> AgentResult<bool> {
    Ok(true)
}

#[test]
fn place_takes_the_least_text_with_which_the_input_is_decoded() {
    let agent = Agent::builder("agent").skill(echo).skill(ride);
    let agent = agent.build().unwrap();
    for (text, fields) in [
        (
            "go to Frankfurt on the Main on friday",
            json!({"to": "Frankfurt on the Main", "on": "friday"}),
        ),
        (
            "go to Rome on monday",
            json!({"to": "Rome", "on": "monday"}),
        ),
        // No end of it is a day.
        ("go to Rome on the hill", json!({"to": "Rome on the hill"})),
    ] {
        let (id, _, content) = chosen(routed(&agent, &said(text)));
        assert_eq!((id.as_str(), content.first_data()), ("ride", Some(&fields)));
    }
    // Of many borders the first few are tried.
    let long = format!("go to {}on the hill", "x on ".repeat(10_000));
    let (_, _, content) = chosen(routed(&agent, &said(&long)));
    assert!(content.first_data().unwrap().get("on").is_none());
}

#[test]
fn pattern_that_cannot_match_is_refused_when_the_agent_is_built() {
    macro_rules! refused {
        ($text:literal, $why:literal) => {{
            /// Adds.
            #[skill(id = "sum", tags = ["math"], text = $text)]
            async fn wrong(terms: Terms) -> AgentResult<i64> {
                Ok(terms.a)
            }
            let error = Agent::builder("agent").skill(wrong).build().unwrap_err();
            let why = format!("the skill `sum` has the text `{}`: {}", $text, $why);
            assert_eq!(error.to_string(), why);
        }};
    }
    refused!(
        "add {a} and {c}",
        "`c` is no field of its input: take `TextOr<T>` of a struct with that field"
    );
    refused!("add {a", "a place has no `}`");
    refused!("{a}{b}", "two places need a word or a sign between them");
    refused!("{a}", "a pattern needs a word or a sign");
    refused!("add {a} and {a}", "a place is there twice");
    refused!("{a}kg and {b}", "a place needs a space or a sign beside it");
    refused!("x{a} + {b}", "a place needs a space or a sign beside it");
    /// Says a text.
    #[skill(id = "say", tags = ["text"], text = ["say {words}"])]
    async fn say(words: String) -> AgentResult<String> {
        Ok(words)
    }
    // The place of a skill that takes a text is its text.
    /// Repeats a content.
    #[skill(id = "repeat", tags = ["text"], text = "repeat {words}")]
    async fn repeat(words: Content) -> AgentResult<Content> {
        Ok(words)
    }
    let agent = Agent::builder("agent").skill(say).skill(repeat);
    let agent = agent.build().unwrap();
    for skill in ["say", "repeat"] {
        let words = format!("{skill} Hello there!");
        let (id, how, content) = chosen(routed(&agent, &said(&words)));
        assert_eq!((id.as_str(), how), (skill, "text"));
        assert_eq!(content.text().unwrap(), "Hello there");
    }
    let modes = "it has to take text and data, as `TextOr` does";
    let error = Agent::builder("agent")
        .skill(data_alone)
        .build()
        .unwrap_err();
    assert!(error.to_string().ends_with(modes), "{error}");
    let error = Agent::builder("agent")
        .skill(text_alone)
        .build()
        .unwrap_err();
    assert!(error.to_string().ends_with(modes), "{error}");
}

#[test]
fn pattern_of_three_places_gives_up_on_a_text_that_has_too_many_borders() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Places {
        a: String,
        b: String,
        c: String,
    }
    /// Reads an equation.
    #[skill(id = "equation", tags = ["math"], text = "{a}+{b}={c}")]
    async fn equation(_: TextOr<Places>) -> AgentResult<bool> {
        Ok(true)
    }
    let agent = Agent::builder("agent").skill(echo).skill(equation);
    let agent = agent.build().unwrap();
    asked(routed(&agent, &said(&"+".repeat(60_000))));
    let (id, ..) = chosen(routed(&agent, &said("x + y = z")));
    assert_eq!(id, "equation");
}
