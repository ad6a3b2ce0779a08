#!/usr/bin/env bash
# Runs the official conformance kit against the local agent. The user provides a
# checkout of the kit: no package registry has it, so the script cannot install it.
set -euo pipefail

usage() {
    cat <<'HELP'
Usage: tests/conformance/kit.sh DIR [--help]

Runs the official A2A kit (a2aproject/a2a-tck) that is checked out in DIR, and
prints what passed, failed and was skipped.

  DIR     a checkout of the kit: branch 1.0-dev, or branch 0.3.x
  --help  this text

The content of DIR decides the generation. 1.0 runs over JSON-RPC and HTTP+JSON
against the 1.0 card; 0.3 runs its mandatory and capability tests over JSON-RPC
against the union card. Each run gets a new agent (in memory, on a free port)
and 600 seconds. The kit's Python packages are installed once, below target/.
Reports are written there too. The script writes nothing to DIR.

Exits 0 when exactly the tests in expected-failures.txt failed, and at least as
many requirements were tested as in the last run. Exits 1 otherwise, and 2 when
the arguments are wrong.

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
place=$target/conformance

# Limits in seconds: for one run of the kit's tests, and for the start of the agent.
readonly RUN_LIMIT=600 START_LIMIT=60

if [ -d "$kit/tests/compatibility" ]; then
    generation=1.0 card=v1
elif [ -d "$kit/tests/mandatory" ]; then
    generation=0.3 card=union
else
    echo "$kit is not a checkout of the kit: it has neither tests/compatibility nor tests/mandatory" >&2
    exit 2
fi

environment=$place/kit-$generation
reports=$place/reports-$generation
rm -rf "$reports"
mkdir -p "$reports"

# The kit's dependencies, from its own pyproject.toml.
requirements() {
    python3 - "$kit/pyproject.toml" <<'PY'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    print("\n".join(tomllib.load(file)["project"]["dependencies"]))
PY
}

# The marker is written last, so the next run repeats an interrupted installation.
install() {
    requirements >"$reports/requirements.txt"
    if cmp -s "$reports/requirements.txt" "$environment/.installed"; then return 0; fi
    echo "installing the kit's packages"
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
        -r "$reports/requirements.txt"
    cp "$reports/requirements.txt" "$environment/.installed"
}

server=''
stop() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=''
}
trap stop EXIT
trap 'exit 130' INT TERM

# Starts a new agent. Sets `server`, and `base` from the line the agent prints when it is ready.
start() {
    local log=$reports/agent-$1.log waited=0
    "$target/debug/a2a-local" --agent conformance --card "$card" --memory --port 0 \
        >"$log" 2>&1 &
    server=$!
    until base=$(grep -oE 'listening on http://[^[:space:]]+' "$log" | head -n 1); do
        if ! kill -0 "$server" 2>/dev/null || ((waited >= START_LIMIT * 5)); then
            echo "the agent did not start:"
            sed 's/^/  /' "$log"
            return 1
        fi
        sleep 0.2
        waited=$((waited + 1))
    done
    base=${base#listening on }
}

# Runs the kit's tests against a new agent; `BASE` in an argument becomes the agent's
# URL. kit_figures.py evaluates the report, because the exit code of the tests does not
# show which tests were skipped.
run() {
    local name=$1 code=0
    shift
    start "$name"
    echo "running $name against $base"
    (
        cd "$kit"
        PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost \
            timeout "$RUN_LIMIT" "$environment/bin/python" -m pytest -q -p no:cacheprovider \
            --junitxml="$reports/$name.xml" "${@/BASE/$base}"
    ) >"$reports/$name.log" 2>&1 || code=$?
    stop
    if [ "$code" -eq 124 ]; then
        echo "FAILED: $name was stopped after $RUN_LIMIT s"
        tail -n 30 "$reports/$name.log"
        exit 1
    fi
}

install
(cd "$root" && cargo build -q -p local-agent)
commit=$(git -C "$kit" rev-parse HEAD 2>/dev/null || echo unknown)
echo "kit $generation at $commit"

case $generation in
    1.0)
        run compatibility tests/compatibility/ --sut-host=BASE --transport=jsonrpc,http_json \
            --compatibility-report="$reports/requirements.json"
        ;;
    0.3)
        options=(--sut-url=BASE/ --test-scope=all --transport-strategy=agent_preferred
            --transports=jsonrpc)
        run mandatory tests/mandatory/ -m "mandatory_jsonrpc or mandatory_protocol" "${options[@]}"
        run capabilities tests/optional/capabilities/ "${options[@]}"
        ;;
esac

python3 -B "$here/kit_figures.py" --generation "$generation" --reports "$reports" \
    --expected "$here/expected-failures.txt"
