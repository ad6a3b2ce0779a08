#!/usr/bin/env bash
# Runs the official suite ACTS against the local agent. The user provides a checkout of
# it: no package registry has it, so the script cannot install it.
set -euo pipefail

usage() {
    cat <<'HELP'
Usage: tests/conformance/acts.sh DIR [--help]

Runs the suite ACTS of the official A2A integration kit (a2aproject/a2a-itk) that is
checked out in DIR, over JSON-RPC and REST, and prints what passed and failed.

  DIR     a checkout of the kit that has run_acts.py
  --help  this text

The agent is the conformance agent with the 1.0 card. The script works in a copy of DIR
below target/, where the kit installs its packages with uv. Without run_acts.py in DIR it
says NOT RUN and exits 0: our own vectors of ACTS (tests/conformance/vectors/acts.json)
run with `cargo test -p a2a-lambda-tests --test conformance`.

Exits with the status of the runner, and 2 when the arguments are wrong.

Needs cargo and python3 (3.11 or newer, with venv).
HELP
}

case ${1:-} in
    --help | -h) usage; exit 0 ;;
    '' | -*) usage >&2; exit 2 ;;
esac
[ $# -eq 1 ] || { usage >&2; exit 2; }
[ -d "$1" ] || { echo "no such directory: $1" >&2; exit 2; }

kit=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
place=$target/conformance/acts

if [ ! -f "$kit/run_acts.py" ]; then
    echo "NOT RUN: $kit has no run_acts.py, so it has no runner of ACTS"
    exit 0
fi

(cd "$root" && cargo build -q -p local-agent)
mkdir -p "$place"
rm -rf "$place/kit" "$place/agent"
cp -R "$kit" "$place/kit"

# The kit starts agents and its own parts with uv.
if [ ! -x "$place/uv/bin/uv" ]; then
    python3 -m venv "$place/uv"
    "$place/uv/bin/pip" install --quiet --disable-pip-version-check uv
fi

# An agent as the kit expects it: main.py in a folder, and the list of its behaviours beside it.
mkdir -p "$place/agent/itk" "$place/agent/acts"
cp "$here/acts_agent.py" "$place/agent/itk/main.py"
printf '[project]\nname = "acts-agent"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n' \
    >"$place/agent/itk/pyproject.toml"
{
    echo 'acts_version: "1.0"'
    echo 'behaviors:'
    for word in complete-task input-required auth-required reject-task task-failure \
        message-response multi-turn cancel long-running artifact-text artifact-data \
        artifact-file artifact-file-url stream-basic stream-chunked; do
        echo "  - prefix: tck-$word"
    done
} >"$place/agent/acts/sut-behaviors.yaml"

commit=$(git -C "$kit" rev-parse HEAD 2>/dev/null || echo unknown)
echo "ACTS at $commit"
cd "$place/kit"
export A2A_LOCAL=$target/debug/a2a-local PATH="$place/uv/bin:$PATH"
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
uv run run_acts.py --mount "$place/agent/itk" --sdk a2a-lambda --language python --no-codegen \
    --transport jsonrpc --transport rest --out "$place/reports"
