#!/usr/bin/env bash
# Copies the folder `template`, as an author does, and builds, tests, runs and deploys the copy.
#
# The copy depends on the library by its address and tag. The test puts a repository there
# that has only the files of the packages, so a file that a package lacks fails here.
set -euo pipefail

case ${1:-} in
  "") ;;
  *)
    echo "usage: tests/author/run.sh"
    echo "Copies the folder template below target/author, and builds, tests, runs and deploys the copy."
    echo "It needs the environments stack and template of tests/run.sh."
    [[ $1 == --help ]] && exit 0 || exit 2
    ;;
esac

root=$(cd "$(dirname "$0")/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/author
packages=(a2a-lambda-macros a2a-lambda-model a2a-lambda-wire a2a-lambda-store a2a-lambda-skill a2a-lambda-aws a2a-lambda-llm a2a-lambda a2a-lambda-sets a2a-lambda-admin a2a-lambda-page a2a-local)
cd "$root"
address=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)

echo "packages: ${packages[*]}"
cargo package -q --no-verify --allow-dirty "${packages[@]/#/-p}"
rm -rf "$work/repository" "$work/agent"
for name in "${packages[@]}"; do
  folder=$(sed -n "s/^$name = { version = .* path = \"\([^\"]*\)\".*/\1/p" Cargo.toml)
  mkdir -p "$work/repository/$folder"
  tar -xzf "$target/package/$name-$version.crate" -C "$work/repository/$folder" --strip-components 1
  # The package's own manifest, whose dependencies are those of the workspace.
  mv "$work/repository/$folder/Cargo.toml.orig" "$work/repository/$folder/Cargo.toml"
done
cp Cargo.toml "$work/repository/"
# A repository with the files of the packages alone is at the address of the library.
git -C "$work/repository" init -q
git -C "$work/repository" add -A
git -C "$work/repository" -c user.name=test -c user.email=test@example.com commit -qm packages
git -C "$work/repository" tag "v$version"
export CARGO_NET_GIT_FETCH_WITH_CLI=true
export GIT_CONFIG_COUNT=1
export GIT_CONFIG_KEY_0="url.file://$work/repository.insteadOf"
export GIT_CONFIG_VALUE_0=$address

grep -qF "git = \"$address\", tag = \"v$version\"" template/Cargo.toml || { echo "template/Cargo.toml names another address or tag"; exit 1; }
cp -r template "$work/agent"
# The step `watch` installs cargo-lambda here.
PATH=$PATH:$target/venv/watch/bin
if command -v cargo-lambda > /dev/null; then
  rm -rf "$work/new"
  (cd "$work" && cargo lambda new --no-interactive --template "$root/template" new > /dev/null)
  diff -r template "$work/new"
  echo "the agent of cargo lambda new is the same copy"
else
  echo "SKIPPED: cargo lambda new, because cargo-lambda is not installed"
fi
cd "$work/agent"
# The programs of the folder `examples`, as members of the author's workspace.
cp -r "$root/examples" .
sed -i '/^\[lints\]/,$d' examples/Cargo.toml
sed -i 's/^members = \["agent"/&, "examples"/' Cargo.toml
for name in $(sed -n 's/^\([a-z_-]*\)\.workspace = true$/\1/p' examples/Cargo.toml); do
  grep -q "^$name = " Cargo.toml || sed -i "/^\[workspace.dependencies\]/a $(grep "^$name = " "$root/Cargo.toml")" Cargo.toml
done
# The versions of this repository, so that the test downloads nothing new. `newest` is what an author gets.
[[ ${AUTHOR_VERSIONS:-} == newest ]] || cp "$root/Cargo.lock" .
export CARGO_TARGET_DIR=$work/target

echo "cargo test -p agent --no-default-features"
crates=$(cargo tree -p agent --no-default-features -e normal,build --prefix none | sed 's/ (\*)$//' | sort -u | wc -l)
echo "the tests of skills build $crates crates"
((crates <= 100)) || { echo "that are more than the guide says"; exit 1; }
cargo test -q -p agent --no-default-features
echo "cargo test --workspace"
cargo test -q --workspace
echo "cargo run -- eval"
cargo run -q -- eval agent/eval.jsonl
echo "cargo run -- template"
grep -q stack_name samconfig.toml && { echo "a copied agent has a name"; exit 1; }
cargo run -q -- template --check
cargo run -q -- template
grep -qx 'stack_name = "restaurant"' samconfig.toml
grep -qx 'stack_name = "restaurant-prod"' samconfig.toml
printf 'Resources:\n  WorkerFunction:\n    Properties:\n      EphemeralStorage: {Size: 2048}\n  Mine:\n    Type: AWS::SQS::Queue\n' >> infra/changes.yaml
cargo run -q -- template --check 2> /dev/null && { echo "--check sees no change of the author"; exit 1; }
cargo run -q -- template
cargo run -q -- template --check
[[ $(grep -cE '^      EphemeralStorage: |^  Mine:' template.yaml) == 2 ]] || { echo "the changes of the author are lost"; exit 1; }

echo "cargo run"
said=$work/said
trap 'kill $agent 2>/dev/null || true' EXIT
# Starts the agent on a free port: the address is in `base`.
start() {
  "$CARGO_TARGET_DIR/debug/local" --port 0 --memory > "$said" &
  agent=$!
  for _ in $(seq 100); do
    base=$(sed -n 's/^listening on //p' "$said")
    [[ -n $base ]] && return
    sleep 0.1
  done
  echo "the agent did not start"
  exit 1
}

start
"$CARGO_TARGET_DIR/debug/local" check "$base"

echo "cargo run -- dev"
python3 -B "$root/tests/author/dev.py" .

echo "cfn-lint"
"$target/venv/template/bin/cfn-lint" template.yaml infra/own.yaml
# The features are those of the tests, so that nothing is compiled twice.
cargo build -q --workspace
"$target/venv/stack/bin/python" -B "$root/tests/author/deployed.py" --agent . \
  --program "$CARGO_TARGET_DIR/debug/agent" --folder "$work/stack"
lines=$(cat agent/src/main.rs local/src/main.rs | grep -cv '^$')
echo "hand-written lines to serve and ship beside the skills: $lines"

echo "one line adds memory"
kill $agent
library=$(sed -n 's/^a2a-local = //p' Cargo.toml)
sed -i "/^\[workspace.dependencies\]/a a2a-lambda-sets = $library" Cargo.toml
sed -i '/^\[dependencies\]/a a2a-lambda-sets.workspace = true' agent/Cargo.toml
sed -i 's/^        .skill(Book)$/&\n        .skills(a2a_lambda_sets::memory::set())/' agent/src/lib.rs
cargo build -q
start
# Fails unless the response has these words.
answers() {
  [[ $(curl -s -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' "$base$1" "${@:3}") == *"$2"* ]]
}
say() { echo '{"message": {"messageId": "'"$1"'", "role": "ROLE_USER", "parts": [{"text": "'"$2"'"}]}}'; }
answers /.well-known/agent-card.json '"id":"memory_search"'
answers /message:send '"layer":"user"' -d "$(say one '/memory_add {\"content\": \"Table 4 likes tea\", \"layer\": \"user\"}')"
answers /message:send '"content":"Table 4 likes tea"' -d "$(say two 'What do you remember about tea')"
answers /a2a-lambda/health '"memory":{"latencyMs"'
answers /metrics 'skill_name="memory_add"'
echo "one line added memory: its skills, its health and its metrics"
