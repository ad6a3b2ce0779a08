#!/usr/bin/env bash
# Checks servers of the official Python SDK, 1.0 and 0.3, over both bindings, with
# `a2a-local check`: what they have works, and only what they have not is not shown.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

cd "$root"
cargo build -q --workspace --bin a2a-local
program=$target/debug/a2a-local
scratch=$(mktemp -d)
server=''
# Invoked by the trap.
# shellcheck disable=SC2329
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=''
    fi
}
trap 'stop; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# Checks a server that an option may spoil. Prints whether each step is as expected.
check() {
    local version=$1 failing=$2 line base=''
    shift 2
    rm -f "$scratch/out"
    mkfifo "$scratch/out"
    "$target/interop/a2a-sdk-server-$version/bin/python" "$here/python/sdk_server.py" "$@" \
        >"$scratch/out" 2>"$scratch/log" &
    server=$!
    if read -r -t 60 line <"$scratch/out"; then base=${line#listening on }; fi
    timeout 120 "$program" check "$base" --json >"$scratch/report" 2>>"$scratch/log" || true
    stop
    if python3 "$here/python/sdk_report.py" "$scratch/report" "$failing"; then
        echo "ok a2a-sdk-$version $*"
    else
        echo "FAILED a2a-sdk-$version $*"
        tail -n 20 "$scratch/log"
        return 1
    fi
}

for version in 1.3.0 0.3.26; do
    place=$target/interop/a2a-sdk-server-$version
    package="a2a-sdk[http-server]==$version"
    if [ "$(cat "$place/.ready" 2>/dev/null)" != "$package" ]; then
        rm -rf "$place"
        python3 -m venv "$place"
        "$place/bin/pip" install --quiet --disable-pip-version-check "$package" uvicorn
        echo "$package" >"$place/.ready"
    fi
    for binding in '' --rest; do
        check "$version" '' ${binding:+"$binding"}
    done
    check "$version" stream --buffer
done
