#!/usr/bin/env bash
# Drives real A2A clients from the package registries through the conformance agent.
# README.md defines a walk.
set -euo pipefail

usage() {
    cat <<'HELP'
Usage: tests/interop/run.sh [--base URL] [--only NAME] [--list] [--help]

Drives real A2A clients through the conformance agent and prints one line per walk.

  --base URL   use the agent at URL (must be the conformance agent); without it the
               script builds one, starts it on a free port and stops it at the end
  --only NAME  only the walks with a "client binding" that begins with NAME
  --list       print the walks and stop
  --help       this text

Needs python3 (3.10 or newer, with venv), node 20 and npm. Installs clients once,
below target/interop. Exits 0 when every walk passed, 1 when one failed, 2 when the
arguments are wrong.
HELP
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
environments=${CARGO_TARGET_DIR:-$root/target}/interop

# Limits in seconds: for the start of a built agent, and for one whole walk (the walk
# itself limits each call to 30 s).
readonly START_LIMIT=60 WALK_LIMIT=180

# client and version | binding | package | walk
readonly WALKS=(
    "a2a-sdk-1.3.0|jsonrpc|pypi a2a-sdk==1.3.0|python/a2a_sdk_v1.py"
    "a2a-sdk-1.3.0|rest|pypi a2a-sdk==1.3.0|python/a2a_sdk_v1.py"
    "a2a-sdk-1.3.0|jsonrpc-0.3|pypi a2a-sdk==1.3.0|python/a2a_sdk_v1.py"
    "a2a-sdk-1.3.0|rest-0.3|pypi a2a-sdk==1.3.0|python/a2a_sdk_v1.py"
    "a2a-sdk-0.3.26|jsonrpc|pypi a2a-sdk==0.3.26|python/a2a_sdk_v03.py"
    "a2a-sdk-0.3.26|rest|pypi a2a-sdk==0.3.26|python/a2a_sdk_v03.py"
    "a2a-js-1.3.0|jsonrpc|npm @a2a-js/sdk@1.3.0|node/a2a_js_v1.mjs"
    "a2a-js-1.3.0|rest|npm @a2a-js/sdk@1.3.0|node/a2a_js_v1.mjs"
    "a2a-js-1.3.0|jsonrpc-0.3|npm @a2a-js/sdk@1.3.0|node/a2a_js_v1.mjs"
    "a2a-js-1.3.0|rest-0.3|npm @a2a-js/sdk@1.3.0|node/a2a_js_v1.mjs"
    "a2a-js-0.3.14|jsonrpc|npm @a2a-js/sdk@0.3.14|node/a2a_js_v03.mjs"
    "a2a-js-0.3.14|rest|npm @a2a-js/sdk@0.3.14|node/a2a_js_v03.mjs"
    "a2a-sdk-1.3.0|values|pypi a2a-sdk==1.3.0|python/values_v1.py"
    "a2a-js-1.3.0|values|npm @a2a-js/sdk@1.3.0|node/values_v1.mjs"
    "python-a2a-0.5.10|paths|pypi python-a2a==0.5.10|python/python_a2a_v01.py"
)

base='' only='' list=''
while [ $# -gt 0 ]; do
    case $1 in
        --base | --only)
            [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
            if [ "$1" = --base ]; then base=$2; else only=$2; fi
            shift 2
            ;;
        --list) list=yes; shift ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done

selected=()
for walk in "${WALKS[@]}"; do
    IFS='|' read -r client binding _ <<<"$walk"
    if [[ "$client $binding" == "$only"* ]]; then selected+=("$walk"); fi
done
if [ ${#selected[@]} -eq 0 ]; then
    echo "no walk begins with '$only'; --list prints them" >&2
    exit 2
fi
if [ -n "$list" ]; then
    for walk in "${selected[@]}"; do
        IFS='|' read -r client binding _ <<<"$walk"
        echo "$client $binding"
    done
    exit 0
fi

# Walks write no bytecode beside their sources, and connect to this machine only.
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

# Installs one package into its own environment, once. The marker is written
# last, so the next run repeats an interrupted installation.
install() {
    local client=$1 registry=$2 package=$3 place=$environments/$1
    if [ "$(cat "$place/.ready" 2>/dev/null)" = "$package" ]; then return 0; fi
    rm -rf "$place"
    mkdir -p "$place"
    echo "installing $client"
    case $registry in
        pypi)
            python3 -m venv "$place" &&
                "$place/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
            ;;
        npm)
            cp "$here/node/$client"/package*.json "$place" &&
                npm ci --prefix "$place" --ignore-scripts --loglevel=error --no-audit --no-fund \
                    --no-update-notifier >/dev/null
            ;;
    esac || return 1
    echo "$package" >"$place/.ready"
}

scratch=$(mktemp -d)
server=''
# Invoked by the trap.
# shellcheck disable=SC2329
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Starts the conformance agent. Sets `server`, and `base` from the line the agent
# prints when it is ready.
start() {
    local line
    cargo build -q --workspace --bin a2a-local || return 1
    mkfifo "$scratch/out"
    "${CARGO_TARGET_DIR:-$root/target}/debug/a2a-local" --agent conformance --memory --port 0 \
        >"$scratch/out" 2>&1 &
    server=$!
    exec 3<"$scratch/out"
    while read -r -t "$START_LIMIT" line <&3; do
        echo "$line" >>"$scratch/log"
        if [[ $line =~ listening\ on\ (http://[^[:space:]]+) ]]; then
            base=${BASH_REMATCH[1]}
            # Reads on, so that the agent never blocks on a full pipe.
            cat <&3 >>"$scratch/log" &
            return 0
        fi
    done
    return 1
}

passed=0 failed=0
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] || exit 1
    exit 0
}

if [ -z "$base" ]; then
    cd "$root"
    if ! start; then
        echo "the conformance agent did not start:"
        sed 's/^/  /' "$scratch/log" 2>/dev/null || true
        failed=${#selected[@]}
        finish
    fi
fi

for walk in "${selected[@]}"; do
    IFS='|' read -r client binding package script <<<"$walk"
    read -r registry package <<<"$package"
    place=$environments/$client
    if ! install "$client" "$registry" "$package"; then
        echo "FAILED $client $binding: the client could not be installed"
        failed=$((failed + 1))
        continue
    fi
    case $registry in
        pypi) command=("$place/bin/python" "$here/$script") ;;
        npm) command=(node "$here/$script" --sdk "$place") ;;
    esac
    command+=(--base "$base" --binding "$binding")
    if timeout "$WALK_LIMIT" "${command[@]}" >"$scratch/walk" 2>&1; then
        echo "ok $client $binding"
        passed=$((passed + 1))
    else
        code=$?
        echo "FAILED $client $binding"
        [ "$code" -ne 124 ] || echo "  stopped after $WALK_LIMIT s"
        cat "$scratch/walk"
        failed=$((failed + 1))
    fi
done

if [ "$failed" -gt 0 ] && [ -s "$scratch/log" ]; then
    echo "the last lines of the agent:"
    tail -n 20 "$scratch/log" | sed 's/^/  /'
fi
finish
