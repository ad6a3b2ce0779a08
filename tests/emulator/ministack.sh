#!/usr/bin/env bash
# Runs the emulator suite against ministack, an independent emulator of AWS, in a separate
# process. Needs Python 3 and the package index; no Docker.
#
#   tests/emulator/ministack.sh [arguments of the test binary]
set -euo pipefail

cd "$(dirname "$0")/../.."
version=1.5.33
target="${CARGO_TARGET_DIR:-target}"
venv="$target/ministack-$version"

if [[ ! -x "$venv/bin/ministack" ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "ministack==$version"
fi

port="$("$venv/bin/python" -c '
import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])
')"

# Builds before the start, so that a failed build leaves no process running.
cargo test --workspace --test emulator --no-run

# By default ministack listens on every interface.
log="$target/ministack.log"
BIND_HOST=127.0.0.1 GATEWAY_PORT="$port" "$venv/bin/ministack" >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT

for _ in $(seq 100); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    ready=yes
    break
  fi
  if ! kill -0 "$server" 2>/dev/null; then
    break
  fi
  sleep 0.1
done
if [[ "${ready:-}" != yes ]]; then
  echo "ministack did not start; its log is $log" >&2
  exit 1
fi

AWS_ENDPOINT_URL="http://127.0.0.1:$port" \
  cargo test --workspace --test emulator -- "$@"
