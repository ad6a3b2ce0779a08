"""Checks how the functions that are deployed are built, without compiling them.

cargo-lambda and `sam build` run for real. A replacement for cargo records their commands. So
the test sees what each function is built with, and that each gets the binary of its own name.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/Cargo.toml"))
ABORT = 'profile.release.panic="abort"'
# Options that would build a function with more than its own manifest asks for.
WIDER = {"--workspace", "--all", "--all-features", "--features", "-F", "--package", "-p"}

# Writes the folder and the command of a build. Other subcommands go to the real cargo.
LOGGER = """#!/bin/sh
case $1 in
  build) printf '%s\\t%s\\n' "$PWD" "$*" >>"$CALLS" ;;
  *) exec "$REAL" "$@" ;;
esac
"""
# In place of cargo with cargo-lambda: also writes an executable with the name of its function.
COMPILER = """#!/bin/sh
case $1 in
  lambda)
    printf '%s\\t%s\\n' "$PWD" "$*" >>"$CALLS"
    name=${PWD##*/}
    mkdir -p "$CARGO_TARGET_DIR/lambda/$name"
    echo "$name" >"$CARGO_TARGET_DIR/lambda/$name/bootstrap" ;;
  *) exec "$REAL" "$@" ;;
esac
"""


class Failed(Exception):
    """A check failed."""


def check(holds, text):
    if not holds:
        raise Failed(text)


def run(command, stand_in, place, scratch, **environment):
    """Runs `command` in `place` with `stand_in` as cargo. Returns the builds as (folder, command)."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    cargo, calls = folder / "cargo", folder / "calls"
    cargo.write_text(stand_in)
    cargo.chmod(0o755)
    calls.touch()
    tools = environment.pop("tools")
    changed = {
        "PATH": os.pathsep.join([str(folder), tools, os.environ["PATH"]]),
        "CARGO": str(cargo),
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CALLS": str(calls),
        "REAL": shutil.which("cargo"),
    }
    done = subprocess.run(
        command, cwd=place, env=os.environ | changed | environment, capture_output=True, text=True, check=False
    )
    builds = [tuple(line.split("\t", 1)) for line in calls.read_text().splitlines()]
    check(builds, f"{command[0]} built nothing:\n{done.stdout}{done.stderr}")
    return builds, done


def cargo_lambda(place, tools, scratch):
    """The builds of `cargo lambda build --release` in `place`."""
    # Without --arm64, because that installs a target; the profile is the same.
    command = [f"{tools}/cargo-lambda", "lambda", "build", "--release"]
    return run(command, LOGGER, place, scratch, tools=tools)[0]


def silent_package(scratch):
    """A package with a profile that does not set `panic`."""
    place = pathlib.Path(scratch) / "silent"
    (place / "src").mkdir(parents=True)
    (place / "Cargo.toml").write_text('[package]\nname = "silent"\nversion = "0.1.0"\nedition = "2024"\n')
    (place / "src" / "main.rs").write_text("fn main() {}\n")
    return place


def each_function_is_built_alone(tools, scratch):
    # Shows that cargo-lambda still adds `abort`; otherwise the check below proves nothing.
    silent = cargo_lambda(silent_package(scratch), tools, scratch)
    check(any(ABORT in command for _, command in silent), f"cargo-lambda no longer adds {ABORT}: {silent}")
    for function in FUNCTIONS:
        place = ROOT / "functions" / function
        builds = cargo_lambda(place, tools, scratch)
        check(len(builds) == 1, f"{function}: {builds}")
        folder, command = builds[0]
        words = command.split()
        check(pathlib.Path(folder).resolve() == place, f"{function}: cargo runs in {folder}")
        check("panic" not in command, f"{function}: aborts at a panic: {command}")
        check("--release" in words, f"{function}: is no release: {command}")
        wider = [word for word in words if word.split("=")[0] in WIDER]
        check(not wider, f"{function}: is built with {wider}")
    print(f"ok  each of {len(FUNCTIONS)} functions is built alone, and unwinds: cargo {command}")


def sam_build_makes_each_function(sam, tools, scratch):
    """`sam build` makes one `bootstrap` for each function, of the binary of its name."""
    built = pathlib.Path(scratch) / "aws-sam" / "build"
    command = [sam, "build", "--template", str(ROOT / "template.yaml"), "--build-dir", str(built)]
    environment = {
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(pathlib.Path(scratch) / "app"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "tools": tools,
    }
    builds, done = run(command, COMPILER, scratch, scratch, **environment)
    check(done.returncode == 0, f"sam build ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    folders = sorted(str(pathlib.Path(folder).resolve().relative_to(ROOT)) for folder, _ in builds)
    check(folders == [f"functions/{name}" for name in FUNCTIONS], f"sam build compiled {folders}")
    commands = {command for _, command in builds}
    check(commands == {"lambda build --release --arm64"}, f"sam build ran {commands}")
    made = {path.parent.name: path.read_text().strip() for path in built.glob("*/bootstrap")}
    expected = {"".join(word.title() for word in name.split("-")) + "Function": name for name in FUNCTIONS}
    check(made == expected, f"sam build made {made}")
    text = (built / "template.yaml").read_text()
    check("target/lambda" not in text, "the built template names the folder of another build")
    print(f"ok  sam build makes {len(made)} functions: cargo {commands.pop()}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", required=True, help="the folder that holds cargo-lambda")
    arguments.add_argument("--sam", required=True, help="the SAM CLI")
    given = arguments.parse_args()
    tools, sam = str(pathlib.Path(given.tools).resolve()), str(pathlib.Path(given.sam).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        try:
            each_function_is_built_alone(tools, scratch)
            sam_build_makes_each_function(sam, tools, scratch)
        except Failed as failed:
            print(f"FAILED: {failed}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
