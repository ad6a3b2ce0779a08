"""Rules about manifests and sources which no compiler or linter enforces."""

import re
import unittest

from stack import ROOT, manifest

# The required crates, and their names in code.
ASKED_FOR = {
    "lambda_http": "lambda_http",
    "lambda_runtime": "lambda_runtime",
    "tokio": "tokio",
    "serde": "serde",
    "serde_json": "serde_json",
    "aws-sdk-dynamodb": "aws_sdk_dynamodb",
    "aws-sdk-s3": "aws_sdk_s3",
    "async-trait": "async_trait",
    "thiserror": "thiserror",
    "tracing": "tracing",
    "tracing-subscriber": "tracing_subscriber",
    "testcontainers": "testcontainers",
}
# What wire and model must not use: they take time and ids as values. Cargo cannot see it.
IMPURE = re.compile(r"\bstd::(env|fs|net|process|thread)\b|\bnow_utc\b|\bgetrandom::|\b(SystemTime|Instant)::now\b")


def members():
    """Every workspace member: (folder, manifest)."""
    for folder in manifest()["workspace"]["members"]:
        yield folder, manifest(folder)


def code(text):
    """Source without line comments (documentation may name anything)."""
    return "\n".join(line.split("//")[0] for line in text.splitlines())


def sources(*folders):
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.rs"))
        for file in files:
            yield file.relative_to(ROOT), file.read_text()


class Credentials(unittest.TestCase):
    def test_hashes_of_keys_are_compared_in_constant_time(self):
        key = (ROOT / "shared/runtime/src/auth/api_key.rs").read_text()
        self.assertIn("self.hash().ct_eq(other)", key)
        others = sources(ROOT / "shared/runtime/src/auth")
        compared = re.compile(r"hash(\(\))?\s*[!=]=|[!=]=\s*\S*hash\b")
        wrong = [str(name) for name, text in others if compared.search(code(text).split("#[cfg(test)]")[0])]
        self.assertEqual(wrong, [])


