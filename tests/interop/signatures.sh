#!/usr/bin/env bash
# Signs the card of the local agent, serves it, and verifies it with published SDKs:
# both forms of the card, both forms of the key.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
environments=$target/interop
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

python=$environments/a2a-sdk-1.3.0-signing
package='a2a-sdk[signing]==1.3.0'
if [ "$(cat "$python/.ready" 2>/dev/null)" != "$package" ]; then
    rm -rf "$python"
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check "$package" 'pyjwt[crypto]'
    echo "$package" >"$python/.ready"
fi
# The same environment as for the walks, which install it first.
node=$environments/a2a-js-1.3.0
if [ ! -e "$node/.ready" ]; then
    mkdir -p "$node"
    cp "$here/node/a2a-js-1.3.0"/package*.json "$node"
    npm ci --prefix "$node" --ignore-scripts --loglevel=error --no-audit --no-fund --no-update-notifier >/dev/null
    echo '@a2a-js/sdk@1.3.0' >"$node/.ready"
fi

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

passed=0 failed=0
verify() {
    local name=$1
    shift
    if timeout 120 "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
        passed=$((passed + 1))
    else
        echo "FAILED $name"
        cat "$scratch/said"
        failed=$((failed + 1))
    fi
}

# Runs a server, and sets `base` from the line it prints when it is ready.
serve() {
    local line
    rm -f "$scratch/out"
    mkfifo "$scratch/out"
    "$@" >"$scratch/out" 2>"$scratch/log" &
    server=$!
    exec 3<"$scratch/out"
    while read -r -t 60 line <&3; do
        if [[ $line =~ listening\ on\ (http://[^[:space:]]+) ]]; then
            base=${BASH_REMATCH[1]}
            return 0
        fi
    done
    cat "$scratch/log"
    return 1
}

base=''
for form in pkcs8 sec1; do
    key=$scratch/$form.pem
    "$python/bin/python" "$here/python/card_signature.py" --make-key "$key" --form "$form"
    "$program" sign-card --key "$key" --print jwks --out "$scratch/jwks.json"
    for card in union v1; do
        # The card of a local agent, served by the agent itself.
        export A2A_PUBLIC_URL=https://agent.example
        signatures=$(A2A_AUTH=dev "$program" sign-card --key "$key" --card "$card" --print setting)
        A2A_CARD_SIGNATURES=$signatures serve "$program" --memory --port 0 --card "$card"
        verify "a2a-sdk-1.3.0 $card $form" \
            "$python/bin/python" "$here/python/card_signature.py" --base "$base" --jwks "$scratch/jwks.json"
        verify "a2a-js-1.3.0 $card $form" \
            node "$here/node/card_signature.mjs" --sdk "$node" --base "$base" --jwks "$scratch/jwks.json"
        stop
        # The card of a deployment, which has security schemes, served as a file.
        mkdir -p "$scratch/site/.well-known"
        A2A_AUTH=gateway "$program" sign-card --key "$key" --card "$card" \
            --out "$scratch/site/.well-known/agent-card.json"
        serve python3 -u "$here/python/site.py" "$scratch/site"
        verify "a2a-sdk-1.3.0 $card $form, deployed" \
            "$python/bin/python" "$here/python/card_signature.py" --base "$base" --jwks "$scratch/jwks.json"
        verify "a2a-js-1.3.0 $card $form, deployed" \
            node "$here/node/card_signature.mjs" --sdk "$node" --base "$base" --jwks "$scratch/jwks.json"
        stop
        if [ "$form" = sec1 ]; then continue; fi
        # The same card with text and numbers that canonical forms have treated differently.
        signed=$scratch/site/.well-known/agent-card.json
        "$python/bin/python" "$here/python/card_signature.py" --make-difficult "$signed" "$scratch/card.json"
        "$program" sign-card --key "$key" --in "$scratch/card.json" --out "$signed"
        serve python3 -u "$here/python/site.py" "$scratch/site"
        verify "a2a-sdk-1.3.0 $card, not ASCII" \
            "$python/bin/python" "$here/python/card_signature.py" --base "$base" --jwks "$scratch/jwks.json"
        verify "a2a-js-1.3.0 $card, not ASCII" \
            node "$here/node/card_signature.mjs" --sdk "$node" --base "$base" --jwks "$scratch/jwks.json"
        stop
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
