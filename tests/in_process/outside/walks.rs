//! The conversations of the requirements with the reference agent, word for word.

use super::{Client, artifact, bytes, data, id, reference};
use a2a_lambda_tests::dialect::{Dialect, at};
use a2a_lambda_tests::per_dialect;
use serde_json::{Value, json};

per_dialect! {
    paused ALL:
    a_sum_in_words_has_its_answer_in_message_and_artifact
    a_flight_is_booked_after_two_questions_of_one_task
    a_memory_is_told_in_words_beside_its_data
}

const REST: Dialect = Dialect::Rest10;

async fn a_sum_in_words_has_its_answer_in_message_and_artifact(dialect: Dialect) {
    let world = reference();
    let client = Client::new(&world, dialect);
    for (said, sum) in [
        ("What's 2+2?", 4),
        ("what is 20 plus 22", 42),
        ("  ADD -5 and 3.", -2),
    ] {
        let task = client.says(said).await;
        assert_eq!(client.state(&task), "completed", "{said}");
        assert_eq!(client.words(&task), sum.to_string(), "{said}");
        let shown = artifact(&task, "add").to_string();
        assert!(shown.contains(&format!(r#"{{"sum":{sum}}}"#)), "{shown}");
    }
}

async fn a_memory_is_told_in_words_beside_its_data(dialect: Dialect) {
    let world = reference();
    let client = Client::new(&world, dialect);
    let asked = client.says("Remember that I like tea").await;
    let stored = client.answers(&asked, "user").await;
    let found = client.says("What do you remember about tea").await;
    for (task, skill, words) in [
        (&stored, "memory_add", "Remembered for you: \"I like tea\""),
        (
            &found,
            "memory_search",
            "Found 1 memory about \"tea\": \"I like tea\"",
        ),
    ] {
        assert_eq!(client.words(task), words);
        let parts = artifact(task, skill)["parts"].as_array().unwrap();
        assert_eq!(parts.len(), 1, "{task}");
        assert!(parts[0]["data"].is_object(), "{task}");
    }
}

async fn a_flight_is_booked_after_two_questions_of_one_task(dialect: Dialect) {
    let world = reference();
    let client = Client::new(&world, dialect);
    let asked = client.says("Book a flight").await;
    assert_eq!(client.state(&asked), "input-required");
    assert_eq!(client.words(&asked), "Where to?");
    let again = client.answers(&asked, "Helsinki").await;
    assert_eq!(client.state(&again), "input-required");
    assert_eq!(client.words(&again), "When?");
    let answer = client.message("Next Monday", Some(id(&asked)), None);
    let frames = client.streams(&answer).await;
    let lines: Vec<String> = frames.iter().map(|it| dialect.described(it)).collect();
    assert!(lines[0].ends_with(" working"), "{lines:?}");
    assert_eq!(
        lines.last().unwrap(),
        "status completed Booked a flight to Helsinki for Next Monday"
    );
    let done = client.gets(&asked).await;
    let booking = artifact(&done, "book-flight").to_string();
    for booked in [r#""on":"Next Monday""#, r#""to":"Helsinki""#] {
        assert!(booking.contains(booked), "{booking}");
    }
}

/// The report that the client was asked about, in this format.
async fn report(client: &Client<'_>, format: &str) -> Value {
    let asked = client.says("Create a report").await;
    assert_eq!(client.state(&asked), "input-required");
    assert_eq!(client.words(&asked), "What format would you like?");
    assert!(asked["artifacts"].as_array().is_none_or(Vec::is_empty));
    let done = client.answers(&asked, format).await;
    assert_eq!(client.state(&done), "completed");
    assert_eq!(client.words(&done), "Here's your report");
    assert_eq!(id(&done), id(&asked));
    done
}

#[tokio::test(start_paused = true)]
async fn a_report_is_a_file_in_the_format_that_the_client_chose() {
    let world = reference();
    let client = Client::new(&world, REST);
    let pdf = report(&client, "PDF, please").await;
    assert!(bytes(&pdf, "report.pdf").starts_with(b"%PDF-"));
    let part = at(artifact(&pdf, "report.pdf"), "/parts/0");
    assert_eq!(part["mediaType"], "application/pdf");
    assert_eq!(part["filename"], "report.pdf");
    let text = report(&client, "as Markdown").await;
    assert!(bytes(&text, "report.md").starts_with(b"Report\n"));
    // The skill that knows the format does not ask.
    let told = client.says("Create a report on sales as PDF").await;
    assert!(bytes(&told, "report.pdf").starts_with(b"%PDF-"));
}

#[tokio::test(start_paused = true)]
async fn a_shorter_report_is_a_new_task_beside_the_first() {
    let world = reference();
    let client = Client::new(&world, REST);
    let first = report(&client, "plain text").await;
    let second = client.refers(&first, "Make it shorter").await;
    assert_eq!(client.words(&second), "Here's the shorter version");
    assert_ne!(id(&second), id(&first));
    assert_eq!(REST.context(&second), REST.context(&first));
    let [long, short] = [&first, &second].map(|task| bytes(task, "report.txt"));
    assert!(short.len() < long.len() && long.starts_with(&short));
    let ids = [&first, &second].map(|task| &artifact(task, "report.txt")["artifactId"]);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(client.gets(&first).await["artifacts"], first["artifacts"]);
}

#[tokio::test(start_paused = true)]
async fn a_structured_reply_asks_and_an_ordinary_one_completes() {
    let world = reference();
    let client = Client::new(&world, REST);
    let asked = client.says("Format my report").await;
    assert_eq!(client.state(&asked), "input-required");
    let which = "What format would you like for the report?";
    assert_eq!(client.words(&asked), which);
    let secret = client.answers(&asked, "PDF").await;
    assert_eq!(client.state(&secret), "auth-required");
    assert_eq!(client.words(&secret), "Please provide your API key.");
    let hint = json!({"authType": "api_key", "service": "pdf"});
    let metadata = at(&secret, "/status/message/metadata").to_string();
    assert!(metadata.contains(&hint.to_string()), "{metadata}");
    let done = client.answers(&secret, "key-0042").await;
    assert_eq!(client.state(&done), "completed");
    let words = REST.words(artifact(&done, "format-report"));
    assert!(words.starts_with("The report, ready for print:"), "{words}");
    let read = client.gets(&done).await.to_string();
    assert!(!read.contains("key-0042"), "{read}");
    let told = client.says("Format my report as Markdown").await;
    assert_eq!(client.state(&told), "completed");
    let words = REST.words(artifact(&told, "format-report"));
    assert_eq!(words, "# Report\n\nFormat my report as Markdown");
}

#[tokio::test(start_paused = true)]
async fn progress_and_partial_results_come_before_the_end() {
    for dialect in Dialect::ALL {
        let world = reference();
        let client = Client::new(&world, dialect);
        let said = "Generate a report: revenue 120, cost 80.5";
        let params = client.message(said, None, None);
        let frames = client.streams(&params).await;
        let expected = [
            "Analyzing data...",
            "analysis.json",
            "Generating charts...",
            "charts.json",
            "Compiling final report...",
            "report.md",
            "report.md",
            "report.md",
            "final_report.json",
            "Report generation complete!",
        ];
        assert_eq!(client.shown(&frames), expected, "{dialect:?}");
    }
    let world = reference();
    let client = Client::new(&world, REST);
    let task = client
        .says("Generate a report: revenue 120, cost 80.5")
        .await;
    let points = data(&task, "analysis.json")["points"].as_array().unwrap();
    for (point, (label, value)) in points.iter().zip([("revenue", 120.0), ("cost", 80.5)]) {
        assert_eq!(point["label"], label);
        assert_eq!(point["value"].as_f64(), Some(value));
    }
    assert_eq!(data(&task, "charts.json")[0]["bars"][0]["percent"], 60);
    let summary = &data(&task, "final_report.json")["summary"];
    assert_eq!(
        summary,
        "2 figures; highest: revenue (120); lowest: cost (80.5)"
    );
    let written = REST.words(artifact(&task, "report.md"));
    assert!(
        written.ends_with("- revenue: 60 %\n- cost: 40 %\n"),
        "{written}"
    );
}
