//! Conversations with the reference agent, without a model.

use super::*;

fn reference() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

fn flight() -> Turn {
    says("Book a flight", Begins("book-flight", "flight"))
}

fn logo() -> Turn {
    says("Generate logo", Begins("logo", "logo")).free()
}

fn report() -> Turn {
    says("Create a report", Begins("create-report", "report")).free()
}

fn sum() -> Turn {
    says("What's 2+2?", Begins("add", "sum")).free()
}

fn blue() -> Turn {
    says("Make it blue", Refines("logo", "logo", "blue"))
}

/// A session with the topics of the README: what is said decides, then its conversation.
fn session() -> Vec<Turn> {
    vec![
        says("Remember that I like tea", Begins("memory_add", "memory")),
        says("user", Answers("memory")),
        says(
            "What do you remember about tea",
            Begins("memory_search", "search"),
        ),
        flight(),
        says("Helsinki", Answers("flight")),
        says("Next Monday", Answers("flight")),
        sum(),
        report(),
        says("PDF format", Answers("report")),
        logo(),
        blue(),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_message_of_a_session_finds_its_task() {
    let memory = || says("Remember that I like tea", Begins("memory_add", "memory"));
    let lists = says("list my memories", Begins("memory_list", "list")).free();
    let rows = vec![
        conversation("session", EVERY, session()),
        conversation(
            "for me",
            EVERY,
            [memory(), says("for me", Answers("memory"))],
        ),
        conversation("a list", EVERY, [says("hello", Asks), lists]),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn a_refinement_is_a_new_task_about_what_spoke_last() {
    let logos = ["one", "two", "three"].map(|name| says("Generate logo", Begins("logo", name)));
    let first = says("Make it blue", Refines("logo", "one", "four")).about(&["one"]);
    let mut many: Vec<Turn> = (0..18).map(|_| sum()).collect();
    many.extend([logo(), blue()]);
    let made = says(
        "Create a report on sales as PDF",
        Begins("create-report", "report"),
    );
    let shorter = says(
        "Make it shorter",
        Refines("create-report", "report", "short"),
    );
    let rows = vec![
        conversation("newest", EVERY, [logo(), blue()]),
        conversation("first of three", EVERY, [&logos[..], &[first]].concat()),
        conversation("twenty turns", EVERY, many),
        conversation("a report", EVERY, [made.clone(), shorter.clone()]),
        conversation(
            "thanks first",
            NO_TASK,
            [logo(), says("thanks", Asks), blue().free()],
        ),
        conversation(
            "a sum between",
            EVERY,
            [logo(), sum(), says("Make it blue", Asks)],
        ),
        conversation(
            "a report between",
            EVERY,
            [logo(), made.clone(), says("Make it blue", Asks)],
        ),
        conversation(
            "a reference to the first",
            EVERY,
            [made.clone(), logo(), sum(), shorter.about(&["report"])],
        ),
        conversation(
            "references to four tasks, of which one is missing",
            &[Context],
            [
                sum(),
                made,
                logo(),
                blue().about(&["sum", "report", "logo", "none"]),
            ],
        ),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn a_text_that_refines_nothing_starts_nothing() {
    let rows = vec![
        conversation("no logo", EVERY, [says("Make it blue", Asks)]),
        conversation(
            "while a flight waits",
            EVERY,
            [flight(), logo(), blue().free()],
        ),
        conversation(
            "not a refinement",
            EVERY,
            [logo(), says("Now book a flight", Asks)],
        ),
        conversation("words of thanks", EVERY, [logo(), says("thanks", Asks)]),
        conversation("a city", EVERY, [logo(), says("Helsinki", Asks)]),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn a_text_without_a_task_answers_what_waits() {
    let helsinki = || says("Helsinki", Answers("flight"));
    let second = says("Book a flight", Begins("book-flight", "second")).free();
    let rows = vec![
        conversation(
            "at once",
            NO_TASK,
            [flight(), helsinki(), says("Friday", Answers("flight"))],
        ),
        conversation(
            "a second flight",
            NO_TASK,
            [
                flight(),
                second,
                says("Oslo", Answers("second")),
                says("Friday", Answers("second")),
            ],
        ),
        conversation(
            "the only reference",
            &[Context],
            [flight(), report(), helsinki().about(&["flight"])],
        ),
        conversation(
            "the newest of two",
            NO_TASK,
            [flight(), report(), says("PDF", Answers("report"))],
        ),
        conversation(
            "yes",
            EVERY,
            [
                says(
                    "book a flight to Rome on Friday",
                    Begins("book-flight", "flight"),
                ),
                says("yes", Asks),
            ],
        ),
    ];
    play(reference, rows).await;
}

/// Some clients show the updates of a stream only.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_passed_on_streams_the_updates_of_the_task_that_gets_it() {
    for dialect in [Dialect::Rest10, Dialect::Rpc03] {
        let world = reference();
        let mut client = Client::new(&world, dialect, Context);
        for turn in [flight(), sum(), says("Helsinki", Asks)] {
            client.plays(&turn).await;
        }
        let (context, flight) = (client.context.as_deref(), client.id("flight"));
        let say = Say {
            context,
            skill: None,
            ..Say::to("", "1")
        };
        let reply = world.call(&dialect.stream(&say)).await.text();
        let frames = reply.lines().filter_map(|line| line.strip_prefix("data: "));
        let frames: Vec<&str> = frames.collect();
        assert!(frames.len() > 1, "{reply}");
        assert!(
            frames.iter().all(|frame| frame.contains(&flight)),
            "{reply}"
        );
        let last = frames.last().unwrap();
        assert!(
            last.contains("When?") && !last.contains("history"),
            "{reply}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn words_after_another_topic_are_asked_about() {
    let helsinki = || says("Helsinki", Asks).free();
    let first = || says("1", Forwards("flight"));
    let rows = vec![
        conversation(
            "a sum between",
            EVERY,
            [
                flight(),
                sum(),
                helsinki(),
                first(),
                says("Friday", Answers("flight")),
            ],
        ),
        conversation(
            "an answered question between",
            EVERY,
            [
                flight(),
                report(),
                says("PDF format", Answers("report")),
                helsinki(),
                first(),
            ],
        ),
        conversation(
            "thanks",
            EVERY,
            [flight(), logo(), says("thanks", Asks).free()],
        ),
        conversation("ok", EVERY, [flight(), sum(), says("ok", Asks).free()]),
        conversation(
            "a reference to another",
            &[Context],
            [flight(), logo(), says("thanks", Asks).about(&["logo"])],
        ),
        conversation(
            "the older one is answered by its id",
            &[Context],
            [
                report(),
                flight(),
                says("PDF format", Answers("report")).to("report"),
                says("thanks", Asks),
            ],
        ),
        conversation(
            "another wish",
            EVERY,
            [
                flight(),
                logo(),
                says("Make me a red logo please", Asks).free(),
                says("logo", Chooses("logo", "red")),
            ],
        ),
    ];
    play(reference, rows).await;
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_router_take_only_a_choice() {
    let rows = vec![
        conversation("hello", EVERY, [says("hello", Asks), logo(), blue().free()]),
        conversation(
            "a flight",
            EVERY,
            [
                says("hello", Asks),
                flight().free(),
                says("Helsinki", Answers("flight")),
                says("Monday", Answers("flight")),
                says("thanks", Asks).free(),
            ],
        ),
        conversation(
            "a number for the flight",
            NO_TASK,
            [says("hello", Asks), flight(), says("3", Answers("flight"))],
        ),
        conversation(
            "an old number",
            &[Context, All],
            [says("hello", Asks), logo(), says("3", Asks)],
        ),
        conversation(
            "a choice",
            EVERY,
            [
                says("Make me a red logo please", Asks),
                says("the first one", Asks),
                says("logo", Chooses("logo", "red")),
            ],
        ),
    ];
    play(reference, rows).await;
}
