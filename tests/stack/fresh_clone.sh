#!/usr/bin/env bash
# From a clone to the first answer, in the four steps of the README: clone, `sam build`,
# deploy, curl with the first key of the stack; then tests/aws/walk.sh, as far as an emulator serves.
#
#   tests/stack/fresh_clone.sh TARGET
#
# TARGET is the target folder of tests/run.sh, with its environments `stack`, `sam` and `aws`.
# Three things are replaced; the script prints them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=$1
place=$target/fresh-clone
rm -rf "$place"
mkdir -p "$place/bin"

echo "step 1: git clone"
git clone --quiet --no-hardlinks . "$place/clone"
cd "$place/clone"

# In place of `cargo lambda build`, which `sam build` calls in the folder of each function.
cat >"$place/bin/cargo" <<'CARGO'
#!/bin/sh
if [ "$1" != lambda ]; then exec "$REAL" "$@"; fi
name=${PWD##*/}
"$REAL" build --locked --workspace --bin "$name" || exit
mkdir -p "$CARGO_TARGET_DIR/lambda/$name"
strip -o "$CARGO_TARGET_DIR/lambda/$name/bootstrap" "$CARGO_TARGET_DIR/debug/$name"
CARGO
chmod +x "$place/bin/cargo"
REAL=$(command -v cargo)
# The dependencies are those of the other steps; the members are compiled again.
export REAL CARGO="$place/bin/cargo" CARGO_TARGET_DIR="$target"
echo "replaced: cargo lambda, by a dev build for this machine"

echo "step 2: sam build"
PATH="$place/bin:$target/venv/watch/bin:$PATH" SAM_CLI_TELEMETRY=0 __SAM_CLI_APP_DIR="$place/app" \
  "$target/venv/sam/bin/sam" build

"$REAL" build --quiet --locked --workspace --bin a2a-local

echo "replaced: sam deploy, by the transform of SAM and CreateStack of the emulator"
"$target/venv/stack/bin/python" -B tests/stack/fresh.py --built .aws-sam/build --folder "$place/stack" \
  --aws "$target/venv/aws/bin" --program "$target/debug/a2a-local"
