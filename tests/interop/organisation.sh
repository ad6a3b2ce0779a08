#!/usr/bin/env bash
# Stores knowledge in the reference agent and puts it into force, then exports it and reads it with git.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

command -v git >/dev/null || { echo "this test needs git, which reads the exported knowledge" >&2; exit 1; }

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

mkfifo "$scratch/out"
"$program" --data "$scratch/data" --port 0 >"$scratch/out" 2>"$scratch/log" &
server=$!
base=''
exec 3<"$scratch/out"
while read -r -t 60 line <&3; do
    if [[ $line =~ listening\ on\ (http://[^[:space:]]+) ]]; then
        base=${BASH_REMATCH[1]}
        break
    fi
done
[ -n "$base" ] || { cat "$scratch/log"; exit 1; }
cat <&3 >>"$scratch/log" &
# Calls a skill with this input. Its task has to complete.
call() {
    curl -s "$base/message:send" -H 'Authorization: Bearer dev:acme:ann:default:role:architect,project:shop' \
        -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"message": {"messageId": "'"$1-$RANDOM"'", "role": "ROLE_USER",
        "metadata": {"skillId": "'"$1"'"}, "parts": [{"data": {'"$2"'}}]}}' >"$scratch/answer"
    grep -q TASK_STATE_COMPLETED "$scratch/answer" || { cat "$scratch/answer"; tail -n 20 "$scratch/log"; exit 1; }
}
rules='"path": "policies/code.json", "layer": "company"'
record='"path": "adr/0001-use-dynamodb.md", "layer": "project"'
policy='{\"id\": \"code\", \"layer\": \"company\", \"mandatory\": true, \"rules\": [{\"id\": \"no-unwrap\", \"kind\": \"must_not_use\",
    \"target\": \"code\", \"pattern\": \"unwrap()\", \"severity\": \"block\", \"message\": \"Return an error instead\"}]}'
call knowledge_store "$rules, \"kind\": \"policy\", \"message\": \"Rules\", \"content\": \"${policy//$'\n'/}\""
call knowledge_store "$record, \"kind\": \"adr\", \"message\": \"Decide\", \"content\": \"# Use DynamoDB\""
for place in "$rules" "$record"; do
    for to in proposed accepted; do call knowledge_status "$place, \"to\": \"$to\", \"message\": \"Now $to\""; done
done
stop

# What was stored, as git reads it.
"$program" knowledge export --tenant acme --data "$scratch/data" "$scratch/knowledge.git"
git -C "$scratch/knowledge.git" fsck --strict --no-progress
git clone --quiet "$scratch/knowledge.git" "$scratch/clone"
for file in company/policies/code.json project/shop/adr/0001-use-dynamodb.md; do
    grep -q '^status: "accepted"$' "$scratch/clone/$file"
done
commits=$(git -C "$scratch/clone" rev-list --count HEAD)
[ "$commits" -eq 6 ] || { echo "git counts $commits commits, expected 6"; exit 1; }
if "$program" knowledge export --tenant acme --data "$scratch/data" "$scratch/clone" 2>"$scratch/said"; then
    echo "an export wrote into a folder that is not empty"
    exit 1
fi
grep -q 'is not empty' "$scratch/said"
echo "ok git reads and clones the exported knowledge"
