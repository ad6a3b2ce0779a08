#!/usr/bin/env bash
# Builds the functions as they ship, the floor programs and the benchmark, and runs it:
#   tests/bench/run.sh [--write docs] [--rounds N] [--calls N] [--only NAME] [--no-curves]
# Needs Linux, because it reads CPU and memory of a process from /proc.
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
# Each alone, as `sam build` does it: a function gets only the features that it asks for.
for function in agent-card tasks-send tasks-get rpc; do
  cargo build --release --locked -p "$function"
done
cargo build --release --locked -p stack-agent
cargo build --release --locked -p bench-floor
cargo build --profile proof --locked -p a2a-lambda-tests --bin bench
"$target/proof/bench" --programs "$target/release" "$@"
