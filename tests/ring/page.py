"""The page docs/clients.md, from one run of the ring."""

import textwrap

import history

#: The columns of the table, and the acts of each.
COLUMNS = {
    "Texts": ("card", "send", "stream", "text artifact"),
    "Data": ("data",),
    "Long texts": ("chunks",),
    "Pictures": ("picture",),
    "Questions": ("question", "streamed question", "answer"),
    "Conversations": tuple(name + way for way in ("", history.BY_MODEL) for name in history.IN_BOTH),
    "Consents": tuple(name + history.BY_MODEL for name in history.WITH_MODEL),
    "Failures": ("failure",),
    "Files with words": ("file with words",),
    "Errors": ("stream error", "ended task"),
}
#: The last column names those of its acts that work.
TASKS = {"cancel twice": "cancel", "get": "get", "list": "list"}
#: Characters of a line.
WIDTH = 128

HEAD = """\
# Does my client work?

Most likely. The programs below are real clients from the package registries. Each one talks to the default agent of `cargo run`
with the defaults of its framework, as in the first minute of a new user: it tries examples of the card, answers a question,
attaches a picture with a caption, meets an error, and goes on talking.
"""

LEGEND = """\
✓ works · ◐ works in part: [the client's section](#client-by-client) says what is lost · – the client has no such call"""

COLUMN_TEXT = """\
| Column | What the user does |
|---|---|
| Texts | gives the client the address of the agent, sends "echo hello" with and without a stream, gets a text artifact |
| Data | asks "What's 2+2?", which a skill answers with JSON and a word |
| Long texts | asks for a report, which arrives in chunks |
| Pictures | says "Generate logo" |
| Questions | says "Book a flight", and answers what the agent asks |
| Conversations | keeps one session: remembers something and asks for it, books a flight, adds, has a report and a logo made, and says "Make it blue"; leaves a question open and takes it up; refines the first of two logos; refines a report in the twentieth turn; says "never mind" to a question, and then adds. Each is right only if the agent made nothing else of it, without a model and with a stub of one that chooses the skill where no rule decides |
| Consents | is asked twice in one task whether a memory may be stored, and answers "yes", "yes", and "yes" with the [code](#two-consents-in-one-task) of the second question |
| Failures | sends "/add 2+2+2", which the skill `add` refuses, and reads why |
| Files with words | sends a picture and a caption |
| Errors | writes to a task that does not exist, or that has ended, on a stream |
| Tasks | cancels a task twice, gets one, lists them |
"""

ALSO = """\
More programs are driven through the conformance agent: [published clients](conformance.md#published-clients). `a2a-utils` is not
among the clients: it needs Python 3.13, and the ring has to run with 3.11. It sends the context of a session and not the task, as
other clients here do.
"""

ADVICE = """\
## What an author can do

Users see what their client shows. Five habits make an answer arrive in each of these clients:

1. **Put the answer into an artifact of text**, the last one if there are several. Some clients drop data, more drop files: return
   data for programs and text for people.
2. **Let the last status not repeat a text.** Some clients show either the text of the last status or the artifacts. Where a text
   artifact is the answer, end without a message. Beside data, let the last status [say in words](#words-and-artifacts) what it holds.
3. **Ask for everything at once**, and take it from the first message if it is there. Some clients cannot answer a question. One
   that can only say "yes" confirms the first [question of consent](guide/choice.md) of a task, and stops at the
   second, which asks for its code.
4. **Do not choose the answer by the accepted output modes.** They are defaults of a framework, seldom the wish of a user.
5. **Name the texts that refine a result** (`refines`), and set `answers_by_context` for an agent of one skill. Some clients send
   the context of a question and not its task ([which task a message is for](guide/conversation.md#which-task-a-message-is-for)).
"""

WORDS = """\
## Words and artifacts

`add` answers with data and ends with a line: `{"sum": 4}` and "4"
([how a skill does it](guide/conversation.md#words-beside-data)). This is what the users of each client see of it:

| They see | In |
|---|---|
| only the line | Google ADK; Strands Agents for Python and for TypeScript; CrewAI; AG2 |
| only the artifact, as JSON | Microsoft Agent Framework; BeeAI Framework; `handler message send` |
| both | Vercel AI SDK, `generateText`; assistant-ui; `handler message stream` |
| neither | Vercel AI SDK, `streamText`; `a2a-bridge` |
| what the program takes out of the task, which has both | the official SDKs |

The clients of Strands drop every artifact beside a line, also one of text. The others of the first row drop only data, and show
none of it without a line. Where the artifact is all that is seen the line is lost, so put into it only what the data has too.
"""

