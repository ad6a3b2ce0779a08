#!/usr/bin/env bash
# Builds the functions as they ship, the floor programs and the benchmark, and runs it:
#   tests/bench/run.sh [--write docs] [--rounds N] [--calls N] [--only NAME] [--no-curves] [--no-parts]
# Needs Linux, because it reads CPU and memory of a process from /proc.
#
#   tests/bench/run.sh --build-times
# measures no call. It builds each function alone, from nothing, and again after a change of one file
# of the library, and prints the seconds. This can take an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
# Each alone, as `sam build` does it: a function gets only the features that it asks for.
build() { cargo build --release --locked -p "$1"; }

# Prints how many seconds the build of a function takes.
seconds() {
  local began=$SECONDS
  build "$1" || return
  echo $((SECONDS - began))
}

build_times() {
  local function manifest first=() again=() n from all
  export CARGO_TARGET_DIR=$target/build-times
  rm -rf "$CARGO_TARGET_DIR"
  from=$SECONDS
  for manifest in functions/*/Cargo.toml; do
    function=$(basename "$(dirname "$manifest")")
    first+=("$function $(seconds "$function")")
  done
  all=$((SECONDS - from)) from=$SECONDS
  # Cargo compares times of files, so this is a change of one line.
  touch shared/runtime/src/lib.rs
  for manifest in functions/*/Cargo.toml; do
    again+=("$(seconds "$(basename "$(dirname "$manifest")")")")
  done
  rm -rf "$CARGO_TARGET_DIR"
  echo "| function | from nothing, after those above, s | after a change of one line, s |"
  echo "|---|---|---|"
  for n in "${!first[@]}"; do
    echo "| \`${first[n]% *}\` | ${first[n]#* } | ${again[n]} |"
  done
  echo "| all | $all | $((SECONDS - from)) |"
}

if [ "${1:-}" = --build-times ]; then
  build_times
  exit 0
fi
for function in agent-card tasks-send tasks-get rpc stack-agent bench-floor; do
  build "$function"
done
cargo build --profile proof --locked -p a2a-lambda-tests --bin bench
"$target/proof/bench" --programs "$target/release" "$@"
