#!/usr/bin/env bash
# Builds the functions as they ship, the floor programs and the benchmark, and runs it:
#   tests/bench/run.sh [--write docs] [--rounds N] [--calls N] [--only NAME] [--no-curves] [--no-parts]
# Needs Linux, because it reads CPU and memory of a process from /proc.
#
#   tests/bench/run.sh --build-times
# measures no call. It builds the functions from nothing, and again after a change of one file of the
# library, and prints the seconds. This can take half an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
# A function gets only the features that it asks for, as `sam build` does it: functions are built
# at once only if they have the same dependencies.
build() {
  # shellcheck disable=SC2086
  cargo build --release --locked $(printf -- '-p %s ' "$@")
}

# Prints how many seconds a build takes.
seconds() {
  local began=$SECONDS
  build "$@" || return
  echo $((SECONDS - began))
}

build_times() {
  local group groups first=() again=() n from all
  export CARGO_TARGET_DIR=$target/build-times
  rm -rf "$CARGO_TARGET_DIR"
  mapfile -t groups < <(python3 -B tests/ship/groups.py)
  from=$SECONDS
  for group in "${groups[@]}"; do
    # shellcheck disable=SC2086
    first+=("$(seconds $group)")
  done
  all=$((SECONDS - from)) from=$SECONDS
  # Cargo compares times of files, so this is a change of one line.
  touch shared/runtime/src/lib.rs
  for group in "${groups[@]}"; do
    # shellcheck disable=SC2086
    again+=("$(seconds $group)")
  done
  rm -rf "$CARGO_TARGET_DIR"
  echo "| functions | from nothing, after those above, s | after a change of one line, s |"
  echo "|---|---|---|"
  for n in "${!groups[@]}"; do
    echo "| ${groups[n]} | ${first[n]} | ${again[n]} |"
  done
  echo "| all | $all | $((SECONDS - from)) |"
}

if [ "${1:-}" = --build-times ]; then
  build_times
  exit 0
fi
build agent-card
build rpc tasks-send
for package in tasks-get stack-agent bench-floor; do
  build "$package"
done
cargo build --profile proof --locked -p a2a-lambda-tests --bin bench
"$target/proof/bench" --programs "$target/release" "$@"
