#!/usr/bin/env bash
# The official conformance kit, from a checkout the user has, against the local
# agent. The kit is in no registry, so nothing here fetches it.
set -euo pipefail

usage() {
    cat <<'HELP'
Usage: tests/conformance/kit.sh DIR [--help]

Runs the official A2A kit (a2aproject/a2a-tck) that is checked out in DIR, and
prints what passed, failed and was skipped.

  DIR     a checkout of the kit: branch 1.0-dev, or branch 0.3.x
  --help  this text

The generation is told by what DIR holds. 1.0 runs over JSON-RPC and HTTP+JSON
against the 1.0 card; 0.3 runs its mandatory and capability tests over JSON-RPC
against the union card. Each run has a fresh agent (in memory, on a free port)
and 600 seconds. The kit's Python packages are installed once, below target/;
reports are written there too, and nothing in DIR.

Exits 0 when nothing failed that expected-failures.txt does not name, everything
it names did fail, and no fewer requirements were tested than in the last run;
1 otherwise, 2 when the arguments are wrong.

Needs cargo and python3 (3.11 or newer, with venv).
HELP
}

case ${1:-} in
    --help | -h) usage; exit 0 ;;
    '' | -*) usage >&2; exit 2 ;;
esac
[ $# -eq 1 ] || { usage >&2; exit 2; }
[ -d "$1" ] || { echo "there is no folder $1" >&2; exit 2; }

kit=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
place=$target/conformance

# Seconds: a whole run of the kit's tests; the start of a built agent.
readonly RUN_LIMIT=600 START_LIMIT=60

if [ -d "$kit/tests/compatibility" ]; then
    generation=1.0 card=v1
elif [ -d "$kit/tests/mandatory" ]; then
    generation=0.3 card=union
else
    echo "$kit is no checkout of the kit: it has neither tests/compatibility nor tests/mandatory" >&2
    exit 2
fi

environment=$place/kit-$generation
reports=$place/reports-$generation
rm -rf "$reports"
mkdir -p "$reports"

# What the kit imports at run time: the list its own pyproject.toml gives.
requirements() {
    python3 - "$kit/pyproject.toml" <<'PY'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    print("\n".join(tomllib.load(file)["project"]["dependencies"]))
PY
}

# The marker is written last, so an interrupted installation is started over.
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

# A fresh agent. Sets `server` and `base`, from the line it prints when it is ready.
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

# One run of the kit's tests, by name, against an agent of its own; `BASE` in an
# argument becomes the agent's URL. What came of it is judged from the report: the
# exit code of the tests says nothing about what was skipped.
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
(cd "$root" && cargo build -q -p a2a-local)
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
