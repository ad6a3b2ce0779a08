#!/usr/bin/env bash
# Walks memory, knowledge and governance of the reference agent with a published SDK, then
# exports the knowledge and reads it with git.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

command -v git >/dev/null || { echo "this test needs git, which reads the exported knowledge" >&2; exit 1; }

# The same environment as for the walks of run.sh.
python=$target/interop/a2a-sdk-1.3.0
if [ "$(cat "$python/.ready" 2>/dev/null)" != "a2a-sdk==1.3.0" ]; then
    rm -rf "$python"
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check a2a-sdk==1.3.0
    echo "a2a-sdk==1.3.0" >"$python/.ready"
fi

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
timeout 180 "$python/bin/python" "$here/python/organisation.py" --base "$base" ||
    { tail -n 20 "$scratch/log" | sed 's/^/  /'; exit 1; }
stop

# What the walk stored, as git reads it.
"$program" knowledge export --tenant jsonrpc-ids --data "$scratch/data" "$scratch/knowledge.git"
git -C "$scratch/knowledge.git" fsck --strict --no-progress
git clone --quiet "$scratch/knowledge.git" "$scratch/clone"
for file in company/policies/code.json project/shop/adr/0001-use-dynamodb.md; do
    grep -q '^status: "accepted"$' "$scratch/clone/$file"
done
commits=$(git -C "$scratch/clone" rev-list --count HEAD)
[ "$commits" -eq 6 ] || { echo "git counts $commits commits, expected 6"; exit 1; }
if "$program" knowledge export --tenant jsonrpc-ids --data "$scratch/data" "$scratch/clone" 2>"$scratch/said"; then
    echo "an export wrote into a folder that is not empty"
    exit 1
fi
grep -q 'is not empty' "$scratch/said"
echo "ok git reads and clones the exported knowledge"
