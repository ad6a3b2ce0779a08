#!/usr/bin/env bash
# Walks `cargo run -- --agent models`, and the skill `assist` of the reference agent, with a
# published SDK, while the stub is their model.
set -euo pipefail

case ${1:-} in
    '') ;;
    *)
        echo "Usage: tests/models/walk.sh"
        echo
        echo "Builds the local agent, starts it with the stub as its model, and walks its skills by"
        echo "a2a-sdk 1.3.0: answers, a PDF, a stream, tools, attacks, and SIGKILL between tool and answer."
        echo "Then it does the same with the skill assist of the reference agent."
        [ "$1" = --help ] && exit 0 || exit 2
        ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export PYTHONDONTWRITEBYTECODE=1 NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

# The same environment as for the walks of tests/interop.
python=$target/interop/a2a-sdk-1.3.0
if [ "$(cat "$python/.ready" 2>/dev/null)" != "a2a-sdk==1.3.0" ]; then
    rm -rf "$python"
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet --disable-pip-version-check a2a-sdk==1.3.0
    echo "a2a-sdk==1.3.0" >"$python/.ready"
fi

cd "$root"
cargo build -q --locked --workspace --bin a2a-local
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for walk in walk assist; do
    timeout 400 "$python/bin/python" "$here/$walk.py" --program "$target/debug/a2a-local" \
        --stub "$here/stub.py" --script "$here/$walk.json" --log "$scratch/$walk.log" --data "$scratch" \
        2>"$scratch/errors" || { tail -n 60 "$scratch/errors" | sed 's/^/  /'; exit 1; }
done
