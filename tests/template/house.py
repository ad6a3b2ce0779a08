"""Counts how readable the code is: sizes, circles, words and names.

Prints a table and, with `--check`, fails when a limit is exceeded. It reads the files
that git tracks in the checkout, and parses Rust by regular expressions and braces.

Production code: the library, its macros, the functions and the local agent. Test modules,
contract suites, fuzz code and the agent with the examples do not count as production.
"""

import argparse
import bisect
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNTIME, MODEL, WIRE, STORE, SKILL, AWS, LLM = (
    f"shared/{crate}/src" for crate in ("runtime", "model", "wire", "store", "skill", "aws", "llm")
)
# The crates of the library.
LIBRARY = (WIRE, MODEL, STORE, SKILL, AWS, LLM, RUNTIME)
PROGRAMS = ("shared/macros/src", "shared/admin/src", "shared/local/src")
ROOTS = (*(f"{crate}/lib.rs" for crate in (*LIBRARY, *PROGRAMS)), "infra/local/src/main.rs")
# Members that are no production code. Their circles count too.
OTHERS = ("shared/agent/src", "tests/conformance/agent/src")
AREAS = ("wire", "model", "store", "skill", "aws", "llm", "engine", "http", "serve")

# Limits of `--check`.
# The production lines of each crate. A new mechanism names who asked; an own idea takes out what it adds.
LINES_MAX = {
    "wire": 6_800, "model": 8_150, "store": 3_400, "skill": 6_200, "aws": 7_500, "llm": 4_700, "runtime": 26_200,
    "macros": 550, "admin": 1_450, "local": 6_200,
}
WORDS_BELOW = 40
CIRCLE_MAX = 3
FUNCTION_MAX = 70
PARTICIPLES_BELOW = 8
# Limits that are only reported.
FILE_MAX = 400
SUBJECT_MAX = 72

# Words that other code bases do not use. `docs/style.md` and this file have to name them.
WORDS = ("stands", "nobody", "told", "goes on", "lies", "came to")
WORDS_IN = (".rs", ".md", ".py", ".sh", ".yaml")
WORDS_NOT_IN = ("docs/style.md", "tests/template/house.py")

# Type names that may be declared more than once: the folders or files that may declare them,
# and the reason. A further declaration in another place fails.
ADMIN, LOCAL, TASK = "shared/admin/src/", "shared/local/src/", f"{MODEL}/task/"
A_PROGRAM = "the local agent is a program of its own and never imports the other type"
ALLOWED = {
    "Artifact": (
        (TASK, f"{SKILL}/artifact.rs"),
        "A2A's word: the artifact of a task, and what a skill makes, without an id",
    ),
    "Attributes": (("shared/macros/src/", f"{AWS}/dynamodb/item.rs"), "Rust's attributes and DynamoDB's"),
    "Batch": ((LOCAL, f"{RUNTIME}/serve/relay.rs"), A_PROGRAM),
    "Delivery": ((LOCAL, TASK), A_PROGRAM),
    "Item": ((f"{STORE}/table.rs", f"{AWS}/dynamodb/item.rs"), "the item of any table, and that of the SDK"),
    "Key": ((ADMIN, f"{STORE}/keys.rs"), "the key of a signature, and that of an item"),
    "Message": ((LOCAL, TASK), "A2A's word; in the local agent SQS's word"),
    "Next": ((LOCAL, f"{RUNTIME}/testing/mod.rs"), A_PROGRAM),
    "Stream": ((LOCAL, f"{WIRE}/v01/stream.rs"), A_PROGRAM),
    "Table": ((ADMIN, f"{STORE}/table.rs"), "the options that name a table, and any table"),
}

# Identifiers that were renamed. Some are also ordinary words: read the places before you rename.
OLD_NAMES = """
    attend Pulse Journal conclude Ended Standing stood_for anew going_on Beside Race
    commit_beside commit_as commit_opening stand_back outrun in_time answered_by Room Give
    Checked tidy Heir take_up heard Courier Notice Silent Listener Told spoken Refusal
    Ask Spelling Visit Door Edge stored_at standing_at Wanted Excerpt Statement decide
    take_away Whose offload inflate Doc Apart Batches Bench
""".split()

