"""Checks that a panic unwinds in a release that cargo-lambda compiles.

If the release profile does not set `panic`, cargo-lambda adds `abort`. The other tests
build with cargo and would not see it. Here a replacement for cargo records the command
and compiles nothing.
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

# Other subcommands go to the real cargo.
STAND_IN = """#!/bin/sh
case $1 in
  build) printf '%s\\n' "$*" >>"$CALLS" ;;
  *) exec "$REAL" "$@" ;;
esac
"""


def build_commands(place, tools, scratch):
    """The cargo commands that `cargo lambda build --release` runs in `place`."""
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
    # Without --arm64, because that installs a target; the profile is the same.
    command = [f"{tools}/cargo-lambda", "lambda", "build", "--release"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    commands = calls.read_text().splitlines()
    if not commands:
        raise SystemExit(f"FAILED: cargo-lambda built nothing:\n{done.stdout}{done.stderr}")
    return commands


def silent_package(scratch):
    """A package with a profile that does not set `panic`."""
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
        # Shows that cargo-lambda still adds `abort`; otherwise the check below proves nothing.
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
