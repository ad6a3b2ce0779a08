"""Asserts how cargo-lambda compiles a release: a panic has to unwind.

Where the release profile does not say `panic`, cargo-lambda adds `abort`, and no
other test would see it: they build with cargo. Here a stand-in for cargo writes
down the command and compiles nothing.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABORT = 'profile.release.panic="abort"'

# Questions go to the real cargo.
STAND_IN = """#!/bin/sh
case $1 in
  build) printf '%s\\n' "$*" >>"$CALLS" ;;
  *) exec "$REAL" "$@" ;;
esac
"""


def build_commands(place, tools, scratch):
    """The commands by which `cargo lambda build --release` compiles `place`."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    stand_in = folder / "cargo"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    calls = folder / "calls"
    calls.touch()
    environment = os.environ | {
        "PATH": os.pathsep.join([str(folder), tools, os.environ["PATH"]]),
        "CARGO": str(stand_in),
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CALLS": str(calls),
        "REAL": shutil.which("cargo"),
    }
    # Without --arm64, which would install a target; the profile is the same.
    command = [f"{tools}/cargo-lambda", "lambda", "build", "--release"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    commands = calls.read_text().splitlines()
    if not commands:
        raise SystemExit(f"FAILED: cargo-lambda built nothing:\n{done.stdout}{done.stderr}")
    return commands


def silent_package(scratch):
    """A package whose profile says nothing."""
    place = pathlib.Path(scratch) / "silent"
    (place / "src").mkdir(parents=True)
    (place / "Cargo.toml").write_text('[package]\nname = "silent"\nversion = "0.1.0"\nedition = "2024"\n')
    (place / "src" / "main.rs").write_text("fn main() {}\n")
    return place


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tools", required=True, help="the folder that holds cargo-lambda")
    tools = str(pathlib.Path(arguments.parse_args().tools).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        # Otherwise the assertion below would prove nothing.
        silent = build_commands(silent_package(scratch), tools, scratch)
        if not any(ABORT in command for command in silent):
            print(f"FAILED: cargo-lambda no longer adds {ABORT}: {silent}")
            return 1
        ours = build_commands(ROOT, tools, scratch)
        if any("panic" in command for command in ours):
            print(f"FAILED: a release of this workspace aborts at a panic: {ours}")
            return 1
    print(f"ok  a release unwinds: cargo {ours[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