# Participles without `-ed`, and three words that say as little. The name of a value says what
# the value is: `record`, not `found`. `docs/style.md` has the rule.
PARTICIPLES = set(
    """
    begun born bound broken brought built caught chosen done drawn forgotten found given gone
    got grown held hidden kept known left lost made meant met own paid place said seen sent
    shown sold spent taken taught thought told torn understood whole won written
""".split()
)
# Words in `-ed` that are names all the same.
IN_ED = set("embed embedded exceed indeed need proceed succeed speed unbounded used".split())

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|\bb?c?r(?P<hashes>\#*)".*?"(?P=hashes)"""
    r"""|[bc]?"(?:[^"\\]|\\.)*\""""
    r"""|b?'(?:[^'\\\n]|\\(?:x..|u\{[^}]*\}|.))'""",
    re.DOTALL | re.VERBOSE,
)
NOT_LINE_END = re.compile(r"[^\n]")
TEST_CFG = re.compile(r"#\[cfg\((?:test\b|any\(test\b|all\(test\b)[^\]]*\]")
ATTRIBUTE = re.compile(r"\s*#\[(?:[^\[\]]|\[[^\]]*\])*\]")
BRACE = re.compile(r"[{}]")
VISIBLE = r"(?:pub(?:\([^)]*\))?\s+)?"
MODULE = re.compile(rf"^\s*{VISIBLE}mod\s+(\w+)\s*;", re.MULTILINE)
IN = re.compile(r"pub\(in [^)]*\)")
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
TYPE = re.compile(rf"^[ \t]*{VISIBLE}(?:unsafe\s+)?(?:struct|enum|trait|type|union)\s+(\w+)", re.MULTILINE)
ITEM = re.compile(
    rf"^[ \t]*{VISIBLE}(?:default\s+)?(?:async\s+|unsafe\s+|const\s+(?=fn|unsafe|async)|extern\s+\"\s*\"\s+)*"
    r"(?:struct|enum|trait|type|union|fn|const|static(?:\s+mut)?|macro_rules!)\s+(\w+)",
    re.MULTILINE,
)
PUBLIC = re.compile(
    r"^[ \t]*pub\s+(?:async\s+|unsafe\s+|const\s+(?=fn|unsafe|async)|extern\s+\"\s*\"\s+)*"
    r"(struct|enum|trait|type|union|fn|const|static|mod)\s+(\w+)",
    re.MULTILINE,
)
FUNCTION = re.compile(r"\bfn\s+(\w+)\s*[<(]")
TEST = re.compile(
    r"^[ \t]*#\[(?:\w+::)*test\b[^\]]*\](?:\s*(?:#\[[^\n]*\]|//[^\n]*))*\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)",
    re.MULTILINE,
)
# A name that a value gets: in a `let`, a pattern, a loop, a closure, or as a parameter or field.
BINDING = re.compile(
    r"""\blet\s+(?:mut\s+)?(?:(?:Some|Ok|Err)?\()?(?:mut\s+|ref\s+)?([a-z_]\w*)"""
    r"""|\b(?:Some|Ok|Err)\((?:mut\s+)?([a-z_]\w*)\)\s*(?:=>|=[^=]|if)"""
    r"""|\bfor\s+([a-z_]\w*)\s+in"""
    r"""|\|(?:mut\s+|&)?([a-z_]\w*)\s*[,|:]"""
    r"""|(?<=[(,])\s*(?:mut\s+)?([a-z_]\w*)\s*:\s*[&A-Z\[(a-z]"""
)
# A name that can be an item: no field or method, and no declaration of a function.
WORD = re.compile(r"(?<![\w.])(?<!\bfn )\w+")
PATH = re.compile(r"(?<![\w:])((?:\w++\s*+::\s*+)+\w++)")


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def blank(text):
    return NOT_LINE_END.sub(" ", text)


