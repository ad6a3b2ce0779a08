#!/usr/bin/env bash
# Copies the folder `template`, as an author does, and builds, tests and runs the copy.
#
# The copy depends on the library by its address and tag. The test puts a repository there
# that has only the files of the packages, so a file that a package lacks fails here.
set -euo pipefail

case ${1:-} in
  "") ;;
  *)
    echo "usage: tests/author/run.sh"
    echo "Copies the folder template below target/author, and builds, tests and runs the copy."
    [[ $1 == --help ]] && exit 0 || exit 2
    ;;
esac

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/target/author
packages=(a2a-lambda-macros a2a-lambda-model a2a-lambda-wire a2a-lambda-aws a2a-lambda a2a-local)
cd "$root"
address=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)

echo "packages: ${packages[*]}"
cargo package -q --no-verify --allow-dirty "${packages[@]/#/-p}"
rm -rf "$work/repository" "$work/agent"
for name in "${packages[@]}"; do
  folder=$(sed -n "s/^$name = { version = .* path = \"\([^\"]*\)\".*/\1/p" Cargo.toml)
  mkdir -p "$work/repository/$folder"
  tar -xzf "target/package/$name-$version.crate" -C "$work/repository/$folder" --strip-components 1
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
PATH=$PATH:$root/target/venv/watch/bin
if command -v cargo-lambda > /dev/null; then
  rm -rf "$work/new"
  (cd "$work" && cargo lambda new --no-interactive --template "$root/template" new > /dev/null)
  diff -r template "$work/new"
  echo "the agent of cargo lambda new is the same copy"
else
  echo "SKIPPED: cargo lambda new, because cargo-lambda is not installed"
fi
cd "$work/agent"
# The versions of this repository, so that the test downloads nothing new.
cp "$root/Cargo.lock" .
export CARGO_TARGET_DIR=$work/target

echo "cargo test --workspace"
cargo test -q --workspace
echo "cargo run -- template --check"
cargo run -q -- template --check

echo "cargo run"
said=$work/said
"$CARGO_TARGET_DIR/debug/local" --port 0 --memory > "$said" &
agent=$!
trap 'kill $agent 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  base=$(sed -n 's/^listening on //p' "$said")
  [[ -n $base ]] && break
  sleep 0.1
done
[[ -n $base ]] || { echo "the agent did not start"; exit 1; }

python3 - "$base" <<'PY'
import json
import sys
import urllib.request

BASE = sys.argv[1]


def call(path, body=None):
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE + path, data, headers)) as response:
        return json.load(response)


def send(part, task=None):
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    if task:
        message["taskId"] = task
    return call("/message:send", {"message": message})["task"]


card = call("/.well-known/agent-card.json")
assert [skill["id"] for skill in card["skills"]] == ["price", "book"], card
task = send({"text": "pasta"})
assert task["artifacts"][0]["parts"][0]["text"] == "pasta: 11.50 EUR", task
task = send({"data": {"when": "Friday"}})
assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", task
task = send({"text": "4"}, task["id"])
assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
assert task["artifacts"][0]["parts"][0]["data"] == {"when": "Friday", "guests": 4}, task
print("the agent told a price, asked a question and booked a table")
PY
lines=$(cat agent/src/main.rs local/src/main.rs | grep -cv '^$')
echo "hand-written lines to serve and ship beside the skills: $lines"
