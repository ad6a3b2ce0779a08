"""Checks documents and workflows: links resolve, named files exist, tables equal the code."""

import json
import pathlib
import re
import subprocess
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
# A file in back-ticks: `engine/handler/send_message.rs`, `template.yaml`.
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:rs|sh|py|md|yaml|toml))`")
OPERATIONS = (ROOT / "docs/operations.md").read_text()
# The guide names files of the folder that an author copies.
FOLDERS = ("", "shared", "shared/runtime/src", "docs", "template")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RUN = (ROOT / "tests/run.sh").read_text()


def files(pattern):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def documents():
    return files("*.md")


def prose(path):
    """A document without its code blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)


def anchors(path):
    """The anchors that the hosting site derives from the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def broken_links(path):
    wrong = []
    for link in LINK.findall(prose(path)):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists():
            wrong.append(link)
        elif anchor and anchor not in anchors(target):
            wrong.append(link)
    return wrong


def missing_files(path):
    places = [ROOT / folder for folder in FOLDERS] + [path.parent]
    beside = {file.name for file in files(f"{path.parent.relative_to(ROOT)}/*")}
    return [
        name for name in NAMED.findall(prose(path))
        if name not in beside and not any((place / name).exists() for place in places)
    ]


def steps(name):
    """The steps of tests/run.sh in the array `name`."""
    return re.search(rf"^{name}=\((.*)\)$", RUN, re.M).group(1).split()


class Workflows(unittest.TestCase):
    def test_the_hosted_groups_contain_every_default_step_once(self):
        text = (ROOT / ".github/workflows/ci.yml").read_text()
        groups = re.findall(r"^ +steps: (\w.*)$", text, re.M)
        self.assertEqual(sorted(" ".join(groups).split()), sorted(steps("steps")))

    def test_actions_are_pinned_by_commit(self):
        used = [
            name
            for path in files(".github/*.yml") + files("template/.github/*.yml")
            for name in re.findall(r"\buses: *(\S+)", path.read_text())
            if not name.startswith("./")
        ]
        self.assertGreater(len(used), 5)
        self.assertEqual([name for name in used if not re.search(r"@[0-9a-f]{40}$", name)], [])


    def test_the_workflow_that_authors_copy_can_only_read(self):
        for path in files("template/.github/*.yml"):
            text = path.read_text()
            self.assertIn("\npermissions:\n  contents: read\n", text, path)
            self.assertEqual(text.count("actions/checkout@"), text.count("persist-credentials: false"), path)


class Documents(unittest.TestCase):
    maxDiff = None

    def test_links_resolve(self):
        self.assertEqual({str(p.relative_to(ROOT)): b for p in documents() if (b := broken_links(p))}, {})

    def test_named_files_exist(self):
        self.assertEqual({str(p.relative_to(ROOT)): m for p in documents() if (m := missing_files(p))}, {})

    def test_contributing_lists_every_alias_and_cargo_is_not_configured_otherwise(self):
        config = tomllib.loads((ROOT / ".cargo/config.toml").read_text())
        self.assertEqual(list(config), ["alias", "env"])
        copied = tomllib.loads((ROOT / "template/.cargo/config.toml").read_text())
        self.assertEqual((copied, config["env"]), ({"env": config["env"]}, {"SOURCE_DATE_EPOCH": "0"}))
        listed = re.findall(r"^\| `cargo (\w+)", CONTRIBUTING, re.M)
        self.assertEqual(listed, list(config["alias"]))

    def test_contributing_lists_every_step_in_its_order(self):
        section = CONTRIBUTING.partition("\n## The steps\n")[2].partition("\n## ")[0]
        listed = re.findall(r"^\| `([\w-]+)` \|", section, re.M)
        self.assertEqual(listed, steps("steps") + steps("more") + steps("apart"))

    def test_operations_lists_every_error_of_the_table(self):
        # The conformance suite compares this table with the code.
        rows = json.loads((ROOT / "tests/conformance/vectors/errors.json").read_text())
        self.assertGreater(len(rows), 20)
        section = OPERATIONS.partition("## Errors")[2]
        listed = {}
        for reason, code, status in re.findall(r"^\| `([A-Z_]+)` \| (-\d[^|]*) \| ([^|]*) \|", section, re.M):
            listed[reason] = (set(re.findall(r"-\d{5}", code)), set(re.findall(r"\b\d{3}\b", status)))
        sent = {}
        for row in rows:
            codes, statuses = sent.setdefault(row["reason"], (set(), set()))
            codes.update({str(row["code"]), str(row.get("code in 0.1", row["code"]))})
            statuses.update({str(row["http"]), str(row.get("http before 1.0", row["http"]))})
        self.assertEqual(listed, sent)

    def test_operations_lists_every_parameter_of_the_template(self):
        section = (ROOT / "template.yaml").read_text().partition("\nParameters:\n")[2].partition("\nConditions:\n")[0]
        parameters = re.findall(r"^  (\w+):$", section, re.M)
        self.assertIn("PublicUrl", parameters)
        deploying = OPERATIONS.partition("## Deploying")[2].partition("\n## ")[0]
        names = [row.split(" | ")[0] for row in deploying.splitlines() if row.startswith("| `")]
        self.assertEqual(sorted(re.findall(r"`(\w+)`", "".join(names))), sorted(parameters))

    def test_the_tests_of_the_capabilities_exist(self):
        rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs/capabilities.md").read_text(), re.M)
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        self.assertGreater(len(named), 80)
        folders = ("shared", "tests", "examples", "infra")
        sources = [file.read_text() for it in folders for file in sorted((ROOT / it).rglob("*.rs"))]
        # A suite of cases lists their names, one a line.
        known = set(re.findall(r"\bfn (\w+)|^ +(\w+)$", "\n".join(sources), re.M))
        known = {name for pair in known for name in pair}
        self.assertEqual(named - known, set())

    def test_each_capability_names_one_test_over_http_of_a_client_without_our_extensions(self):
        text = (ROOT / "docs/capabilities.md").read_text()
        rows = [row.strip("|").split(" | ") for row in re.findall(r"^\| .*\|$", text, re.M)]
        cells = [row[-2].strip() for row in rows if row[-2].strip() != "Over HTTP"]
        unseen = [cell for cell in cells if cell == "-"]
        self.assertGreater(len(cells), 100)
        self.assertLess(len(unseen), 20)
        tests = {cell.strip("`") for cell in cells if re.fullmatch(r"`\w+`", cell)}
        self.assertEqual({cell for cell in cells if cell.strip("`") not in tests}, {"-", "the step fresh-clone"})
        suites = ("tests/in_process", "tests/local", "tests/conformance", "examples/own_server.rs")
        files = [file for it in suites for file in [ROOT / it, *sorted((ROOT / it).rglob("*.rs"))] if file.is_file()]
        # `Say::to` names the skill in metadata of ours, unless the name is empty.
        ours = re.compile(r"Say::to\((?!\"\")|\bSKILL\b|\"a2a-lambda/")
        known, wrong = set(), set()
        for file in files:
            pattern = r"\bfn (\w+)(?:<.*?>)?\((.*?)\n *\}\n(?= *$|\n| *\})"
            bodies = dict(re.findall(pattern, file.read_text(), re.M | re.S))
            known |= bodies.keys()
            for test in tests & bodies.keys():
                # The test and the functions of its file that it uses.
                used, names = set(), {test}
                while names:
                    used |= names
                    names = {name for it in names for name in re.findall(r"\w+", bodies[it])} & bodies.keys() - used
                wrong |= {test for name in used if ours.search(bodies[name])}
        self.assertEqual(tests - known, set())
        self.assertEqual(wrong, set())

    def test_conformance_lists_every_metadata_key_of_the_code(self):
        source = (ROOT / "shared/model/src/task/metadata_keys.rs").read_text()
        names = re.findall(r'^pub const \w+: &str = "([^"]+)";$', source, re.M)
        self.assertGreater(len(names), 8)
        section = (ROOT / "docs/conformance.md").read_text().partition("### Metadata of ours")[2].partition("\n### ")[0]
        rows = [row.split(" | ")[0] for row in section.splitlines() if row.startswith("| `")]
        self.assertEqual(sorted(re.findall(r"`([^`]+)`", "".join(rows))), sorted(names))
        # One file defines them. (The hash of a signature is not metadata.)
        elsewhere = re.compile(r'^(?! *//).*"(a2a-lambda/\w+)"', re.M)
        files = [p for p in (ROOT / "shared").rglob("*.rs") if "/src/" in str(p) and "test" not in str(p) and p.name != "samples.rs"]
        found = {name for file in files if file.name != "metadata_keys.rs" for name in elsewhere.findall(file.read_text())}
        self.assertEqual(found & set(names), set())

    def test_the_kits_of_the_workflow_are_those_of_the_last_run(self):
        workflow = (ROOT / ".github/workflows/ci.yml").read_text()
        pinned = re.findall(r"^ +- kit: ([0-9a-f]{40})", workflow, re.M)
        section = (ROOT / "docs/conformance.md").read_text().partition("## The official kits")[2]
        self.assertEqual(len(pinned), 2)
        self.assertEqual(sorted(set(re.findall(r"`([0-9a-f]{40})`", section))), sorted(pinned))

    def test_the_list_of_decisions_is_complete(self):
        folder = ROOT / "docs/decisions"
        records = sorted(file.name for file in folder.glob("[0-9]*.md"))
        self.assertEqual(sorted(LINK.findall((folder / "README.md").read_text())), records)

    def test_the_documents_are_found(self):
        names = {str(path.relative_to(ROOT)) for path in documents()}
        self.assertLess({"README.md", "docs/flow.md", "docs/decisions/README.md"}, names)
        self.assertIn("known-gaps", anchors(pathlib.Path(ROOT / "docs/conformance.md")))


if __name__ == "__main__":
    unittest.main()