def strip(text):
    """The code with comments and strings as spaces, at the same offsets, and the offsets of `//` comments.

    Only comments on lines of their own count, and no documentation."""
    plain = []

    def space(match):
        found = match.group(0)
        if match.group("comment") is None:
            # The quotes stay, so that `extern "C"` and `include!("x")` keep their form.
            return '"' + blank(found[1:-1]) + '"' if found.endswith('"') else blank(found)
        if found.startswith("//") and not re.match(r"///(?!/)|//!", found):
            begin = text.rfind("\n", 0, match.start()) + 1
            if not text[begin : match.start()].strip():
                plain.append(match.start())
        return blank(found)

    return TOKEN.sub(space, text), plain


def closing(code, at):
    """The offset behind the brace that closes the one at `at`."""
    depth = 0
    for brace in BRACE.finditer(code, at):
        depth += 1 if brace.group(0) == "{" else -1
        if depth == 0:
            return brace.end()
    return len(code)


def body_of(code, at):
    """The brace that opens the body of the item at `at`, or `None` when a `;` ends it."""
    depth = 0
    for match in re.compile(r"[()\[\]{};]").finditer(code, at):
        sign = match.group(0)
        if sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif depth == 0:
            return match.start() if sign == "{" else None
    return None


def without_tests(code):
    """The code with each item below a test `cfg` as spaces, and the ranges of those items."""
    ranges = []
    for match in TEST_CFG.finditer(code):
        if ranges and match.start() < ranges[-1][1]:
            continue
        at = match.end()
        while attribute := ATTRIBUTE.match(code, at):
            at = attribute.end()
        brace = body_of(code, at)
        if brace is None or re.match(rf"\s*{VISIBLE}use\b", code[at:]):
            end = code.find(";", at) + 1
        else:
            end = closing(code, brace)
        ranges.append((match.start(), end))
    for begin, end in ranges:
        code = code[:begin] + blank(code[begin:end]) + code[end:]
    return code, ranges


def area_of(crate, module):
    """The area of a module of the library: its crate, or its folder in the facade."""
    if crate != RUNTIME:
        return crate.split("/")[1]
    return module[0] if module and module[0] in AREAS else "other"


def crate_of(path):
    """The crate of the library that a file belongs to."""
    return next((crate for crate in LIBRARY if path.startswith(f"{crate}/")), None)


class Source:
    """A production file."""

    def __init__(self, path, module):
        self.path, self.module = path, module
        self.text = (ROOT / path).read_text()
        code, comments = strip(self.text)
        self.code, hidden = without_tests(code)
        gone = {self.line(at) for begin, end in hidden for at in self.line_starts(begin, end)}
        self.lines = self.text.count("\n") - len(gone)
        self.comments = sum(self.line(at) not in gone for at in comments)
        self.children = MODULE.findall(self.code)
        self.braces = [(brace.start(), 1 if brace.group(0) == "{" else -1) for brace in BRACE.finditer(self.code)]
        self.offsets, self.depths, depth = [], [], 0
        for at, change in self.braces:
            depth += change
            self.offsets.append(at)
            self.depths.append(depth)
        if crate_of(path):
            self.area = area_of(crate_of(path), module)
        else:
            self.area = "functions" if path.startswith("functions/") else path.split("/")[1]

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def line_starts(self, begin, end):
        yield begin
        while (begin := self.text.find("\n", begin, end) + 1) > 0:
            yield begin

    def depth(self, at):
        index = bisect.bisect_left(self.offsets, at) - 1
        return self.depths[index] if index >= 0 else 0

    def top(self, pattern):
        """The names that `pattern` finds outside of braces, with their lines."""
        return [(m.group(1), self.line(m.start(1))) for m in pattern.finditer(self.code) if self.depth(m.start(1)) == 0]

    def functions(self):
        """Each function with a body: (lines, name, path, line)."""
        for match in FUNCTION.finditer(self.code):
            brace = body_of(self.code, match.end() - 1)
            if brace is not None:
                size = self.code.count("\n", match.start(), closing(self.code, brace)) + 1
                yield size, match.group(1), self.path, self.line(match.start())

    def public(self):
        """Each public item: (name, documented)."""
        lines = self.text.splitlines()
        for match in PUBLIC.finditer(self.code):
            at = self.line(match.start(1)) - 2
            # Steps over attributes, which can have several lines.
            while at >= 0 and (lines[at].strip().startswith("#[") or lines[at].strip().endswith("]")):
                if lines[at].strip().startswith("#[doc"):
                    break
                while at > 0 and not lines[at].strip().startswith("#["):
                    at -= 1
                at -= 1
            documented = at >= 0 and lines[at].strip().startswith(("///", "#[doc"))
            if match.group(1) == "mod" and not documented:
                file = module_file(self.path, self.module, match.group(2))
                documented = file is not None and (ROOT / file).read_text().startswith("//!")
            yield f"{self.path}:{self.line(match.start(1))} {match.group(2)}", documented


