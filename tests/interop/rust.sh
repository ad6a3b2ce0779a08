#!/usr/bin/env bash
# Drives the official Rust client (a2a-client-lf) and the official command line (a2acli)
# through the conformance agent. README.md defines a walk. Both are compiled, once, below
# target/interop: this takes minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
place=$target/interop/rust
readonly CLI=0.4.5 START_LIMIT=60 WALK_LIMIT=180
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost PYTHONDONTWRITEBYTECODE=1

case ${1:-} in
    '') ;;
    --help | -h) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    *) echo "usage: tests/interop/rust.sh [--help]" >&2; exit 2 ;;
esac

echo "compiling the client and the command line"
CARGO_TARGET_DIR=$place cargo build -q --locked --manifest-path "$here/rust/Cargo.toml"
cli=$place/a2acli-$CLI
if [ ! -x "$cli/bin/a2acli" ]; then
    CARGO_TARGET_DIR=$place cargo install -q --debug --locked --root "$cli" a2a-cli --version "$CLI"
fi

cd "$root"
cargo build -q --workspace --bin a2a-local
scratch=$(mktemp -d)
servers=()
# Invoked by the trap.
# shellcheck disable=SC2329
stop() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Starts the conformance agent with a card. Sets `base`.
start() {
    local log=$scratch/$1.log waited=0
    "$target/debug/a2a-local" --agent conformance --card "$1" --memory --port 0 >"$log" 2>&1 &
    servers+=($!)
    until base=$(grep -oE 'listening on http://[^[:space:]]+' "$log" | head -n 1); do
        if ((waited >= START_LIMIT * 5)); then
            echo "the agent did not start:"
            sed 's/^/  /' "$log"
            exit 1
        fi
        sleep 0.2
        waited=$((waited + 1))
    done
    base=${base#listening on }
}

start v1
v1=$base
start union
failed=0
for binding in JSONRPC HTTP+JSON; do
    if timeout "$WALK_LIMIT" "$place/debug/rust-walk" "$base" "$binding"; then
        echo "ok      a2a-client-lf-0.2.9 $binding"
    else
        echo "FAILED  a2a-client-lf-0.2.9 $binding"
        failed=1
    fi
done
timeout "$WALK_LIMIT" python3 "$here/python/a2acli.py" "$cli/bin/a2acli" "$base" "$v1" || failed=1
exit "$failed"
