#!/usr/bin/env bash
# Checks servers of others with `a2a-local check`: what they have works, what they do not have is not
# shown, and a server that breaks a rule fails. They are the official SDKs for Python (1.0 and 0.3) and
# JavaScript, over both bindings, and two frameworks with servers of their own.
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

# Checks a server, with its name, the options of sdk_report.py, those of `check`, and the command
# that starts it. Prints whether each step is as expected.
check() {
    local name=$1 line base=''
    local -a expected=() options=()
    read -r -a expected <<<"$2"
    read -r -a options <<<"$3"
    shift 3
    rm -f "$scratch/out"
    mkfifo "$scratch/out"
    # Open for reading as long as the server writes, which a closed pipe would end.
    exec {out}<>"$scratch/out"
    "$@" >"$scratch/out" 2>"$scratch/log" &
    server=$!
    if read -r -t 60 line <&"$out"; then base=${line#listening on }; fi
    timeout 120 "$program" check "$base" "${options[@]}" --json >"$scratch/report" 2>>"$scratch/log" || true
    stop
    exec {out}>&-
    if python3 "$here/python/sdk_report.py" "$scratch/report" "${expected[@]}"; then
        echo "ok $name"
    else
        echo "FAILED $name"
        tail -n 20 "$scratch/log"
        return 1
    fi
}

# Installs Python packages below a name, once, and sets `python` to their interpreter.
install() {
    local place=$target/interop/$1
    shift
    python=$place/bin/python
    if [ "$(cat "$place/.ready" 2>/dev/null)" = "$*" ]; then return 0; fi
    rm -rf "$place"
    python3 -m venv "$place"
    "$python" -m pip install --quiet --disable-pip-version-check "$@" uvicorn
    echo "$*" >"$place/.ready"
}

for version in 1.3.0 0.3.26; do
    install "a2a-sdk-server-$version" "a2a-sdk[http-server]==$version"
    sdk=("$python" "$here/python/sdk_server.py")
    for binding in '' --rest; do
        check "a2a-sdk-$version $binding" '' '' "${sdk[@]}" ${binding:+"$binding"}
    done
    # The SDK of 0.3 lets nobody follow a task that waits, so a stream that is held back until its end
    # looks like one of a quick task.
    held='--failed stream'
    if [ "$version" = 0.3.26 ]; then held='--hidden stream'; fi
    check "a2a-sdk-$version that buffers" "$held" '' "${sdk[@]}" --buffer
    if [ "$version" != 1.3.0 ]; then continue; fi
    check "a2a-sdk-$version at a path with a slash" '' '' "${sdk[@]}" --path /a2a/
    check "a2a-sdk-$version that answers with messages" \
        '--hidden question,stream,background,file,webhook' '' "${sdk[@]}" --messages
done

place=$target/interop/a2a-js-1.3.0-server
if ! cmp -s "$here/node/a2a-js-1.3.0-server/package-lock.json" "$place/.ready"; then
    rm -rf "$place"
    mkdir -p "$place"
    cp "$here"/node/a2a-js-1.3.0-server/package*.json "$place"
    npm ci --prefix "$place" --ignore-scripts --loglevel=error --no-audit --no-fund --no-update-notifier
    cp "$place/package-lock.json" "$place/.ready"
fi
check 'a2a-js-1.3.0' '' '' node "$here/node/sdk_server.mjs" --sdk "$place"
check 'a2a-js-1.3.0 that buffers' '--failed stream' '' node "$here/node/sdk_server.mjs" --sdk "$place" --buffer

install a2a-lite-server a2a-lite==1.2.1
check 'a2a-lite-1.2.1' \
    '--hidden question,stream,background,file,webhook --detail skills[0].tags' '' \
    "$python" "$here/python/framework_server.py" a2a-lite
install fasta2a-server 'fasta2a[pydantic-ai]==2.1.1' pydantic-ai-slim==2.66.0
check 'pydantic-ai without words' '--failed send --hidden question,stream,background,file,webhook' '' \
    "$python" "$here/python/framework_server.py" pydantic-ai
check 'pydantic-ai' '--hidden question,stream,file,webhook' '--say hello' "$python" "$here/python/framework_server.py" pydantic-ai