class Manifests(unittest.TestCase):
    def test_every_member_takes_the_lints_of_the_workspace(self):
        without = [folder for folder, m in members() if m.get("lints") != {"workspace": True}]
        self.assertEqual(without, [])

    def test_every_package_is_a_member(self):
        listed = {folder for folder, _ in members()}
        found = {
            str(file.parent.relative_to(ROOT))
            for folder in ("examples", "functions", "shared", "infra", "tests")
            for file in (ROOT / folder).rglob("Cargo.toml")
            if "target" not in file.parts
        }
        # A package outside the workspace has a `workspace` table of its own.
        apart = {folder for folder in found - listed if "workspace" in manifest(folder)}
        self.assertEqual(found - apart, listed)

    def test_dependencies_have_their_version_in_one_place(self):
        own = []
        for folder, m in members():
            for section in ("dependencies", "dev-dependencies", "build-dependencies"):
                for name, wanted in m.get(section, {}).items():
                    if isinstance(wanted, str) or "version" in wanted:
                        own.append(f"{folder}: {name}")
        self.assertEqual(own, [])

    def test_the_lock_file_pins_the_codec_that_the_changelog_names(self):
        lock = (ROOT / "Cargo.lock").read_text()
        [locked] = re.findall(r'name = "a2a-lf"\nversion = "([^"]+)"', lock)
        self.assertIn(f"`a2a-lf` {locked}", (ROOT / "CHANGELOG.md").read_text())

    def test_packages_for_authors_are_complete_and_belong_to_one_release(self):
        """They name each other exactly: macro and library, engine and stored form are those of one release."""
        wanted = manifest()["workspace"]["dependencies"]
        exact = {name for name, it in wanted.items() if str(it if isinstance(it, str) else it.get("version")).startswith("=")}
        release = "=" + manifest()["workspace"]["package"]["version"]
        ours = set()
        for folder, m in members():
            if not folder.startswith("shared/") or folder == "shared/agent":
                continue
            package = m["package"]
            ours.add(package["name"])
            self.assertNotIn("publish", package, folder)
            self.assertIn("repository", package, folder)
            self.assertEqual(wanted[package["name"]]["version"], release, folder)
            # cargo follows the link, so the package has the file.
            self.assertEqual((ROOT / folder / "LICENSE").read_bytes(), (ROOT / "LICENSE").read_bytes(), folder)
            title, _, text = (ROOT / folder / "README.md").read_text().partition("\n\n")
            self.assertEqual((title, text.count("\n") <= 4), (f"# {package['name']}", True), folder)
        # Beside them the official codec alone.
        self.assertEqual(exact, ours | {"a2a-lf"})
        author = manifest("template")["workspace"]["dependencies"]
        self.assertEqual({it["version"] for name, it in author.items() if name in ours}, {release})

    def test_what_a_step_installs_has_hashes(self):
        steps = (ROOT / "tests/run.sh").read_text()
        for place in set(re.findall(r"^ +venv \S+ (\S+)$", steps, re.M)):
            locked = (ROOT / place).read_text().replace("\\\n", "")
            without = [line for line in locked.splitlines() if not line.startswith("#") and "--hash=sha256:" not in line]
            self.assertEqual(without, [], place)
            named = (ROOT / place).with_suffix(".in").read_text().split()
            self.assertEqual([it for it in named if f"\n{it} " not in locked], [], place)
        scripts = {file: file.read_text() for file in (ROOT / "tests").rglob("*.sh")}
        self.assertEqual([str(file) for file, text in scripts.items() if "npm install" in text], [])

    def test_aws_crates_come_without_their_default_features(self):
        loose = [
            name
            for name, wanted in manifest()["workspace"]["dependencies"].items()
            if name.startswith("aws-") and not (isinstance(wanted, dict) and wanted.get("default-features") is False)
        ]
        self.assertEqual(loose, [])

    def test_one_library_crate_names_the_aws_sdks(self):
        sdks = re.compile(r"aws-(sdk-\w+|config)")
        taken = {
            (folder, name)
            for folder, m in members()
            for name in m.get("dependencies", {})
            if folder.startswith("shared/") and sdks.fullmatch(name)
        }
        # The local agent reads the table's stream, as Lambda does for the relay.
        library = {(folder, name) for folder, name in taken if folder not in ("shared/aws", "shared/local")}
        # A provider of models implements a trait of skills.
        self.assertEqual(library, {("shared/llm", "aws-sdk-bedrockruntime")})

    def test_a_function_directory_package_and_binary_have_one_name(self):
        for folder, m in members():
            if folder.startswith("functions/"):
                self.assertEqual(m["package"]["name"], folder.removeprefix("functions/"))
                self.assertNotIn("bin", m)

    def test_every_required_crate_is_a_dependency_and_is_used(self):
        shared = manifest()["workspace"]["dependencies"]
        named = "\n".join(code(t) for _, t in sources(*(ROOT / folder for folder, _ in members())))
        for crate, ident in ASKED_FOR.items():
            with self.subTest(crate):
                self.assertIn(crate, shared)
                takers = [f for f, m in members() if crate in m.get("dependencies", {}) | m.get("dev-dependencies", {})]
                self.assertTrue(takers, "no member depends on it")
                self.assertTrue(re.search(rf"\b{ident}\b", named), "no source names it")


class Sources(unittest.TestCase):
    def test_wire_model_and_store_do_no_io_and_read_no_clock(self):
        folders = [ROOT / "shared" / crate / "src" for crate in ("wire", "model", "store")]
        found = {str(f): IMPURE.findall(code(t)) for f, t in sources(*folders)}
        self.assertEqual({f: i for f, i in found.items() if i}, {})
        self.assertTrue(IMPURE.search("let now = std::time::SystemTime::now();"))

    def test_only_tests_use_the_official_codec(self):
        takers = [folder for folder, m in members() if "a2a-lf" in m.get("dependencies", {})]
        self.assertEqual(takers, [])
        homes = ("wire/src/v1/mod.rs", "wire/src/v1/tests", "tests/conformance/official.rs", "tests/interop/rust")
        outside = [
            str(f)
            for f, t in sources(*(ROOT / folder for folder, _ in members()))
            if re.search(r"\ba2a_lf\b|\ba2a::", code(t)) and not any(home in str(f) for home in homes)
        ]
        self.assertEqual(outside, [])


if __name__ == "__main__":
    unittest.main()