def module_file(path, module, child):
    """The file of the module `child`, which the file `path` declares."""
    file = pathlib.PurePosixPath(path)
    folder = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.with_suffix("")
    for name in (f"{child}.rs", f"{child}/mod.rs"):
        if (ROOT / folder / name).is_file():
            return str(folder / name)
    return None


def production():
    """All production files."""
    return files_of([*ROOTS, *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("functions/*/src/main.rs")))])


def files_of(roots):
    """The files that crates reach by `mod` without a test `cfg`."""
    found, todo = {}, [(root, ()) for root in roots]
    while todo:
        path, module = todo.pop()
        if path in found:
            continue
        source = found[path] = Source(path, module)
        for child in source.children:
            file = module_file(path, module, child)
            if file is not None:
                todo.append((file, (*module, child)))
    return [found[path] for path in sorted(found)]


# --- circles -------------------------------------------------------------------------


def use_tree(text, before=()):
    """The paths of a `use`: (segments, name in this file)."""
    text = text.strip()
    if text.endswith("}"):
        prefix, _, inner = text[:-1].partition("{")
        before = [*before, *(part.strip() for part in prefix.split("::") if part.strip())]
        depth, begin = 0, 0
        for at, sign in enumerate(inner + ","):
            depth += (sign == "{") - (sign == "}")
            if sign == "," and depth == 0:
                if inner[begin:at].strip():
                    yield from use_tree(inner[begin:at], before)
                begin = at + 1
        return
    path, _, alias = re.sub(r"\s+", " ", text).partition(" as ")
    segments = [*before, *(part.strip() for part in path.split("::") if part.strip())]
    if segments[-1] == "self" and len(segments) > 1:
        segments.pop()
    yield segments, alias.strip() or segments[-1]


class Crate:
    """The modules of a crate, and which file uses which. Cargo forbids circles of crates."""

    def __init__(self, sources, folder):
        self.files = {source.module: source for source in sources if source.path.startswith(f"{folder}/")}
        self.items = {module: {name for name, _ in source.top(ITEM)} for module, source in self.files.items()}
        self.uses = {}
        for module, source in self.files.items():
            self.uses[module] = [
                (segments, name, bool(use.group(1)))
                for use in USE.finditer(source.code)
                for segments, name in use_tree(use.group(2))
            ]
        self.paths, self.words = {}, {}
        for module, source in self.files.items():
            # `pub(in a::b)` says who may use an item, and uses nothing.
            body = IN.sub(lambda place: blank(place.group(0)), USE.sub(lambda use: blank(use.group(0)), source.code))
            self.paths[module] = [[part.strip() for part in path.split("::")] for path in PATH.findall(body)]
            self.words[module] = set(WORD.findall(MODULE.sub("", body)))

    def absolute(self, module, segments):
        """The path from the root of the crate, or `None` for a path of another crate."""
        base, rest = list(module), list(segments)
        if rest[0] == "crate":
            return tuple(rest[1:])
        if rest[0] == "self":
            return (*base, *rest[1:])
        if rest[0] == "super":
            while rest and rest[0] == "super" and base:
                base.pop()
                rest.pop(0)
            return (*base, *rest)
        return (*base, *rest) if rest[0] in self.files[module].children else None

    def resolve(self, path, seen=frozenset()):
        """The module that declares the item of `path`, and the rest of the path behind the module."""
        module = path
        while module not in self.files:
            module = module[:-1]
        rest = path[len(module) :]
        if not rest or rest[0] in self.items[module] or path in seen:
            return module, rest
        for segments, name, _ in self.uses[module]:
            if name in (rest[0], "*"):
                target = self.absolute(module, segments[:-1] if name == "*" else segments)
                if target is None:
                    continue
                found, behind = self.resolve((*target, *rest) if name == "*" else (*target, *rest[1:]), seen | {path})
                if name != "*" or not behind or behind[0] in self.items[found]:
                    return found, behind
        return module, rest

    def arrows(self, module, whole):
        """The modules that `module` uses, each with a name. With `whole` also by paths outside of `use`."""
        paths = self.paths[module]
        for segments, name, exported in self.uses[module]:
            # A name that is only handed on is no use of the file that declares it.
            if exported and name not in self.words[module]:
                continue
            target = self.absolute(module, segments[:-1] if name == "*" else segments)
            if target is None:
                continue
            if target in self.files:
                inner = [path[1:] for path in paths if path[0] == name]
                for path in inner:
                    yield self.resolve((*target, *path))[0], "::".join(path)
                if inner or name == "*":
                    continue
            yield self.resolve(target)[0], name
        for path in paths if whole else ():
            target = self.absolute(module, path)
            if target is not None:
                yield self.resolve(target)[0], "::".join(path)

    def graph(self, whole):
        """For each module the modules that it uses, with the names."""
        found = {}
        for module in self.files:
            found[module] = collections.defaultdict(set)
            for other, name in self.arrows(module, whole):
                if other != module:
                    found[module][other].add(name)
        return found


