"""Checks what each function links, by `cargo tree` for one package at a time.

For one package cargo takes the features that its own manifest asks for, as `sam build` does in
the folder of the function. The whole workspace would unify the features of all members.

Test-only crates bring a second TLS stack into the workspace. No function may link it."""

import re
import subprocess
import unittest

import checks
from stack import ROOT

FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/Cargo.toml"))

# One TLS provider, one HTTP stack, no OpenSSL, no emulator.
BANNED = re.compile(
    r"^(aws-lc-rs|aws-lc-sys|aws-lc-fips-sys|openssl|openssl-sys|native-tls|dynoxide-rs|s3s|s3s-fs"
    r"|testcontainers|clap) v|^rustls v0\.21\.|^hyper v0\.14\.|^ring v0\.16\."
)
SDK = re.compile(r"^(aws-sdk-|aws-config )")


# The most crates of each function, its own and those of the workspace included.
CRATES = {
    "agent-card": 194, "authorizer": 231, "ops": 252, "push": 228, "relay": 227, "rpc": 253,
    "sweep": 251, "tasks-get": 252, "tasks-send": 253, "tasks-stream": 253, "worker": 253,
}

PLATFORM = re.compile(r"^(aws-|lambda_)")
# A crate that does I/O or runs tasks. Without features tokio only has traits.
IMPURE = re.compile(r"^(aws-|lambda_|http |hyper|rustls|ring |mio |socket2|futures|tokio v\S+ \[.+\])")


def tree(package, *flags):
    """The crates a package links, as `name version [features]`."""
    command = ["cargo", "tree", "--locked", "-e", "normal", "-p", package, *flags, "--prefix", "none"]
    command += ["--target", "aarch64-unknown-linux-gnu", "--format", "{p} [{f}]"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    named = (re.sub(r" \((/|proc-macro|\*)[^)]*\)", "", line) for line in done.stdout.splitlines() if line)
    return sorted(set(named))


class Functions(unittest.TestCase):
    def test_no_function_links_a_second_stack_or_a_test_crate(self):
        for function in FUNCTIONS:
            with self.subTest(function):
                self.assertEqual([crate for crate in tree(function) if BANNED.match(crate)], [])

    def test_no_function_has_the_features_that_tests_ask_for(self):
        for function in FUNCTIONS:
            with self.subTest(function):
                named = {crate.split()[0]: crate for crate in tree(function)}
                features = {name: named[name].partition("[")[2].rstrip("]").split(",") for name in ("a2a-lambda", "tokio")}
                allowed = {"lambda"} if function == "agent-card" else {"aws", "fetch", "lambda"}
                if function == "authorizer":
                    allowed |= {"jwt"}
                if checks.NAMED[function] & {"A2A_SECRET_KEY_ID", "A2A_FIRST_KEY"}:
                    allowed |= {"secrets"}
                # The others have none of the code of the skills and of the providers of models.
                if "A2A_SKILL_SECRET" in checks.NAMED[function]:
                    allowed |= {"turns", "bedrock", "openai"}
                self.assertEqual(set(features["a2a-lambda"]), allowed)
                self.assertNotIn("full", features["tokio"])
                self.assertNotIn("test-util", features["tokio"])
        # Shows that a build of all members would have them.
        whole = subprocess.run(
            ["cargo", "tree", "--locked", "-e", "normal,dev", "--workspace", "--prefix", "none", "--format", "{p} [{f}]"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )
        self.assertRegex(whole.stdout, r"(?m)^a2a-lambda v.*contract-tests")

    def test_no_function_links_more_crates_than_are_known(self):
        """A new crate costs size and start-up time, and must be trusted. Write the number after such a decision."""
        counts = {function: len({crate.split()[0] for crate in tree(function)}) for function in FUNCTIONS}
        more = {function: count for function, count in counts.items() if count > CRATES.get(function, 0)}
        self.assertEqual(more, {})

    def test_functions_with_an_sdk_give_each_foreign_crate_the_same_features(self):
        """Otherwise cargo compiles the SDKs again for a function: shared/aws/Cargo.toml has the remedy."""
        ours = re.compile(r"^(a2a-|reference-agent )")
        seen = {}
        for function in FUNCTIONS:
            for crate in tree(function) if function != "agent-card" else []:
                if not ours.match(crate) and crate.split()[0] != function:
                    seen.setdefault(" ".join(crate.split()[:2]), {}).setdefault(crate, []).append(function)
        self.assertIn("aws-sdk-dynamodb", {name.split()[0] for name in seen})
        self.assertEqual([features for features in seen.values() if len(features) > 1], [])

    def test_the_card_links_no_sdk(self):
        self.assertEqual([crate for crate in tree("agent-card") if SDK.match(crate)], [])

    def test_the_library_without_features_links_no_platform_crate(self):
        pure = tree("a2a-lambda", "--no-default-features")
        self.assertEqual([crate for crate in pure if PLATFORM.match(crate)], [])
        self.assertTrue([crate for crate in tree("a2a-lambda") if PLATFORM.match(crate)])

    def test_wire_model_and_store_link_nothing_that_does_io(self):
        for package in ("a2a-lambda-model", "a2a-lambda-wire"):
            with self.subTest(package):
                self.assertEqual([crate for crate in tree(package) if IMPURE.match(crate)], [])
        # The store runs several requests at once, on no runtime of its own. Of tokio it has the semaphore.
        linked = [crate for crate in tree("a2a-lambda-store") if IMPURE.match(crate)]
        allowed = re.compile(r"^futures|^tokio v\S+ \[sync\]$")
        self.assertEqual([crate for crate in linked if not allowed.match(crate)], [])

    def test_banned_crates_are_found(self):
        for crate in ("aws-lc-rs v1.13.0", "rustls v0.21.12", "hyper v0.14.32", "openssl-sys v0.9.1"):
            self.assertTrue(BANNED.match(crate), crate)
        for crate in ("rustls v0.23.1", "hyper v1.6.0", "openssl-probe v0.1.6", "ring v0.17.14"):
            self.assertFalse(BANNED.match(crate), crate)

    def test_the_tree_is_not_empty(self):
        self.assertIn("lambda_runtime", {crate.split()[0] for crate in tree("rpc")})


if __name__ == "__main__":
    unittest.main()
