#!/usr/bin/env bash
# Runs each function under `cargo lambda watch`, with the two commands of docs/local.md at a free port, and checks them as
# a client does: one process per function, the Runtime API between, DynamoDB and S3 of the local agent behind the SDKs.
# The router table in Cargo.toml replaces API Gateway. The argument is the folder that holds cargo-lambda.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The webhook of the walk is on this machine.
export PATH="$1:$PATH" A2A_PUSH_ALLOW_PRIVATE=on
program=${CARGO_TARGET_DIR:-target}/debug/a2a-local
scratch=$(mktemp -d)
started=()
# Invoked by the trap. Each of the two is the first of a session with its children.
# shellcheck disable=SC2329
stop() {
  for process in "${started[@]}"; do kill -- "-$process" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 130' INT TERM

# All functions at once, so that no first call waits for its build.
cargo build --locked --quiet
setsid "$program" --memory --port 0 --env-file "$scratch/functions.env" >"$scratch/agent" &
started+=($!)
until grep -q '^listening on ' "$scratch/agent"; do
  kill -0 "${started[0]}"
  sleep 0.1
done
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
base=http://127.0.0.1:$port
setsid cargo lambda watch -A 127.0.0.1 --disable-cors --concurrency 4 --ignore-changes -P "$port" \
  --env-file "$scratch/functions.env" --env-var "A2A_PUBLIC_URL=$base" </dev/null &
started+=($!)
until curl -so /dev/null "$base"; do
  kill -0 "${started[1]}"
  sleep 0.1
done

"$program" check "$base" | tee "$scratch/steps"
# No origin is allowed here.
if grep -E '^not shown ' "$scratch/steps" | grep -v '^not shown preflight '; then echo "FAILED: the functions lack a step"; exit 1; fi

# A path call of 0.1, a page of another site, and a method without a route.
code() { curl -s -o "$scratch/answer" -w '%{http_code}' -H 'Content-Type: application/json' "$@"; }
call='{"id": "walk", "message": {"role": "user", "parts": [{"type": "text", "text": "Hm."}]}}'
[[ $(code "$base/tasks/send" -d "$call") == 200 ]] && grep -q input-required "$scratch/answer"
[[ $(code "$base/tasks/walk/get") == 200 ]]
[[ $(code "$base/message:send" -H 'Origin: https://evil.example' -H 'A2A-Version: 1.0' -d '{}') == 403 ]]
[[ $(code "$base/tasks" -H 'Host: evil.example' -H 'A2A-Version: 1.0') == 421 ]]
[[ $(code -X DELETE "$base/tasks" -H 'A2A-Version: 1.0') == 40[45] ]]
echo "the functions pass the check, a call of 0.1, and refuse foreign pages"