CONSENTS = """\
## Two consents in one task

A tool that writes waits until the user has agreed to what a model wrote ([consent](guide/choice.md#consent)). The user here says
"/assist Keep both in mind", and the assistant, whose model is a stub, wants to store two memories, one after the other:

| The user says | The agent |
|---|---|
| "yes" to the first question, which ends with "Answer `yes` or `no`." | stores the first memory, and asks about the second |
| "yes" to the second one, which ends with a line such as "Answer `yes kabo` or `no`." | stores nothing, and asks the same again |
| "yes kabo" | stores the second memory, and answers |

A client with ✓ shows both questions, and its user types what they ask for. That works for a client that sends only the context, too
(Google ADK for JavaScript, AG-UI, tRPC-Agent and others). A client or a program that can only say "yes" stops at the second question,
however often it says so. It can copy the digest of the question, `a2a-lambda/confirm` in the metadata of its text, into the metadata
of its answer. `a2a-bridge` shows no question, and Strands Agents keep no session: offer them no tool that asks.

No sentence of the column *Conversations* asks for consent: a model only chooses there, and each input is what the user wrote.
"""

ERRORS = """\
## Errors on a stream

Over JSON-RPC the `Accept` of a client decides how an error before the first event arrives:

| Call | `Accept` | The error |
|---|---|---|
| `SendStreamingMessage`, `SubscribeToTask`, and those of 0.3 | names `text/event-stream` and no type of JSON | is the only event, with the id of the request. The official JavaScript SDK 1.3.0 wraps it: the typed error is `error.cause` |
| the same | any other | is a plain answer |
| `SubscribeToTask` of a task that has ended (-32004) | any | is a plain answer, since the official kit (STREAM-SUB-003) counts any stream as success. The official clients for Go and .NET see an empty stream: read the task |
| any that is refused with 401, 403, 413, 415, 429 or 503 | any | is a plain answer with that status |
"""

FOOT = """\
## Run it

`tests/run.sh --only ring` builds the agent and walks with every client: one environment at a time below `target/ring`, removed
after its walk. [expected.json](../tests/ring/expected.json) has the expected result of each act.
`python3 tests/ring/run.py --write` writes this page. Another client is a small program in [tests/ring](../tests/ring/README.md).
"""


def failed(expected: dict, acts: dict, name: str) -> bool:
    """Whether an act fails, and not for a reason in the client's source."""
    return acts.get(name, ("FAIL", ""))[0] == "FAIL" and not expected[name].startswith("known: ")


def mark(expected: dict, acts: dict, names: tuple) -> str:
    """One cell: the worst of its acts."""
    results = {acts.get(name, ("FAIL", ""))[0] for name in names}
    if any(failed(expected, acts, name) for name in names):
        return "✗"
    lost = "FAIL" in results or acts.get("answer", ("",))[0] == "cannot" and "answer" in names
    if lost:
        return "◐"
    return "✓" if "ok" in results else "–"


def tasks(expected: dict, acts: dict) -> str:
    if any(failed(expected, acts, name) for name in TASKS):
        return "✗"
    return ", ".join(word for name, word in TASKS.items() if acts[name][0] == "ok") or "–"


def wrapped(words: str, **options) -> str:
    return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False, **options)


def section(client: dict, version: str, expected: dict, acts: dict) -> list[str]:
    """One client: its mode, its note, and each act that it loses with the line of its source."""
    lost: dict[tuple[str, str], list[str]] = {}
    for name, (result, _) in acts.items():
        if result == "FAIL" and expected[name].startswith("known: "):
            # `known: FILE:LINE what it does`
            file, _, what = expected[name].removeprefix("known: ").partition(" ")
            lost.setdefault((file, what), []).append(name)
    if not (lost or client["note"]):
        return []
    lines = [f"### {client['title']} {version}", "", wrapped(f"Mode: {client['mode']}. {client['note']}".strip()), ""]
    bullets = [f"- {', '.join(names)}: `{file}` {what}" for (file, what), names in lost.items()]
    return lines + ([wrapped(one, subsequent_indent="  ") for one in bullets] + [""] if bullets else [])


def text(clients: dict, expected: dict, results: dict, version) -> str:
    """The page. A client that another step compiles is named only: it is not on every machine."""
    table = [f"| Client | Version | Speaks | {' | '.join(COLUMNS)} | Tasks |", "|---" * (4 + len(COLUMNS)) + "|"]
    sections = []
    for key, client in clients.items():
        if client["kind"] == "built":
            continue
        acts = results.get(key, {name: ("FAIL", "") for name in expected[key]})
        marks = [mark(expected[key], acts, names) for names in COLUMNS.values()] + [tasks(expected[key], acts)]
        table.append(f"| {client['title']} | {version(key)} | {client['speaks']} | {' | '.join(marks)} |")
        sections += section(client, version(key), expected[key], acts)
    legend = LEGEND + (" · ✗ fails in this version" if any("✗" in row for row in table) else "")
    return "\n".join([HEAD, *table, "", legend, "", COLUMN_TEXT, ALSO, ADVICE, WORDS, CONSENTS, ERRORS, "## Client by client", "", *sections, FOOT])
