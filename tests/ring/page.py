"""The page docs/clients.md, from one run of the ring."""

#: The columns of the table, and the acts of each.
COLUMNS = {
    "texts": ("card", "send", "stream"),
    "data": ("data",),
    "long texts": ("chunks",),
    "pictures": ("picture",),
    "questions": ("question", "streamed question", "answer"),
    "failures": ("failure",),
    "files with words": ("file with words",),
    "errors": ("stream error", "ended task"),
    "tasks": ("cancel twice", "get", "list"),
}

HEAD = """\
# Does my client work?

Most likely. The programs below are real clients from the package registries. Each talks to the default agent of `cargo run`
with the defaults of its framework, as in the first minute of a new user: it sends examples of the card, answers a question,
attaches a picture with a caption, and meets an error.

| | Means |
|---|---|
| ✓ | works |
| ◐ | the agent answers, and the client does not show all of it: [see below](#what-clients-lose) |
| – | the client has no such call |
| ✗ | fails |
"""

ACTS = """\
**Texts**: the card, a send and a stream. **Data**: "What's 2+2?", which a skill answers with JSON. **Long texts**: a report that
arrives in chunks. **Pictures**: "Generate logo". **Questions**: "Book a flight", and the answers to what the agent asks.
**Failures**: the words of a task that fails. **Files with words**: a picture and a caption. **Errors**: a task that does not
exist, or that has ended, on a stream. **Tasks**: a cancel, the same cancel again, a get and a list.
"""

ADVICE = """\
## What an author can do

Your users see what their client shows. Four habits make an answer arrive in every one of them:

1. **Put the answer into an artifact of text.** Every client here shows it. Data is dropped by some, and a file by more: return
   both, the text for people and the data for programs.
2. **Let the last status not repeat it.** Some clients show either the last status or the artifacts. Where the artifact is the
   answer, end without a message.
3. **Ask for all that is missing at once**, and take it from the first message if it is there. Some clients cannot answer.
4. **Do not choose by the accepted output modes.** They are the defaults of a framework, seldom the wish of a user.
"""

FOOT = """\
## Run it

`tests/run.sh --only ring` builds the agent and walks with every client: one environment at a time, below `target/ring`, removed
after its walk. [expected.json](../tests/ring/expected.json) has the expected result of each act, and the line of the client's
source behind each ◐. `python3 tests/ring/run.py --write` writes this page. Another client is a small program in
[tests/ring](../tests/ring/README.md).
"""


def mark(expected: dict, acts: dict, names: tuple) -> str:
    """One cell: the worst of its acts."""
    results = {name: acts.get(name, ("FAIL", ""))[0] for name in names}
    if any(result == "FAIL" and not expected[name].startswith("known: ") for name, result in results.items()):
        return "✗"
    if "FAIL" in results.values():
        return "◐"
    return "✓" if "ok" in results.values() else "–"


def row(client: dict, version: str, marks: list[str]) -> str:
    return f"| {client['title']} | {version} | {client['speaks']} | {' | '.join(marks)} |"


def losses(client: dict, version: str, expected: dict, acts: dict) -> list[str]:
    """What a client loses: its note, then each act with the line of its source."""
    lost: dict[tuple[str, str], list[str]] = {}
    for name, (result, _) in acts.items():
        if result == "FAIL" and expected[name].startswith("known: "):
            # `known: FILE:LINE what it does`
            file, _, what = expected[name].removeprefix("known: ").partition(" ")
            lost.setdefault((file, what), []).append(name)
    if not (lost or client["note"]):
        return []
    lines = ["", f"### {client['title']} {version}", "", f"Mode: {client['mode']}. {client['note']}".strip()]
    if lost:
        lines += ["", *(f"- {', '.join(names)}: `{file}` {what}" for (file, what), names in lost.items())]
    return lines


def text(clients: dict, expected: dict, results: dict, version) -> str:
    """The page. Clients that another step compiles are named only, since they are not on every machine."""
    walked = [key for key in clients if clients[key]["kind"] != "built"]
    head = f"| Client | Version | Speaks | {' | '.join(COLUMNS)} |"
    table = [head, "|---" * (3 + len(COLUMNS)) + "|"]
    lost = []
    for key in walked:
        acts = results.get(key, {})
        marks = [mark(expected[key], acts, names) for names in COLUMNS.values()]
        table.append(row(clients[key], version(key), marks))
        lost += losses(clients[key], version(key), expected[key], acts)
    also = "The [other walks](conformance.md#published-clients) include `a2acli`, `python-a2a` and plain HTTP."
    return "\n".join(
        [HEAD, *table, "", ACTS, also, "", ADVICE, "## What clients lose", *lost, "", FOOT]
    )
