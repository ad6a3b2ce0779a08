#!/usr/bin/env bash
# Reads the stub of model services by the official packages. README.md documents the stub.
set -euo pipefail

usage() {
    cat <<'HELP'
Usage: tests/models/read.sh [--only NAME] [--list] [--help]

Starts the stub on readers/script.json and reads it by the official packages of PyPI
and npm. Prints one line per check; a failed check has its request and its answer.

  --only NAME  only the readers whose name begins with NAME
  --list       print the readers and stop
  --help       this text

Needs python3 (3.10 or newer, with venv), node 20 and npm. Installs the packages once,
below target/models. Exits 0 when every check passed, 1 when one failed, 2 when the
arguments are wrong.
HELP
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
environments=${CARGO_TARGET_DIR:-$root/target}/models

# Limits in seconds: for the start of the stub, and for one reader.
readonly START_LIMIT=60 READ_LIMIT=180

# environment | package | reader. The package of Node asks for Node 22; what the reader
# uses of it also runs on 20.
readonly READERS=(
    "openai-python|pypi openai==3.54.0|openai_chat.py"
    "openai-python|pypi openai==3.54.0|openai_responses.py"
    "boto3|pypi boto3==1.44.5|bedrock.py"
    "openai-node|npm openai@7.57.0|openai.mjs"
)

only='' list=''
while [ $# -gt 0 ]; do
    case $1 in
        --only)
            [ $# -ge 2 ] || { echo "$1 needs a value" >&2; exit 2; }
            only=$2
            shift 2
            ;;
        --list) list=yes; shift ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
done

selected=()
for reader in "${READERS[@]}"; do
    if [[ ${reader##*|} == "$only"* ]]; then selected+=("$reader"); fi
done
if [ ${#selected[@]} -eq 0 ]; then
    echo "no reader begins with '$only'; --list prints them" >&2
    exit 2
fi
if [ -n "$list" ]; then
    printf '%s\n' "${selected[@]##*|}"
    exit 0
fi

# Readers write no bytecode beside their sources, connect to this machine only, and
# take no settings of the user who runs them.
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
unset "${!OPENAI_@}" AWS_PROFILE AWS_BEARER_TOKEN_BEDROCK

# Installs one package into its own environment, once. The marker is written
# last, so the next run repeats an interrupted installation.
install() {
    local registry=$2 package=$3 place=$environments/$1
    if [ "$(cat "$place/.ready" 2>/dev/null)" = "$package" ]; then return 0; fi
    rm -rf "$place"
    mkdir -p "$place"
    echo "installing $package"
    case $registry in
        pypi)
            python3 -m venv "$place" &&
                "$place/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
            ;;
        npm)
            cp "$here/readers/$1"/package*.json "$place" &&
                npm ci --prefix "$place" --ignore-scripts --loglevel=error --no-audit --no-fund \
                    --no-update-notifier --no-engine-strict >/dev/null
            ;;
    esac || return 1
    echo "$package" >"$place/.ready"
}

scratch=$(mktemp -d)
server=''
# Also invoked by the trap.
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    server=''
}
trap 'stop; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# Starts a stub, with counters of its own. Sets `server` and `base`.
start() {
    local line
    rm -f "$scratch"/*
    mkfifo "$scratch/out"
    python3 "$here/stub.py" --script "$here/readers/script.json" --log "$scratch/log" \
        >"$scratch/out" 2>"$scratch/errors" &
    server=$!
    read -r -t "$START_LIMIT" line <"$scratch/out" || return 1
    base=${line#listening on }
}

passed=0 failed=0
for reader in "${selected[@]}"; do
    IFS='|' read -r environment package script <<<"$reader"
    read -r registry package <<<"$package"
    place=$environments/$environment
    code=0
    if ! install "$environment" "$registry" "$package"; then
        echo "FAILED $script: the package could not be installed"
        code=1
    elif ! start; then
        echo "FAILED $script: the stub did not start"
        cat "$scratch/errors"
        code=1
    else
        case $registry in
            pypi) command=("$place/bin/python" "$here/readers/$script" "$base" "$scratch/log") ;;
            npm) command=(node "$here/readers/$script" "$place" "$base") ;;
        esac
        timeout "$READ_LIMIT" "${command[@]}" >"$scratch/read" 2>&1 || code=$?
        cat "$scratch/read"
        passed=$((passed + $(grep -c '^ok ' "$scratch/read" || true)))
        # A reader that ended before its checks did has failed without a line of its own.
        if [ "$code" -ne 0 ]; then
            echo "FAILED $script with $code"
            sed 's/^/  the stub: /' "$scratch/errors"
        fi
        stop
    fi
    [ "$code" -eq 0 ] || failed=$((failed + 1))
done

if [ "$failed" -gt 0 ]; then
    echo "$passed checks passed, $failed readers failed"
    exit 1
fi
echo "$passed passed, 0 failed"