def circles(graph):
    """The strongly connected components of more than one node (Tarjan)."""
    order, low, stack, open_, found = {}, {}, [], set(), []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        open_.add(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in open_:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
                open_.discard(part[-1])
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in order:
            visit(node)
    return sorted(found, key=lambda part: (-len(part), part))


# --- the counts ----------------------------------------------------------------------


def percentile(values, share):
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else 0


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def head(text):
    print(f"\n{text}")


def sizes(sources):
    head("production        files   lines  // share   fns  median  p90  p99  max")

    def row(name, chosen):
        functions = [size for source in chosen for size, *_ in source.functions()]
        lines = sum(source.lines for source in chosen)
        comments = share(sum(source.comments for source in chosen), lines)
        figures = [percentile(functions, part) for part in (50, 90, 99, 100)]
        print(
            f"  {name:<14} {len(chosen):>6} {lines:>7} {comments:>9} {len(functions):>5}"
            f" {figures[0]:>7} {figures[1]:>4} {figures[2]:>4} {figures[3]:>4}"
        )

    for area in (*AREAS, "other"):
        row(area, [source for source in sources if source.area == area])
    row("the library", [source for source in sources if crate_of(source.path)])
    for area in ("macros", "functions", "admin", "local"):
        row(area, [source for source in sources if source.area == area])
    row("all", sources)
    return budgets(sources)


def budgets(sources):
    """The crates with more production lines than they may have."""
    lines = collections.Counter()
    for source in sources:
        lines[source.path.split("/")[1]] += source.lines
    return [
        f"the crate `{crate}` has {lines[crate]} production lines, above {most}"
        for crate, most in LINES_MAX.items() if lines[crate] > most
    ]


def functions(sources):
    longest = sorted((function for source in sources for function in source.functions()), reverse=True)
    head("longest functions")
    for size, name, path, line in longest[:10]:
        print(f"  {size:>4}  {name}  {path}:{line}")
    return [
        f"{path}:{line} `{name}` has {size} lines, above {FUNCTION_MAX}"
        for size, name, path, line in longest
        if size > FUNCTION_MAX
    ]


def files(sources):
    long = sorted(((source.lines, source.path) for source in sources if source.lines > FILE_MAX), reverse=True)
    head(f"production files above {FILE_MAX} lines: {len(long)}")
    for lines, path in long:
        print(f"  {lines:>4}  {path}")


def public(sources):
    library = [item for source in sources if crate_of(source.path) for item in source.public()]
    found = [item for source in sources for item in source.public()]
    documented = sum(known for _, known in found)
    head(
        f"public items: {len(found)} ({len(library)} in the library),"
        f" documented {documented} = {share(documented, len(found))}"
    )
    for place in [place for place, known in found if not known][:10]:
        print(f"  not documented: {place}")


def words(texts):
    head("words (.rs .md .py .sh .yaml, without " + " and ".join(WORDS_NOT_IN) + ")")
    together, in_names, where = 0, 0, collections.Counter()
    lowered = {path: text.lower() for path, text in texts.items()}
    for word in WORDS:
        # Two words may be at the end of a line and at the begin of the next.
        text = word.replace(" ", r"(?:[ \t]|\n[ \t]*(?://[/!]?|\#)?[ \t]*)+")
        whole, part = re.compile(rf"\b{text}\b"), re.compile(rf"(?<![a-z0-9]){word.replace(' ', '_')}(?![a-z0-9])")
        count, names = 0, 0
        for path, content in lowered.items():
            if word.split()[0] in content:
                found = len(whole.findall(content))
                count, where[path] = count + found, where[path] + found
                names += len(part.findall(content)) - (found if " " not in word else 0)
        together, in_names = together + count, in_names + names
        print(f"  {word:<8} {count:>4}    in longer names {names:>4}")
    print(f"  together {together:>4}    in longer names {in_names:>4}    limit: below {WORDS_BELOW}")
    print("  most in: " + ", ".join(f"{path} {count}" for path, count in where.most_common(5) if count))
    return [f"the words occur {together} times, not below {WORDS_BELOW}"] if together >= WORDS_BELOW else []


def types(sources):
    places = collections.defaultdict(list)
    for source in sources:
        for name, line in source.top(TYPE):
            places[name].append((source.path, line))
    twice = {name: found for name, found in sorted(places.items()) if len(found) > 1}
    head(f"type names declared twice or more: {len(twice)} of {len(places)}")
    faults = []
    for name, found in twice.items():
        allowed, reason = ALLOWED.get(name, ((), "NOT ALLOWED"))
        beyond = [path for path, _ in found if not path.startswith(tuple(allowed))] if allowed else found
        crowded = any(sum(path.startswith(place) for path, _ in found) > 1 for place in allowed)
        if beyond or crowded:
            reason = "NOT ALLOWED"
            faults.append(f"type `{name}` is declared {len(found)} times")
        where = ", ".join(f"{path.removeprefix('shared/')}:{line}" for path, line in found)
        print(f"  {name:<11} {where}\n{'':14}{reason}")
    stale = sorted(set(ALLOWED) - set(twice))
    return faults + [f"`{name}` is allowed twice and declared once: remove it from ALLOWED" for name in stale]


def circle_table(sources, paths, arrows):
    kind = "`use` and written-out paths" if paths else "`use`"
    head(f"circles of files in the members, by {kind}")
    faults = []
    sources = [*sources, *files_of([f"{folder}/lib.rs" for folder in OTHERS])]
    for folder in (*LIBRARY, *PROGRAMS, *OTHERS):
        crate = Crate(sources, folder)
        graph = crate.graph(paths)

        def name(module, folder=folder):
            return folder.split("/")[-2] + "/" + ("/".join(module) or "lib")

        for part in circles(graph):
            print(f"  {len(part):>3}  " + ", ".join(name(module) for module in part))
            for module in part if arrows else ():
                for other in sorted(set(graph[module]) & set(part)):
                    print(f"         {name(module)} -> {name(other)}: {', '.join(sorted(graph[module][other]))}")
            if len(part) > CIRCLE_MAX:
                names = ", ".join(name(module) for module in part)
                faults.append(f"a circle of {len(part)} files, above {CIRCLE_MAX}: {names}")
        if not paths:
            sizes_with = [len(part) for part in circles(crate.graph(True))]
            written = " ".join(map(str, sizes_with)) or "none"
            print(f"  {folder.split('/')[-2]} with written-out paths (`--paths` names them): sizes {written}")
    return faults


def tests(texts):
    # Tests that a macro makes have no name in the source and do not count.
    names = [name for path, text in texts.items() if path.endswith(".rs") for name in TEST.findall(text)]
    counts = [name.count("_") + 1 for name in names]
    begin = sum(name.startswith("a_") for name in names)
    head(
        f"test names: {len(names)}, words median {percentile(counts, 50)}, max {max(counts, default=0)},"
        f" above 10: {sum(count > 10 for count in counts)}, begin with `a_`: {begin}"
    )
    for name in sorted(names, key=lambda name: (-name.count("_"), name))[:3]:
        print(f"  {name}")


def commits(since):
    subjects = [line.split("\t", 2) for line in git("log", f"--since={since}", "--format=%h\t%p\t%s").splitlines()]
    long = [(key, subject) for key, parents, subject in subjects if len(subject) > SUBJECT_MAX]
    merges = sum(" " in parents for _, parents, _ in subjects)
    head(
        f"commit subjects above {SUBJECT_MAX} characters since {since}:"
        f" {len(long)} of {len(subjects)} ({merges} are merges)"
    )
    for key, subject in long[:3]:
        print(f"  {key} {len(subject)}  {subject}")


def old_names(sources):
    places = collections.defaultdict(collections.Counter)
    for source in sources:
        identifiers = collections.Counter(re.findall(r"\w+", source.code))
        for name in OLD_NAMES:
            if name in identifiers:
                places[name][source.path.removeprefix("shared/")] = identifiers[name]
    head(f"old names that are still identifiers in production: {len(places)} of {len(OLD_NAMES)}")
    for name in OLD_NAMES:
        if name in places:
            print(f"  {name:<12} " + ", ".join(f"{path} {count}" for path, count in places[name].most_common(6)))


def is_participle(name):
    return name in PARTICIPLES or (re.fullmatch(r"[a-z]{3,}ed", name) is not None and name not in IN_ED)


def values(sources):
    """The values that a participle names, each 1,000 lines."""
    names, where = collections.Counter(), collections.Counter()
    for source in sources:
        bindings = (match.group(match.lastindex) for match in BINDING.finditer(source.code))
        found = [name for name in bindings if is_participle(name)]
        names.update(found)
        where[source.path] += len(found)
    rate = 1000 * names.total() / sum(source.lines for source in sources)
    figure = f"{names.total()}, each 1,000 lines {rate:.1f}"
    head(f"values named by a participle: {figure}    limit: below {PARTICIPLES_BELOW}")
    print("  most often: " + ", ".join(f"{name} {count}" for name, count in names.most_common(8)))
    print("  most in: " + ", ".join(f"{path} {count}" for path, count in where.most_common(5) if count))
    fault = f"participles name {rate:.1f} values each 1,000 lines, not below {PARTICIPLES_BELOW}"
    return [fault] if rate >= PARTICIPLES_BELOW else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"exit 1 if the words are {WORDS_BELOW} or more, a circle has more than {CIRCLE_MAX} files,"
        f" a production function has more than {FUNCTION_MAX} lines, a crate more than in LINES_MAX, participles name {PARTICIPLES_BELOW} or more"
        " values each 1,000 lines, or a type name is declared twice without being in ALLOWED",
    )
    parser.add_argument("--arrows", action="store_true", help="print the imports inside each circle, with the names")
    parser.add_argument("--paths", action="store_true", help="count written-out paths as imports too: `super::a::b()`")
    parser.add_argument("--since", default="midnight", help="count commit subjects since then (default: %(default)s)")
    options = parser.parse_args()

    tracked = [ROOT / path for path in git("ls-files", "-z").split("\0") if path.endswith(WORDS_IN)]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in tracked if path.is_file()}
    sources = production()

    print(f"commit {git('rev-parse', '--short', 'HEAD').strip()}, {len(texts)} files read")
    faults = sizes(sources) + functions(sources)
    files(sources)
    public(sources)
    faults += words({path: text for path, text in texts.items() if path not in WORDS_NOT_IN})
    faults += values(sources)
    faults += types(sources)
    faults += circle_table(sources, options.paths, options.arrows)
    tests(texts)
    commits(options.since)
    old_names(sources)
    head(f"above the limits of --check: {len(faults)}")
    for fault in faults:
        print(f"  {fault}")
    return 1 if options.check and faults else 0


if __name__ == "__main__":
    sys.exit(main())
