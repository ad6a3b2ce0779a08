#!/usr/bin/env bash
# Builds the functions as they ship, the floor programs and the benchmark, and runs it:
#   tests/bench/run.sh [--write docs] [--rounds N] [--calls N] [--only NAME] [--no-curves] [--no-parts]
# Needs Linux, because it reads CPU and memory of a process from /proc.
#
#   tests/bench/run.sh --build-times
# measures no call. It builds the functions from nothing, and again after a change of one file of the
# library, and prints the seconds. This can take a quarter of an hour on two cores.
#
#   tests/bench/run.sh --profiles
# builds `tasks-send` with other profiles, and prints what each costs: the table of docs/performance.md.
# This takes an hour.
set -euo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
# Changes of the profile: options of cargo.
profile=()
# A function gets only the features that it asks for, as `sam build` does it: functions are built
# at once only if they use the same features of the runtime.
build() {
  # shellcheck disable=SC2086
  cargo build --release --locked "${profile[@]}" $(printf -- '-p %s ' "$@")
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

# A row: what `tasks-send` costs with these options of the profile. The floor beside it stays as it ships.
profile_row() {
  local name=$1 first again folder=$target/profiles
  shift
  profile=()
  for option in "$@"; do profile+=(--config "profile.release.$option"); done
  rm -rf "$folder"
  mkdir -p "$folder/programs"
  export CARGO_TARGET_DIR=$folder
  first=$(seconds tasks-send)
  # An author changes a skill.
  touch shared/agent/src/lib.rs
  again=$(seconds tasks-send)
  cp "$folder/release/tasks-send" "$target/release/floor-dynamodb" "$folder/programs/"
  "$target/proof/bench" --programs "$folder/programs" --only '`tasks-send`' --no-curves --no-parts |
    awk -F ' *[|] *' -v name="$name" -v built="$first | $again" '
      $2 == "`tasks-send`: send" && NF == 10 { cpu = $5 " | " $8 }
      $2 == "`tasks-send`: send" && NF == 11 { found = 1; print "| " name " | " $9 " | " $10 " | " $8 " | " cpu " | " built " |" }
      END { exit !found }'
  rm -rf "$folder"
}

profiles() {
  local ours=() crate
  for crate in a2a-lambda a2a-lambda-aws a2a-lambda-llm a2a-lambda-model a2a-lambda-sets a2a-lambda-skill a2a-lambda-wire reference-agent; do
    ours+=("package.$crate.opt-level=3")
  done
  build bench-floor
  cargo build --profile proof --locked -p a2a-lambda-tests --bin bench
  echo "| profile | program, MB | zip, MB | peak memory, MB | CPU of a cold start, ms | CPU of a send, ms | from nothing, s | after a change of a skill, s |"
  echo "|---|---|---|---|---|---|---|---|"
  profile_row 'as it ships: `s`, fat LTO, 1 unit'
  profile_row '`s`, thin LTO, 1 unit' 'lto="thin"'
  profile_row '`s`, thin LTO, 16 units' 'lto="thin"' codegen-units=16
  profile_row '`s`, no LTO, 16 units' 'lto="off"' codegen-units=16
  profile_row '`s`, our crates 3, fat LTO, 1 unit' "${ours[@]}"
  profile_row '2, fat LTO, 1 unit' opt-level=2
  profile_row '3, fat LTO, 1 unit' opt-level=3
}

case ${1:-} in
  --build-times) build_times; exit 0 ;;
  --profiles) profiles; exit 0 ;;
esac
build agent-card
build rpc tasks-send
for package in tasks-get stack-agent bench-floor; do
  build "$package"
done
cargo build --profile proof --locked -p a2a-lambda-tests --bin bench
"$target/proof/bench" --programs "$target/release" "$@"
