//! Parses the commands of the conformance agent.

use std::time::Duration;

/// The most seconds of `wait`: one day.
const MAX_WAIT: u64 = 24 * 3600;
/// The most chunks.
const MAX_CHUNKS: u32 = 100_000;
/// The most milliseconds between two chunks: one hour.
const MAX_PAUSE: u64 = 3_600_000;
/// The most steps.
const MAX_STEPS: u32 = 1_000;
/// The most bytes of `file`.
const MAX_FILE: usize = 256 * 1024 * 1024;

/// A command of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// A command of a kit, in the message id.
    Kit(Behaviour),
    /// `echo …`.
    Echo(&'a str),
    /// `wait N`: seconds.
    Wait(Duration),
    /// `chunks N [MS]`: N chunks with pauses of MS milliseconds.
    Chunks { count: u32, pause: Duration },
    /// `back`: delivers the file of the message.
    Back,
    /// `sum`: adds the integers `a` and `b` of the message's data.
    Sum,
    /// `note …`: saves the text in the context.
    Note(&'a str),
    /// `recall`: delivers the thread of the context.
    Recall,
    /// `refer`: delivers the tasks that the message refers to.
    Refer,
    /// `file N [MS]`: delivers N bytes and works on for MS milliseconds.
    File { size: usize, pause: Duration },
    /// `steps N [MS]`: runs N steps of MS milliseconds each.
    Steps { count: u32, time: Duration },
    /// `fail`.
    Fail,
    /// `reject`.
    Reject,
    /// `auth`.
    Auth,
    /// `panic`.
    Panic,
    /// Anything else.
    Unknown,
}

/// The behaviour that a kit expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Completed, with a status message.
    Complete,
    /// A message and no task.
    Message,
    /// A text artifact.
    Text(&'static str),
    /// A file artifact with bytes.
    File,
    /// A file artifact with a URL.
    FileUrl,
    /// A data artifact.
    Data,
    /// A question.
    Ask,
    /// A question after each message of the task, until one says `done`.
    AskUntilDone,
    /// A request for credentials; then completed.
    AskForCredentials,
    /// Failed, with a status message.
    Fail,
    /// Rejected.
    Reject,
    /// Completed, without a message or artifact.
    CompleteAtOnce,
    /// Working, then a text artifact.
    StreamText(&'static str),
    /// Working, then a file artifact.
    StreamFile,
    /// Working, then a text artifact in two chunks.
    StreamChunks,
    /// Working for longer than the kit's stream stays open.
    OutliveStream,
    /// Working for some seconds, then a text artifact.
    WorkForSeconds,
    /// Working until a client cancels the task.
    WorkUntilCanceled,
}

/// Prefixes of message ids with their behaviour, as `a2a-tck` has them. They are words too.
const KITS: &[(&str, Behaviour)] = &[
    ("tck-complete-task", Behaviour::Complete),
    (
        "tck-artifact-text",
        Behaviour::Text("Generated text content"),
    ),
    ("tck-artifact-file-url", Behaviour::FileUrl),
    ("tck-artifact-file", Behaviour::File),
    ("tck-artifact-data", Behaviour::Data),
    ("tck-message-response", Behaviour::Message),
    ("tck-input-required", Behaviour::Ask),
    ("tck-reject-task", Behaviour::Reject),
    (
        "tck-stream-001",
        Behaviour::StreamText("Stream hello from TCK"),
    ),
    ("tck-stream-002", Behaviour::CompleteAtOnce),
    (
        "tck-stream-003",
        Behaviour::StreamText("Stream task lifecycle"),
    ),
    (
        "tck-stream-ordering-001",
        Behaviour::StreamText("Ordered output"),
    ),
    (
        "tck-stream-artifact-text",
        Behaviour::StreamText("Streamed text content"),
    ),
    ("tck-stream-artifact-file", Behaviour::StreamFile),
    ("tck-stream-artifact-chunked", Behaviour::StreamChunks),
    ("test-resubscribe-message-id", Behaviour::OutliveStream),
];

/// The other words of ACTS.
const WORDS: &[(&str, Behaviour)] = &[
    (
        "tck-stream-basic",
        Behaviour::StreamText("Streamed content"),
    ),
    ("tck-stream-chunked", Behaviour::StreamChunks),
    ("tck-multi-turn", Behaviour::AskUntilDone),
    ("tck-auth-required", Behaviour::AskForCredentials),
    ("tck-task-failure", Behaviour::Fail),
    ("tck-long-running", Behaviour::WorkForSeconds),
    ("tck-cancel", Behaviour::WorkUntilCanceled),
];

/// The beginning of every command of a kit. An id without a longer prefix is that of any test
/// that needs a completed task; a word without one is a test that this agent does not know.
const KIT: &str = "tck-";

impl<'a> Command<'a> {
    /// Parses the command of a message: its id, then the first word of its text as a kit's
    /// prefix, then its text as a command.
    pub(super) fn of(message_id: &str, text: Option<&'a str>) -> Self {
        let text = text.unwrap_or_default().trim();
        let first = text.split_whitespace().next().unwrap_or_default();
        let by_id = behaviour(message_id, &[KITS], Behaviour::StreamText("Done"));
        match by_id.or_else(|| behaviour(first, &[KITS, WORDS], Behaviour::Fail)) {
            Some(behaviour) => Self::Kit(behaviour),
            None => Self::in_words(text).unwrap_or(Self::Unknown),
        }
    }

    fn in_words(text: &'a str) -> Option<Self> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut numbers = rest.split_whitespace();
        let command = match word {
            "echo" => return Some(Self::Echo(rest.trim_start())),
            "note" => return Some(Self::Note(rest.trim_start())),
            "wait" => Self::Wait(Duration::from_secs(up_to(numbers.next()?, MAX_WAIT)?)),
            "chunks" => Self::Chunks {
                count: up_to(numbers.next()?, MAX_CHUNKS).filter(|count| *count > 0)?,
                pause: Duration::from_millis(up_to(numbers.next().unwrap_or("0"), MAX_PAUSE)?),
            },
            "back" => Self::Back,
            "sum" => Self::Sum,
            "recall" => Self::Recall,
            "refer" => Self::Refer,
            "file" => Self::File {
                size: up_to(numbers.next()?, MAX_FILE)?,
                pause: Duration::from_millis(up_to(numbers.next().unwrap_or("0"), MAX_PAUSE)?),
            },
            "steps" => Self::Steps {
                count: up_to(numbers.next()?, MAX_STEPS).filter(|count| *count > 0)?,
                time: Duration::from_millis(up_to(numbers.next().unwrap_or("0"), MAX_PAUSE)?),
            },
            "fail" => Self::Fail,
            "reject" => Self::Reject,
            "auth" => Self::Auth,
            "panic" => Self::Panic,
            _ => return None,
        };
        numbers.next().is_none().then_some(command)
    }
}

/// The behaviour of an id or a word, by the longest prefix in the tables; `other` if only
/// [`KIT`] fits.
fn behaviour(key: &str, tables: &[&[(&str, Behaviour)]], other: Behaviour) -> Option<Behaviour> {
    let fits = tables.iter().copied().flatten();
    let fits = fits.filter(|(prefix, _)| key.starts_with(prefix));
    let longest = fits.max_by_key(|(prefix, _)| prefix.len());
    let behaviour = longest.map(|(_, behaviour)| *behaviour);
    behaviour.or_else(|| key.starts_with(KIT).then_some(other))
}

/// Parses a number that is at most `max`.
fn up_to<N: std::str::FromStr + PartialOrd + Copy>(text: &str, max: N) -> Option<N> {
    text.parse().ok().filter(|number| *number <= max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    fn reported(text: &str) -> Command<'_> {
        Command::of("msg-1", Some(text))
    }

    #[test]
    fn longest_matching_prefix_of_a_message_id_wins() {
        let by_id = |id| Command::of(id, Some("echo hi"));
        assert_eq!(
            by_id("tck-artifact-file-url-1"),
            Command::Kit(Behaviour::FileUrl)
        );
        assert_eq!(by_id("tck-artifact-file-1"), Command::Kit(Behaviour::File));
        assert_eq!(
            by_id("tck-get-task-1"),
            Command::Kit(Behaviour::StreamText("Done"))
        );
        assert_eq!(
            by_id("tck-cancel-1"),
            Command::Kit(Behaviour::StreamText("Done"))
        );
        assert_eq!(by_id("anything"), Command::Echo("hi"));
    }

    #[test]
    fn kit_without_message_ids_uses_the_first_word() {
        assert_eq!(
            reported("tck-reject-task now"),
            Command::Kit(Behaviour::Reject)
        );
        assert_eq!(reported("now tck-reject-task"), Command::Unknown);
    }

    #[test]
    fn a_word_of_a_kit_that_is_not_known_fails() {
        assert_eq!(reported("tck-juggle three"), Command::Kit(Behaviour::Fail));
        assert_eq!(
            reported("tck-artifact-file-url x"),
            Command::Kit(Behaviour::FileUrl)
        );
    }

    #[test]
    fn commands_are_read_with_their_numbers() {
        assert_eq!(reported("echo  hello  you "), Command::Echo("hello  you"));
        assert_eq!(reported("wait 20"), Command::Wait(Duration::from_secs(20)));
        let pause = Duration::from_millis(20);
        assert_eq!(reported("chunks 5 20"), Command::Chunks { count: 5, pause });
        let pause = Duration::ZERO;
        assert_eq!(reported("chunks 5"), Command::Chunks { count: 5, pause });
        assert_eq!(reported("back"), Command::Back);
        assert_eq!(reported("sum"), Command::Sum);
        assert_eq!(reported("note  of it "), Command::Note("of it"));
        assert_eq!(reported("recall"), Command::Recall);
        assert_eq!(reported("refer"), Command::Refer);
        let size = 1000;
        assert_eq!(reported("file 1000"), Command::File { size, pause });
        let pause = Duration::from_millis(7);
        assert_eq!(reported("file 1000 7"), Command::File { size, pause });
        let (count, time) = (3, Duration::from_millis(7));
        assert_eq!(reported("steps 3 7"), Command::Steps { count, time });
        assert_eq!(reported("fail"), Command::Fail);
    }

    #[test]
    fn unknown_text_is_not_a_command() {
        let rows = [
            "",
            "hello?",
            "wait",
            "wait long",
            "wait -1",
            "chunks 0",
            "chunks 5 20 3",
            "file 1e3",
            "file 99999999999",
            "steps",
            "steps 0",
            "failing",
            "fail 1",
            "back 1",
            "recall it",
            "refer 2",
        ];
        each_row(rows, |text| {
            assert_eq!(reported(text), Command::Unknown, "{text}");
        });
    }
}
